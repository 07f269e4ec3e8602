/**
 * Several transactional producers over the same partitions at once, of both protocols: they commit, abort, take too long,
 * are fenced by others of their name, and the machine stops in the middle of it. Against what they were told: readers of
 * committed records see exactly the transactions that were committed, whole and in the order of the log; so does who
 * reads in process, and so do the groups whose offsets they commit.
 */
import { describe, expect, it } from 'vitest'
import { GroupClient } from '../support/group-client.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { committedValues, TransactionalProducer } from '../support/kafka-transactions.ts'
import { Dice } from '../torture/dice.ts'

const PLACES = [
  ['orders', 0],
  ['orders', 1],
  ['audit', 0],
] as const

const BUSY = ['CONCURRENT_TRANSACTIONS', 'NOT_ENOUGH_REPLICAS', 'COORDINATOR_LOAD_IN_PROGRESS']

const NAMES = ['one', 'two', 'three']

/** What became of a transaction, as far as its producer knows. */
type Fate = 'open' | 'committed' | 'aborted' | 'committed or not' | 'lost'

interface Txn {
  readonly owner: string
  readonly number: number
  fate: Fate
  /** By place, what was acknowledged. */
  readonly values: string[][]
  offset: number | null
}

class Client {
  readonly name: string
  producer: TransactionalProducer | null = null
  txn: Txn | null = null

  constructor(name: string) {
    this.name = name
  }
}

class Story {
  readonly dice: Dice
  readonly machine: KafkaMachine
  readonly clients = NAMES.map((name) => new Client(name))
  readonly all: Txn[] = []
  readonly counts = { crashes: 0, fenced: 0, timeouts: 0 }
  #stop = false

  constructor(dice: Dice, machine: KafkaMachine) {
    this.dice = dice
    this.machine = machine
  }

  /** One client's life until the machine stops, or it has done so much. */
  async live(client: Client, steps: number): Promise<void> {
    for (let i = 0; i < steps && !this.#stop; i++) await this.#step(client)
  }

  async #step(client: Client): Promise<void> {
    const { dice } = this
    if (client.producer === null) return this.#begin(client)
    client.txn ??= this.#transaction(client)
    const way = dice.share()
    if (way < 0.55) await this.#send(client, client.txn)
    else if (way < 0.65) await this.#offset(client, client.txn)
    else if (way < 0.93) await this.#end(client, client.txn)
    else this.#forget(client)
  }

