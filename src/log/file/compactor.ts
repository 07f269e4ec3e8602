/**
 * Compacts logs behind everybody's back, one at a time, when they are due: when half of what could be compacted was
 * written since, and when tombstones have had their time. Between its slices others have several turns, so that whoever
 * has something to do is hardly held up.
 *
 *   a log was written to, or opened ─► due? ─► waiting ─► compacted, slice by slice ─► due again?
 *                                       └ no: a timer, where tombstones are to go
 *
 * What fails leaves the log as it was. A disk that is full or fails is tried again later; a log that is damaged is left
 * alone, and told of once.
 */
import type { Clock, Timer } from '../../model/clock.ts'
import { odradekError } from '../../model/errors.ts'
import type { Compactable } from './compactable.ts'
import { type CompactionOptions, compactLog } from './compaction.ts'

const RETRY_MS = 60_000
/** Turns that others have for each slice: as many as it takes to publish something, and to be told so. */
const REST_TURNS = 4

export interface CompactorOptions extends Omit<CompactionOptions, 'now'> {
  readonly clock: Clock
  /** Told of what failed. */
  readonly report: (error: unknown, what: string) => void
  /** Whether to wait for `freed`: what was replaced takes room on the disk until a checkpoint is written. */
  readonly mustWait: () => boolean
}

export class Compactor {
  readonly #options: CompactorOptions
  readonly #waiting = new Set<Compactable>()
  readonly #timers = new Map<Compactable, { readonly dueAt: number; readonly timer: Timer }>()
  /** Damaged. */
  readonly #left = new WeakSet<Compactable>()
  #current: Compactable | null = null
  /** What is under way of the current one, which does not reject. */
  #compacting: Promise<void> = Promise.resolve()
  #isStopping = false
  #resume: () => void = () => {}
  #running: Promise<void> | null = null
  #stopped = false

  constructor(options: CompactorOptions) {
    this.#options = options
  }

  /** Something happened to the log: it is compacted if it is due. */
  consider(log: Compactable): void {
    if (this.#stopped || this.#left.has(log)) return
    const now = this.#options.clock.now()
    if (log.isDue(now)) {
      this.#waiting.add(log)
      this.#run()
    } else if (log !== this.#current && log.horizon > now) this.#lookAt(log, log.horizon)
  }

  /** What was replaced may be gone. */
  freed(): void {
    this.#resume()
  }

  /** For a log that is gone: resolves when nothing of it is compacted any more. */
  async forget(log: Compactable): Promise<void> {
    this.#waiting.delete(log)
    this.#left.add(log)
    this.#cancel(log)
    if (this.#current !== log) return
    this.#interrupt()
    await this.#compacting
  }

  /** Resolves when nothing is compacted any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#waiting.clear()
    for (const log of [...this.#timers.keys()]) this.#cancel(log)
    this.#interrupt()
    await this.#running
  }

  #interrupt(): void {
    this.#isStopping = true
    this.#current?.stopWaiting()
    this.#resume()
  }

  #run(): void {
    this.#running ??= this.#compactAll().finally(() => {
      this.#running = null
      // Somebody may have come when all seemed to be done.
      if (this.#waiting.size > 0) this.#run()
    })
  }

  async #compactAll(): Promise<void> {
    // Begins in a later microtask, when `#running` is set.
    await null
    for (const log of this.#waiting) {
      this.#waiting.delete(log)
      this.#current = log
      this.#isStopping = this.#stopped
      this.#compacting = this.#compact(log)
      await this.#compacting
      this.#current = null
      this.consider(log)
    }
  }

  async #compact(log: Compactable): Promise<void> {
    const { clock, report } = this.#options
    const slices = compactLog(log, { ...this.#options, now: () => clock.now() })
    try {
      for await (const slice of slices) {
        await this.#rest()
        if (slice === 'replaced') await this.#room()
        if (this.#isStopping) return
      }
      await this.#rest()
    } catch (error) {
      const cause = odradekError(error)
      const damaged = cause.code === 'CORRUPT_LOG'
      report(
        cause,
        damaged ? 'compacting a log, which is left as it is' : 'compacting a log; it is tried again',
      )
      this.#left.add(log)
      if (!damaged) this.#lookAt(log, clock.now() + RETRY_MS)
    }
  }

  async #rest(): Promise<void> {
    for (let turns = 0; turns < REST_TURNS && !this.#isStopping; turns++) {
      await new Promise<void>((resolve) => this.#options.clock.nextTurn(resolve))
    }
  }

  async #room(): Promise<void> {
    while (!this.#isStopping && this.#options.mustWait()) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    }
  }

  /** A timer, in place of the one before. */
  #lookAt(log: Compactable, dueAt: number): void {
    if (this.#timers.get(log)?.dueAt === dueAt) return
    this.#cancel(log)
    if (dueAt === Number.POSITIVE_INFINITY || this.#stopped) return
    const { clock } = this.#options
    const look = (): void => {
      this.#timers.delete(log)
      this.#left.delete(log)
      this.consider(log)
    }
    this.#timers.set(log, { dueAt, timer: clock.setTimer(look, dueAt - clock.now()) })
  }

  #cancel(log: Compactable): void {
    this.#timers.get(log)?.timer.cancel()
    this.#timers.delete(log)
  }
}
