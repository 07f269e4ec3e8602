/**
 * In-process transactions: publishes and acks that take effect together or not at all.
 *
 * Everything is buffered until the function returns. Then the transaction stands in line in every partition
 * it writes to, at once, and when it is let in, one critical section checks that every delivery is still
 * owned, appends, acks, and stores the acks. Its publish ids count from the moment it stands in line.
 *
 *   owned? ─► accepted? ─► append … append ─► ack … ack ─► store places │ durable, all of it ─► committed
 *   └────────────── one run to completion: one group of the engine ─────┘
 *
 * What a durable engine is asked for in one run to completion survives a crash together or not at all; so do the
 * records and the acks.
 */
import type { CoreContext } from '../core/context.ts'
import type { Cursor } from '../core/cursor.ts'
import { type DeliveryRecord, IN_FLIGHT } from '../core/delivery.ts'
import type { Draft } from '../core/draft.ts'
import { type Part, Parts } from '../core/parts.ts'
import { isLost } from '../core/publish-ids.ts'
import type { Reader } from '../core/reader.ts'
import { invalid, known, positive, signalOf } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { Topics } from '../core/topics.ts'
import { assertAccepted, fitsNow, tooLargeFor, whenRoom } from '../core/waiting.ts'
import type { Delivery } from '../model/delivery.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import { DEFAULT_PUBLISH_TIMEOUT_MS } from '../model/limits.ts'
import type { Published, PublishOptions } from '../model/options.ts'

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

const WHAT = 'transaction'

interface Addressed {
  readonly topic: Topic
  readonly draft: Draft
}

/** Where each record went. */
type Positions = ReadonlyMap<Draft, Published>

/** What is in the log, and when the places of those who acked are stored. */
interface Taken {
  readonly positions: Positions
  readonly stored: Promise<void>
}

class Buffered implements Transaction {
  readonly drafts: Addressed[] = []
  readonly deliveries = new Set<DeliveryRecord>()
  readonly #ctx: CoreContext
  readonly #topics: Topics
  #open = true

  constructor(ctx: CoreContext, topics: Topics) {
    this.#ctx = ctx
    this.#topics = topics
  }

  /** The reader whose handler runs it: its own hold is not in the way. */
  get exempt(): Reader | null {
    const [first] = this.deliveries
    return first?.cursor.reader ?? null
  }

  publish(name: string, value: unknown, options?: Omit<PublishOptions, 'signal'>): void {
    this.#assertOpen()
    const topic = this.#topics.require(name)
    this.drafts.push({ topic, draft: topic.keep(topic.draft(value, options)) })
  }

  ack(delivery: Delivery): void {
    this.#assertOpen()
    const record = delivery as unknown as DeliveryRecord
    if (record?.cursor?.reader.ctx !== this.#ctx) throw invalid('tx.ack takes a delivery of this broker')
    this.deliveries.add(record)
  }

  end(): void {
    this.#open = false
  }

  #assertOpen(): void {
    if (!this.#open) throw invalid('the transaction is over; publish and ack belong inside its function')
  }
}

export async function runTransaction<R>(
  ctx: CoreContext,
  topics: Topics,
  body: (tx: Transaction) => Promise<R> | R,
  options: TransactionOptions,
): Promise<R> {
  if (typeof body !== 'function') throw invalid('a transaction is a function that gets `tx`')
  const given = known('transaction', options, ['signal', 'timeoutMs'])
  const signal = signalOf(given.signal)
  const timeoutMs = positive('timeoutMs', given.timeoutMs, DEFAULT_PUBLISH_TIMEOUT_MS)
  assertNotAborted(signal)
  const buffered = new Buffered(ctx, topics)
  let result: R
  try {
    result = await body(buffered)
  } finally {
    buffered.end()
  }
  await othersOfSameIds(buffered.drafts)
  assertNotAborted(signal)
  await commit(ctx, buffered, signal, timeoutMs)
  return result
}

function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedError(signal, WHAT)
}

