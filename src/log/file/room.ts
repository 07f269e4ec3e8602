/**
 * What a log on disk may amount to, and where its start must be for more to fit. Bytes are those of its batches; what
 * is pending counts as what it was said to be until its batch is made, and all of its records as equally large.
 *
 *   start          gate                         high           end
 *   │ may go       │ needed by a reader         │ not durable  │ room?
 *                                                     │ pending
 *
 * The start never passes `high`: what a crash may still take back cannot be evicted. So while more comes in one
 * moment than is retained, publishers wait for the disk.
 */
import type { Marks, RetentionLimits, RoomMode } from '../contract.ts'
import { NO_ROOM } from '../contract.ts'
import type { Extent } from './extent.ts'
import type { PendingBatch } from './pending.ts'

/**
 * What goes beyond what must, by bytes, when something has to: this share of the retention, and no more than a point of
 * the extent. To look for the start again with every record would cost as much as the record.
 */
const SLACK_SHARE = 1024
const MAX_SLACK_BYTES = 32 * 1024
/** An exempt append may grow the log to this many times its retention. */
const EXEMPT_FACTOR = 2

export class Room {
  gate: number = Number.POSITIVE_INFINITY
  readonly #marks: Readonly<Marks>
  /** Of all that is not pending. */
  readonly #extent: Extent
  /** As the extent has it: it knows better as it grows, and all that is derived must agree. */
  #startPosition: number
  #maxRecords = 0
  #maxBytes = 0
  #pendingFrom: number
  #pendingBytes = 0

  constructor(marks: Readonly<Marks>, extent: Extent) {
    this.#marks = marks
    this.#extent = extent
    this.#startPosition = extent.positionOf(marks.start)
    this.#pendingFrom = marks.end
  }

  limit(retention: RetentionLimits): void {
    this.#maxRecords = retention.records
    this.#maxBytes = retention.bytes
  }

  /** Bytes from the start to the end. */
  get sizeBytes(): number {
    return this.#endPosition - this.#startPosition
  }

  bytesFrom(offset: number): number {
    return offset <= this.#marks.start ? this.sizeBytes : this.#endPosition - this.#positionOf(offset)
  }

  get #endPosition(): number {
    return this.#extent.endPosition + this.#pendingBytes
  }

  #positionOf(offset: number): number {
    const from = this.#pendingFrom
    if (offset <= from) return this.#extent.positionOf(offset)
    const share = Math.min(1, (offset - from) / (this.#marks.end - from))
    return this.#extent.endPosition + Math.floor(share * this.#pendingBytes)
  }

  appended(sizeBytes: number): void {
    this.#pendingBytes += sizeBytes
  }

  /** What was pending, all of it, has its true size now. */
  formed(batches: readonly PendingBatch[]): void {
    for (const { next, bytes } of batches) this.#extent.append(next, bytes.length)
    this.#pendingFrom = this.#marks.end
    this.#pendingBytes = 0
    this.#startPosition = this.#extent.positionOf(this.#marks.start)
  }

  trimmed(start: number): void {
    this.#startPosition = this.#extent.positionOf(start)
    this.#extent.trim(start)
  }

  /** Between two offsets lie so many bytes now. */
  replaced(from: number, to: number, sizeBytes: number): void {
    this.#extent.replaced(from, to, sizeBytes)
    this.#startPosition = this.#extent.positionOf(this.#marks.start)
  }

  isTooLarge(records: number, bytes: number): boolean {
    return records > this.#maxRecords || bytes > this.#maxBytes
  }

  /** Where the start must be for this much more, or NO_ROOM. Changes nothing. */
  for(records: number, bytes: number, mode: RoomMode): number {
    const { start, end, high } = this.#marks
    if (end - start + records <= this.#maxRecords && this.sizeBytes + bytes <= this.#maxBytes) return start
    if (this.isTooLarge(records, bytes)) return NO_ROOM
    const wanted = this.#startFor(records, bytes, 1)
    if (wanted <= high && (wanted <= this.gate || mode === 'force')) {
      return Math.max(wanted, this.#withSlack(records, bytes))
    }
    if (mode !== 'exempt') return NO_ROOM
    const allowed = Math.min(Math.max(start, this.gate), high)
    return this.#startFor(records, bytes, EXEMPT_FACTOR) <= allowed ? allowed : NO_ROOM
  }

  /** A start above the lowest one, as far as nothing is in the way. */
  #withSlack(records: number, bytes: number): number {
    const slackBytes = Math.min(Math.floor(this.#maxBytes / SLACK_SHARE), MAX_SLACK_BYTES)
    return Math.min(this.#startFor(records, bytes + slackBytes, 1), this.gate, this.#marks.high)
  }

  /** The lowest start within retention. */
  startWithin(): number {
    return this.#startFor(0, 0, 1)
  }

  #startFor(records: number, bytes: number, factor: number): number {
    const { start, end } = this.#marks
    const byRecords = Math.max(start, end + records - this.#maxRecords * factor)
    const position = this.#endPosition + bytes - this.#maxBytes * factor
    if (position <= this.#startPosition) return byRecords
    // What is pending does not go, so where in it hardly matters.
    return Math.max(byRecords, position > this.#extent.endPosition ? end : this.#extent.offsetAt(position))
  }
}
