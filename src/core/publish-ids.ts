/**
 * The publish ids of a topic with dedupe: those whose record is in, for as long as the window says, and
 * those whose first publish is on its way. A repeat shares the outcome of the first, whatever it will be.
 */
import { OdradekError } from '../model/errors.ts'
import type { Position, Published } from '../model/options.ts'
import { DedupeWindow } from './dedupe.ts'

export class PublishIds {
  readonly #window: DedupeWindow
  readonly #pending = new Map<string, Promise<Published>>()

  constructor(windowMs: number, records: number) {
    this.#window = new DedupeWindow(windowMs, records)
  }

  /** Where the record of `id` went. */
  position(id: string, now: number): Position | undefined {
    return this.#window.get(id, now)
  }

  /** The outcome of the first publish of `id`, while it waits for room or for its durability. */
  pending(id: string): Promise<Published> | undefined {
    return this.#pending.get(id)
  }

  accepted(id: string, position: Position, now: number): void {
    this.#window.set(id, position, now)
  }

  /** `outcome` is the first publish of `id`. One that is known to be lost may be published again. */
  expect(id: string, outcome: Promise<Published>): void {
    this.#pending.set(id, outcome)
    outcome.then(
      () => this.#pending.delete(id),
      (error: unknown) => {
        this.#pending.delete(id)
        if (isLost(error)) this.#window.delete(id)
      },
    )
  }
}

/** Whether this says of a record that was taken that it is not in the log, and never will be. */
export function isLost(error: unknown): boolean {
  return error instanceof OdradekError && error.code === 'STORAGE_FULL'
}
