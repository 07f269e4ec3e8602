/**
 * Programs: what the property tests do to a broker, as data. A program names topics, readers and steps by
 * small numbers that are taken modulo what exists when a step runs, so that any part of one can be left
 * out and the rest still means something: that is what makes a failing one shrink.
 */
import fc from 'fast-check'
import type { Assignment, Guarantee, Order, Overflow, StrategyName } from '../../src/model/options.ts'

export interface TopicPlan {
  readonly partitions: number
  /** Retention, small so that it is reached. */
  readonly records: number
  readonly bytes: number
  readonly ageMs: number
  readonly dedupe: boolean
  readonly publishTimeoutMs: number
  readonly maxWaiting: number
}

/** What a handler does with a delivery. */
export type Outcome =
  | 'return'
  | 'throw'
  | 'false'
  | 'nack'
  | 'reject'
  | 'hold'
  | 'resolve'
  | 'fail'
  | 'ack and hold'
  | 'ack and throw'
  | 'ack twice'
  | 'first'
  | 'batch error'
  | 'publish'
  | 'spend'
  | 'act'

export interface HandlerPlan {
  readonly outcome: Outcome
  readonly ms: number
  /** What it does first, for `act`. */
  readonly step: Step | null
}

export interface MemberPlan {
  readonly manualAck: boolean
  readonly concurrency: number
  readonly ackTimeoutMs: number
  /** 0: one by one. */
  readonly batch: number
  readonly lingerMs: number
  readonly manualCredit: boolean
  readonly object: boolean
  readonly weight: number
  /** Taken in turn, for ever. */
  readonly script: readonly HandlerPlan[]
}

export interface ReaderPlan {
  readonly kind: 'anonymous' | 'broadcast' | 'group'
  /** Which topic; the last number means all of them, by a pattern. */
  readonly target: number
  readonly overflow: Overflow
  readonly maxLagRecords: number
  readonly maxLagBytes: number
  readonly guarantee: Guarantee
  readonly order: Order
  readonly assignment: Assignment
  readonly strategy: StrategyName | 'first'
  readonly attempts: number
  readonly delayMs: number
  readonly deadLetter: 'default' | 'none' | 'named'
  readonly graceMs: number
  readonly from: 'earliest' | 'latest' | 'date' | 'offsets'
  readonly members: readonly MemberPlan[]
}

export interface WorldPlan {
  readonly topics: readonly TopicPlan[]
  /** Records that the dead-letter topic of the first topic retains; 0: made when needed, with the defaults. */
  readonly letters: number
  readonly readers: readonly ReaderPlan[]
  readonly jitter: boolean
  /** The engine says that what it stores outlives the process. */
  readonly durable: boolean
  /** One row in so many must be paged in before it can be read. 0: none. */
  readonly misses: number
}

export type StepKind =
  | 'publish'
  | 'try'
  | 'all'
  | 'abort'
  | 'join'
  | 'leave'
  | 'pause'
  | 'resume'
  | 'request'
  | 'settle'
  | 'reset'
  | 'advance'
  | 'delete'
  | 'create'
  | 'grow'
  | 'retain'
  | 'transaction'
  | 'redrive'
  | 'look'

export interface Step {
  readonly kind: StepKind
  readonly a: number
  readonly b: number
  readonly c: number
  /** Without waiting for what it sets going. */
  readonly hasty: boolean
}

export interface Program {
  readonly world: WorldPlan
  readonly steps: readonly Step[]
}

// ── generating ──────────────────────────────────────────────────────────────────────────────────

type Weighted<T> = readonly (readonly [weight: number, value: T])[]

function weighted<T>(...choices: Weighted<T>): fc.Arbitrary<T> {
  return fc.constantFrom(...choices.flatMap(([weight, value]) => new Array<T>(weight).fill(value)))
}

const STEPS: Weighted<StepKind> = [
  [10, 'publish'],
  [1, 'try'],
  [3, 'all'],
  [1, 'abort'],
  [3, 'join'],
  [3, 'leave'],
  [1, 'pause'],
  [2, 'resume'],
  [2, 'request'],
  [6, 'settle'],
  [3, 'reset'],
  [6, 'advance'],
  [1, 'delete'],
  [1, 'create'],
  [1, 'grow'],
  [1, 'retain'],
  [2, 'transaction'],
  [1, 'redrive'],
  [2, 'look'],
]

/** What a handler may do: nothing that must be awaited to mean something. */
const ACTS: Weighted<StepKind> = [
  [4, 'publish'],
  [1, 'try'],
  [1, 'all'],
  [1, 'abort'],
  [2, 'join'],
  [3, 'leave'],
  [2, 'pause'],
  [1, 'resume'],
  [1, 'request'],
  [3, 'settle'],
  [3, 'reset'],
  [1, 'delete'],
]

