/**
 * Who reads: a broadcast subscription or a group. A reader owns cursors, one per partition of each topic
 * it reads, and members, whose handlers get the records. Cursors order and remember, members have room;
 * the reader brings the two together.
 *
 *   Reader ── seat per topic ──┬─ cursors, one per partition
 *      │                       └─ members subscribed to the topic
 *      └─ members, settings, counters
 *
 * Only the reader gates the log, never a member. It holds it while it has members, and for `graceMs` after
 * the last one left.
 */
import { messageOf, OdradekError } from '../model/errors.ts'
import type { DeliveryStrategy, MemberView, Published, PublishOptions } from '../model/options.ts'
import type { LogRecord } from '../model/record.ts'
import type { BrokerEvents, Counters, ReaderDescription, ReaderMetrics } from '../model/views.ts'
import type { CoreContext } from './context.ts'
import { MutableCounters } from './counters.ts'
import { Cursor } from './cursor.ts'
import type { DeadLetters } from './dead-letter.ts'
import type { DeliveryRecord } from './delivery.ts'
import { Deque } from './deque.ts'
import { Due } from './due-queue.ts'
import { Histogram } from './histogram.ts'
import type { Member } from './member.ts'
import type { Pump } from './pump.ts'
import type { CursorState } from './restored.ts'
import type { ReaderSettings } from './settings.ts'
import { Settle } from './settle.ts'
import { makeStrategy } from './strategies.ts'
import type { Topic } from './topic.ts'
import { withTraceOf } from './trace.ts'

/** Broadcast readers are groups of one, under this prefix. */
export const BROADCAST_PREFIX = 'odradek.reader.'

export type DropReason = BrokerEvents['dropped']['reason']
export type ReaderKind = 'broadcast' | 'share' | 'consumer'

/** Where a cursor begins. `stored`: what is known of it; `isPlaced`: as of a cursor, true if it is not said. */
export interface Start {
  readonly at: number
  readonly stored?: CursorState
  readonly isPlaced?: boolean
}

/** Of a group that has members elsewhere too, who assigns its partitions to all of them. */
export interface RemoteSide {
  /** Members of this process came or went, or what they read has changed. */
  changed(): void
  /** A partition that nobody of this process has now may have nothing in flight any more. */
  settled(): void
  /** Id of the member that has a cursor's partition, wherever it is. */
  ownerOf(cursor: Cursor): string | null
}

/** What a reader has in one topic. */
class Seat extends Due {
  readonly topic: Topic
  readonly cursors: Cursor[] = []
  members: Member[] = []
  /** Whether it holds the topic's logs. */
  holds: boolean = false
  readonly #reader: Reader

  constructor(reader: Reader, topic: Topic) {
    super()
    this.#reader = reader
    this.topic = topic
  }

  /** The grace period is over. */
  override fire(): void {
    if (this.members.length === 0) this.hold(false)
  }

  hold(on: boolean): void {
    if (this.holds === on) return
    this.holds = on
    for (const cursor of this.cursors) cursor.partition.setHolds(cursor, on && !cursor.isAway)
  }

