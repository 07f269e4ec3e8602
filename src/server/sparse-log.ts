/**
 * Which of many like messages are told: one of an address a minute, with how many were left out since the last one. A
 * client that tries again and again must not fill the log, and is not to be forgotten either.
 *
 *   address ─► told at, left out since      in the order of `told at`; beyond a bound, all further addresses are one
 */
import type { Clock } from '../model/clock.ts'

const INTERVAL_MS = 60_000
const MAX_ADDRESSES = 1_000
/** Stands for every address beyond those. */
const OTHERS = ''

interface Told {
  readonly atMs: number
  leftOut: number
}

export class SparseLog {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #told = new Map<string, Told>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** How many of this address were left out before this one; `undefined` where this one is, too. */
  take(address: string): number | undefined {
    const atMs = this.#clock.monotonic()
    const key = this.#told.has(address) || this.#hasRoom(atMs) ? address : OTHERS
    const last = this.#told.get(key)
    if (last !== undefined && atMs - last.atMs < INTERVAL_MS) {
      last.leftOut++
      return undefined
    }
    this.#told.delete(key)
    this.#told.set(key, { atMs, leftOut: 0 })
    return last?.leftOut ?? 0
  }

  /** Those who have kept quiet for a minute make room. */
  #hasRoom(nowMs: number): boolean {
    for (const [address, { atMs }] of this.#told) {
      if (this.#told.size < MAX_ADDRESSES || nowMs - atMs < INTERVAL_MS) break
      this.#told.delete(address)
    }
    return this.#told.size < MAX_ADDRESSES
  }
}
