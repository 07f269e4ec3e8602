/** SyncGroup at the wire: everybody's part, one that can be read even where it is nothing. */
import { describe, expect, it } from 'vitest'
import { assignmentBytes } from '../../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { syncGroup } from '../../../src/wire/messages/14-sync-group.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'

/** Two members of one generation, the first one leads. */
async function pair() {
  const world = new KafkaWorld({ groups: { initialRebalanceDelayMs: 100 } })
  const clients = [new GroupClient(world), new GroupClient(world)] as const
  for (const each of clients) await each.join()
  const joining = clients.map((each) => each.join())
  await world.clock.advance(100)
  await Promise.all(joining)
  return { world, clients }
}

describe('SyncGroup', () => {
  it.each([0, 1, 2, 3, 4, 5])('in version %i', async (version) => {
    const { clients } = await pair()
    const [a, b] = clients
    const waiting = b.sync([], version)
    const mine = await a.sync(
      [
        [a.memberId, [['orders', [0]]]],
        [b.memberId, [['orders', [1]]]],
      ],
      version,
    )
    expect(mine.assignment).toEqual(assignmentBytes([{ topic: 'orders', partitions: [0] }]))
    expect(await waiting).toEqual({
      throttleTimeMs: 0,
      errorCode: 0,
      protocolType: version < 5 ? null : 'consumer',
      protocolName: version < 5 ? null : 'range',
      assignment: assignmentBytes([{ topic: 'orders', partitions: [1] }]),
    })
  })

  it('gives a consumer without partitions an assignment of none, which it can read', async () => {
    const { clients } = await pair()
    const [a, b] = clients
    const waiting = b.sync()
    await a.sync([[a.memberId, [['orders', [0, 1]]]]])
    // Version 0, no topics, no user data.
    expect([...(await waiting).assignment]).toEqual([0, 0, 0, 0, 0, 0, 255, 255, 255, 255])
  })

  it('passes on what others than consumers assign as it is: nothing stays nothing', async () => {
    const world = new KafkaWorld()
    const client = new GroupClient(world)
    await client.join({ protocolType: 'connect' }, 3)
    const body = { groupId: 'g', generationId: 1, memberId: client.memberId, assignments: [] }
    expect((await world.send(syncGroup, 4, body)).assignment).toHaveLength(0)
  })

  it('from version 5 on says of which protocol it is', async () => {
    const { world, clients } = await pair()
    const [{ memberId }] = clients
    const said = { groupId: 'g', generationId: 1, memberId, assignments: [] }
    for (const protocol of [
      {},
      { protocolType: 'consumer' },
      { protocolType: 'connect', protocolName: 'range' },
      { protocolType: 'consumer', protocolName: 'sticky' },
    ]) {
      expect(await world.send(syncGroup, 5, { ...said, ...protocol })).toMatchObject({
        errorCode: KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL,
        protocolType: null,
        protocolName: null,
      })
    }
    expect(await world.send(syncGroup, 4, said)).toMatchObject({ errorCode: 0 })
  })

  it.each([
    ['of another generation', { generationId: 9 }, 'ILLEGAL_GENERATION'],
    ['of a stranger', { memberId: 'a stranger' }, 'UNKNOWN_MEMBER_ID'],
    ['of a group that is not there', { groupId: 'nobody' }, 'UNKNOWN_MEMBER_ID'],
    ['of a group without a name', { groupId: '' }, 'INVALID_GROUP_ID'],
  ] as const)('is refused %s, without an assignment', async (_, changes, error) => {
    const { world, clients } = await pair()
    const said = { groupId: 'g', generationId: 1, memberId: clients[0].memberId, assignments: [] }
    const refused = await world.send(syncGroup, 4, { ...said, ...changes })
    expect(refused).toMatchObject({ errorCode: KAFKA_ERRORS[error] })
    expect(refused.assignment).toHaveLength(0)
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    expect(await new GroupClient(world, { sender: { node } }).sync()).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_COORDINATOR,
    })
  })

  it('is not answered to a client that is gone', async () => {
    const { world, clients } = await pair()
    const { memberId } = clients[1]
    const gone = new AbortController()
    const sent = world.trySend(
      syncGroup,
      4,
      { groupId: 'g', generationId: 1, memberId, assignments: [] },
      { client: { signal: gone.signal } },
    )
    await world.settle()
    gone.abort()
    expect(await sent).toBeNull()
  })
})
