/**
 * One reader's place in one partition, and the loop that hands its records out.
 *
 * `pump` is called by the dispatcher only, never re-entered: handlers run inside it, whatever they call
 * changes state and at most asks the dispatcher for another turn. What a handler may change under the
 * loop's feet (a replay, a close, a rebalance) bumps `stamp`, and the loop starts over.
 *
 *   QUEUED ──► RUNNING ──► IDLE      at the end of the log; the partition wakes it
 *      ▲                ├► PARKED    no member has a place; the reader wakes it
 *      │                ├► BLOCKED   its order or window waits for a settle of its own
 *      └────────────────┴► LOADING   the log pages in, or a mark is being stored
 */

import type { PartitionLog, PeekResult } from '../log/contract.ts'
import { type Columns, Slice } from '../model/batch.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import { MAX_WINDOW } from '../model/limits.ts'
import type { CursorDescription } from '../model/views.ts'
import { BatchLinger, BatchUnit, gather } from './batch-unit.ts'
import { DeliveryRecord, GATHERED, HELD, IN_FLIGHT, READY, RETRY, SETTLED } from './delivery.ts'
import { Deque } from './deque.ts'
import { KeyChains } from './key-chains.ts'
import { type LagPolicy, lagPolicyFor } from './lag.ts'
import type { Member } from './member.ts'
import type { Partition } from './partition.ts'
import type { DropReason, Reader } from './reader.ts'
import { type CursorState, Restored } from './restored.ts'
import { screen } from './screen.ts'
import { Window } from './window.ts'

const RUNNING = 0
const QUEUED = 1
const IDLE = 2
const PARKED = 3
const BLOCKED = 4
const LOADING = 5

/** Offsets that one stored mark allows to be handed out. */
const MARK_BLOCK = 256
const LOAD_BYTES = 1024 * 1024
/** Pause after a load or a mark failed. */
const LOAD_RETRY_MS = 1_000

const BY_PARTITION = 0
const BY_KEY = 1
const UNORDERED = 2

/** One for all pumps: they run one at a time, and handlers cannot reach it. */
const slice = new Slice()

