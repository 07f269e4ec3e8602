/** ConsumerGroupHeartbeat at the wire. */
import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { type Beat, ModernClient } from '../../support/modern-client.ts'

async function withTopic(partitions = 4, nodes = 1) {
  const world = new KafkaWorld({ nodes })
  await world.broker.createTopic('orders', { partitions })
  const { id } = world.broker.describe('orders')
  return { world, id, client: () => new ModernClient(world) }
}

describe('ConsumerGroupHeartbeat', () => {
  it.each([0, 1])('joins, stays and leaves in version %i', async (version) => {
    const { id, client } = await withTopic()
    const a = client()
    expect(await a.beat({}, version)).toEqual({
      throttleTimeMs: 0,
      errorCode: KAFKA_ERRORS.NONE,
      errorMessage: null,
      memberId: a.memberId,
      memberEpoch: 1,
      heartbeatIntervalMs: 5_000,
      assignment: { topicPartitions: [{ topicId: id, partitions: [0, 1, 2, 3] }] },
    })
    expect(await a.beat({}, version)).toMatchObject({ errorCode: 0, memberEpoch: 1, assignment: null })
    expect(await a.beat({ memberEpoch: -1 }, version)).toMatchObject({
      errorCode: 0,
      memberId: a.memberId,
      memberEpoch: -1,
      assignment: null,
    })
    expect(await a.beat({}, version)).toMatchObject({
      errorCode: KAFKA_ERRORS.UNKNOWN_MEMBER_ID,
      memberId: null,
    })
  })

  it('gives an id in version 0; from version 1 on a client has its own', async () => {
    const { client } = await withTopic()
    const [a, b] = [client(), client()]
    a.memberId = ''
    b.memberId = ''
    expect((await a.beat({}, 0)).memberId).toMatch(/^[0-9a-f-]{36}$/)
    expect(await b.beat({}, 1)).toMatchObject({ errorCode: KAFKA_ERRORS.INVALID_REQUEST })
  })

  it('takes a partition from one member before another is given it', async () => {
    const { client } = await withTopic()
    const [a, b] = [client(), client()]
    await a.beat()
    expect(await b.beat()).toMatchObject({ memberEpoch: 2, assignment: { topicPartitions: [] } })
    const before = a.owned
    expect((await a.beat()).assignment?.topicPartitions[0]?.partitions).toHaveLength(2)
    expect(await a.beat({ topicPartitions: before })).toMatchObject({ memberEpoch: 1, assignment: null })
    expect(await b.beat()).toMatchObject({ assignment: null })
    expect(await a.beat()).toMatchObject({ memberEpoch: 2 })
    await b.beat()
    expect([...a.partitions, ...b.partitions].sort()).toEqual([0, 1, 2, 3])
  })

  it('says again what may be read, as often as a member says all that it is', async () => {
    const { id, client } = await withTopic(1)
    const a = client()
    await a.beat()
    const whole = { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'] }
    for (let i = 0; i < 3; i++) {
      const { assignment } = await a.beat(whole)
      expect(assignment).toEqual({ topicPartitions: [{ topicId: id, partitions: [0] }] })
    }
    // A join is sent again until it is answered: it is one member.
    expect(await a.beat({ memberEpoch: 0 })).toMatchObject({ errorCode: 0, memberEpoch: 1 })
    expect(await a.beat({ memberEpoch: 0 })).toMatchObject({ errorCode: 0, memberEpoch: 1 })
  })

  it('fences whoever has another epoch, who joins anew and owns nothing', async () => {
    const { client } = await withTopic()
    const a = client()
    await a.beat()
    expect(await a.beat({ memberEpoch: 7 })).toMatchObject({
      errorCode: KAFKA_ERRORS.FENCED_MEMBER_EPOCH,
      assignment: null,
    })
    expect(await a.beat({ memberEpoch: 0 })).toMatchObject({ errorCode: 0 })
    expect(a.partitions).toEqual([0, 1, 2, 3])
  })

  it('keeps the place of an instance that leaves with −2', async () => {
    const { client } = await withTopic()
    const [a, b, again] = [client(), client(), client()]
    const instanceId = 'one'
    await a.beat({ instanceId })
    for (const each of [b, a, a, b]) await each.beat()
    expect(await again.beat({ instanceId })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNRELEASED_INSTANCE_ID,
    })
    const held = a.partitions
    expect(await a.beat({ instanceId, memberEpoch: -2 })).toMatchObject({ errorCode: 0, memberEpoch: -2 })
    await b.beat()
    expect(b.partitions).toHaveLength(2)
    expect(await again.beat({ instanceId })).toMatchObject({ errorCode: 0, memberEpoch: 2 })
    expect(again.partitions).toEqual(held)
    expect(await a.beat({ instanceId })).toMatchObject({ errorCode: KAFKA_ERRORS.FENCED_INSTANCE_ID })
  })

  it('finds topics by a pattern, as a whole, also those that come later', async () => {
    const { world, client } = await withTopic(1)
    await world.broker.createTopic('orders.eu')
    await world.broker.createTopic('preorders')
    const a = client()
    const pattern = { subscribedTopicNames: null, subscribedTopicRegex: 'orders(\\..+)?' }
    expect((await a.beat(pattern)).assignment?.topicPartitions).toHaveLength(2)
    await world.broker.createTopic('orders.us')
    expect((await a.beat()).assignment?.topicPartitions).toHaveLength(3)
    expect((await a.beat({ subscribedTopicRegex: '', subscribedTopicNames: ['preorders'] })).errorCode).toBe(
      0,
    )
    await a.beat()
    expect(a.owned.map(({ topicId }) => topicId)).toEqual([world.broker.describe('preorders').id])
  })

  it('answers at once to a pattern that others would go back and forth in for minutes', async () => {
    const { world, client } = await withTopic(1)
    await world.broker.createTopic(`${'a'.repeat(200)}b`)
    const evil = { subscribedTopicNames: null, subscribedTopicRegex: '(a+)+c' }
    expect((await client().beat(evil)).assignment?.topicPartitions).toEqual([])
  })

  it.each(['(', 'a{2', '(?=a)', '\\p{L}'])('refuses %j, which is no pattern that it knows', async (regex) => {
    const { client } = await withTopic()
    const heard = await client().beat({ subscribedTopicRegex: regex })
    expect(heard).toMatchObject({ errorCode: KAFKA_ERRORS.INVALID_REGULAR_EXPRESSION })
    expect(heard.errorMessage).toContain(regex)
  })

  it('assigns by uniform and range, and by no other', async () => {
    const { world, client } = await withTopic()
    expect(await client().beat({ serverAssignor: 'sticky' })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNSUPPORTED_ASSIGNOR,
      errorMessage: 'there is no assignor "sticky"; there are uniform and range',
    })
    expect(world.broker.listGroups()).toEqual([])
    for (const serverAssignor of ['uniform', 'range'])
      expect(await client().beat({ serverAssignor })).toMatchObject({ errorCode: 0 })
  })

  it.each<[string, Partial<Beat>]>([
    ['without a group', { groupId: '' }],
    ['of an instance without a name', { instanceId: '' }],
    ['in a rack without a name', { rackId: '' }],
    ['of a member without an id', { memberId: '', memberEpoch: 1 }],
    ['of one that leaves, without an id', { memberId: '', memberEpoch: -1 }],
    ['that joins without a rebalance timeout', { rebalanceTimeoutMs: -1 }],
    [
      'that joins and owns something',
      { topicPartitions: [{ topicId: 'AAAAAAAAAAAAAAAAAAAAAQ', partitions: [0] }] },
    ],
    ['that joins and does not say what it owns', { topicPartitions: null }],
    ['that joins and subscribes to nothing at all', { subscribedTopicNames: null }],
    ['of no static member that leaves for now', { memberEpoch: -2 }],
    ['in an epoch that there is not', { memberEpoch: -3 }],
  ])('refuses a heartbeat %s', async (_, changes) => {
    const { world, client } = await withTopic()
    const heard = await client().beat(changes)
    expect(heard).toMatchObject({ errorCode: KAFKA_ERRORS.INVALID_REQUEST, assignment: null })
    expect(heard.errorMessage).not.toBeNull()
    expect(world.broker.listGroups()).toEqual([])
  })

  it('is full at some time', async () => {
    const { world, client } = await withTopic()
    world.kafka.parts.groups.configure({ maxSize: 1 })
    await client().beat()
    expect(await client().beat()).toMatchObject({ errorCode: KAFKA_ERRORS.GROUP_MAX_SIZE_REACHED })
  })

  it('is the coordinator’s', async () => {
    const { world } = await withTopic(1, 2)
    const { cluster } = world.kafka
    const node = 1 - cluster.nodes.indexOf(cluster.coordinatorOf('group', 'g'))
    const heard = await new ModernClient(world, { sender: { node } }).beat()
    expect(heard).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_COORDINATOR })
  })
})
