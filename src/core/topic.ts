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
import { LOG_CLOSED, LOG_STORAGE_FULL, NO_ROOM } from '../log/contract.ts'
import { abortedError, messageOf, OdradekError } from '../model/errors.ts'
import { partitionOf } from '../model/key-hash.ts'
import type { PublishEntry, Published, PublishOptions } from '../model/options.ts'
import type { CoreContext } from './context.ts'
import {
  batchOf,
  type Copy,
  checkPublishOptions,
  type Draft,
  entriesOf,
  letterDraft,
  makeDraft,
  owned,
  returnDraft,
  sizeOf,
  validated,
} from './draft.ts'
import { encoded } from './encode.ts'
import { Histogram } from './histogram.ts'
import { LetterIndex } from './letters.ts'
import type { Partition } from './partition.ts'
import { StickyRoundRobin } from './partitioner.ts'
import { type Part, partOf } from './parts.ts'
import { publishDrafts } from './publish-all.ts'
import { isLost, PublishIds } from './publish-ids.ts'
import type { Reader } from './reader.ts'
import { signalOf } from './settings.ts'
import { assertSameTopic, type Cleaning, isSame, type TopicSettings } from './topic-settings.ts'
import { assertAccepted, refusedError, WaitingRoom, whenRoom } from './waiting.ts'

