/** Offsets of groups: one store for the protocol and for this process, with what a commit says beside the offset. */
import { describe, expect, it } from 'vitest'
import type { BrokerOptions } from '../../src/broker.ts'
import type { Topic } from '../../src/core/topic.ts'
import { fileDisk, plainDisk } from '../support/disks.ts'
import { Machine } from '../support/durable.ts'
import { Hands, World } from '../support/world.ts'
import { commit, committed, entry, joined, left } from './group-kit.ts'

const DAY_MS = 86_400_000

async function withTopic(options: BrokerOptions = {}) {
  const world = new World(options)
  const topic = await world.broker.createTopic<number>('orders', { partitions: 2 })
  return { world, topic, broker: world.broker, offsets: world.broker.parts.groupOffsets }
}

describe('a commit', () => {
  it('keeps what it says: metadata, leader epoch, time', async () => {
    const { world, broker } = await withTopic()
    await commit(broker, 'g', 'orders', 1, 7, { metadata: 'a note', epoch: 3 })
    expect(committed(broker, 'g', 'orders', 1)).toEqual({
      ...entry(broker, 'orders', 1, 7, { metadata: 'a note', epoch: 3 }),
      at: world.clock.now(),
    })
    expect(committed(broker, 'g', 'orders', 0)).toBeUndefined()
    expect(committed(broker, 'other', 'orders', 1)).toBeUndefined()
  })

  it('may go back, and beyond the log', async () => {
    const { broker } = await withTopic()
    for (const offset of [5, 2, 1_000]) {
      await commit(broker, 'g', 'orders', 0, offset)
      expect(committed(broker, 'g', 'orders')).toMatchObject({ offset })
    }
  })

  it('is one of all there are of its group', async () => {
    const { broker, offsets } = await withTopic()
    // Names that begin alike, and one that needs escaping.
    for (const group of ['g', 'g2', 'g/1']) await commit(broker, group, 'orders', 1, 7)
    await commit(broker, 'g', 'orders', 0, 3)
    const all = (group: string) => offsets.all(group).map(({ partition, offset }) => [partition, offset])
    expect(all('g').sort()).toEqual([
      [0, 3],
      [1, 7],
    ])
    expect(all('g/1')).toEqual([[1, 7]])
    expect([...offsets.stored().keys()].sort()).toEqual(['g', 'g/1', 'g2'])
  })

  it('goes with its topic; one of the same name knows nothing of it', async () => {
    const { broker, offsets } = await withTopic()
    await broker.createTopic('others')
    await commit(broker, 'g', 'orders', 1, 7)
    await commit(broker, 'g', 'others', 0, 1)
    await broker.deleteTopic('orders')
    await broker.createTopic('orders', { partitions: 2 })
    expect(committed(broker, 'g', 'orders', 1)).toBeUndefined()
    expect(offsets.all('g')).toHaveLength(1)
  })

  it('can be forgotten, one by one', async () => {
    const { broker, offsets } = await withTopic()
    await commit(broker, 'g', 'orders', 0, 3)
    await commit(broker, 'g', 'orders', 1, 7)
    await offsets.forget('g', [entry(broker, 'orders', 0, 0)])
    expect([committed(broker, 'g', 'orders', 0), committed(broker, 'g', 'orders', 1)?.offset]).toEqual([
      undefined,
      7,
    ])
  })
})

