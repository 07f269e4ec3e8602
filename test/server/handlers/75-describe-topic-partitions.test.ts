import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { describeTopicPartitions } from '../../../src/wire/messages/75-describe-topic-partitions.ts'
import { KafkaWorld } from '../../support/kafka.ts'

interface Asked {
  readonly names?: readonly string[]
  readonly limit?: number
  readonly cursor?: { readonly topicName: string; readonly partitionIndex: number } | null
}

async function describePage({ send }: KafkaWorld, { names = [], limit = 2_000, cursor = null }: Asked = {}) {
  const topics = names.map((name) => ({ name }))
  const request = { topics, responsePartitionLimit: limit, cursor }
  const response = await send(describeTopicPartitions, 0, request)
  const told = response.topics.map(({ name, errorCode, partitions }) => {
    const indexes = partitions.map(({ partitionIndex }) => partitionIndex)
    return errorCode === 0 ? `${name}: ${indexes}` : `${name} ${kafkaErrorName(errorCode)}`
  })
  return { told, cursor: response.nextCursor, topics: response.topics }
}

/** All pages, one after the other. */
async function pagesOf(world: KafkaWorld, limit: number): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: Asked['cursor'] = null; ; ) {
    const page = await describePage(world, { limit, cursor })
    pages.push(page.told)
    cursor = page.cursor
    if (cursor === null) return pages
  }
}

async function worldWithTopics(nodes = 1): Promise<KafkaWorld> {
  const world = new KafkaWorld({ nodes })
  await world.broker.createTopic('c', { partitions: 2 })
  await world.broker.createTopic('a', { partitions: 3 })
  await world.broker.createTopic('b')
  return world
}

describe('DescribeTopicPartitions', () => {
  it('answers topics in the order of their names, with leaders, replicas and ids', async () => {
    const world = await worldWithTopics(2)
    const { told, cursor, topics } = await describePage(world)
    expect(told).toEqual(['a: 0,1,2', 'b: 0', 'c: 0,1'])
    expect(cursor).toBeNull()
    const { id } = world.broker.describe('a')
    const leader = world.kafka.cluster.leaderOf(id, 1).id
    expect(topics[0]).toMatchObject({ topicId: id, isInternal: false })
    expect(topics[0]?.partitions[1]).toMatchObject({
      errorCode: 0,
      leaderId: leader,
      leaderEpoch: 0,
      replicaNodes: [leader],
      isrNodes: [leader],
      eligibleLeaderReplicas: [],
      lastKnownElr: [],
      offlineReplicas: [],
    })
  })

  it('answers a page at a time: the cursor names what follows', async () => {
    const world = await worldWithTopics()
    expect(await pagesOf(world, 1)).toEqual([['a: 0'], ['a: 1'], ['a: 2'], ['b: 0'], ['c: 0'], ['c: 1']])
    expect(await pagesOf(world, 3)).toEqual([['a: 0,1,2'], ['b: 0', 'c: 0,1']])
    expect(await pagesOf(world, 4)).toEqual([['a: 0,1,2', 'b: 0'], ['c: 0,1']])
    expect(await pagesOf(world, 5)).toEqual([['a: 0,1,2', 'b: 0', 'c: 0'], ['c: 1']])
    expect(await pagesOf(world, 6)).toEqual([['a: 0,1,2', 'b: 0', 'c: 0,1']])
  })

  it('takes any limit for at least one partition', async () => {
    const { told, cursor } = await describePage(await worldWithTopics(), { limit: -5 })
    expect(told).toEqual(['a: 0'])
    expect(cursor).toEqual({ topicName: 'a', partitionIndex: 1 })
  })

  it('goes on behind a topic that was deleted, and behind partitions that there are not', async () => {
    const world = await worldWithTopics()
    await world.broker.deleteTopic('b')
    expect((await describePage(world, { cursor: { topicName: 'b', partitionIndex: 0 } })).told).toEqual([
      'c: 0,1',
    ])
    const { told } = await describePage(world, { cursor: { topicName: 'a', partitionIndex: 9 } })
    expect(told).toEqual(['a: ', 'c: 0,1'])
  })

  it('answers those that are asked for, each once, with an error for those that there are not', async () => {
    const world = await worldWithTopics()
    const { told, topics } = await describePage(world, { names: ['c', 'missing', 'a b', 'c'] })
    expect(told).toEqual(['a b INVALID_TOPIC_EXCEPTION', 'c: 0,1', 'missing UNKNOWN_TOPIC_OR_PARTITION'])
    // READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
    const bits = topics[1]?.topicAuthorizedOperations ?? 0
    expect(Array.from({ length: 32 }, (_, i) => i).filter((i) => bits & (1 << i))).toEqual([
      3, 4, 5, 6, 7, 8, 10, 11,
    ])
  })

  it.each([
    ['of another topic than is asked for', { topicName: 'b', partitionIndex: 0 }],
    ['of no partition', { topicName: 'c', partitionIndex: -1 }],
  ])('refuses a cursor %s', async (_, cursor) => {
    const { told } = await describePage(await worldWithTopics(), { names: ['c'], cursor })
    expect(told).toEqual(['c INVALID_REQUEST'])
  })

  it("marks what is Kafka's own by its name", async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('__consumer_offsets')
    const { topics } = await describePage(world)
    expect(topics[0]?.isInternal).toBe(true)
  })
})
