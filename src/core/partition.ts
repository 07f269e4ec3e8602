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
import type { Appended, PartitionLog, Refusal, RoomMode } from '../log/contract.ts'
import { NO_ROOM } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import type { Clock } from '../model/clock.ts'
import type { OdradekError } from '../model/errors.ts'
import { DRAIN_AT, PRESSURE_AT } from '../model/limits.ts'
import type { Key, RecordHeaders } from '../model/record.ts'
import type { PartitionDescription } from '../model/views.ts'
import type { CoreContext } from './context.ts'
import type { Cursor } from './cursor.ts'
import { FlushWatch } from './flush-watch.ts'
import { IdlePumps } from './idle-pumps.ts'
import { Line } from './line.ts'
import type { Reader } from './reader.ts'
import type { Topic } from './topic.ts'

/** Pressure is looked at after fewer records than this only when they are large. */
const PRESSURE_STRIDE = 64
/**
 * Room is given out in portions: an eighth of what is held, at most this many records. Serving a publisher for every
 * record that a reader settles would cost more than the record: a walk over holders, a promise, a place in line.
 */
const MAX_PORTION = 1_024

export class Partition {
  readonly topic: Topic
  readonly index: number
  readonly log: PartitionLog
  /** Who waits for room. */
  readonly line: Line
  /** Somebody waits for room or for relief: settles of holders matter at once. */
  pressed: boolean = false
  /** What is taken and not durable yet. */
  readonly flushes: FlushWatch
  /** Who waits at the end of the log. */
  readonly idle: IdlePumps = new IdlePumps()
  /** Called when marks have moved, once for many moves, and when this ends: for who waits and is no reader. */
  readonly watchers: Set<() => void> = new Set()
  readonly #ctx: CoreContext
  readonly #clock: Clock
  readonly #cursors = new Set<Cursor>()
  readonly #holders = new Set<Cursor>()
  readonly #unlisten: () => void
  #queued = false
  /** Marks moved since the cursors were told. */
  #news = false
  #gate = Number.POSITIVE_INFINITY
  #gateHolder: Cursor | null = null
  /** A holder that gets here has a portion of room to give. */
  #reliefAt = 0
  /** Less than a portion has come together; the next turn of the event loop gives it out. */
  #reliefDue = false
  /** Somebody asks for room: nobody is let in before he has his answer. */
  #asking = false
  #sweptStart = 0
  /** Pressure is looked at again from this offset on, or by a record larger than this. */
  #pressureFrom = 0
  #largeBytes = 0
  #underPressure = false

  constructor(topic: Topic, index: number, log: PartitionLog, ctx: CoreContext) {
    this.topic = topic
    this.index = index
    this.log = log
    this.#ctx = ctx
    this.#clock = ctx.clock
    this.line = new Line(this, ctx)
    this.flushes = new FlushWatch(log, ctx.dispatcher, (error) =>
      ctx.events.error(error, `making records of "${topic.name}" partition ${index} durable`),
    )
    this.#unlisten = log.onAdvance(() => this.wake())
    this.wake()
  }

  // ── waking readers ────────────────────────────────────────────────────────────────────────────

