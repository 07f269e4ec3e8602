/**
 * The model's readers: for every record, what became of it at each of them, as a word in a list.
 *
 *   pending ──► flight ──► done          acked, dead, skipped
 *     │           │ └────► dying         failed for good, its dead letter is on the way
 *     │           └──────► waiting ──► flight …
 *     └─ dropped, passed ──► done
 */

import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery, DeliveryBatch } from '../../src/model/delivery.ts'
import type { Counters } from '../../src/model/views.ts'
import type { ModelPartition, ModelTopic, Row } from './logs.ts'
import type { MemberPlan, ReaderPlan } from './program.ts'

export type FateState = 'pending' | 'flight' | 'waiting' | 'dying' | 'done'
export type Ending = 'acked' | 'dead' | 'skipped' | 'dropped' | 'passed'

/** What became of one record at one reader. */
export class Fate {
  readonly row: Row
  readonly cursor: ModelCursor
  state: FateState = 'pending'
  ending: Ending | null = null
  /** The attempt that is in flight, or comes next. */
  attempt = 1
  /** It was handed out before. */
  handed = false
  /** While waiting: it may come from `dueFrom` on, and must by `dueBy`. */
  dueFrom = 0
  dueBy = 0
  unit: Unit | null = null
  /** A promise told of its end after that many rests: the broker hears of it a moment later. */
  promised = -1
  /** The member it expired at: it goes to another one, if there is one. */
  avoid: ModelMember | null = null

  constructor(cursor: ModelCursor, row: Row) {
    this.cursor = cursor
    this.row = row
  }

  get isOpen(): boolean {
    return this.state !== 'done'
  }

  /** Never handed out, or given back. */
  get isIdle(): boolean {
    return this.state === 'pending' || this.state === 'waiting'
  }
}

export class ModelCursor {
  readonly reader: ModelReader
  readonly partition: ModelPartition
  /** Where it was put. Everything from here on has a fate. */
  from: number
  fates: Fate[] = []
  /** Its log took or lost records since it was put here, and since all was at rest: then overflow is judged. */
  moved = false
  /** Drops that the broker may not have counted yet: it judges when it must. */
  freshDrops = 0

  constructor(reader: ModelReader, partition: ModelPartition, from: number) {
    this.reader = reader
    this.partition = partition
    this.from = from
  }

  fate(offset: number): Fate | undefined {
    return this.fates[offset - this.from]
  }

  get open(): Fate[] {
    return this.fates.filter((fate) => fate.isOpen)
  }

  get inFlight(): Fate[] {
    return this.fates.filter((fate) => fate.state === 'flight')
  }

  /** The lowest offset of those that `counts`; the end of the log when there is none. */
  lowest(counts: (fate: Fate) => boolean): number {
    return this.fates.find(counts)?.row.offset ?? Math.max(this.partition.end, this.from)
  }

  /** Which may be handed out now, as far as its order goes. What is idle below `floor` is as good as gone. */
  inOrder(floor: number): (fate: Fate) => boolean {
    const { order } = this.reader.plan
    if (order === 'none') return () => true
    const open = this.open.filter((fate) => !fate.isIdle || fate.row.offset >= floor)
    const excludes = (other: Fate, fate: Fate): boolean =>
      other !== fate &&
      (order === 'partition' || other.row.key === fate.row.key) &&
      (other.state === 'flight' || other.row.offset < fate.row.offset)
    return (fate) =>
      (order === 'key' && fate.row.key === null) || !open.some((other) => excludes(other, fate))
  }
}

type CountNames = keyof Counters

/** Counters, and how much more each may be where a replay came before anybody could see. */
export type Counts = { -readonly [name in CountNames]: number } & { readonly doubt: Map<CountNames, number> }

export function noCounts(): Counts {
  return {
    doubt: new Map(),
    delivered: 0,
    acked: 0,
    nacked: 0,
    redelivered: 0,
    expired: 0,
    deadLettered: 0,
    skipped: 0,
    dropped: 0,
    zombies: 0,
  }
}

export function countNames(): CountNames[] {
  return Object.keys(noCounts()).filter((name) => name !== 'doubt') as CountNames[]
}

export function addCounts(to: Counts, from: Counts): void {
  for (const name of countNames()) to[name] += from[name]
  for (const [name, count] of from.doubt) addDoubt(to, name, count)
}

export function addDoubt({ doubt }: Counts, name: CountNames, count: number): void {
  doubt.set(name, (doubt.get(name) ?? 0) + count)
}