const number = fc.nat({ max: 255 })
const step = fc.record<Step>({
  kind: weighted(...STEPS),
  a: number,
  b: number,
  c: number,
  hasty: weighted([4, false], [1, true]),
})
const act = fc.record<Step>({
  kind: weighted(...ACTS),
  a: number,
  b: number,
  c: number,
  hasty: fc.constant(true),
})

const outcome = weighted<Outcome>(
  [12, 'return'],
  [3, 'throw'],
  [1, 'false'],
  [2, 'nack'],
  [1, 'reject'],
  [6, 'hold'],
  [2, 'resolve'],
  [1, 'fail'],
  [1, 'ack and hold'],
  [1, 'ack and throw'],
  [1, 'ack twice'],
  [1, 'first'],
  [1, 'batch error'],
  [2, 'publish'],
  [1, 'spend'],
  [3, 'act'],
)

const handler: fc.Arbitrary<HandlerPlan> = outcome.chain((chosen) =>
  fc.record({
    outcome: fc.constant(chosen),
    ms: weighted([2, 0], [2, 7], [1, 40]),
    step: chosen === 'act' ? act : fc.constant(null),
  }),
)

const member = fc.record<MemberPlan>({
  manualAck: weighted([3, false], [1, true]),
  concurrency: weighted([4, 1], [2, 2], [1, 3]),
  ackTimeoutMs: weighted([2, 30], [2, 100], [3, 30_000]),
  batch: weighted([5, 0], [1, 1], [1, 2], [1, 3]),
  lingerMs: weighted([3, 0], [1, 20]),
  manualCredit: weighted([7, false], [1, true]),
  object: fc.boolean(),
  weight: weighted([1, 1], [1, 3]),
  script: fc.array(handler, { minLength: 1, maxLength: 4 }),
})

const reader = fc.record<ReaderPlan>({
  kind: weighted([1, 'anonymous'], [2, 'broadcast'], [4, 'group']),
  target: fc.nat({ max: 3 }),
  overflow: weighted<Overflow>([5, 'wait'], [1, 'reject'], [2, 'drop-oldest'], [2, 'drop-newest']),
  maxLagRecords: weighted([3, 0], [1, 1], [1, 2], [1, 4]),
  maxLagBytes: weighted([5, 0], [1, 150], [1, 400]),
  guarantee: weighted<Guarantee>([5, 'at-least-once'], [1, 'at-most-once']),
  order: weighted<Order>([3, 'partition'], [3, 'key'], [2, 'none']),
  assignment: weighted<Assignment>([4, 'shared'], [1, 'range'], [1, 'round-robin'], [1, 'sticky']),
  strategy: weighted<StrategyName | 'first'>(
    [3, 'round-robin'],
    [1, 'least-in-flight'],
    [1, 'weighted'],
    [1, 'sticky-key'],
    [2, 'first'],
  ),
  attempts: fc.integer({ min: 1, max: 3 }),
  delayMs: weighted([1, 0], [3, 10], [1, 50]),
  deadLetter: weighted([2, 'default'], [1, 'none'], [1, 'named']),
  graceMs: weighted([1, 0], [1, 60], [3, 30_000]),
  from: weighted([3, 'earliest'], [3, 'latest'], [1, 'date'], [1, 'offsets']),
  members: fc.array(member, { minLength: 1, maxLength: 3 }),
})

const topic = fc.record<TopicPlan>({
  partitions: weighted([3, 1], [1, 2], [1, 3]),
  records: weighted([2, 2], [2, 3], [2, 5], [1, 64]),
  bytes: weighted([4, 1_000_000], [1, 500]),
  ageMs: weighted([6, 0], [1, 80]),
  dedupe: weighted([2, false], [1, true]),
  publishTimeoutMs: weighted([1, 45], [2, 30_000]),
  maxWaiting: weighted([1, 2], [3, 100]),
})

const world = fc.record<WorldPlan>({
  topics: fc.array(topic, { minLength: 1, maxLength: 2 }),
  letters: weighted([3, 0], [1, 2]),
  readers: fc.array(reader, { minLength: 1, maxLength: 3 }),
  jitter: fc.boolean(),
  durable: weighted([4, false], [1, true]),
  misses: weighted([4, 0], [1, 2], [1, 3]),
})

/** Programs of at most so many steps. */
export function programs(maxSteps: number): fc.Arbitrary<Program> {
  return fc.record({ world, steps: fc.array(step, { minLength: 1, maxLength: maxSteps, size: 'max' }) })
}
