/**
 * The work that a broker is tortured under: publishers that go on at the same time, over several topics and
 * partitions, one by one and in batches, with publish ids, in transactions, while topics come and go. Readers are in
 * crew.ts. All of it is written into the ledger, a call before it is made, an answer before anything follows it.
 *
 *   plain   3 partitions, keys                    unique   publish ids, repeated by later lives too
 *   jobs    work for transactions ─► done         window   small retention, nobody holds it
 *   latest  compacted (latest.ts)
 *   passing-<life>-<n>   created, filled, deleted
 */
import type { Broker } from '../../../src/broker.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import type { Position, PublishOptions, TopicOptions } from '../../../src/model/options.ts'
import type { Dice } from '../dice.ts'
import { entryOf, keep, LATEST_OPTIONS, LATEST_TOPIC, latestOf } from './latest.ts'
import type { Ledger } from './ledger.ts'
import { ID_TOPIC, type Left } from './left.ts'
import { PASSING, PASSING_RECORDS } from './look.ts'
import { contentOf } from './values.ts'

const TOPICS: { readonly [name: string]: TopicOptions } = {
  plain: { partitions: 3 },
  [ID_TOPIC]: { partitions: 2, dedupe: true },
  jobs: { partitions: 2 },
  done: {},
  window: { retention: { records: 50 } },
  [LATEST_TOPIC]: LATEST_OPTIONS,
}

/** After these nothing of a publish is in the log; after others, nobody knows. */
const REFUSALS: ReadonlySet<string> = new Set(['STORAGE_FULL', 'FULL', 'TIMEOUT', 'TOO_LARGE', 'FENCED'])
const THROWN = 'on second thoughts'

export interface Surroundings {
  readonly broker: Broker
  readonly ledger: Ledger
  readonly dice: Dice
  /** Resolves so many milliseconds later. */
  readonly sleep: (ms: number) => Promise<void>
  readonly left: Left
  /** Codes that a publish may be rejected with; others are faults. */
  readonly refusals: ReadonlySet<string>
}

/** What there must be before anybody works. Harmless when it is there. */
export async function createTopics(broker: Broker): Promise<void> {
  for (const [name, options] of Object.entries(TOPICS)) await broker.createTopic(name, options)
}

/** Notes how a call ended that was to append something. */
export function failed(at: Surroundings, sends: readonly number[], error: unknown): void {
  const { ledger, refusals } = at
  const code = error instanceof OdradekError ? error.code : String(error)
  for (const send of sends) {
    if (REFUSALS.has(code)) ledger.history.fail(send)
    else ledger.history.unknown(send)
  }
  ledger.note({ fact: 'refused', code })
  if (!refusals.has(code)) ledger.fault(`a publish was rejected with ${code}: ${String(error)}`)
}

export class Load {
  readonly #at: Surroundings
  readonly #ids: Map<string, Position | null>
  #tokens = 0
  #passing = 0
  /** Operations that are still to begin. */
  #steps = 0

  constructor(at: Surroundings) {
    this.#at = at
    this.#ids = new Map(at.left.ids)
  }

  /** So many operations, by so many publishers at once. */
  async run(steps: number, publishers: number): Promise<void> {
    this.#steps = steps
    await Promise.all(
      Array.from({ length: publishers }, (_, i) => this.#publisher(`p${this.#at.left.life}.${i}`)),
    )
  }

  /** What has begun is finished, nothing more begins. */
  stop(): void {
    this.#steps = 0
  }

  async #publisher(process: string): Promise<void> {
    const { dice, sleep } = this.#at
    while (this.#steps > 0) {
      this.#steps--
      await this.#step(process)
      if (dice.chance(0.5)) await sleep(dice.below(3))
    }
  }

