/** DeleteGroups at the wire: groups of both sides, without members. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { deleteGroups } from '../../../src/wire/messages/42-delete-groups.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

describe('DeleteGroups', () => {
  it.each([0, 1, 2])('in version %i: those without members, with what they committed', async (version) => {
    const world = new KafkaWorld()
    const topic = await world.broker.createTopic('orders')
    const client = new GroupClient(world)
    await client.joinAll()
    await client.sync([])
    await client.commit('orders', 0, 7)
    await topic.subscribe(() => {}, { group: 'busy' })
    await (await topic.subscribe(() => {}, { group: 'idle' })).close()
    const remove = async (...groupsNames: string[]) => {
      const { results } = await world.send(deleteGroups, version, { groupsNames })
      return results.map(({ groupId, errorCode }) => [groupId, errorCode])
    }
    expect(await remove('g', 'nobody', 'busy', 'idle')).toEqual([
      ['g', KAFKA_ERRORS.NON_EMPTY_GROUP],
      ['nobody', KAFKA_ERRORS.GROUP_ID_NOT_FOUND],
      ['busy', KAFKA_ERRORS.NON_EMPTY_GROUP],
      ['idle', KAFKA_ERRORS.NONE],
    ])
    await client.leave()
    expect(await remove('g')).toEqual([['g', KAFKA_ERRORS.NONE]])
    expect(world.broker.listGroups()).toEqual(['busy'])
    expect((await client.committed('orders', 0)).committedOffset).toBe(-1)
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    const { results } = await world.send(deleteGroups, 2, { groupsNames: ['g'] }, { node })
    expect(results).toEqual([{ groupId: 'g', errorCode: KAFKA_ERRORS.NOT_COORDINATOR }])
  })
})
