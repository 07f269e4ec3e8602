/**
 * What a stored commit knows about records that a former process may have had in its hands: which were
 * settled out of order, and how often the others were started. A record that takes the process down
 * with it still runs out of attempts, because a start is stored before the hand-out.
 *
 *   offset            handed    until
 *   │ ✓ │ 1 │ ✓ ✓ │ 3 │         │       ✓ a settled run; numbers: deliveries that began
 *
 * Runs are sorted and do not overlap. A run of starts may span offsets that are settled.
 */

/** What a commit stores of a cursor. Plain JSON. */
export interface CursorState {
  /** Everything below is settled. */
  readonly offset: number
  /** Settled beyond it, as `[from, to)` runs. */
  readonly settled: readonly Run[]
  /** Below this, records may have been handed out. */
  readonly handed: number
  /** `[from, to, deliveries that began]` of unsettled records, where that is not one. */
  readonly starts: readonly Starts[]
}

export type Run = readonly [from: number, to: number]
export type Starts = readonly [from: number, to: number, count: number]

export class Restored {
  /** From here on nothing is known. */
  readonly until: number
  readonly #state: CursorState

  constructor(state: CursorState) {
    this.until = Math.max(state.handed, state.settled.at(-1)?.[1] ?? 0)
    this.#state = state
  }

  isSettled(offset: number): boolean {
    return runAt(this.#state.settled, offset) !== undefined
  }

  /** Deliveries that began before. One that is not known to have begun may have, within a block. */
  starts(offset: number): number {
    return offset < this.#state.handed ? (runAt(this.#state.starts, offset)?.[2] ?? 1) : 0
  }

  /** Deliveries that are known to have begun, beyond the one that may have. */
  knownStarts(offset: number): number {
    return runAt(this.#state.starts, offset)?.[2] ?? 0
  }

  /** What is still true of it from `next` on. */
  settledFrom(next: number): Run[] {
    return this.#state.settled
      .filter(([, to]) => to > next)
      .map(([from, to]): Run => [Math.max(from, next), to])
  }
}

/** Makes runs out of one record after the other, in order of offset. */
export class StartRuns {
  readonly #runs: [number, number, number][] = []

  add(offset: number, count: number): void {
    const last = this.#runs.at(-1)
    if (last !== undefined && last[2] === count) last[1] = offset + 1
    else this.#runs.push([offset, offset + 1, count])
  }

  /** Those that say something: once is what is taken for granted. */
  get runs(): readonly Starts[] {
    return this.#runs.filter(([, , count]) => count !== 1)
  }
}

/** A state as far as the log reaches: offsets that a log has lost are given to other records. */
export function within(state: CursorState, end: number): CursorState {
  const cut = <R extends Run | Starts>(runs: readonly R[]): R[] =>
    runs
      .filter(([from]) => from < end)
      .map(([from, to, ...rest]) => [from, Math.min(to, end), ...rest] as unknown as R)
  return {
    offset: Math.min(state.offset, end),
    settled: cut(state.settled),
    handed: Math.min(state.handed, end),
    starts: cut(state.starts),
  }
}

/** Where a cursor is, without the attempts of a process that is still the same. */
export function withoutStarts({ offset, settled }: CursorState): CursorState {
  return { offset, settled, handed: offset, starts: [] }
}

function runAt<R extends Run | Starts>(runs: readonly R[], offset: number): R | undefined {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((runs[middle] as R)[1] <= offset) low = middle + 1
    else high = middle
  }
  const run = runs[low]
  return run !== undefined && run[0] <= offset ? run : undefined
}