  wake(): void {
    this.#news = true
    if (this.#queued) return
    this.#queued = true
    this.#ctx.dispatcher.enqueue(this)
  }

  /** The dispatcher's turn: cursors at the end go on, stuck ones learn what they missed. */
  run(budget: number): number {
    const { idle } = this
    if (!idle.areWaking) this.#tell()
    const handed = idle.run(budget, this.log)
    const { dispatcher } = this.#ctx
    // Who was at the end goes before those that have more to do; what came meanwhile waits like anybody's.
    if (idle.areWaking) dispatcher.goOn(this)
    else if (this.#news) dispatcher.enqueue(this)
    else this.#queued = false
    return handed
  }

  #tell(): void {
    this.#news = false
    this.idle.wakeAll()
    const { start } = this.log.marks
    if (start !== this.#sweptStart || this.topic.hasLagPolicies) {
      this.#sweptStart = start
      for (const cursor of this.#cursors) cursor.sweep()
    }
    if (this.line.length > 0) this.#relieveSoon()
    for (const watcher of this.watchers) watcher()
  }

  add(cursor: Cursor): void {
    this.#cursors.add(cursor)
  }

  remove(cursor: Cursor): void {
    this.#cursors.delete(cursor)
    this.setHolds(cursor, false)
  }

  // ── the gate ──────────────────────────────────────────────────────────────────────────────────

  /** Who leaves changes nothing either, as long as nobody waits: the gate stays too low until somebody looks. */
  setHolds(cursor: Cursor, on: boolean): void {
    if (cursor.holds === on) return
    cursor.holds = on
    if (on) this.#holders.add(cursor)
    else this.#holders.delete(cursor)
    if (this.pressed || (on && !this.#isOneOfMany(cursor))) this.holdersChanged()
    else if (cursor === this.#gateHolder) this.#gateHolder = null
  }

  /** Who needs no more than another of its kind changes nothing for anybody: 10,000 that come do not look at each other. */
  #isOneOfMany(cursor: Cursor): boolean {
    const holder = this.#gateHolder
    if (holder === null || holder === cursor || cursor.holdFrom < this.#gate) return false
    return holder.reader.settings.overflow === cursor.reader.settings.overflow
  }

  /** A holder came, went, or moved back, or what is retained changed. */
  holdersChanged(): void {
    this.#refreshGate()
    if (this.pressed) this.#relieved()
    this.#checkPressure(this.log.marks.end)
  }

  /** A holder moved on, while somebody waits for that: a portion is given out at once, less in the next turn. */
  holderMoved(cursor: Cursor): void {
    this.line.progressed()
    if (cursor !== this.#gateHolder && !this.line.hasHandlers) return
    if (!this.#asking && cursor.holdFrom >= this.#reliefAt) this.#relieve()
    else this.#relieveSoon()
  }

  #relieveSoon(): void {
    if (this.#reliefDue) return
    this.#reliefDue = true
    void this.#ctx.dispatcher.turn().then(() => {
      this.#reliefDue = false
      this.#relieve()
    })
  }

  #relieve(): void {
    this.#refreshGate()
    this.#relieved()
  }

  /** Gives up what lies below `before`, as far as no holder needs it. */
  trim(before: number): Promise<void> {
    this.#refreshGate()
    return this.log.trim(before)
  }

  /** Age takes what no holder needs; a gate that was not looked at for long would keep it. */
  expire(now: number): void {
    this.#refreshGate()
    this.log.expire(now)
  }

  #relieved(): void {
    if (this.line.length > 0) this.line.serve()
    if (!this.#underPressure || this.pressure() > DRAIN_AT) return
    this.#underPressure = false
    this.lineChanged()
    this.topic.drained()
    this.#checkPressure(this.log.marks.end)
  }

  /** Recomputes the gate; whether it moved. */
  #refreshGate(): boolean {
    let gate = Number.POSITIVE_INFINITY
    let holder: Cursor | null = null
    for (const cursor of this.#holders) {
      const from = cursor.holdFrom
      if (from < gate) {
        gate = from
        holder = cursor
      }
    }
    this.#gateHolder = holder
    const { end } = this.log.marks
    this.#reliefAt = Math.min(end, gate + Math.max(1, Math.min(MAX_PORTION, (end - gate) >> 3)))
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
    const now = this.#clock.now()
    const offset = this.log.tryAppendOne(value, key, headers, now, sizeBytes)
    if (offset < 0)
      return offset === NO_ROOM ? this.#appendOneAfterAll(value, key, headers, sizeBytes, exempt) : offset
    if (offset >= this.#pressureFrom || sizeBytes > this.#largeBytes) this.#checkPressure(offset + 1)
    return offset
  }

  /** There seemed to be no room. Apart, since what is short is inlined by its caller. */
  #appendOneAfterAll(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    sizeBytes: number,
    exempt: Reader | null,
  ): number {
    let mode: RoomMode = 'gated'
    if (!this.#makesRoom(1, sizeBytes)) {
      if (!this.#roomFor(exempt, 1, sizeBytes)) return NO_ROOM
      mode = 'exempt'
    }
    const offset = this.log.tryAppendOne(value, key, headers, this.#clock.now(), sizeBytes, mode)
    if (offset >= this.#pressureFrom || sizeBytes > this.#largeBytes) this.#checkPressure(offset + 1)
    return offset
  }

  /** All of a batch that `fits`, or nothing. */
  append(batch: Batch, exempt: Reader | null): Appended | Refusal {
    this.#stamp(batch)
    let result = this.log.tryAppend(batch)
    if (result === 'NO_ROOM' && exempt !== null) result = this.log.tryAppend(batch, 'exempt')
    if (typeof result === 'string') return result
    if (result.last >= this.#pressureFrom || batch.sizeBytes > this.#largeBytes) {
      this.#checkPressure(result.last + 1)
    }
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
      this.line.length === 0 && (this.log.hasRoom(records, sizeBytes) || this.#makesRoom(records, sizeBytes))
    )
  }

  /** Whether no eviction could ever make room for it. */
  isTooLarge({ count, sizeBytes }: Batch): boolean {
    const { records, bytes } = this.topic.retention
    return count > records || sizeBytes > bytes
  }

  /** Whether an append now would not be told to wait. */
  fits(batch: Batch, exempt: Reader | null): boolean {
    const { count, sizeBytes } = batch
    return (
      this.log.hasRoom(count, sizeBytes) ||
      this.#makesRoom(count, sizeBytes) ||
      (this.#roomFor(exempt, count, sizeBytes) && this.log.hasRoom(count, sizeBytes, 'exempt')) ||
      this.isTooLarge(batch)
    )
  }

  /** The cached gate was too low, or a drop-newest reader can let go. */
  #makesRoom(records: number, sizeBytes: number): boolean {
    this.#asking = true
    for (const cursor of this.#holders) cursor.releaseLog()
    this.#asking = false
    this.#refreshGate()
    return this.log.hasRoom(records, sizeBytes)
  }

  /** Whether only `exempt`'s own hold is in the way. */
  #roomFor(exempt: Reader | null, records: number, sizeBytes: number): boolean {
    if (exempt === null) return false
    let gate = Number.POSITIVE_INFINITY
    for (const cursor of this.#holders) {
      if (cursor.reader !== exempt) gate = Math.min(gate, cursor.holdFrom)
    }
    return this.#roomAbove(gate, records, sizeBytes)
  }

  /** Whether there would be room if everything below `gate` could go. */
  #roomAbove(gate: number, records: number, sizeBytes: number): boolean {
    const { log } = this
    const retention = this.topic.retention
    return (
      log.marks.end - gate + records <= retention.records &&
      log.bytesFrom(gate) + sizeBytes <= retention.bytes
    )
  }

  /** A reader that wants FULL, if one is among those in the way. */
  rejecter({ count, sizeBytes }: Batch, exempt: Reader | null): Reader | undefined {
    for (const { reader, holdFrom } of this.#holders) {
      if (reader === exempt || reader.settings.overflow !== 'reject') continue
      if (!this.#roomAbove(holdFrom, count, sizeBytes)) return reader
    }
    return undefined
  }

  // ── waiting publishers and pressure ───────────────────────────────────────────────────────────

  /** Somebody began to wait, or nobody waits any more. */
  lineChanged(): void {
    this.pressed = this.line.length > 0 || this.#underPressure
  }

  /** The reader that needs the oldest record of all, where that is what a batch waits for. */
  inTheWay({ count, sizeBytes }: Batch): string | undefined {
    this.#refreshGate()
    if (this.#gateHolder === null || this.#roomAbove(this.#gate, count, sizeBytes)) return undefined
    return this.#gateHolder.reader.name
  }

  /** A batch has waited for long. Where no reader is in its way, the engine is behind, and says so itself. */
  raiseStalled(batch: Batch): void {
    const reader = this.inTheWay(batch)
    if (reader === undefined) return
    this.#ctx.events.raise('stalled', {
      topic: this.topic.name,
      partition: this.index,
      reader,
      reason: 'publishers-waiting',
    })
  }

  /** Share of the retention that readers who make publishers wait keep from eviction, 0 to 1. */
  pressure(): number {
    const { log } = this
    const { start, end } = log.marks
    let gate = end
    for (const { reader, holdFrom } of this.#holders) {
      if (reader.settings.overflow !== 'drop-newest') gate = Math.min(gate, Math.max(holdFrom, start))
    }
    const { records, bytes } = this.topic.retention
    return Math.min(1, Math.max((end - gate) / records, log.bytesFrom(gate) / bytes))
  }

  /** Whether it is above the lower mark. Then it says so when it no longer is. */
  staysPressed(): boolean {
    this.#underPressure = this.pressure() > DRAIN_AT
    this.lineChanged()
    return this.#underPressure
  }

  #checkPressure(end: number): void {
    this.#pressureFrom = Number.POSITIVE_INFINITY
    this.#largeBytes = Number.POSITIVE_INFINITY
    if (this.#underPressure || this.#holders.size === 0) return
    const pressure = this.pressure()
    const left = PRESSURE_AT - pressure
    if (left <= 0) {
      // From now on it matters who defines the gate: that one may have left.
      this.#refreshGate()
      this.#underPressure = true
      this.lineChanged()
      this.topic.pressed(pressure)
      return
    }
    // Even if every record to come were held and as large as this, the mark could not be crossed before.
    const { records, bytes } = this.topic.retention
    const usual = this.log.sizeBytes / Math.max(1, this.log.records)
    this.#largeBytes = Math.max(2 * usual, (left * bytes) / PRESSURE_STRIDE)
    const byBytes = bytes === Number.POSITIVE_INFINITY ? records : bytes / this.#largeBytes
    const least = Math.floor(left * Math.min(records, byBytes))
    this.#pressureFrom = end - 1 + Math.max(1, least)
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
      waiting: this.line.length,
    }
  }

  close(error: OdradekError): void {
    this.line.fail(error)
    this.#unlisten()
    for (const watcher of this.watchers) watcher()
  }
}
