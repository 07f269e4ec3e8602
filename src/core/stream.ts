/**
 * Pull, over the same push machinery: a member with manual credit that receives one record per `next()`.
 *
 * Asking for the next record acks the one before. Leaving the loop (break, throw, return) releases the
 * current record un-acked, its attempt unchanged, and ends the subscription; an aborted signal ends the
 * loop as if there were no more records.
 */
import type { Delivery } from '../model/delivery.ts'
import { Deque } from './deque.ts'

/** What a stream needs of its subscription. */
export interface StreamSource {
  /** Allows `n` more deliveries. */
  request(n: number): void
  /** Gives back what is in hand and ends the subscription. */
  leave(): Promise<void>
}

interface Asker<T> {
  resolve(result: IteratorResult<Delivery<T>>): void
  reject(error: unknown): void
}

export class RecordStream<T> implements AsyncIterableIterator<Delivery<T>> {
  readonly #opened: Promise<StreamSource>
  #source: StreamSource | undefined
  /** Who called `next` and waits, in order. One record is on its way to the first. */
  readonly #askers = new Deque<Asker<T>>()
  #current: Delivery<T> | undefined
  #ended = false
  #failure: { readonly error: unknown } | undefined
  readonly #signal: AbortSignal | undefined

  /**
   * `open` subscribes with the given handler, manual acks and manual credit; `onEnd` hears when it ends.
   * @internal
   */
  constructor(
    open: (handler: (delivery: Delivery<T>) => void, onEnd: () => void) => Promise<StreamSource>,
    signal: AbortSignal | undefined,
  ) {
    this.#signal = signal
    if (signal?.aborted === true) {
      this.#ended = true
      this.#opened = Promise.resolve(NOTHING)
      return
    }
    signal?.addEventListener('abort', this.#abort, { once: true })
    this.#opened = open(
      (delivery) => this.#deliver(delivery),
      () => this.#end(),
    )
    this.#opened.then(
      (source) => {
        this.#source = source
        if (this.#askers.length > 0) source.request(1)
      },
      (error: unknown) => {
        this.#failure = { error }
        this.#end()
      },
    )
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Delivery<T>>> {
    return new Promise((resolve, reject) => {
      this.#askers.push({ resolve, reject })
      if (this.#askers.length === 1) this.#ask()
    })
  }

  async return(): Promise<IteratorResult<Delivery<T>>> {
    await this.#leave()
    return DONE
  }

  async throw(error: unknown): Promise<IteratorResult<Delivery<T>>> {
    await this.#leave()
    throw error
  }

  /** For the first who waits: the record before is done, the next one may come. */
  #ask(): void {
    this.#current?.ack()
    this.#current = undefined
    if (this.#ended) this.#dismiss()
    else this.#source?.request(1)
  }

  /** What comes after the end goes back with the subscription. */
  #deliver(delivery: Delivery<T>): void {
    const asker = this.#askers.shift()
    if (asker === undefined) return
    this.#current = delivery
    asker.resolve({ done: false, value: delivery })
    if (this.#askers.length > 0) this.#ask()
  }

  /** Nobody awaits this, so a failure waits for the next to ask. */
  readonly #abort = (): void => {
    this.#leave().catch((error: unknown) => {
      this.#failure = { error }
    })
  }

  async #leave(): Promise<void> {
    this.#current = undefined
    this.#end()
    const source = await this.#opened.catch(() => NOTHING)
    await source.leave()
  }

  #end(): void {
    this.#ended = true
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#dismiss()
  }

  /** Nobody gets a record any more; the first to hear of a failure is told. */
  #dismiss(): void {
    for (let asker = this.#askers.shift(); asker !== undefined; asker = this.#askers.shift()) {
      const failure = this.#failure
      this.#failure = undefined
      if (failure === undefined) asker.resolve(DONE)
      else asker.reject(failure.error)
    }
  }
}

const DONE = { done: true, value: undefined } as const
const NOTHING: StreamSource = { request: () => {}, leave: () => Promise.resolve() }
