/**
 * One reader's place in one partition: what is unsettled, what is committed, what waits for its turn, and
 * everything that moves it other than handing out, which is the pump's.
 *
 * Invariants: a record is in the window until it settles; the head of its key's chain is the only one of the
 * key that may be in flight; whatever changes who reads, or where, bumps `stamp`, so that a running pump
 * starts over.
 */
import type { PartitionLog, PeekResult } from '../log/contract.ts'
import type { Slice } from '../model/batch.ts'
import { messageOf, type OdradekError } from '../model/errors.ts'
import { MAX_WINDOW } from '../model/limits.ts'
import type { CursorDescription } from '../model/views.ts'
import { CommitWaits } from './commit-waits.ts'
import { DEAD, type DeliveryRecord, HELD, IN_FLIGHT, READY, SETTLED } from './delivery.ts'
import { DeliveryMark } from './delivery-mark.ts'
import { Deque } from './deque.ts'
import { dropTo, overtakenReason } from './drop.ts'
import { KeyChains } from './key-chains.ts'
import { type LagPolicy, lagPolicyFor } from './lag.ts'
import type { Member } from './member.ts'
import type { Partition } from './partition.ts'
import { LOAD_BYTES, LOAD_RETRY_MS, Pump } from './pump.ts'
import type { DropReason, Reader } from './reader.ts'
import type { CursorState } from './restored.ts'
import { Window } from './window.ts'

export class Cursor {
  // First what every record touches, and together: of 10,000 readers nothing stays in a cache, and each line counts.
  readonly window: Window
  readonly log: PartitionLog
  /** The one member its records go to; null where several share, or nobody is there. */
  only: Member | null = null
  /** Whether that member takes its records one by one, and all there is to a delivery is to call the handler. */
  isPlain: boolean = false
  /** And no mark has to be stored or looked at before. */
  isPlainAtEnd: boolean = false
  /** Changes when something pulled the rug from under a running pump. */
  stamp: number = 0
  inFlight: number = 0
  dirty: boolean = false
  /** Whether it holds the log against eviction; the partition's to set. */
  holds: boolean = false
  /** Whether the current run of drops was logged. */
  dropLogged: boolean = false
  readonly reader: Reader
  #waits: CommitWaits | null = null
  closed: boolean = false
  readonly #atMostOnce: boolean
  readonly policy: LagPolicy | null
  readonly byPartition: boolean
  readonly byKey: boolean
  readonly partition: Partition
  readonly pump: Pump
  readonly mark: DeliveryMark
  /** Handed out before, or held back until now: they go first. By partition the window's head does. */
  readonly ready: Deque<DeliveryRecord> = new Deque()
  /** Set aside by the delivery strategy until a member has room. */
  readonly aside: Deque<DeliveryRecord> = new Deque()
  readonly chains: KeyChains = new KeyChains()
  /** The only member that gets its records, for partition-assigned groups. */
  owner: Member | null = null
  /** Owns it next, once what is in flight has ended. `undefined`: no change is due. */
  #heir: Member | null | undefined = undefined
  /** Has what is in flight, while a change is due. */
  #former: Member | null = null
  /** Whether a member elsewhere has the partition: then it hands out nothing, holds nothing, and stands where commits put it. */
  isAway: boolean = false
  /** Whether where it stands is its group's place. Not so where members elsewhere read and nobody has committed yet. */
  isPlaced: boolean = true
  /** Members of the reader that read this topic. */
  members: readonly Member[] = []
  retrying: number = 0
  dropped: number = 0
  /** Below it, what is not in flight was dropped. */
  droppedBelow: number = 0
  /** What its policy wants to keep is being loaded. */
  #releasing = false

  constructor(reader: Reader, partition: Partition, at: number, stored?: CursorState) {
    this.reader = reader
    this.#atMostOnce = reader.atMostOnce
    this.partition = partition
    this.log = partition.log
    this.window = new Window(at)
    this.policy = lagPolicyFor(this)
    if (this.policy !== null) partition.topic.hasLagPolicies = true
    this.byPartition = reader.settings.order === 'partition'
    this.byKey = reader.settings.order === 'key'
    this.mark = new DeliveryMark(this, at, stored)
    this.pump = new Pump(this)
  }

  /** What is committed: at most once before the hand-out, at least once after the settle. */
  get position(): number {
    return this.#atMostOnce ? this.window.next : this.window.committed
  }

  /** The lowest offset it still needs of the log, while it holds it. */
  get holdFrom(): number {
    return this.policy?.holdFrom?.() ?? this.position
  }

  get lag(): number {
    return this.log.marks.high - this.position
  }

