/**
 * Random scenes: a reader of a random kind over one topic, its members coming and going, and whatever users do, on
 * a manual clock, judged by what must hold whatever happens. Everything follows from the seed.
 *
 *   seed ─► world (retention, readers, members) ─► steps ─► everybody may go on ─► books, waits, timers
 *
 * The judge knows nothing of the broker's insides. It keeps a plain book per reader: who has which record in
 * hand, what began in which order, which attempt it was; at the end every record must have come to exactly
 * one end, and nothing may hang.
 */
import type { Broker } from '../../src/broker.ts'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import { createBroker } from '../../src/memory.ts'
import type { Delivery, DeliveryBatch } from '../../src/model/delivery.ts'
import { BatchError, OdradekError } from '../../src/model/errors.ts'
import type {
  BatchSubscribeOptions,
  Position,
  ReaderOptions,
  SubscribeOptions,
} from '../../src/model/options.ts'
import type { ReaderDescription } from '../../src/model/views.ts'
import { History } from '../../src/testing/history.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { Book } from './book.ts'
import { Dice } from './dice.ts'

/** Seconds after which everything that waits for time has happened: attempts × (timeout + delay), grace, a publish's wait. */
const CALM_S = 60
/** What may happen to a publish when nobody makes room, or its topic goes. */
const FAILURES = ['TIMEOUT', 'TOO_MANY_WAITING', 'FULL']
/** What a later member may be told. */
const REFUSALS = new Set(['CONSUMER_EXISTS', 'INCONSISTENT_GROUP', 'INVALID_ARGUMENT'])

interface Seat {
  readonly subscription: Subscription
  readonly credit: boolean
}

type Work = Delivery<number> | DeliveryBatch<number>

class Scene {
  readonly #dice: Dice
  readonly #clock = new ManualClock()
  readonly #broker: Broker
  readonly #history = new History()
  readonly #faults: string[] = []
  readonly #seats: Seat[] = []
  readonly #waits: Promise<unknown>[] = []
  readonly #options: ReaderOptions & { group?: string }
  readonly #partitions: number
  readonly #small: boolean
  #book: Book | undefined
  #sent = 0
  #members = 0
  #replays = 0
  steps = 0

