/** A cluster on a bad day: leaders and coordinators that move, errors, lost connections, and an older Kafka. */
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { KafkaCluster } from '../../src/client/cluster.ts'
import { Fetcher } from '../../src/client/fetcher.ts'
import { GroupMember, type Membership } from '../../src/client/group-member.ts'
import { commitOffsets, committedOffsets } from '../../src/client/group-offsets.ts'
import { deleteGroup, describeGroup, listGroups } from '../../src/client/groups.ts'
import { END, offsetsFor } from '../../src/client/offsets.ts'
import { changeConfigs, topicConfigs } from '../../src/client/topics.ts'
import { createBroker } from '../../src/memory.ts'
import { SystemClock, type Timer } from '../../src/model/clock.ts'
import { type KafkaServer, serve } from '../../src/server/server.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { leaveGroup } from '../../src/wire/messages/13-leave-group.ts'
import { addressOf, Client, CONNECTION, clock, formats, record, textOf } from './kit.ts'

/** Pauses before another try take no time; whatever is longer is a time limit. */
class EagerClock extends SystemClock {
  override setTimer(callback: () => void, delayMs: number): Timer {
    return super.setTimer(callback, delayMs <= 100 ? 0 : delayMs)
  }
}

const eager = new EagerClock()
const ORDERS = { topic: 'orders', partition: 0 }
const AT_1 = [{ ...ORDERS, offset: 1 }]

/** Two nodes, a topic with one record, and a client that knows who leads it. */
async function start(): Promise<Client> {
  const started = await Client.start({ nodes: 2 })
  await started.cluster.close()
  const client = new Client(started.kafka, { clock: eager })
  await client.publish('orders', 'a')
  return client
}

async function end(client: Client): Promise<number | undefined> {
  return (await offsetsFor(client.cluster, [{ ...ORDERS, timestamp: END }])).get('orders/0')
}

async function moveLeader(client: Client): Promise<void> {
  const leader = (await client.cluster.topic('orders')).partitions[0]?.leaderId
  client.kafka.faults.moveLeader('orders', 0, leader === 0 ? 1 : 0)
}

function memberOf(client: Client): GroupMember {
  const timeouts = { sessionTimeoutMs: 10_000, rebalanceTimeoutMs: 10_000, heartbeatMs: 10 }
  return new GroupMember(client.cluster, { group: 'g', topics: ['orders'], clock, ...timeouts })
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })
}

describe('a broker that is gone', () => {
  it('is read from again when it is back', async () => {
    const broker = createBroker()
    const server = await serve(broker, { port: 0 })
    const { host, port } = addressOf(server.bootstrap)
    const cluster = new KafkaCluster([{ host, port }], CONNECTION)
    await broker.createTopic('orders')
    await broker.publish('orders', 'a')
    const fetcher = new Fetcher(cluster, [{ ...ORDERS, offset: 0, end: 2 }], formats)
    const read: (string | null)[] = []
    let again: KafkaServer | undefined
    for await (const { records } of fetcher.run(new AbortController().signal)) {
      read.push(...records.map(textOf))
      if (again !== undefined) continue
      await server.close({ drainMs: 0 })
      const refused = await cluster.metadata([]).catch((error: { code?: string }) => error.code)
      expect(refused).toBe('CONNECTION_FAILED')
      // What asks meanwhile fails, and tries again.
      cluster.forget('orders')
      setImmediate(async () => {
        again = await serve(broker, { port })
        await broker.publish('orders', 'b')
      })
    }
    expect(read).toEqual(['a', 'b'])
    await cluster.close()
    await again?.close({ drainMs: 0 })
    await broker.close()
  })

  it('is given up when it does not come back', async () => {
    await using client = await start()
    const fetcher = new Fetcher(client.cluster, AT_1, formats)
    const failed = expect(fetcher.run(new AbortController().signal).next()).rejects
    await client.kafka.close()
    await failed.toMatchObject({ code: 'CONNECTION_FAILED' })
  })
})