describe('a group of this process', () => {
  it('says itself where it is, while it has members and after', async () => {
    const { world, broker, topic } = await withTopic()
    const hands = new Hands()
    const member = await topic.subscribe(hands.take, {
      group: 'g',
      from: 'earliest',
      ack: 'manual',
      concurrency: 10,
    })
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    hands.deliveries[0]?.ack()
    hands.deliveries[2]?.ack()
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1, metadata: '', epoch: -1 })
    await member.close({ drainMs: 0 })
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
  })

  it('without members is moved by a commit, and goes on there with its first member', async () => {
    const { world, broker, topic } = await withTopic()
    const seen: unknown[] = []
    const subscribe = () =>
      topic.subscribe(({ value }) => void seen.push(value), { group: 'g', from: 'earliest' })
    const first = await subscribe()
    for (let i = 0; i < 5; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    await first.close()
    seen.length = 0
    await commit(broker, 'g', 'orders', 0, 3, { metadata: 'moved' })
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 3, metadata: 'moved' })
    await subscribe()
    await world.settle()
    expect(seen).toEqual([3, 4])
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 5, metadata: '' })
  })

  it.each([
    [0, 2],
    [100, 5],
  ])('is moved to within its log where a commit says %i', async (offset, at) => {
    const { world, broker, topic } = await withTopic()
    const member = await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    for (let i = 0; i < 5; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    await member.close()
    await broker.parts.topics.get('orders')?.partitions[0]?.trim(2)
    await commit(broker, 'g', 'orders', 0, offset)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: at })
  })

  it('keeps what was settled beyond its place when the name changes hands', async () => {
    const { world, broker, topic } = await withTopic()
    const hands = new Hands()
    const options = { group: 'g', from: 'earliest', ack: 'manual', concurrency: 10 } as const
    const member = await topic.subscribe(hands.take, options)
    for (let i = 0; i < 4; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    for (const i of [0, 2]) hands.deliveries[i]?.ack()
    await member.close({ drainMs: 0 })
    left(broker, 'g', await joined(broker, 'g'))
    const again = new Hands()
    await topic.subscribe(again.take, options)
    await world.settle()
    expect(again.values).toEqual([1, 3])
    expect(again.deliveries.map(({ attempt }) => attempt)).toEqual([1, 1])
  })
})

describe('offsets of a transaction', () => {
  const PRODUCER = 7

  it('count when it commits, and not before', async () => {
    const { broker, offsets } = await withTopic()
    await commit(broker, 'g', 'orders', 0, 1)
    const set = entry(broker, 'orders', 0, 5, { metadata: 'of the transaction', epoch: 2 })
    await offsets.pending(PRODUCER, 'g', [set])
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
    expect([offsets.isUnstable('g', set), offsets.hasPending('g')]).toEqual([true, true])
    expect([
      offsets.isUnstable('g', { ...set, partition: 1 }),
      offsets.isUnstable('g2', set),
      offsets.hasPending('g2'),
    ]).toEqual([false, false, false])
    await offsets.complete(PRODUCER, true)
    expect(committed(broker, 'g', 'orders')).toMatchObject({
      offset: 5,
      metadata: 'of the transaction',
      epoch: 2,
    })
    expect([offsets.isUnstable('g', set), offsets.hasPending('g')]).toEqual([false, false])
  })

  it('are forgotten when it aborts', async () => {
    const { broker, offsets } = await withTopic()
    await offsets.pending(PRODUCER, 'g', [entry(broker, 'orders', 0, 5)])
    await offsets.complete(PRODUCER, false)
    await offsets.complete(PRODUCER, true)
    expect(committed(broker, 'g', 'orders')).toBeUndefined()
  })

  it('are those of the last commit in it', async () => {
    const { broker, offsets } = await withTopic()
    for (const offset of [5, 6]) await offsets.pending(PRODUCER, 'g', [entry(broker, 'orders', 0, offset)])
    await offsets.complete(PRODUCER, true)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 6 })
    expect(offsets.isUnstable('g', entry(broker, 'orders', 0, 0))).toBe(false)
  })

  it('are unstable until the last transaction has ended that set some aside', async () => {
    const { broker, offsets } = await withTopic()
    const set = entry(broker, 'orders', 0, 5)
    for (const producer of [1, 2]) await offsets.pending(producer, 'g', [set])
    await offsets.complete(1, false)
    expect(offsets.isUnstable('g', set)).toBe(true)
    await offsets.complete(2, false)
    expect(offsets.isUnstable('g', set)).toBe(false)
  })

  it('go with their topic, their group, and where their place is forgotten', async () => {
    const { broker, offsets } = await withTopic()
    const [gone, kept] = [entry(broker, 'orders', 0, 5), entry(broker, 'orders', 1, 5)]
    await offsets.pending(PRODUCER, 'g', [gone, kept])
    await offsets.forget('g', [gone])
    expect([offsets.isUnstable('g', gone), offsets.isUnstable('g', kept)]).toEqual([false, true])
    await offsets.forgetGroup('g')
    expect(offsets.isUnstable('g', kept)).toBe(false)
    await offsets.pending(PRODUCER, 'g', [gone])
    await broker.deleteTopic('orders')
    expect(offsets.isUnstable('g', gone)).toBe(false)
    await offsets.complete(PRODUCER, true)
    expect(offsets.all('g')).toEqual([])
  })

  it('move a group of this process that has no members', async () => {
    const { world, broker, topic, offsets } = await withTopic()
    const member = await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    for (let i = 0; i < 5; i++) await topic.publish(i, { partition: 0 })
    await world.settle()
    await member.close()
    await offsets.pending(PRODUCER, 'g', [entry(broker, 'orders', 0, 2)])
    await offsets.complete(PRODUCER, true)
    expect(broker.describeGroup('g').cursors[0]).toMatchObject({ committed: 2 })
  })
})