interface CommitWait {
  readonly offset: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export class Cursor {
  readonly reader: Reader
  readonly partition: Partition
  readonly log: PartitionLog
  readonly window: Window
  /** The only member that gets its records, for partition-assigned groups. */
  owner: Member | null = null
  /** Owns it next, once what is in flight has ended. `undefined`: no change is due. */
  #heir: Member | null | undefined = undefined
  inFlight: number = 0
  retrying: number = 0
  dropped: number = 0
  dirty: boolean = false
  /** Whether it holds the log against eviction; the partition's to set. */
  holds: boolean = false
  /** Place in the partition's list of idle cursors, −1 when not on it. */
  idleIndex: number = -1
  /** Members of the reader that read this topic. */
  members: readonly Member[] = []
  /** The one member its records go to; null where several share, or nobody is there. */
  only: Member | null = null
  /** Whether the current run of drops was logged. */
  dropLogged: boolean = false
  /** Below it, what is not in flight was dropped. */
  droppedBelow: number = 0
  /** Changes when something pulled the rug from under a running pump. */
  stamp: number = 0
  readonly #policy: LagPolicy | null
  readonly #order: number
  readonly ready: Deque<DeliveryRecord> = new Deque()
  /** Set aside by the delivery strategy until a member has room. */
  readonly aside: Deque<DeliveryRecord> = new Deque()
  readonly #chains = new KeyChains()
  readonly #linger = new BatchLinger(this)
  #status = BLOCKED
  #handed = 0
  /** Below it, records may be handed out: the stored mark. */
  #allowed: number
  #reserving = 0
  #restored: Restored | null
  #waits: CommitWait[] = []
  closed: boolean = false

  constructor(reader: Reader, partition: Partition, at: number, stored?: CursorState) {
    this.reader = reader
    this.partition = partition
    this.log = partition.log
    this.window = new Window(at)
    this.#policy = lagPolicyFor(this)
    if (this.#policy !== null) partition.topic.hasLagPolicies = true
    const { order } = reader.settings
    this.#order = order === 'partition' ? BY_PARTITION : order === 'key' ? BY_KEY : UNORDERED
    this.#allowed = reader.ctx.commits.durable ? at : Number.POSITIVE_INFINITY
    this.#restored = stored === undefined ? null : new Restored(stored)
  }

  /** What is committed: at most once before the hand-out, at least once after the settle. */
  get position(): number {
    return this.reader.atMostOnce ? this.window.next : this.window.committed
  }

  /** The lowest offset it still needs of the log, while it holds it. */
  get holdFrom(): number {
    return this.#policy?.holdFrom() ?? this.position
  }

  get lag(): number {
    return this.log.marks.high - this.position
  }

  // ── the loop ──────────────────────────────────────────────────────────────────────────────────

  /** Hands out at most `budget` records; how many it did. */
  pump(budget: number): number {
    this.#status = RUNNING
    this.#handed = 0
    let stop = RUNNING
    while (stop === RUNNING && this.#handed < budget) {
      if (this.closed) stop = BLOCKED
      else stop = this.#redeliver(budget)
      if (stop === RUNNING && this.#handed < budget) stop = this.#advance(budget)
    }
    this.#rest(stop)
    return this.#handed
  }

  #rest(stop: number): void {
    if (this.holds && this.partition.pressed) this.partition.holderMoved(this)
    if (stop === RUNNING) this.wake()
    else this.#status = stop
    if (stop === IDLE) {
      this.partition.rest(this)
      this.dropLogged = false
    } else if (stop === PARKED) this.reader.park(this)
    if (stop !== PARKED && this.reader.hasParked) this.reader.memberFreed(this.owner ?? undefined)
  }

  /** Asks the dispatcher for a turn, from whatever state but a running one. */
  wake(): void {
    if (this.#status === QUEUED) return
    this.#status = QUEUED
    this.reader.ctx.dispatcher.enqueue(this)
  }

  /** Something of its own changed: it may go on if that is what it waited for. */
  resume(): void {
    if (this.#status === BLOCKED) this.wake()
  }

  /** Records that were handed out before, or held back: they go first. */
  #redeliver(budget: number): number {
    if (this.#order === BY_PARTITION) {
      const head = this.window.head()
      if (head === undefined) return RUNNING
      return head.state === READY ? this.#again(head) : BLOCKED
    }
    while (this.ready.length > 0 && this.#handed < budget) {
      const record = this.ready.peek() as DeliveryRecord
      if (record.state !== READY) {
        this.ready.shift()
        continue
      }
      const stop = this.#again(record)
      if (stop !== RUNNING) return stop
    }
    return RUNNING
  }

  #again(record: DeliveryRecord): number {
    const { stamp } = this
    const member = this.reader.memberFor(this, record)
    if (this.stamp !== stamp) return RUNNING
    if (member === 'none') return this.#noMember()
    if (member !== 'hold' && member.settings.batch !== undefined) return this.#giveBatch(member)
    if (this.#order !== BY_PARTITION) this.ready.shift()
    if (member === 'hold') this.#setAside(record)
    else this.#give(member, record)
    return RUNNING
  }

  /** New records from the log. */
  #advance(budget: number): number {
    const { window, log } = this
    if (this.#order === BY_PARTITION && window.unsettled > 0) return RUNNING
    if (this.#policy !== null) this.#policy.apply()
    else if (window.next < log.marks.start) this.dropTo(log.marks.start, this.#overtaken)
    if (window.unsettled > 0 && window.next - window.committed >= MAX_WINDOW) return BLOCKED
    if (window.next >= this.#allowed) return this.#reserve()
    const found = this.peekNew(budget - this.#handed, slice)
    switch (found) {
      case 'hit':
        if (slice.count === 0) {
          this.passTo(slice.next)
          return RUNNING
        }
        return this.#hand()
      case 'end':
        return IDLE
      case 'miss':
        return this.#load()
      case 'range':
        // Below the start: apply the overflow rule again. Above the end: the log lost its tail.
        if (window.next > log.marks.end) this.reset(log.marks.end)
        return RUNNING
    }
  }

  /** Hands out the rows of `slice`, as far as members, order and window allow. */
  #hand(): number {
    const { window, log } = this
    const { columns, next } = slice
    let { row, count } = slice
    const stamp = this.stamp
    const order = this.#order
    const chains = this.#chains
    const { only } = this
    const checked = columns.headers !== null || columns.foreign || this.#restored !== null
    if (only !== null && only.settings.batch !== undefined) {
      return only.free ? this.#giveBatch(only) : PARKED
    }
    for (; count > 0; count--, row++) {
      const offset = columns.offsetAt(row)
      if (only !== null && !only.free) return PARKED
      if (window.unsettled > 0 && offset - window.committed >= MAX_WINDOW) return BLOCKED
      if (checked && this.#screened(columns, row, offset)) continue
      if (order === BY_KEY && chains.size > 0 && this.#heldByKey(columns, row, offset)) continue
      if (only !== null) {
        const record = this.#record(columns, row, offset)
        window.enter(record, offset)
        this.inFlight++
        this.#handed++
        if (only.invoke(record)) this.#ackNow(record, offset)
        else if (order === BY_KEY && record.state !== SETTLED && this.stamp === stamp) this.#lockKey(offset)
      } else {
        const stop = this.#select(columns, row, offset)
        if (stop !== RUNNING) return stop
      }
      if (this.stamp !== stamp) return RUNNING
      if (order === BY_PARTITION && window.unsettled > 0) return RUNNING
      if (window.next < log.marks.start) return RUNNING
    }
    this.passTo(next)
    return RUNNING
  }

  #record(columns: Columns, row: number, offset: number): DeliveryRecord {
    const attempt = this.#restored === null ? 1 : this.#restored.starts(offset) + 1
    const record = new DeliveryRecord(this, columns, row, attempt)
    if (attempt > 1) record.more().redelivered = true
    return record
  }

  /** A group of several members: whose record is it? */
  #select(columns: Columns, row: number, offset: number): number {
    if (this.reader.assigned || !this.members.some((member) => member.free)) return this.#noMember()
    const stamp = this.stamp
    const record = this.#record(columns, row, offset)
    const member = this.reader.memberFor(this, record)
    if (this.stamp !== stamp) return RUNNING
    if (member === 'none') return this.#noMember()
    if (member !== 'hold' && member.settings.batch !== undefined) return this.#giveBatch(member)
    this.window.enter(record, offset)
    if (member === 'hold') {
      if (this.#order === BY_KEY) this.#chains.add(record)
      this.#setAside(record)
      return RUNNING
    }
    this.#give(member, record)
    if (this.#order === BY_KEY && record.state !== SETTLED && this.stamp === stamp) this.#lockKey(offset)
    return RUNNING
  }

  #noMember(): number {
    return this.reader.assigned && this.owner === null ? BLOCKED : PARKED
  }

  #give(member: Member, record: DeliveryRecord): void {
    this.inFlight++
    this.#handed++
    if (member.invoke(record)) this.#ackNow(record, record.offset)
  }

  /** `Settle.ack` and `leave` for a record that settled within the call: no slot, at-least-once. */
  #ackNow(record: DeliveryRecord, offset: number): void {
    record.state = SETTLED
    this.inFlight--
    ;(record.member as Member).counters.acked++
    if (this.#policy !== null) this.#policy.beforeSettle(record)
    const { window } = this
    const before = window.committed
    window.leave(offset)
    if (this.#chains.size > 0) this.#unlockKey(record)
    if (window.committed !== before) this.moved()
    if (this.#heir !== undefined && this.inFlight === 0) this.#handOver()
  }

  /** Not settled within the call: from now on later records of its key wait for it, or its successor. */
  #lockKey(offset: number): void {
    const record = this.window.at(offset)
    if (record !== undefined) this.#chains.add(record)
  }

  #giveBatch(member: Member): number {
    const { batch } = member.settings
    if (batch === undefined) return RUNNING
    if (this.window.unsettled === 0 || this.#order !== BY_PARTITION) {
      const available = this.log.marks.stable - this.window.next + this.ready.length
      if (this.#linger.holds(available, batch.records, batch.maxWaitMs)) return IDLE
    }
    const records = gather(this, member)
    if (records.length === 0) return RUNNING
    this.inFlight += records.length
    this.#handed += records.length
    member.invokeBatch(new BatchUnit(records))
    return RUNNING
  }

  /** Moves what is ready into a batch. Answers whether order lets new records follow. */
  takeReady(most: number, into: DeliveryRecord[]): boolean {
    if (this.#order !== BY_PARTITION) {
      while (into.length < most && this.ready.length > 0) {
        const record = this.ready.shift() as DeliveryRecord
        if (record.state === READY) into.push(record)
      }
      return true
    }
    for (const record of this.window) {
      if (record.state !== READY || into.length === most) return false
      into.push(record)
    }
    return true
  }

  /** New rows, within the window, the stored mark and the overflow policy. */
  peekNew(most: number, into: Slice): PeekResult {
    const { window } = this
    const span = window.unsettled === 0 ? 0 : window.next - window.committed
    const max = Math.min(most, this.#allowed - window.next, MAX_WINDOW - span)
    if (max <= 0) return 'end'
    return this.#policy === null
      ? this.log.peek(window.next, max, 'committed', into)
      : this.#policy.peek(max, into)
  }

  /** Takes a row for a batch if order allows: enters it into the window and its key's chain. */
  take(columns: Columns, row: number): DeliveryRecord | undefined {
    const offset = columns.offsetAt(row)
    if (
      (columns.headers !== null || columns.foreign || this.#restored !== null) &&
      this.#screened(columns, row, offset)
    )
      return undefined
    if (this.#order === BY_KEY && this.#chains.size > 0 && this.#heldByKey(columns, row, offset))
      return undefined
    const record = this.#record(columns, row, offset)
    record.state = GATHERED
    this.window.enter(record, offset)
    if (this.#order === BY_KEY) this.#chains.add(record)
    return record
  }

  /** Passes over offsets without records: markers, what compaction left out. */
  passTo(next: number): void {
    if (next <= this.window.next) return
    this.window.skip(next)
    this.moved()
  }

  /** A record whose key is busy enters the window, but waits for its turn. */
  #heldByKey(columns: Columns, row: number, offset: number): boolean {
    const key = columns.keyAt(row)
    if (key === null) return false
    const last = this.#chains.last(key)
    if (last === undefined || last.state === GATHERED) return false
    const record = this.#record(columns, row, offset)
    record.state = HELD
    this.window.enter(record, offset)
    this.#chains.add(record)
    return true
  }

  /** Copies meant for another reader pass by; what cannot be delivered goes to the dead letters. */
  #screened(columns: Columns, row: number, offset: number): boolean {
    if (this.#restored !== null) {
      if (offset >= this.#restored.until) this.#restored = null
      else if (this.#restored.isSettled(offset)) {
        this.passTo(offset + 1)
        return true
      }
    }
    const verdict = screen(this.reader, this.partition.topic, columns, row)
    if (verdict === undefined) return false
    if (verdict === 'not-ours') {
      this.passTo(offset + 1)
      return true
    }
    const record = this.#record(columns, row, offset)
    this.window.enter(record, offset)
    this.reader.settle.failUnseen(record, verdict)
    return true
  }

  #setAside(record: DeliveryRecord): void {
    record.state = HELD
    this.aside.push(record)
    this.reader.setAside(this)
  }

  /** A member has room again: what the strategy set aside is asked for again. */
  askAgain(): void {
    for (let record = this.aside.shift(); record !== undefined; record = this.aside.shift()) {
      if (record.state === HELD) this.becomesReady(record)
    }
  }

  #load(): number {
    const { ctx } = this.reader
    ctx.dispatcher.activate()
    this.log.load(this.window.next, LOAD_BYTES, 'committed').then(
      () => this.#loaded(),
      (error: unknown) => {
        this.reader.raise(error, 'reading the log')
        ctx.due.after(LOAD_RETRY_MS, () => this.#loaded())
      },
    )
    return LOADING
  }

  #loaded(): void {
    this.reader.ctx.dispatcher.deactivate()
    if (this.#status === LOADING) this.wake()
  }

  /** Stores the mark for the next block of offsets before any of them is handed out. */
  #reserve(): number {
    const { ctx } = this.reader
    if (this.window.next >= this.log.marks.stable) return IDLE
    this.#reserving = Math.min(this.window.next + MARK_BLOCK, this.log.marks.stable)
    const { stamp } = this
    ctx.dispatcher.activate()
    ctx.commits.store(this).then(
      () => {
        if (this.stamp === stamp) this.#allowed = this.#reserving
        this.#loaded()
      },
      (error: unknown) => {
        this.reader.raise(error, 'storing a delivery mark')
        ctx.due.after(LOAD_RETRY_MS, () => this.#loaded())
      },
    )
    return LOADING
  }

  // ── settling ──────────────────────────────────────────────────────────────────────────────────

  /** A record stops being in flight. */
  ends(record: DeliveryRecord): void {
    if (record.state !== IN_FLIGHT) return
    this.inFlight--
    if (this.#heir !== undefined && this.inFlight === 0) this.#handOver()
  }

  /** A settled record leaves the window; what it held back may go on. */
  leave(record: DeliveryRecord): void {
    const { window } = this
    if (this.#policy !== null) this.#policy.beforeSettle(record)
    const before = window.committed
    window.leave(record.offset)
    if (this.#chains.size > 0) this.#unlockKey(record)
    if (window.committed !== before) this.moved()
    if (this.#status === BLOCKED) this.wake()
  }

  /** The oldest of its key is settled: the next one may go. */
  #unlockKey(record: DeliveryRecord): void {
    const next = this.#chains.remove(record)
    if (next !== undefined && next.state === HELD) this.becomesReady(next)
  }

  /** Committed or position moved. */
  moved(): void {
    if (!this.dirty) this.reader.ctx.commits.changed(this)
    if (this.holds && this.partition.pressed && this.#status !== RUNNING) this.partition.holderMoved(this)
    if (this.#waits.length > 0) this.#serveWaits()
  }

  succeed(record: DeliveryRecord, successor: DeliveryRecord): void {
    this.window.replace(record.offset, successor)
    if (this.#order === BY_KEY) this.#chains.replace(record, successor)
  }

  isHeldBack(record: DeliveryRecord): boolean {
    return this.#order === BY_KEY && this.#chains.isBehind(record)
  }

  becomesReady(record: DeliveryRecord): void {
    record.state = READY
    if (this.#order !== BY_PARTITION) this.ready.push(record)
    this.wakeFromIdle()
  }

  /** Goes on if it rests at the end of the log, or for something of its own. */
  wakeFromIdle(): void {
    if (this.#status === IDLE) this.partition.unidle(this)
    else if (this.#status !== BLOCKED) return
    this.wake()
  }

  retryIsDue(record: DeliveryRecord): void {
    this.retrying--
    if (record.state === RETRY) this.becomesReady(record)
  }

  get #overtaken(): DropReason {
    return this.reader.settings.overflow === 'drop-oldest' ? 'drop-oldest' : 'overtaken'
  }

  // ── overflow ──────────────────────────────────────────────────────────────────────────────────

  /** Evaluates overflow now, for a cursor that is stuck. */
  sweep(): void {
    if (this.#policy !== null) this.#policy.apply()
    else if (!this.holds && this.position < this.log.marks.start)
      this.dropTo(this.log.marks.start, this.#overtaken)
  }

  /** Gives up everything below `floor` that is not in flight, and counts it. */
  dropTo(floor: number, reason: DropReason): void {
    const { window } = this
    const first = Math.max(window.committed, this.droppedBelow)
    let count = 0
    for (let at = first; at < Math.min(floor, window.next); at++) {
      const record = window.at(at)
      if (record !== undefined && this.#dropOne(record)) count++
    }
    if (floor > window.next) {
      count += floor - window.next
      window.skip(floor)
    }
    if (floor > this.droppedBelow) this.droppedBelow = floor
    if (count > 0) this.#countDropped(count, first, floor, reason)
    this.moved()
  }

  /** Whether a record that came back was passed by overflow meanwhile; then it is dropped here. */
  passedBy(record: DeliveryRecord): boolean {
    const { offset } = record
    if (offset >= this.droppedBelow || !this.#dropOne(record)) return false
    this.#countDropped(1, offset, offset + 1, this.#overtaken)
    return true
  }

  #dropOne(record: DeliveryRecord): boolean {
    if (record.state !== READY && record.state !== RETRY && record.state !== HELD) return false
    this.reader.settle.cancelRetry(record)
    record.state = SETTLED
    this.leave(record)
    return true
  }

  #countDropped(count: number, from: number, to: number, reason: DropReason): void {
    this.dropped += count
    this.reader.noteDropped(this, count, from, to, reason)
  }

  /** Records the policy refused at the door. */
  missed(count: number, from: number, to: number): void {
    this.#countDropped(count, from, to, 'drop-newest')
  }

  // ── replay, ownership, end ────────────────────────────────────────────────────────────────────

  /** Starts again at `at`: fences what is in flight, cancels retries, forgets attempts. */
  reset(at: number): void {
    this.stamp++
    for (const record of this.window) this.reader.settle.fence(record, 'a replay moved its reader')
    this.ready.clear()
    this.aside.clear()
    this.#chains.clear()
    this.#linger.cancel()
    this.window.reset(at)
    this.inFlight = 0
    this.droppedBelow = 0
    this.#policy?.reset()
    this.#allowed = this.reader.ctx.commits.durable ? at : Number.POSITIVE_INFINITY
    this.#reserving = 0
    this.#restored = null
    if (this.#heir !== undefined) this.#handOver()
    this.moved()
    this.partition.holdersChanged()
    if (this.#status === IDLE) this.partition.unidle(this)
    if (this.#status !== RUNNING && this.#status !== PARKED) this.wake()
  }

  setMembers(members: readonly Member[]): void {
    this.members = members
    this.#relink()
  }

  #relink(): void {
    this.only = this.reader.assigned
      ? this.owner
      : this.members.length === 1
        ? (this.members[0] as Member)
        : null
    this.stamp++
  }

  /** A rebalance: the partition goes to `member` once nothing is in flight. */
  assign(member: Member | null): void {
    if (this.#heir === undefined && this.owner === member) return
    this.#heir = member
    if (this.inFlight === 0) this.#handOver()
    else this.#own(null)
  }

  #handOver(): void {
    const heir = this.#heir ?? null
    this.#heir = undefined
    this.#own(heir)
  }

  #own(member: Member | null): void {
    if (this.#status === PARKED) {
      this.reader.unpark(this)
      this.#status = BLOCKED
    }
    this.owner = member
    this.#relink()
    this.resume()
  }

  /** Lets go of the log, where its policy keeps records of its own. */
  releaseLog(): void {
    const missing = this.#policy?.release()
    if (missing === undefined || this.#status === LOADING) return
    this.log.load(missing, LOAD_BYTES, 'committed').then(
      () => this.partition.holdersChanged(),
      (error: unknown) => this.reader.raise(error, 'reading what overflow is about to evict'),
    )
  }

  /** What a commit stores: enough to go on after a crash without losing a settle or an attempt. */
  state(): CursorState {
    const { window, reader } = this
    const old = this.#restored
    const handed = Math.max(window.next, this.#reserving, old?.until ?? 0)
    if (reader.atMostOnce) {
      const offset = Math.max(window.next, this.#reserving)
      return { offset, settled: [], handed: offset, attempts: [] }
    }
    const attempts: [number, number][] = []
    for (const record of window) if (record.attempt > 1) attempts.push([record.offset, record.attempt])
    for (let at = window.next; old !== null && at < old.until; at++) {
      if (!old.isSettled(at)) attempts.push([at, old.starts(at) + (at < this.#reserving ? 1 : 0)])
    }
    const settled = [...window.settledRuns(), ...(old?.settledFrom(window.next) ?? [])]
    return { offset: window.committed, settled, handed, attempts }
  }

  /** Resolves once everything below `offset` is settled. */
  waitFor(offset: number, signal?: AbortSignal): Promise<void> {
    if (this.position >= offset) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const wait: CommitWait = { offset, resolve, reject }
      this.#waits.push(wait)
      signal?.addEventListener(
        'abort',
        () => {
          this.#waits = this.#waits.filter((each) => each !== wait)
          reject(new OdradekError('ABORTED', 'waitFor was aborted', { cause: signal.reason }))
        },
        { once: true },
      )
    })
  }

  #serveWaits(): void {
    const { position } = this
    for (const wait of this.#waits) if (wait.offset <= position) wait.resolve()
    this.#waits = this.#waits.filter((wait) => wait.offset > position)
  }

  /** Leaves the partition for good: nothing is handed out any more, what is in flight is fenced. */
  close(error: OdradekError): void {
    this.closed = true
    this.stamp++
    for (const record of this.window) this.reader.settle.fence(record, messageOf(error))
    this.ready.clear()
    this.aside.clear()
    this.#chains.clear()
    this.#linger.cancel()
    for (const wait of this.#waits) wait.reject(error)
    this.#waits = []
    if (this.#status === IDLE) this.partition.unidle(this)
    if (this.#status !== RUNNING && this.#status !== QUEUED) this.#status = BLOCKED
    this.partition.remove(this)
  }

  describe(): CursorDescription {
    return {
      topic: this.partition.topic.name,
      partition: this.partition.index,
      committed: this.position,
      next: this.window.next,
      lag: this.lag,
      inFlight: this.inFlight,
      retrying: this.retrying,
      owner: this.owner?.id ?? null,
      gating: this.holds,
    }
  }
}
