/**
 * Room in the journal: its file grows ahead of need, and whoever is refused meanwhile hears when to ask again.
 *
 *   0          used        allocated            capacity
 *   │ groups    │ room       │ not there yet      │      grows where room is less than what is used
 *
 * A full disk is met here, where nothing has been promised yet, and clears up without a restart when space is freed. Any
 * other failure to grow ends the journal. Whatever else takes space on that disk tells of it too: what finds no room
 * behind the journal will soon find none in it.
 */
import type { Clock } from '../../model/clock.ts'
import { OdradekError } from '../../model/errors.ts'
import type { Journal } from './journal.ts'

const RETRY_MS = 1_000

/** Who was told to wait. */
export interface Refused {
  /** There may be room now. */
  roomAgain(): void
}

export interface JournalRoomOptions {
  /** Told when the disk is full. */
  readonly report: (error: unknown, what: string) => void
  /** The journal is at its end. */
  readonly failed: (cause: unknown) => void
}

export class JournalRoom {
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #options: JournalRoomOptions
  /** Those that were told to wait since there was room last. */
  readonly #refused = new Set<Refused>()
  #growing: Promise<void> | null = null
  #isFull = false
  #over = false

  constructor(journal: Journal, clock: Clock, options: JournalRoomOptions) {
    this.#journal = journal
    this.#clock = clock
    this.#options = options
  }

  /** Whether the disk is. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Why there is none now. Who must wait is told when to ask again. */
  refuse(whom: Refused): 'NO_ROOM' | 'STORAGE_FULL' {
    if (this.#isFull) return 'STORAGE_FULL'
    this.#refused.add(whom)
    return 'NO_ROOM'
  }

  forget(whom: Refused): void {
    this.#refused.delete(whom)
  }

  tellRefused(): void {
    const refused = [...this.#refused]
    this.#refused.clear()
    for (const each of refused) each.roomAgain()
  }

  /** Begins to make more, if the file may grow and does not already. */
  extend(): void {
    if (this.#growing !== null || this.#over) return
    if (this.#journal.usedBytes + this.#journal.roomBytes >= this.#journal.capacityBytes) return
    void this.#grow()
  }

  /** Makes it large enough for so much, beyond its capacity if need be; resolves when that is done or has failed. */
  async growFor(sizeBytes: number): Promise<void> {
    await this.#growing
    await this.#grow(sizeBytes)
  }

  #grow(sizeBytes?: number): Promise<void> {
    this.#growing ??= this.#journal
      .grow(sizeBytes)
      .then(
        () => this.freed(),
        (error: unknown) => {
          if (isFull(error)) this.full(error)
          else this.#options.failed(error)
        },
      )
      .finally(() => {
        this.#growing = null
        this.tellRefused()
      })
    return this.#growing
  }

  full(error: unknown): void {
    if (!this.#isFull) {
      this.#options.report(error, 'the disk is full: publishing is refused once the journal is')
    }
    this.#isFull = true
  }

  freed(): void {
    this.#isFull = false
  }

  /** Until it is worth trying again whether the disk is still full. */
  pause(): Promise<void> {
    return new Promise((resolve) => this.#clock.setTimer(resolve, RETRY_MS))
  }

  /** There will be no more. */
  end(): void {
    this.#over = true
    this.tellRefused()
  }

  /** Resolves when it does not grow any more. */
  async idle(): Promise<void> {
    await this.#growing
  }
}

export function isFull(error: unknown): error is OdradekError {
  return error instanceof OdradekError && error.code === 'STORAGE_FULL'
}
