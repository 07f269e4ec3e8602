/**
 * Memory that is used again, with everybody at once: producers and readers that leave at any moment or do not read,
 * transactions, compaction, retention and caches that hold next to nothing, and a program that keeps what it was handed.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { createBroker } from '../../src/memory.ts'
import { type KafkaServer, type ServerAddress, serve } from '../../src/server/server.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { addPartitionsToTxn } from '../../src/wire/messages/24-add-partitions-to-txn.ts'
import { endTxn } from '../../src/wire/messages/26-end-txn.ts'
import { Dice } from '../torture/dice.ts'
import {
  checkedRecords,
  madeBatch,
  numberOf,
  Places,
  type Read,
  type Spoiled,
  spoilMemory,
} from './storm-kit.ts'
import { requestOf, WireClient } from './wire-client.ts'

const KiB = 1024
const PARTITIONS = 2
const ROUNDS = 50
/** More of them: `STORM_SEEDS=1,2,3`. */
const SEEDS = (process.env.STORM_SEEDS ?? '1').split(',').map(Number)
const IN_FLIGHT = 4
const RETENTION = { bytes: 2048 * KiB }
const OUT_OF_RANGE = 1
/** Answers to who does not read: more than the system holds. */
const UNREAD = 150

const nothing = (): void => {}
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing }

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

interface Kept extends Read {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

class Storm {
  readonly faults: string[] = []
  readonly places = new Places((what) => this.fault(what))
  readonly aborted = new Set<number>()
  readonly kept: Kept[] = []
  readonly topics: string[]
  /** Where partitions begin, as somebody was told last. */
  readonly starts = new Map<string, number>()
  acknowledged = 0
  fetched = 0
  done = false
  readonly #broker: Broker
  readonly #server: KafkaServer
  readonly #seed: number

  constructor(broker: Broker, server: KafkaServer, seed: number, topics: string[]) {
    this.#broker = broker
    this.#server = server
    this.#seed = seed
    this.topics = topics
  }

  fault(what: string): void {
    if (this.faults.length < 20) this.faults.push(what)
  }

