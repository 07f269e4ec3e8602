/**
 * Runs a program against a broker and the model at once: the steps, the handlers, and what both need.
 */

import { Broker } from '../../src/broker.ts'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Member } from '../../src/core/member.ts'
import type { Reader } from '../../src/core/reader.ts'
import type { Delivery, DeliveryBatch } from '../../src/model/delivery.ts'
import { BatchError, OdradekError } from '../../src/model/errors.ts'
import type { Position, Published, StartPosition, TopicOptions } from '../../src/model/options.ts'
import type { BrokerEvents } from '../../src/model/views.ts'
import { History } from '../../src/testing/history.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { BusyClock } from './busy-clock.ts'
import { isTooLarge, type ModelPartition, type ModelTopic, type Request } from './logs.ts'
import { judgeLook } from './look.ts'
import { logOf, Model, matches, nameOf, rowValue } from './model.ts'
import type { HandlerPlan, MemberPlan, Program, ReaderPlan, Step, TopicPlan } from './program.ts'
import { type Fate, ModelMember, type ModelReader, type Unit } from './readers.ts'
import { judgeRest } from './rest.ts'
import { listenTo, tappedEngine } from './taps.ts'

const KEYS = ['ka', 'kb', 'kc'] as const
/** Positive murmur2 of each, as Kafka's Java client hashes it. */
const HASHES: Readonly<Record<string, number>> = { ka: 2_052_514_693, kb: 2_080_318_002, kc: 888_963_009 }

const OVERHEAD_BYTES = 64
const DRAIN_MS = 10_000
/** Records that handlers publish in one program, at most: they must not feed each other for ever. */
const MAX_ECHOES = 24

/** What can be done without waiting for what it sets going. */
const HASTY: ReadonlySet<Step['kind']> = new Set([
  'publish',
  'try',
  'all',
  'abort',
  'join',
  'leave',
  'pause',
  'resume',
  'request',
  'settle',
  'reset',
  'delete',
])

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** Everything of one record that is about to be published. */
interface Draft {
  readonly value: string
  readonly key: string | null
  readonly partition: number | undefined
  readonly id: string | undefined
}

/** A join on its way. */
interface Joining {
  readonly member: ModelMember
  readonly plan: ReaderPlan
  readonly starts: Map<ModelTopic, (number | undefined)[]>
}

export class Runner {
  readonly clock = new BusyClock()
  readonly history = new History()
  readonly model: Model
  readonly broker: Broker
  readonly #program: Program
  /** Units that a later step may settle. */
  readonly #hands: Unit[] = []
  readonly #joining = new Map<AbortSignal, Joining>()
  readonly #controllers = new Map<ModelMember, AbortController>()
  readonly #members = new Map<object, ModelMember>()
  readonly #readers = new Map<object, ModelReader>()
  readonly #aborts: { readonly controller: AbortController; readonly requests: readonly Request[] }[] = []
  readonly #variants = new Map<ReaderPlan, ReaderPlan>()
  #values = 0
  #echoes = 0
  #random: number
  /** Handlers do nothing but return. */
  #calm = false
  /** All was at rest before the step that runs. */
  #wasAtRest = true
  /** Redrives on their way stand in lines that the model does not see. */
  redriving = 0
  steps = 0

  constructor(program: Program) {
    this.#program = program
    const { world } = program
    this.model = new Model(this.clock, this.history, { jitter: world.jitter, exact: !spends(program) })
    this.#random = world.readers.length
    const { model } = this
    const engine = tappedEngine(this.clock, world, {
      opened: (topic, topicId, index, retention) => {
        const partition = model.opened(topic, topicId, index)
        Object.assign(partition.topic, retention)
        if (index > 0 && partition.topic.visible) model.grown(partition.topic)
        if (partition.topic.isDeadLetter) partition.topic.visible = true
        return partition
      },
      advanced: (partition, start, rows) => {
        for (const row of rows) {
          if (!row.isCopy) continue
          const topic = logOf(partition)
          const send = this.history.send('redrive', topic, rowValue(row), row.key)
          this.history.sendOk(send, { partition: partition.index, offset: row.offset })
        }
        if (start > partition.start) this.history.evict(logOf(partition), partition.index, start)
        model.advanced(partition, start, rows)
      },
      configured: (partition, retention) => Object.assign(partition.topic, retention),
    })
    listenTo({
      joined: (reader, member) => this.#joined(reader, member),
      leaves: (_, member) => {
        const known = this.#members.get(member)
        if (known !== undefined) model.left(known)
      },
      reset: (reader, topicId, index, at) => this.#wasReset(reader, topicId, index, at),
    })
    this.broker = new Broker(
      engine,
      { clock: this.clock, logger: quiet, random: () => (world.jitter ? this.#nextRandom() : 0) },
      { observe: (name, event) => this.#observe(name, event) },
    )
  }

  #nextRandom(): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0
    return this.#random / 2 ** 32
  }

  /** What was found wrong; empty when nothing was. */
  async run(): Promise<string[]> {
    try {
      await this.#start()
      let restsBefore = 0
      for (const step of this.#program.steps) {
        if (this.model.problems.length > 0) break
        this.steps++
        this.#wasAtRest = this.model.rests > restsBefore
        restsBefore = this.model.rests
        await this.#execute(step, null)
        if (!step.hasty || !HASTY.has(step.kind)) await this.rest()
      }
      await this.rest()
      if (this.model.problems.length === 0) await this.#finish()
    } catch (error) {
      this.model.problem(`the run failed: ${error instanceof Error ? error.stack : String(error)}`)
    } finally {
      listenTo(null)
    }
    const { problems } = this.model
    if (problems.length === 0) {
      for (const anomaly of checkHistory(this.history)) {
        problems.push(
          `history: ${anomaly.kind}: ${anomaly.group ?? ''} ${anomaly.topic}/${anomaly.partition}: ${anomaly.message}`,
        )
      }
    }
    return problems
  }

  async rest(): Promise<void> {
    await this.clock.rest()
    this.model.restedAt = this.model.now
    this.model.rests++
    const idle = this.broker.idle()
    let isIdle = false
    void idle.then(() => {
      isIdle = true
    })
    await this.clock.settle()
    // By now it would have been heard that somebody was refused.
    for (const { partitions } of this.model.topics.values()) {
      for (const { line } of partitions) {
        for (const request of [...line]) {
          request.unsure = false
          if (request.orphaned && request.deadline <= this.model.now) this.model.leaveLine(request, 'refused')
        }
      }
    }
    judgeRest(this.model, { isIdle, isHeld: this.clock.held, redriving: this.redriving > 0 })
    for (let i = this.#hands.length - 1; i >= 0; i--) {
      const unit = this.#hands[i] as Unit
      if (unit.givenUp || (unit.returned && unit.unsettled.length === 0)) this.#hands.splice(i, 1)
    }
    this.model.forgetUnits()
  }

  async #start(): Promise<void> {
    const { topics, letters, readers } = this.#program.world
    for (const [i, plan] of topics.entries()) await this.#create(`t.${i}`, plan)
    if (letters > 0) await this.broker.createTopic('dlq.t.0', { retention: { records: letters } })
    for (const [i, plan] of readers.entries()) {
      for (const member of plan.members.keys()) {
        void this.#join({ kind: 'join', a: i, b: member, c: 1, hasty: false })
        await this.clock.rest()
      }
    }
    await this.rest()
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /** Everybody goes on and behaves; what can be settled must be. Then the broker closes. */
  async #finish(): Promise<void> {
    const { model } = this
    this.#calm = true
    for (const member of model.members) {
      if (member.left || member.closing !== null) continue
      if (member.paused) this.#resume(member)
      if (member.plan.manualCredit) this.#request(member, 1_000)
    }
    for (let round = 0; round < 6 && model.problems.length === 0; round++) {
      await this.rest()
      for (const unit of model.units) if (!unit.returned || unit.isBusy) this.#settleAll(unit)
      await this.clock.pass(1_500)
    }
    await this.clock.pass(40_000)
    await this.rest()
    await this.#look()
    if (model.problems.length > 0) return
    this.#judgeEnd()
    await this.#scan()
    await this.#close()
  }

  /** Nobody who has members is behind, and no publisher waits for somebody who has. */
  #judgeEnd(): void {
    const { model } = this
    for (const reader of model.readers) {
      for (const cursor of reader.cursors.values()) {
        const { topic } = cursor.partition
        const able = reader.membersOn(topic).some((member) => member.isAble)
        if (!able || reader.membersOn(topic).some((member) => !member.isAble)) continue
        const [left] = cursor.open
        if (left === undefined) continue
        model.problem(`${reader.life} ends with ${nameOf(cursor.partition)}/${left.row.offset} ${left.state}`)
      }
      const settled = [...reader.cursors.values()].every((cursor) => cursor.open.length === 0)
      if (settled && reader.membersOn.length > 0) this.history.drained(reader.life)
    }
  }