/** Resolves when no id of these is on its way with somebody else. */
async function othersOfSameIds(drafts: readonly Addressed[]): Promise<void> {
  for (;;) {
    const others = drafts.flatMap(({ topic, draft }) => topic.ids.pending(draft) ?? [])
    if (others.length === 0) return
    await Promise.allSettled(others)
  }
}

/** Runs to completion until it is in, or in line: ids that were free just now are its own. */
async function commit(
  ctx: CoreContext,
  buffered: Buffered,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<void> {
  const { deliveries, exempt } = buffered
  const parts = new Parts()
  const repeats: Promise<unknown>[] = []
  let resolve: (positions: Promise<Positions>) => void = () => {}
  const committed = new Promise<Positions>((done) => {
    resolve = done
  })
  for (const { topic } of buffered.drafts) topic.assertOpen()
  for (const { topic, draft } of buffered.drafts) {
    const earlier = topic.earlier(draft)
    if (earlier !== undefined) repeats.push(earlier)
    else {
      parts.add(topic, draft)
      topic.ids.expect(draft, () => committed.then((positions) => positions.get(draft) as Published))
    }
  }
  const accept = async (): Promise<Positions> => {
    const batches = parts.batches()
    const take = (): Taken => append(ctx, batches, deliveries, exempt)
    const options = { exempt, signal, timeoutMs, what: WHAT }
    const taken = fitsNow(ctx, batches, exempt) ? take() : await whenRoom(ctx, batches, options, take)
    const { positions, stored } = taken
    try {
      await Promise.all([stored, ...batches.map((part) => durable(part, positions))])
    } catch (error) {
      if (isLost(error)) await takeBack(ctx, deliveries)
      throw error
    }
    return positions
  }
  resolve(accept())
  await Promise.all([committed, ...repeats])
}

/** The critical section: there is room, and what else could refuse is checked before anything is appended. */
function append(
  ctx: CoreContext,
  parts: readonly Part[],
  deliveries: ReadonlySet<DeliveryRecord>,
  exempt: Reader | null,
): Taken {
  for (const record of deliveries) {
    if (record.state === IN_FLIGHT && !record.cursor.reader.atMostOnce) continue
    const where = `${record.topic}/${record.partition}/${record.offset}`
    throw new OdradekError(
      'FENCED',
      `the delivery of ${where} is no longer this handler's to ack; nothing was published`,
    )
  }
  for (const part of parts) if (part.partition.isTooLarge(part.batch)) throw tooLargeFor(part)
  assertAccepted(ctx, parts)
  const positions = new Map<Draft, Published>()
  for (const part of parts) {
    const published = part.topic.appendPart(part, exempt)
    part.drafts.forEach((draft, i) => {
      positions.set(draft, published[i] as Published)
    })
  }
  for (const record of deliveries) record.ack()
  const stored = deliveries.size === 0 ? RESOLVED : ctx.commits.store([...cursorsOf(deliveries)])
  return { positions, stored }
}

const RESOLVED = Promise.resolve()

function cursorsOf(deliveries: ReadonlySet<DeliveryRecord>): Set<Cursor> {
  return new Set([...deliveries].map(({ cursor }) => cursor))
}

async function durable({ topic, partition, drafts }: Part, positions: Positions): Promise<void> {
  await topic.accepted(partition, positions.get(drafts.at(-1) as Draft) as Published)
}

/**
 * The group is known to be lost: no record is in, so no ack may stay. What was acked is handed out again, and with it
 * what its reader has settled behind it.
 */
async function takeBack(ctx: CoreContext, deliveries: ReadonlySet<DeliveryRecord>): Promise<void> {
  const cursors = [...cursorsOf(deliveries)].filter(({ closed }) => !closed)
  for (const cursor of cursors) {
    const acked = [...deliveries].filter((record) => record.cursor === cursor)
    cursor.reset(Math.min(...acked.map(({ offset }) => offset)))
  }
  await ctx.commits.store(cursors)
}
