/**
 * Waiting for room: one batch for one partition, or the parts of a transaction for several at once. Who waits
 * stands in the lines of all its partitions from the same moment on, so that any two meet in the same order
 * everywhere and cannot wait for each other. It is let in when it is next in every line and there is room
 * everywhere, and gives up when it is aborted or its time is up.
 */
import { type Refusal, refusalError } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import type { CoreContext } from './context.ts'
import { Due } from './due-queue.ts'
import type { Partition } from './partition.ts'
import type { Reader } from './reader.ts'
import type { TopicSettings } from './topic-settings.ts'

/** A batch and where it goes. */
export interface Place {
  readonly partition: Partition
  readonly batch: Batch
}

export interface WaitOptions {
  /** The reader whose handler waits: its own hold is not in the way, and it stands in front of the line. */
  readonly exempt: Reader | null
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
  /** What waits, for messages. */
  readonly what: string
}

/** Whether nobody need wait: there is room everywhere, and nobody else in line. */
export function fitsNow(ctx: CoreContext, places: readonly Place[], exempt: Reader | null): boolean {
  return (
    places.every(
      ({ partition, batch }) =>
        (exempt !== null || partition.line.length === 0) && partition.fits(batch, exempt),
    ) && fitTogether(ctx, places)
  )
}

/** Each log has room for its own; what they share may still not do for all of them. */
function fitTogether(ctx: CoreContext, places: readonly Place[]): boolean {
  return places.length < 2 || refusalOf(ctx, places) !== 'NO_ROOM'
}

function refusalOf(ctx: CoreContext, places: readonly Place[]): Refusal | undefined {
  const logs = places.map(({ partition }) => partition.log)
  return ctx.engine.refusal(
    logs,
    places.reduce((sum, { batch }) => sum + batch.sizeBytes, 0),
  )
}

/**
 * Throws where the engine would refuse one of these, whatever room there is: before the first is appended, or before
 * anybody waits for nothing. @throws OdradekError TOO_LARGE, STORAGE_FULL, OUTCOME_UNKNOWN, CLOSED
 */
export function assertAccepted(ctx: CoreContext, places: readonly Place[]): void {
  const [first] = places
  if (first === undefined) return
  const refusal = refusalOf(ctx, places)
  if (refusal === 'TOO_LARGE') throw tooMuchAtOnce(places, ctx.engine.takesAtOnce)
  if (refusal !== undefined && refusal !== 'NO_ROOM') throw refusedError(first.partition, refusal)
}

/**
 * Calls `take`, within the critical section, as soon as there is room everywhere, and answers what it did.
 * @throws OdradekError FULL, TOO_LARGE, TOO_MANY_WAITING, TIMEOUT, ABORTED, STORAGE_FULL, UNKNOWN_TOPIC, CLOSED
 */
export function whenRoom<T>(
  ctx: CoreContext,
  places: readonly Place[],
  options: WaitOptions,
  take: () => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    assertAccepted(ctx, places)
    refuseWhereAsked(places, options.exempt)
    new Waiter(ctx, places, options, () => resolve(take()), reject).start()
  })
}

function refuseWhereAsked(places: readonly Place[], exempt: Reader | null): void {
  for (const { partition, batch } of places) {
    const reader = partition.rejecter(batch, exempt)
    if (reader === undefined) continue
    throw new OdradekError(
      'FULL',
      `${nameOf(partition)} is full: reader "${reader.name}" (overflow "reject") still needs its oldest record`,
    )
  }
}

function heldBy({ partition, batch }: Place): string {
  const reader = partition.inTheWay(batch)
  return reader === undefined ? '' : ` (reader "${reader}" is too far behind)`
}

export class Waiter extends Due {
  /** Let in, or gave up. */
  done: boolean = false
  readonly exempt: Reader | null
  readonly #ctx: CoreContext
  readonly #places: readonly Place[]
  readonly #options: WaitOptions
  readonly #take: () => void
  readonly #reject: (error: unknown) => void

  constructor(
    ctx: CoreContext,
    places: readonly Place[],
    options: WaitOptions,
    take: () => void,
    reject: (error: unknown) => void,
  ) {
    super()
    this.#ctx = ctx
    this.#places = places
    this.exempt = options.exempt
    this.#options = options
    this.#take = take
    this.#reject = reject
  }