describe('a coordinator that is gone', () => {
  /** A member whose server has ended. `back` serves a broker at the same port. */
  async function lost(time: SystemClock = clock): Promise<{
    member: GroupMember
    membership: Membership
    back(broker: Broker): Promise<void>
    broker: Broker
    [Symbol.asyncDispose](): Promise<void>
  }> {
    const broker = createBroker()
    await broker.createTopic('orders')
    const first = await serve(broker, { port: 0 })
    const address = addressOf(first.bootstrap)
    const cluster = new KafkaCluster([address], { ...CONNECTION, clock: time })
    const timeouts = { sessionTimeoutMs: 10_000, rebalanceTimeoutMs: 10_000, heartbeatMs: 5 }
    const member = new GroupMember(cluster, { group: 'g', topics: ['orders'], clock, ...timeouts })
    const membership = await member.join()
    await first.close({ drainMs: 0 })
    let again: KafkaServer | undefined
    return {
      member,
      membership,
      broker,
      back: async (other) => {
        again = await serve(other, { port: address.port })
      },
      [Symbol.asyncDispose]: async () => {
        await cluster.close()
        await again?.close({ drainMs: 0 })
        await broker.close()
      },
    }
  }

  it('has the same member when it is back, who commits what it has read meanwhile', async () => {
    await using world = await lost()
    const { member, membership, broker } = world
    const committing = member.commit(AT_1)
    await world.back(broker)
    expect(await committing).toBe(true)
    expect(await member.commit([{ ...ORDERS, offset: 0 }])).toBe(true)
    expect(membership.revoked.aborted).toBe(false)
    await member.leave()
  })

  it('has a new member where it has forgotten the old one', async () => {
    await using world = await lost()
    await using other = createBroker()
    await other.createTopic('orders')
    await world.back(other)
    expect(await aborted(world.membership.revoked)).toMatchObject({ name: 'AbortError' })
    expect((await world.member.join()).partitions).toEqual([ORDERS])
    await world.member.leave()
  })

  it('is joined when it is back', async () => {
    await using world = await lost()
    const joining = world.member.join()
    await world.back(world.broker)
    expect((await joining).partitions).toEqual([ORDERS])
    await world.member.leave()
  })

  it('is given up when it does not come back, and at once by who leaves', async () => {
    await using world = await lost(eager)
    expect(await aborted(world.membership.revoked)).toMatchObject({ code: 'CONNECTION_FAILED' })
    await expect(world.member.commit(AT_1)).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    const joining = expect(world.member.join()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    await expect(world.member.leave()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    await joining
  })

  it('is not asked any more once the cluster is closed', async () => {
    await using client = await start()
    await client.cluster.close()
    await expect(client.cluster.any()).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(memberOf(client).join()).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('a leader that has moved', () => {
  it('is asked for offsets where it is now', async () => {
    await using client = await start()
    await moveLeader(client)
    expect(await end(client)).toBe(1)
  })

  it('gets each record once, and gives it', async () => {
    await using client = await start()
    await moveLeader(client)
    await client.publish('orders', 'b')
    const fault = client.kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { api: 'Produce', times: 3 })
    await client.publish('orders', 'c')
    expect(fault.hits).toBe(3)
    await moveLeader(client)
    const read = await client.read([{ ...ORDERS, offset: 0, end: 3 }])
    expect(read.map(textOf)).toEqual(['a', 'b', 'c'])
  })

  it('is not looked for without end', async () => {
    await using client = await start()
    const { faults } = client.kafka
    const refused = { code: 'REFUSED', message: expect.stringContaining('NOT_LEADER_OR_FOLLOWER') }
    const fault = faults.error('NOT_LEADER_OR_FOLLOWER', { api: 'ListOffsets' })
    await expect(end(client)).rejects.toMatchObject(refused)
    expect(fault.hits).toBe(51)
    faults.error('NOT_LEADER_OR_FOLLOWER', { api: 'Fetch' })
    await expect(client.read([{ ...ORDERS, offset: 0, end: 1 }])).rejects.toMatchObject(refused)
    faults.error('NOT_LEADER_OR_FOLLOWER', { api: 'Produce' })
    await expect(client.publish('orders', 'b')).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: 'orders/0 has no leader',
    })
    faults.error('LEADER_NOT_AVAILABLE', { api: 'Metadata', topic: 'orders' })
    client.cluster.forget('orders')
    await expect(client.cluster.topic('orders')).rejects.toMatchObject({ code: 'REFUSED' })
  })
})

describe('a coordinator that has moved', () => {
  it('is found where it is now, by members too', async () => {
    await using client = await start()
    const { faults } = client.kafka
    const member = memberOf(client)
    await member.join()
    for (const node of [0, 1]) {
      faults.moveCoordinator('group', 'g', node)
      expect(await member.commit([{ ...ORDERS, offset: node }])).toBe(true)
      expect((await committedOffsets(client.cluster, 'g')).get('orders/0')?.offset).toBe(node)
    }
    await member.leave()
    faults.error('COORDINATOR_NOT_AVAILABLE', { api: 'FindCoordinator', times: 2 })
    expect((await describeGroup(client.cluster, 'g')).state).toBe('Empty')
  })

  it('is not looked for without end', async () => {
    await using client = await start()
    const asked = client.kafka.faults.error('NOT_COORDINATOR', { api: 'OffsetCommit' })
    expect(await commitOffsets(client.cluster, 'g', AT_1)).toBe(KAFKA_ERRORS.NOT_COORDINATOR)
    expect(asked.hits).toBe(51)
    client.kafka.faults.error('COORDINATOR_NOT_AVAILABLE', { api: 'FindCoordinator' })
    await expect(commitOffsets(client.cluster, 'g', AT_1)).rejects.toMatchObject({ code: 'REFUSED' })
  })
})

describe('an error that no other broker mends', () => {
  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['ListOffsets', end],
    ['Fetch', (client) => client.read([{ ...ORDERS, offset: 0, end: 1 }])],
    ['Produce', (client) => client.publish('orders', 'b')],
    ['FindCoordinator', (client) => committedOffsets(client.cluster, 'g')],
    ['OffsetFetch', (client) => committedOffsets(client.cluster, 'g')],
    ['ListGroups', (client) => listGroups(client.cluster)],
    ['DescribeGroups', (client) => describeGroup(client.cluster, 'g')],
    ['DescribeConfigs', (client) => topicConfigs(client.cluster, 'orders')],
    ['IncrementalAlterConfigs', (client) => changeConfigs(client.cluster, 'orders', [['retention.ms', '1']])],
    ['JoinGroup', (client) => memberOf(client).join()],
    ['SyncGroup', (client) => memberOf(client).join()],
  ])('is told: %s', async (api, ask) => {
    await using client = await start()
    const fault = client.kafka.faults.error('CLUSTER_AUTHORIZATION_FAILED', { api })
    await expect(ask(client)).rejects.toMatchObject({
      name: expect.stringMatching(/Error/),
      message: expect.stringContaining('CLUSTER_AUTHORIZATION_FAILED'),
    })
    expect(fault.hits).toBeGreaterThan(0)
  })

  it('is told of one group that is to go', async () => {
    await using client = await start()
    client.kafka.faults.error('CLUSTER_AUTHORIZATION_FAILED', { api: 'DeleteGroups' })
    expect(await deleteGroup(client.cluster, 'g')).toMatchObject({ code: 'REFUSED' })
  })
})

describe('a connection that is lost', () => {
  it('is made again by a fetcher, which misses nothing', async () => {
    await using client = await start()
    const fault = client.kafka.faults.drop({ api: 'Fetch', times: 2 })
    expect(await client.read([{ ...ORDERS, offset: 0, end: 1 }])).toHaveLength(1)
    expect(fault.hits).toBe(2)
  })

  it('is none that a fetcher waits on when it is aborted', async () => {
    await using client = await start()
    const stop = new AbortController()
    const fetcher = new Fetcher(client.cluster, [{ ...ORDERS, offset: 1 }], formats)
    const stopping = client.kafka.faults.onRequest(({ api }) => api === 'Fetch' && stop.abort())
    for await (const _ of fetcher.run(stop.signal)) throw new Error('there is nothing to read')
    stopping()
    for await (const _ of fetcher.run(stop.signal)) throw new Error('it was aborted before')
  })

  it('loses what a producer had under way, and says which records', async () => {
    await using client = await start()
    client.kafka.faults.drop({ api: 'Produce', when: 'after' })
    const producer = client.producer()
    await producer.send(record('orders', 'b', { tag: 4 }))
    await expect(producer.flush()).rejects.toMatchObject({ code: 'CONNECTION_FAILED', first: 4, last: 4 })
    expect(await end(client)).toBe(2)
  })
})

describe('a member', () => {
  it.each(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION'] as const)(
    'joins again where it hears %s on the way in',
    async (error) => {
      await using client = await start()
      client.kafka.faults.error(error, { api: 'SyncGroup', times: 1 })
      const member = memberOf(client)
      expect((await member.join()).partitions).toEqual([ORDERS])
      await member.leave()
    },
  )

  it('joins anew where the broker has forgotten it meanwhile', async () => {
    await using client = await start()
    const member = memberOf(client)
    await member.join()
    const { members } = await describeGroup(client.cluster, 'g')
    const leaving = members.map(({ memberId }) => ({ memberId, groupInstanceId: null, reason: null }))
    const body = { groupId: 'g', memberId: '', members: leaving }
    await client.cluster.askCoordinator('g', leaveGroup, body, ({ errorCode }) => errorCode)
    expect((await describeGroup(client.cluster, 'g')).members).toEqual([])
    expect((await member.join()).partitions).toEqual([ORDERS])
    await member.leave()
  })

  it('gives its partitions back where its heartbeat is refused, and says why if it is no rebalance', async () => {
    await using client = await start()
    const { faults } = client.kafka
    const member = memberOf(client)
    const first = await member.join()
    faults.error('ILLEGAL_GENERATION', { api: 'Heartbeat', times: 1 })
    expect(await aborted(first.revoked)).toMatchObject({ name: 'AbortError' })
    const second = await member.join()
    faults.error('GROUP_AUTHORIZATION_FAILED', { api: 'Heartbeat', times: 1 })
    expect(await aborted(second.revoked)).toMatchObject({ code: 'REFUSED' })
    await member.leave()
  })

  it('cannot commit where it is none any more, nor what the broker refuses', async () => {
    await using client = await start()
    const { faults } = client.kafka
    const member = memberOf(client)
    await member.join()
    faults.error('ILLEGAL_GENERATION', { api: 'OffsetCommit', times: 1 })
    expect(await member.commit(AT_1)).toBe(false)
    faults.error('OFFSET_METADATA_TOO_LARGE', { api: 'OffsetCommit', times: 1 })
    await expect(member.commit(AT_1)).rejects.toMatchObject({ code: 'REFUSED' })
    expect(await member.commit(AT_1)).toBe(true)
    await member.leave()
  })
})

describe('an older Kafka', () => {
  it('is not spoken to where it is too old', async () => {
    await using client = await Client.start({ as: '2.0' })
    await expect(client.cluster.any()).rejects.toMatchObject({ code: 'UNSUPPORTED' })
  })

  it.each(['2.8', '3.9', '4.1'] as const)('is spoken to as it speaks: %s', async (as) => {
    await using client = await Client.start({ as })
    await client.publish('orders', 'a', 'b')
    expect(await end(client)).toBe(2)
    expect((await client.read([{ ...ORDERS, offset: 0, end: 2 }])).map(textOf)).toEqual(['a', 'b'])
    const member = memberOf(client)
    await member.join()
    expect(await member.commit(AT_1)).toBe(true)
    expect((await describeGroup(client.cluster, 'g')).members).toHaveLength(1)
    await member.leave()
    expect([...(await committedOffsets(client.cluster, 'g')).values()]).toEqual(AT_1)
    expect((await listGroups(client.cluster)).map(({ group }) => group)).toEqual(['g'])
    expect(await deleteGroup(client.cluster, 'g')).toBeUndefined()
    await expect(describeGroup(client.cluster, 'g')).rejects.toMatchObject({ code: 'UNKNOWN_CONSUMER' })
  })
})
