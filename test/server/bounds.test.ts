/**
 * What clients may make a broker keep, asked for over a socket: beyond it they are refused, by the code that Kafka has for
 * it, and what is there goes on.
 */
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { createBroker } from '../../src/memory.ts'
import { type KafkaServer, type ServerAddress, serve } from '../../src/server/server.ts'
import type { ServeOptions } from '../../src/server/server-options.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import type { Api, RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { offsetCommit } from '../../src/wire/messages/08-offset-commit.ts'
import { joinGroup } from '../../src/wire/messages/11-join-group.ts'
import { syncGroup } from '../../src/wire/messages/14-sync-group.ts'
import { createTopics } from '../../src/wire/messages/19-create-topics.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { addOffsetsToTxn } from '../../src/wire/messages/25-add-offsets-to-txn.ts'
import { txnOffsetCommit } from '../../src/wire/messages/28-txn-offset-commit.ts'
import { createPartitions } from '../../src/wire/messages/37-create-partitions.ts'
import { consumerGroupHeartbeat } from '../../src/wire/messages/68-consumer-group-heartbeat.ts'
import { WireClient } from './wire-client.ts'

const { NONE, POLICY_VIOLATION, INVALID_GROUP_ID, INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE } = KAFKA_ERRORS
const LONG = 'n'.repeat(1_025)

class Served implements AsyncDisposable {
  readonly clock: ManualClock
  readonly broker: Broker
  readonly #server: KafkaServer
  readonly #client: WireClient

  static async open(options: ServeOptions): Promise<Served> {
    const clock = new ManualClock()
    const broker = createBroker({ clock })
    const server = await serve(broker, { port: 0, ...options })
    const client = await WireClient.connect(server.addresses[0] as ServerAddress)
    return new Served(clock, broker, server, client)
  }

  private constructor(clock: ManualClock, broker: Broker, server: KafkaServer, client: WireClient) {
    this.clock = clock
    this.broker = broker
    this.#server = server
    this.#client = client
  }

  ask<A extends Api>(api: A, body: RequestInputOf<A>, version: number = api.max): Promise<ResponseOf<A>> {
    return this.#client.ask(api, version, body)
  }

  async create(name: string, numPartitions: number): Promise<number> {
    const topics = [{ name, numPartitions, replicationFactor: 1, assignments: [], configs: [] }]
    const { topics: results } = await this.ask(createTopics, { topics, timeoutMs: 0, validateOnly: false }, 7)
    return results[0]?.errorCode as number
  }

  async commit(groupId: string, partitionIndex: number, committedMetadata = ''): Promise<number> {
    const partitions = [{ partitionIndex, committedOffset: 1, committedMetadata }]
    const { topics } = await this.ask(
      offsetCommit,
      { groupId, memberId: '', topics: [{ name: 'a', partitions }] },
      9,
    )
    return topics[0]?.partitions[0]?.errorCode as number
  }

  join(groupId: string, metadata = new Uint8Array(1)): Promise<ResponseOf<typeof joinGroup>> {
    const protocols = [{ name: 'range', metadata }]
    const times = { sessionTimeoutMs: 30_000, rebalanceTimeoutMs: 30_000 }
    return this.ask(joinGroup, { groupId, memberId: '', protocolType: 'consumer', protocols, ...times }, 3)
  }

  async init(transactionalId: string | null): Promise<number> {
    const body = { transactionalId, transactionTimeoutMs: 60_000 }
    return (await this.ask(initProducerId, body, 4)).errorCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close()
    await this.#server.close({ drainMs: 0 })
    await this.broker.close({ drainMs: 0 })
  }
}

