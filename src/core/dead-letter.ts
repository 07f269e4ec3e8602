/**
 * Records that failed for good, on their way to a dead-letter topic: the headers of KIP-1191, appended
 * before the original settles, once per (topic id, partition, offset, reader), and never held up by a
 * gate. A failed append is tried again, the handler is not.
 */
import { messageOf, OdradekError } from '../model/errors.ts'
import { type HeaderValue, ID_HEADER, RecordHeaders } from '../model/record.ts'
import { backoffMs } from './backoff.ts'
import type { CoreContext } from './context.ts'
import type { DeliveryRecord } from './delivery.ts'

const ERRORS = '__dlq.errors.'
export const DLQ_TOPIC_HEADER: string = `${ERRORS}topic`
const DLQ_PARTITION_HEADER: string = `${ERRORS}partition`
const DLQ_OFFSET_HEADER: string = `${ERRORS}offset`
export const DLQ_GROUP_HEADER: string = `${ERRORS}group`
const DLQ_COUNT_HEADER: string = `${ERRORS}delivery.count`
const DLQ_MESSAGE_HEADER: string = `${ERRORS}message`

export const REDRIVE_READER_HEADER: string = '__redrive.reader'
export const REDRIVE_COUNT_HEADER: string = '__redrive.count'

export const isDeadLetterHeader = (name: string): boolean => name.startsWith(ERRORS)

const RETRY = { delayMs: 100, maxDelayMs: 5_000, jitter: 0.2 }

export class DeadLetters {
  readonly #ctx: CoreContext
  #pending = 0
  #whenSettled: (() => void)[] = []

  constructor(ctx: CoreContext) {
    this.#ctx = ctx
  }

  /** Appends a copy to `target` and calls `done`; tries for as long as it takes, or until the broker closes. */
  send(record: DeliveryRecord, target: string, reason: string, done: () => void): void {
    this.#pending++
    const settled = (): void => {
      this.#pending--
      done()
      if (this.#pending > 0) return
      for (const resolve of this.#whenSettled) resolve()
      this.#whenSettled = []
    }
    this.#attempt(record, target, reason, settled, 1)
  }

  /** Resolves when none is on its way. */
  whenSettled(): Promise<void> {
    return this.#pending === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenSettled.push(resolve))
  }

  #attempt(record: DeliveryRecord, target: string, reason: string, done: () => void, attempt: number): void {
    this.#append(record, target, reason).then(done, (error: unknown) => {
      if (!isBehind(error)) {
        this.#ctx.events.error(
          error,
          `dead-lettering ${record.topic}/${record.partition}/${record.offset} to "${target}"`,
        )
      }
      this.#ctx.due.after(backoffMs(attempt, RETRY, this.#ctx.random), () => {
        this.#attempt(record, target, reason, done, attempt + 1)
      })
    })
  }

  async #append(record: DeliveryRecord, target: string, reason: string): Promise<void> {
    const topic = await this.#ctx.topics.deadLetters(target)
    const { reader, partition } = record.cursor
    const source = `${partition.topic.id}/${partition.index}/${reader.key}`
    const letter = {
      from: partition.topic,
      value: record.value,
      key: record.key,
      headers: deadLetterHeaders(record, reason),
    }
    await topic.appendDeadLetter(source, record.offset, letter)
  }
}

/** No gate holds a letter up, so this is an engine that has to write what it took before: no news, it will have room. */
function isBehind(error: unknown): boolean {
  return error instanceof OdradekError && error.code === 'FULL'
}

function deadLetterHeaders(record: DeliveryRecord, reason: string): RecordHeaders {
  const kept: (readonly [string, HeaderValue])[] = [...record.headers].filter(
    ([name]) => !isDeadLetterHeader(name) && name !== ID_HEADER && name !== REDRIVE_READER_HEADER,
  )
  return new RecordHeaders([
    ...kept,
    [ID_HEADER, record.id],
    [DLQ_TOPIC_HEADER, record.topic],
    [DLQ_PARTITION_HEADER, String(record.partition)],
    [DLQ_OFFSET_HEADER, String(record.offset)],
    [DLQ_GROUP_HEADER, record.cursor.reader.key],
    [DLQ_COUNT_HEADER, String(record.attempt)],
    [DLQ_MESSAGE_HEADER, messageOf(reason)],
  ])
}