  constructor(seed: number) {
    const dice = new Dice(seed)
    this.#dice = dice
    const quiet = (): void => {}
    this.#broker = createBroker({
      clock: this.#clock,
      random: () => dice.share(),
      logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    })
    this.#partitions = 1 + dice.below(3)
    this.#small = dice.chance(0.4)
    const kind = dice.pick(['broadcast', 'shared', 'range', 'round-robin', 'sticky'] as const)
    const atMostOnce = dice.chance(0.15)
    const overflow = dice.pick(['wait', 'wait', 'wait', 'reject', 'drop-oldest', 'drop-newest'] as const)
    const order = dice.pick([undefined, 'partition', 'key', 'none'] as const)
    this.#options = {
      from: 'earliest',
      overflow,
      ...(order === undefined ? {} : { order }),
      ...(atMostOnce
        ? { guarantee: 'at-most-once' as const }
        : { retry: { attempts: 1 + dice.below(4), delayMs: dice.pick([0, 10, 50]) } }),
      ...(overflow.startsWith('drop') && dice.chance(0.5) ? { maxLag: { records: 1 + dice.below(10) } } : {}),
      ...(kind === 'broadcast' ? {} : { group: 'group' }),
      ...(kind === 'broadcast' || kind === 'shared' ? {} : { assignment: kind }),
      ...(kind === 'shared' && dice.chance(0.5)
        ? { strategy: dice.pick(['least-in-flight', 'weighted', 'sticky-key'] as const) }
        : {}),
    }
  }

  async play(steps: number): Promise<readonly string[]> {
    await this.#broker.createTopic('t', {
      partitions: this.#partitions,
      dedupe: true,
      ...(this.#small ? { retention: { records: this.#dice.pick([1, 2, 8, 40]) } } : {}),
    })
    await this.#broker.createTopic('out')
    await this.#join()
    for (; this.steps < steps; this.steps++) await this.#step()
    await this.#calm()
    await this.#judge()
    return this.#faults
  }

  #fault(text: string): void {
    this.#faults.push(text)
  }

  get #reader(): string {
    return this.#options.group ?? 'reader'
  }

  // ── steps ─────────────────────────────────────────────────────────────────────────────────────

  async #step(): Promise<void> {
    const dice = this.#dice
    const x = dice.share()
    if (x < 0.48) this.#publish()
    else if (x < 0.52) this.#publishAll()
    else if (x < 0.56) this.#transaction()
    else if (x < 0.62) await this.#join()
    else if (x < 0.66) this.#leave()
    else if (x < 0.74) this.#steer(dice.pick(this.#seats))
    else if (x < 0.76) await this.#replay()
    else if (x < 0.78) await this.#grow()
    else if (x < 0.79) this.#redrive()
    else if (x < 0.9) await this.#clock.advance(dice.below(120))
    else await this.#clock.settle()
  }

  #key(): string | null {
    return this.#dice.chance(0.7) ? this.#dice.pick(['a', 'b', 'c']) : null
  }

  /** A publish is one send of the history; what becomes of it is known when it settles. */
  #publish(): void {
    const value = this.#sent++
    const key = this.#key()
    const send = this.#history.send(`p${value}`, 't', String(value), key)
    const id = `id-${value}`
    const publish = (): Promise<Position> => this.#broker.publish('t', value, { key, id })
    const first = publish()
    this.#record(send, first)
    // The same id again, at once or after it was accepted, shares its outcome and makes no second record.
    if (this.#dice.chance(0.05)) this.#expect(publish())
    const later = this.#dice.chance(0.1)
    // Long after, it may meet the end of the scene.
    const again = (): void =>
      void this.#clock.setTimer(() => this.#expect(publish(), [...FAILURES, 'CLOSED']), 50)
    first.then(later ? again : () => {}, () => {})
  }

  #publishAll(): void {
    if (this.#small) return
    const entries = Array.from({ length: 1 + this.#dice.below(4) }, () => ({
      value: this.#sent++,
      key: this.#key(),
    }))
    const sends = entries.map(({ value, key }) => this.#history.send(`p${value}`, 't', String(value), key))
    const published = this.#broker.publishAll('t', entries)
    for (const [i, send] of sends.entries())
      this.#record(
        send,
        published.then((all) => all[i] as Position),
      )
  }

  /** Publishes, or publishes and acks something in hand; or thinks better of it. */
  #transaction(): void {
    if (this.#small) return
    const value = this.#sent++
    const delivery = this.#dice.chance(0.5) ? this.#book?.anyInHand() : undefined
    const throws = this.#dice.chance(0.2)
    const sent = this.#broker
      .transaction((tx) => {
        tx.publish('t', value)
        if (delivery !== undefined) tx.ack(delivery)
        if (throws) throw new Error('on second thoughts')
      })
      .then(
        () => {
          if (throws) this.#fault('a transaction that threw was committed')
        },
        (error: unknown) => {
          if (!throws) throw error
        },
      )
    this.#expect(sent, [...FAILURES, 'FENCED'])
  }

  #record(send: number, published: Promise<Position>): void {
    published.then(
      (position) => this.#history.sendOk(send, position),
      () => this.#history.fail(send),
    )
    this.#expect(published)
  }

  #expect(promise: Promise<unknown>, failures: readonly string[] = FAILURES): void {
    this.#waits.push(
      promise.catch((error: unknown) => {
        const code = error instanceof OdradekError ? error.code : String(error)
        if (!failures.includes(code)) this.#fault(`a publish failed with ${code}`)
      }),
    )
  }

  #leave(): void {
    if (this.#seats.length < 2) return
    const [seat] = this.#seats.splice(this.#dice.below(this.#seats.length), 1)
    if (seat !== undefined) this.#waits.push(seat.subscription.close({ drainMs: this.#dice.pick([0, 50]) }))
  }

  #steer({ subscription, credit }: Seat): void {
    if (credit && this.#dice.chance(0.5)) subscription.request(1 + this.#dice.below(3))
    else if (subscription.paused) subscription.resume()
    else subscription.pause()
  }

  async #replay(): Promise<void> {
    this.#replays++
    this.#book?.replayed()
    await this.#broker.resetOffset(
      't',
      this.#reader,
      this.#dice.pick(['earliest', 'latest', new Date(0)] as const),
    )
  }

  async #grow(): Promise<void> {
    if (this.#options.group === undefined) return
    await this.#broker.alterTopic('t', { partitions: this.#broker.topic('t').partitions + 1 })
  }

  #redrive(): void {
    if (!this.#broker.listTopics().includes('dlq.t') || this.#small) return
    this.#expect(this.#broker.redrive('dlq.t', { limit: 2, toAll: true }).catch(() => undefined))
  }

  // ── members ───────────────────────────────────────────────────────────────────────────────────

  async #join(): Promise<void> {
    const dice = this.#dice
    const atMostOnce = this.#options.guarantee === 'at-most-once'
    const manual = !atMostOnce && dice.chance(0.4)
    const credit = dice.chance(0.2)
    const batch = dice.chance(0.3) ? dice.pick([1, 3, { records: 4, maxWaitMs: 20 }]) : undefined
    const id = this.#options.group === undefined ? 'reader' : `m${this.#members++}`
    const first = this.#seats.length === 0
    const options: SubscribeOptions & Partial<BatchSubscribeOptions> = {
      ...(first ? this.#options : {}),
      ...(this.#options.group === undefined ? {} : { group: this.#options.group }),
      id,
      ackTimeoutMs: dice.pick([100, 500]),
      concurrency: dice.pick([1, 1, 2, 5]),
      ...(manual ? { ack: 'manual' } : {}),
      ...(credit ? { credit: 'manual' } : {}),
      ...(batch === undefined ? {} : { batch }),
    }
    const handler = (work: Work): unknown => this.#handle(work, manual)
    try {
      const subscription = await this.#broker.subscribe('t', handler as never, options as never)
      this.#seats.push({ subscription, credit })
      if (credit) subscription.request(1 + dice.below(5))
      this.#book ??= new Book(this.#described().order, (text) => this.#fault(text))
    } catch (error) {
      if (!(error instanceof OdradekError && REFUSALS.has(error.code))) throw error
    }
  }

  #handle(work: Work, manual: boolean): unknown {
    const dice = this.#dice
    const deliveries = 'deliveries' in work ? [...work.deliveries] : [work]
    this.#book?.handedOut(deliveries)
    this.#aside()
    const x = dice.share()
    if (manual) {
      const settle = (): void => {
        for (const each of deliveries) this.#settle(each)
      }
      if (x < 0.4) settle()
      else if (x < 0.7) this.#clock.setTimer(settle, dice.below(80))
      else if (x < 0.8) return Promise.resolve().then(settle)
      return undefined
    }
    if (x < 0.45) return undefined
    if (x < 0.55) throw new Error('at once')
    if (x < 0.65) return Promise.reject(new Error('later'))
    if (x < 0.72 && 'deliveries' in work)
      throw new BatchError(dice.below(deliveries.length), new Error('one of them'))
    if (x < 0.8) return this.#settle(deliveries[0] as Delivery<number>)
    if (x < 0.97) {
      const ms = x < 0.95 ? dice.below(300) : 3_000
      return new Promise<void>((resolve) => void this.#clock.setTimer(resolve, ms))
    }
    return Promise.resolve()
  }

  #settle(delivery: Delivery<number>): void {
    const x = this.#dice.share()
    if (x < 0.6) delivery.ack()
    else if (x < 0.8) delivery.nack(this.#dice.chance(0.5) ? {} : { delayMs: this.#dice.below(30) })
    else if (x < 0.87) delivery.reject('rejected')
    else if (x < 0.93) delivery.extend(50 + this.#dice.below(200))
    // Else nothing: it expires.
  }

  /** What handlers do besides: publish, look, pause somebody. */
  #aside(): void {
    const x = this.#dice.share()
    if (x < 0.03) this.#broker.tryPublish('out', 1)
    else if (x < 0.05) this.#broker.metrics()
    else if (x < 0.06 && this.#seats.length > 0) this.#dice.pick(this.#seats).subscription.pause()
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  #described(): ReaderDescription {
    return this.#broker.describe('t').readers[0] as ReaderDescription
  }

  /** Everybody may go on, for as long as anything could take. */
  async #calm(): Promise<void> {
    for (let i = 0; i < CALM_S && (i < 4 || this.#isBusy()); i++) {
      for (const { subscription, credit } of this.#seats) {
        if (subscription.paused) subscription.resume()
        if (credit && !subscription.ended) subscription.request(50)
      }
      await this.#clock.advance(1_000)
    }
  }

  #isBusy(): boolean {
    const { cursors, counters } = this.#described()
    return (
      counters.zombies > 0 || cursors.some(({ lag, inFlight, retrying }) => lag + inFlight + retrying > 0)
    )
  }

  async #judge(): Promise<void> {
    const { partitions } = this.#broker.describe('t')
    const reader = this.#described()
    let idle = false
    void this.#broker.idle().then(() => {
      idle = true
    })
    await this.#clock.settle()
    if (!idle) this.#fault('idle() does not resolve')
    const left = reader.cursors.filter(({ lag }) => lag > 0)
    const free = reader.members.some(({ zombies }) => zombies === 0)
    if (free && left.length > 0) this.#fault(`not delivered: ${JSON.stringify(left)}`)
    if (partitions.some(({ waiting }) => waiting > 0) && free) this.#fault('publishers still wait')
    const { acked, deadLettered, skipped, dropped } = reader.counters
    const ends = acked + deadLettered + skipped + dropped
    const { overflow } = this.#options
    if ((overflow === 'wait' || overflow === 'reject') && dropped > 0)
      this.#fault(`a reader that waits lost ${dropped}`)
    const records = partitions.reduce((sum, { end }) => sum + end, 0)
    if (this.#replays === 0 && left.length === 0 && ends !== records) {
      this.#fault(`${records} records came to ${ends} ends: ${JSON.stringify(reader.counters)}`)
    }
    await this.#judgeLog()
    await this.#judgeClose()
  }

  /** What was accepted is in the log where it was said to be, once. Transactions and redrives are judged elsewhere. */
  async #judgeLog(): Promise<void> {
    for (const { partition, start, end } of this.#broker.describe('t').partitions) {
      this.#history.evict('t', partition, start)
      const scan = this.#history.scan('t', partition)
      const records = await this.#broker.read('t', partition)
      const own = records.filter(({ headers }) => !headers.has('__redrive.count'))
      this.#history.scanOk(
        scan,
        start,
        end,
        own.map(({ offset, value }) => ({ offset, value: String(value) })),
      )
    }
    for (const { kind, message } of checkHistory(this.#history)) {
      if (kind !== 'unsent-read') this.#fault(`${kind}: ${message}`)
    }
  }

  async #judgeClose(): Promise<void> {
    let closed = false
    void this.#broker.close({ drainMs: 10 }).then(() => {
      closed = true
    })
    await this.#clock.advance(100)
    if (!closed) this.#fault('close() does not resolve')
    let settled = false
    void Promise.all(this.#waits).then(() => {
      settled = true
    })
    await this.#clock.settle()
    if (!settled) this.#fault('a wait hangs after close')
    if (this.#clock.held) this.#fault('the process is still held')
  }
}

/** Plays one scene of so many steps; no faults: it is as it must be. */
export async function playScene(seed: number, steps: number): Promise<readonly string[]> {
  return new Scene(seed).play(steps)
}

/** How long the scene of a seed is: most are short, which finds what a few steps can do, and every eighth is long. */
export function stepsOf(seed: number): number {
  return seed % 8 === 0 ? 80 : 15
}
