/**
 * The loop that hands a cursor's records out: what came back first, then what is new, as far as order, window,
 * overflow, stored marks and the members' room allow.
 *
 *   QUEUED ──► RUNNING ──┬► IDLE      at the end of the log; the partition wakes it
 *      ▲                 ├► PARKED    no member has a place; the reader wakes it
 *      │                 ├► BLOCKED   its order or window waits for a settle of its own
 *      └─────────────────┴► LOADING   the log pages in, or a mark is being stored
 *
 * `run` is called by the dispatcher, and handlers run inside it; whatever they call changes state and at most asks
 * the dispatcher for another turn. When that state is this cursor's, its `stamp` changes and the loop starts over.
 * `resolved` and `fill` are for the reaction of a handler's promise, never inside a run.
 */
import { type Columns, Slice } from '../model/batch.ts'
import { MAX_WINDOW } from '../model/limits.ts'
import { AtHand } from './at-hand.ts'
import { BatchLinger, BatchUnit, gather } from './batch-unit.ts'
import type { Cursor } from './cursor.ts'
import { DeliveryRecord, HELD, READY, SETTLED } from './delivery.ts'
import type { Deque } from './deque.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { IdlePumps } from './idle-pumps.ts'
import type { Member } from './member.ts'
import { runPlainly } from './plain-run.ts'
import { isConsumed, isHeldByKey, isScreened, needsLook, recordOf } from './row.ts'

const RUNNING = 0
const QUEUED = 1
const IDLE = 2
const PARKED = 3
const BLOCKED = 4
const LOADING = 5

export const LOAD_BYTES: number = 1024 * 1024
/** Pause after a load or a mark failed. */
export const LOAD_RETRY_MS = 1_000

/** One for all pumps: they run one at a time, and handlers cannot reach it. */
const slice = new Slice()

export class Pump {
  readonly linger: BatchLinger
  readonly #cursor: Cursor
  readonly #dispatcher: Dispatcher
  readonly #idle: IdlePumps
  /** Its place among the idle, −1 for none; kept while it runs there. */
  idleAt: number = -1
  #status = BLOCKED
  /** Records handed out by this run. */
  #handed = 0
  /** Counts what was waited for. */
  #waits = 0
  /** The cursor's position when this run began. */
  #from = 0
  /** For readers whose handlers answer promises. */
  #atHand: AtHand | null = null

  constructor(cursor: Cursor) {
    this.#cursor = cursor
    this.#dispatcher = cursor.reader.ctx.dispatcher
    this.#idle = cursor.partition.idle
    this.linger = new BatchLinger(cursor)
  }

  get running(): boolean {
    return this.#status === RUNNING
  }

  // ── waking ────────────────────────────────────────────────────────────────────────────────────

