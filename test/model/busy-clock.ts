/**
 * A manual clock whose handlers may take time: `spend` makes it later at once, as code that blocks the thread
 * does, and timers that fell due meanwhile are late by that much.
 *
 *   base (the manual clock) ──────●────────► moves in `rest` and `advance`, firing timers
 *   what the code sees      ──────●═════●──► base, or the end of the work that was last spent, if later
 */
import type { Timer } from '../../src/model/clock.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

export class BusyClock extends ManualClock {
  /** Monotonic milliseconds at the end of what was spent. */
  #workedUntil = 0

  override monotonic(): number {
    return Math.max(super.monotonic(), this.#workedUntil)
  }

  /** When the turn of the event loop that is running began, or earlier. */
  get baseMs(): number {
    return super.monotonic()
  }

  override now(): number {
    return super.now() + this.#behindMs
  }

  override setTimer(callback: () => void, delayMs: number): Timer {
    return super.setTimer(callback, Math.max(delayMs, 0) + this.#behindMs)
  }

  get #behindMs(): number {
    return this.monotonic() - this.baseMs
  }

  /** The code that runs takes this long. */
  spend(ms: number): void {
    this.#workedUntil = this.monotonic() + ms
  }

  /** Everything that can happen without more time happens, timers that are due or overdue included. */
  async rest(): Promise<void> {
    await this.advance(0)
    while (this.#behindMs > 0) await this.advance(this.#behindMs)
  }

  /** Time goes on. */
  async pass(ms: number): Promise<void> {
    await this.advance(ms)
    await this.rest()
  }
}
