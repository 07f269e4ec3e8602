/**
 * Publishers that wait for room in one partition: first come, first served.
 *
 *   handlers   │ any of them that fits          they go first: the line may wait for their reader's settle
 *   line       │ head ─► next ─► next …         only the head is asked, so that nobody is overtaken
 *
 * Who gave up counts as gone at once, and is taken out when it is passed, or when there are more such than
 * others: a line whose head is stuck does not grow by publishers that come and abort.
 */
import { STALLED_AFTER_MS } from '../model/limits.ts'
import type { CoreContext } from './context.ts'
import { Deque } from './deque.ts'
import { Due } from './due-queue.ts'
import type { Partition } from './partition.ts'
import type { Waiter } from './waiting.ts'

/** Places of those who gave up that are never worth a walk. */
const SLACK = 16

export class Line extends Due {
  /** Who waits, those who gave up not counted. */
  length: number = 0
  readonly #partition: Partition
  readonly #ctx: CoreContext
  readonly #handlers = new Set<Waiter>()
  readonly #queue = new Deque<Waiter>()
  /** When a holder last moved, or the first of these came. */
  #progressAt = 0

  constructor(partition: Partition, ctx: CoreContext) {
    super()
    this.#partition = partition
    this.#ctx = ctx
  }

  /** Whether any reader's move may let somebody in, and not only that of the one at the gate. */
  get hasHandlers(): boolean {
    return this.#handlers.size > 0
  }

  add(waiter: Waiter): void {
    if (waiter.exempt !== null) this.#handlers.add(waiter)
    else {
      this.#queue.push(waiter)
      // Handlers that wait are not in its way: it may fit where they do not.
      if (this.#handlers.size > 0) this.#partition.wake()
    }
    if (this.length++ > 0) return
    this.#progressAt = this.#ctx.dispatcher.now
    this.#ctx.due.schedule(this, this.#progressAt + STALLED_AFTER_MS)
    this.#partition.lineChanged()
  }

  /** It was served or gave up; the one behind it may fit. */
  left(waiter: Waiter): void {
    this.length--
    if (!this.#handlers.delete(waiter) && this.#queue.length > 2 * this.length + SLACK) this.#compact()
    if (this.length === 0) {
      this.#ctx.due.cancel(this)
      this.#partition.lineChanged()
    }
    this.#partition.wake()
  }

  /** Whether nobody is to be asked before `waiter`. */
  isNext(waiter: Waiter): boolean {
    return waiter.exempt !== null || this.#head() === waiter
  }

  /** Lets in who fits. */
  serve(): void {
    for (const waiter of this.#handlers) waiter.tryServe()
    let head = this.#head()
    while (head?.tryServe() === true) head = this.#head()
  }

  fail(error: Error): void {
    for (const waiter of [...this.#handlers, ...this.#queue]) waiter.fail(error)
  }

  /** A holder moved on. */
  progressed(): void {
    this.#progressAt = this.#ctx.dispatcher.now
  }

  /** Publishers wait and nothing settles: says so, as long as it is so. */
  override fire(): void {
    const now = this.#ctx.clock.monotonic()
    let next = this.#progressAt + STALLED_AFTER_MS
    if (next <= now) {
      next = now + STALLED_AFTER_MS
      const waiting = [...this.#handlers, this.#head()]
      for (const waiter of waiting) {
        const batch = waiter?.lacksRoomIn(this.#partition)
        if (batch === undefined) continue
        this.#partition.raiseStalled(batch)
        break
      }
    }
    this.#ctx.due.schedule(this, next)
  }

  #head(): Waiter | undefined {
    while (this.#queue.peek()?.done === true) this.#queue.shift()
    return this.#queue.peek()
  }

  #compact(): void {
    const waiting = [...this.#queue].filter((waiter) => !waiter.done)
    this.#queue.clear()
    for (const waiter of waiting) this.#queue.push(waiter)
  }
}
