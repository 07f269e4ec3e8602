/**
 * A partition as the core sees it: its log, the readers that hold it, the publishers that wait for room.
 *
 *   start ─────────── gate ─────────── end         gate: the lowest offset a holder still needs;
 *     │  may be evicted │   held        │           a stale, lower value only costs a look
 *
 * The gate is cached in the log and recomputed only when the log is full against it, or when the one
 * cursor that defines it moves while somebody waits. So holding a log costs nothing per record.
 *
 * Concurrency: everything here runs to completion on one thread; `append` and `appendOne` are the
 * critical section of a publish and call no user code.
 */
import type { Appended, PartitionLog, Refusal } from '../log/contract.ts'
import { NO_ROOM } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import type { OdradekError } from '../model/errors.ts'
import { DRAIN_AT, PRESSURE_AT, STALLED_AFTER_MS } from '../model/limits.ts'
import type { Key, RecordHeaders } from '../model/record.ts'
import type { PartitionDescription } from '../model/views.ts'
import type { CoreContext } from './context.ts'
import type { Cursor } from './cursor.ts'
import { Deque } from './deque.ts'
import { Due } from './due-queue.ts'
import type { Reader } from './reader.ts'
import type { Topic } from './topic.ts'
import type { Waiter } from './waiting.ts'

/** Publishers wait and nothing settles: says so. */
class StalledDue extends Due {
  readonly #partition: Partition

  constructor(partition: Partition) {
    super()
    this.#partition = partition
  }

  override fire(): void {
    this.#partition.checkStalled()
  }
}

export class Partition {
  readonly topic: Topic
  readonly index: number
  readonly log: PartitionLog
  /** Somebody waits for room or for relief: settles of holders matter at once. */
  pressed: boolean = false
  /** Cursors that wait at the end of the log. */
  idle: Cursor[] = []
  readonly #ctx: CoreContext
  readonly #cursors = new Set<Cursor>()
  readonly #holders = new Set<Cursor>()
  readonly #waiters = new Deque<Waiter>()
  readonly #stalled = new StalledDue(this)
  readonly #unlisten: () => void
  #queued = false
  #gate = Number.POSITIVE_INFINITY
  #gateHolder: Cursor | null = null
  #sweptStart = 0
  /** Offset from which on pressure is looked at again. */
  #pressureFrom = 0
  #underPressure = false
  #progressAt = 0

  constructor(topic: Topic, index: number, log: PartitionLog, ctx: CoreContext) {
    this.topic = topic
    this.index = index
    this.log = log
    this.#ctx = ctx
    this.#unlisten = log.onAdvance(() => this.#wake())
    this.#wake()
  }

  // ── waking readers ────────────────────────────────────────────────────────────────────────────

  #wake(): void {
    if (this.#queued) return
    this.#queued = true
    this.#ctx.dispatcher.wakePartition(this)
  }

