/**
 * Wire batches, end to end in one run of bytes, and where each of them begins. Bytes once written never
 * change, so a reader is handed a view of them and no copy; a slab that grows moves to new bytes and leaves
 * the old ones to whoever still reads them.
 *
 *   bytes      │ RecordBatch v2 │ RecordBatch v2 │ RecordBatch v2 │        │
 *   positions  0                p1               p2               used     capacity
 *   bases      first offset of each batch; `next` is the offset after the last
 */

/** Bytes that a new slab makes room for. */
const FIRST_BYTES = 4096

export class Slab {
  #bytes: Uint8Array
  #used = 0
  next: number
  readonly positions: number[] = []
  readonly bases: number[] = []
  /** Nominal bytes of each batch. */
  readonly sizes: number[] = []
  /** Batches of aborted transactions; `null` while there are none. */
  aborted: Set<number> | null = null

  constructor(base: number, capacityBytes: number = FIRST_BYTES) {
    this.next = base
    this.#bytes = new Uint8Array(capacityBytes)
  }

  get length(): number {
    return this.positions.length
  }

  get used(): number {
    return this.#used
  }

  /** All batches. A view: do not write. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** Appends a batch of offsets up to `next` (exclusive) and answers the position it got. */
  append(batch: Uint8Array, next: number, sizeBytes: number): number {
    const position = this.#used
    if (position + batch.length > this.#bytes.length) this.#grow(position + batch.length)
    this.#bytes.set(batch, position)
    this.#used = position + batch.length
    this.positions.push(position)
    this.bases.push(this.next)
    this.sizes.push(sizeBytes)
    this.next = next
    return position
  }

  /** Where the batch after `index` begins, or the end. */
  endOf(index: number): number {
    return this.positions[index + 1] ?? this.#used
  }

  nextOf(index: number): number {
    return this.bases[index + 1] ?? this.next
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

  /** Nominal bytes of the records in [from, to): records of one batch share its bytes evenly. */
  bytesBetween(from: number, to: number): number {
    let bytes = 0
    for (let index = this.indexOf(from); index < this.length; index++) {
      const base = this.bases[index] as number
      if (base >= to) break
      const count = this.nextOf(index) - base
      const size = this.sizes[index] as number
      const share = (offset: number): number =>
        Math.floor((size * Math.min(Math.max(offset - base, 0), count)) / count)
      bytes += share(to) - share(from)
    }
    return bytes
  }

  #grow(needed: number): void {
    const bytes = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
    bytes.set(this.#bytes.subarray(0, this.#used))
    this.#bytes = bytes
  }
}
