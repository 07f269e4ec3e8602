/**
 * A topic: its settings, its partitions, and the front door of `publish`.
 *
 *   publish ─► validate ─► choose a partition ─► room? ─► append ─► accepted
 *                                                  │ no
 *                                                  ├─ a `reject` reader is full ─► FULL
 *                                                  └─ stand in line (bounded, abortable, TIMEOUT)
 *
 * From the choice of the partition to the append nothing is awaited and no user code runs: that is the
 * critical section, and one thread is its lock. Nothing in here ever calls a subscriber.
 */
import { type Appended, NO_ROOM, type Refusal } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import { abortedError, messageOf, OdradekError } from '../model/errors.ts'
import type { PublishEntry, Published, PublishOptions } from '../model/options.ts'
import type { Key, RecordHeaders } from '../model/record.ts'
import type { CoreContext } from './context.ts'
import { DedupeWindow } from './dedupe.ts'
import { batchOf, type Draft, makeDraft, sizeOf, validated } from './draft.ts'
import { Histogram } from './histogram.ts'
import type { Partition } from './partition.ts'
import { partitionOf, StickyRoundRobin } from './partitioner.ts'
import type { Reader } from './reader.ts'
import type { TopicSettings } from './topic-settings.ts'
import { PublishWaiter, refusedError } from './waiting.ts'

const SAMPLE_EVERY = 64
/** Dead letters remembered for idempotence. */
const DEAD_LETTERS_KNOWN = 65_536

export class Topic {
  readonly name: string
  readonly id: string
  settings: TopicSettings
  /** Came back from `Meta`: its next `createTopic` brings what cannot be stored. */
  restored: boolean = false
  readonly partitions: Partition[] = []
  /** Set when records that failed for good are sent here, or its name says so. */
  isDeadLetter: boolean
  /** Whether cursors with a bound of their own must be looked at on every wake. */
  hasLagPolicies: boolean = false
  published: number = 0
  publishedBytes: number = 0
  duplicates: number = 0
  readonly publishLatency: Histogram = new Histogram()
  retention: TopicSettings['retention']
  readonly #ctx: CoreContext
  #dedupe: DedupeWindow | null
  /** Ids whose first publish still waits; repeats share its outcome. */
  readonly #pending = new Map<string, Promise<Published>>()
  readonly #deadLetters = new DedupeWindow(Number.POSITIVE_INFINITY, DEAD_LETTERS_KNOWN)
  #sticky = new StickyRoundRobin(1)
  /** The partition of a topic that has one and takes any value; null when publishing needs a closer look. */
  #onlyPartition: Partition | null = null
  #waitingRecords = 0
  #waitingBytes = 0
  #ended: OdradekError | undefined
  #calls = 0
  /** Partitions above the pressure mark. */
  #underPressure = 0

  constructor(name: string, id: string, settings: TopicSettings, ctx: CoreContext, isDeadLetter: boolean) {
    this.name = name
    this.id = id
    this.settings = settings
    this.retention = settings.retention
    this.isDeadLetter = isDeadLetter
    this.#ctx = ctx
    this.#dedupe = dedupeFor(settings)
  }

  /** A topic that came back from `Meta` takes on the settings of the code that opens it. */
  adopt(settings: TopicSettings): void {
    this.restored = false
    this.settings = { ...settings, partitions: this.partitions.length }
    this.retain(settings.retention)
    this.#dedupe = dedupeFor(settings)
    this.#look()
  }

  retain(retention: TopicSettings['retention']): void {
    this.retention = retention
    this.settings = { ...this.settings, retention }
    for (const partition of this.partitions) {
      partition.log.configure(retention)
      partition.holdersChanged()
    }
  }

  /** Lets age take its toll now. */
  expire(): void {
    if (this.retention.ageMs === Number.POSITIVE_INFINITY) return
    const now = this.#ctx.clock.now()
    for (const { log } of this.partitions) log.expire(now)
  }

  get publishTimeoutMs(): number {
    return this.settings.publishTimeoutMs
  }

  partitionAt(index: number): Partition {
    const partition = this.partitions[index]
    if (partition === undefined) {
      throw new OdradekError(
        'INVALID_ARGUMENT',
        `topic "${this.name}" has partitions 0 to ${this.partitions.length - 1}, not ${String(index)}`,
      )
    }
    return partition
  }

  addPartition(partition: Partition): void {
    this.partitions.push(partition)
    this.#sticky = new StickyRoundRobin(this.partitions.length)
    this.#look()
  }

