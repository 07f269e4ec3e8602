/**
 * A run of consecutive offsets, and the ring that holds a log's runs. Eviction drops whole segments, so the
 * log's `start` may lie inside the first one.
 *
 *             first                                     tail
 *   ring   │ segment │ segment │ segment │ ... │ segment ▸ grows
 *              │ start lies in here                 │ end
 *
 * One view of a segment is authoritative: columns where records came as values, a slab where they came as
 * wire batches. The other is a cache, absent until asked for. Row `r` of the columns has offset `base + r`,
 * also in a cache of decoded batches (whose markers are rows that no reader is shown).
 */
import type { Columns } from '../../model/batch.ts'
import { assert } from '../../model/errors.ts'
import { readHeader } from '../format/record-batch.ts'
import { ABORTED, type Slab } from './slab.ts'

export class Segment {
  readonly base: number
  /** Offset after the last record. */
  next: number
  /** Nominal bytes of what is not evicted. */
  sizeBytes: number = 0
  /** Newest timestamp of a record written here, whether evicted since or not. */
  maxTimestamp: number = -1
  columns: Columns | null
  slab: Slab | null
  /** Whether the slab is authoritative and the columns are the cache. */
  readonly wire: boolean
  /** How much of the authoritative view the cache covers: rows of columns, batches of a slab. */
  converted: number = 0
  /** Bytes that the cache counts for. */
  cacheBytes: number = 0

  constructor(base: number, columns: Columns | null, slab: Slab | null) {
    this.base = base
    this.next = base
    this.columns = columns
    this.slab = slab
    this.wire = slab !== null
  }

  /** Nominal bytes of the records in [from, to), both within this segment. */
  bytesBetween(from: number, to: number): number {
    if (this.wire) return (this.slab as Slab).bytesBetween(from, to)
    const columns = this.columns as Columns
    if (columns.sizes === null) return columns.size * (to - from)
    let bytes = 0
    for (let row = from - this.base; row < to - this.base; row++) bytes += columns.sizes[row] as number
    return bytes
  }
}

/** A queue of segments in offset order that never moves its entries. Slots are a power of two. */
export class SegmentRing {
  #slots: (Segment | null)[] = new Array<Segment | null>(8).fill(null)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  *[Symbol.iterator](): Generator<Segment> {
    for (let i = 0; i < this.#length; i++) yield this.at(i)
  }

  push(segment: Segment): void {
    if (this.#length === this.#slots.length) this.#grow()
    this.#slots[(this.#head + this.#length) & (this.#slots.length - 1)] = segment
    this.#length++
  }

  dropFirst(): void {
    assert(this.#length > 0, 'no segment to drop')
    this.#slots[this.#head] = null
    this.#head = (this.#head + 1) & (this.#slots.length - 1)
    this.#length--
  }

  /** The `index`-th segment from the oldest. */
  at(index: number): Segment {
    return this.#slots[(this.#head + index) & (this.#slots.length - 1)] as Segment
  }

  /** Position of the segment that holds `offset`, or of the first one after it; `length` for none. */
  indexOf(offset: number): number {
    let low = 0
    let high = this.#length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.at(middle).next > offset) high = middle
      else low = middle + 1
    }
    return low
  }

  #grow(): void {
    const slots = new Array<Segment | null>(this.#slots.length * 2).fill(null)
    for (let i = 0; i < this.#length; i++) slots[i] = this.at(i)
    this.#slots = slots
    this.#head = 0
  }
}

/** Marks what a producer has appended since `firstOffset`, its transaction that is now aborted, so that readers can be spared it. */
export function hideAborted(ring: SegmentRing, producerId: number, firstOffset: number): void {
  for (let i = ring.indexOf(firstOffset); i < ring.length; i++) {
    const segment = ring.at(i)
    if (!segment.wire) continue
    const slab = segment.slab as Slab
    for (let index = slab.indexOf(firstOffset); index < slab.length; index++) {
      const { producerId: from } = readHeader(slab.bytes, slab.positions[index] as number)
      if (from === producerId) slab.mark(index, ABORTED)
    }
  }
}
