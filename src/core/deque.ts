/**
 * A double-ended queue in a ring of slots: every end operation is O(1) amortised, where `Array.shift`
 * moves everything that is behind it.
 *
 *   slots    . . [a b c d] . .        capacity is a power of two, so that `& mask` wraps an index
 *                 │      └ head + length − 1
 *                 └ head
 *
 * The ring doubles when full and halves when three quarters are empty, so a burst is not paid for ever. A
 * slot that is left is overwritten at once: the queue keeps nothing alive that it no longer holds. One that
 * was never used has no ring at all: readers have several, and most of them never need one.
 * Iterating while changing the queue is not supported; take what is needed first.
 */
const MIN_CAPACITY = 8
/** The ring of those that have none: never written, since it is full with nothing in it. */
const NONE: undefined[] = []

export class Deque<T> implements Iterable<T> {
  #slots: (T | undefined)[] = NONE
  #mask = -1
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(x: T): void {
    if (this.#length > this.#mask) this.#resize(Math.max((this.#mask + 1) * 2, MIN_CAPACITY))
    this.#slots[(this.#head + this.#length) & this.#mask] = x
    this.#length++
  }

  unshift(x: T): void {
    if (this.#length > this.#mask) this.#resize(Math.max((this.#mask + 1) * 2, MIN_CAPACITY))
    this.#head = (this.#head - 1) & this.#mask
    this.#slots[this.#head] = x
    this.#length++
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const first = this.#slots[this.#head]
    this.#slots[this.#head] = undefined
    this.#head = (this.#head + 1) & this.#mask
    this.#length--
    this.#shrink()
    return first
  }

  /** The first one, which stays. */
  peek(): T | undefined {
    return this.#length === 0 ? undefined : this.#slots[this.#head]
  }

  clear(): void {
    this.#slots = NONE
    this.#mask = -1
    this.#head = 0
    this.#length = 0
  }

  /** Takes out the first `x` and says whether there was one. O(n), for what is rare. */
  remove(x: T): boolean {
    for (let i = 0; i < this.#length; i++) {
      if (this.#at(i) !== x) continue
      for (let j = i + 1; j < this.#length; j++) {
        this.#slots[(this.#head + j - 1) & this.#mask] = this.#at(j)
      }
      this.#length--
      this.#slots[(this.#head + this.#length) & this.#mask] = undefined
      this.#shrink()
      return true
    }
    return false
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let i = 0; i < this.#length; i++) yield this.#at(i) as T
  }

  #at(index: number): T | undefined {
    return this.#slots[(this.#head + index) & this.#mask]
  }

  #shrink(): void {
    const capacity = this.#mask + 1
    if (capacity > MIN_CAPACITY && this.#length <= capacity >> 2) this.#resize(capacity >> 1)
  }

  #resize(capacity: number): void {
    const slots: (T | undefined)[] = new Array(capacity).fill(undefined)
    for (let i = 0; i < this.#length; i++) slots[i] = this.#at(i)
    this.#slots = slots
    this.#mask = capacity - 1
    this.#head = 0
  }
}
