/**
 * Wire batches, end to end in one run of bytes, and a directory of them. Bytes once written never change, so
 * a reader is handed a view of them and no copy; a slab that grows moves to new bytes and leaves the old ones
 * to whoever still reads them. When a slab has left its log, its bytes are used again, but only if all who were lent
 * a view have said that they are done with it. Decoded records are copies, and lend nothing.
 *
 *   bytes       │ RecordBatch v2 │ RecordBatch v2 │ RecordBatch v2 │          │
 *   positions   0                p1               p2               used       capacity
 *   bases       b0               b1               b2               next
 *   flags       0                ABORTED          CONTROL
 */
import type { Isolation } from '../contract.ts'
import { BufferPool } from '../format/buffer-pool.ts'
import { readInt16 } from '../format/integers.ts'
import { ATTRIBUTES_AT, COMPRESSION_BITS } from '../format/layout.ts'

/** A transaction marker: never shown as a record. */
export const CONTROL = 1
/** Of an aborted transaction: shown to `uncommitted` readers only. */
export const ABORTED = 2
/** Could not be decoded: one row to a reader, whatever its count. */
export const POISON = 4

/** What a batch adds to the directory. */
export interface BatchEntry {
  /** Offset after its last record. */
  readonly next: number
  /** Nominal bytes. */
  readonly sizeBytes: number
  readonly maxTimestamp: number
  readonly flags: number
}

/** Offsets that a reader is shown at once: `count` from `first` on, after which it goes on at `next`. */
export interface Run {
  readonly first: number
  readonly count: number
  readonly next: number
}

const NO_BYTES = new Uint8Array(0)
/** Keeps nothing. */
const NO_POOL = new BufferPool(0)

export class Slab {
  /** All batches, and room for more. Views of it may be handed out. */
  bytes: Uint8Array
  usedBytes = 0
  next: number
  readonly positions: number[] = []
  readonly bases: number[] = []
  readonly sizes: number[] = []
  readonly maxTimestamps: number[] = []
  readonly #flags: number[] = []
  /** A bit for each codec of its batches, the lowest for none. */
  codecs = 0
  /** Whether every record of every batch is shown to everybody. */
  plain = true

  readonly #pool: BufferPool
  /** Views that are lent out. */
  #lent = 0
  #retired = false

  /** `capacityBytes`: what to make room for at once, which is faster than growing. */
  constructor(base: number, capacityBytes: number, pool: BufferPool = NO_POOL) {
    this.next = base
    this.#pool = pool
    this.bytes = pool.take(capacityBytes)
  }

  get length(): number {
    return this.positions.length
  }

  /** Copies a batch to the end, and answers its position. */
  append(batch: Uint8Array, entry: BatchEntry): number {
    const position = this.usedBytes
    if (position + batch.length > this.bytes.length) this.#grow(position + batch.length)
    this.bytes.set(batch, position)
    this.usedBytes = position + batch.length
    this.codecs |= 1 << (readInt16(batch, ATTRIBUTES_AT) & COMPRESSION_BITS)
    this.positions.push(position)
    this.bases.push(this.next)
    this.sizes.push(entry.sizeBytes)
    this.maxTimestamps.push(entry.maxTimestamp)
    this.#flags.push(0)
    this.mark(this.length - 1, entry.flags)
    this.next = entry.next
    return position
  }

  /** Position after the batch. */
  endOf(index: number): number {
    return this.positions[index + 1] ?? this.usedBytes
  }

  /** Offset after the batch. */
  nextOf(index: number): number {
    return this.bases[index + 1] ?? this.next
  }

  has(index: number, flags: number): boolean {
    return ((this.#flags[index] as number) & flags) !== 0
  }

  mark(index: number, flags: number): void {
    this.#flags[index] = (this.#flags[index] as number) | flags
    if (flags !== 0) this.plain = false
  }

  /** The batch that holds `offset`. */
  indexOf(offset: number): number {
    let low = 0
    let high = this.bases.length
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if ((this.bases[middle] as number) <= offset) low = middle
      else high = middle
    }
    return low
  }

  /** Nominal bytes of the records in [from, to): the records of a batch share its bytes evenly. */
  bytesBetween(from: number, to: number): number {
    let bytes = 0
    for (let index = this.indexOf(from); index < this.length && (this.bases[index] as number) < to; index++) {
      bytes += this.#bytesUpTo(index, to) - this.#bytesUpTo(index, from)
    }
    return bytes
  }

  /** Of one batch. */
  #bytesUpTo(index: number, offset: number): number {
    const base = this.bases[index] as number
    const next = this.nextOf(index)
    const size = this.sizes[index] as number
    if (offset <= base) return 0
    return offset >= next ? size : Math.floor((size * (offset - base)) / (next - base))
  }

  /** The first offsets of [from, limit) that a reader sees, at most `max`; `next` lies after what is hidden behind them. */
  run(from: number, limit: number, max: number, isolation: Isolation): Run {
    const hidden = isolation === 'committed' ? CONTROL | ABORTED : CONTROL
    let index = this.indexOf(from)
    const skip = (offset: number): number => {
      let at = offset
      while (at < limit && this.has(index, hidden)) at = this.nextOf(index++)
      return at
    }
    const first = skip(from)
    if (first >= limit) return { first, count: 0, next: limit }
    if (this.has(index, POISON)) {
      const next = this.nextOf(index++)
      return { first, count: 1, next: skip(next) }
    }
    let at = first
    while (at < limit && at - first < max && !this.has(index, hidden | POISON)) at = this.nextOf(index++)
    const end = Math.min(at, limit, first + max)
    return { first, count: end - first, next: end === at ? skip(end) : end }
  }

  /** A view of its bytes goes to somebody, who may call what this answers when done with it. */
  lend(): () => void {
    const { bytes } = this
    let isLent = true
    this.#lent++
    return () => {
      // Who says it twice must not say it for somebody else; of bytes that it has grown out of, nothing is counted any more.
      if (isLent && bytes === this.bytes) this.#lent--
      isLent = false
      this.#giveBack()
    }
  }

  /** It has left its log. */
  retire(): void {
    this.#retired = true
    this.#giveBack()
  }

  #giveBack(): void {
    if (!this.#retired || this.#lent > 0) return
    const { bytes } = this
    this.bytes = NO_BYTES
    this.#pool.give(bytes)
  }

  #grow(neededBytes: number): void {
    const { bytes } = this
    const grown = this.#pool.take(Math.max(neededBytes, bytes.length * 2))
    grown.set(bytes.subarray(0, this.usedBytes))
    this.bytes = grown
    if (this.#lent === 0) this.#pool.give(bytes)
    this.#lent = 0
  }
}
