/** What the protocol says of a consumer group that subscribers of this process are in, too. */
import { describe, expect, it } from 'vitest'
import { assignedTopics, subscribedTopics } from '../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { describeGroups } from '../../src/wire/messages/15-describe-groups.ts'
import { listGroups } from '../../src/wire/messages/16-list-groups.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { txnOffsetCommit } from '../../src/wire/messages/28-txn-offset-commit.ts'
import { deleteGroups } from '../../src/wire/messages/42-delete-groups.ts'
import { offsetDelete } from '../../src/wire/messages/47-offset-delete.ts'
import { consumerGroupDescribe } from '../../src/wire/messages/69-consumer-group-describe.ts'
import { GroupClient } from '../support/group-client.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { ModernClient } from '../support/modern-client.ts'

/** Two partitions: 0 is the subscriber's, 1 the member's. */
async function withBoth() {
  const world = new KafkaWorld()
  const topic = await world.broker.createTopic('orders', { partitions: 2 })
  const subscription = await topic.subscribe(() => {}, {
    id: 'here',
    group: 'g',
    assignment: 'range',
    from: 'earliest',
  })
  const member = new ModernClient(world)
  await member.beat()
  for (let i = 0; i < 6; i++) await topic.publish(i, { partition: i % 2 })
  await world.settle()
  const topicId = world.broker.describe('orders').id
  const commit = (partitionIndex: number, offset: number, changes: object = {}) => {
    const partitions = [{ partitionIndex, committedOffset: offset, committedMetadata: 'm' }]
    return member.commit(0, { topics: [{ name: 'orders', topicId, partitions }], ...changes })
  }
  const committed = async (partition: number) =>
    (await member.committed({ topics: [{ name: 'orders', topicId, partitionIndexes: [partition] }] })).offset
  return { world, topic, topicId, subscription, member, commit, committed }
}

