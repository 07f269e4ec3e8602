/** Members, offsets and administration of groups and topics at one broker, over the wire. */
import { describe, expect, it } from 'vitest'
import { GroupMember } from '../../src/client/group-member.ts'
import { commitOffsets, committedOffsets } from '../../src/client/group-offsets.ts'
import { deleteGroup, describeGroup, listGroups } from '../../src/client/groups.ts'
import {
  changeConfigs,
  createTopics,
  deleteTopics,
  listTopics,
  topicConfigs,
} from '../../src/client/topics.ts'
import { Client, clock } from './kit.ts'

function memberOf(client: Client, topics = ['orders']): GroupMember {
  const timeouts = { sessionTimeoutMs: 10_000, rebalanceTimeoutMs: 10_000, heartbeatMs: 20 }
  return new GroupMember(client.cluster, { group: 'g', topics, clock, ...timeouts })
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

describe('a member of a group', () => {
  it('has everything alone, its share with another one, and everything again when that has left', async () => {
    await using client = await Client.start()
    await using second = new Client(client.kafka)
    await client.kafka.broker.createTopic('orders', { partitions: 3 })
    const [a, b] = [memberOf(client), memberOf(second)]
    const alone = await a.join()
    expect(alone.partitions).toHaveLength(3)
    const joining = b.join()
    await aborted(alone.revoked)
    expect(alone.revoked.reason).toMatchObject({ name: 'AbortError' })
    const [ours, theirs] = await Promise.all([a.join(), joining])
    expect(ours.generation).toBe(theirs.generation)
    expect([...ours.partitions, ...theirs.partitions].map(({ partition }) => partition).sort()).toEqual([
      0, 1, 2,
    ])
    expect((await describeGroup(client.cluster, 'g')).members).toHaveLength(2)
    await b.leave()
    await aborted(ours.revoked)
    expect((await a.join()).partitions).toHaveLength(3)
    await a.leave()
    expect((await describeGroup(client.cluster, 'g')).state).toBe('Empty')
    await second.cluster.close()
  })

  it('commits as long as it is one, and is told when it is none any more', async () => {
    await using client = await Client.start()
    await client.kafka.broker.createTopic('orders', { partitions: 1 })
    const member = memberOf(client)
    await member.join()
    expect(await member.commit([{ topic: 'orders', partition: 0, offset: 0 }])).toBe(true)
    expect(await member.commit([])).toBe(true)
    expect((await committedOffsets(client.cluster, 'g')).get('orders/0')?.offset).toBe(0)
    await member.leave()
    await member.leave()
    await expect(member.join()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('leaves also while it waits for the others', async () => {
    await using client = await Client.start()
    await using second = new Client(client.kafka)
    await client.kafka.broker.createTopic('orders', { partitions: 2 })
    const sleepy = new GroupMember(client.cluster, {
      group: 'g',
      topics: ['orders'],
      clock,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      heartbeatMs: 30_000,
    })
    await sleepy.join()
    const waiting = memberOf(second)
    const joining = waiting.join()
    joining.catch(() => undefined)
    while ((await describeGroup(client.cluster, 'g')).members.length < 2) await client.cluster.pause(5)
    await waiting.leave()
    await expect(joining).rejects.toMatchObject({ code: 'CLOSED' })
    const { members } = await describeGroup(client.cluster, 'g')
    expect(members).toHaveLength(1)
    await second.cluster.close()
    await sleepy.leave()
  })

  it('says that a group is of another kind', async () => {
    await using client = await Client.start()
    const orders = await client.kafka.broker.createTopic('orders')
    await using _ = await orders.subscribe(() => {}, { group: 'g' })
    await expect(memberOf(client).join()).rejects.toMatchObject({ name: 'OdradekError' })
  })
})

describe('groups', () => {
  it('are listed over all coordinators, described, and deleted without members', async () => {
    await using client = await Client.start({ nodes: 3 })
    await client.publish('orders', 'a')
    for (const group of ['b', 'a', 'c']) {
      const offsets = [{ topic: 'orders', partition: 0, offset: 1 }]
      expect(await commitOffsets(client.cluster, group, offsets)).toBe(0)
    }
    expect((await listGroups(client.cluster)).map(({ group }) => group)).toEqual(['a', 'b', 'c'])
    expect(await describeGroup(client.cluster, 'a')).toMatchObject({ state: 'Empty', members: [] })
    expect(await deleteGroup(client.cluster, 'a')).toBeUndefined()
    expect(await deleteGroup(client.cluster, 'a')).toMatchObject({ code: 'UNKNOWN_CONSUMER' })
    await expect(describeGroup(client.cluster, 'a')).rejects.toMatchObject({ code: 'UNKNOWN_CONSUMER' })
    expect((await listGroups(client.cluster)).map(({ group }) => group)).toEqual(['b', 'c'])
  })
})

describe('topics', () => {
  it('are made with configs, changed, listed and deleted, each with its own outcome', async () => {
    await using client = await Client.start()
    const { cluster } = client
    const configs = [['retention.ms', '1000']] as const
    const topic = { name: 'b', partitions: 2, replicas: -1, configs }
    const options = { timeoutMs: 1_000, validateOnly: false }
    expect(await createTopics(cluster, [topic], { ...options, validateOnly: true })).toMatchObject([
      { error: undefined },
    ])
    expect(await listTopics(cluster)).toEqual([])
    const made = await createTopics(
      cluster,
      [topic, { ...topic, name: 'a' }, { ...topic, name: '/' }],
      options,
    )
    expect(made).toMatchObject([{ partitions: 2 }, { name: 'a' }, { error: { code: 'INVALID_TOPIC' } }])
    expect(await createTopics(cluster, [topic], options)).toMatchObject([{ error: { code: 'TOPIC_EXISTS' } }])
    expect((await listTopics(cluster)).map(({ name }) => name)).toEqual(['a', 'b'])
    const retention = async () =>
      (await topicConfigs(cluster, 'b')).find(({ name }) => name === 'retention.ms')
    expect(await retention()).toMatchObject({ value: '1000', isDefault: false })
    await changeConfigs(cluster, 'b', [['retention.ms', '2000']])
    expect(await retention()).toMatchObject({ value: '2000', isDefault: false })
    await changeConfigs(cluster, 'b', [['retention.ms', null]])
    expect(await retention()).toMatchObject({ isDefault: true })
    await expect(changeConfigs(cluster, 'b', [['retention.ms', 'x']])).rejects.toMatchObject({
      code: 'REFUSED',
    })
    await expect(topicConfigs(cluster, 'none')).rejects.toMatchObject({ code: 'UNKNOWN_TOPIC' })
    const gone = await deleteTopics(cluster, ['b', 'none'], 1_000)
    expect(gone).toMatchObject([{ error: undefined }, { error: { code: 'UNKNOWN_TOPIC' } }])
    expect((await listTopics(cluster)).map(({ name }) => name)).toEqual(['a'])
  })
})

describe('a cluster', () => {
  it('is reached by whichever of its brokers answers, and knows its partitions', async () => {
    await using client = await Client.start({ nodes: 2 })
    await client.publish('orders', 'a')
    await expect(client.cluster.leader('orders', 7)).rejects.toThrow('partitions 0 to 0, not 7')
    await expect(client.cluster.broker(99)).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    const { KafkaCluster } = await import('../../src/client/cluster.ts')
    const { addressOf, CONNECTION } = await import('./kit.ts')
    const [first = ''] = client.kafka.bootstrap.split(',')
    const cluster = new KafkaCluster([{ host: '127.0.0.1', port: 1 }, addressOf(first)], CONNECTION)
    expect((await cluster.metadata(null)).brokers).toHaveLength(2)
    await cluster.close()
    const lost = new KafkaCluster([{ host: '127.0.0.1', port: 1 }], CONNECTION)
    await expect(lost.metadata(null)).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
  })
})
