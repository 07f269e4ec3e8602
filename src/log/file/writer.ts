/**
 * Writes what is committed into segments, log after log, behind everybody's back: one write at a time, so that the
 * journal's own writes find the disk free. What cannot be written stays in memory, and in the journal, and is tried
 * again; the journal runs full before memory does.
 */
import type { Clock, Timer } from '../../model/clock.ts'
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
  /** What is being written now. */
  #current: FileLog | null = null
  #writing: Promise<unknown> = Promise.resolve()
  /** Waits before it tries again. */
  #pause: Timer | null = null
  #failed = false
  #stopped = false

  constructor(clock: Clock, listener: WriterListener) {
    this.#clock = clock
    this.#listener = listener
  }

  wake(log: FileLog): void {
    if (this.#stopped) return
    this.#waiting.add(log)
    if (this.#pause === null) this.#run()
  }

  /** For a log that is gone: resolves when nothing of it is written any more. */
  async forget(log: FileLog): Promise<void> {
    this.#waiting.delete(log)
    if (this.#current === log) await this.#writing
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#waiting.clear()
    this.#pause?.cancel()
    await this.#running
  }

  #run(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = null
      // Somebody may have come when all seemed to be done.
      if (this.#waiting.size > 0 && this.#pause === null) this.#run()
    })
  }

  async #writeAll(): Promise<void> {
    // Begins in a later microtask, when `#running` is set.
    await null
    for (const log of this.#waiting) {
      this.#waiting.delete(log)
      if (!(await this.#write(log))) return
    }
    if (!this.#failed) return
    this.#failed = false
    this.#listener.recovered()
  }

  async #write(log: FileLog): Promise<boolean> {
    const writing = log.writeBehind()
    this.#current = log
    this.#writing = writing.catch(() => undefined)
    try {
      await writing
      return true
    } catch (error) {
      this.#failed = true
      this.#listener.failed(error)
      if (!this.#stopped) this.#tryAgain(log)
      return false
    } finally {
      this.#current = null
    }
  }

  #tryAgain(log: FileLog): void {
    this.#waiting.add(log)
    this.#pause = this.#clock.setTimer(() => {
      this.#pause = null
      this.#run()
    }, RETRY_MS)
  }
}