  /** Who has it, or has what is in flight of it. */
  get holder(): Member | null {
    return this.#heir === undefined ? this.owner : this.#former
  }

  /** Whether something of it is in somebody's hands, or on its way to the dead letters. */
  get isBusy(): boolean {
    if (this.inFlight > 0) return true
    for (const { state } of this.window) if (state === DEAD) return true
    return false
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
    const before = this.window.committed
    this.#leave(record, record.offset)
    if (this.window.committed !== before) this.moved()
    this.pump.unblock()
    if (this.owner === null) this.reader.remote?.settled()
  }

  #leave(record: DeliveryRecord, offset: number): void {
    const { window } = this
    if (this.policy !== null) this.policy.leaves(record.columns.sizeAt(record.row))
    window.leave(offset)
    if (this.chains.size > 0) this.#unlockKey(record)
    // Also beyond the watermark: what was settled there is stored, too.
    if (!this.dirty) this.reader.ctx.commits.changed(this)
  }

  /**
   * `Settle.ack` for the pump: a record that settled within the call of its handler, at-least-once. That the
   * cursor moved is said once, when the pump comes to rest.
   */
  ackNow(record: DeliveryRecord, offset: number): void {
    record.state = SETTLED
    this.inFlight--
    ;(record.member as Member).counters.acked++
    this.#leave(record, offset)
    if (this.#heir !== undefined && this.inFlight === 0) this.#handOver()
  }

  /** `ackNow` of a cursor that is plain, for the one record in hand: nothing can have waited for it. */
  ackAlone(record: DeliveryRecord, offset: number): void {
    record.state = SETTLED
    this.inFlight--
    ;(record.member as Member).counters.acked++
    this.window.leave(offset)
  }

  /** The oldest of its key is settled: the next one may go. */
  #unlockKey(record: DeliveryRecord): void {
    const next = this.chains.remove(record)
    if (next !== undefined && next.state === HELD) this.reader.settle.next(next)
  }

  /** Committed or position moved. */
  moved(): void {
    if (!this.dirty) this.reader.ctx.commits.changed(this)
    if (this.holds && this.partition.pressed && !this.pump.running) this.partition.holderMoved(this)
    if (this.#waits !== null && this.#waits.length > 0) this.#waits.serve(this.position)
  }

  succeed(record: DeliveryRecord, successor: DeliveryRecord): void {
    if (!this.dirty) this.reader.ctx.commits.changed(this)
    this.window.replace(record.offset, successor)
    if (this.byKey) this.chains.replace(record, successor)
  }

  isHeldBack(record: DeliveryRecord): boolean {
    return this.byKey && this.chains.isBehind(record)
  }

  /** It came back alone from a batch that still has a later record of its key in hand: that one ends first. */
  waitsForMate(record: DeliveryRecord): boolean {
    let mate = record.extra?.nextOfKey ?? null
    // Behind the batch are those that were never handed out.
    while (mate !== null && (mate.state === DEAD || (mate.state === HELD && mate.redelivered))) {
      mate = mate.extra?.nextOfKey ?? null
    }
    if (mate?.state !== IN_FLIGHT) return false
    record.state = HELD
    return true
  }

  /** A record came back: those of its batch that came back before it may have waited for that. */
  mateReturned(record: DeliveryRecord): void {
    if (this.byPartition && this.inFlight === 0) this.pump.unblock()
    const head = record.extra?.chain?.head
    if (head?.state === HELD) this.reader.settle.next(head)
  }

  becomesReady(record: DeliveryRecord): void {
    record.state = READY
    if (!this.byPartition) this.ready.push(record)
    this.pump.wakeFromIdle()
  }

  retryIsDue(record: DeliveryRecord): void {
    this.retrying--
    this.becomesReady(record)
  }

  /** A member has room again: what the strategy set aside is asked for again. */
  askAgain(): void {
    for (let record = this.aside.shift(); record !== undefined; record = this.aside.shift()) {
      if (record.state === HELD) this.becomesReady(record)
    }
  }

  /** New rows, within the window, the stored mark and the overflow policy. */
  peek(most: number, into: Slice): PeekResult {
    const { log, mark, policy, window } = this
    const span = window.unsettled === 0 ? 0 : window.next - window.committed
    if (mark.runsLow) mark.ahead()
    const max = Math.min(most, mark.allowed - window.next, MAX_WINDOW - span)
    if (max <= 0) return 'end'
    return policy === null ? log.peek(window.next, max, 'committed', into) : policy.peek(max, into)
  }

  /** Passes over offsets without records: markers, what compaction left out. */
  passTo(next: number): void {
    if (next <= this.window.next) return
    this.window.skip(next)
    this.moved()
  }

  // ── overflow ──────────────────────────────────────────────────────────────────────────────────

  /** Evaluates overflow now: before records are handed out, and for a cursor that is stuck. */
  sweep(): void {
    if (this.isAway) return
    if (this.policy !== null) this.policy.apply()
    else if (this.position < this.log.marks.start) {
      dropTo(this, this.log.marks.start, overtakenReason(this))
    }
  }

  countDropped(count: number, from: number, to: number, reason: DropReason): void {
    this.dropped += count
    this.reader.noteDropped(this, count, from, to, reason)
  }

  /** Lets go of the log, where its policy keeps records of its own; what is not resident is loaded first. */
  releaseLog(): void {
    if (this.#releasing) return
    const missing = this.policy?.release?.()
    if (missing === undefined) return
    this.#releasing = true
    const { dispatcher, due } = this.reader.ctx
    const done = (): void => {
      this.#releasing = false
      dispatcher.deactivate()
      this.partition.wake()
    }
    dispatcher.activate()
    this.log.load(missing, LOAD_BYTES, 'committed').then(done, (error: unknown) => {
      if (this.closed) return done()
      this.reader.raise(error, 'reading what overflow is about to evict')
      due.after(LOAD_RETRY_MS, done)
    })
  }

  // ── replay, ownership, end ────────────────────────────────────────────────────────────────────

  /** Starts again at `at`: fences what is in flight, cancels retries, forgets attempts. */
  reset(at: number, reason: string = 'a replay moved its reader'): void {
    this.stamp++
    this.isPlaced = true
    for (const record of this.window) this.reader.settle.fence(record, reason)
    this.ready.clear()
    this.aside.clear()
    this.chains.clear()
    this.pump.linger.cancel()
    this.window.reset(at)
    this.inFlight = 0
    this.droppedBelow = 0
    this.policy?.reset()
    this.mark.reset(at)
    this.moved()
    this.partition.holdersChanged()
    this.pump.startOver()
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
    this.isPlain = this.byPartition && this.policy === null && this.only?.isPlain === true
    this.isPlainAtEnd = this.isPlain && this.mark.isIdle
    this.stamp++
  }

  /** A rebalance: the partition goes to `member` once nothing is in flight, or at once if it had it all along. */
  assign(member: Member | null): void {
    if (this.#heir === undefined) {
      if (this.owner === member) return
      this.#former = this.owner
    }
    this.#heir = member
    if (this.inFlight === 0 || member === this.#former) this.#handOver()
    else this.#own(null)
  }

  #handOver(): void {
    const heir = this.#heir as Member | null
    this.#heir = undefined
    this.#former = null
    this.#own(heir)
    if (heir === null) this.reader.remote?.settled()
  }

  #own(member: Member | null): void {
    this.pump.unpark()
    this.owner = member
    if (member !== null) this.isPlaced = true
    this.#relink()
    this.pump.unblock()
  }

  /** The partition is a member's elsewhere from now on. Nothing is busy here; what came back is that one's, too. */
  goAway(): void {
    if (this.isAway) return
    this.assign(null)
    this.isAway = true
    this.partition.setHolds(this, false)
    if (this.isPlaced) this.reset(this.position, 'its partition went to another member')
  }

  /** It is not: from now on it may be assigned. `holds`: whether its reader holds the log. */
  comeBack(holds: boolean): void {
    if (!this.isAway) return
    this.isAway = false
    this.partition.setHolds(this, holds)
  }

  /** Nobody reads it for now: what is stored from here on says no more than what happened. */
  rest(): void {
    this.mark.release()
    this.reader.ctx.commits.changed(this)
  }

  state(): CursorState {
    return this.mark.state()
  }

  /** Resolves once everything below `offset` is settled. @throws OdradekError ABORTED, and why it closed */
  waitFor(offset: number, signal?: AbortSignal): Promise<void> {
    if (this.position >= offset) return Promise.resolve()
    this.#waits ??= new CommitWaits()
    return this.#waits.until(offset, signal)
  }

  /** Leaves the partition for good: nothing is handed out any more, what is in flight is fenced. */
  close(error: OdradekError): void {
    this.closed = true
    this.stamp++
    for (const record of this.window) this.reader.settle.fence(record, messageOf(error))
    this.ready.clear()
    this.aside.clear()
    this.chains.clear()
    this.pump.stop()
    this.#waits?.fail(error)
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
      owner: this.owner?.id ?? this.reader.remote?.ownerOf(this) ?? null,
      gating: this.holds,
    }
  }
}