const SAMPLE_EVERY = 64

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
  readonly waitingRoom: WaitingRoom
  readonly #ctx: CoreContext
  readonly ids: PublishIds
  /** Of the dead letters in it, by partition. */
  readonly #letters: LetterIndex[] = []
  #sticky = new StickyRoundRobin(1)
  /** The partition of a topic that has one and asks nobody about values; null when publishing needs a closer look. */
  #onlyPartition: Partition | null = null
  /** The same where values are encoded first. */
  #onlyEncoded: Partition | null = null
  #ended: OdradekError | undefined
  #calls = 0
  /** Partitions that crossed the upper pressure mark, or keep it company above the lower one. */
  #underPressure = 0

  constructor(name: string, id: string, settings: TopicSettings, ctx: CoreContext, isDeadLetter: boolean) {
    this.name = name
    this.id = id
    this.settings = settings
    this.retention = settings.retention
    this.isDeadLetter = isDeadLetter
    this.#ctx = ctx
    this.waitingRoom = new WaitingRoom(name, settings.maxWaiting)
    this.ids = new PublishIds(ctx.clock, settings.dedupe)
  }

  /**
   * It is asked to be created again. When it came back from `Meta`, it takes on what could not be stored, and what is
   * asked for instead of what was. Answers whether there is something new to store.
   * @throws OdradekError TOPIC_EXISTS when it has other settings
   */
  claim(settings: TopicSettings): boolean {
    assertSameTopic(this.name, this.settings, this.partitions.length, settings, this.restored)
    if (!this.restored) return false
    const before = this.settings
    this.restored = false
    this.settings = settings
    this.waitingRoom.max = settings.maxWaiting
    this.ids.limit(settings.dedupe)
    this.#look()
    return !isSame(before, settings)
  }

  retain(retention: TopicSettings['retention']): void {
    this.retention = retention
    this.settings = { ...this.settings, retention }
    for (const partition of this.partitions) {
      partition.log.configure(retention)
      partition.holdersChanged()
    }
    this.expire()
  }

  /** How its logs are cleaned from now on. They are told of `cleanup` by whoever opens them. */
  clean({ cleanup, deleteRetentionMs, retention }: Cleaning): void {
    this.settings = { ...this.settings, cleanup, deleteRetentionMs }
    this.#look()
    this.retain(retention)
  }

  /** Lets age take its toll now. */
  expire(): void {
    if (this.retention.ageMs === Number.POSITIVE_INFINITY) return
    const now = this.#ctx.clock.now()
    for (const partition of this.partitions) partition.expire(now)
  }

  partitionAt(index: number): Partition {
    const partition = typeof index === 'number' ? this.partitions[index] : undefined
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
    const { schema, sizeOf: custom, cleanup } = this.settings
    const { encodes } = this.#ctx.engine
    const plain = this.partitions.length === 1 && schema === null && this.#ended === undefined
    const only = plain ? (this.partitions[0] as Partition) : null
    this.#onlyPartition = encodes || custom !== null ? null : only
    this.#onlyEncoded = encodes && cleanup === 'delete' ? only : null
  }

  // ── publish ───────────────────────────────────────────────────────────────────────────────────

  /** Resolves when the record is accepted under the engine's durability. `exempt`: the reader whose handler calls. */
  publish(value: unknown, options?: PublishOptions, exempt: Reader | null = null): Promise<Published> {
    const sample = (++this.#calls & (SAMPLE_EVERY - 1)) === 0
    if (options === undefined && exempt === null && !sample && this.#isPlain(value)) {
      const offset = this.#appendPlain(value)
      if (offset >= 0) return this.accepted(this.#onlyPartition as Partition, { partition: 0, offset })
    }
    try {
      if (options === undefined && exempt === null && !sample && this.#isPlainBytes(value)) {
        const offset = this.#appendEncoded(value)
        if (offset >= 0) return this.accepted(this.#onlyEncoded as Partition, { partition: 0, offset })
      }
      const since = sample ? this.#ctx.clock.monotonic() : undefined
      const draft = this.draft(value, options)
      const signal = signalOf(options?.signal)
      if (signal?.aborted === true) throw abortedError(signal, 'publish')
      const published =
        draft.id === undefined || !this.ids.on
          ? this.#publishDraft(draft, signal, exempt)
          : this.#publishOnce(draft, signal, exempt)
      if (since !== undefined) this.#sample(published, since)
      return published
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Publishes now, or answers undefined when there is no room or others wait for it. On an engine that flushes, the
   * answer comes before that: a flush that fails is an `error` event.
   */
  tryPublish(value: unknown, options?: PublishOptions): Published | undefined {
    if (options === undefined && this.#isPlain(value)) {
      const offset = this.#appendPlain(value)
      if (offset >= 0) return { partition: 0, offset }
    }
    if (options === undefined && this.#isPlainBytes(value)) {
      const offset = this.#appendEncoded(value)
      if (offset >= 0) return this.#unawaited(this.#onlyEncoded as Partition, { partition: 0, offset })
    }
    const draft = this.draft(value, options)
    const seen = this.ids.position(draft)
    if (seen !== undefined) {
      this.duplicates++
      return { ...seen, duplicate: true }
    }
    if (this.ids.pending(draft) !== undefined) return undefined
    const partition = this.choose(draft)
    if (partition.line.length > 0) return undefined
    const offset = this.#append(partition, draft, null)
    if (offset === NO_ROOM) {
      assertAccepted(this.#ctx, [partOf(this, partition, [draft])])
      return undefined
    }
    const published = this.#unawaited(partition, this.#accept(draft, partition.index, offset))
    if (offset >= partition.log.marks.high) {
      this.ids.expect(draft, () => partition.log.durable(offset).then(() => published))
    }
    return published
  }

  /** Nobody waits for it to be durable, so that is watched here. */
  #unawaited(partition: Partition, published: Published): Published {
    if (published.offset >= partition.log.marks.high) partition.flushes.begin(false)
    return published
  }

  /** A value alone, for such a topic: nothing to check, nothing to choose, no user code to call. */
  #isPlain(value: unknown): boolean {
    return this.#onlyPartition !== null && value !== undefined
  }

  #appendPlain(value: unknown): number {
    const partition = this.#onlyPartition as Partition
    if (partition.line.length > 0) return NO_ROOM
    const sizeBytes = sizeOf(this.name, null, value)
    const offset = partition.appendOne(value, null, null, sizeBytes, null)
    if (offset >= 0) {
      this.published++
      this.publishedBytes += sizeBytes
    }
    return offset
  }

  #isPlainBytes(value: unknown): boolean {
    return this.#onlyEncoded !== null && value !== undefined
  }

  #appendEncoded(value: unknown): number {
    const partition = this.#onlyEncoded as Partition
    if (partition.line.length > 0) return NO_ROOM
    const { value: bytes, headers, sizeBytes } = encoded(this.name, this.settings.codec, value, null, null)
    const offset = partition.appendOne(bytes, null, headers, sizeBytes, null)
    if (offset >= 0) {
      this.published++
      this.publishedBytes += sizeBytes
    }
    return offset
  }

  /** In order, and all or nothing per partition (not overall). Positions come back in the order given. */
  publishAll(entries: Iterable<PublishEntry>, options?: { signal?: AbortSignal }): Promise<Published[]> {
    try {
      const signal = signalOf(options?.signal)
      if (signal?.aborted === true) throw abortedError(signal, 'publishAll')
      const drafts = entriesOf(entries).map((entry) => this.#draft(entry.value, entry))
      return publishDrafts(this, drafts, signal)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  draft(value: unknown, options?: PublishOptions): Draft {
    if (options !== undefined) checkPublishOptions(options)
    return this.#draft(value, options ?? NO_OPTIONS)
  }

  #draft(value: unknown, options: Omit<PublishOptions, 'signal'>): Draft {
    this.assertOpen()
    if (options.partition !== undefined) this.partitionAt(options.partition)
    return makeDraft(this.name, this.settings, this.#ctx.engine.encodes, value, options)
  }

  /** A draft that outlives the call it was made in. In memory values are handed over as they are. */
  keep(draft: Draft): Draft {
    return this.#ctx.engine.encodes ? owned(draft) : draft
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

  /** `hasRoom`: for a keyless record, which of the partitions would take it at once. */
  choose(draft: Draft, hasRoom?: (partition: Partition) => boolean): Partition {
    if (draft.partition !== undefined) return this.partitionAt(draft.partition)
    const { partitions } = this
    if (partitions.length === 1) return partitions[0] as Partition
    if (draft.key !== null) return partitions[partitionOf(draft.key, partitions.length)] as Partition
    const index = this.#sticky.next((candidate) => {
      const partition = partitions[candidate] as Partition
      return hasRoom === undefined ? partition.hasRoom(1, draft.sizeBytes) : hasRoom(partition)
    })
    return partitions[index] as Partition
  }

  #publishDraft(draft: Draft, signal: AbortSignal | undefined, exempt: Reader | null): Promise<Published> {
    const partition = this.choose(draft)
    if (partition.line.length === 0 || exempt !== null) {
      const offset = this.#append(partition, draft, exempt)
      if (offset !== NO_ROOM) {
        return this.accepted(partition, this.#accept(draft, partition.index, offset))
      }
    }
    return this.whenRoom(partOf(this, partition, [this.keep(draft)]), signal, exempt).then(([published]) =>
      this.accepted(partition, published as Published),
    )
  }

  /** The offset, or NO_ROOM. */
  #append(partition: Partition, { value, key, headers, sizeBytes }: Draft, exempt: Reader | null): number {
    const offset = partition.appendOne(value, key, headers, sizeBytes, exempt)
    if (offset >= NO_ROOM) return offset
    if (offset === LOG_STORAGE_FULL) throw refusedError(partition, 'STORAGE_FULL')
    throw refusedError(partition, offset === LOG_CLOSED ? 'CLOSED' : 'POISONED')
  }

  /** Appends a part, once there is room for all of it. */
  whenRoom(part: Part, signal: AbortSignal | undefined, exempt: Reader | null): Promise<Published[]> {
    const timeoutMs = this.settings.publishTimeoutMs
    const options = { exempt, signal, timeoutMs, what: 'publish' }
    return whenRoom(this.#ctx, [part], options, () => this.appendPart(part, exempt))
  }

  /** Appends what fits, and counts it. */
  appendPart({ partition, batch, drafts }: Part, exempt: Reader | null): Published[] {
    const appended = partition.append(batch, exempt)
    if (typeof appended === 'string') throw refusedError(partition, appended)
    // At once: who waits for it comes to that later, and there must be no moment of idleness in between.
    if (appended.last >= partition.log.marks.high) partition.flushes.begin(true)
    return drafts.map((draft, i) => this.#accept(draft, partition.index, appended.base + i))
  }

  /** Counts an appended record, and remembers its id. */
  #accept(draft: Draft, partition: number, offset: number): Published {
    this.published++
    this.publishedBytes += draft.sizeBytes
    const published = { partition, offset }
    this.ids.accepted(draft, published)
    return published
  }

  /** Waits for durability where there is any to wait for, and lets the event loop turn in long loops. */
  accepted(partition: Partition, published: Published): Promise<Published> {
    const { log } = partition
    if (published.offset >= log.marks.high) {
      partition.flushes.begin(true)
      return log.durable(published.offset).then(() => published)
    }
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

  #publishOnce(draft: Draft, signal: AbortSignal | undefined, exempt: Reader | null): Promise<Published> {
    const earlier = this.earlier(draft)
    if (earlier !== undefined) return earlier
    const published = this.#publishDraft(draft, signal, exempt)
    this.ids.expect(draft, () => published)
    return published
  }

  /** The outcome of an earlier publish of the same id, its durability included. */
  earlier(draft: Draft): Promise<Published> | undefined {
    const pending = this.ids.pending(draft)
    if (pending !== undefined) {
      return pending.then((position) => {
        this.duplicates++
        return { ...position, duplicate: true }
      })
    }
    const position = this.ids.position(draft)
    if (position === undefined) return undefined
    this.duplicates++
    return this.accepted(this.partitionAt(position.partition), { ...position, duplicate: true })
  }

  // ── dead letters ──────────────────────────────────────────────────────────────────────────────

  /**
   * Once per failure, through every gate. One that is in already may still be waiting for its durability. `source` is who
   * failed and where, `offset` at what.
   */
  async appendDeadLetter(source: string, offset: number, letter: Copy): Promise<void> {
    this.assertOpen()
    for (const partition of this.partitions) {
      const first = this.#lettersIn(partition).find(source, offset, partition.log.marks.start)
      if (first === undefined) continue
      await this.accepted(partition, { partition: partition.index, offset: first })
      return
    }
    const draft = letterDraft(this.name, this.settings, this.#ctx.engine.encodes, letter)
    const partition = this.choose(draft)
    const result = partition.appendForced(batchOf([draft]))
    if (typeof result === 'string') throw refusedError(partition, result)
    const letters = this.#lettersIn(partition)
    letters.add(source, offset, result.base, partition.log.marks.start)
    try {
      await this.accepted(partition, this.#accept(draft, partition.index, result.base))
    } catch (error) {
      // What is not there is to be written again; of what may be there, the log knows once it is opened anew.
      if (isLost(error)) letters.forget(source, offset)
      throw error
    }
  }

  #lettersIn({ index }: Partition): LetterIndex {
    this.#letters[index] ??= new LetterIndex()
    return this.#letters[index]
  }

  /** A redriven copy: through the front door, but its id was seen before and does not count as a repeat. */
  async publishAgain(copy: Copy, undecoded: boolean): Promise<Published> {
    this.assertOpen()
    const draft = returnDraft(this.name, this.settings, this.#ctx.engine.encodes, copy, undecoded)
    return this.#publishDraft(draft, undefined, null)
  }

  // ── pressure, the end ─────────────────────────────────────────────────────────────────────────

  /** The fullest partition's share held by gating readers, or the waiters' share of their limit. */
  get pressure(): number {
    let pressure = this.waitingRoom.share
    for (const partition of this.partitions) pressure = Math.max(pressure, partition.pressure())
    return pressure
  }

  pressed(pressure: number): void {
    if (this.#underPressure++ === 0) {
      this.#ctx.events.raise('pressure', { topic: this.name, pressure })
    }
  }

  /** A partition is at the lower mark. The topic has drained when none is above it. */
  drained(): void {
    if (--this.#underPressure > 0) return
    for (const partition of this.partitions) if (partition.staysPressed()) this.#underPressure++
    if (this.#underPressure === 0) {
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