  /** Reads all that is kept, for the checker of histories. */
  async #scan(): Promise<void> {
    for (const topic of this.model.topics.values()) {
      for (const partition of topic.partitions) {
        const scan = this.history.scan(logOf(partition), partition.index)
        const records = await this.broker.read(topic.name, partition.index)
        const { start, end } = partition
        const expected = partition.rows.slice(start)
        const found = records.map(({ offset, value }) => `${offset} ${value}`).join()
        const wanted = expected.map(({ offset, value }) => `${offset} ${value}`).join()
        if (found !== wanted) this.model.problem(`${nameOf(partition)} holds ${found}, not ${wanted}`)
        this.history.scanOk(
          scan,
          start,
          end,
          expected.map((row) => ({ offset: row.offset, value: rowValue(row) })),
        )
      }
    }
  }

  async #close(): Promise<void> {
    const { model, clock } = this
    const inFlight = model.units.reduce((sum, unit) => sum + unit.unsettled.length, 0)
    let abandoned = -1
    model.closing = true
    for (const member of model.members) member.closing ??= { by: model.now }
    void this.broker.close({ drainMs: 0 }).then((result) => {
      abandoned = result.abandoned
    })
    await clock.rest()
    model.closed = true
    if (abandoned !== inFlight) model.problem(`closing abandoned ${abandoned} deliveries, not ${inFlight}`)
    for (const unit of model.units) unit.finish?.()
    for (const { deliveries } of model.units) {
      for (const delivery of deliveries) if (delivery.ack()) model.problem('an ack took effect after close()')
    }
    await clock.pass(100_000)
    if (clock.pending > 0) model.problem(`${clock.pending} timers are left after close()`)
    if (clock.held) model.problem('the process is held after close()')
    for (const request of model.requests.values()) {
      if (request.state === 'waiting') model.problem(`${request.values[0]} still waits after close()`)
    }
  }

  // ── steps ─────────────────────────────────────────────────────────────────────────────────────

  /** `within`: the handler that does it, which cannot wait. */
  async #execute(step: Step, within: Unit | null): Promise<void> {
    if (this.#mindsPromises(step) && this.model.units.some((unit) => unit.isUnheard(this.model.rests))) return
    switch (step.kind) {
      case 'publish':
        return this.#publish(step, null)
      case 'try':
        return this.#tryPublish(step)
      case 'all':
        return this.#publishAll(step)
      case 'abort':
        return this.#abort(step)
      case 'join':
        return this.#join(step)
      case 'leave':
        return this.#leave(step)
      case 'pause':
        return this.#withMember(step, (member) => {
          member.paused = true
          ;(member.subscription as Subscription).pause()
        })
      case 'resume':
        return this.#withMember(step, (member) => this.#resume(member))
      case 'request':
        return this.#withMember(step, (member) => {
          if (member.plan.manualCredit) this.#request(member, 1 + (step.b % 3))
        })
      case 'settle':
        return this.#settle(step)
      case 'reset':
        return this.#reset(step)
      case 'delete':
        return this.#delete(step)
    }
    if (HASTY.has(step.kind) || within !== null) return
    await this.rest()
    switch (step.kind) {
      case 'advance':
        await this.clock.pass([0, 5, 12, 35, 60, 120, 1_100, 31_000][step.a % 8] as number)
        return
      case 'create':
        return this.#recreate(step)
      case 'grow':
        return this.#grow(step)
      case 'retain':
        return this.#retain(step)
      case 'transaction':
        return this.#transaction(step)
      case 'redrive':
        return this.#redrive(step)
      case 'look':
        return this.#look()
    }
  }

  /** Whether it matters to the step if a promise that was just settled has been heard of; nobody can tell. */
  #mindsPromises({ kind }: Step): boolean {
    return kind === 'leave' || kind === 'reset' || kind === 'delete' || kind === 'settle'
  }

  #visible(number: number): ModelTopic | undefined {
    const topics = [...this.model.topics.values()].filter((topic) => topic.visible && matches(topic))
    return topics[number % topics.length]
  }

  #withMember(step: Step, act: (member: ModelMember) => void): void {
    const members = this.model.members.filter((each) => !each.left && each.subscription !== null)
    const member = members[step.a % members.length]
    if (member !== undefined) act(member)
  }

  #resume(member: ModelMember): void {
    member.paused = false
    this.model.touch()
    ;(member.subscription as Subscription).resume()
  }

  #request(member: ModelMember, permits: number): void {
    member.credit += permits
    this.model.touch()
    ;(member.subscription as Subscription).request(permits)
  }

  // ── topics ────────────────────────────────────────────────────────────────────────────────────

  async #create(name: string, plan: TopicPlan): Promise<void> {
    const { partitions, records, bytes, ageMs, dedupe, publishTimeoutMs, maxWaiting } = plan
    const options: TopicOptions = {
      partitions,
      retention: { records, bytes, ...(ageMs > 0 ? { ageMs } : {}) },
      dedupe,
      publishTimeoutMs,
      maxWaiting: { records: maxWaiting },
    }
    await this.broker.createTopic(name, options)
    const topic = this.model.topics.get(name) as ModelTopic
    Object.assign(topic, { publishTimeoutMs, maxWaiting, dedupeMs: dedupe ? 120_000 : 0 })
    this.model.nowVisible(topic)
  }

  async #recreate(step: Step): Promise<void> {
    const { topics } = this.#program.world
    const number = step.a % topics.length
    if (this.model.topics.has(`t.${number}`)) return
    await this.#create(`t.${number}`, topics[number] as TopicPlan)
  }

  #delete(step: Step): void {
    if (step.b % 3 > 0) return
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    for (const { cursors } of topic.partitions) {
      for (const { reader } of cursors) {
        for (const member of reader.members) {
          const last = [...member.topics].every((each) => each === topic)
          if (last && !this.model.isPattern(reader)) member.closing = { by: this.model.now }
        }
      }
    }
    this.model.deleted(topic)
    this.#watch(this.broker.deleteTopic(topic.name), 'deleteTopic')
  }

  async #grow(step: Step): Promise<void> {
    const topic = this.#visible(step.a)
    if (topic === undefined || topic.partitions.length > 2) return
    await this.broker.alterTopic(topic.name, { partitions: topic.partitions.length + 1 })
  }

  async #retain(step: Step): Promise<void> {
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    // What drop-newest takes in depends on what is retained when it judges, and nobody can tell when that is.
    for (const { cursors } of topic.partitions) {
      for (const { reader } of cursors) if (reader.plan.overflow === 'drop-newest') return
    }
    await this.broker.alterTopic(topic.name, { retention: { records: 1 + (step.b % 6) } })
  }

  /** Nobody awaits it; if it fails, that is a problem. */
  #watch(promise: Promise<unknown>, what: string): void {
    promise.catch((error: unknown) => this.model.problem(`${what}: ${String(error)}`))
  }

  // ── publishing ────────────────────────────────────────────────────────────────────────────────

  #draft(step: Step, topic: ModelTopic): Draft {
    const number = this.#values++
    const key = step.b % 4 === 0 ? null : (KEYS[(step.b % 4) - 1] as string)
    let partition = step.b >= 192 ? step.c % topic.partitions.length : undefined
    const value = `v${number}`.padEnd((step.c % 3) * 30, '.')
    if (key === null && partition === undefined && topic.partitions.length > 1) {
      // Where a keyless record waits is not to be seen, so it takes part only where one must take it.
      const sizeBytes = 2 * value.length + OVERHEAD_BYTES
      const free = topic.partitions.some(
        (each) =>
          each.line.length === 0 &&
          this.model.fits({ ...this.#requestFor(each, [value], null, 0), sizeBytes }, 'lowest'),
      )
      if (!free) partition = step.c % topic.partitions.length
    }
    const id = topic.dedupeMs > 0 && step.c % 2 === 0 ? `id${step.c % 6}` : undefined
    const first = topic.ids.get(id ?? '')?.request
    // Whether a repeat shares what the first was just told is a matter of moments.
    if (first?.state === 'refused' && first.ended === this.model.rests)
      return { value, key, partition, id: undefined }
    return { value, key, partition, id }
  }

  #requestFor(
    partition: ModelPartition,
    values: readonly string[],
    exempt: ModelReader | null,
    timeoutMs: number,
    {
      anywhere = false,
      together = [],
      acks = [],
    }: Partial<Pick<Request, 'anywhere' | 'acks'>> & { together?: Request[] } = {},
  ): Request {
    const sizeBytes = values.reduce((sum, value) => sum + 2 * value.length + OVERHEAD_BYTES, 0)
    const request: Request = {
      partition,
      anywhere,
      values,
      sizeBytes,
      exempt,
      together,
      acks,
      deadline: this.model.now + timeoutMs,
      state: 'calling',
      unsure: false,
      orphaned: false,
      base: -1,
      ended: -1,
    }
    together.push(request)
    return request
  }

  #partitionOf(topic: ModelTopic, draft: Draft): ModelPartition | undefined {
    const { partitions } = topic
    if (draft.partition !== undefined) return partitions[draft.partition]
    if (draft.key !== null) return partitions[(HASHES[draft.key] as number) % partitions.length]
    return partitions.length === 1 ? partitions[0] : undefined
  }

  #publish(step: Step, from: { unit: Unit; delivery: Delivery<string> } | null): void {
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    const { model } = this
    const draft = this.#draft(step, topic)
    const exempt = from === null ? null : from.unit.member.reader
    const options = optionsOf(draft)
    const known = this.#known(topic, draft.id)
    const controller = step.c % 5 === 0 ? new AbortController() : null
    const send = (): Promise<Published> => {
      const all = controller === null ? options : { ...options, signal: controller.signal }
      const given = Object.keys(all).length === 0 ? undefined : all
      return from === null
        ? this.broker.publish(topic.name, draft.value, given)
        : from.delivery.publish(topic.name, draft.value, given)
    }
    if (known !== undefined) {
      this.#repeat(send(), known)
      return
    }
    const partition = this.#partitionOf(topic, draft)
    const request = this.#requestFor(
      partition ?? (topic.partitions[0] as ModelPartition),
      [draft.value],
      exempt,
      topic.publishTimeoutMs,
      { anywhere: partition === undefined },
    )
    if (draft.id !== undefined) topic.ids.set(draft.id, { request, at: model.now })
    if (controller !== null) this.#aborts.push({ controller, requests: [request] })
    this.#call([request], [draft], send)
  }

  /** The first publish of an id, while it counts. */
  #known(topic: ModelTopic, id: string | undefined): Request | undefined {
    const known = id === undefined ? undefined : topic.ids.get(id)
    if (known === undefined || known.request.state === 'refused') return undefined
    if (known.request.state === 'in' && this.model.now - known.at >= topic.dedupeMs) return undefined
    return known.request
  }

  /** A publish whose id is known shares the outcome of the first. */
  #repeat(promise: Promise<Published>, first: Request): void {
    promise.then(
      ({ partition, offset, duplicate }) => {
        if (duplicate !== true || partition !== first.partition.index || offset !== first.base) {
          this.model.problem(`a repeat of ${first.values[0]} went to ${partition}/${offset}`)
        }
      },
      () => {
        if (first.state === 'in') this.model.problem(`a repeat of ${first.values[0]} failed, which is in`)
      },
    )
  }

  /** Publishes. What the log takes at once, it takes within the call. */
  #call(
    requests: readonly Request[],
    drafts: readonly Draft[],
    send: () => Promise<Published | Published[]>,
  ): void {
    const { model, history } = this
    let before = 0
    const expected = requests.map((request) => {
      const outcome = this.#expect(request, before)
      if (outcome === 'wait') before += request.values.length
      return outcome
    })
    for (const request of requests) for (const value of request.values) model.requests.set(value, request)
    const topic = requests[0]?.partition.topic as ModelTopic
    const log = `${topic.name}@${topic.id}`
    // A handler does not stand in line, so it is somebody else.
    const who = requests[0]?.exempt === null ? 'program' : `handler ${drafts[0]?.value}`
    const sends = drafts.map(({ value, key }) => history.send(who, log, value, key))
    const promise = send()
    for (const [i, request] of requests.entries()) {
      this.#judgeCall(request, expected[i] as Expected)
    }
    promise.then(
      (outcome) => {
        for (const [i, position] of [outcome].flat().entries()) {
          history.sendOk(sends[i] as number, position)
          this.#judgePosition(drafts[i] as Draft, position)
        }
      },
      (error: unknown) => {
        const code = error instanceof OdradekError ? error.code : String(error)
        for (const request of requests) this.#judgeFailure(request, code)
        for (const [i, { value }] of drafts.entries()) {
          const request = model.requests.get(value) as Request
          if (request.state === 'refused') history.fail(sends[i] as number)
          else history.unknown(sends[i] as number)
        }
      },
    )
  }

  /** What must become of a request within the call, as far as that is sure, behind others of the same call. */
  #expect(request: Request, waitingBefore = 0): Expected {
    const { model } = this
    const { partition, values, exempt, anywhere } = request
    if (anywhere) return 'in'
    if (isTooLarge(request)) return 'TOO_LARGE'
    const { topic } = partition
    // Whether others were refused, or wait, is heard of too late to say.
    if (topic.partitions.some(({ line }) => line.some(({ unsure }) => unsure))) {
      return 'anything'
    }
    const { line } = partition
    // Whose time is up has left, or is about to.
    if (line.length > 0 && line.every(({ deadline }) => deadline <= model.now)) return 'anything'
    const behind = exempt === null && line.length > 0
    if (!behind && model.fits(request, 'lowest')) return 'in'
    if (!behind && model.fits(request, 'highest')) return 'anything'
    if (model.rejects(request, 'highest')) return 'FULL'
    if (model.rejects(request, 'lowest')) return 'anything'
    return topic.waitingRecords + waitingBefore + values.length > topic.maxWaiting
      ? 'TOO_MANY_WAITING'
      : 'wait'
  }

  #judgeCall(request: Request, expected: Expected): void {
    const { model } = this
    const isIn = request.state === 'in'
    const what = `${request.values.join(', ')} to ${nameOf(request.partition)}`
    if (isIn && expected !== 'in' && expected !== 'anything') model.problem(`${what} is in, not ${expected}`)
    if (isIn) return
    if (expected === 'in') model.problem(`${what} is not in, though there is room`)
    if (expected === 'in' || expected === 'wait' || expected === 'anything') {
      request.state = 'waiting'
      request.unsure = expected === 'anything'
      request.partition.line.push(request)
    } else model.leaveLine(request, 'refused')
    this.#codes.set(request, expected)
  }

  readonly #codes = new Map<Request, Expected>()

  #judgePosition(draft: Draft, { partition, offset }: Position): void {
    const request = this.model.requests.get(draft.value) as Request
    const row = request.partition.rows[offset]
    if (request.state !== 'in' || partition !== request.partition.index || row?.value !== draft.value) {
      this.model.problem(`${draft.value} is said to be at ${partition}/${offset}, where ${row?.value} is`)
    }
  }

  #judgeFailure(request: Request, code: string): void {
    const { model } = this
    const { state, partition } = request
    const what = `${request.values.join(', ')} to ${nameOf(partition)} failed with ${code}`
    const expected = this.#codes.get(request) ?? 'in'
    request.unsure = false
    if (state === 'in') {
      // Of a call for several partitions, some may be in when another one fails.
      if (request.together.length < 2) model.problem(`${what}, but is in`)
      return
    }
    if (state === 'waiting') {
      const late = code === 'TIMEOUT' && model.now >= request.deadline
      const unsure = expected === 'anything' && (code === 'FULL' || code === 'TOO_MANY_WAITING')
      const large = code === 'TOO_LARGE' && isTooLarge(request)
      // Of a call for several partitions, another one failed, and this one still waits.
      if (!late && !large && request.together.length > 1) {
        request.orphaned = true
        return
      }
      if (!late && !unsure && !large) model.problem(what)
      model.leaveLine(request, 'refused')
      return
    }
    const named = ['FULL', 'TOO_LARGE', 'TOO_MANY_WAITING'].includes(expected)
    if (named && code !== expected && request.together.length < 2) model.problem(`${what}, not ${expected}`)
  }

  #tryPublish(step: Step): void {
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    const { model, history } = this
    const draft = this.#draft(step, topic)
    const partition = this.#partitionOf(topic, draft)
    const known = this.#known(topic, draft.id)
    const request = this.#requestFor(
      partition ?? (topic.partitions[0] as ModelPartition),
      [draft.value],
      null,
      0,
      { anywhere: partition === undefined },
    )
    const expected = this.#expect(request)
    model.requests.set(draft.value, request)
    const send = history.send('program', `${topic.name}@${topic.id}`, draft.value, draft.key)
    let published: Published | undefined
    try {
      published = this.broker.tryPublish(topic.name, draft.value, optionsOf(draft))
    } catch (error) {
      history.fail(send)
      const code = error instanceof OdradekError ? error.code : String(error)
      if (code !== expected) model.problem(`tryPublish of ${draft.value}: ${code}, not ${expected}`)
      return
    }
    const isIn = request.state === 'in'
    if (published === undefined || published.duplicate === true) history.fail(send)
    else history.sendOk(send, published)
    if (known !== undefined) {
      const justNow = known.ended === model.rests && published === undefined
      const wrong = known.state === 'in' ? published?.duplicate !== true : published !== undefined
      if (justNow) return
      if (wrong || isIn) model.problem(`tryPublish of a repeat of ${known.values[0]} answered otherwise`)
    } else if (isIn !== (published !== undefined))
      model.problem(`tryPublish of ${draft.value} answered otherwise`)
    else if (expected !== 'anything' && isIn !== (expected === 'in')) {
      model.problem(`tryPublish of ${draft.value}: ${isIn ? 'in' : 'no room'}, not ${expected}`)
    }
    if (isIn && draft.id !== undefined) topic.ids.set(draft.id, { request, at: model.now })
    if (!isIn) model.leaveLine(request, 'refused')
  }

  #publishAll(step: Step): void {
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    const drafts: Draft[] = []
    for (let i = 0; i < 1 + (step.c % 3); i++) {
      const draft = this.#draft({ ...step, b: step.b + i * 7 }, topic)
      const partition = draft.partition ?? (draft.key === null ? i % topic.partitions.length : undefined)
      drafts.push({ ...draft, partition, id: undefined })
    }
    const byPartition = new Map<ModelPartition, string[]>()
    for (const draft of drafts) {
      const partition = this.#partitionOf(topic, draft) as ModelPartition
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), draft.value])
    }
    const together: Request[] = []
    for (const [partition, values] of byPartition) {
      this.#requestFor(partition, values, null, topic.publishTimeoutMs, { together })
    }
    // Too large a part refuses the whole call; then nothing of it may be in.
    const tooLarge = together.some((each) => isTooLarge(each))
    if (tooLarge && together.length > 1) return
    // Which of several parts was refused is not said, so it must be clear before.
    if (together.length > 1 && together.some((each) => this.#expect(each) === 'anything')) return
    const entries = drafts.map((draft) => ({ value: draft.value, ...optionsOf(draft) }))
    this.#call(together, drafts, () => this.broker.publishAll(topic.name, entries))
  }

  #abort(step: Step): void {
    const waiting = this.#aborts.filter(({ requests }) => requests.some(({ state }) => state === 'waiting'))
    const chosen = waiting[step.a % waiting.length]
    if (chosen === undefined) return
    for (const request of chosen.requests) {
      this.#codes.set(request, 'wait')
      this.model.leaveLine(request, 'refused')
    }
    chosen.controller.abort()
  }

  async #transaction(step: Step): Promise<void> {
    const { model } = this
    const topic = this.#visible(step.a)
    if (topic === undefined) return
    const units = this.#hands.filter((unit) => unit.member.reader.plan.guarantee === 'at-least-once')
    const unit = units[step.b % Math.max(1, units.length)]
    const acked = step.c % 4 === 0 ? [] : (unit?.fates ?? []).map((fate, i) => ({ fate, i }))
    const acks = acked.map(({ fate }) => fate)
    const drafts: Draft[] = []
    for (let i = 0; i <= step.c % 2; i++) {
      const draft = this.#draft({ ...step, b: step.b + i * 5 }, topic)
      const partition = draft.partition ?? (draft.key === null ? 0 : undefined)
      drafts.push({ ...draft, partition, id: undefined })
    }
    const together: Request[] = []
    const exempt = acks.length > 0 ? (unit as Unit).member.reader : null
    const byPartition = new Map<ModelPartition, string[]>()
    for (const draft of drafts) {
      const partition = this.#partitionOf(topic, draft) as ModelPartition
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), draft.value])
    }
    for (const [partition, values] of byPartition) {
      this.#requestFor(partition, values, exempt, 60, { together, acks })
    }
    const log = `${topic.name}@${topic.id}`
    const sends = drafts.map(({ value, key }) => this.history.send(`transaction ${value}`, log, value, key))
    for (const request of together) for (const value of request.values) model.requests.set(value, request)
    const owned = acks.every((fate) => fate.state === 'flight' && fate.unit === unit)
    const behind = exempt === null && together.some(({ partition }) => partition.line.length > 0)
    const fits = !behind && together.every((request) => model.fits(request, 'lowest'))
    const tooLarge = together.some((each) => isTooLarge(each))
    const full = together.some((request) => model.rejects(request, 'lowest'))
    const many = topic.waitingRecords + drafts.length > topic.maxWaiting
    let code: string | undefined
    const outcome = this.broker.transaction(
      (tx) => {
        for (const { value, ...draft } of drafts)
          tx.publish(topic.name, value, optionsOf({ value, ...draft }))
        for (const { i } of acked) tx.ack((unit as Unit).deliveries[i] as Delivery)
      },
      { timeoutMs: 60 },
    )
    outcome.then(
      () => {
        code = 'ok'
        for (const [i, draft] of drafts.entries()) {
          const { base, partition, state, values } = model.requests.get(draft.value) as Request
          if (state !== 'in') model.problem(`a transaction is done, and ${draft.value} is ${state}`)
          const offset = base + values.indexOf(draft.value)
          this.history.sendOk(sends[i] as number, { partition: partition.index, offset })
        }
      },
      (error: unknown) => {
        code = error instanceof OdradekError ? error.code : String(error)
        for (const send of sends) this.history.fail(send)
        for (const request of together) {
          if (request.state === 'in') model.problem(`a transaction failed with ${code}, and is in`)
          else model.leaveLine(request, 'refused')
        }
        const fenced = acks.some((fate) => fate.state !== 'flight' || fate.unit !== unit)
        const allowed =
          (code === 'FENCED' && fenced) ||
          (code === 'TOO_LARGE' && (tooLarge || together.some((each) => isTooLarge(each)))) ||
          (code === 'FULL' && full) ||
          (code === 'TOO_MANY_WAITING' && many) ||
          (code === 'TIMEOUT' && !fits) ||
          (code === 'UNKNOWN_TOPIC' && model.topics.get(topic.name) !== topic)
        if (!allowed) model.problem(`a transaction failed with ${code}`)
      },
    )
    if (!fits && !tooLarge && !full && !many) {
      for (const request of together) {
        request.state = 'waiting'
        request.partition.line.push(request)
      }
    }
    await this.clock.settle()
    if (fits && owned && !tooLarge && code !== 'ok') model.problem(`a transaction is not done: ${code}`)
  }

  async #redrive(step: Step): Promise<void> {
    const { model } = this
    const names = [...model.topics.values()].filter((topic) => topic.isDeadLetter).map(({ name }) => name)
    const name = names[step.a % names.length]
    if (name === undefined) return
    // Copies must not have to wait: their place in line would not be seen.
    for (const topic of model.topics.values()) {
      for (const partition of topic.partitions) {
        if (partition.line.length > 0) return
        const gate = model.gate(partition, 'lowest', null)
        const fits = partition.startFor(4, 1_000) <= gate && topic.records >= 4 && topic.bytes >= 1_000
        if (!topic.isDeadLetter && gate < Number.POSITIVE_INFINITY && !fits) return
      }
    }
    this.redriving++
    const filter = step.c % 3 === 0 ? { filter: () => this.#nextRandom() < 0.5 } : {}
    // A copy for others takes a drop-newest reader's room until it is passed by, and nobody can tell when that is.
    const newest = model.readers.some(({ plan }) => plan.overflow === 'drop-newest')
    const toAll = newest || step.c % 2 === 0
    this.broker.redrive(name, { limit: 1 + (step.b % 4), toAll, ...filter }).then(
      () => {
        this.redriving--
      },
      (error: unknown) => {
        this.redriving--
        const code = error instanceof OdradekError ? error.code : String(error)
        // Handlers may fill the log meanwhile, or delete the topic; a letter may be evicted before it is read.
        if (!['FULL', 'TIMEOUT', 'UNKNOWN_TOPIC', 'INVALID_ARGUMENT', 'TOO_MANY_WAITING'].includes(code)) {
          model.problem(`redrive failed with ${code}`)
        }
      },
    )
  }

  // ── readers ───────────────────────────────────────────────────────────────────────────────────

  #find(plan: ReaderPlan, name: string): ModelReader | undefined {
    return plan.kind === 'anonymous' ? undefined : this.model.readers.find((reader) => reader.name === name)
  }

  async #join(step: Step): Promise<void> {
    const { model } = this
    const { readers } = this.#program.world
    const number = step.a % readers.length
    const base = this.#sound(readers[number] as ReaderPlan)
    const name = `${base.kind === 'group' ? 'g' : 'b'}${number}`
    const known = this.#find(base, name)
    // What a drop-newest reader missed before would be judged, and counted, again.
    const same = !this.#wasAtRest || step.hasty || base.overflow === 'drop-newest' || step.c % 4 > 0
    const opensAnew = known !== undefined && known.members.length === 0 && !same
    const plan = opensAnew ? this.#variantOf(known.plan, base) : (known?.plan ?? base)
    const memberPlan = this.#soundMember(plan, base.members[step.b % base.members.length] as MemberPlan)
    const named = base.target === 3 ? undefined : this.#visible(base.target)
    if (base.target < 3 && named === undefined) return
    const topics =
      named === undefined
        ? [...model.topics.values()].filter((each) => each.visible && matches(each))
        : [named]
    // A broadcast reader belongs to the topic that its id was first used with.
    if (plan.kind === 'broadcast' && known !== undefined && named !== undefined) {
      if (!named.partitions.some((partition) => known.cursors.has(partition))) return
    }
    const calm = this.#wasAtRest && !step.hasty
    const id = plan.kind === 'group' ? `m${number}.${step.b % 4}` : name
    const controller = new AbortController()
    const member = new ModelMember(
      known ?? ({ plan } as ModelReader),
      memberPlan,
      plan.kind === 'anonymous' ? `a${model.members.length}` : id,
      controller.signal,
    )
    const starts = new Map<ModelTopic, (number | undefined)[]>()

    const exists =
      known !== undefined &&
      (plan.kind === 'broadcast' ? known.members.length > 0 : known.members.some((each) => each.id === id))
    const from = this.#fromOf(plan, topics, step)
    this.#joining.set(controller.signal, { member, plan, starts })
    this.#controllers.set(member, controller)
    const first = known === undefined || known.members.length === 0
    const options = {
      ...(first ? readerOptions(plan, from) : {}),
      ...memberOptions(memberPlan),
      ...(plan.kind === 'group' ? { group: name } : {}),
      ...(plan.kind === 'anonymous' ? {} : { id }),
      signal: controller.signal,
    }
    let called = false
    const call = this.broker.subscribe(
      named?.name ?? 't.*',
      this.#subscriber(() => this.#joining.get(controller.signal)?.member ?? member, memberPlan) as never,
      options as never,
    )
    for (const topic of topics) {
      starts.set(
        topic,
        topic.partitions.map((partition) => this.#startOf(partition, from)),
      )
    }
    call.then(
      (subscription) => {
        called = true
        const joined = this.#joining.get(controller.signal)?.member as ModelMember
        joined.subscription = subscription
        if (joined.left !== subscription.ended && !joined.left) model.problem(`${id} is ended at once`)
      },
      (error: unknown) => {
        called = true
        const code = error instanceof OdradekError ? error.code : String(error)
        const passed = code === 'OFFSET_OUT_OF_RANGE' && plan.from === 'offsets'
        const meanwhile = ['CONSUMER_EXISTS', 'UNKNOWN_TOPIC', 'INCONSISTENT_GROUP', 'ABORTED'].includes(code)
        const allowed = passed || (code === 'CONSUMER_EXISTS' && exists) || (!calm && meanwhile)
        if (!allowed) model.problem(`${id} cannot join ${name}: ${String(error)}`)
      },
    )
    if (step.hasty) return
    await this.clock.settle()
    if (!called) model.problem(`subscribing of ${id} does not end`)
    if (exists && member.reader.members?.includes(member)) model.problem(`${id} joined ${name} twice`)
  }

  /** Combinations that a broker refuses are made ones that it takes. */
  #sound(plan: ReaderPlan): ReaderPlan {
    const made = this.#variants.get(plan)
    if (made !== undefined) return made
    const { world } = this.#program
    const atMostOnce = plan.guarantee === 'at-most-once'
    // What is not resident is judged when it is, and then more may fit; what settles by a promise, when it is heard.
    const exact = plan.overflow === 'drop-newest' && world.misses === 0 && !atMostOnce
    const overflow = plan.overflow === 'drop-newest' && !exact ? 'wait' : plan.overflow
    // At most once, what is held back was committed and is kept, and nobody can tell which.
    const sound: ReaderPlan = {
      ...plan,
      target: plan.target === 3 ? 3 : plan.target % world.topics.length,
      overflow: plan.kind === 'anonymous' ? 'drop-oldest' : overflow,
      order: atMostOnce && plan.order === 'key' ? 'none' : plan.order,
      strategy: atMostOnce ? 'round-robin' : plan.strategy,
      maxLagBytes: world.misses === 0 ? plan.maxLagBytes : 0,
      // When a dead letter is in, or a promise is heard, is not to be seen to the record.
      deadLetter: atMostOnce || exact ? 'none' : plan.deadLetter,
      graceMs: exact ? 1e9 : plan.graceMs,
    }
    this.#variants.set(plan, sound)
    return sound
  }

  /** The same reader with another setting, and back. */
  #variantOf(current: ReaderPlan, base: ReaderPlan): ReaderPlan {
    if (current !== base) return base
    const variant = this.#variants.get(base) ?? {
      ...base,
      attempts: base.attempts + 1,
      graceMs: base.graceMs + 1,
    }
    this.#variants.set(base, variant)
    return variant
  }

  #soundMember(plan: ReaderPlan, member: MemberPlan): MemberPlan {
    return {
      ...member,
      manualAck: member.manualAck && plan.guarantee !== 'at-most-once',
      // Deadlines are only as precise as code is quick.
      ackTimeoutMs: this.model.exact ? member.ackTimeoutMs : 30_000,
    }
  }

  #fromOf(plan: ReaderPlan, topics: readonly ModelTopic[], step: Step): StartPosition {
    const [topic] = topics
    if (plan.from === 'date') return new Date(this.clock.now() - (step.c % 40))
    if (plan.from !== 'offsets' || topic === undefined || plan.target === 3) {
      return plan.from === 'latest' ? 'latest' : 'earliest'
    }
    const { start, end } = topic.partitions[0] as ModelPartition
    return { 0: start + (step.c % (end - start + 1)) }
  }

  #startOf(partition: ModelPartition, from: StartPosition): number | undefined {
    if (from === 'earliest') return partition.start
    if (from === 'latest') return partition.end
    if (from instanceof Date) {
      const first = partition.rows.slice(partition.start).find((row) => row.timestamp >= from.getTime())
      return first?.offset ?? partition.end
    }
    if (typeof from === 'number') return from
    return from[partition.index]
  }

  /** The broker lets a member in. */
  #joined(reader: Reader, joined: Member): void {
    const { model } = this
    const joining = this.#joining.get(joined.settings.signal as AbortSignal)
    if (joining === undefined) return
    const { plan, starts } = joining
    const topics = [...model.topics.values()].filter((topic) => joined.topics.has(topic.id))
    const known = this.#find(plan, reader.name)
    const target = known ?? model.makeReader(plan, reader.name)
    if (known !== undefined && known.members.length === 0 && known.plan !== plan) model.reopened(known, plan)
    const member = new ModelMember(target, joining.member.plan, joining.member.id, joining.member.signal)
    this.#controllers.set(member, this.#controllers.get(joining.member) as AbortController)
    this.#joining.set(member.signal, { member, plan, starts })
    model.members.push(member)
    this.#members.set(joined, member)
    this.#readers.set(reader, target)
    const resumesPattern = known !== undefined && model.isPattern(known) && known.members.length === 0
    for (const topic of topics) {
      const positions = starts.get(topic)
      model.attach(target, topic, (partition) => {
        if (resumesPattern) return partition.start
        if (positions === undefined) return partition.start
        const at = positions[partition.index] ?? partition.end
        if (at >= partition.start && topics.length === 1) return at
        // Topics are looked up one after the other, and anew where retention took a position meanwhile.
        const actual = reader.cursorsOf(topic.id)[partition.index]?.window.next ?? -1
        const sound = actual >= Math.max(at, partition.start) && actual <= partition.end
        if (!sound) model.problem(`${reader.name} starts at ${actual} of ${nameOf(partition)}`)
        return actual
      })
    }
    model.joined(member, topics)
  }

  #leave(step: Step): void {
    const { model } = this
    this.#withMember(step, (member) => {
      const { reader } = member
      const subscription = member.subscription as Subscription
      const close = (by: number): void => {
        member.closing ??= { by }
      }
      switch (step.b % 6) {
        case 0:
        case 1: {
          const drainMs = [0, 25, DRAIN_MS][step.c % 3] as number
          close(model.now + drainMs)
          this.#watch(subscription.close({ drainMs }), 'close')
          break
        }
        case 2:
          close(model.now)
          member.forgets = true
          this.#watch(subscription.unsubscribe(), 'unsubscribe')
          break
        case 3: {
          const [topic] = member.topics
          if (topic === undefined || reader.plan.kind === 'anonymous') return
          close(model.now)
          member.forgets = true
          this.#watch(this.broker.unsubscribe(topic.name, member.id), 'unsubscribe')
          break
        }
        case 4:
          close(model.now + DRAIN_MS)
          this.#controllers.get(member)?.abort()
          break
        default: {
          const empty = model.readers.find((each) => each.members.length === 0 && each.plan.kind === 'group')
          if (empty === undefined) return
          model.forget(empty)
          this.#watch(this.broker.deleteGroup(empty.name), 'deleteGroup')
        }
      }
    })
  }

  #reset(step: Step): void {
    const { model } = this
    const readers = model.readers.filter(({ durable, cursors }) => durable && cursors.size > 0)
    const reader = readers[step.a % readers.length]
    if (reader === undefined) return
    const partitions = [...reader.cursors.keys()]
    const topic = (partitions[step.b % partitions.length] as ModelPartition).topic
    const to = this.#target(topic, step)
    const member = reader.members.find((each) => each.topics.has(topic))
    const isGroup = reader.plan.kind === 'group'
    const ref = isGroup ? (step.c % 2 === 0 ? reader.name : { group: reader.name }) : { id: reader.name }
    const chosen = isGroup && step.c % 5 === 0 && member !== undefined ? member.id : ref
    const expected = topic.partitions.map((partition) => this.#startOf(partition, to))
    const reset = { reader, topic, to, expected }
    this.#resets.push(reset)
    const call = this.broker.resetOffset(topic.name, chosen, to)
    // The call lets age take its toll first.
    const code = this.#refusalOf(topic, to)
    if (code !== undefined) this.#resets.splice(this.#resets.indexOf(reset), 1)
    call.then(
      () => {
        if (code !== undefined) model.problem(`a replay to ${String(to)} went through, not ${code}`)
      },
      (error: unknown) => {
        const got = error instanceof OdradekError ? error.code : String(error)
        const gone = ['UNKNOWN_CONSUMER', 'UNKNOWN_TOPIC', 'OFFSET_OUT_OF_RANGE'].includes(got)
        if (got !== code && !(step.hasty && gone)) {
          model.problem(`a replay to ${JSON.stringify(to)} failed with ${got}, not ${code}`)
        }
      },
    )
  }

  #target(topic: ModelTopic, step: Step): StartPosition {
    const { start, end } = topic.partitions[0] as ModelPartition
    const within = start + (step.c % (end - start + 1))
    switch ((step.b + step.c) % 9) {
      case 0:
      case 1:
        return 'earliest'
      case 2:
        return 'latest'
      case 3:
        return new Date(this.clock.now() - (step.c % 50))
      case 4:
        return { 0: within }
      case 5:
        return Object.fromEntries(topic.partitions.map((each) => [each.index, each.start]))
      case 6:
        return { 0: end + 1 + (step.c % 2) }
      case 7:
        return start > 0 ? { 0: start - 1 } : within
      default:
        return within
    }
  }

  #refusalOf(topic: ModelTopic, to: StartPosition): string | undefined {
    if (typeof to === 'number' && topic.partitions.length > 1) return 'INVALID_ARGUMENT'
    if (to === 'earliest' || to === 'latest' || to instanceof Date) return undefined
    const offsets = typeof to === 'number' ? { 0: to } : to
    for (const [index, offset] of Object.entries(offsets)) {
      const { start, end } = topic.partitions[Number(index)] as ModelPartition
      if (offset < start || offset > end) return 'OFFSET_OUT_OF_RANGE'
    }
    return undefined
  }

  readonly #resets: {
    readonly reader: ModelReader
    readonly topic: ModelTopic
    readonly to: StartPosition
    readonly expected: readonly (number | undefined)[]
  }[] = []

  /** The broker puts a cursor elsewhere. */
  #wasReset(reader: object, topicId: string, index: number, at: number): void {
    const { model } = this
    const known = this.#readers.get(reader)
    const cursor = [...(known?.cursors.values() ?? [])].find(
      ({ partition }) => partition.topic.id === topicId && partition.index === index,
    )
    if (cursor === undefined) {
      model.problem(`a cursor of ${topicId}/${index} was put to ${at}, which is none`)
      return
    }
    // What retention took meanwhile, or what comes after a date, is looked up later than it was asked for.
    const asked = this.#resets.some(({ reader: whose, topic, to, expected }) => {
      if (whose !== known || topic.id !== topicId) return false
      const [first, last] = [expected[index], this.#startOf(cursor.partition, to)]
      return first !== undefined && last !== undefined && first <= at && at <= Math.max(first, last)
    })
    if (!asked)
      model.problem(`${known?.life} was put to ${nameOf(cursor.partition)}/${at}, which nobody asked`)
    model.put(cursor, at)
  }

  // ── handlers ──────────────────────────────────────────────────────────────────────────────────

  #subscriber(member: () => ModelMember, plan: MemberPlan): unknown {
    const one = (delivery: Delivery<string>): unknown => this.#handle(member(), [delivery], null)
    const many = (batch: DeliveryBatch<string>): unknown => this.#handle(member(), batch.deliveries, batch)
    const call = plan.batch > 0 ? many : one
    return plan.object ? { onMessage: call } : call
  }

  #handle(
    member: ModelMember,
    deliveries: readonly Delivery<string>[],
    batch: DeliveryBatch<string> | null,
  ): unknown {
    const unit = this.model.delivered(member, deliveries, batch)
    const { script } = member.plan
    const plan = script[member.calls++ % script.length] as HandlerPlan
    try {
      return this.#perform(unit, this.#calm ? { ...plan, outcome: 'return' } : plan)
    } finally {
      unit.onStack = false
    }
  }

  /** Does what the plan says, after telling the model. */
  #perform(unit: Unit, plan: HandlerPlan): unknown {
    const { model } = this
    const { member, fates } = unit
    const { reader } = member
    const manual = member.plan.manualAck
    const exact = reader.plan.overflow === 'drop-newest'
    const outcome = reader.atMostOnce ? atMostOnce(plan.outcome) : plan.outcome
    const done = (): undefined => {
      if (manual) for (const i of fates.keys()) this.#ack(unit, i)
      else for (const fate of unit.unsettled) model.ack(fate)
      model.returned(unit)
      return undefined
    }
    const fail = (): void => {
      for (const fate of unit.unsettled) model.nack(fate)
      model.returned(unit)
    }
    const hold = (): unknown => {
      this.#hands.push(unit)
      if (!manual) return this.#promise(unit)
      model.returned(unit)
      return undefined
    }
    switch (outcome) {
      case 'return':
        return done()
      case 'throw':
        fail()
        throw new Error('the handler throws')
      case 'false':
        if (member.plan.object && !manual) fail()
        else done()
        return false
      case 'nack':
        for (const i of fates.keys()) this.#nack(unit, i, plan.ms)
        return done()
      case 'reject':
        for (const i of fates.keys()) this.#reject(unit, i)
        return done()
      case 'hold':
        return hold()
      case 'resolve':
        if (exact && !reader.atMostOnce) for (const i of fates.keys()) this.#ack(unit, i)
        done()
        model.promised(unit, 'acked')
        return exact && reader.atMostOnce ? undefined : Promise.resolve()
      case 'fail':
        fail()
        if (exact) throw new Error('the handler throws')
        model.promised(unit, 'nacked')
        return Promise.reject(new Error('the handler rejects'))
      case 'ack and hold':
        for (const i of fates.keys()) this.#ack(unit, i)
        return hold()
      case 'ack and throw':
        for (const i of fates.keys()) this.#ack(unit, i)
        model.returned(unit)
        throw new Error('the handler throws too late')
      case 'ack twice':
        for (const i of fates.keys()) this.#ack(unit, i)
        for (const i of fates.keys()) this.#ack(unit, i)
        for (const i of fates.keys()) this.#nack(unit, i, 0)
        return done()
      case 'first':
        if (!reader.atMostOnce) this.#ack(unit, 0)
        return manual && unit.unsettled.length > 0 ? hold() : done()
      case 'batch error': {
        if (unit.batch === null) {
          fail()
          throw new BatchError(0, 'not a batch')
        }
        const failed = plan.ms % fates.length
        for (const [i, fate] of fates.entries()) {
          if (i < failed && fate.state === 'flight') model.ack(fate)
          else if (i === failed) model.nack(fate)
          else model.release(fate)
        }
        model.returned(unit)
        throw new BatchError(failed, new Error('a record of the batch'))
      }
      case 'publish': {
        const delivery = unit.deliveries[0] as Delivery<string>
        if (this.#echoes++ < MAX_ECHOES) this.#publish(stepOf(plan, 3), { unit, delivery })
        return done()
      }
      case 'spend':
        this.clock.spend(plan.ms)
        return done()
      case 'act':
        if (plan.step !== null && this.#echoes++ < MAX_ECHOES) void this.#execute(plan.step, unit)
        return done()
    }
  }

  #promise(unit: Unit): Promise<void> {
    return new Promise((resolve, reject) => {
      unit.finish = (error) => (error === undefined ? resolve() : reject(error))
    })
  }

  /** Whether a settle should take effect; undefined: its deadline passes just now. */
  #owns(unit: Unit, fate: Fate): boolean | undefined {
    if (fate.state !== 'flight' || fate.unit !== unit) return false
    return unit.deadlineFrom <= this.model.now ? undefined : true
  }

  #settleOne(
    unit: Unit,
    i: number,
    settle: (delivery: Delivery) => boolean,
    tell: (fate: Fate) => void,
  ): void {
    const fate = unit.fates[i]
    const delivery = unit.deliveries[i]
    if (fate === undefined || delivery === undefined) return
    const owns = this.#owns(unit, fate)
    if (owns === true) tell(fate)
    const took = settle(delivery)
    if (owns === undefined) {
      if (took) tell(fate)
      else this.model.expire(unit)
    } else if (took !== owns) {
      const what = `${fate.cursor.reader.life}: a settle of ${nameOf(fate.cursor.partition)}/${fate.row.offset}`
      this.model.problem(`${what} ${took ? 'took effect though fenced' : 'had no effect'}`)
    }
  }

  #ack(unit: Unit, i: number): void {
    this.#settleOne(
      unit,
      i,
      (delivery) => delivery.ack(),
      (fate) => this.model.ack(fate),
    )
  }

  #nack(unit: Unit, i: number, delayMs: number): void {
    const given = delayMs % 2 === 1 ? undefined : delayMs
    this.#settleOne(
      unit,
      i,
      (delivery) => delivery.nack(given === undefined ? {} : { delayMs: given }),
      (fate) => this.model.nack(fate, given),
    )
  }

  #reject(unit: Unit, i: number): void {
    this.#settleOne(
      unit,
      i,
      (delivery) => delivery.reject(),
      (fate) => this.model.reject(fate),
    )
  }

  #extend(unit: Unit, ms: number): void {
    const { model } = this
    for (const [i, fate] of unit.fates.entries()) {
      const owns = this.#owns(unit, fate)
      if (owns === undefined) return
      const took = (unit.deliveries[i] as Delivery).extend(ms)
      if (took !== owns) model.problem(`extend answered ${took}`)
      if (!took) continue
      unit.deadlineBy = model.now + ms
      unit.deadlineFrom = this.clock.baseMs + ms
    }
  }

  #settle(step: Step): void {
    // Now and then, what was settled or taken away long ago is settled again: in vain.
    const old = step.c % 8 === 0
    const units = old ? this.model.units.filter((each) => !each.onStack) : this.#hands
    const unit = units[step.a % units.length]
    if (unit === undefined || unit.onStack) return
    const { model } = this
    const { atMostOnce: never } = unit.member.reader
    const i = step.c % Math.max(1, unit.fates.length)
    switch (step.b % 8) {
      case 0:
        if (!never) this.#nack(unit, i, step.c % 30)
        return
      case 1:
        if (!never) this.#reject(unit, i)
        return
      case 2:
        this.#extend(unit, 20 + step.c)
        return
      case 3:
      case 4:
        if (!never) this.#ack(unit, i)
        return
      case 5:
        if (unit.finish === null || unit.returned || this.#isPromised(unit)) return
        if (unit.deadlineFrom <= model.now && !unit.givenUp) return
        if (unit.member.reader.plan.overflow === 'drop-newest' && !never) {
          for (const at of unit.fates.keys()) this.#nack(unit, at, 1)
        }
        for (const fate of unit.givenUp ? [] : unit.unsettled) model.nack(fate)
        model.returned(unit)
        model.promised(unit, 'nacked')
        unit.finish(new Error('the handler rejects late'))
        return
      default:
        this.#settleAll(unit)
    }
  }

  /** Acks all that is left of it, and lets its handler return. */
  #settleAll(unit: Unit): void {
    const { model } = this
    if (unit.deadlineFrom <= model.now && !unit.givenUp) return
    const byHand = unit.finish === null || unit.member.reader.plan.overflow === 'drop-newest'
    if (byHand && !unit.member.reader.atMostOnce) for (const i of unit.fates.keys()) this.#ack(unit, i)
    if (unit.finish === null || this.#isPromised(unit)) return
    if (!unit.givenUp) for (const fate of unit.unsettled) model.ack(fate)
    model.returned(unit)
    model.promised(unit, 'acked')
    unit.finish()
  }

  /**
   * A transaction that waits will ack it. A promise is heard a moment after it resolved, and which of the two
   * comes first is nobody's business.
   */
  #isPromised(unit: Unit): boolean {
    for (const { state, acks } of this.model.requests.values()) {
      if (state === 'waiting' && acks.some((fate) => unit.fates.includes(fate))) return true
    }
    return false
  }

  // ── looking ───────────────────────────────────────────────────────────────────────────────────

  async #look(): Promise<void> {
    const metrics = this.broker.metrics()
    for (const reader of this.model.readers) {
      for (const cursor of reader.cursors.values()) this.model.sweep(cursor)
    }
    judgeLook(this.model, metrics)
    for (const { name, cursors } of metrics.readers) {
      const reader = this.model.readers.find((each) => each.name === name)
      for (const { topic, partition, committed } of cursors) {
        const log = this.model.topics.get(topic)
        // At most once, what is held back for its member is committed too.
        if (reader === undefined || log === undefined || reader.atMostOnce) continue
        this.history.commit(reader.life, `${log.name}@${log.id}`, partition, committed)
      }
    }
    await this.rest()
    for (const reader of this.model.readers) {
      const { dropped } = reader.counts
      if (reader.raisedDrops !== dropped) {
        this.model.problem(`${reader.life} raised ${reader.raisedDrops} drops, and counts ${dropped}`)
      }
    }
  }

  #observe(name: keyof BrokerEvents, event: unknown): void {
    const { model } = this
    if (name === 'dropped') {
      const { reader, count } = event as BrokerEvents['dropped']
      const known = model.readers.find((each) => each.name === reader)
      if (known !== undefined) known.raisedDrops += count
    } else if (name === 'rebalance') {
      const { group, generation, assignment } = event as BrokerEvents['rebalance']
      const known = model.readers.find((each) => each.name === group)
      if (known === undefined) return
      if (generation <= known.generation)
        model.problem(`${group} went from generation ${known.generation} to ${generation}`)
      known.generation = generation
      known.owners = new Map()
      for (const [id, owned] of Object.entries(assignment)) {
        for (const { topic, partition } of owned) {
          const place = `${topic}/${partition}`
          if (known.owners.has(place)) model.problem(`${place} has two owners in ${group}`)
          known.owners.set(place, id)
        }
      }
    } else if (name === 'error') {
      const { error, context } = event as BrokerEvents['error']
      model.problem(`${context}: ${error.stack}`)
    }
  }
}

