/**
 * Everything that falls due (retries, expiries, grace periods) on one timer of the clock: an intrusive
 * binary heap. Each due thing carries its own place, so that cancelling, which is what happens to almost
 * every expiry, searches nothing and allocates nothing.
 *
 *              [0] due at 5            parent of i: (i − 1) / 2
 *             /            \           order: dueAt, then dueTurn (first scheduled, first fired)
 *       [1] due at 9    [2] due at 7   heapIndex of each thing is its place in the array
 *
 * The timer is armed for the earliest thing and only ever moved forward: when the earliest one is cancelled,
 * the timer fires early, finds nothing and is armed anew. A deadline per delivery then costs no timer
 * at all as long as an older deadline is pending.
 *
 * A firing fires what was scheduled before it began. What is scheduled meanwhile and due already waits
 * for the next firing, so that a thing which always reschedules itself cannot hold up the loop.
 */
import type { Clock, Timer } from '../model/clock.ts'
import { assert } from '../model/errors.ts'

const NOT_QUEUED = -1

/** Something that falls due. Belongs to one queue at a time, which writes these fields. */
export abstract class Due {
  /** Monotonic milliseconds. */
  dueAt: number = 0
  /** Breaks ties: counts what was scheduled before it. */
  dueTurn: number = 0
  /** Place in the heap, −1 when not queued. */
  heapIndex: number = NOT_QUEUED

  /** Called once, after it left the queue. May schedule itself and others, and cancel others. */
  abstract fire(): void
}

/** For whoever is no due thing himself. */
export class DueCallback extends Due {
  readonly #callback: () => void

  constructor(callback: () => void) {
    super()
    this.#callback = callback
  }

  override fire(): void {
    this.#callback()
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.dueTurn < b.dueTurn)
}

export class DueQueue {
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  readonly #heap: Due[] = []
  #turns = 0
  /** Monotonic time of the last firing. Nothing is queued as due before it. */
  #firedAt = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  /** What the timer is armed for; Infinity when it is not, −Infinity while firing, which arms it at its end. */
  #armedFor = Number.POSITIVE_INFINITY
  #closed = false

  /** `onError` gets what a `fire` throws, and must not throw itself. */
  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#onError = onError
  }

  get size(): number {
    return this.#heap.length
  }

  /** Queues `due` for `at` (monotonic milliseconds), or moves it there. Ignored once closed. */
  schedule(due: Due, at: number): void {
    assert(!Number.isNaN(at), 'a due time is not a number')
    if (this.#closed) return
    this.cancel(due)
    // Clamped, what is scheduled during a firing sorts after all that the firing still has to fire.
    due.dueAt = Math.max(at, this.#firedAt)
    due.dueTurn = this.#turns++
    this.#heap.push(due)
    this.#siftUp(due, this.#heap.length - 1)
    if (due.dueAt < this.#armedFor) this.#arm(due.dueAt)
  }

  /** Takes `due` out; harmless when it is not queued. */
  cancel(due: Due): void {
    const index = due.heapIndex
    if (index === NOT_QUEUED) return
    assert(this.#heap[index] === due, 'a due thing belongs to another queue')
    due.heapIndex = NOT_QUEUED
    const last = this.#heap.pop() as Due
    if (last === due) return
    this.#siftDown(last, index)
    if (last.heapIndex === index) this.#siftUp(last, index)
  }

  /** Calls back in `delayMs`; the answer is for `cancel`. */
  after(delayMs: number, callback: () => void): Due {
    const due = new DueCallback(callback)
    this.schedule(due, this.#clock.monotonic() + delayMs)
    return due
  }

  /** Forgets all that is queued, for good. */
  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#timer = undefined
    for (const due of this.#heap) due.heapIndex = NOT_QUEUED
    this.#heap.length = 0
  }

  readonly #fire = (): void => {
    const limit = this.#turns
    this.#firedAt = this.#clock.monotonic()
    this.#timer = undefined
    this.#armedFor = Number.NEGATIVE_INFINITY
    for (let due = this.#heap[0]; due !== undefined; due = this.#heap[0]) {
      if (due.dueAt > this.#firedAt || due.dueTurn >= limit) break
      this.cancel(due)
      try {
        due.fire()
      } catch (error) {
        this.#onError(error)
      }
    }
    this.#armedFor = Number.POSITIVE_INFINITY
    const next = this.#heap[0]
    if (next !== undefined && next.dueAt < this.#armedFor) this.#arm(next.dueAt)
  }

  #arm(at: number): void {
    this.#timer?.cancel()
    this.#armedFor = at
    this.#timer = this.#clock.setTimer(this.#fire, Math.max(at - this.#clock.monotonic(), 0))
  }

  #siftUp(due: Due, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#heap[parentIndex] as Due
      if (!isBefore(due, parent)) break
      this.#put(parent, index)
      index = parentIndex
    }
    this.#put(due, index)
  }

  #siftDown(due: Due, from: number): void {
    let index = from
    for (;;) {
      let childIndex = 2 * index + 1
      let child = this.#heap[childIndex]
      if (child === undefined) break
      const right = this.#heap[childIndex + 1]
      if (right !== undefined && isBefore(right, child)) {
        child = right
        childIndex++
      }
      if (!isBefore(child, due)) break
      this.#put(child, index)
      index = childIndex
    }
    this.#put(due, index)
  }

  #put(due: Due, index: number): void {
    this.#heap[index] = due
    due.heapIndex = index
  }
}
