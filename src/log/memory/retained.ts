/**
 * The records that a log retains: its segments, what they may amount to, and when the oldest give way.
 *
 *   start            gate                              end
 *   │ may be evicted │ needed by a reader that waits   │ room? │
 *
 * - `start` is exact for every record; memory is given back by whole segments, so at most a sixteenth of
 *   retention, plus one record or batch, is held beyond it.
 * - Room is found before anything is evicted, so that a refused append changes nothing and an accepted one
 *   evicts exactly what it needs, never past the gate unless forced.
 *
 * Of the marks this moves `start`; the log moves the others. While a full log takes one record for one,
 * `start` slides by itself (marks.ts), and what it slid over is accounted for when somebody looks: an append
 * then touches the newest segment only.
 */
import { Columns } from '../../model/batch.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import { NO_ROOM, type RetentionLimits, type RoomMode } from '../contract.ts'
import type { BufferPool } from '../format/buffer-pool.ts'
import type { LiveMarks } from './marks.ts'
import { Segment, SegmentRing } from './segment.ts'
import { type BatchEntry, Slab } from './slab.ts'

/** Rows of a segment at most: enough to make its own cost vanish, few enough to be evicted whole. */
const MAX_ROWS = 1024
/** Rows a segment makes room for while nobody knows whether it will fill. */
const FIRST_ROWS = 16
/** A segment holds at most this share of retention, */
const SEGMENTS = 16
/** and, since it grows by copying, at most this much of wire batches. */
const MAX_SLAB_BYTES = 1024 * 1024
/** An exempt append may grow the log to this many times its retention. */
const EXEMPT_FACTOR = 2

export class Retained {
  readonly ring: SegmentRing = new SegmentRing()
  /** Nominal bytes from the marks' `floor` to `end`: all that is accounted for. */
  #sizeBytes = 0
  #gate = Number.POSITIVE_INFINITY
  /** Below this end, an append moves `start` at most within the first segment, and not past the gate. */
  #slidesUntil = 0

  readonly #marks: LiveMarks
  readonly #evicted: (segment: Segment) => void
  readonly #pool: BufferPool | undefined
  /** The newest segment, or one that is not in the ring where there is none to append to. */
  #tail: Segment = new Segment(0, new Columns(0), null)
  /** Room left in the tail for rows: 0 where it is full or holds wire batches. */
  #rowsLeft = 0
  #bytesLeft = 0
  #maxRecords = 0
  #maxBytes = 0
  #segmentRows = 0
  #segmentBytes = 0

  /** `evicted` is told of every segment that leaves. */
  constructor(marks: LiveMarks, evicted: (segment: Segment) => void, pool?: BufferPool) {
    this.#marks = marks
    this.#evicted = evicted
    this.#pool = pool
  }

  get gate(): number {
    return this.#gate
  }

  set gate(lowestNeeded: number) {
    this.#account()
    this.#gate = lowestNeeded
    this.#plan()
  }

  /** Nominal bytes from `start` to `end`. */
  get sizeBytes(): number {
    this.#account()
    return this.#sizeBytes
  }

  limit(retention: RetentionLimits): void {
    this.#account()
    this.#maxRecords = retention.records
    this.#maxBytes = retention.bytes
    this.#segmentRows = Math.min(MAX_ROWS, Math.ceil(retention.records / SEGMENTS))
    this.#segmentBytes = Math.ceil(retention.bytes / SEGMENTS)
    this.#plan()
  }

