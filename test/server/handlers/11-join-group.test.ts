/** JoinGroup at the wire: what each version says and hears; what a group does is in test/coordinator. */
import { describe, expect, it } from 'vitest'
import { assignmentBytes } from '../../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { joinGroup } from '../../../src/wire/messages/11-join-group.ts'
import { GroupClient } from '../../support/group-client.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { watch } from '../../support/world.ts'

describe('a consumer', () => {
  it('joins, syncs, heartbeats, commits, and fetches what it committed', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('orders', { partitions: 2 })
    const client = new GroupClient(world)
    expect(await client.joinAll()).toMatchObject({
      errorCode: 0,
      generationId: 1,
      protocolType: 'consumer',
      protocolName: 'range',
      leader: client.memberId,
      members: [{ memberId: client.memberId, groupInstanceId: null }],
    })
    const synced = await client.sync([[client.memberId, [['orders', [0, 1]]]]])
    expect(synced).toMatchObject({ errorCode: 0, protocolType: 'consumer', protocolName: 'range' })
    expect(synced.assignment).toEqual(assignmentBytes([{ topic: 'orders', partitions: [0, 1] }]))
    expect(await client.heartbeat()).toBe(KAFKA_ERRORS.NONE)
    expect(await client.commit('orders', 1, 42, 'note')).toBe(KAFKA_ERRORS.NONE)
    expect(await client.committed('orders', 1)).toMatchObject({ committedOffset: 42, metadata: 'note' })
    expect(await client.leave()).toMatchObject({ errorCode: 0, members: [{ errorCode: 0 }] })
    expect(world.broker.describeGroup('g').members).toEqual([])
  })
})

describe('JoinGroup', () => {
  it.each([0, 1, 2, 3])('in version %i makes a member at once', async (version) => {
    const client = new GroupClient(new KafkaWorld(), { sender: { clientId: 'app' } })
    expect(await client.join({}, version)).toMatchObject({ errorCode: 0, generationId: 1 })
    expect(client.memberId).toMatch(/^app-[0-9a-f-]{36}$/)
  })

  it.each([4, 5, 6, 7, 8, 9])('in version %i first gives an id', async (version) => {
    const client = new GroupClient(new KafkaWorld(), { sender: { clientId: 'app' } })
    const first = await client.join({}, version)
    expect(first).toMatchObject({
      errorCode: KAFKA_ERRORS.MEMBER_ID_REQUIRED,
      generationId: -1,
      protocolName: version < 7 ? '' : null,
      members: [],
    })
    const { memberId } = client
    expect(memberId).toMatch(/^app-/)
    expect(await client.join({}, version)).toMatchObject({ errorCode: 0, memberId, generationId: 1 })
  })

  it.each([5, 9])('in version %i takes static members by their instance', async (version) => {
    const world = new KafkaWorld()
    const client = new GroupClient(world, { instanceId: 'one' })
    expect(await client.join({}, version)).toMatchObject({
      errorCode: 0,
      leader: client.memberId,
      members: [{ groupInstanceId: 'one' }],
    })
    await client.sync([[client.memberId, [['orders', [0]]]]])
    const back = new GroupClient(world, { instanceId: 'one' })
    const joined = await back.join({}, version)
    expect(joined).toMatchObject({ errorCode: 0, generationId: 1, skipAssignment: version === 9 })
    expect(joined.leader === back.memberId).toBe(version === 9)
    expect((await back.sync()).assignment).toEqual(assignmentBytes([{ topic: 'orders', partitions: [0] }]))
    expect(await client.heartbeat()).toBe(KAFKA_ERRORS.FENCED_INSTANCE_ID)
    expect((await client.join({}, version)).errorCode).toBe(KAFKA_ERRORS.FENCED_INSTANCE_ID)
  })

  it('takes the session timeout for the rebalance timeout in version 0', async () => {
    const world = new KafkaWorld()
    const [a, b] = [new GroupClient(world), new GroupClient(world)]
    await a.join({ sessionTimeoutMs: 30_000 }, 0)
    await a.sync([])
    const joining = watch(b.join({ sessionTimeoutMs: 6_000 }, 0))
    await world.clock.advance(29_999)
    expect(joining.state).toBe('waiting')
    await world.clock.advance(1)
    expect(joining.value).toMatchObject({ generationId: 2, leader: b.memberId })
  })

  it.each([
    ['a group without a name', { groupId: '' }, 'INVALID_GROUP_ID'],
    ['a session timeout that is too short', { sessionTimeoutMs: 5_999 }, 'INVALID_SESSION_TIMEOUT'],
    ['a session timeout that is too long', { sessionTimeoutMs: 1_800_001 }, 'INVALID_SESSION_TIMEOUT'],
    ['no protocol', { protocols: [] }, 'INCONSISTENT_GROUP_PROTOCOL'],
    ['a member that nobody knows', { memberId: 'a stranger' }, 'UNKNOWN_MEMBER_ID'],
  ] as const)('refuses %s', async (_, changes, error) => {
    const client = new GroupClient(new KafkaWorld())
    const { memberId = '' } = changes as { memberId?: string }
    expect(await client.join(changes)).toMatchObject({
      errorCode: KAFKA_ERRORS[error],
      memberId,
      generationId: -1,
      protocolName: null,
    })
  })

  it('is bounded as the server says', async () => {
    const world = new KafkaWorld({ groups: { minSessionTimeoutMs: 100, maxSize: 1 } })
    const client = new GroupClient(world)
    expect(await client.joinAll({ sessionTimeoutMs: 100 })).toMatchObject({ errorCode: 0 })
    expect(await new GroupClient(world).join()).toMatchObject({
      errorCode: KAFKA_ERRORS.GROUP_MAX_SIZE_REACHED,
    })
  })

  it('is refused where a group of this process has members', async () => {
    const world = new KafkaWorld()
    const topic = await world.broker.createTopic('orders')
    await topic.subscribe(() => {}, { group: 'g' })
    expect(await new GroupClient(world).join()).toMatchObject({
      errorCode: KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL,
    })
  })

  it('is the coordinator’s', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    const client = new GroupClient(world, { sender: { node } })
    client.memberId = 'me'
    const joined = await client.join({}, 5)
    expect(joined).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_COORDINATOR,
      memberId: 'me',
      protocolName: '',
    })
  })

  it('is not answered to a client that is gone, and its member is', async () => {
    const world = new KafkaWorld()
    const first = new GroupClient(world)
    await first.joinAll()
    await first.sync([])
    const gone = new AbortController()
    const sent = world.trySend(
      joinGroup,
      3,
      {
        groupId: 'g',
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 60_000,
        memberId: '',
        protocolType: 'consumer',
        protocols: [{ name: 'range', metadata: new Uint8Array(0) }],
      },
      { client: { signal: gone.signal } },
    )
    await world.settle()
    expect(world.broker.describeGroup('g').members).toHaveLength(2)
    gone.abort()
    expect(await sent).toBeNull()
    await world.settle()
    expect(world.broker.describeGroup('g').members).toHaveLength(1)
  })

  it('keeps what members say after the frame that it came in is used again', async () => {
    const world = new KafkaWorld()
    const metadata = Uint8Array.of(0, 0, 0, 0, 0, 0, 255, 255, 255, 255)
    const { groups } = world.broker.parts
    await new GroupClient(world).join({ protocols: [{ name: 'range', metadata }] }, 3)
    const [member] = groups.get('g')?.members ?? []
    expect(member?.metadataFor('range').buffer.byteLength).toBe(metadata.length)
  })
})
