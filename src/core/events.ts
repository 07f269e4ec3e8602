/**
 * Lifecycle events leave the core here. Raising one is safe anywhere, also in the middle of a settle:
 * listeners are user code, so they run after the current drain, in the order of the events, never inside
 * a critical section.
 */
import { messageOf } from '../model/errors.ts'
import type { BrokerEvents, Logger } from '../model/views.ts'
import type { Dispatcher } from './dispatcher.ts'
import { Emitter } from './emitter.ts'

export type EventName = keyof BrokerEvents
/** Hears every event, whoever else listens. */
export type Observer = (name: keyof BrokerEvents, event: unknown) => void

export class Events {
  readonly emitter: Emitter<BrokerEvents>
  readonly #dispatcher: Dispatcher
  readonly #logger: Logger
  readonly #observe: Observer | undefined
  #queue: (() => void)[] = []

  constructor(dispatcher: Dispatcher, logger: Logger, observe: Observer | undefined) {
    this.#dispatcher = dispatcher
    this.#logger = logger
    this.#observe = observe
    this.emitter = new Emitter<BrokerEvents>((error, name) => {
      logger.error({ error }, `a listener of "${name}" failed: ${messageOf(error)}`)
    })
  }

  raise<Name extends EventName>(name: Name, event: BrokerEvents[Name]): void {
    if (this.#queue.length === 0) this.#dispatcher.afterDrain(() => this.flush())
    this.#queue.push(() => {
      this.#tellObserver(name, event)
      this.emitter.emit(name, event)
    })
  }

  #tellObserver(name: EventName, event: unknown): void {
    try {
      this.#observe?.(name, event)
    } catch (error) {
      this.#logger.error({ error }, `the observer of "${name}" failed: ${messageOf(error)}`)
    }
  }

  /** A failure nobody awaits: an `error` event, or a line in the log when nobody listens. Never thrown. */
  error(error: unknown, context: string): void {
    const raised = error instanceof Error ? error : new Error(messageOf(error))
    if (this.emitter.listenerCount('error') === 0) {
      this.#logger.error({ error: raised, context }, `${context}: ${messageOf(raised)}`)
    }
    this.raise('error', { error: raised, context })
  }

  flush(): void {
    const queue = this.#queue
    this.#queue = []
    for (const emit of queue) emit()
  }
}