  membersChanged(members: Member[]): void {
    const { due, clock } = this.#reader.ctx
    this.members = members
    for (const cursor of this.cursors) cursor.setMembers(members)
    if (!this.#reader.gates) return
    if (members.length > 0) {
      due.cancel(this)
      this.hold(true)
    } else if (this.holds) due.schedule(this, clock.monotonic() + this.#reader.settings.graceMs)
  }

  close(error: OdradekError): void {
    this.#reader.ctx.due.cancel(this)
    for (const cursor of this.cursors) cursor.close(error)
  }
}

/** Counted in full by the reader, raised in full as events; the log gets one line an episode. */
const EPISODE = 'records dropped: one line an episode, counters and events have them all'

interface Notice {
  count: number
  from: number
  to: number
}

export class Reader {
  readonly ctx: CoreContext
  readonly name: string
  /** Its name among all readers of the broker, groups included: what commits and dead letters are filed under. */
  readonly key: string
  readonly kind: ReaderKind
  readonly durable: boolean
  readonly settings: ReaderSettings
  readonly atMostOnce: boolean
  /** Whole partitions to members, instead of records. */
  readonly assigned: boolean
  readonly settle: Settle
  readonly deadLetters: DeadLetters
  /** What members that left had counted, and what no member was there for. */
  readonly orphaned: MutableCounters = new MutableCounters()
  readonly handleLatency: Histogram = new Histogram()
  members: Member[] = []
  generation: number = 0
  /** Null where all its members are of this process. */
  remote: RemoteSide | null = null
  /** Cursors without a member that has room. */
  readonly parked: Deque<Pump> = new Deque()
  readonly #seats = new Map<string, Seat>()
  readonly #strategy: DeliveryStrategy
  /** Whose choice needs no check. */
  readonly #builtIn: boolean
  readonly #withAside = new Set<Cursor>()
  readonly #notices = new Map<Cursor, Map<DropReason, Notice>>()
  /** Reused by every selection. */
  readonly #free: Member[] = []
  readonly #state: { all: readonly MemberView[]; attempt: number } = { all: [], attempt: 1 }

  constructor(
    ctx: CoreContext,
    identity: { readonly name: string; readonly kind: ReaderKind; readonly durable: boolean },
    settings: ReaderSettings,
    deadLetters: DeadLetters,
  ) {
    this.ctx = ctx
    this.name = identity.name
    this.key = identity.kind === 'broadcast' ? `${BROADCAST_PREFIX}${identity.name}` : identity.name
    this.kind = identity.kind
    this.durable = identity.durable
    this.settings = settings
    this.atMostOnce = settings.guarantee === 'at-most-once'
    this.assigned = settings.assignment !== 'shared'
    this.settle = new Settle(this)
    this.deadLetters = deadLetters
    this.#strategy = makeStrategy(settings.strategy)
    this.#builtIn = typeof settings.strategy === 'string'
  }

  /** Whether it holds logs at all: it has a name, and does not merely skip. */
  get gates(): boolean {
    return this.durable && this.settings.overflow !== 'drop-oldest'
  }

  // ── topics and members ────────────────────────────────────────────────────────────────────────

  /** Reads `topic` from now on, its new partitions from `startOf`. */
  attach(topic: Topic, startOf: (partition: number) => Start): void {
    let seat = this.#seats.get(topic.id)
    if (seat === undefined) {
      seat = new Seat(this, topic)
      this.#seats.set(topic.id, seat)
    }
    for (let i = seat.cursors.length; i < topic.partitions.length; i++) {
      const partition = topic.partitionAt(i)
      const { at, stored, isPlaced = true } = startOf(i)
      const cursor = new Cursor(this, partition, at, stored)
      cursor.isPlaced = isPlaced
      cursor.setMembers(seat.members)
      seat.cursors.push(cursor)
      partition.add(cursor)
      if (seat.holds) partition.setHolds(cursor, true)
      cursor.pump.wake()
    }
  }

  /** Holds the logs of a topic from now on, if `former` does, which is about to let go of them. */
  holdInstead(former: Reader, topicId: string): void {
    if (this.gates && former.#seats.get(topicId)?.holds === true) this.#seats.get(topicId)?.hold(true)
  }

  /** Stops reading a topic for good. */
  detach(topicId: string, error: OdradekError): void {
    const seat = this.#seats.get(topicId)
    if (seat === undefined) return
    this.#seats.delete(topicId)
    seat.close(error)
    for (const member of this.members) member.topics.delete(topicId)
  }

  reads(topicId: string): boolean {
    return this.#seats.has(topicId)
  }

  /** No member elsewhere has the cursor's partition any more. */
  takeBack(cursor: Cursor): void {
    cursor.comeBack(this.#seats.get(cursor.partition.topic.id)?.holds === true)
  }

  cursorsOf(topicId: string): readonly Cursor[] {
    return this.#seats.get(topicId)?.cursors ?? []
  }

  *cursors(): IterableIterator<Cursor> {
    for (const seat of this.#seats.values()) yield* seat.cursors
  }

  get topics(): readonly Topic[] {
    return [...this.#seats.values()].map((seat) => seat.topic)
  }

  join(member: Member): void {
    this.members.push(member)
    this.membersChanged()
  }

  leave(member: Member): void {
    this.members = this.members.filter((each) => each !== member)
    this.orphaned.add(member.counters)
    member.counters = this.orphaned
    this.membersChanged()
  }

  /** Members, or the topics they subscribe to, changed. */
  membersChanged(): void {
    for (const seat of this.#seats.values()) {
      seat.membersChanged(this.members.filter((member) => member.topics.has(seat.topic.id)))
    }
    this.memberFreed()
  }

  // ── choosing a member ─────────────────────────────────────────────────────────────────────────

  /** Who gets a record: a member with room, `none` if nobody has, `hold` to set it aside. */
  memberFor(cursor: Cursor, record: DeliveryRecord): Member | 'hold' | 'none' {
    const single = cursor.only
    if (single !== null) return single.free ? single : 'none'
    if (this.assigned) return 'none'
    const avoid = this.#avoided(cursor.members, record)
    const all = avoid === null ? cursor.members : cursor.members.filter((each) => each !== avoid)
    const free = this.freeOf(all)
    if (free.length === 0) return avoid === null ? 'none' : 'hold'
    return this.selected(record, free, all)
  }

  /** Those with room. Nothing is copied, nor an array cut, as long as all have some, as those of synchronous handlers do. */
  freeOf(all: readonly Member[]): readonly Member[] {
    let count = 0
    for (const member of all) if (member.free) count++
    if (count === all.length) return all
    const free = this.#free
    count = 0
    for (const member of all) if (member.free) free[count++] = member
    if (free.length > count) free.length = count
    return free
  }

  /** The member at which the record expired, while there is another one to try. */
  #avoided(members: readonly Member[], record: DeliveryRecord): Member | null {
    const avoid = record.extra?.avoid ?? null
    return avoid !== null && members.some((each) => each !== avoid && each.limit > 0 && each.credit > 0)
      ? avoid
      : null
  }

  /** Whom of `free`, who are some of `all`, the strategy gives a record to. */
  selected(record: DeliveryRecord, free: readonly Member[], all: readonly Member[]): Member | 'hold' {
    this.#state.all = all
    this.#state.attempt = record.attempt
    try {
      const chosen = this.#strategy.select(record as LogRecord, free, this.#state)
      if (chosen === 'hold') return 'hold'
      if (this.#builtIn) return (chosen as Member).free ? (chosen as Member) : 'hold'
      for (const member of all) if (member === chosen) return member.free ? member : 'hold'
      throw new OdradekError(
        'INVALID_ARGUMENT',
        `the strategy of "${this.name}" chose somebody who is no member`,
      )
    } catch (error) {
      this.raise(error, `delivery strategy of "${this.name}"`)
      return free.find((each) => each.free) ?? 'hold'
    }
  }

  setAside(cursor: Cursor): void {
    this.#withAside.add(cursor)
  }

  /** Somebody has room again: who waited for that goes on. */
  memberFreed(member?: Member): void {
    if (this.#withAside.size > 0) {
      const cursors = [...this.#withAside]
      this.#withAside.clear()
      for (const cursor of cursors) cursor.askAgain()
    }
    this.passOn(member)
  }

  /** Room that one cursor has left is for the next that waits for some. */
  passOn(member?: Member): void {
    if (this.assigned) {
      for (const each of member === undefined ? this.members : [member]) {
        if (each.free) each.parked.shift()?.wake()
      }
    } else if (this.parked.length > 0 && this.members.some((each) => each.free)) {
      // Members that read different topics: the first in the queue may not be theirs, so all look again.
      const turns = this.#seats.size > 1 ? this.parked.length : 1
      for (let i = 0; i < turns; i++) this.parked.shift()?.wake()
    }
  }

  /**
   * What goes out in a place that `member` has again, already in its window: the next record of who is first in line,
   * or else of `pump`, whose record had the place. Undefined where that takes a run.
   */
  nextFor(member: Member, pump: Pump): DeliveryRecord | undefined {
    if (this.#withAside.size > 0) return undefined
    const line = this.assigned ? member.parked : this.parked
    const first = line.peek()
    if (first === undefined) return pump.fill(member, line)
    pump.standInLine()
    return first.fill(member, line)
  }

  get hasParked(): boolean {
    return this.parked.length > 0 || this.assigned
  }

  park(cursor: Cursor): void {
    if (cursor.owner !== null) cursor.owner.parked.push(cursor.pump)
    else this.parked.push(cursor.pump)
  }

  /** Takes a cursor out of whatever queue it is parked in. */
  unpark(pump: Pump): void {
    this.parked.remove(pump)
    for (const member of this.members) member.parked.remove(pump)
  }

  // ── what goes out ─────────────────────────────────────────────────────────────────────────────

  publishFrom(
    record: DeliveryRecord,
    name: string,
    value: unknown,
    options?: PublishOptions,
  ): Promise<Published> {
    const topic = this.ctx.topics.get(name)
    if (topic === undefined) {
      return Promise.reject(new OdradekError('UNKNOWN_TOPIC', `there is no topic "${name}"; create it first`))
    }
    try {
      return topic.publish(value, withTraceOf(record, options), this)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Where records of `topic` go when they failed for good; undefined: they are only counted. */
  deadLetterName(topic: Topic): string | undefined {
    const { deadLetter } = this.settings
    if (deadLetter === false || topic.isDeadLetter) return undefined
    return deadLetter ?? `dlq.${topic.name}`
  }

  /** Raised once per drain, logged once per episode (until the cursor is at the end again). */
  noteDropped(cursor: Cursor, count: number, from: number, to: number, reason: DropReason): void {
    this.orphaned.dropped += count
    if (this.#notices.size === 0) this.ctx.dispatcher.afterDrain(() => this.#raiseDropped())
    let notices = this.#notices.get(cursor)
    if (notices === undefined) {
      notices = new Map()
      this.#notices.set(cursor, notices)
    }
    const notice = notices.get(reason)
    if (notice === undefined) notices.set(reason, { count, from, to })
    else {
      notice.count += count
      notice.from = Math.min(notice.from, from)
      notice.to = Math.max(notice.to, to)
    }
  }

  #raiseDropped(): void {
    for (const [cursor, notices] of this.#notices) {
      for (const [reason, notice] of notices) {
        const { topic, index } = cursor.partition
        const event = { topic: topic.name, partition: index, reader: this.name, ...notice, reason }
        this.ctx.events.raise('dropped', event)
        if (!cursor.dropLogged) this.ctx.logger.warn(event, EPISODE)
        cursor.dropLogged = true
      }
    }
    this.#notices.clear()
  }

  zombiesStalled(cursor: Cursor): void {
    const { topic, index } = cursor.partition
    this.ctx.events.raise('stalled', {
      topic: topic.name,
      partition: index,
      reader: this.name,
      reason: 'zombies',
    })
  }

  /** A handler failed after its delivery was settled: nothing to undo, worth a line. */
  late(member: Member, error: unknown): void {
    this.ctx.logger.debug(
      { reader: this.name, member: member.id, error: messageOf(error) },
      'a handler failed after its delivery was settled',
    )
  }

  raise(error: unknown, context: string): void {
    this.ctx.events.error(error, context)
  }

  // ── looking at it ─────────────────────────────────────────────────────────────────────────────

  describe(): ReaderDescription {
    const cursors = [...this.cursors()]
    for (const cursor of cursors) cursor.sweep()
    const { settings } = this
    return {
      name: this.name,
      kind: this.kind,
      durable: this.durable,
      assignment: this.kind === 'broadcast' ? null : settings.assignment,
      overflow: settings.overflow,
      order: settings.order,
      guarantee: settings.guarantee,
      generation: this.generation,
      members: this.members.map((member) => member.describe()),
      cursors: cursors.map((cursor) => cursor.describe()),
      counters: this.#counters(),
    }
  }

  #counters(): Counters {
    const sum = new MutableCounters()
    sum.add(this.orphaned)
    for (const member of this.members) sum.add(member.counters)
    return sum
  }

  metrics(): ReaderMetrics {
    return { ...this.describe(), handleLatency: this.handleLatency.snapshot() }
  }
}