  /** Asks the dispatcher for a turn, from whatever state. */
  wake(): void {
    if (this.#status === QUEUED) return
    if (this.#status === IDLE) this.#idle.remove(this)
    this.#status = QUEUED
    this.#dispatcher.enqueue(this)
  }

  /** A settle of its own, or another owner: it may go on if that is what it waited for. */
  unblock(): void {
    if (this.#status === BLOCKED) this.wake()
  }

  /** Goes on if it rests at the end of the log, or for something of its own. */
  wakeFromIdle(): void {
    if (this.#status === IDLE || this.#status === BLOCKED) this.wake()
  }

  /** Leaves the queue for a member's room. */
  unpark(): void {
    if (this.#status !== PARKED) return
    this.#cursor.reader.unpark(this)
    this.#status = BLOCKED
  }

  /** The cursor was moved. */
  startOver(): void {
    if (this.#status !== RUNNING && this.#status !== PARKED) this.wake()
  }

  /** The cursor is closed; a queued run finds that out. */
  stop(): void {
    this.linger.cancel()
    this.unpark()
    if (this.#status === IDLE) this.#idle.remove(this)
    if (this.#status !== RUNNING && this.#status !== QUEUED) this.#status = BLOCKED
  }

  // ── the loop ──────────────────────────────────────────────────────────────────────────────────

  /** Hands out at most `budget` records; how many it did. */
  run(budget: number): number {
    this.#begin()
    let stop = RUNNING
    while (stop === RUNNING && this.#handed < budget) {
      if (this.#cursor.closed || this.#cursor.isAway) stop = BLOCKED
      else stop = this.#redeliver(budget)
      if (stop === RUNNING && this.#handed < budget) stop = this.#advance(budget)
    }
    this.#rest(stop)
    return this.#handed
  }

  /** `run` for rows that came at the end, where it rests, and that were looked up for all who rest there. */
  runAtEnd(rows: Slice, from: number, budget: number): number {
    const cursor = this.#cursor
    const { window, log, only } = cursor
    if (!cursor.isPlainAtEnd || window.next !== from || window.unsettled > 0 || from < log.marks.start) {
      return this.run(budget)
    }
    this.#begin()
    const { columns, row, count, next } = rows
    const stop = this.#handPlainly(only as Member, columns, row, row + count, next)
    if (stop !== IDLE) this.#rest(stop)
    else {
      // It is at the end again, and kept no place that anybody could wait for.
      this.#status = IDLE
      cursor.dropLogged = false
      cursor.moved()
    }
    return this.#handed
  }

  /** Where it goes on. */
  get next(): number {
    return this.#cursor.window.next
  }

  // ── in a reaction ─────────────────────────────────────────────────────────────────────────────

  /** The handler of `record` has resolved, which acks it. */
  resolved(record: DeliveryRecord): void {
    const cursor = this.#cursor
    const { committed } = cursor.window
    cursor.ackNow(record, record.offset)
    if (cursor.window.committed !== committed) cursor.moved()
  }

  /** A settle of its own may have been what it waited for, but others were there before. */
  standInLine(): void {
    if (this.#status !== BLOCKED) return
    const { byPartition, reader, window } = this.#cursor
    if (!byPartition || window.unsettled > 0) this.wake()
    else {
      this.#status = PARKED
      reader.park(this.#cursor)
    }
  }

  /**
   * `member` has a place again, and it is this pump's turn: what it hands out in it, already in the window, without a
   * run. Undefined where it is not as simple as that. Where order allows more, it stays in `line`, as the last.
   */
  fill(member: Member, line: Deque<Pump>): DeliveryRecord | undefined {
    this.#atHand ??= new AtHand(this.#cursor)
    const next = this.#mayFill(member, this.#atHand) ? this.#atHand.nextFor(member) : undefined
    if (next === undefined || this.#status !== PARKED) return next
    if (this.#cursor.byPartition) {
      line.shift()
      this.#status = BLOCKED
    } else if (line.length > 1) line.push(line.shift() as Pump)
    return next
  }

  /** Whether it waits for just that, a place or the end of its head, and has something to fill the place with. */
  #mayFill(member: Member, rows: AtHand): boolean {
    const { byPartition, only, reader, ready, window } = this.#cursor
    return (
      (this.#status === PARKED || (this.#status === BLOCKED && byPartition)) &&
      (!byPartition || window.unsettled === 0) &&
      (only === member || (only === null && !reader.assigned)) &&
      ready.length === 0 &&
      member.free &&
      rows.some &&
      this.#dispatcher.goesOnInReaction()
    )
  }

  #begin(): void {
    this.#status = RUNNING
    this.#handed = 0
    this.#from = this.#cursor.position
  }

  #rest(stop: number): void {
    const cursor = this.#cursor
    const { reader } = cursor
    if (stop === RUNNING) this.wake()
    else this.#status = stop
    if (stop === IDLE) {
      if (this.idleAt < 0) this.#idle.add(this)
      cursor.dropLogged = false
    } else {
      if (this.idleAt >= 0) this.#idle.remove(this)
      if (stop === PARKED) reader.park(cursor)
    }
    if (cursor.position !== this.#from) cursor.moved()
    if (stop !== PARKED && reader.hasParked) reader.passOn(cursor.owner ?? undefined)
  }

  /** Records that were handed out before, or held back. */
  #redeliver(budget: number): number {
    const { byPartition, inFlight, ready, window } = this.#cursor
    if (byPartition) {
      const head = window.head()
      if (head === undefined) return RUNNING
      return head.state === READY && inFlight === 0 ? this.#again(head) : BLOCKED
    }
    while (ready.length > 0 && this.#handed < budget) {
      const record = ready.peek() as DeliveryRecord
      if (record.state !== READY || this.#cursor.waitsForMate(record)) {
        ready.shift()
        continue
      }
      const stop = this.#again(record)
      if (stop !== RUNNING) return stop
    }
    return RUNNING
  }

  #again(record: DeliveryRecord): number {
    const cursor = this.#cursor
    const { stamp } = cursor
    const member = cursor.reader.memberFor(cursor, record)
    if (cursor.stamp !== stamp || record.state !== READY) return RUNNING
    if (member === 'none') return this.#noMember()
    if (member !== 'hold' && member.settings.batch !== undefined) return this.#giveBatch(member)
    if (!cursor.byPartition) cursor.ready.shift()
    if (member === 'hold') this.#setAside(record)
    else this.#give(member, record, record.offset)
    return RUNNING
  }

  /** New records from the log. */
  #advance(budget: number): number {
    const cursor = this.#cursor
    const { window, log } = cursor
    if (cursor.byPartition && window.unsettled > 0) return RUNNING
    cursor.sweep()
    if (window.unsettled > 0 && window.next - window.committed >= MAX_WINDOW) return BLOCKED
    if (window.next >= cursor.mark.allowed) return this.#anyFree() ? this.#reserve() : this.#noMember()
    switch (cursor.peek(budget - this.#handed, slice)) {
      case 'hit':
        if (slice.count > 0) return this.#hand()
        cursor.passTo(slice.next)
        return RUNNING
      case 'end':
        return IDLE
      case 'miss':
        return this.#load()
      case 'range':
        // Below the start, overflow is asked again; above the end, the log lost its tail.
        if (window.next > log.marks.end) cursor.reset(log.marks.end)
        return RUNNING
    }
  }

  /** Hands out the rows of `slice`. */
  #hand(): number {
    const cursor = this.#cursor
    const { only } = cursor
    if (only?.settings.batch !== undefined) return only.free ? this.#giveBatch(only) : PARKED
    const { columns, row, count, next } = slice
    const end = row + count
    if (only === null) return this.#handShared(columns, row, end, next)
    return cursor.isPlain && !needsLook(cursor, columns)
      ? this.#handPlainly(only, columns, row, end, next)
      : this.#handTo(only, columns, row, end, next)
  }

  /** Most readers. */
  #handPlainly(member: Member, columns: Columns, first: number, end: number, next: number): number {
    const cursor = this.#cursor
    const { stamp } = cursor
    const handed = runPlainly(cursor, member, columns, first, end)
    this.#handed += handed
    if (handed === 0) return PARKED
    const all = handed === end - first && cursor.stamp === stamp && cursor.window.unsettled === 0
    return all ? this.#passed(next) : RUNNING
  }

  /** One member takes them all. */
  #handTo(member: Member, columns: Columns, first: number, end: number, next: number): number {
    const cursor = this.#cursor
    const { window, log, stamp, byPartition, byKey } = cursor
    const checked = needsLook(cursor, columns)
    const fresh = !cursor.mark.remembers
    for (let row = first; row < end; row++) {
      const offset = columns.offsetAt(row)
      if (!member.free) return PARKED
      if (window.unsettled > 0 && offset - window.committed >= MAX_WINDOW) return BLOCKED
      if (checked && isScreened(cursor, columns, row, offset)) continue
      if (byKey && cursor.chains.size > 0 && isHeldByKey(cursor, columns, row, offset)) continue
      const record = fresh
        ? new DeliveryRecord(cursor, columns, row, 1)
        : recordOf(cursor, columns, row, offset)
      this.#giveNew(member, record, offset)
      if (cursor.stamp !== stamp || window.next < log.marks.start) return RUNNING
      if (byPartition && window.unsettled > 0) return RUNNING
    }
    return this.#passed(next)
  }

  /** All rows up to `next` are dealt with. Where that is the end of the log, it takes no other look to know it. */
  #passed(next: number): number {
    const { log, policy, ready } = this.#cursor
    this.#cursor.passTo(next)
    return next === log.marks.stable && ready.length === 0 && policy === null ? IDLE : RUNNING
  }

  /** A group of several members, or of none: whose record is it? */
  #handShared(columns: Columns, first: number, end: number, next: number): number {
    const cursor = this.#cursor
    const { window, log, stamp, byPartition, reader } = cursor
    if (reader.assigned) return this.#noMember()
    const checked = needsLook(cursor, columns)
    for (let row = first; row < end; row++) {
      const offset = columns.offsetAt(row)
      const free = reader.freeOf(cursor.members)
      if (free.length === 0) return PARKED
      if (window.unsettled > 0 && offset - window.committed >= MAX_WINDOW) return BLOCKED
      if (isConsumed(cursor, columns, row, offset, checked)) continue
      const record = recordOf(cursor, columns, row, offset)
      const member = reader.selected(record, free, cursor.members)
      if (cursor.stamp !== stamp) return RUNNING
      if (member === 'hold') this.#holdNew(record, offset)
      else if (member.settings.batch !== undefined) return this.#giveBatch(member)
      else this.#giveNew(member, record, offset)
      if (cursor.stamp !== stamp || window.next < log.marks.start) return RUNNING
      if (byPartition && window.unsettled > 0) return RUNNING
    }
    return this.#passed(next)
  }

  #anyFree(): boolean {
    const { members, only, reader } = this.#cursor
    if (only !== null || reader.assigned) return only?.free === true
    for (const member of members) if (member.free) return true
    return false
  }

  #noMember(): number {
    return this.#cursor.reader.assigned && this.#cursor.owner === null ? BLOCKED : PARKED
  }

  #giveNew(member: Member, record: DeliveryRecord, offset: number): void {
    const cursor = this.#cursor
    cursor.window.enter(record, offset)
    this.#give(member, record, offset)
    if (!cursor.byKey || record.columns.keys === null || record.state === SETTLED) return
    // Not settled within the call: from now on later records of its key wait for it, or its successor.
    const unsettled = cursor.window.at(offset)
    if (unsettled !== undefined) cursor.chains.add(unsettled)
  }

  #give(member: Member, record: DeliveryRecord, offset: number): void {
    this.#cursor.inFlight++
    this.#handed++
    if (member.invoke(record)) this.#cursor.ackNow(record, offset)
  }

  #holdNew(record: DeliveryRecord, offset: number): void {
    const cursor = this.#cursor
    cursor.window.enter(record, offset)
    if (cursor.byKey) cursor.chains.add(record)
    this.#setAside(record)
  }

