/**
 * A clock that moves only when told to, so that retries, expiries, retention by age and grace periods
 * are tested in milliseconds and always in the same order.
 *
 *   advance(100)   now ──●──────●●────────────► now + 100
 *                        │      ││
 *                        └──────┴┴─ due timers, in due order, ties in the order they were made;
 *                                   after each one the code under test settles, so that a timer it
 *                                   makes inside the window still fires inside it, in its turn
 *
 * Only time is manual. Turns of the event loop (`nextTurn`) stay real macrotasks, taken from the system
 * clock: a drain that yields to I/O really yields. To settle is to let turns pass until two in a row saw
 * no business with the clock (no turn asked for or taken, no timer made or cancelled). Work that waits for
 * something else, such as a disk, is not seen: await it.
 *
 * Wall and monotonic time advance together, but `setWall` moves the wall alone, as an operator or NTP does.
 */
import type { Clock, Timer } from '../model/clock.ts'
import { SystemClock } from '../model/clock.ts'
import { assert } from '../model/errors.ts'

/** 2026-01-01T00:00:00Z. */
const DEFAULT_START_MS = 1_767_225_600_000
/** Turns without business after which the code under test counts as settled. */
const QUIET_TURNS = 2
const DEFAULT_MAX_TURNS = 1_000
const DEFAULT_MAX_TIMERS = 10_000

export interface ManualClockOptions {
  /** Wall time at the start, in milliseconds since the epoch. Default: 2026-01-01T00:00:00Z. */
  readonly startMs?: number
  /** Turns that `settle` waits at most: code that never comes to rest is left running. Default 1,000. */
  readonly maxTurns?: number
}

interface PendingTimer {
  readonly dueMs: number
  readonly callback: () => void
}

export class ManualClock implements Clock {
  readonly #system = new SystemClock()
  readonly #maxTurns: number
  /** In the order they were made, which breaks ties. */
  readonly #timers = new Set<PendingTimer>()
  #monotonicMs = 0
  /** Wall time at monotonic 0. */
  #originMs: number
  #held = false
  #moving = false
  /** Grows with all business that the code under test has with the clock. */
  #business = 0

  constructor(options: ManualClockOptions = {}) {
    this.#originMs = options.startMs ?? DEFAULT_START_MS
    this.#maxTurns = options.maxTurns ?? DEFAULT_MAX_TURNS
  }

  now(): number {
    return Math.floor(this.#originMs + this.#monotonicMs)
  }

  monotonic(): number {
    return this.#monotonicMs
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer: PendingTimer = { dueMs: this.#monotonicMs + Math.max(delayMs, 0), callback }
    this.#timers.add(timer)
    this.#business++
    return {
      cancel: () => {
        if (this.#timers.delete(timer)) this.#business++
      },
    }
  }

  nextTurn(callback: () => void): void {
    this.#business++
    this.#system.nextTurn(() => {
      this.#business++
      callback()
    })
  }

  hold(on: boolean): void {
    this.#held = on
  }

  /** Whether the code under test would keep the process alive now. */
  get held(): boolean {
    return this.#held
  }

  /** Timers that have neither fired nor been cancelled: a way to find leaks. */
  get pending(): number {
    return this.#timers.size
  }

  /** Milliseconds until the next timer fires, `Infinity` when there is none. */
  get nextTimerMs(): number {
    const next = this.#next()
    return next === undefined ? Number.POSITIVE_INFINITY : next.dueMs - this.#monotonicMs
  }

  /** Sets the wall clock, backwards too. Monotonic time and timers do not notice. */
  setWall(ms: number): void {
    this.#originMs = ms - this.#monotonicMs
  }

  /**
   * Moves time on by `ms`, firing what falls due on the way, each timer at its own moment. What a timer
   * throws rejects this, with time standing at that moment.
   */
  async advance(ms: number): Promise<void> {
    assert(ms >= 0 && Number.isFinite(ms), `time cannot advance by ${ms} ms`)
    await this.#move(async () => {
      const until = this.#monotonicMs + ms
      for (let next = this.#next(); next !== undefined && next.dueMs <= until; next = this.#next()) {
        await this.#fire(next)
      }
      this.#monotonicMs = until
    })
  }

  /**
   * Fires timers, whenever they are due, until there is none left; answers how many. Rejects after `limit`
   * of them, since a timer that renews itself never ends.
   */
  async runAll(limit: number = DEFAULT_MAX_TIMERS): Promise<number> {
    let fired = 0
    await this.#move(async () => {
      for (let next = this.#next(); next !== undefined; next = this.#next()) {
        assert(fired < limit, `timers are still due after ${limit} of them fired`)
        await this.#fire(next)
        fired++
      }
    })
    return fired
  }

  /** Lets the code under test come to rest without moving time. */
  async settle(): Promise<void> {
    let quiet = 0
    for (let turns = 0; quiet < QUIET_TURNS && turns < this.#maxTurns; turns++) {
      const before = this.#business
      await new Promise<void>((resolve) => this.#system.nextTurn(resolve))
      quiet = this.#business === before ? quiet + 1 : 0
    }
  }

  async #move(step: () => Promise<void>): Promise<void> {
    assert(!this.#moving, 'a manual clock is moved by one caller at a time')
    this.#moving = true
    try {
      await this.settle()
      await step()
    } finally {
      this.#moving = false
    }
  }

  async #fire(timer: PendingTimer): Promise<void> {
    this.#timers.delete(timer)
    this.#monotonicMs = timer.dueMs
    timer.callback()
    await this.settle()
  }

  #next(): PendingTimer | undefined {
    let next: PendingTimer | undefined
    for (const timer of this.#timers) if (next === undefined || timer.dueMs < next.dueMs) next = timer
    return next
  }
}