type Expected = 'in' | 'wait' | 'anything' | 'FULL' | 'TOO_LARGE' | 'TOO_MANY_WAITING'

function optionsOf({ key, partition, id }: Draft): { key?: string; partition?: number; id?: string } {
  return {
    ...(key === null ? {} : { key }),
    ...(partition === undefined ? {} : { partition }),
    ...(id === undefined ? {} : { id }),
  }
}

/** Whether any handler takes time. */
function spends({ world }: Program): boolean {
  return world.readers.some(({ members }) =>
    members.some(({ script }) => script.some(({ outcome }) => outcome === 'spend')),
  )
}

/** Nothing of it can be settled by hand. */
function atMostOnce(outcome: HandlerPlan['outcome']): HandlerPlan['outcome'] {
  if (outcome === 'nack' || outcome === 'reject' || outcome === 'ack twice' || outcome === 'first')
    return 'return'
  if (outcome === 'ack and hold') return 'hold'
  return outcome === 'ack and throw' ? 'throw' : outcome
}

function stepOf({ ms }: HandlerPlan, salt: number): Step {
  return { kind: 'publish', a: ms, b: ms + salt, c: ms * 3, hasty: true }
}

function readerOptions(plan: ReaderPlan, from: StartPosition): object {
  const { kind, overflow, maxLagRecords, maxLagBytes, guarantee, order } = plan
  const drops = overflow === 'drop-oldest' || overflow === 'drop-newest'
  const maxLag = {
    ...(maxLagRecords > 0 ? { records: maxLagRecords } : {}),
    ...(maxLagBytes > 0 ? { bytes: maxLagBytes } : {}),
  }
  const shared = plan.assignment === 'shared'
  return {
    from,
    overflow,
    ...(drops && Object.keys(maxLag).length > 0 ? { maxLag } : {}),
    guarantee,
    order,
    graceMs: plan.graceMs,
    ...(guarantee === 'at-most-once' ? {} : { retry: { attempts: plan.attempts, delayMs: plan.delayMs } }),
    ...(plan.deadLetter === 'none' ? { deadLetter: false } : {}),
    ...(plan.deadLetter === 'named' ? { deadLetter: 'graveyard' } : {}),
    ...(kind === 'group' ? { assignment: plan.assignment } : {}),
    ...(kind === 'group' && shared ? { strategy: plan.strategy === 'first' ? FIRST : plan.strategy } : {}),
  }
}

/** The member that joined first gets everything, and waits for nobody. */
const FIRST = {
  select: (_: unknown, __: unknown, { all }: { all: readonly object[] }): unknown => all[0],
}

function memberOptions(plan: MemberPlan): object {
  const { manualAck, concurrency, ackTimeoutMs, batch, lingerMs, manualCredit, weight } = plan
  return {
    ack: manualAck ? 'manual' : 'auto',
    concurrency,
    ackTimeoutMs,
    weight,
    ...(batch > 0 ? { batch: lingerMs > 0 ? { records: batch, maxWaitMs: lingerMs } : batch } : {}),
    ...(manualCredit ? { credit: 'manual' } : {}),
  }
}
