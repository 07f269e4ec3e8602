/**
 * The publish ids that a topic remembers, and where their records went. Oldest out, by age and by number.
 *
 *   order   [a@10] [b@12] [c@12] …    insertion order, which is also age order: time never goes back
 *   byId     a → [a@10]  …            the same entries, by id
 *
 * Beside the map stands a queue, because walking to the oldest key of a `Map` that is used as one passes
 * all that was deleted before it.
 */
import type { Position } from '../model/options.ts'
import { Deque } from './deque.ts'

interface Entry {
  readonly id: string
  readonly position: Position
  /** Monotonic milliseconds. */
  readonly at: number
}

export class DedupeWindow {
  #windowMs = 0
  #maxRecords = 0
  readonly #byId = new Map<string, Entry>()
  readonly #order = new Deque<Entry>()

  /** Remembers an id for less than `windowMs` (monotonic), and at most `maxRecords` of them. */
  constructor(windowMs: number, maxRecords: number) {
    this.limit(windowMs, maxRecords)
  }

  limit(windowMs: number, maxRecords: number): void {
    this.#windowMs = windowMs
    this.#maxRecords = maxRecords
    while (this.#byId.size > maxRecords) this.#forgetOldest()
  }

  get size(): number {
    return this.#byId.size
  }

  /** Where the record of `id` went, unless that was `windowMs` ago or more. */
  get(id: string, now: number): Position | undefined {
    this.expire(now)
    return this.#byId.get(id)?.position
  }

  /** Remembers `id` from `now` on. An id that is still remembered starts anew (O(n), callers `get` first). */
  set(id: string, position: Position, now: number): void {
    this.expire(now)
    const before = this.#byId.get(id)
    if (before !== undefined) this.#order.remove(before)
    const entry: Entry = { id, position, at: now }
    this.#byId.set(id, entry)
    this.#order.push(entry)
    if (this.#byId.size > this.#maxRecords) this.#forgetOldest()
  }

  /** Forgets `id` (O(n)). */
  delete(id: string): void {
    const entry = this.#byId.get(id)
    if (entry === undefined) return
    this.#byId.delete(id)
    this.#order.remove(entry)
  }

  /** Forgets what is too old; called by the others, and when nothing is published for long. */
  expire(now: number): void {
    for (let oldest = this.#order.peek(); oldest !== undefined; oldest = this.#order.peek()) {
      if (now - oldest.at < this.#windowMs) return
      this.#forgetOldest()
    }
  }

  #forgetOldest(): void {
    const oldest = this.#order.shift() as Entry
    this.#byId.delete(oldest.id)
  }
}