  connect(): Promise<WireClient> {
    return WireClient.connect(this.#server.addresses[0] as ServerAddress)
  }

  /** Several requests on their way; sometimes it leaves in the middle. */
  async produces(id: number): Promise<void> {
    const dice = new Dice(this.#seed * 1_000 + id)
    let client = await this.connect()
    for (let round = 0; round < ROUNDS; round++) {
      const sent: { topic: string; index: number; numbers: readonly number[] }[] = []
      for (let left = 1 + dice.below(IN_FLIGHT); left > 0; left--) {
        const [topic, index] = [dice.pick(this.topics), dice.below(PARTITIONS)]
        const { bytes, numbers } = madeBatch(dice)
        const acks = dice.chance(0.2) ? 0 : -1
        if (acks !== 0) sent.push({ topic, index, numbers })
        const topicData = [{ name: topic, partitionData: [{ index, records: bytes }] }]
        const request = requestOf(produce, 9, { transactionalId: null, acks, timeoutMs: 3_000, topicData })
        const cut = dice.chance(0.5) ? request.length : dice.below(request.length)
        client.send(request.subarray(0, cut))
        if (cut < request.length) {
          await turns(dice.below(3))
          client.send(request.subarray(cut))
        }
      }
      if (dice.chance(0.12)) {
        await turns(dice.below(6))
        client.close()
        client = await this.connect()
        continue
      }
      for (const { topic, index, numbers } of sent) {
        const answer = await client.response(produce, 9).catch(() => undefined)
        const [told] = answer?.body.responses[0]?.partitionResponses ?? []
        if (told === undefined) {
          client.close()
          client = await this.connect()
          break
        }
        if (told.errorCode !== 0) continue
        this.acknowledged++
        this.places.acknowledged(topic, index, told.baseOffset, numbers)
      }
    }
    client.close()
  }

  async transacts(id: number): Promise<void> {
    const dice = new Dice(this.#seed * 1_000 + 500 + id)
    const client = await this.connect()
    const transactionalId = `t${id}`
    const init = { transactionalId, transactionTimeoutMs: 60_000 }
    const { producerId, producerEpoch } = await client.ask(initProducerId, 2, init)
    const sequences = new Map<number, number>()
    for (let round = 0; round < ROUNDS / 3; round++) {
      const index = dice.below(PARTITIONS)
      await client.ask(addPartitionsToTxn, 3, {
        v3AndBelowTransactionalId: transactionalId,
        v3AndBelowProducerId: producerId,
        v3AndBelowProducerEpoch: producerEpoch,
        v3AndBelowTopics: [{ name: 'plain', partitions: [index] }],
      })
      const committed = dice.chance(0.5)
      for (let left = 1 + dice.below(3); left > 0; left--) {
        const sequence = sequences.get(index) ?? 0
        const producer = { id: producerId, epoch: producerEpoch, sequence, transactional: true }
        const { bytes, numbers } = madeBatch(dice, producer)
        if (!committed) for (const n of numbers) this.aborted.add(n)
        const topicData = [{ name: 'plain', partitionData: [{ index, records: bytes }] }]
        const body = await client.ask(produce, 9, { transactionalId, acks: -1, timeoutMs: 20_000, topicData })
        const [told] = body.responses[0]?.partitionResponses ?? []
        if (told?.errorCode !== 0) continue
        sequences.set(index, sequence + numbers.length)
        this.acknowledged++
        this.places.acknowledged('plain', index, told.baseOffset, numbers)
      }
      for (let errorCode = 1; errorCode !== 0; ) {
        const end = { transactionalId, producerId, producerEpoch, committed }
        errorCode = (await client.ask(endTxn, 3, end)).errorCode
        await turns(2)
      }
    }
    client.close()
  }

  /** From where it was to the end, again and again, also behind what is evicted; sometimes it does not read, or leaves. */
  async fetches(id: number): Promise<void> {
    const dice = new Dice(this.#seed * 1_000 + 100 + id)
    const at = new Map<string, number>()
    let client = await this.connect()
    while (!this.done) {
      const topics = this.topics.map((topic) => ({
        topic,
        partitions: Array.from({ length: PARTITIONS }, (_, partition) => ({
          partition,
          fetchOffset: at.get(`${topic}/${partition}`) ?? 0,
          partitionMaxBytes: dice.pick([1, 60 * KiB, 300 * KiB, 2048 * KiB]),
        })),
      }))
      const wait = { maxWaitMs: dice.pick([0, 20]), minBytes: 1, maxBytes: dice.pick([100 * KiB, 2 ** 26]) }
      client.send(requestOf(fetch, 11, { ...wait, isolationLevel: dice.below(2), topics }))
      if (dice.chance(0.4)) {
        client.socket.pause()
        await turns(dice.below(60))
        client.socket.resume()
      }
      if (dice.chance(0.1)) {
        await turns(dice.below(10))
        client.close()
        client = await this.connect()
        continue
      }
      const answer = await client.response(fetch, 11).catch(() => undefined)
      if (answer === undefined) {
        client.close()
        client = await this.connect()
        continue
      }
      this.#take(answer.body.responses, at, dice)
    }
    client.close()
  }

  /** Asks for all that there is, again and again, and reads nothing of it before it has been evicted. */
  async dawdles(id: number): Promise<void> {
    const dice = new Dice(this.#seed * 1_000 + 300 + id)
    while (!this.done) {
      const client = await this.connect()
      client.socket.pause()
      const at = new Map<string, number>()
      for (let left = UNREAD; left > 0; left--) {
        const [topic, partition] = [dice.pick(this.topics), dice.below(PARTITIONS)]
        const fetchOffset = (this.starts.get(`${topic}/${partition}`) ?? 0) + dice.below(40)
        // One batch lies in one piece of memory, and is sent from there.
        const partitions = [{ partition, fetchOffset, partitionMaxBytes: dice.chance(0.8) ? 1 : 300 * KiB }]
        const wait = { maxWaitMs: 0, minBytes: 1, maxBytes: 2 ** 26, isolationLevel: 0 }
        client.send(requestOf(fetch, 11, { ...wait, topics: [{ topic, partitions }] }))
      }
      for (const until = this.acknowledged + 25; !this.done && this.acknowledged < until; ) await turns(1)
      client.socket.resume()
      for (let left = dice.chance(0.2) ? dice.below(UNREAD) : UNREAD; left > 0; left--) {
        const { body } = await client.response(fetch, 11)
        this.#take(body.responses, at, dice)
      }
      client.close()
    }
  }

  #take(
    responses: readonly { topic: string; partitions: readonly Record<string, unknown>[] }[],
    at: Map<string, number>,
    dice: Dice,
  ): void {
    for (const { topic, partitions } of responses) {
      for (const { partitionIndex, errorCode, logStartOffset, records } of partitions) {
        const place = `${topic}/${partitionIndex}`
        if (Number(logStartOffset) >= 0) this.starts.set(place, Number(logStartOffset))
        if (errorCode === OUT_OF_RANGE || dice.chance(0.05)) {
          at.set(place, Math.max(Number(logStartOffset), 0))
          continue
        }
        const told = (what: string): void => this.fault(`fetched of ${place}: ${what}`)
        for (const { offset, n } of checkedRecords((records ?? new Uint8Array(0)) as Uint8Array, told)) {
          this.places.found(topic, Number(partitionIndex), offset, n)
          at.set(place, Math.max(offset + 1, at.get(place) ?? 0))
          this.fetched++
        }
      }
    }
  }

  /** A program that keeps all that it is handed, publishes some of it again and gives some back. */
  async subscribes(): Promise<void> {
    const dice = new Dice(this.#seed * 1_000 + 200)
    for (const topic of this.topics) {
      for (const group of [undefined, 'slow']) {
        await this.#broker.subscribe(
          topic,
          async (delivery) => {
            const { partition, offset, key, value, headers } = delivery
            this.kept.push({ topic, partition, offset, key, value, headers })
            if (dice.chance(0.2)) await turns(dice.below(4))
            if (group !== undefined && dice.chance(0.1)) {
              await this.#broker.publish('copies', value, { key: key as Uint8Array, headers }).catch(() => {})
            }
            if (group !== undefined && dice.chance(0.03)) delivery.reject('on purpose')
          },
          group === undefined ? {} : { group, overflow: 'drop-oldest' },
        )
      }
    }
    const keep = (topic: string) => (delivery: Kept & { value: unknown }) => {
      const { partition, offset, key, value, headers } = delivery
      this.kept.push({ topic, partition, offset, key, value, headers })
    }
    await this.#broker.subscribe('copies', keep('copies') as never)
  }

  /** All that was kept is still what it was, and where. */
  checkKept(): void {
    for (const each of this.kept) {
      const n = numberOf(each)
      const place = `${each.topic}/${each.partition}@${each.offset}`
      if (typeof n === 'string') this.fault(`kept of ${place}: ${n}`)
      else {
        if (each.topic !== 'copies') this.places.found(each.topic, each.partition, each.offset, n)
        if (this.aborted.has(n)) this.fault(`kept of ${place}: ${n}, which was aborted`)
      }
    }
  }

  async run(): Promise<void> {
    await this.subscribes()
    const reading = [...[0, 1, 2].map((id) => this.fetches(id)), this.dawdles(0)]
    await Promise.all([...[0, 1, 2].map((id) => this.produces(id)), this.transacts(0), this.transacts(1)])
    await turns(50)
    this.done = true
    await Promise.all(reading)
    this.checkKept()
  }
}

async function blow(broker: Broker, seed: number, topics: string[], spoiled: Spoiled): Promise<Storm> {
  await broker.createTopic('plain', { partitions: PARTITIONS, retention: RETENTION })
  await broker.createTopic('copies', { retention: RETENTION })
  if (topics.includes('compacted'))
    await broker.createTopic('compacted', { partitions: PARTITIONS, cleanup: 'compact' })
  const server = await serve(broker, { port: 0 })
  const storm = new Storm(broker, server, seed, topics)
  try {
    await storm.run()
  } finally {
    await server.close({ drainMs: 0 })
  }
  const { acknowledged, fetched, kept } = storm
  expect([storm.faults, spoiled.faults], `seed ${seed}`).toEqual([[], []])
  expect(Math.min(acknowledged, fetched, kept.length, spoiled.given), `seed ${seed}`).toBeGreaterThan(20)
  expect(spoiled.taken - spoiled.fresh, `seed ${seed}`).toBeGreaterThan(10)
  return storm
}

describe('memory that is used again', () => {
  it.each(SEEDS)(
    'is nobody else’s, in memory (seed %i)',
    async (seed) => {
      const spoiled = spoilMemory()
      await using broker = createBroker({ logger: quiet })
      await blow(broker as unknown as Broker, seed, ['plain'], spoiled)
    },
    60_000,
  )

  it.each(SEEDS)(
    'is nobody else’s, on files, nor after a restart (seed %i)',
    async (seed) => {
      const spoiled = spoilMemory()
      const directory = await mkdtemp(join(tmpdir(), 'odradek-storm-'))
      const url = `file:${directory}`
      try {
        const options = {
          logger: quiet,
          durability: 'os',
          cacheBytes: 64 * KiB,
          segmentBytes: 1024 * KiB,
        } as const
        const topics = ['plain', 'compacted']
        let storm: Storm
        {
          await using broker = await openBroker(url, options)
          storm = await blow(broker as unknown as Broker, seed, topics, spoiled)
          storm.checkKept()
        }
        await using broker = await openBroker(url, options)
        for (const topic of topics) {
          for (const each of await broker.read(topic)) {
            const n = numberOf(each)
            if (typeof n === 'string') storm.fault(`read of ${topic} again: ${n}`)
            else storm.places.found(topic, each.partition, each.offset, n)
          }
        }
        storm.checkKept()
        expect(storm.faults).toEqual([])
      } finally {
        await rm(directory, { recursive: true })
      }
    },
    60_000,
  )
})