  /** The dispatcher's turn: cursors at the end may go on, stuck ones learn what they missed. */
  wakeCursors(): void {
    this.#queued = false
    const woken = this.idle
    if (woken.length > 0) {
      this.idle = []
      for (const cursor of woken) {
        cursor.idleIndex = -1
        cursor.pump.wake()
      }
    }
    const { start } = this.log.marks
    if (start !== this.#sweptStart || this.topic.hasLagPolicies) {
      this.#sweptStart = start
      for (const cursor of this.#cursors) cursor.sweep()
    }
    if (this.#waiters.length > 0) this.serve()
  }

  rest(cursor: Cursor): void {
    cursor.idleIndex = this.idle.length
    this.idle.push(cursor)
  }

  unidle(cursor: Cursor): void {
    const at = cursor.idleIndex
    if (at < 0) return
    cursor.idleIndex = -1
    const last = this.idle.pop() as Cursor
    if (last !== cursor) {
      this.idle[at] = last
      last.idleIndex = at
    }
  }

  add(cursor: Cursor): void {
    this.#cursors.add(cursor)
  }

  remove(cursor: Cursor): void {
    this.unidle(cursor)
    this.#cursors.delete(cursor)
    this.setHolds(cursor, false)
  }

  // ── the gate ──────────────────────────────────────────────────────────────────────────────────

  setHolds(cursor: Cursor, on: boolean): void {
    if (cursor.holds === on) return
    cursor.holds = on
    if (on) this.#holders.add(cursor)
    else this.#holders.delete(cursor)
    this.holdersChanged()
  }

  /** A holder came, went, or moved back. */
  holdersChanged(): void {
    this.#refreshGate(null)
    this.#pressureFrom = 0
    if (this.pressed) this.#relieved()
  }

  /** A holder moved on, while somebody waits for that. */
  holderMoved(cursor: Cursor): void {
    this.#progressAt = this.#ctx.dispatcher.tick
    if (cursor === this.#gateHolder && this.#refreshGate(null)) this.#relieved()
  }

  #relieved(): void {
    this.serve()
    if (this.#underPressure && this.pressure() <= DRAIN_AT) {
      this.#underPressure = false
      this.#pressureFrom = 0
      this.#updatePressed()
      this.topic.drained()
    }
  }

  /** Recomputes the gate, without `except`'s hold; whether it moved. */
  #refreshGate(except: Reader | null): boolean {
    let gate = Number.POSITIVE_INFINITY
    let holder: Cursor | null = null
    for (const cursor of this.#holders) {
      if (cursor.reader === except) continue
      const from = cursor.holdFrom
      if (from < gate) {
        gate = from
        holder = cursor
      }
    }
    this.#gateHolder = holder
    if (gate === this.#gate) return false
    this.#gate = gate
    this.log.gate(gate)
    return true
  }

  // ── appending ─────────────────────────────────────────────────────────────────────────────────

  /** One record, if there is room: its offset, or NO_ROOM. `exempt`'s own hold does not count. */
  appendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    sizeBytes: number,
    exempt: Reader | null,
  ): number {
    const now = this.#ctx.clock.now()
    let offset = this.log.tryAppendOne(value, key, headers, now, sizeBytes)
    if (offset === NO_ROOM) {
      if (this.#makesRoom(1, sizeBytes)) offset = this.log.tryAppendOne(value, key, headers, now, sizeBytes)
      else if (this.#roomFor(exempt, 1, sizeBytes)) {
        offset = this.log.tryAppendOne(value, key, headers, now, sizeBytes, 'exempt')
      }
      if (offset === NO_ROOM) return NO_ROOM
    }
    if (offset >= this.#pressureFrom) this.#checkPressure(offset)
    return offset
  }

  /** All of a batch, or nothing. */
  append(batch: Batch, exempt: Reader | null): Appended | Refusal {
    this.#stamp(batch)
    let result = this.log.tryAppend(batch)
    if (result === 'NO_ROOM') {
      if (this.#makesRoom(batch.count, batch.sizeBytes)) result = this.log.tryAppend(batch)
      else if (this.#roomFor(exempt, batch.count, batch.sizeBytes))
        result = this.log.tryAppend(batch, 'exempt')
    }
    if (typeof result !== 'string' && result.last >= this.#pressureFrom) this.#checkPressure(result.last)
    return result
  }

  /** Through every gate: for dead letters. */
  appendForced(batch: Batch): Appended | Refusal {
    this.#stamp(batch)
    return this.log.tryAppend(batch, 'force')
  }

  #stamp(batch: Batch): void {
    if (batch.columns !== null) batch.columns.timestamp = this.#ctx.clock.now()
  }

  hasRoom(records: number, sizeBytes: number): boolean {
    return (
      this.#waiters.length === 0 &&
      (this.log.hasRoom(records, sizeBytes) || this.#makesRoom(records, sizeBytes))
    )
  }

  /** Whether a batch would be accepted now, by somebody who need not stand in line. */
  fits(batch: Batch, exempt: Reader | null): boolean {
    const { count, sizeBytes } = batch
    return (
      this.log.hasRoom(count, sizeBytes) ||
      this.#makesRoom(count, sizeBytes) ||
      (this.#roomFor(exempt, count, sizeBytes) && this.log.hasRoom(count, sizeBytes, 'exempt'))
    )
  }

  get waiting(): number {
    return this.#waiters.length
  }

  /** The cached gate was too low, or a drop-newest reader can let go. */
  #makesRoom(records: number, sizeBytes: number): boolean {
    for (const cursor of this.#holders) cursor.releaseLog()
    return this.#refreshGate(null) && this.log.hasRoom(records, sizeBytes)
  }

  /** Whether only `exempt`'s own hold is in the way. */
  #roomFor(exempt: Reader | null, records: number, sizeBytes: number): boolean {
    if (exempt === null) return false
    this.#refreshGate(exempt)
    const room = this.log.hasRoom(records, sizeBytes)
    this.#refreshGate(null)
    return room
  }

  /** Whether a reader that wants FULL is among those in the way. */
  rejects(records: number, sizeBytes: number): boolean {
    for (const cursor of this.#holders) {
      if (cursor.reader.settings.overflow !== 'reject') continue
      this.log.gate(cursor.holdFrom)
      const room = this.log.hasRoom(records, sizeBytes)
      this.log.gate(this.#gate)
      if (!room) return true
    }
    return false
  }

  // ── waiting publishers ────────────────────────────────────────────────────────────────────────

  wait(waiter: Waiter): void {
    this.#waiters.push(waiter)
    if (!this.pressed) this.#progressAt = this.#ctx.clock.monotonic()
    this.#updatePressed()
    if (this.#stalled.heapIndex < 0) {
      this.#ctx.due.schedule(this.#stalled, this.#ctx.clock.monotonic() + STALLED_AFTER_MS)
    }
  }

  isHead(waiter: Waiter): boolean {
    this.#dropDone()
    return this.#waiters.peek() === waiter
  }

  serve(): void {
    for (;;) {
      this.#dropDone()
      const first = this.#waiters.peek()
      if (first === undefined || !first.tryServe(this)) break
      this.#dropDone()
    }
    this.#updatePressed()
  }

  /** A waiter gave up; the one behind it may fit. */
  waiterLeft(): void {
    this.#wake()
  }

  failWaiters(error: OdradekError): void {
    for (const waiter of [...this.#waiters]) waiter.fail(error)
    this.#dropDone()
    this.#updatePressed()
  }

  #dropDone(): void {
    while (this.#waiters.peek()?.done === true) this.#waiters.shift()
  }

  #updatePressed(): void {
    this.pressed = this.#waiters.length > 0 || this.#underPressure
    if (this.#waiters.length === 0) this.#ctx.due.cancel(this.#stalled)
  }

  checkStalled(): void {
    this.#dropDone()
    this.#updatePressed()
    if (this.#waiters.length === 0) return
    const now = this.#ctx.clock.monotonic()
    let next = this.#progressAt + STALLED_AFTER_MS
    if (next <= now) {
      next = now + STALLED_AFTER_MS
      const reader = this.#gateHolder?.reader.name
      if (reader !== undefined) {
        this.#ctx.events.raise('stalled', {
          topic: this.topic.name,
          partition: this.index,
          reader,
          reason: 'publishers-waiting',
        })
      }
    }
    this.#ctx.due.schedule(this.#stalled, next)
  }

  // ── pressure ──────────────────────────────────────────────────────────────────────────────────

  /** Share of the retention that holders keep from eviction, 0 to 1. Bytes are estimated by share. */
  pressure(): number {
    if (this.#holders.size === 0) return 0
    this.#refreshGate(null)
    const { log } = this
    const { start, end } = log.marks
    const held = end - Math.max(this.#gate, start)
    if (held <= 0 || log.records === 0) return 0
    const { records, bytes } = this.topic.retention
    return Math.min(1, Math.max(held / records, (log.sizeBytes * (held / log.records)) / bytes))
  }

  #checkPressure(offset: number): void {
    if (this.#underPressure) {
      this.#pressureFrom = Number.POSITIVE_INFINITY
      return
    }
    const pressure = this.pressure()
    if (pressure >= PRESSURE_AT) {
      this.#underPressure = true
      this.#pressureFrom = Number.POSITIVE_INFINITY
      this.#updatePressed()
      this.topic.pressed(pressure)
      return
    }
    // Even if every record to come were held and of average size, the mark cannot be crossed before this.
    const records = Math.min(this.topic.retention.records, this.log.records * 2)
    this.#pressureFrom = offset + Math.max(1, Math.floor(((PRESSURE_AT - pressure) * records) / 2))
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  describe(): PartitionDescription {
    const { start, stable, high, end } = this.log.marks
    return {
      partition: this.index,
      start,
      stable,
      high,
      end,
      records: this.log.records,
      sizeBytes: this.log.sizeBytes,
      waiting: [...this.#waiters].filter((waiter) => !waiter.done).length,
    }
  }

  close(error: OdradekError): void {
    this.failWaiters(error)
    this.#ctx.due.cancel(this.#stalled)
    this.#unlisten()
  }
}
