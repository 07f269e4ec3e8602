/**
 * Which partition a record without a key goes to when the publisher does not say; model/key-hash.ts has those with one.
 *
 * One partition for a run of records, then the next one that has room. A run keeps neighbours together (whole chunks of
 * one segment, whole batches on an engine of bytes); going round spreads them.
 */

/** Keyless records that stay in one partition before the next one takes over. */
const RUN_LENGTH = 64

/** Chooses partitions for keyless records: runs of 64, preferring a partition with room. */
export class StickyRoundRobin {
  readonly #count: number
  #current = 0
  #left = RUN_LENGTH

  constructor(count: number) {
    this.#count = count
  }

  /** The partition for one more record; the sticky one when none has room, for the record to wait there. */
  next(hasRoom: (partition: number) => boolean): number {
    if (this.#count === 1) return 0
    if (this.#left === 0) this.#moveTo((this.#current + 1) % this.#count)
    if (!hasRoom(this.#current)) {
      for (let step = 1; step < this.#count; step++) {
        const candidate = (this.#current + step) % this.#count
        if (!hasRoom(candidate)) continue
        this.#moveTo(candidate)
        break
      }
    }
    this.#left--
    return this.#current
  }

  #moveTo(partition: number): void {
    this.#current = partition
    this.#left = RUN_LENGTH
  }
}