  /** @throws OdradekError TOO_MANY_WAITING */
  start(): void {
    const { signal, timeoutMs } = this.#options
    enterAll(this.#places)
    signal?.addEventListener('abort', this.#abort, { once: true })
    this.#ctx.dispatcher.activate()
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + timeoutMs)
    for (const { partition } of this.#places) partition.line.add(this)
  }

  /** Lets it in, if it is its turn everywhere and there is room. */
  tryServe(): boolean {
    const { exempt } = this
    for (const { partition, batch } of this.#places) {
      if (!partition.line.isNext(this) || !partition.fits(batch, exempt)) return false
    }
    if (!fitTogether(this.#ctx, this.#places)) return false
    this.#leave()
    try {
      this.#take()
    } catch (error) {
      this.#reject(error)
    }
    return true
  }

  /** What it has for that partition, if that is what it waits for, and not another one of its own. */
  lacksRoomIn(partition: Partition): Batch | undefined {
    const place = this.#places.find((each) => each.partition === partition)
    return place === undefined || partition.fits(place.batch, this.exempt) ? undefined : place.batch
  }

  /** The topic is gone, the broker closes, or it gave up. */
  fail(error: unknown): void {
    if (this.done) return
    this.#leave()
    this.#reject(error)
  }

  override fire(): void {
    const { what, timeoutMs } = this.#options
    const where = this.#places.map((place) => `${nameOf(place.partition)}${heldBy(place)}`).join(', ')
    this.fail(new OdradekError('TIMEOUT', `${what}: no room within ${timeoutMs} ms in ${where}`))
  }

  readonly #abort = (): void => {
    this.fail(abortedError(this.#options.signal as AbortSignal, this.#options.what))
  }

  #leave(): void {
    this.done = true
    this.#options.signal?.removeEventListener('abort', this.#abort)
    this.#ctx.due.cancel(this)
    this.#ctx.dispatcher.deactivate()
    for (const { partition, batch } of this.#places) {
      partition.topic.waitingRoom.leave(batch)
      partition.line.left(this)
    }
  }
}

/** How much waits in the lines of one topic, and may. */
export class WaitingRoom {
  readonly #name: string
  max: TopicSettings['maxWaiting']
  #records = 0
  #bytes = 0

  constructor(topic: string, max: TopicSettings['maxWaiting']) {
    this.#name = topic
    this.max = max
  }

  /** 0 to 1: the share of what may wait. */
  get share(): number {
    return Math.min(1, Math.max(this.#records / this.max.records, this.#bytes / this.max.bytes))
  }

  /** @throws OdradekError TOO_MANY_WAITING */
  enter({ count, sizeBytes }: Batch): void {
    if (this.#records + count > this.max.records || this.#bytes + sizeBytes > this.max.bytes) {
      throw new OdradekError(
        'TOO_MANY_WAITING',
        `${this.#records} records already wait for room in "${this.#name}"; await publish, or slow down at the "pressure" event`,
      )
    }
    this.#records += count
    this.#bytes += sizeBytes
  }

  leave({ count, sizeBytes }: Batch): void {
    this.#records -= count
    this.#bytes -= sizeBytes
  }
}

/** All of them, or none. */
function enterAll(places: readonly Place[]): void {
  const entered: Place[] = []
  try {
    for (const place of places) {
      place.partition.topic.waitingRoom.enter(place.batch)
      entered.push(place)
    }
  } catch (error) {
    for (const { partition, batch } of entered) partition.topic.waitingRoom.leave(batch)
    throw error
  }
}

function nameOf(partition: Partition): string {
  return `"${partition.topic.name}" partition ${partition.index}`
}

/** No room will ever do for it. */
export function tooLargeFor({ partition, batch }: Place): OdradekError {
  const { records, bytes } = partition.topic.retention
  const kept = batch.count > records ? `${records} records` : `${bytes} bytes`
  return new OdradekError(
    'TOO_LARGE',
    `${nameOf(partition)}: ${amountOf([batch])} at once; its \`retention\` keeps ${kept}`,
  )
}

function tooMuchAtOnce(places: readonly Place[], limit: string | undefined): OdradekError {
  const where = places.map(({ partition }) => nameOf(partition)).join(' and ')
  const amount = amountOf(places.map(({ batch }) => batch))
  return new OdradekError('TOO_LARGE', `${where}: ${amount} at once; the engine takes ${limit ?? 'less'}`)
}

function amountOf(batches: readonly Batch[]): string {
  let count = 0
  let sizeBytes = 0
  for (const batch of batches) {
    count += batch.count
    sizeBytes += batch.sizeBytes
  }
  return `${count === 1 ? '1 record' : `${count} records`} of ${sizeBytes} bytes`
}

/** What a log refused, as an error of the publisher. */
export function refusedError(partition: Partition, refusal: Refusal): OdradekError {
  return refusalError(refusal, nameOf(partition))
}