describe('a group of both', () => {
  it('is given to members by heartbeats, at once where nothing is in flight', async () => {
    const { member } = await withBoth()
    expect(member.partitions).toEqual([1])
  })

  it('is one group, of type consumer', async () => {
    const { world } = await withBoth()
    const { groups } = await world.send(listGroups, 5, { statesFilter: [], typesFilter: [] })
    expect(groups).toEqual([
      { groupId: 'g', protocolType: 'consumer', groupState: 'Stable', groupType: 'consumer' },
    ])
  })

  it('is described with the members of both kinds, what they have and where they are', async () => {
    const { world, member, topicId } = await withBoth()
    const { groups } = await world.send(consumerGroupDescribe, 1, {
      groupIds: ['g'],
      includeAuthorizedOperations: false,
    })
    const place = (partition: number) => ({
      topicPartitions: [{ topicId, topicName: 'orders', partitions: [partition] }],
    })
    expect(groups[0]).toMatchObject({
      errorCode: 0,
      groupState: 'Stable',
      groupEpoch: 2,
      assignmentEpoch: 2,
      assignorName: 'range',
      members: [
        {
          memberId: member.memberId,
          memberEpoch: 2,
          clientId: 'test',
          clientHost: '/127.0.0.1',
          assignment: place(1),
          targetAssignment: place(1),
        },
        {
          memberId: 'here',
          memberEpoch: 2,
          clientId: 'g',
          clientHost: 'in-process',
          subscribedTopicNames: ['orders'],
          assignment: place(0),
          targetAssignment: place(0),
        },
      ],
    })
  })

  it('is described to tools that know classic groups alone', async () => {
    const { world } = await withBoth()
    const { groups } = await world.send(describeGroups, 5, { groups: ['g'] })
    const here = groups[0]?.members.find(({ memberId }) => memberId === 'here')
    expect(here).toMatchObject({ clientId: 'g', clientHost: 'in-process' })
    expect(subscribedTopics(here?.memberMetadata as Uint8Array)).toEqual(['orders'])
    expect(assignedTopics(here?.memberAssignment as Uint8Array)).toEqual([
      { topic: 'orders', partitions: [0] },
    ])
  })

  it('has one offset a partition: what a subscriber has settled, what a member has committed', async () => {
    const { commit, committed } = await withBoth()
    expect(await committed(0)).toBe(3)
    expect(await committed(1)).toBe(0)
    expect(await commit(1, 2)).toBe(KAFKA_ERRORS.NONE)
    expect(await committed(1)).toBe(2)
  })

  it.each([9, 10])('takes no commit of what a subscriber reads, in version %i', async (version) => {
    const { commit, committed, member } = await withBoth()
    expect(await commit(0, 1)).toBe(KAFKA_ERRORS.STALE_MEMBER_EPOCH)
    expect(await committed(0)).toBe(3)
    // Who is no member, or of another epoch, hears that first.
    expect(await commit(0, 1, { memberId: 'stranger' })).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect(await commit(1, 1, { generationIdOrMemberEpoch: 1 })).toBe(KAFKA_ERRORS.STALE_MEMBER_EPOCH)
    const nobody = { memberId: '', generationIdOrMemberEpoch: -1 }
    expect(await commit(1, 1, nobody)).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect(await member.commit(1, {}, version)).toBe(KAFKA_ERRORS.STALE_MEMBER_EPOCH)
  })

  it('takes offsets of a transaction where the member reads, and not where a subscriber does', async () => {
    const { world, member } = await withBoth()
    const transactionalId = 't'
    const producer = await world.send(initProducerId, 5, { transactionalId, transactionTimeoutMs: 60_000 })
    const { topics } = await world.send(txnOffsetCommit, 5, {
      transactionalId,
      groupId: 'g',
      producerId: producer.producerId,
      producerEpoch: producer.producerEpoch,
      generationId: member.memberEpoch,
      memberId: member.memberId,
      groupInstanceId: null,
      topics: [
        {
          name: 'orders',
          partitions: [0, 1].map((partitionIndex) => ({
            partitionIndex,
            committedOffset: 1,
            committedMetadata: '',
          })),
        },
      ],
    })
    expect(topics[0]?.partitions.map(({ errorCode }) => errorCode)).toEqual([
      KAFKA_ERRORS.ILLEGAL_GENERATION,
      KAFKA_ERRORS.NONE,
    ])
  })

  it('is not deleted while anybody is in it, nor offsets of what they read', async () => {
    const { world, member, subscription } = await withBoth()
    const deleted = async () =>
      (await world.send(deleteGroups, 2, { groupsNames: ['g'] })).results[0]?.errorCode
    const topics = [{ name: 'orders', partitions: [{ partitionIndex: 0 }] }]
    const offsets = await world.send(offsetDelete, 0, { groupId: 'g', topics })
    expect(offsets.topics[0]?.partitions[0]?.errorCode).toBe(KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC)
    expect(await deleted()).toBe(KAFKA_ERRORS.NON_EMPTY_GROUP)
    await member.beat({ memberEpoch: -1 })
    expect(await deleted()).toBe(KAFKA_ERRORS.NON_EMPTY_GROUP)
    await subscription.close()
    expect(await deleted()).toBe(KAFKA_ERRORS.NONE)
  })

  it('takes no members that assign among themselves', async () => {
    const { world, member } = await withBoth()
    const join = () => new GroupClient(world).joinAll()
    expect((await join()).errorCode).toBe(KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL)
    await member.beat({ memberEpoch: -1 })
    expect((await join()).errorCode).toBe(KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL)
  })

  it('tells a member that comes back after it was put out to join anew', async () => {
    const { world, member } = await withBoth()
    await world.clock.advance(45_000)
    expect((await member.beat()).errorCode).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect((await member.beat({ memberEpoch: 0 })).errorCode).toBe(KAFKA_ERRORS.NONE)
    expect(member.partitions).toEqual([1])
  })
})