  #look(): void {
    const plain = this.partitions.length === 1 && this.settings.schema === null && this.#ended === undefined
    this.#onlyPartition = plain ? (this.partitions[0] as Partition) : null
  }

  // ── publish ───────────────────────────────────────────────────────────────────────────────────

  /** Resolves when the record is accepted under the engine's durability. `exempt`: the reader whose handler calls. */
  publish(value: unknown, options?: PublishOptions, exempt: Reader | null = null): Promise<Published> {
    const sample = (++this.#calls & (SAMPLE_EVERY - 1)) === 0
    if (options === undefined && exempt === null && !sample && this.#isPlain(value)) {
      const offset = this.#appendPlain(value)
      if (offset >= 0) return this.#accepted(this.#onlyPartition as Partition, { partition: 0, offset })
    }
    try {
      const sampled = sample ? this.#ctx.clock.monotonic() : 0
      const draft = this.draft(value, options)
      const { signal } = options ?? NO_OPTIONS
      if (signal?.aborted === true) throw abortedError(signal, 'publish')
      const published =
        draft.id === undefined || this.#dedupe === null
          ? this.#publishDraft(draft, signal, exempt)
          : this.#publishOnce(draft, draft.id, signal, exempt)
      if (sampled > 0) this.#sample(published, sampled)
      return published
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Publishes now, or answers undefined when there is no room or others wait for it. */
  tryPublish(value: unknown, options?: PublishOptions): Published | undefined {
    if (options === undefined && this.#isPlain(value)) {
      const offset = this.#appendPlain(value)
      if (offset >= 0) return { partition: 0, offset }
    }
    const draft = this.draft(value, options)
    const seen = draft.id === undefined ? undefined : this.#seen(draft.id)
    if (seen !== undefined) return seen
    if (draft.id !== undefined && this.#pending.has(draft.id)) return undefined
    const partition = this.choose(draft)
    if (partition.waiting > 0) return undefined
    const offset = partition.appendOne(draft.value, draft.key, draft.headers, draft.sizeBytes, null)
    return offset < 0 ? undefined : this.accept(draft, partition.index, offset)
  }

  /** A value alone, for a topic of one partition without a schema: nothing to check, nothing to choose. */
  #isPlain(value: unknown): boolean {
    return this.#onlyPartition !== null && value !== undefined
  }

  #appendPlain(value: unknown): number {
    const partition = this.#onlyPartition as Partition
    if (partition.waiting > 0) return NO_ROOM
    const sizeBytes = sizeOf(this.name, this.settings.sizeOf, value)
    const offset = partition.appendOne(value, null, null, sizeBytes, null)
    if (offset >= 0) {
      this.published++
      this.publishedBytes += sizeBytes
    }
    return offset
  }

  /** In order, and all or nothing per partition (not overall). Positions come back in the order given. */
  publishAll(entries: Iterable<PublishEntry>, options?: { signal?: AbortSignal }): Promise<Published[]> {
    try {
      const signal = options?.signal
      if (signal?.aborted === true) throw abortedError(signal, 'publishAll')
      const drafts = [...entries].map((entry) => this.draft(entry.value, entry))
      return this.#publishDrafts(drafts, signal)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  draft(value: unknown, options?: Omit<PublishOptions, 'signal'>): Draft {
    this.assertOpen()
    if (options?.partition !== undefined) this.partitionAt(options.partition)
    return makeDraft(this.name, this.settings, value, options ?? NO_OPTIONS)
  }

  /** Why a value from foreign bytes does not fit the schema; undefined when it does. */
  schemaFailure(value: unknown): string | undefined {
    try {
      validated(this.name, this.settings.schema, value)
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  choose(draft: Draft): Partition {
    if (draft.partition !== undefined) return this.partitionAt(draft.partition)
    const { partitions } = this
    if (partitions.length === 1) return partitions[0] as Partition
    if (draft.key !== null) return partitions[partitionOf(draft.key, partitions.length)] as Partition
    return partitions[
      this.#sticky.next((index) => (partitions[index] as Partition).hasRoom(1, draft.sizeBytes))
    ] as Partition
  }

  #publishDraft(draft: Draft, signal: AbortSignal | undefined, exempt: Reader | null): Promise<Published> {
    const partition = this.choose(draft)
    if (partition.waiting === 0 || exempt !== null) {
      const offset = partition.appendOne(draft.value, draft.key, draft.headers, draft.sizeBytes, exempt)
      if (offset >= 0) return this.#accepted(partition, this.accept(draft, partition.index, offset))
    }
    return this.#wait(partition, batchOf([draft]), signal).then((appended) =>
      this.#accepted(partition, this.accept(draft, partition.index, appended.base)),
    )
  }

  /** Counts an appended record, and remembers its id. */
  accept(draft: Draft, partition: number, offset: number): Published {
    this.published++
    this.publishedBytes += draft.sizeBytes
    const published = { partition, offset }
    if (draft.id !== undefined && this.#dedupe !== null) {
      this.#dedupe.set(draft.id, published, this.#ctx.clock.monotonic())
    }
    return published
  }

  /** Waits for durability where there is any to wait for, and lets the event loop turn in long loops. */
  #accepted(partition: Partition, published: Published): Promise<Published> {
    const { log } = partition
    if (published.offset >= log.marks.high) return log.durable(published.offset).then(() => published)
    const { dispatcher } = this.#ctx
    return dispatcher.spent ? dispatcher.turn().then(() => published) : Promise.resolve(published)
  }

  #sample(published: Promise<Published>, since: number): void {
    published.then(
      () => this.publishLatency.record(this.#ctx.clock.monotonic() - since),
      () => undefined,
    )
  }

  // ── dedupe ────────────────────────────────────────────────────────────────────────────────────

  #seen(id: string): Published | undefined {
    const position = this.#dedupe?.get(id, this.#ctx.clock.monotonic())
    if (position === undefined) return undefined
    this.duplicates++
    return { ...position, duplicate: true }
  }

  /** Whether this id was accepted before; waits for a first publish that is still waiting. */
  async wasPublished(draft: Draft): Promise<boolean> {
    if (draft.id === undefined || this.#dedupe === null) return false
    const first = this.#pending.get(draft.id)
    if (first !== undefined) await first.catch(() => undefined)
    return this.#seen(draft.id) !== undefined
  }

  #publishOnce(
    draft: Draft,
    id: string,
    signal: AbortSignal | undefined,
    exempt: Reader | null,
  ): Promise<Published> {
    const first = this.#pending.get(id)
    if (first !== undefined) {
      return first.then((position): Published => {
        this.duplicates++
        return { ...position, duplicate: true }
      })
    }
    const seen = this.#seen(id)
    if (seen !== undefined) return Promise.resolve(seen)
    const published = this.#publishDraft(draft, signal, exempt)
    this.#pending.set(id, published)
    const forget = (): void => {
      this.#pending.delete(id)
    }
    published.then(forget, forget)
    return published
  }

  // ── batches ───────────────────────────────────────────────────────────────────────────────────

  async #publishDrafts(drafts: readonly Draft[], signal: AbortSignal | undefined): Promise<Published[]> {
    const results: (Promise<Published> | undefined)[] = drafts.map((draft) => this.#repeat(draft))
    const firstOfId = new Map<string, number>()
    const perPartition = new Map<Partition, number[]>()
    for (let i = 0; i < drafts.length; i++) {
      const draft = drafts[i] as Draft
      if (results[i] !== undefined) continue
      if (draft.id !== undefined && this.#dedupe !== null) {
        if (firstOfId.has(draft.id)) continue
        firstOfId.set(draft.id, i)
      }
      const partition = this.choose(draft)
      const rows = perPartition.get(partition)
      if (rows === undefined) perPartition.set(partition, [i])
      else rows.push(i)
    }
    for (const [partition, rows] of perPartition) {
      const batch = rows.map((i) => drafts[i] as Draft)
      const appended = this.#appendDrafts(partition, batch, signal)
      rows.forEach((i, at) => {
        const one = appended.then((all) => all[at] as Published)
        results[i] = one
        const { id } = drafts[i] as Draft
        if (id !== undefined && this.#dedupe !== null) {
          this.#pending.set(id, one)
          const forget = (): boolean => this.#pending.delete(id)
          one.then(forget, forget)
        }
      })
    }
    return Promise.all(
      drafts.map((draft, i): Promise<Published> => {
        const own = results[i]
        if (own !== undefined) return own
        this.duplicates++
        const first = results[firstOfId.get(draft.id as string) as number] as Promise<Published>
        return first.then((position) => ({ ...position, duplicate: true }))
      }),
    )
  }

  /** The outcome of an earlier publish of the same id, if there is one. */
  #repeat(draft: Draft): Promise<Published> | undefined {
    if (draft.id === undefined || this.#dedupe === null) return undefined
    const first = this.#pending.get(draft.id)
    if (first === undefined) {
      const seen = this.#seen(draft.id)
      return seen === undefined ? undefined : Promise.resolve(seen)
    }
    this.duplicates++
    return first.then((position) => ({ ...position, duplicate: true }))
  }

  async #appendDrafts(
    partition: Partition,
    drafts: readonly Draft[],
    signal: AbortSignal | undefined,
  ): Promise<Published[]> {
    const batch = batchOf(drafts)
    const result: Appended | Refusal = partition.waiting === 0 ? partition.append(batch, null) : 'NO_ROOM'
    const appended =
      typeof result !== 'string'
        ? result
        : result === 'NO_ROOM'
          ? await this.#wait(partition, batch, signal)
          : raise(refusedError(partition, result))
    const published = drafts.map((draft, i) => this.accept(draft, partition.index, appended.base + i))
    const last = published[published.length - 1] as Published
    await this.#accepted(partition, last)
    return published
  }

  // ── waiting ───────────────────────────────────────────────────────────────────────────────────

  #wait(partition: Partition, batch: Batch, signal: AbortSignal | undefined): Promise<Appended> {
    const { maxWaiting } = this.settings
    if (partition.rejects(batch.count, batch.sizeBytes)) {
      return Promise.reject(
        new OdradekError(
          'FULL',
          `"${this.name}" partition ${partition.index} is full and a reader asked to reject`,
        ),
      )
    }
    if (
      this.#waitingRecords + batch.count > maxWaiting.records ||
      this.#waitingBytes + batch.sizeBytes > maxWaiting.bytes
    ) {
      return Promise.reject(
        new OdradekError(
          'TOO_MANY_WAITING',
          `${this.#waitingRecords} records already wait for room in "${this.name}"; await publish, or slow down at the "pressure" event`,
        ),
      )
    }
    return new Promise((resolve, reject) => {
      const waiter = new PublishWaiter(partition, batch, signal, resolve, reject)
      this.#waitingRecords += batch.count
      this.#waitingBytes += batch.sizeBytes
      this.#ctx.dispatcher.activate()
      this.#ctx.due.schedule(waiter, this.#ctx.clock.monotonic() + this.publishTimeoutMs)
      partition.wait(waiter)
    })
  }

  stopWaiting(waiter: PublishWaiter): void {
    this.#waitingRecords -= waiter.batch.count
    this.#waitingBytes -= waiter.batch.sizeBytes
    this.#ctx.due.cancel(waiter)
    this.#ctx.dispatcher.deactivate()
  }

  // ── dead letters ──────────────────────────────────────────────────────────────────────────────

  /** Once per identity, through every gate. */
  async appendDeadLetter(
    identity: string,
    value: unknown,
    key: Key | null,
    headers: RecordHeaders,
  ): Promise<void> {
    this.assertOpen()
    const now = this.#ctx.clock.monotonic()
    if (this.#deadLetters.get(identity, now) !== undefined) return
    const sizeBytes = sizeOf(this.name, this.settings.sizeOf, value)
    const draft: Draft = { value, key, headers, partition: undefined, id: undefined, sizeBytes }
    const partition = this.choose(draft)
    const result = partition.appendForced(batchOf([draft]))
    if (typeof result === 'string') throw refusedError(partition, result)
    this.#deadLetters.set(identity, { partition: partition.index, offset: result.base }, now)
    await this.#accepted(partition, this.accept(draft, partition.index, result.base))
  }

  /** A redriven copy: through the front door, but its id was seen before and does not count as a repeat. */
  publishAgain(value: unknown, key: Key | null, headers: RecordHeaders): Promise<Published> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    const draft: Draft = {
      value,
      key,
      headers,
      partition: undefined,
      id: undefined,
      sizeBytes: sizeOf(this.name, this.settings.sizeOf, value),
    }
    return this.#publishDraft(draft, undefined, null)
  }

  // ── pressure, the end ─────────────────────────────────────────────────────────────────────────

  /** The fullest partition's share held by gating readers, or the waiters' share of their limit. */
  get pressure(): number {
    let pressure = Math.min(1, this.#waitingRecords / this.settings.maxWaiting.records)
    for (const partition of this.partitions) pressure = Math.max(pressure, partition.pressure())
    return pressure
  }

  pressed(pressure: number): void {
    if (this.#underPressure++ === 0) {
      this.#ctx.events.raise('pressure', { topic: this.name, pressure })
    }
  }

  drained(): void {
    if (--this.#underPressure === 0) {
      this.#ctx.events.raise('drain', { topic: this.name, pressure: this.pressure })
    }
  }

  /** From now on publishing throws `error`, and who waits is told. */
  end(error: OdradekError): void {
    this.#ended = error
    this.#look()
    for (const partition of this.partitions) partition.close(error)
  }

  /** @throws OdradekError UNKNOWN_TOPIC once deleted, CLOSED with its broker */
  assertOpen(): void {
    if (this.#ended !== undefined) throw this.#ended
  }

  get ended(): boolean {
    return this.#ended !== undefined
  }
}

const NO_OPTIONS: PublishOptions = {}

function dedupeFor(settings: TopicSettings): DedupeWindow | null {
  return settings.dedupe === null ? null : new DedupeWindow(settings.dedupe.windowMs, settings.dedupe.records)
}

function raise(error: OdradekError): never {
  throw error
}