describe('offsets that nobody reads', () => {
  const options = { offsetRetentionMs: 7 * DAY_MS }

  it('are kept for so long after the group became empty, and then it is gone', async () => {
    const { world, broker } = await withTopic(options)
    const member = await joined(broker, 'g')
    await commit(broker, 'g', 'orders', 0, 1)
    const { groupOffsets } = broker.parts
    await groupOffsets.commit('g', [entry(broker, 'orders', 0, 1)])
    await world.clock.advance(DAY_MS)
    // Its session is over long since; that is when the group became empty.
    expect(broker.parts.groups.get('g')?.members.size).toBe(0)
    expect(member.error).toBe('NONE')
    await world.clock.advance(6 * DAY_MS - 600_000)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
    await world.clock.advance(1_300_000)
    expect(committed(broker, 'g', 'orders')).toBeUndefined()
    expect(broker.listGroups()).toEqual([])
  })

  it('are kept from their commit on where there never were members, each for itself', async () => {
    const { world, broker } = await withTopic(options)
    await commit(broker, 'g', 'orders', 0, 1)
    await world.clock.advance(3 * DAY_MS)
    await commit(broker, 'g', 'orders', 1, 1)
    await world.clock.advance(5 * DAY_MS)
    expect([committed(broker, 'g', 'orders', 0), committed(broker, 'g', 'orders', 1)?.offset]).toEqual([
      undefined,
      1,
    ])
    expect(broker.listGroups()).toEqual(['g'])
    await world.clock.advance(3 * DAY_MS)
    expect(broker.listGroups()).toEqual([])
    expect(world.clock.pending).toBeLessThanOrEqual(1)
  })

  it('expire while there are members, where none of them subscribes to the topic', async () => {
    const { world, broker } = await withTopic(options)
    await broker.createTopic('others')
    const { groups, groupOffsets } = broker.parts
    groups.configure({ maxSessionTimeoutMs: 100 * DAY_MS })
    const said = { sessionTimeoutMs: 100 * DAY_MS }
    const { memberId } = await joined(broker, 'g', said)
    await groupOffsets.commit('g', [entry(broker, 'orders', 0, 1), entry(broker, 'others', 0, 1)])
    const ref = { memberId, instanceId: null, generation: 1 }
    await groups.sync('g', {
      ...ref,
      protocolType: null,
      protocolName: null,
      assignments: new Map(),
      signal: new AbortController().signal,
    })
    await world.clock.advance(8 * DAY_MS)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
    expect(committed(broker, 'g', 'others')).toBeUndefined()
  })

  it('are kept while a transaction may change them', async () => {
    const { world, broker, offsets } = await withTopic(options)
    await commit(broker, 'g', 'orders', 0, 1)
    await offsets.pending(1, 'g', [entry(broker, 'orders', 0, 5)])
    await world.clock.advance(8 * DAY_MS)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
    await offsets.complete(1, false)
    await world.clock.advance(DAY_MS)
    expect(broker.listGroups()).toEqual([])
  })

  it('are kept of a group whose members are about to be told of their generation', async () => {
    const { world, broker } = await withTopic({ offsetRetentionMs: 1_000 })
    broker.parts.groups.configure({ initialRebalanceDelayMs: 30_000 })
    await commit(broker, 'g', 'orders', 0, 1)
    void joined(broker, 'g')
    await world.clock.advance(20_000)
    expect(committed(broker, 'g', 'orders')).toMatchObject({ offset: 1 })
  })

  it('are looked for again while there is a group, and no longer', async () => {
    const { world, broker } = await withTopic({ offsetRetentionMs: 1_000 })
    left(broker, 'g', await joined(broker, 'g'))
    await world.clock.advance(3_000)
    expect(broker.listGroups()).toEqual([])
    await world.clock.runAll(10)
    expect(world.clock.pending).toBe(0)
  })
})