  async #step(process: string): Promise<void> {
    const { dice } = this.#at
    const x = dice.share()
    if (x < 0.34) await this.#publish(process, 'plain', this.#token())
    else if (x < 0.44) await this.#publishAll(process)
    else if (x < 0.62) await this.#publish(process, 'jobs', this.#token())
    else if (x < 0.74) await this.#publishWithId(process)
    else if (x < 0.84) await this.#together(process)
    else if (x < 0.9) await this.#publish(process, 'window', this.#token())
    else if (x < 0.97) await this.#publishLatest()
    else await this.#pass()
  }

  #token(): string {
    return `${this.#at.left.life}.${this.#tokens++}`
  }

  async #publish(
    process: string,
    topic: string,
    token: string,
    options: PublishOptions = {},
  ): Promise<Position | undefined> {
    const { broker, ledger } = this.#at
    const { value, key, headers } = contentOf(token)
    const send = ledger.history.send(process, topic, token, key)
    try {
      const position = await broker.publish(topic, value, { key, headers, ...options })
      ledger.history.sendOk(send, position)
      return position
    } catch (error) {
      failed(this.#at, [send], error)
      return undefined
    }
  }

  async #publishAll(process: string): Promise<void> {
    const { broker, ledger, dice } = this.#at
    const tokens = Array.from({ length: 2 + dice.below(5) }, () => this.#token())
    const entries = tokens.map(contentOf)
    const sends = tokens.map((token, i) =>
      ledger.history.send(process, 'plain', token, entries[i]?.key ?? null),
    )
    try {
      const positions = await broker.publishAll('plain', entries)
      for (const [i, send] of sends.entries()) ledger.history.sendOk(send, positions[i] as Position)
    } catch (error) {
      // One partition may have taken its part, and another have refused.
      failed(this.#at, [], error)
      for (const send of sends) ledger.history.unknown(send)
    }
  }

  async #publishLatest(): Promise<void> {
    const { broker, ledger, dice } = this.#at
    const records = Array.from({ length: 1 + dice.below(10) }, () => latestOf(this.#token()))
    await Promise.all(
      records.map(async (record) => {
        const { value, ...options } = entryOf(record)
        try {
          keep(ledger, record, await broker.publish(LATEST_TOPIC, value, options))
        } catch (error) {
          failed(this.#at, [], error)
        }
      }),
    )
  }

  // ── publish ids ───────────────────────────────────────────────────────────────────────────────

  /** A new one, or one from before: then the answer must be the first one's. */
  async #publishWithId(process: string): Promise<void> {
    const { dice } = this.#at
    const known = [...this.#ids.keys()]
    if (known.length === 0 || dice.chance(0.6)) await this.#once(process, this.#token())
    else await this.#once(process, dice.pick(known))
  }

  /** Ids of which nobody knows whether they are in. */
  async settleIds(): Promise<void> {
    for (const [token, position] of this.#ids) if (position === null) await this.#once('settling', token)
  }

  async #once(process: string, token: string): Promise<void> {
    const { ledger } = this.#at
    const before = this.#ids.get(token)
    if (before === undefined) this.#ids.set(token, null)
    const position = await this.#publish(process, ID_TOPIC, token, { id: token })
    if (position === undefined) return
    this.#ids.set(token, position)
    if (before === undefined || before === null) return
    const same = position.partition === before.partition && position.offset === before.offset
    if (same && 'duplicate' in position) return
    ledger.fault(
      `publish id ${token} went to ${before.partition}/${before.offset}, and again to ${position.partition}/${position.offset}`,
    )
  }

  // ── transactions ──────────────────────────────────────────────────────────────────────────────

  async #together(process: string): Promise<void> {
    const { broker, ledger, dice } = this.#at
    const throws = dice.chance(0.15)
    const parts = dice
      .pick([
        ['plain', 'done'],
        ['plain', 'plain', 'jobs'],
        ['window', 'done'],
      ])
      .map((topic) => [topic, this.#token()] as const)
    ledger.note({ fact: 'together', parts })
    const sends = parts.map(([topic, token]) =>
      ledger.history.send(`${process}-tx`, topic, token, contentOf(token).key),
    )
    try {
      await broker.transaction((tx) => {
        for (const [topic, token] of parts) tx.publish(topic, contentOf(token).value, contentOf(token))
        if (throws) throw new Error(THROWN)
      })
      for (const send of sends) ledger.history.sendOk(send, null)
      if (throws) ledger.fault('a transaction that threw was committed')
    } catch (error) {
      if (!(throws && error instanceof Error && error.message === THROWN)) failed(this.#at, sends, error)
      else for (const send of sends) ledger.history.fail(send)
    }
  }

  // ── topics that come and go ───────────────────────────────────────────────────────────────────

  async #pass(): Promise<void> {
    const { broker, ledger, dice, left } = this.#at
    const topic = `${PASSING}${left.life}-${this.#passing++}`
    try {
      ledger.note({ fact: 'topic', topic, state: 'creating' })
      await broker.createTopic(topic)
      for (let i = 0; i < PASSING_RECORDS; i++) await broker.publish(topic, i)
      ledger.note({ fact: 'topic', topic, state: 'created' })
      if (dice.chance(0.3)) return
      ledger.note({ fact: 'topic', topic, state: 'deleting' })
      await broker.deleteTopic(topic)
      ledger.note({ fact: 'topic', topic, state: 'deleted' })
    } catch (error) {
      failed(this.#at, [], error)
    }
  }
}
