/** OffsetCommit at the wire: who may commit, for which partitions, and what older versions are told. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { offsetCommit } from '../../../src/wire/messages/08-offset-commit.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld, type Sender } from '../../support/kafka.ts'

async function withTopic() {
  const world = new KafkaWorld()
  const topic = await world.broker.createTopic<number>('orders', { partitions: 2 })
  return { world, topic }
}

interface Said {
  readonly group?: string
  readonly name?: string
  readonly topicId?: string
  readonly partition?: number
  readonly offset?: number
  readonly metadata?: string | null
  readonly generation?: number
  readonly memberId?: string
  readonly sender?: Sender
}

/** Commits one partition; its error code. */
async function commit(world: KafkaWorld, version: number, said: Said = {}): Promise<number> {
  const { group = 'g', name = 'orders', topicId = NO_UUID, partition = 0, offset = 7 } = said
  const { metadata = null, generation = -1, memberId = '', sender = {} } = said
  const body = {
    groupId: group,
    generationIdOrMemberEpoch: generation,
    memberId,
    topics: [
      {
        name,
        topicId,
        partitions: [{ partitionIndex: partition, committedOffset: offset, committedMetadata: metadata }],
      },
    ],
  }
  const { topics } = await world.send(offsetCommit, version, body, sender)
  expect(topics[0]?.partitions[0]?.partitionIndex).toBe(partition)
  return topics[0]?.partitions[0]?.errorCode as number
}

describe('OffsetCommit', () => {
  it('of an offset below 0 says that there is none, as KafkaJS does to have its default chosen', async () => {
    const { world } = await withTopic()
    await commit(world, 5, { offset: 7 })
    for (const offset of [-1, -2]) {
      expect(await commit(world, 5, { offset })).toBe(KAFKA_ERRORS.NONE)
      expect(await new GroupClient(world).committed('orders', 0)).toMatchObject({ committedOffset: -1 })
    }
    expect(await commit(world, 5, { offset: 3 })).toBe(KAFKA_ERRORS.NONE)
    expect(await new GroupClient(world).committed('orders', 0)).toMatchObject({ committedOffset: 3 })
  })

  it.each([2, 3, 4, 5, 6, 7, 8, 9])(
    'of nobody, in version %i, makes a group that was not there',
    async (version) => {
      const { world } = await withTopic()
      expect(await commit(world, version, { metadata: 'note' })).toBe(KAFKA_ERRORS.NONE)
      expect(await new GroupClient(world).committed('orders', 0)).toMatchObject({
        committedOffset: 7,
        metadata: 'note',
      })
      expect(world.broker.listGroups()).toEqual(['g'])
    },
  )

  it('says topics by id from version 10 on', async () => {
    const { world, topic } = await withTopic()
    const topicId = world.broker.describe('orders').id
    expect(await commit(world, 10, { topicId, name: '' })).toBe(KAFKA_ERRORS.NONE)
    expect(await commit(world, 10, { topicId: 'AAAAAAAAAAAAAAAAAAAABQ' })).toBe(KAFKA_ERRORS.UNKNOWN_TOPIC_ID)
    expect(await commit(world, 10, { topicId, partition: 2 })).toBe(KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION)
    expect(topic.name).toBe('orders')
  })

  it('keeps no metadata as none at all, which reads as empty text', async () => {
    const { world } = await withTopic()
    await commit(world, 8, { metadata: null })
    expect((await new GroupClient(world).committed('orders', 0)).metadata).toBe('')
  })

  it.each([
    ['a topic that is not there', { name: 'others' }, 'UNKNOWN_TOPIC_OR_PARTITION'],
    ['a partition that is not there', { partition: 2 }, 'UNKNOWN_TOPIC_OR_PARTITION'],
    ['a partition below 0', { partition: -1 }, 'UNKNOWN_TOPIC_OR_PARTITION'],
    ['metadata that is too large', { metadata: 'x'.repeat(4_097) }, 'OFFSET_METADATA_TOO_LARGE'],
    ['an offset that no number holds', { offset: 2 ** 60 }, 'OFFSET_OUT_OF_RANGE'],
  ] as const)('refuses %s, and makes no group for it', async (_, said, error) => {
    const { world } = await withTopic()
    expect(await commit(world, 8, said)).toBe(KAFKA_ERRORS[error])
    expect(world.broker.listGroups()).toEqual([])
  })

  it('takes metadata of 4,096 characters', async () => {
    const { world } = await withTopic()
    expect(await commit(world, 8, { metadata: 'x'.repeat(4_096) })).toBe(KAFKA_ERRORS.NONE)
  })

  it('answers each partition for itself, in their order', async () => {
    const { world } = await withTopic()
    const partitions = [1, 5, 0].map((partitionIndex) => ({
      partitionIndex,
      committedOffset: 3,
      committedMetadata: '',
    }))
    const body = {
      groupId: 'g',
      generationIdOrMemberEpoch: -1,
      memberId: '',
      topics: [
        { name: 'others', partitions: partitions.slice(0, 1) },
        { name: 'orders', partitions },
      ],
    }
    const { topics } = await world.send(offsetCommit, 8, body)
    const unknown = KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
    expect(topics.map(({ partitions: all }) => all.map(({ errorCode }) => errorCode))).toEqual([
      [unknown],
      [0, unknown, 0],
    ])
  })

  it('of a member is one of its generation', async () => {
    const { world } = await withTopic()
    const client = new GroupClient(world)
    await client.joinAll()
    expect(await client.commit('orders', 0, 1)).toBe(KAFKA_ERRORS.REBALANCE_IN_PROGRESS)
    await client.sync([[client.memberId, [['orders', [0, 1]]]]])
    expect(await client.commit('orders', 0, 1)).toBe(KAFKA_ERRORS.NONE)
    client.generation = 2
    expect(await client.commit('orders', 0, 2)).toBe(KAFKA_ERRORS.ILLEGAL_GENERATION)
    expect(await commit(world, 8)).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect((await client.committed('orders', 0)).committedOffset).toBe(1)
  })

  it('of a generation of a group that is not there is told as versions know it', async () => {
    const { world } = await withTopic()
    const said = { generation: 3, memberId: 'a' }
    expect(await commit(world, 8, said)).toBe(KAFKA_ERRORS.ILLEGAL_GENERATION)
    expect(await commit(world, 9, said)).toBe(KAFKA_ERRORS.GROUP_ID_NOT_FOUND)
  })

  it('is refused while a group of this process has members; without them it moves the group', async () => {
    const { world, topic } = await withTopic()
    for (let i = 0; i < 9; i++) await topic.publish(i, { partition: 0 })
    const member = await topic.subscribe(() => {}, { group: 'g' })
    expect(await commit(world, 8)).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    await member.close()
    expect(await commit(world, 8)).toBe(KAFKA_ERRORS.NONE)
    const seen: unknown[] = []
    await topic.subscribe(({ value }) => void seen.push(value), { group: 'g' })
    await world.settle()
    expect(seen).toEqual([7, 8])
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    await world.broker.createTopic('orders')
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await commit(world, 8, { sender: { node } })).toBe(KAFKA_ERRORS.NOT_COORDINATOR)
    expect(await commit(world, 8, { sender: { node: 1 - node } })).toBe(KAFKA_ERRORS.NONE)
  })

  it('may be tried again once the broker is back', async () => {
    const { world } = await withTopic()
    await world.broker.close()
    expect(await commit(world, 8)).toBe(KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE)
  })
})
