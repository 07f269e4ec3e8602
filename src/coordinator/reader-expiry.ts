/** Durable readers without members: each is forgotten in the end, unless somebody comes back to it before. */
import type { CoreContext } from '../core/context.ts'
import { type Due, DueCallback } from '../core/due-queue.ts'
import type { Reader } from '../core/reader.ts'

export class ReaderExpiry {
  readonly #ctx: CoreContext
  readonly #retentionMs: number
  readonly #forget: (reader: Reader) => Promise<void>
  readonly #due = new Map<Reader, Due>()

  constructor(ctx: CoreContext, retentionMs: number, forget: (reader: Reader) => Promise<void>) {
    this.#ctx = ctx
    this.#retentionMs = retentionMs
    this.#forget = forget
  }

  begin(reader: Reader): void {
    const due = new DueCallback(() => {
      this.#forget(reader).catch((error: unknown) => reader.raise(error, `forgetting "${reader.name}"`))
    })
    this.cancel(reader)
    this.#due.set(reader, due)
    this.#ctx.due.schedule(due, this.#ctx.clock.monotonic() + this.#retentionMs)
  }

  cancel(reader: Reader): void {
    const due = this.#due.get(reader)
    if (due === undefined) return
    this.#ctx.due.cancel(due)
    this.#due.delete(reader)
  }
}
