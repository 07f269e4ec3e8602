/**
 * Pull, over the same push machinery: a member with manual credit that receives one record per `next()`.
 *
 * Asking for the next record acks the one before. Leaving the loop (break, throw, return) releases the
 * current record un-acked, its attempt unchanged, and ends the subscription; an aborted signal ends the
 * loop as if there were no more records.
 */
import type { Delivery } from '../model/delivery.ts'

/** What a stream needs of its subscription. */
export interface StreamSource {
  /** Allows `n` more deliveries. */
  request(n: number): void
  /** Gives back what is in hand and ends the subscription. */
  leave(): Promise<void>
}

export class RecordStream<T> implements AsyncIterableIterator<Delivery<T>> {
  readonly #opened: Promise<StreamSource>
  #current: Delivery<T> | undefined
  #waiting: { resolve(result: IteratorResult<Delivery<T>>): void; reject(error: unknown): void } | undefined
  #arrived: Delivery<T> | undefined
  #ended = false
  #failure: { error: unknown } | undefined

  /**
   * `open` subscribes with the given handler, manual acks and manual credit; `onEnd` hears when it ends.
   * @internal
   */
  constructor(
    open: (handler: (delivery: Delivery<T>) => void, onEnd: () => void) => Promise<StreamSource>,
    signal: AbortSignal | undefined,
  ) {
    this.#opened = open(
      (delivery) => this.#deliver(delivery),
      () => this.#end(),
    )
    this.#opened.catch((error: unknown) => {
      this.#failure = { error }
      this.#end()
    })
    const leave = (): void => void this.#leave()
    if (signal?.aborted === true) leave()
    else signal?.addEventListener('abort', leave, { once: true })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Delivery<T>>> {
    this.#current?.ack()
    this.#current = undefined
    const arrived = this.#arrived
    if (arrived !== undefined) {
      this.#arrived = undefined
      return this.#give(arrived)
    }
    if (this.#ended) return this.#last()
    const source = await this.#opened
    if (this.#ended) return this.#last()
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      source.request(1)
    })
  }

  async return(): Promise<IteratorResult<Delivery<T>>> {
    await this.#leave()
    return { done: true, value: undefined }
  }

  async throw(error: unknown): Promise<IteratorResult<Delivery<T>>> {
    await this.#leave()
    throw error
  }

  #deliver(delivery: Delivery<T>): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting === undefined) this.#arrived = delivery
    else waiting.resolve(this.#give(delivery))
  }

  #give(delivery: Delivery<T>): IteratorResult<Delivery<T>> {
    this.#current = delivery
    return { done: false, value: delivery }
  }

  #last(): IteratorResult<Delivery<T>> {
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure.error
    return { done: true, value: undefined }
  }

  async #leave(): Promise<void> {
    this.#current = undefined
    this.#arrived = undefined
    this.#end()
    const source = await this.#opened.catch(() => undefined)
    await source?.leave()
  }

  #end(): void {
    this.#ended = true
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting === undefined) return
    if (this.#failure === undefined) waiting.resolve({ done: true, value: undefined })
    else waiting.reject(this.#failure.error)
  }
}
