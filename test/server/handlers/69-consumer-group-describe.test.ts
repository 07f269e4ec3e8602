/** ConsumerGroupDescribe at the wire: of both sides. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { consumerGroupDescribe } from '../../../src/wire/messages/69-consumer-group-describe.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { ModernClient } from '../../support/modern-client.ts'

async function withTopic(nodes = 1) {
  const world = new KafkaWorld({ nodes })
  const topic = await world.broker.createTopic('orders', { partitions: 2 })
  const described = async (version: number, node = 0, includeAuthorizedOperations = false) => {
    const body = { groupIds: ['g'], includeAuthorizedOperations }
    const { groups } = await world.send(consumerGroupDescribe, version, body, { node })
    return groups[0] as (typeof groups)[number]
  }
  return { world, topic, described }
}

describe('ConsumerGroupDescribe', () => {
  it.each([0, 1])('says what members have and shall have, in version %i', async (version) => {
    const { world, topic, described } = await withTopic()
    const [a, b] = [new ModernClient(world), new ModernClient(world)]
    await a.beat({ instanceId: 'one', rackId: 'here', subscribedTopicRegex: 'or.*' })
    await b.beat({ serverAssignor: 'range' })
    const placeOf = (partitions: number[]) => ({
      topicPartitions: [{ topicId: topic.describe().id, topicName: 'orders', partitions }],
    })
    const group = await described(version)
    const [one, other] = group.members
    expect(group).toMatchObject({
      errorCode: 0,
      errorMessage: null,
      groupId: 'g',
      groupState: 'Reconciling',
      groupEpoch: 2,
      assignmentEpoch: 2,
      assignorName: 'range',
    })
    expect(one).toMatchObject({
      memberId: a.memberId,
      instanceId: 'one',
      rackId: 'here',
      memberEpoch: 1,
      clientId: 'test',
      clientHost: '/127.0.0.1',
      subscribedTopicNames: ['orders'],
      subscribedTopicRegex: 'or.*',
      assignment: placeOf([0, 1]),
      memberType: version === 0 ? -1 : 1,
    })
    expect(other).toMatchObject({ memberId: b.memberId, subscribedTopicRegex: null, memberEpoch: 2 })
    expect(other?.assignment).toEqual({ topicPartitions: [] })
    const shall = [one, other].flatMap((each) => each?.targetAssignment.topicPartitions ?? [])
    expect(shall.flatMap(({ partitions }) => partitions).sort()).toEqual([0, 1])
  })

  it('leaves out a topic that is gone', async () => {
    const { world, described } = await withTopic()
    await new ModernClient(world).beat()
    await world.broker.deleteTopic('orders')
    expect((await described(1)).members[0]?.assignment).toEqual({ topicPartitions: [] })
  })

  it('describes a group without members, and one of this process', async () => {
    const { world, topic, described } = await withTopic()
    const a = new ModernClient(world)
    await a.beat()
    await a.beat({ memberEpoch: -1 })
    expect(await described(1)).toMatchObject({ groupState: 'Empty', groupEpoch: 2, members: [] })
    await topic.subscribe(() => {}, { group: 'g', assignment: 'range', id: 'mine' })
    const group = await described(1)
    expect(group).toMatchObject({ groupState: 'Stable', assignorName: 'range' })
    expect(group.assignmentEpoch).toBe(group.groupEpoch)
    expect(group.members).toMatchObject([
      {
        memberId: 'mine',
        memberEpoch: group.groupEpoch,
        clientHost: 'in-process',
        subscribedTopicNames: ['orders'],
        assignment: { topicPartitions: [{ topicName: 'orders', partitions: [0, 1] }] },
        targetAssignment: { topicPartitions: [{ topicName: 'orders', partitions: [0, 1] }] },
      },
    ])
  })

  it('knows no other kinds of groups', async () => {
    const { world, topic, described } = await withTopic()
    const missing = { errorCode: KAFKA_ERRORS.GROUP_ID_NOT_FOUND, members: [] }
    expect(await described(1)).toMatchObject(missing)
    const shared = await topic.subscribe(() => {}, { group: 'g' })
    expect(await described(1)).toMatchObject(missing)
    await shared.close()
    await new GroupClient(world).joinAll()
    const described_ = await described(1)
    expect(described_).toMatchObject(missing)
    expect(described_.errorMessage).toBe('there is no consumer group "g"')
  })

  it('tells which operations are allowed, where that is asked', async () => {
    const { world, described } = await withTopic()
    await new ModernClient(world).beat()
    expect((await described(1)).authorizedOperations).toBe(-(2 ** 31))
    expect((await described(1, 0, true)).authorizedOperations).toBeGreaterThan(0)
  })

  it('is the coordinator’s', async () => {
    const { world, described } = await withTopic(2)
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await described(1, node)).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_COORDINATOR })
  })
})
