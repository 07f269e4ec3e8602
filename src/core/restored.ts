/**
 * What a stored commit knows about records that a former process may have had in its hands: which were
 * settled out of order, and how often the others were started. A record that takes the process down
 * with it still runs out of attempts, because a start is stored before the hand-out.
 */

/** What a commit stores of a cursor. Plain JSON. */
export interface CursorState {
  /** Everything below is settled. */
  readonly offset: number
  /** Settled beyond it, as sorted `[from, to)` runs. */
  readonly settled: readonly (readonly [number, number])[]
  /** Below this, records may have been handed out. */
  readonly handed: number
  /** `[offset, starts]` of unsettled records that were started more than once. */
  readonly attempts: readonly (readonly [number, number])[]
}

export class Restored {
  /** From here on nothing is known. */
  readonly until: number
  readonly #handed: number
  readonly #settled: readonly (readonly [number, number])[]
  readonly #starts: ReadonlyMap<number, number>

  constructor(state: CursorState) {
    this.#handed = state.handed
    this.until = Math.max(state.handed, state.settled.at(-1)?.[1] ?? 0)
    this.#settled = state.settled
    this.#starts = new Map(state.attempts)
  }

  isSettled(offset: number): boolean {
    return this.#settled.some(([from, to]) => from <= offset && offset < to)
  }

  /** Deliveries that began before, as far as is known. */
  starts(offset: number): number {
    return offset < this.#handed ? (this.#starts.get(offset) ?? 1) : 0
  }

  /** What is still true of it from `next` on. */
  settledFrom(next: number): (readonly [number, number])[] {
    return this.#settled
      .filter(([, to]) => to > next)
      .map(([from, to]): readonly [number, number] => [Math.max(from, next), to])
  }
}
