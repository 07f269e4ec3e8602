/** DescribeGroups at the wire: groups of both sides, in words that tools can read. */
import { describe, expect, it } from 'vitest'
import { assignmentBytes, subscribedTopics, subscriptionBytes } from '../../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { describeGroups } from '../../../src/wire/messages/15-describe-groups.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

async function described(world: KafkaWorld, group: string, version = 5, node = 0) {
  const { groups } = await world.send(describeGroups, version, { groups: [group] }, { node })
  return groups[0]
}

describe('DescribeGroups', () => {
  it.each([0, 1, 2, 3, 4, 5, 6])('of a stable group, in version %i', async (version) => {
    const world = new KafkaWorld()
    const sender = { clientId: 'app', client: { host: '10.0.0.7' } }
    const client = new GroupClient(world, { instanceId: 'one', sender })
    await client.joinAll()
    await client.sync([[client.memberId, [['orders', [0, 1]]]]])
    expect(await described(world, 'g', version)).toMatchObject({
      errorCode: 0,
      groupId: 'g',
      groupState: 'Stable',
      protocolType: 'consumer',
      protocolData: 'range',
      members: [
        {
          memberId: client.memberId,
          groupInstanceId: version < 4 ? null : 'one',
          clientId: 'app',
          clientHost: '/10.0.0.7',
          memberMetadata: subscriptionBytes(['orders']),
          memberAssignment: assignmentBytes([{ topic: 'orders', partitions: [0, 1] }]),
        },
      ],
    })
  })

  it('tells of a member without partitions an assignment of none', async () => {
    const world = new KafkaWorld()
    const client = new GroupClient(world)
    await client.joinAll()
    await client.sync([])
    expect((await described(world, 'g'))?.members[0]?.memberAssignment).toEqual(assignmentBytes([]))
  })

  it('tells no subscriptions and assignments while they may change', async () => {
    const world = new KafkaWorld()
    const client = new GroupClient(world)
    await client.joinAll()
    expect(await described(world, 'g')).toMatchObject({
      groupState: 'CompletingRebalance',
      protocolType: 'consumer',
      protocolData: '',
      members: [{ memberId: client.memberId, memberMetadata: new Uint8Array(0) }],
    })
    await client.leave()
    expect(await described(world, 'g')).toMatchObject({
      groupState: 'Empty',
      protocolType: 'consumer',
      members: [],
    })
  })

  it('says of a group that only ever committed that it is empty, and speaks nothing', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('orders')
    await new GroupClient(world).commit('orders', 0, 1)
    expect(await described(world, 'g')).toMatchObject({ groupState: 'Empty', protocolType: '', errorCode: 0 })
  })

  it('of a group that is not there: Dead, and from version 6 on an error', async () => {
    const world = new KafkaWorld()
    expect(await described(world, 'nobody', 5)).toMatchObject({ errorCode: 0, groupState: 'Dead' })
    expect(await described(world, 'nobody', 6)).toMatchObject({
      errorCode: KAFKA_ERRORS.GROUP_ID_NOT_FOUND,
      errorMessage: 'there is no group "nobody"',
      groupState: 'Dead',
    })
  })

  it('tells authorized operations where it is asked for them', async () => {
    const world = new KafkaWorld()
    await new GroupClient(world).joinAll()
    const ask = async (includeAuthorizedOperations: boolean) => {
      const body = { groups: ['g'], includeAuthorizedOperations }
      return (await world.send(describeGroups, 5, body)).groups[0]?.authorizedOperations
    }
    expect(await ask(false)).toBe(-(2 ** 31))
    // Read, delete, describe, and describe and alter configurations.
    expect(await ask(true)).toBe((1 << 3) | (1 << 6) | (1 << 8) | (1 << 10) | (1 << 11))
  })

  it('shows a consumer group of this process as one: who owns which partitions', async () => {
    const world = new KafkaWorld()
    const topic = await world.broker.createTopic('orders', { partitions: 4 })
    for (const id of ['a', 'b']) await topic.subscribe(() => {}, { id, group: 'mine', assignment: 'range' })
    const group = await described(world, 'mine')
    expect(group).toMatchObject({ groupState: 'Stable', protocolType: 'consumer', protocolData: 'range' })
    expect(group?.members.map(({ memberId, clientId }) => [memberId, clientId])).toEqual([
      ['a', 'mine'],
      ['b', 'mine'],
    ])
    expect(group?.members.map(({ memberAssignment }) => memberAssignment)).toEqual([
      assignmentBytes([{ topic: 'orders', partitions: [0, 1] }]),
      assignmentBytes([{ topic: 'orders', partitions: [2, 3] }]),
    ])
    expect(subscribedTopics(group?.members[0]?.memberMetadata as Uint8Array)).toEqual(['orders'])
  })

  it('shows of a shared group of this process that each member reads all partitions of its topics', async () => {
    const world = new KafkaWorld()
    const topic = await world.broker.createTopic('orders', { partitions: 2 })
    await world.broker.createTopic('others')
    const member = await topic.subscribe(() => {}, { id: 'a', group: 'mine' })
    await world.broker.subscribe('others', () => {}, { id: 'b', group: 'mine' })
    const group = await described(world, 'mine')
    expect(group).toMatchObject({ groupState: 'Stable', protocolType: 'share', protocolData: 'shared' })
    expect(group?.members.map(({ memberAssignment }) => memberAssignment)).toEqual([
      assignmentBytes([{ topic: 'orders', partitions: [0, 1] }]),
      assignmentBytes([{ topic: 'others', partitions: [0] }]),
    ])
    await member.close()
    await world.broker.unsubscribe('others', 'b')
    expect(await described(world, 'mine')).toMatchObject({ groupState: 'Empty', members: [] })
  })

  it('is the coordinator’s, group by group', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const { groups } = await world.send(describeGroups, 5, { groups: names })
    const { cluster } = world.kafka
    const expected = names.map((name) =>
      cluster.coordinatorOf('group', name) === cluster.nodes[0] ? 0 : KAFKA_ERRORS.NOT_COORDINATOR,
    )
    expect(groups.map(({ errorCode }) => errorCode)).toEqual(expected)
    expect(new Set(expected).size).toBe(2)
  })
})
