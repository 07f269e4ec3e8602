/**
 * In-process transactions: publishes and acks that take effect together or not at all.
 *
 * Everything is buffered until the function returns. Then the transaction stands in line in every
 * partition it writes to, at once, so that two transactions meet in the same order everywhere and cannot
 * wait for each other. When it is first in all lines and all have room, one critical section checks that
 * every delivery is still owned, appends and acks.
 */
import type { CoreContext } from '../core/context.ts'
import { type DeliveryRecord, IN_FLIGHT } from '../core/delivery.ts'
import { batchOf, type Draft } from '../core/draft.ts'
import { Due } from '../core/due-queue.ts'
import type { Partition } from '../core/partition.ts'
import type { Reader } from '../core/reader.ts'
import { invalid } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { Topics } from '../core/topics.ts'
import type { Waiter } from '../core/waiting.ts'
import type { Batch } from '../model/batch.ts'
import type { Delivery } from '../model/delivery.ts'
import { abortedError, assert, OdradekError } from '../model/errors.ts'
import { DEFAULT_PUBLISH_TIMEOUT_MS } from '../model/limits.ts'
import type { PublishOptions } from '../model/options.ts'

/** What the function of `broker.transaction` gets. */
export interface Transaction {
  /** Buffered; checked at once, appended at commit. */
  publish(topic: string, value: unknown, options?: Omit<PublishOptions, 'signal'>): void
  /** Acked at commit, with everything that is published. */
  ack(delivery: Delivery): void
}

export interface TransactionOptions {
  readonly signal?: AbortSignal
  /** Milliseconds to wait for room at commit. Default 30,000. */
  readonly timeoutMs?: number
}

class Buffered implements Transaction {
  readonly drafts: { readonly topic: Topic; readonly draft: Draft }[] = []
  readonly deliveries = new Set<DeliveryRecord>()
  readonly #topics: Topics
  #open = true

  constructor(topics: Topics) {
    this.#topics = topics
  }

  publish(name: string, value: unknown, options?: Omit<PublishOptions, 'signal'>): void {
    this.#assertOpen()
    const topic = this.#topics.require(name)
    this.drafts.push({ topic, draft: topic.draft(value, options) })
  }

  ack(delivery: Delivery): void {
    this.#assertOpen()
    const record = delivery as unknown as DeliveryRecord
    if (record.cursor?.reader === undefined) throw invalid('tx.ack takes a delivery of this broker')
    this.deliveries.add(record)
  }

  end(): void {
    this.#open = false
  }

  #assertOpen(): void {
    if (!this.#open) throw invalid('the transaction is over; publish and ack belong inside its function')
  }
}

interface Part {
  readonly partition: Partition
  readonly topic: Topic
  readonly drafts: readonly Draft[]
  readonly batch: Batch
}

export async function runTransaction<R>(
  ctx: CoreContext,
  topics: Topics,
  body: (tx: Transaction) => Promise<R> | R,
  options: TransactionOptions,
): Promise<R> {
  const buffered = new Buffered(topics)
  let result: R
  try {
    result = await body(buffered)
  } finally {
    buffered.end()
  }
  const fresh: { topic: Topic; draft: Draft }[] = []
  for (const each of buffered.drafts) if (!(await each.topic.wasPublished(each.draft))) fresh.push(each)
  await new Promise<void>((resolve, reject) => {
    new Commit(ctx, fresh, buffered.deliveries, { resolve, reject }).start(options)
  })
  return result
}

interface Outcome {
  resolve(): void
  reject(error: unknown): void
}

/** One transaction's place in the lines of all its partitions. */
class Commit extends Due implements Waiter {
  done: boolean = false
  readonly #ctx: CoreContext
  readonly #parts: readonly Part[]
  readonly #deliveries: ReadonlySet<DeliveryRecord>
  /** The reader whose deliveries it acks: its own hold is not in the way. */
  readonly #exempt: Reader | null
  readonly #outcome: Outcome
  #signal: AbortSignal | undefined

