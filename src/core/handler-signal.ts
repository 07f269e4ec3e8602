/**
 * Tells a handler that its work is no longer its own. Most handlers never ask, so the signal is made when one
 * does, also after the fact. Listeners are user code: they are told after the drain, never in the middle of
 * a settle.
 */
import type { Dispatcher } from './dispatcher.ts'

export class HandlerSignal {
  #controller: AbortController | null = null
  #reason: DOMException | null = null

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Only the first reason counts. */
  abort(reason: string, dispatcher: Dispatcher): void {
    if (this.#reason !== null) return
    this.#reason = new DOMException(reason, 'AbortError')
    const controller = this.#controller
    if (controller !== null) dispatcher.afterDrain(() => controller.abort(this.#reason))
  }
}
