/** ListGroups at the wire: groups of both sides, by state and by type. */
import { describe, expect, it } from 'vitest'
import { listGroups } from '../../../src/wire/messages/16-list-groups.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

/** A stable classic group, one that only committed, a consumer group and a share group of this process. */
async function withGroups(nodes = 1) {
  const world = new KafkaWorld({ nodes })
  const topic = await world.broker.createTopic('orders')
  const { cluster } = world.kafka
  const client = (group: string): GroupClient => {
    const node = cluster.nodes.indexOf(cluster.coordinatorOf('group', group))
    return new GroupClient(world, { group, sender: { node } })
  }
  const joining = client('joined')
  await joining.joinAll()
  await joining.sync([])
  await client('committed').commit('orders', 0, 1)
  await topic.subscribe(() => {}, { group: 'consumer', assignment: 'sticky' })
  await (await topic.subscribe(() => {}, { group: 'share' })).close()
  await topic.subscribe(() => {}, { id: 'no group' })
  return world
}

const ALL = [
  { groupId: 'joined', protocolType: 'consumer', groupState: 'Stable', groupType: 'classic' },
  { groupId: 'committed', protocolType: '', groupState: 'Empty', groupType: 'classic' },
  { groupId: 'consumer', protocolType: 'consumer', groupState: 'Stable', groupType: 'consumer' },
  { groupId: 'share', protocolType: 'share', groupState: 'Empty', groupType: 'share' },
]

describe('ListGroups', () => {
  it.each([0, 1, 2, 3, 4, 5])('in version %i', async (version) => {
    const world = await withGroups()
    const { errorCode, groups } = await world.send(listGroups, version, { statesFilter: [], typesFilter: [] })
    expect(errorCode).toBe(0)
    expect(groups).toEqual(
      ALL.map(({ groupState, groupType, ...rest }) => ({
        ...rest,
        groupState: version < 4 ? '' : groupState,
        groupType: version < 5 ? '' : groupType,
      })),
    )
  })

  it.each([
    [['Stable'], [], ['joined', 'consumer']],
    [['empty'], [], ['committed', 'share']],
    [['Dead', 'EMPTY'], ['classic'], ['committed']],
    [[], ['Classic'], ['joined', 'committed']],
    [[], ['consumer', 'share'], ['consumer', 'share']],
    [[], ['no type'], []],
  ])('of states %j and types %j', async (statesFilter, typesFilter, expected) => {
    const world = await withGroups()
    const { groups } = await world.send(listGroups, 5, { statesFilter, typesFilter })
    expect(groups.map(({ groupId }) => groupId)).toEqual(expected)
  })

  it('lists those that the node coordinates: each of them once, over all nodes', async () => {
    const world = await withGroups(3)
    const lists = await Promise.all(
      [0, 1, 2].map((node) => world.send(listGroups, 5, { statesFilter: [], typesFilter: [] }, { node })),
    )
    const names = lists.flatMap(({ groups }) => groups.map(({ groupId }) => groupId))
    expect(names.sort()).toEqual(ALL.map(({ groupId }) => groupId).sort())
  })
})