describe('partitions', () => {
  it('beyond maxPartitions are not created, and those that fit are', async () => {
    await using served = await Served.open({ maxPartitions: 5 })
    expect(await served.create('a', 4)).toBe(NONE)
    expect(await served.create('b', 2)).toBe(POLICY_VIOLATION)
    expect(await served.create('c', 1)).toBe(NONE)
    expect(served.broker.listTopics()).toEqual(['a', 'c'])
  })

  it('are not added either', async () => {
    await using served = await Served.open({ maxPartitions: 5 })
    await served.create('a', 4)
    const grow = async (count: number): Promise<unknown> => {
      const topics = [{ name: 'a', count, assignments: null }]
      const { results } = await served.ask(createPartitions, { topics, timeoutMs: 0, validateOnly: false })
      return results[0]
    }
    expect(await grow(6)).toMatchObject({
      errorCode: POLICY_VIOLATION,
      errorMessage: 'there are as many as this server allows: maxPartitions is 5',
    })
    expect(await grow(5)).toMatchObject({ errorCode: NONE })
  })

  it('are not made by asking for a topic, which is then unknown', async () => {
    await using served = await Served.open({ maxPartitions: 2 })
    const topics = ['a', 'b', 'c'].map((name) => ({ name }))
    const told = await served.ask(metadata, { topics, allowAutoTopicCreation: true }, 9)
    expect(told.topics.map(({ errorCode }) => errorCode)).toEqual([
      NONE,
      NONE,
      KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
    ])
  })

  it('that the program makes count, and it is not refused', async () => {
    await using served = await Served.open({ maxPartitions: 2 })
    await served.broker.createTopic('own', { partitions: 3 })
    expect(await served.create('a', 1)).toBe(POLICY_VIOLATION)
  })

  it('can be a million in one request, of which nothing is made', async () => {
    await using served = await Served.open({})
    const topics = Array.from({ length: 10 }, (_, i) => {
      return { name: `t${i}`, numPartitions: 100_000, replicationFactor: 1, assignments: [], configs: [] }
    })
    const { topics: results } = await served.ask(
      createTopics,
      { topics, timeoutMs: 0, validateOnly: false },
      7,
    )
    expect(results.map(({ errorCode }) => errorCode)).toEqual(topics.map(() => POLICY_VIOLATION))
    expect(served.broker.listTopics()).toEqual([])
  })

  it('have room again when a topic is gone', async () => {
    await using served = await Served.open({ maxPartitions: 1 })
    expect(await served.create('a', 1)).toBe(NONE)
    await served.broker.deleteTopic('a')
    expect(await served.create('b', 1)).toBe(POLICY_VIOLATION)
    await served.clock.advance(10_000)
    expect(await served.create('b', 1)).toBe(NONE)
  })
})

describe('groups', () => {
  it('beyond maxGroups are refused, however they would come to be, and those that are there go on', async () => {
    await using served = await Served.open({ maxGroups: 2 })
    await served.create('a', 2)
    expect((await served.join('g1')).errorCode).toBe(NONE)
    expect(await served.commit('g2', 0)).toBe(NONE)
    expect((await served.join('g3')).errorCode).toBe(POLICY_VIOLATION)
    expect(await served.commit('g3', 0)).toBe(POLICY_VIOLATION)
    const heartbeat = { memberId: 'AAAAAAAAAAAAAAAAAAAAAQ', memberEpoch: 0, rebalanceTimeoutMs: 1_000 }
    const modern = { ...heartbeat, groupId: 'g3', subscribedTopicNames: ['a'], topicPartitions: [] }
    expect((await served.ask(consumerGroupHeartbeat, modern)).errorCode).toBe(POLICY_VIOLATION)
    expect(await served.commit('g2', 1)).toBe(NONE)
  })

  it('have names of 1,024 characters at most', async () => {
    await using served = await Served.open({})
    await served.create('a', 1)
    expect((await served.join(LONG)).errorCode).toBe(INVALID_GROUP_ID)
    expect(await served.commit(LONG, 0)).toBe(INVALID_GROUP_ID)
    expect(await served.commit(LONG.slice(1), 0)).toBe(NONE)
  })

  it('keep no more than maxMemberBytes of what their members say; the next one is told to come again', async () => {
    await using served = await Served.open({ maxMemberBytes: 138_000 })
    const large = new Uint8Array(7_000)
    for (let i = 0; i < 18; i++) expect((await served.join(`g${i}`, large)).errorCode).toBe(NONE)
    expect((await served.join('g18', large)).errorCode).toBe(COORDINATOR_NOT_AVAILABLE)
    const assignments = [{ memberId: 'm', assignment: large }]
    const sync = { groupId: 'g1', generationId: 1, memberId: 'm', assignments }
    expect((await served.ask(syncGroup, sync)).errorCode).toBe(COORDINATOR_NOT_AVAILABLE)
    expect((await served.join('small')).errorCode).toBe(NONE)
    // Their sessions are over, so what they said is gone.
    await served.clock.advance(60_000)
    expect((await served.join('g19', large)).errorCode).toBe(NONE)
  })

  it('have members that count also if they say nothing, or name no topic but a pattern', async () => {
    await using served = await Served.open({ maxMemberBytes: 2_000 })
    const enter = async (memberId: string, subscribedTopicRegex: string | null = null): Promise<number> => {
      const said = { memberEpoch: 0, rebalanceTimeoutMs: 1_000, topicPartitions: [] }
      const topics = { subscribedTopicNames: [], subscribedTopicRegex }
      const response = await served.ask(consumerGroupHeartbeat, {
        groupId: 'g',
        memberId,
        ...said,
        ...topics,
      })
      return response.errorCode
    }
    expect([await enter('1'), await enter('2')]).toEqual([NONE, NONE])
    expect(await enter('3', 'p'.repeat(1_000))).toBe(COORDINATOR_NOT_AVAILABLE)
    expect([await enter('4'), await enter('5')]).toEqual([NONE, COORDINATOR_NOT_AVAILABLE])
  })

  it('have ids that were given to nobody yet, which count', async () => {
    await using served = await Served.open({ maxMemberBytes: 2_000 })
    const invite = async (): Promise<number> => {
      const times = { sessionTimeoutMs: 30_000, rebalanceTimeoutMs: 30_000 }
      const protocols = [{ name: '', metadata: new Uint8Array() }]
      const body = { groupId: 'g', memberId: '', protocolType: 'consumer', protocols, ...times }
      return (await served.ask(joinGroup, body, 9)).errorCode
    }
    const { MEMBER_ID_REQUIRED } = KAFKA_ERRORS
    for (let i = 0; i < 3; i++) expect(await invite()).toBe(MEMBER_ID_REQUIRED)
    expect(await invite()).toBe(COORDINATOR_NOT_AVAILABLE)
    await served.clock.advance(30_000)
    expect(await invite()).toBe(MEMBER_ID_REQUIRED)
  })
})

