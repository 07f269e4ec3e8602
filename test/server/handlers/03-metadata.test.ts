import { describe, expect, it } from 'vitest'
import { UNKNOWN_OPERATIONS } from '../../../src/wire/constants.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { metadata } from '../../../src/wire/messages/03-metadata.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { DataWorld } from '../../support/kafka-data.ts'

interface Asked {
  readonly version?: number
  readonly allowAutoTopicCreation?: boolean
}

async function ask(
  world: DataWorld,
  topics: readonly { name?: string | null; topicId?: string }[] | null,
  { version = 12, allowAutoTopicCreation = true }: Asked = {},
) {
  return world.send(metadata, version, { topics, allowAutoTopicCreation })
}

describe('Metadata', () => {
  it('tells brokers and cluster in every version', async () => {
    const world = new DataWorld({ nodes: 2 })
    for (let version = 0; version <= 13; version++) {
      const response = await ask(world, [], { version })
      expect(response.brokers).toEqual([
        { nodeId: 0, host: 'localhost', port: 9092, rack: null },
        { nodeId: 1, host: 'localhost', port: 9093, rack: null },
      ])
      expect(response.clusterId).toBe(version < 2 ? null : 'AAAAAAAAAAAAAAAAAAAAAQ')
      expect(response.controllerId).toBe(version < 1 ? -1 : 0)
      expect(response.errorCode).toBe(KAFKA_ERRORS.NONE)
    }
  })

  it('takes an empty list for all topics in version 0, and for none later, where null is all', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    await world.broker.createTopic('payments')
    const names = async (topics: [] | null, version: number): Promise<unknown[]> =>
      (await ask(world, topics, { version })).topics.map(({ name }) => name)
    expect(await names([], 0)).toEqual(['orders', 'payments'])
    expect(await names([], 1)).toEqual([])
    expect(await names(null, 1)).toEqual(['orders', 'payments'])
    expect(await names(null, 13)).toEqual(['orders', 'payments'])
  })

  it('describes a topic with the epochs of its logs', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { partitions: 2 })
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(1)
    ;(log.marks as { epoch: number }).epoch = 3
    const { topics } = await ask(world, [{ name: 'orders' }])
    const partition = {
      errorCode: KAFKA_ERRORS.NONE,
      leaderId: 0,
      replicaNodes: [0],
      isrNodes: [0],
      offlineReplicas: [],
    }
    expect(topics).toEqual([
      {
        errorCode: KAFKA_ERRORS.NONE,
        name: 'orders',
        topicId: world.topicId(),
        isInternal: false,
        partitions: [
          { ...partition, partitionIndex: 0, leaderEpoch: 0 },
          { ...partition, partitionIndex: 1, leaderEpoch: 3 },
        ],
        topicAuthorizedOperations: UNKNOWN_OPERATIONS,
      },
    ])
  })

  it('spreads the leaders of partitions over the nodes, and says the same to all', async () => {
    const world = new DataWorld({ nodes: 3 })
    await world.broker.createTopic('orders', { partitions: 24 })
    const leaders = async (node: number): Promise<number[]> => {
      const body = { topics: [{ name: 'orders' }] }
      const { topics } = await world.send(metadata, 12, body, { node })
      return (topics[0]?.partitions ?? []).map(({ leaderId }) => leaderId)
    }
    const seen = await leaders(0)
    expect(new Set(seen)).toEqual(new Set([0, 1, 2]))
    expect(await leaders(2)).toEqual(seen)
  })

  it('finds topics by their ids, and says of others that nobody knows them', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const topicId = world.topicId()
    const unknown = 'BBBBBBBBBBBBBBBBBBBBBA'
    const ask12 = await ask(world, [
      { topicId, name: null },
      { topicId: unknown, name: null },
    ])
    expect(ask12.topics).toMatchObject([
      { errorCode: KAFKA_ERRORS.NONE, name: 'orders', topicId },
      { errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID, name: null, topicId: unknown, partitions: [] },
    ])
    const ask10 = await ask(world, [{ topicId: unknown, name: '' }], { version: 10 })
    expect(ask10.topics).toMatchObject([{ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID, name: '' }])
  })

  it('tells authorized operations to who asks for them', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const { topics, clusterAuthorizedOperations } = await world.send(metadata, 10, {
      topics: [{ name: 'orders' }, { name: 'bad name' }],
      includeTopicAuthorizedOperations: true,
      includeClusterAuthorizedOperations: true,
    })
    expect(topics[0]?.topicAuthorizedOperations).toBe(0b1101_1111_1000)
    expect(clusterAuthorizedOperations).toBe(0b1_1111_1010_0000)
  })

  it('marks the names of topics that are internal to Kafka', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('__consumer_offsets')
    const { topics } = await ask(world, null)
    expect(topics).toMatchObject([{ name: '__consumer_offsets', isInternal: true }])
  })
})

describe('Metadata of topics that are missing', () => {
  it('creates them where client and server want it, with the partitions of the server', async () => {
    const world = new DataWorld({ defaultPartitions: 3 })
    for (const version of [0, 3, 4, 13]) {
      const { topics } = await ask(world, [{ name: `v${version}` }], { version })
      expect(topics).toMatchObject([
        { errorCode: KAFKA_ERRORS.NONE, partitions: [{ leaderId: 0 }, { leaderId: 0 }, { leaderId: 0 }] },
      ])
    }
    expect(world.broker.listTopics()).toHaveLength(4)
  })

  it('creates one once, however many ask at the same time, and twice in one request', async () => {
    const world = new DataWorld()
    const asked = [{ name: 'orders' }, { name: 'orders' }]
    const responses = await Promise.all([ask(world, asked), ask(world, asked)])
    for (const { topics } of responses) {
      expect(topics).toMatchObject([{ errorCode: KAFKA_ERRORS.NONE, topicId: world.topicId() }])
    }
  })

  it('finds the one that somebody else made meanwhile, of another shape', async () => {
    const world = new DataWorld()
    const made = world.broker.createTopic('orders', { partitions: 5 })
    const { topics } = await ask(world, [{ name: 'orders' }])
    await made
    expect(topics[0]?.partitions).toHaveLength(5)
  })

  it('says so where client or server do not want them created', async () => {
    const unknown = [{ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION, topicId: NO_UUID, partitions: [] }]
    const world = new DataWorld()
    const asked = [{ name: 'orders' }]
    expect((await ask(world, asked, { allowAutoTopicCreation: false })).topics).toMatchObject(unknown)
    const strict = new DataWorld({ autoCreateTopics: false })
    expect((await ask(strict, asked)).topics).toMatchObject(unknown)
    expect([...world.broker.listTopics(), ...strict.broker.listTopics()]).toEqual([])
  })

  it('refuses names that no topic may have, whether it would create them or not', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('a.b')
    const code = async (name: string, allowAutoTopicCreation: boolean): Promise<unknown> =>
      (await ask(world, [{ name }], { allowAutoTopicCreation })).topics[0]?.errorCode
    for (const name of ['', '..', 'bad name', 'x'.repeat(300)]) {
      expect(await code(name, true)).toBe(KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION)
      expect(await code(name, false)).toBe(KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION)
    }
    expect(await code('a_b', true)).toBe(KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION)
  })

  it('creates nothing once the broker is closed', async () => {
    const world = new DataWorld()
    void world.kafka
    await world.broker.close()
    const { topics } = await ask(world, [{ name: 'orders' }])
    expect(topics).toMatchObject([{ errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER }])
  })
})
