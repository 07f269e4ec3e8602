/**
 * A fetch that waits: until the partitions it wants have enough bytes, its time is up, or nobody waits for it any more.
 * Nothing is polled and nothing is read meanwhile. A partition that has news is looked at, and only that one.
 *
 *   bytes   │ 0 │ 120 │ 0 │ 64 │     one for each partition, as of its last news; their sum ends the wait
 */
import type { CoreContext } from '../core/context.ts'
import { Due } from '../core/due-queue.ts'
import type { Partition } from '../core/partition.ts'

export interface Poll {
  readonly partitions: readonly Partition[]
  /** What can be read of that partition now; Infinity where there is something to say at once. */
  readonly bytesOf: (place: number) => number
  readonly minBytes: number
  readonly maxWaitMs: number
  readonly signal: AbortSignal
}

/** Resolves also when `signal` is aborted. */
export function polled(ctx: CoreContext, poll: Poll): Promise<void> {
  return new Promise((resolve) => new LongPoll(ctx, poll, resolve).start())
}

class LongPoll extends Due {
  readonly #ctx: CoreContext
  readonly #poll: Poll
  readonly #resolve: () => void
  readonly #bytes: number[]
  readonly #watchers: (() => void)[]
  #sum = 0

  constructor(ctx: CoreContext, poll: Poll, resolve: () => void) {
    super()
    this.#ctx = ctx
    this.#poll = poll
    this.#resolve = resolve
    this.#bytes = poll.partitions.map(() => 0)
    this.#watchers = poll.partitions.map((_, place) => () => this.#look(place))
  }

  start(): void {
    const { partitions, maxWaitMs, signal } = this.#poll
    signal.addEventListener('abort', this.#end)
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + maxWaitMs)
    partitions.forEach(({ watchers }, place) => {
      watchers.add(this.#watchers[place] as () => void)
    })
    // What came before anybody watched.
    for (const look of this.#watchers) look()
    if (signal.aborted) this.#end()
  }

  override fire(): void {
    this.#end()
  }

  #look(place: number): void {
    const bytes = this.#poll.bytesOf(place)
    this.#sum += bytes - (this.#bytes[place] as number)
    this.#bytes[place] = bytes
    if (this.#sum >= this.#poll.minBytes) this.#end()
  }

  readonly #end = (): void => {
    const { partitions, signal } = this.#poll
    this.#ctx.due.cancel(this)
    signal.removeEventListener('abort', this.#end)
    partitions.forEach(({ watchers }, place) => {
      watchers.delete(this.#watchers[place] as () => void)
    })
    this.#resolve()
  }
}
