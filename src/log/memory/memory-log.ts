/**
 * A partition in memory: a ring of segments (segment.ts), the four marks, and the rules of room.
 *
 * - `start` is exact for every record; memory is given back by whole segments, so at most a sixteenth of
 *   retention, plus one record, is held beyond it.
 * - A refused append changes nothing. An accepted one evicts exactly what it needs, never past the gate
 *   unless forced.
 * - Every offset from `start` to `end` is in some segment: there are no gaps but what readers are not shown.
 *
 * Concurrency: one thread, run to completion. `tryAppendOne` is the hot path of publishing; it touches the
 * newest segment only and allocates nothing but that segment's share.
 */
import type { Batch, Slice } from '../../model/batch.ts'
import { Columns } from '../../model/batch.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import type {
  Appended,
  Isolation,
  LogSpec,
  Marks,
  PartitionLog,
  PeekResult,
  Refusal,
  RetentionLimits,
  RoomMode,
} from '../contract.ts'
import { NO_ROOM } from '../contract.ts'
import { Segment, SegmentRing } from './segment.ts'

/** Rows of a segment at most: enough to make its own cost vanish, few enough to be evicted whole. */
const MAX_ROWS = 1024
/** Rows a segment makes room for while nobody knows whether it will fill. */
const FIRST_ROWS = 16
/** A segment holds at most this share of retention. */
const SEGMENTS = 16
/** An exempt append may grow the log to this many times its retention. */
const EXEMPT_FACTOR = 2

export class MemoryLog {
  readonly topicId: string
  readonly partition: number
  readonly marks: Marks = { start: 0, stable: 0, high: 0, end: 0, epoch: 0 }

  readonly #ring = new SegmentRing()
  /** The newest segment, or one that was never in the ring when there is none to append to. */
  #tail: Segment
  /** Room left in the tail for rows: 0 where it is not to be appended to. */
  #rowsLeft = 0
  #bytesLeft = 0
  #sizeBytes = 0
  #maxRecords = 0
  #maxBytes = 0
  #ageMs = 0
  #segmentRows = 0
  #segmentBytes = 0
  #gate = Number.POSITIVE_INFINITY
  /** Newest timestamp given to a record from within the process. */
  #stampedMs = 0
  #wakes: readonly (() => void)[] = []

  constructor(spec: LogSpec) {
    this.topicId = spec.topicId
    this.partition = spec.partition
    this.#tail = new Segment(0, new Columns(0), null)
    this.#limit(spec.retention)
  }

  get records(): number {
    return this.marks.end - this.marks.start
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  hasRoom(records: number, bytes: number, mode: RoomMode = 'gated'): boolean {
    return this.#room(records, bytes, mode) >= 0
  }

  tryAppendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
    mode: RoomMode = 'gated',
  ): number {
    const marks = this.marks
    if (marks.end - marks.start >= this.#maxRecords || this.#sizeBytes + sizeBytes > this.#maxBytes) {
      const start = this.#room(1, sizeBytes, mode)
      if (start < 0) return NO_ROOM
      this.#evictTo(start)
    }
    const offset = marks.end
    this.#push(value, key, headers, timestamp, sizeBytes)
    marks.stable = marks.high = marks.end = offset + 1
    this.#wake()
    return offset
  }

