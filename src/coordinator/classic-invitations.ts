/**
 * Member ids that a classic group has given out and that have not come back with a join (KIP-394). Each is good for the
 * session timeout of the client that asked; a rebalance waits for it as for a member.
 */
import type { CoreContext } from '../core/context.ts'
import type { Due } from '../core/due-queue.ts'

export class Invitations {
  readonly #ctx: Pick<CoreContext, 'due'>
  readonly #onLapsed: () => void
  readonly #byId = new Map<string, Due>()

  constructor(ctx: Pick<CoreContext, 'due'>, onLapsed: () => void) {
    this.#ctx = ctx
    this.#onLapsed = onLapsed
  }

  get size(): number {
    return this.#byId.size
  }

  give(id: string, forMs: number): void {
    const lapse = (): void => {
      this.#byId.delete(id)
      this.#onLapsed()
    }
    this.#byId.set(id, this.#ctx.due.after(forMs, lapse))
  }

  /** False where there is none. */
  take(id: string): boolean {
    const due = this.#byId.get(id)
    if (due === undefined) return false
    this.#ctx.due.cancel(due)
    return this.#byId.delete(id)
  }

  clear(): void {
    for (const id of this.#byId.keys()) this.take(id)
  }
}