  /** Another process of the same name, which fences the one before. */
  async #begin(client: Client): Promise<void> {
    const protocol = this.dice.chance(0.5) ? 'v1' : 'v2'
    const producer = new TransactionalProducer(this.machine.world, client.name, {
      protocol,
      timeoutMs: 10_000,
    })
    const answer = await producer.init()
    if (answer === 'NONE') client.producer = producer
    else expect(answer).toBe('CONCURRENT_TRANSACTIONS')
    if (answer !== 'NONE') await this.machine.clock.settle()
  }

  #transaction(client: Client): Txn {
    const txn: Txn = {
      owner: client.name,
      number: this.all.length,
      fate: 'open',
      values: PLACES.map(() => []),
      offset: null,
    }
    this.all.push(txn)
    return txn
  }

  #forget(client: Client): void {
    if (client.txn !== null) client.txn.fate = 'lost'
    client.producer = null
    client.txn = null
    this.counts.fenced++
  }

  async #send(client: Client, txn: Txn): Promise<void> {
    const place = this.dice.below(PLACES.length)
    const [topic, partition] = PLACES[place] as (typeof PLACES)[number]
    const from = txn.values[place]?.length as number
    const values = Array.from(
      { length: 1 + this.dice.below(3) },
      (_, i) => `${client.name} ${txn.number} ${from + i}`,
    )
    const answer = await client.producer?.send(topic, values, partition)
    if (answer === 'NONE') txn.values[place]?.push(...values)
    else this.#given(client, answer)
  }

  async #offset(client: Client, txn: Txn): Promise<void> {
    const answer = await client.producer?.sendOffset(client.name, 'orders', txn.number)
    if (answer === 'NONE') txn.offset = txn.number
    else this.#given(client, answer)
  }

  async #end(client: Client, txn: Txn): Promise<void> {
    const isEmpty = txn.offset === null && txn.values.every(({ length }) => length === 0)
    if (isEmpty) return
    const commit = this.dice.chance(0.6)
    if (commit) txn.fate = 'committed or not'
    const answer = await client.producer?.end(commit)
    if (answer !== 'NONE') {
      this.#given(client, answer)
      return
    }
    txn.fate = commit ? 'committed' : 'aborted'
    client.txn = null
  }

  /** What can go wrong: it took too long, or the transaction before is being completed. */
  #given(client: Client, answer: string | undefined): void {
    if (BUSY.includes(answer as string)) return
    expect(['PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH']).toContain(answer)
    if (client.txn !== null) client.txn.fate = 'aborted'
    client.txn = null
    client.producer = null
  }

  async timeout(): Promise<void> {
    this.counts.timeouts++
    await this.machine.until(this.machine.clock.advance(10_000))
  }

  async crash(seed: number): Promise<void> {
    this.counts.crashes++
    this.#stop = true
    if (this.dice.chance(0.7)) await this.machine.powerLoss(seed)
    else await this.machine.kill()
    this.#stop = false
    for (const client of this.clients) {
      if (client.txn?.fate === 'open') client.txn.fate = 'lost'
      client.txn = null
      client.producer = null
    }
  }

  // ── what must be true ─────────────────────────────────────────────────────────────────────────

  /** Everybody takes his name over, so nothing is open. */
  async settle(): Promise<void> {
    for (const client of this.clients) {
      this.#forget(client)
      while (client.producer === null) await this.#begin(client)
    }
  }

  async check(where: string): Promise<void> {
    const seen = await Promise.all(
      PLACES.map(([topic, partition]) => committedValues(this.machine.world, topic, partition)),
    )
    for (const txn of this.all) this.#checkOne(txn, seen, where)
    for (const [place, [topic, partition]] of PLACES.entries()) {
      const values = seen[place] as string[]
      const every = await this.machine.world.values({ topic, partition, partitionMaxBytes: 10_000_000 })
      expect(values, where).toEqual(every.filter((value) => values.includes(value as string)))
      const { world } = this.machine
      const read = await world.broker.read(topic, partition)
      expect(
        read.map(({ value }) => text(value)),
        where,
      ).toEqual(values)
    }
    for (const name of NAMES) {
      const kept = this.all.filter(
        ({ owner, fate, offset }) => owner === name && fate === 'committed' && offset !== null,
      )
      const { committedOffset } = await new GroupClient(this.machine.world, { group: name }).committed(
        'orders',
        0,
      )
      expect(committedOffset, `${where}, group ${name}`).toBe(kept.at(-1)?.offset ?? -1)
    }
  }

  #checkOne(txn: Txn, seen: readonly string[][], where: string): void {
    const prefix = `${txn.owner} ${txn.number} `
    const shown = seen.map((values) => values.filter((value) => value.startsWith(prefix)))
    const none = PLACES.map(() => [])
    const what = `${where}, ${prefix}${txn.fate}`
    if (txn.fate === 'committed or not') {
      const isThere = shown.some(({ length }) => length > 0)
      // A transaction of an offset alone is told by the group.
      txn.fate = isThere ? 'committed' : 'aborted'
      if (!isThere && txn.values.every(({ length }) => length === 0)) txn.fate = this.#fateByOffset(txn)
    }
    expect(shown, what).toEqual(txn.fate === 'committed' ? txn.values : none)
  }

  #fateByOffset({ owner, number }: Txn): Fate {
    const { groupOffsets, topics } = this.machine.world.kafka.parts
    const topicId = topics.require('orders').id
    return groupOffsets.committed(owner, { topicId, partition: 0 })?.offset === number
      ? 'committed'
      : 'aborted'
  }
}

function text(value: unknown): unknown {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}

async function run(seed: number): Promise<Story> {
  const machine = await KafkaMachine.open(seed, { journalBytes: 64 * 1024, segmentBytes: 4 * 1024 })
  await machine.world.broker.createTopic('orders', { partitions: 2 })
  await machine.world.broker.createTopic('audit')
  const dice = new Dice(seed)
  const story = new Story(dice, machine)
  for (let round = 0; round < 8; round++) {
    const crashes = dice.chance(0.6)
    if (crashes) {
      machine.haltIn = 1 + dice.below(120)
      machine.haltHow = dice.chance(0.5) ? 'before' : 'after'
    }
    await machine.until(Promise.all(story.clients.map((client) => story.live(client, 12))))
    if (dice.chance(0.3) && !machine.isHalted) await story.timeout()
    if (crashes) await story.crash(seed * 100 + round)
    if (dice.chance(0.5)) {
      await story.settle()
      await story.check(`seed ${seed}, round ${round}`)
    }
  }
  await story.settle()
  await story.check(`seed ${seed}, at the end`)
  return story
}

const SEEDS = 30

describe('transactional producers at once, with crashes', () => {
  it('leave whole transactions, in the order of the log', { timeout: 120_000 }, async () => {
    const counts = { transactions: 0, committed: 0, crashes: 0, fenced: 0, timeouts: 0 }
    for (let seed = 1; seed <= SEEDS; seed++) {
      const story = await run(seed)
      counts.transactions += story.all.length
      counts.committed += story.all.filter(({ fate }) => fate === 'committed').length
      counts.crashes += story.counts.crashes
      counts.fenced += story.counts.fenced
      counts.timeouts += story.counts.timeouts
    }
    expect(counts.transactions).toBeGreaterThan(30 * SEEDS)
    expect(counts.committed).toBeGreaterThan(8 * SEEDS)
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(SEEDS / 2)
  })
})