  /** Catches up on what `start` slid over. */
  #account(): void {
    const { floor, start } = this.#marks
    if (start > floor) this.#evict(start)
  }

  /** How far appends may go without a look at room. */
  #plan(): void {
    const marks = this.#marks
    const first = this.ring.length === 0 ? this.#tail : this.ring.at(0)
    const within = first === this.#tail ? first.base : first.next - 1
    marks.keep = this.#maxRecords
    marks.slideTo = Math.min(this.#gate, within)
    this.#slidesUntil = marks.slideTo + marks.keep
  }

  /** The segment of an offset from `start` to below `end`. */
  find(offset: number): Segment {
    const tail = this.#tail
    return offset >= tail.base ? tail : this.ring.at(this.ring.indexOf(offset))
  }

  /** Nominal bytes of what is kept from `offset` on. */
  bytesFrom(offset: number): number {
    if (offset <= this.#marks.start) return this.#sizeBytes
    const { ring } = this
    let bytes = 0
    for (let i = ring.length - 1; i >= 0; i--) {
      const segment = ring.at(i)
      if (segment.base < offset) {
        return offset < segment.next ? bytes + segment.bytesBetween(offset, segment.next) : bytes
      }
      bytes += segment.sizeBytes
    }
    return bytes
  }

  // ── adding ────────────────────────────────────────────────────────────────────────────────────

  /** Adds one record at the end; `timestamp` is not below that of the record pushed before. */
  push(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
  ): void {
    if (this.#rowsLeft === 0 || this.#bytesLeft <= 0) this.#rollColumns()
    const tail = this.#tail
    ;(tail.columns as Columns).push(value, key, headers, timestamp, sizeBytes)
    tail.next++
    tail.sizeBytes += sizeBytes
    tail.maxTimestamp = timestamp
    this.#rowsLeft--
    this.#bytesLeft -= sizeBytes
    this.#sizeBytes += sizeBytes
  }

  /** Adds a wire batch at the end, and answers where its bytes are. */
  pushBatch(bytes: Uint8Array, entry: BatchEntry): { slab: Slab; position: number } {
    const segment = this.#wireTail(bytes.length)
    const slab = segment.slab as Slab
    const position = slab.append(bytes, entry)
    segment.next = entry.next
    segment.sizeBytes += entry.sizeBytes
    if (entry.flags === 0) segment.maxTimestamp = Math.max(segment.maxTimestamp, entry.maxTimestamp)
    this.#sizeBytes += entry.sizeBytes
    return { slab, position }
  }

  /** Makes room for all rows at once where the segment before was filled. */
  #rollColumns(): void {
    const { wire, base, next } = this.#tail
    const rows = !wire && next - base >= this.#segmentRows ? this.#segmentRows : FIRST_ROWS
    this.#roll(new Segment(next, new Columns(next, rows), null))
    this.#rowsLeft = this.#segmentRows
    this.#bytesLeft = this.#segmentBytes
  }

  /** The newest segment if it takes this many more bytes of wire batches, else a new one that does. */
  #wireTail(bytes: number): Segment {
    const { wire, next, slab } = this.#tail
    const open = wire ? slab : null
    if (open === null || this.#bytesLeft < bytes || open.length >= this.#segmentRows) {
      const likeBefore = Math.min(open?.usedBytes ?? 0, MAX_SLAB_BYTES)
      this.#roll(new Segment(next, null, new Slab(next, Math.max(bytes, likeBefore), this.#pool)))
      this.#rowsLeft = 0
      this.#bytesLeft = Math.min(this.#segmentBytes, MAX_SLAB_BYTES)
    }
    this.#bytesLeft -= bytes
    return this.#tail
  }

  #roll(segment: Segment): void {
    this.#tail = segment
    this.ring.push(segment)
    this.#plan()
  }

  // ── room ──────────────────────────────────────────────────────────────────────────────────────

  /** The hot path: one more record needs no look at room. */
  takes(sizeBytes: number): boolean {
    return this.#marks.end < this.#slidesUntil && this.#sizeBytes + sizeBytes <= this.#maxBytes
  }

  /** More than retention: an exempt append, or a limit lowered while the gate was closed. */
  isOver(): boolean {
    this.#account()
    const { start, end } = this.#marks
    return end - start > this.#maxRecords || this.#sizeBytes > this.#maxBytes
  }

  /** Whether no eviction could ever make room for this much. */
  isTooLarge(records: number, bytes: number): boolean {
    return records > this.#maxRecords || bytes > this.#maxBytes
  }

  /** Where `start` must be for an append of this much, or NO_ROOM. Changes nothing. */
  room(records: number, bytes: number, mode: RoomMode): number {
    if (this.isTooLarge(records, bytes)) return NO_ROOM
    this.#account()
    const { start } = this.#marks
    const wanted = this.#startFor(records, bytes, 1)
    if (wanted === start || wanted <= this.#gate || mode === 'force') return wanted
    if (mode === 'gated') return NO_ROOM
    const allowed = Math.max(start, this.#gate)
    return this.#startFor(records, bytes, EXEMPT_FACTOR) <= allowed ? allowed : NO_ROOM
  }

  /** The lowest start at which this much more is within `factor` times retention. */
  #startFor(records: number, bytes: number, factor: number): number {
    const { start, end } = this.#marks
    const byRecords = Math.max(start, end + records - this.#maxRecords * factor)
    let excess = this.#sizeBytes + bytes - this.#maxBytes * factor
    let byBytes = start
    for (let i = 0; excess > 0; i++) {
      const segment = this.ring.at(i)
      if (excess >= segment.sizeBytes) {
        excess -= segment.sizeBytes
        byBytes = segment.next
      } else {
        for (; excess > 0; byBytes++) excess -= segment.bytesBetween(byBytes, byBytes + 1)
      }
    }
    return Math.max(byRecords, byBytes)
  }

  /** The lowest start within retention that the gate allows. */
  startWithin(): number {
    this.#account()
    return Math.min(this.#startFor(0, 0, 1), this.#gate)
  }

  evictTo(target: number): void {
    this.#account()
    this.#evict(target)
    this.#plan()
  }

  #evict(target: number): void {
    const marks = this.#marks
    while (marks.floor < target) {
      const first = this.ring.at(0)
      if (target < first.next) {
        const freed = first.bytesBetween(marks.floor, target)
        first.sizeBytes -= freed
        this.#sizeBytes -= freed
        marks.floor = target
      } else {
        this.#sizeBytes -= first.sizeBytes
        marks.floor = first.next
        this.#dropFirst(first)
      }
    }
  }

  /** Evicts everything, and has no room from now on. */
  clear(): void {
    this.#maxRecords = 0
    this.evictTo(this.#marks.end)
  }

  #dropFirst(first: Segment): void {
    this.ring.dropFirst()
    this.#evicted(first)
    if (first !== this.#tail) return
    // Being the newest must not keep alive what was evicted.
    this.#tail = new Segment(first.next, new Columns(first.next), null)
    this.#rowsLeft = 0
  }
}