describe('committed offsets', () => {
  it('beyond maxCommittedOffsets are refused; those that are there move', async () => {
    await using served = await Served.open({ maxCommittedOffsets: 2 })
    await served.create('a', 3)
    expect([await served.commit('g', 0), await served.commit('g', 1), await served.commit('g', 2)]).toEqual([
      NONE,
      NONE,
      POLICY_VIOLATION,
    ])
    expect(await served.commit('g', 1)).toBe(NONE)
  })

  it('count once more for each 100 characters of metadata, also where one is replaced', async () => {
    await using served = await Served.open({ maxCommittedOffsets: 10 })
    await served.create('a', 3)
    expect(await served.commit('g', 0)).toBe(NONE)
    expect(await served.commit('g', 0, 'm'.repeat(1_000))).toBe(POLICY_VIOLATION)
    expect(await served.commit('g', 0, 'm'.repeat(900))).toBe(NONE)
    expect(await served.commit('g', 0, 'n'.repeat(900))).toBe(NONE)
    expect(await served.commit('g', 1)).toBe(POLICY_VIOLATION)
  })

  it('have 4,096 characters of metadata at most', async () => {
    await using served = await Served.open({})
    await served.create('a', 1)
    expect(await served.commit('g', 0, 'm'.repeat(4_097))).toBe(KAFKA_ERRORS.OFFSET_METADATA_TOO_LARGE)
    expect(await served.commit('g', 0, 'm'.repeat(4_096))).toBe(NONE)
  })

  it('count also while a transaction has set them aside', async () => {
    await using served = await Served.open({ maxCommittedOffsets: 1 })
    await served.create('a', 2)
    const { producerId, producerEpoch } = await served.ask(
      initProducerId,
      { transactionalId: 't', transactionTimeoutMs: 60_000 },
      4,
    )
    const producer = { transactionalId: 't', producerId, producerEpoch, groupId: 'g' }
    expect((await served.ask(addOffsetsToTxn, producer)).errorCode).toBe(NONE)
    const commit = async (partitionIndex: number): Promise<unknown> => {
      const topics = [
        { name: 'a', partitions: [{ partitionIndex, committedOffset: 1, committedMetadata: '' }] },
      ]
      const response = await served.ask(txnOffsetCommit, { ...producer, topics }, 3)
      return response.topics[0]?.partitions[0]?.errorCode
    }
    expect([await commit(0), await commit(1)]).toEqual([NONE, POLICY_VIOLATION])
    // Counted anew, as it is stored.
    await served.clock.advance(10_000)
    expect(await commit(1)).toBe(POLICY_VIOLATION)
  })
})

describe('transactional ids', () => {
  it('beyond maxTransactionalIds are refused; who has one goes on, and so does who needs none', async () => {
    await using served = await Served.open({ maxTransactionalIds: 1 })
    expect(await served.init('t1')).toBe(NONE)
    expect(await served.init('t2')).toBe(POLICY_VIOLATION)
    expect([await served.init('t1'), await served.init(null)]).toEqual([NONE, NONE])
  })

  it('have 1,024 characters at most', async () => {
    await using served = await Served.open({})
    expect(await served.init(LONG)).toBe(INVALID_REQUEST)
  })

  it('commit offsets of 1,000 groups at most in a transaction', async () => {
    await using served = await Served.open({})
    const { producerId, producerEpoch } = await served.ask(
      initProducerId,
      { transactionalId: 't', transactionTimeoutMs: 60_000 },
      4,
    )
    const add = async (groupId: string): Promise<number> => {
      const body = { transactionalId: 't', producerId, producerEpoch, groupId }
      return (await served.ask(addOffsetsToTxn, body)).errorCode
    }
    for (let i = 0; i < 1_000; i++) await add(`g${i}`)
    expect([await add('one more'), await add('g7'), await add(LONG)]).toEqual([
      POLICY_VIOLATION,
      NONE,
      INVALID_GROUP_ID,
    ])
  })
})
