/**
 * The publish ids of a topic with dedupe: those whose record is in, for as long as the window says, and
 * those whose first publish is on its way. A repeat shares the outcome of the first, whatever it will be.
 *
 *   first publish ─► pending: waits for room, or to be durable ─► position, until the window forgets it
 *                                        └ known to be lost ─► forgotten at once
 */
import type { Clock } from '../model/clock.ts'
import { OdradekError } from '../model/errors.ts'
import type { Position, Published } from '../model/options.ts'
import { DedupeWindow } from './dedupe.ts'
import type { Draft } from './draft.ts'
import type { TopicSettings } from './topic-settings.ts'

export class PublishIds {
  readonly #clock: Clock
  /** Null where the topic has no dedupe: then no id is known, whatever is published. */
  #window: DedupeWindow | null = null
  readonly #pending = new Map<string, Promise<Published>>()

  constructor(clock: Clock, dedupe: TopicSettings['dedupe']) {
    this.#clock = clock
    this.limit(dedupe)
  }

  get on(): boolean {
    return this.#window !== null
  }

  /** Other bounds: of what is known, the newest stay known. */
  limit(dedupe: TopicSettings['dedupe']): void {
    if (dedupe === null) this.#window = null
    else if (this.#window === null) this.#window = new DedupeWindow(dedupe.windowMs, dedupe.records)
    else this.#window.limit(dedupe.windowMs, dedupe.records)
  }

  /** Whether the id of this was published before. */
  knows(draft: Draft): boolean {
    return this.pending(draft) !== undefined || this.position(draft) !== undefined
  }

  /** Where the record of this id went, if it was accepted before. */
  position({ id }: Draft): Position | undefined {
    return id === undefined ? undefined : this.#window?.get(id, this.#clock.monotonic())
  }

  /** The outcome of the first publish of this id, while it waits for room or for its durability. */
  pending({ id }: Draft): Promise<Published> | undefined {
    return id === undefined ? undefined : this.#pending.get(id)
  }

  accepted({ id }: Draft, position: Position): void {
    if (id !== undefined) this.#window?.set(id, position, this.#clock.monotonic())
  }

  /** A record that another process has left, and how long ago it was published. */
  restored(id: string, position: Position, ageMs: number): void {
    this.#window?.set(id, position, this.#clock.monotonic() - ageMs)
  }

  /** This is the first publish of its id. One that is known to be lost may be published again. */
  expect({ id }: Draft, outcome: () => Promise<Published>): void {
    if (id === undefined || this.#window === null) return
    const first = outcome()
    this.#pending.set(id, first)
    first.then(
      () => this.#pending.delete(id),
      (error: unknown) => {
        this.#pending.delete(id)
        if (isLost(error)) this.#window?.delete(id)
      },
    )
  }
}

/** Whether this says of a record that was taken that it is not in the log, and never will be. */
export function isLost(error: unknown): boolean {
  return error instanceof OdradekError && error.code === 'STORAGE_FULL'
}
