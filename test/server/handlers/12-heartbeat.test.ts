/** Heartbeat at the wire. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { heartbeat } from '../../../src/wire/messages/12-heartbeat.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

describe('Heartbeat', () => {
  it.each([0, 1, 2, 3, 4])('in version %i', async (version) => {
    const world = new KafkaWorld()
    const client = new GroupClient(world)
    await client.joinAll()
    const { memberId } = client
    const beat = async (changes: object = {}): Promise<number> => {
      const body = { groupId: 'g', generationId: 1, memberId, groupInstanceId: null, ...changes }
      return (await world.send(heartbeat, version, body)).errorCode
    }
    expect(await beat()).toBe(KAFKA_ERRORS.NONE)
    expect(await beat({ generationId: 2 })).toBe(KAFKA_ERRORS.ILLEGAL_GENERATION)
    expect(await beat({ memberId: 'a stranger' })).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect(await beat({ groupId: 'nobody' })).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
    expect(await beat({ groupId: '' })).toBe(KAFKA_ERRORS.INVALID_GROUP_ID)
    if (version >= 3) expect(await beat({ groupInstanceId: 'x' })).toBe(KAFKA_ERRORS.UNKNOWN_MEMBER_ID)
  })

  it('says so while the others wait for it to join', async () => {
    const world = new KafkaWorld()
    const [a, b] = [new GroupClient(world), new GroupClient(world)]
    await a.joinAll()
    await a.sync([])
    const joining = b.joinAll()
    await world.settle()
    expect(await a.heartbeat()).toBe(KAFKA_ERRORS.REBALANCE_IN_PROGRESS)
    await Promise.all([joining, a.join()])
    expect(await a.heartbeat()).toBe(KAFKA_ERRORS.NONE)
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await new GroupClient(world, { sender: { node } }).heartbeat()).toBe(KAFKA_ERRORS.NOT_COORDINATOR)
  })
})
