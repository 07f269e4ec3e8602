/**
 * Lifecycle events leave the core here. Raising one is safe anywhere, also in the middle of a settle:
 * listeners are user code, so they run after the current drain, in the order of the events, never inside
 * a critical section.
 */
import { messageOf, OdradekError } from '../model/errors.ts'
import type { BrokerEvents, Logger } from '../model/views.ts'
import type { Dispatcher } from './dispatcher.ts'
import { Emitter, type Listener } from './emitter.ts'
import { invalid } from './settings.ts'

export type EventName = keyof BrokerEvents
/** Hears every event, whoever else listens. */
export type Observer = (name: keyof BrokerEvents, event: unknown) => void

const NAMES: Readonly<Record<EventName, true>> = {
  deadLetter: true,
  dropped: true,
  pressure: true,
  drain: true,
  stalled: true,
  rebalance: true,
  error: true,
  topicCreated: true,
  topicDeleted: true,
}

/** Whoever listens to an event that never comes waits for ever. @throws OdradekError INVALID_ARGUMENT */
export function checkListener<Name extends EventName>(
  name: Name,
  listener: Listener<BrokerEvents[Name]>,
): void {
  if (!Object.hasOwn(NAMES, name)) {
    throw invalid(`there is no event "${String(name)}"; there are ${Object.keys(NAMES).join(', ')}`)
  }
  if (typeof listener !== 'function') throw invalid(`a listener of "${name}" is a function`)
}

export class Events {
  readonly emitter: Emitter<BrokerEvents>
  readonly #dispatcher: Dispatcher
  readonly #logger: Logger
  readonly #observe: Observer | undefined
  #queue: (() => void)[] = []
  #closing = false

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

  /** The broker closes: from now on whatever its parts have under way is CLOSED, which is no news to anybody. */
  closing(): void {
    this.#closing = true
  }

  /** A failure nobody awaits: an `error` event, or a line in the log when nobody listens. Never thrown. */
  error(error: unknown, context: string): void {
    if (this.#closing && error instanceof OdradekError && error.code === 'CLOSED') return
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