  tryAppend(batch: Batch, mode: RoomMode = 'gated'): Appended | Refusal {
    const { count, sizeBytes } = batch
    if (count > this.#maxRecords || sizeBytes > this.#maxBytes) return 'TOO_LARGE'
    const start = this.#room(count, sizeBytes, mode)
    if (start < 0) return 'NO_ROOM'
    this.#evictTo(start)
    const marks = this.marks
    const base = marks.end
    const columns = batch.columns as Columns
    for (let row = 0; row < count; row++) {
      this.#push(
        columns.values[row],
        columns.keyAt(row),
        columns.headersAt(row),
        columns.timestampAt(row),
        columns.sizeAt(row),
      )
    }
    marks.stable = marks.high = marks.end = base + count
    this.#wake()
    return { base, last: base + count - 1, duplicate: false }
  }

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    const marks = this.marks
    into.count = 0
    into.next = from
    if (from < marks.start || from > marks.end) return 'range'
    const bound = isolation === 'committed' ? marks.stable : marks.high
    if (from >= bound) return 'end'
    const segment = this.#find(from)
    const columns = segment.columns
    if (columns === null) return 'miss'
    const next = Math.min(from + max, bound, segment.next)
    into.columns = columns
    into.row = from - segment.base
    into.count = next - from
    into.next = next
    return 'hit'
  }

  onAdvance(wake: () => void): () => void {
    this.#wakes = [...this.#wakes, wake]
    return () => {
      this.#wakes = this.#wakes.filter((each) => each !== wake)
    }
  }

  gate(lowestNeeded: number): void {
    this.#gate = lowestNeeded
    this.#shrink()
  }

  configure(retention: RetentionLimits): void {
    this.#limit(retention)
    this.#shrink()
  }

  /** Adds one record to the newest segment; the marks are the caller's. */
  #push(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
  ): void {
    if (this.#rowsLeft === 0 || this.#bytesLeft <= 0) this.#roll()
    if (timestamp > this.#stampedMs) this.#stampedMs = timestamp
    const tail = this.#tail
    const stamped = this.#stampedMs
    ;(tail.columns as Columns).push(value, key, headers, stamped, sizeBytes)
    tail.next++
    tail.sizeBytes += sizeBytes
    tail.maxTimestamp = stamped
    this.#rowsLeft--
    this.#bytesLeft -= sizeBytes
    this.#sizeBytes += sizeBytes
  }

  /** A new newest segment. It makes room for all of its rows where the one before was filled. */
  #roll(): void {
    const before = this.#tail
    const filled = before.next - before.base >= this.#segmentRows
    const base = before.next
    this.#tail = new Segment(base, new Columns(base, filled ? this.#segmentRows : FIRST_ROWS), null)
    this.#ring.push(this.#tail)
    this.#rowsLeft = this.#segmentRows
    this.#bytesLeft = this.#segmentBytes
  }

  /** Where `start` must be for an append of this much, or NO_ROOM. Changes nothing. */
  #room(records: number, bytes: number, mode: RoomMode): number {
    if (records > this.#maxRecords || bytes > this.#maxBytes) return NO_ROOM
    const start = this.#startFor(records, bytes, 1)
    if (start === this.marks.start || start <= this.#gate || mode === 'force') return start
    if (mode === 'gated') return NO_ROOM
    const least = this.#startFor(records, bytes, EXEMPT_FACTOR)
    if (least > this.marks.start && least > this.#gate) return NO_ROOM
    return Math.max(this.marks.start, this.#gate)
  }

  /** The lowest start at which this much more is within `factor` times retention. */
  #startFor(records: number, bytes: number, factor: number): number {
    const { start, end } = this.marks
    const byRecords = Math.max(start, end + records - this.#maxRecords * factor)
    let excess = this.#sizeBytes + bytes - this.#maxBytes * factor
    if (excess <= 0) return byRecords
    let at = start
    for (let i = 0; excess > 0; i++) {
      const segment = this.#ring.at(i)
      if (excess >= segment.sizeBytes) {
        excess -= segment.sizeBytes
        at = segment.next
      } else {
        while (excess > 0) {
          excess -= segment.bytesBetween(at, at + 1)
          at++
        }
      }
    }
    return Math.max(byRecords, at)
  }

  #evictTo(target: number): void {
    const marks = this.marks
    while (marks.start < target) {
      const first = this.#ring.at(0)
      if (target < first.next) {
        const freed = first.bytesBetween(marks.start, target)
        first.sizeBytes -= freed
        this.#sizeBytes -= freed
        marks.start = target
      } else {
        this.#sizeBytes -= first.sizeBytes
        marks.start = first.next
        this.#ring.dropFirst()
        if (first === this.#tail) this.#detachTail()
      }
    }
    if (marks.stable < marks.start) marks.stable = marks.start
  }

  /** Forgets the tail, which was evicted whole, so that it is not kept alive by being the newest. */
  #detachTail(): void {
    this.#tail = new Segment(this.marks.end, new Columns(this.marks.end), null)
    this.#rowsLeft = 0
  }

  /** Back within retention, as far as the gate allows. */
  #shrink(): void {
    const target = Math.min(this.#startFor(0, 0, 1), this.#gate)
    if (target <= this.marks.start) return
    this.#evictTo(target)
    this.#wake()
  }

  #find(offset: number): Segment {
    const tail = this.#tail
    if (offset >= tail.base) return tail
    return this.#ring.at(this.#ring.indexOf(offset))
  }

  #limit(retention: RetentionLimits): void {
    this.#maxRecords = retention.records
    this.#maxBytes = retention.bytes
    this.#ageMs = retention.ageMs
    this.#segmentRows = Math.min(MAX_ROWS, Math.max(1, Math.ceil(retention.records / SEGMENTS)))
    this.#segmentBytes = Math.ceil(retention.bytes / SEGMENTS)
  }

  #wake(): void {
    const wakes = this.#wakes
    for (let i = 0; i < wakes.length; i++) (wakes[i] as () => void)()
  }
}
