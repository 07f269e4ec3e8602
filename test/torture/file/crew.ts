/**
 * Who reads under torture, each in its own way, all of it written into the ledger: what was handed out, and every
 * settle that took effect, before anything follows it.
 *
 *   audit     broadcast, durable, in order, acks, now and then a nack       plain
 *   fleet     consumer group of two, whole partitions                       plain
 *   pings     at most once                                                  plain
 *   workers   share group: one transaction is the result and the ack        jobs ─► done, bad ones ─► dlq.jobs
 */
import type { Subscription } from '../../../src/coordinator/subscription.ts'
import type { Delivery } from '../../../src/model/delivery.ts'
import type { SubscribeOptions } from '../../../src/model/options.ts'
import type { GroupRules } from '../../../src/testing/history.ts'
import type { Run } from './ledger.ts'
import { placeName } from './left.ts'
import { failed, type Surroundings } from './load.ts'
import { checked } from './look.ts'
import { contentOf, hashOf } from './values.ts'

/** Enough that no record runs out of them by being in flight at so many crashes. */
const ATTEMPTS = 100
/** How often a record is given back, at most. */
export const NACKS = 2
const RETRY = { attempts: ATTEMPTS, delayMs: 1, maxDelayMs: 3 }

/** Whose records come at most once. */
export const CARELESS_GROUP = 'pings'
/** Whose acks are a part of a transaction that also publishes `resultOf` the record. */
export const EXACT_GROUP = 'workers'

interface Place {
  readonly name: string
  readonly topic: string
  readonly members: readonly string[]
  readonly options: SubscribeOptions
  readonly rules: GroupRules
}

const PLACES: readonly Place[] = [
  {
    name: 'audit',
    topic: 'plain',
    members: ['audit'],
    options: { order: 'partition', retry: RETRY, ack: 'manual' },
    rules: { order: 'partition', attempts: ATTEMPTS, lossless: true },
  },
  {
    name: 'fleet',
    topic: 'plain',
    members: ['f0', 'f1'],
    options: { group: 'fleet', assignment: 'range', order: 'partition', retry: RETRY, ack: 'manual' },
    rules: { order: 'partition', attempts: ATTEMPTS, ownership: 'partition', lossless: true },
  },
  {
    name: CARELESS_GROUP,
    topic: 'plain',
    members: ['p0'],
    options: { group: CARELESS_GROUP, guarantee: 'at-most-once', order: 'partition' },
    // Without an order: of what is handed out at most once nobody hears when it ends.
    rules: { guarantee: 'at-most-once', lossless: true },
  },
  {
    name: EXACT_GROUP,
    topic: 'jobs',
    members: ['w0', 'w1'],
    options: { group: EXACT_GROUP, order: 'none', concurrency: 3, retry: RETRY, ack: 'manual' },
    rules: { attempts: ATTEMPTS, lossless: true },
  },
]

/** Topics, and so many partitions of them, that each group reads. */
export const GROUP_PLACES: readonly (readonly [group: string, topic: string, partition: number])[] =
  PLACES.flatMap(({ name, topic }) => [0, 1, 2].map((partition) => [name, topic, partition] as const))

export function resultOf(token: string): string {
  return `result ${token}`
}

/** Records that no worker takes. */
export function isBad(token: string): boolean {
  return hashOf(token) % 19 === 0
}

/** The name that the history has for whoever is stored under a key of the engine's. */
export function groupOfKey(readerKey: string): string {
  return readerKey.replace(/^odradek\.reader\./, '')
}

export class Crew {
  readonly #at: Surroundings
  readonly #subscriptions: Subscription[] = []

  constructor(at: Surroundings) {
    this.#at = at
  }

  /** Puts whoever was never put anywhere to the beginning; the others go on where they were. */
  async join(): Promise<void> {
    const { broker, ledger, left } = this.#at
    const placed = new Set(left.placed)
    for (const { name, topic, members, options, rules } of PLACES) {
      ledger.history.group(name, rules)
      const { partitions } = broker.describe(topic)
      for (const { partition } of partitions) {
        if (placed.has(placeName(name, topic, partition))) continue
        ledger.history.resetOk(ledger.history.reset(name, topic, partition), 0)
      }
      for (const member of members) {
        const handler = (delivery: Delivery): unknown => this.#handle(name, member, delivery)
        const joining = { ...options, id: member, from: 'earliest' as const }
        this.#subscriptions.push(await broker.subscribe(topic, handler, joining))
      }
    }
    this.#checkCursors()
  }

  /** Resolves when everything published before is settled. */
  async drained(): Promise<void> {
    const { broker, ledger } = this.#at
    await Promise.all(this.#subscriptions.map((subscription) => subscription.drained()))
    await broker.idle()
    for (const { name } of PLACES) ledger.history.drained(name)
  }

  /** A committed offset is within its log. */
  #checkCursors(): void {
    const { broker, ledger } = this.#at
    for (const { topic } of PLACES) {
      const { partitions, readers } = broker.describe(topic)
      for (const { name, cursors } of readers) {
        for (const { partition, committed } of cursors) {
          const { start = 0, end = 0 } = partitions[partition] ?? {}
          if (committed >= start && committed <= end) continue
          ledger.fault(
            `${name} has committed ${committed} of ${topic}/${partition}, which is ${start} to ${end}`,
          )
        }
      }
    }
  }

  #handle(group: string, member: string, delivery: Delivery): unknown {
    const { ledger } = this.#at
    const { topic, partition, offset, attempt } = delivery
    const token = checked(ledger, delivery)
    const record = { topic, partition, offset, value: token, key: String(delivery.key ?? '') || null }
    const event = ledger.history.deliver(group, member, record, attempt)
    if (group === CARELESS_GROUP) return undefined
    return group === EXACT_GROUP ? this.#work(member, delivery, token, event) : this.#settle(delivery, event)
  }

  async #settle(delivery: Delivery, event: number): Promise<void> {
    const { ledger, dice, sleep } = this.#at
    const x = dice.share()
    if (x > 0.7) await sleep(dice.below(3))
    if (x > 0.97 && delivery.attempt <= NACKS) {
      if (delivery.nack()) ledger.history.settle(event, 'nack')
    } else if (delivery.ack()) ledger.history.settle(event, 'ack')
  }

  /** The result of a record and its ack, both or neither. */
  async #work(member: string, delivery: Delivery, token: string, event: number): Promise<void> {
    const { broker, ledger, dice, sleep } = this.#at
    if (dice.chance(0.5)) await sleep(dice.below(3))
    if (isBad(token)) {
      if (delivery.reject('bad')) ledger.history.settle(event, 'reject')
      return
    }
    const result = resultOf(token)
    const content = contentOf(result)
    const send = ledger.history.send(member, 'done', result, content.key)
    try {
      await broker.transaction((tx) => {
        tx.publish('done', content.value, content)
        tx.ack(delivery)
      })
      ledger.history.sendOk(send, null)
      ledger.history.settle(event, 'ack')
    } catch (error) {
      failed(this.#at, [send], error)
      if (delivery.nack()) ledger.history.settle(event, 'nack')
    }
  }
}

/** Of a state that the engine stores for a cursor, what a ledger wants to know. */
export interface StoredState {
  readonly offset: number
  readonly settled: readonly Run[]
}
