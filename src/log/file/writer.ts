/**
 * Writes what is committed into segments, log after log, behind everybody's back: one write at a time, so that the
 * journal's own writes find the disk free. What cannot be written stays in memory, and in the journal, and is tried
 * again; the journal runs full before memory does.
 */
import type { Clock } from '../../model/clock.ts'
import type { FileLog } from './file-log.ts'

const RETRY_MS = 1_000

/** Who hears how it goes. */
export interface WriterListener {
  failed(error: unknown): void
  /** A write that failed has been made up for. */
  recovered(): void
}

export class Writer {
  readonly #clock: Clock
  readonly #listener: WriterListener
  readonly #waiting = new Set<FileLog>()
  #running: Promise<void> | null = null
  /** Waits before it tries again. */
  #pausing = false
  #failed = false

  constructor(clock: Clock, listener: WriterListener) {
    this.#clock = clock
    this.#listener = listener
  }

  wake(log: FileLog): void {
    this.#waiting.add(log)
    if (this.#running === null && !this.#pausing) void this.#run()
  }

  /** Resolves when nothing is left to be written, or it cannot be. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  #run(): Promise<void> {
    this.#running = this.#writeAll().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #writeAll(): Promise<void> {
    // Begins in a later microtask, when `#running` is set.
    await null
    for (const log of this.#waiting) {
      this.#waiting.delete(log)
      try {
        await log.writeBehind()
      } catch (error) {
        this.#waiting.add(log)
        this.#failed = true
        this.#listener.failed(error)
        this.#retryLater()
        return
      }
    }
    if (!this.#failed) return
    this.#failed = false
    this.#listener.recovered()
  }

  #retryLater(): void {
    this.#pausing = true
    this.#clock.setTimer(() => {
      this.#pausing = false
      if (this.#running === null && this.#waiting.size > 0) void this.#run()
    }, RETRY_MS)
  }
}
