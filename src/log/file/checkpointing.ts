/**
 * When a checkpoint is taken, and that it gets to the disk: one at a time, beside the groups that go into the other file
 * of the journal meanwhile. Where the disk is full it is tried again until there is space, or until the engine closes, and
 * writes one of its own.
 */
import { isFull, type JournalRoom } from './journal-room.ts'

/** Takes the state of all logs and of `Meta` at a moment, and makes it last. */
export interface Checkpointer {
  /** Synchronous, right after a group was formed: all of it belongs to groups up to `sequence`. */
  capture(sequence: number): Capture
}

export interface Capture {
  /** Resolves when a checkpoint of that moment is on the disk. May be called again after it failed with STORAGE_FULL. */
  write(): Promise<void>
}

export class Checkpointing {
  readonly #checkpointer: Checkpointer
  readonly #room: JournalRoom
  readonly #failed: (cause: unknown) => void
  #underWay: Promise<void> | null = null
  /** Somebody waits for one. */
  #wanted = false
  #closing = false
  #over = false

  constructor(checkpointer: Checkpointer, room: JournalRoom, failed: (cause: unknown) => void) {
    this.#checkpointer = checkpointer
    this.#room = room
    this.#failed = failed
  }

  get isUnderWay(): boolean {
    return this.#underWay !== null
  }

  /** Whether somebody waits for one, and will get it. */
  get isDue(): boolean {
    return this.#wanted && !this.#closing
  }

  want(): void {
    this.#wanted = true
  }

  capture(sequence: number): Capture {
    this.#wanted = false
    return this.#checkpointer.capture(sequence)
  }

  /** Once what it covers is behind in the other file. The one before has ended. */
  begin(capture: Capture): void {
    this.#underWay = this.#write(capture).finally(() => {
      this.#underWay = null
    })
  }

  async #write(capture: Capture): Promise<void> {
    while (!this.#over) {
      try {
        await capture.write()
        this.#room.freed()
        return
      } catch (error) {
        // Another one is written at the end; until then the journal has what it needs.
        if (this.#closing) return
        if (!isFull(error)) return this.#failed(error)
        this.#room.full(error)
        await this.#room.pause()
      }
    }
  }

  /** None is due any more. */
  close(): void {
    this.#closing = true
  }

  /** It is not tried again. */
  end(): void {
    this.#over = true
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    await this.#underWay
  }
}