  constructor(
    ctx: CoreContext,
    drafts: readonly { topic: Topic; draft: Draft }[],
    deliveries: ReadonlySet<DeliveryRecord>,
    outcome: Outcome,
  ) {
    super()
    this.#ctx = ctx
    this.#parts = partsOf(drafts)
    this.#deliveries = deliveries
    const [first] = deliveries
    this.#exempt = first?.cursor.reader ?? null
    this.#outcome = outcome
  }

  start(options: TransactionOptions): void {
    const { signal } = options
    if (signal?.aborted === true) {
      this.#outcome.reject(abortedError(signal, 'transaction'))
      return
    }
    const free = this.#parts.every(({ partition }) => partition.waiting === 0)
    if (free && this.#hasRoom()) {
      this.done = true
      this.#commit()
      return
    }
    const timeoutMs = options.timeoutMs ?? DEFAULT_PUBLISH_TIMEOUT_MS
    this.#signal = signal
    signal?.addEventListener('abort', this.#abort, { once: true })
    this.#ctx.dispatcher.activate()
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + timeoutMs)
    for (const { partition } of this.#parts) partition.wait(this)
  }

  /** First in every line, and room everywhere? Then all of it, now. */
  tryServe(): boolean {
    if (!this.#parts.every(({ partition }) => partition.isHead(this)) || !this.#hasRoom()) return false
    this.#leave()
    this.#commit()
    return true
  }

  #hasRoom(): boolean {
    return this.#parts.every(({ partition, batch }) => partition.fits(batch, this.#exempt))
  }

  /** The critical section. Room was checked, ownership is checked here, nothing can refuse after that. */
  #commit(): void {
    for (const record of this.#deliveries) {
      if (record.state !== IN_FLIGHT || record.cursor.reader.atMostOnce) {
        const where = `${record.topic}/${record.partition}/${record.offset}`
        this.#outcome.reject(
          new OdradekError(
            'FENCED',
            `the delivery of ${where} is no longer this handler's; nothing was published`,
          ),
        )
        return
      }
    }
    const durable: Promise<void>[] = []
    for (const part of this.#parts) {
      const appended = part.partition.append(part.batch, this.#exempt)
      assert(typeof appended !== 'string', `a partition with room refused a transaction: ${String(appended)}`)
      part.drafts.forEach((draft, i) => {
        part.topic.accept(draft, part.partition.index, appended.base + i)
      })
      const { log } = part.partition
      if (appended.last >= log.marks.high) durable.push(log.durable(appended.last))
    }
    for (const record of this.#deliveries) record.ack()
    if (durable.length === 0) this.#outcome.resolve()
    else Promise.all(durable).then(() => this.#outcome.resolve(), this.#outcome.reject)
  }

  readonly #abort = (): void => {
    this.fail(abortedError(this.#signal as AbortSignal, 'transaction'))
  }

  override fire(): void {
    this.fail(
      new OdradekError(
        'TIMEOUT',
        'no room for the transaction in all of its partitions; nothing was published',
      ),
    )
  }

  fail(error: OdradekError): void {
    if (this.done) return
    this.#leave()
    this.#outcome.reject(error)
    for (const { partition } of this.#parts) partition.waiterLeft()
  }

  #leave(): void {
    this.done = true
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#ctx.due.cancel(this)
    this.#ctx.dispatcher.deactivate()
    for (const { partition } of this.#parts) partition.waiterLeft()
  }
}

function partsOf(drafts: readonly { topic: Topic; draft: Draft }[]): Part[] {
  const byPartition = new Map<Partition, { topic: Topic; drafts: Draft[] }>()
  for (const { topic, draft } of drafts) {
    const partition = topic.choose(draft)
    const part = byPartition.get(partition)
    if (part === undefined) byPartition.set(partition, { topic, drafts: [draft] })
    else part.drafts.push(draft)
  }
  return [...byPartition].map(([partition, part]) => ({ partition, ...part, batch: batchOf(part.drafts) }))
}