  #setAside(record: DeliveryRecord): void {
    record.state = HELD
    this.#cursor.aside.push(record)
    this.#cursor.reader.setAside(this.#cursor)
  }

  // ── batches ───────────────────────────────────────────────────────────────────────────────────

  #giveBatch(member: Member): number {
    const cursor = this.#cursor
    const { batch } = member.settings
    if (batch === undefined) return RUNNING
    if (cursor.window.unsettled === 0 || !cursor.byPartition) {
      const available = cursor.log.marks.stable - cursor.window.next + cursor.ready.length
      if (this.linger.holds(available, batch.records, batch.maxWaitMs)) return IDLE
      // While it filled, more came than the mark of its first record allows.
      const covered = cursor.ready.length > 0 || cursor.mark.covers(batch.records)
      if (!covered && this.linger.asksForMark()) return this.#reserve()
    }
    this.linger.cancel()
    const records = gather(cursor, member)
    if (records.length === 0) return RUNNING
    cursor.inFlight += records.length
    this.#handed += records.length
    member.invokeBatch(new BatchUnit(records))
    return RUNNING
  }

  // ── waiting for the engine ────────────────────────────────────────────────────────────────────

  #load(): number {
    const { log, window } = this.#cursor
    return this.#waitFor(log.load(window.next, LOAD_BYTES, 'committed'), 'reading the log')
  }

  /** Stores the mark for the next block of offsets before any of them is handed out. */
  #reserve(): number {
    const { log, mark, window } = this.#cursor
    return window.next >= log.marks.stable ? IDLE : this.#waitFor(mark.reserve(), 'storing a delivery mark')
  }

  #waitFor(promise: Promise<unknown>, what: string): number {
    const { reader } = this.#cursor
    const { dispatcher, due } = reader.ctx
    const wait = ++this.#waits
    const done = (): void => {
      dispatcher.deactivate()
      // Of two that are under way since the cursor was moved, the older one is nothing to go on for.
      if (this.#status === LOADING && this.#waits === wait) this.wake()
    }
    dispatcher.activate()
    promise.then(done, (error: unknown) => {
      // Nobody is there for whom it failed: the log was closed, or deleted, under way.
      if (this.#cursor.closed) return done()
      reader.raise(error, what)
      due.after(LOAD_RETRY_MS, done)
    })
    return LOADING
  }
}
