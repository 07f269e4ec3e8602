/**
 * The unsettled records of one cursor, and the two offsets that say how far it is.
 *
 *        committed            next
 *            ▼                  ▼
 *   settled │ D │   │ D │ D │   │ not handed out yet
 *             ▲   ▲
 *             │   └ settled beyond committed, or a gap: an empty place
 *             └ lowest unsettled
 *
 * A ring indexed by offset. Its span is bounded (the caller stops at MAX_WINDOW), it starts small and
 * doubles. Settling is O(1) in order and amortised O(1) out of order: each empty place is passed once.
 * Invariant: nothing unsettled ⇔ `committed = next`.
 */
import type { DeliveryRecord } from './delivery.ts'

/** Of most readers one record is in hand at a time. */
const SMALLEST = 1

export class Window {
  /** Lowest unsettled offset. */
  committed: number
  /** Next offset to be handed out for the first time. */
  next: number
  /** Records in the ring. */
  unsettled: number = 0
  #ring: (DeliveryRecord | undefined)[] = new Array(SMALLEST).fill(undefined)
  #mask = SMALLEST - 1

  constructor(at: number) {
    this.committed = at
    this.next = at
  }

  /** Takes in a record at or beyond `next`. */
  enter(record: DeliveryRecord, offset: number): void {
    if (this.unsettled === 0) this.committed = offset
    else if (offset - this.committed > this.#mask) this.#grow(offset)
    this.#ring[offset & this.#mask] = record
    this.unsettled++
    this.next = offset + 1
  }

  /** Passes over offsets that need no settling. */
  skip(to: number): void {
    this.next = to
    if (this.unsettled === 0) this.committed = to
  }

  /** The record at `offset` is settled. */
  leave(offset: number): void {
    this.#ring[offset & this.#mask] = undefined
    if (--this.unsettled === 0) this.committed = this.next
    else if (offset === this.committed) {
      let at = offset + 1
      while (this.#ring[at & this.#mask] === undefined) at++
      this.committed = at
    }
  }

  /** A successor takes the place of the record at the same offset. */
  replace(offset: number, record: DeliveryRecord): void {
    this.#ring[offset & this.#mask] = record
  }

  /** The unsettled record at `offset`, if there is one. */
  at(offset: number): DeliveryRecord | undefined {
    return offset < this.committed || offset >= this.#limit ? undefined : this.#ring[offset & this.#mask]
  }

  /** The lowest unsettled record. */
  head(): DeliveryRecord | undefined {
    return this.unsettled === 0 ? undefined : this.#ring[this.committed & this.#mask]
  }

  /** Unsettled records in order of offset. */
  *[Symbol.iterator](): IterableIterator<DeliveryRecord> {
    let left = this.unsettled
    for (let at = this.committed; left > 0; at++) {
      const record = this.#ring[at & this.#mask]
      if (record !== undefined) {
        left--
        yield record
      }
    }
  }

  /** Forgets everything and starts at `at`. */
  reset(at: number): void {
    this.#ring = new Array(SMALLEST).fill(undefined)
    this.#mask = SMALLEST - 1
    this.unsettled = 0
    this.committed = at
    this.next = at
  }

  /** Offsets settled beyond `committed`, as sorted `[from, to)` runs: what a commit must keep besides it. */
  settledRuns(): [number, number][] {
    const runs: [number, number][] = []
    if (this.unsettled === 0) return runs
    let from = this.committed
    for (const { offset } of this) {
      if (from < offset) runs.push([from, offset])
      from = offset + 1
    }
    if (from < this.next) runs.push([from, this.next])
    return runs
  }

  /** Beyond it there are no records: what was skipped may lie further ahead than the ring reaches. */
  get #limit(): number {
    return Math.min(this.next, this.committed + this.#ring.length)
  }

  #grow(offset: number): void {
    let size = this.#ring.length
    while (size <= offset - this.committed) size *= 2
    const ring: (DeliveryRecord | undefined)[] = new Array(size).fill(undefined)
    for (let at = this.committed; at < this.#limit; at++) ring[at & (size - 1)] = this.#ring[at & this.#mask]
    this.#ring = ring
    this.#mask = size - 1
  }
}
