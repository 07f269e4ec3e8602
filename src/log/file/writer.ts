/**
 * Writes what is committed into segments, log after log, behind everybody's back: one write at a time, so that the
 * journal's own writes find the disk free. What cannot be written stays in memory, and in the journal, and is tried
 * again; the journal runs full before memory does.
 *
 * It does so when there is enough, or somebody waits for it. Until then it loses nothing by being in the journal alone,
 * while a write for each small batch would cost more than all else that is done for that batch.
 */
import type { Clock, Timer } from '../../model/clock.ts'

const RETRY_MS = 1_000

/** A log, to the writer. */
export interface WrittenBehind {
  /** Writes what is committed. One call at a time. */
  writeBehind(): Promise<void>
}

/** Who hears how it goes. */
export interface WriterListener {
  failed(error: unknown): void
  /** A write that failed has been made up for. */
  recovered(): void
}

export class Writer {
  readonly #clock: Clock
  readonly #enoughBytes: number
  readonly #listener: WriterListener
  readonly #waiting = new Set<WrittenBehind>()
  /** What the logs have that wait, about. */
  #waitingBytes = 0
  /** Somebody waits for what is written. */
  #hurried = false
  #running: Promise<void> | null = null
  /** What is being written now. */
  #current: WrittenBehind | null = null
  #writing: Promise<unknown> = Promise.resolve()
  /** Waits before it tries again. */
  #pause: Timer | null = null
  #failed = false
  #stopped = false

  /** `enoughBytes`: of all logs together. */
  constructor(clock: Clock, enoughBytes: number, listener: WriterListener) {
    this.#clock = clock
    this.#enoughBytes = enoughBytes
    this.#listener = listener
  }

  /** The log has so much more to be written. */
  add(log: WrittenBehind, sizeBytes: number): void {
    if (this.#stopped) return
    this.#waiting.add(log)
    this.#waitingBytes += sizeBytes
    this.#runIfDue()
  }

  /** What the log has is to be written now. */
  hurry(log: WrittenBehind): void {
    this.#hurried = true
    this.add(log, 0)
  }

  /** For a log that is gone: resolves when nothing of it is written any more. */
  async forget(log: WrittenBehind): Promise<void> {
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

  #runIfDue(): void {
    if (this.#pause === null && (this.#hurried || this.#waitingBytes >= this.#enoughBytes)) this.#run()
  }

  #run(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = null
      // There may be enough again by now.
      this.#runIfDue()
    })
  }

  async #writeAll(): Promise<void> {
    // Begins in a later microtask, when `#running` is set.
    await null
    this.#hurried = false
    this.#waitingBytes = 0
    const logs = [...this.#waiting]
    for (const log of logs) {
      if (!this.#waiting.delete(log)) continue
      if (!(await this.#write(log))) return
    }
    if (!this.#failed) return
    this.#failed = false
    this.#listener.recovered()
  }

  async #write(log: WrittenBehind): Promise<boolean> {
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

  #tryAgain(log: WrittenBehind): void {
    this.#waiting.add(log)
    this.#pause = this.#clock.setTimer(() => {
      this.#pause = null
      this.#run()
    }, RETRY_MS)
  }
}
