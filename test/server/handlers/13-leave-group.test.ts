/** LeaveGroup at the wire: one member, or several, each with an answer. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { leaveGroup } from '../../../src/wire/messages/13-leave-group.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

describe('LeaveGroup', () => {
  it.each([0, 1, 2])('of one member, in version %i', async (version) => {
    const world = new KafkaWorld()
    const client = new GroupClient(world)
    await client.joinAll()
    const leave = (groupId: string) =>
      world.send(leaveGroup, version, { groupId, memberId: client.memberId, members: [] })
    expect(await leave('')).toMatchObject({ errorCode: KAFKA_ERRORS.INVALID_GROUP_ID })
    expect(await leave('g')).toMatchObject({ errorCode: KAFKA_ERRORS.NONE })
    expect(await leave('g')).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_MEMBER_ID })
    expect(await leave('nobody')).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_MEMBER_ID })
  })

  it.each([3, 4, 5])('of several members, in version %i', async (version) => {
    const world = new KafkaWorld({ groups: { initialRebalanceDelayMs: 100 } })
    const clients = [new GroupClient(world), new GroupClient(world, { instanceId: 'one' })]
    const joining = clients.map((each) => each.joinAll())
    await world.clock.advance(100)
    await Promise.all(joining)
    const members = [
      { memberId: clients[0]?.memberId as string, groupInstanceId: null },
      { memberId: '', groupInstanceId: 'one' },
      { memberId: 'a stranger', groupInstanceId: null },
    ]
    const { errorCode, members: left } = await world.send(leaveGroup, version, { groupId: 'g', members })
    expect(errorCode).toBe(KAFKA_ERRORS.NONE)
    const unknown = KAFKA_ERRORS.UNKNOWN_MEMBER_ID
    expect(left).toEqual(members.map((each, i) => ({ ...each, errorCode: i === 2 ? unknown : 0 })))
    expect(world.broker.describeGroup('g').members).toEqual([])
  })

  it('of a group that is not there is an error for each member; without a name, for all', async () => {
    const world = new KafkaWorld()
    const members = [{ memberId: 'a', groupInstanceId: null }]
    expect(await world.send(leaveGroup, 5, { groupId: 'nobody', members })).toMatchObject({
      errorCode: 0,
      members: [{ memberId: 'a', errorCode: KAFKA_ERRORS.UNKNOWN_MEMBER_ID }],
    })
    expect(await world.send(leaveGroup, 5, { groupId: '', members })).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_GROUP_ID,
    })
    expect(await world.send(leaveGroup, 5, { groupId: 'nobody', members: [] })).toMatchObject({
      errorCode: 0,
      members: [],
    })
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await new GroupClient(world, { sender: { node } }).leave()).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_COORDINATOR,
      members: [],
    })
  })
})