describe.each([
  ['values by reference', plainDisk],
  ['files', fileDisk],
])('after a restart, on %s', (_, disk) => {
  it('commits are there, with all they say, also after a crash', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders', { partitions: 2 })
    await commit(first.broker, 'g', 'orders', 1, 7, { metadata: 'a note', epoch: 3 })
    const before = committed(first.broker, 'g', 'orders', 1)
    first.crash()
    const { broker } = await machine.boot()
    expect(committed(broker, 'g', 'orders', 1)).toEqual(before)
    expect(broker.listGroups()).toEqual(['g'])
  })

  it('a reader of this process goes on where the protocol committed, and the note stays until it moves', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    const topic = await first.broker.createTopic<number>('orders')
    await (await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })).close()
    for (let i = 0; i < 5; i++) await topic.publish(i)
    await commit(first.broker, 'g', 'orders', 0, 3, { metadata: 'moved' })
    await first.broker.close()
    const second = await machine.boot()
    expect(committed(second.broker, 'g', 'orders')).toMatchObject({ offset: 3, metadata: 'moved' })
    const seen: unknown[] = []
    await second.broker
      .topic('orders')
      .subscribe(({ value }) => void seen.push(value), { group: 'g', from: 'earliest' })
    await second.settle()
    expect(seen).toEqual([3, 4])
    expect(committed(second.broker, 'g', 'orders')).toMatchObject({ offset: 5, metadata: '' })
    await second.broker.close()
    expect(committed((await machine.boot()).broker, 'g', 'orders')).toMatchObject({ offset: 5, metadata: '' })
  })

  it('offsets of a transaction wait for its end', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders', { partitions: 2 })
    const set = entry(first.broker, 'orders', 0, 5, { metadata: 'of the transaction' })
    await first.broker.parts.groupOffsets.pending(2 ** 40, 'g/1', [set])
    first.crash()
    const second = await machine.boot()
    const { groupOffsets } = second.broker.parts
    expect(groupOffsets.isUnstable('g/1', set)).toBe(true)
    await groupOffsets.complete(2 ** 40, true)
    second.crash()
    const { broker } = await machine.boot()
    expect(committed(broker, 'g/1', 'orders')).toMatchObject({ offset: 5, metadata: 'of the transaction' })
    expect(broker.parts.groupOffsets.isUnstable('g/1', set)).toBe(false)
  })

  it('a topic that was deleted took its offsets with it, also where the process crashed', async () => {
    const machine = new Machine(disk())
    const first = await machine.boot()
    await first.broker.createTopic('orders')
    await commit(first.broker, 'g', 'orders', 0, 3)
    const { id } = first.broker.parts.topics.get('orders') as Topic
    await first.broker.deleteTopic('orders')
    first.crash()
    const { broker } = await machine.boot()
    expect(broker.parts.groupOffsets.committed('g', { topicId: id, partition: 0 })).toBeUndefined()
    expect(machine.stored()).toEqual([])
  })

  it('what a former process left behind is kept from then on', async () => {
    const machine = new Machine(disk())
    const options = { offsetRetentionMs: DAY_MS }
    const first = await machine.boot(options)
    const topic = await first.broker.createTopic<number>('orders')
    await topic.subscribe(() => {}, { group: 'g', from: 'earliest' })
    await topic.publish(1)
    await first.settle()
    await first.broker.close()
    const { broker, clock } = await machine.boot(options)
    await clock.advance(DAY_MS - 1)
    expect(broker.listGroups()).toEqual(['g'])
    await clock.advance(700_000)
    expect(broker.listGroups()).toEqual([])
    expect(machine.stored()).toEqual([])
  })
})
