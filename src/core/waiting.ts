/**
 * Publishers that wait for room. They stand in line per partition, first come, first served; each can
 * be aborted and gives up at its deadline. The line is bounded per topic, in number and bytes.
 */
import type { Appended } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import { Due } from './due-queue.ts'
import type { Partition } from './partition.ts'

/** Somebody in a partition's line. */
export interface Waiter {
  /** Left the line by itself; skip it. */
  readonly done: boolean
  /** At the head of the line: does what it came for, if there is room. */
  tryServe(partition: Partition): boolean
  /** The topic is gone or the broker closes. */
  fail(error: OdradekError): void
}

/** A batch of one partition that waits for room. */
export class PublishWaiter extends Due implements Waiter {
  done: boolean = false
  readonly batch: Batch
  readonly #partition: Partition
  readonly #resolve: (appended: Appended) => void
  readonly #reject: (error: unknown) => void
  readonly #signal: AbortSignal | undefined

  constructor(
    partition: Partition,
    batch: Batch,
    signal: AbortSignal | undefined,
    resolve: (appended: Appended) => void,
    reject: (error: unknown) => void,
  ) {
    super()
    this.#partition = partition
    this.batch = batch
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    signal?.addEventListener('abort', this.#abort, { once: true })
  }

  readonly #abort = (): void => {
    this.fail(abortedError(this.#signal as AbortSignal, 'publish'))
  }

  override fire(): void {
    const { topic, index } = this.#partition
    this.fail(
      new OdradekError(
        'TIMEOUT',
        `no room in "${topic.name}" partition ${index} for ${topic.publishTimeoutMs} ms; a gating reader is too far behind`,
      ),
    )
  }

  tryServe(partition: Partition): boolean {
    const result = partition.append(this.batch, null)
    if (result === 'NO_ROOM') return false
    this.#leave()
    if (typeof result === 'string') this.#reject(refusedError(partition, result))
    else this.#resolve(result)
    return true
  }

  fail(error: OdradekError): void {
    if (this.done) return
    this.#leave()
    this.#reject(error)
    this.#partition.waiterLeft()
  }

  #leave(): void {
    this.done = true
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#partition.topic.stopWaiting(this)
  }
}

/** What a log refused, as an error of the publisher. */
export function refusedError(partition: Partition, refusal: string): OdradekError {
  const where = `"${partition.topic.name}" partition ${partition.index}`
  switch (refusal) {
    case 'TOO_LARGE':
      return new OdradekError(
        'TOO_LARGE',
        `more than ${where} retains; raise its retention or publish less at once`,
      )
    case 'CLOSED':
      return new OdradekError('CLOSED', `${where} is closed`)
    case 'POISONED':
      return new OdradekError('OUTCOME_UNKNOWN', `${where} accepts nothing since a flush failed; reopen it`)
    default:
      return new OdradekError('FENCED', `${where} refused the batch: ${refusal}`)
  }
}