export class ModelReader {
  plan: ReaderPlan
  readonly name: string
  /** Among all readers: what dead letters are filed under. */
  readonly key: string
  /** Unique per life: one that was forgotten and comes again is another one. */
  readonly life: string
  members: ModelMember[] = []
  readonly cursors = new Map<ModelPartition, ModelCursor>()
  /** Topics whose last member left: when, and how often all had been at rest by then. */
  readonly leftAt = new Map<ModelTopic, { readonly at: number; readonly rests: number }>()
  /** What members that left had counted. */
  orphaned: Counts = noCounts()
  /** Sum of the `dropped` events. */
  raisedDrops = 0
  /** Who owns which partition, as the latest rebalance says; by `topic/partition`. */
  owners = new Map<string, string>()
  generation = 0

  constructor(plan: ReaderPlan, name: string, life: string) {
    this.plan = plan
    this.name = name
    this.key = plan.kind === 'group' ? name : `odradek.reader.${name}`
    this.life = life
  }

  get durable(): boolean {
    return this.plan.kind !== 'anonymous'
  }
  get atMostOnce(): boolean {
    return this.plan.guarantee === 'at-most-once'
  }
  get assigned(): boolean {
    return this.plan.kind === 'group' && this.plan.assignment !== 'shared'
  }
  /** Whether it may hold the log, and whether it makes publishers wait. */
  get holdsLogs(): boolean {
    return this.durable && this.plan.overflow !== 'drop-oldest'
  }
  get gates(): boolean {
    return this.durable && (this.plan.overflow === 'wait' || this.plan.overflow === 'reject')
  }

  membersOn(topic: ModelTopic): ModelMember[] {
    return this.members.filter((member) => member.topics.has(topic))
  }

  /** Sum over all its members, those that left included. */
  get counts(): Counts {
    const sum = noCounts()
    addCounts(sum, this.orphaned)
    for (const member of this.members) addCounts(sum, member.counts)
    return sum
  }
}

/** What one call of a handler got: a record, or a batch. */
export class Unit {
  readonly member: ModelMember
  readonly fates: readonly Fate[]
  readonly deliveries: readonly Delivery<string>[]
  readonly batch: DeliveryBatch<string> | null
  /** The deadline is somewhere in between: code that takes time makes clocks imprecise. */
  deadlineFrom: number
  deadlineBy: number
  returned = false
  /** Its handler is being called right now. */
  onStack = true
  /** The member has its place back, whatever the handler does. */
  givenUp = false
  counts: Counts
  /** How a promise ended it. */
  promisedAs: 'acked' | 'nacked' = 'acked'
  /** Ends a handler that answered a promise. */
  finish: ((error?: unknown) => void) | null = null

  constructor(
    member: ModelMember,
    fates: readonly Fate[],
    deliveries: readonly Delivery<string>[],
    batch: DeliveryBatch<string> | null,
    deadlineFrom: number,
    deadlineBy: number,
  ) {
    this.member = member
    this.fates = fates
    this.deliveries = deliveries
    this.batch = batch
    this.deadlineFrom = deadlineFrom
    this.deadlineBy = deadlineBy
    this.counts = member.counts
  }

  get unsettled(): Fate[] {
    return this.fates.filter((fate) => fate.state === 'flight' && fate.unit === this)
  }

  /** A promise told of its end since all was at rest that many times. */
  isUnheard(rests: number): boolean {
    return this.fates.some((fate) => fate.promised === rests)
  }

  /** It takes one of its member's places. */
  get isBusy(): boolean {
    return !this.givenUp && !(this.returned && this.unsettled.length === 0)
  }
}

export class ModelMember {
  readonly reader: ModelReader
  readonly plan: MemberPlan
  readonly id: string
  readonly signal: AbortSignal
  readonly topics: Set<ModelTopic> = new Set()
  readonly units: Unit[] = []
  counts: Counts = noCounts()
  subscription: Subscription | null = null
  paused = false
  /** Since when and until when it lets what is in flight settle. */
  closing: { readonly by: number } | null = null
  left = false
  /** It goes for good: a broadcast reader's place with it. */
  forgets = false
  credit: number
  calls = 0

  constructor(reader: ModelReader, plan: MemberPlan, id: string, signal: AbortSignal) {
    this.reader = reader
    this.plan = plan
    this.id = id
    this.signal = signal
    this.credit = plan.manualCredit ? 0 : Number.POSITIVE_INFINITY
  }

  get busy(): number {
    return this.units.filter((unit) => unit.isBusy).length
  }

  get zombies(): number {
    return this.units.filter((unit) => unit.givenUp && !unit.returned).length
  }

  /** Whether it could ever take a record as things are. */
  get isAble(): boolean {
    return !this.left && this.closing === null && !this.paused && this.zombies < this.plan.concurrency
  }

  get isFree(): boolean {
    return this.isAble && this.busy < this.plan.concurrency && this.credit > 0
  }
}
