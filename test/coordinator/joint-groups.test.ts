/** Subscribers of this process and members of Kafka's protocol in one consumer group: one owner, one offset. */
import { describe, expect, it } from 'vitest'
import { LocalMember } from '../../src/coordinator/local-member.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World } from '../support/world.ts'
import { entry, NOBODY } from './group-kit.ts'
import { Remote } from './remote-kit.ts'

const group = 'g'

async function withTopic(partitions = 4, retention: { records?: number } = {}) {
  const world = new World()
  const { broker } = world
  const topic = await broker.createTopic<number>('orders', { partitions, retention })
  const seen: string[] = []
  /** A subscriber that notes what it sees. */
  const subscribe = (id: string, options: Partial<SubscribeOptions> = {}) =>
    topic.subscribe((d) => void seen.push(`${id}: ${d.partition}/${d.offset}`), {
      id,
      group,
      assignment: 'range',
      from: 'earliest',
      ...options,
    })
  const remote = (id = 'r') => new Remote(broker, { group, id })
  const owners = () => broker.describeGroup(group).cursors.map(({ owner }) => owner)
  const publish = async (count: number, partition: number) => {
    for (const i of upTo(count)) await topic.publish(i, { partition })
  }
  return { world, broker, topic, seen, subscribe, remote, owners, publish, clock: world.clock }
}

describe('a member of the protocol that joins subscribers', () => {
  it('gets its share at once, where nothing is in flight', async () => {
    const { subscribe, remote, owners, broker } = await withTopic()
    await subscribe('a')
    const r = remote()
    expect(await r.beat()).toMatchObject({ error: 'NONE', epoch: 2 })
    expect(r.digits()).toBe('23')
    expect(owners()).toEqual(['a', 'a', 'r', 'r'])
    expect(broker.listGroups()).toEqual([group])
    expect(broker.describeGroup(group)).toMatchObject({
      kind: 'consumer',
      assignment: 'range',
      generation: 2,
      members: [{ id: 'a' }, { id: 'r' }],
    })
  })

  it('is given a partition when what is in flight of it has settled, and nothing new is handed out meanwhile', async () => {
    const { topic, world, remote, publish, owners } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', group, assignment: 'range', ack: 'manual', concurrency: 2 })
    await publish(3, 1)
    await world.settle()
    const r = remote()
    await r.beat()
    expect([r.digits(), owners()]).toEqual(['', ['a', 'a']])
    expect(hands.values).toEqual([0])
    expect(hands.last.ack()).toBe(true)
    await world.settle()
    expect(hands.values).toEqual([0])
    expect(r.digits()).toBe('')
    await r.beat()
    expect([r.digits(), owners()]).toEqual(['1', ['a', 'r']])
    expect(r.committed(1)).toBe(1)
  })

  it('is given it also when what is in flight has expired, and the record comes to it', async () => {
    const { topic, world, remote, publish, clock } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { group, assignment: 'range', ack: 'manual', ackTimeoutMs: 1_000 })
    await publish(1, 1)
    await world.settle()
    const r = remote()
    await r.beat()
    await clock.advance(1_000)
    await r.beat()
    expect(r.has(1)).toBe(true)
    expect(r.committed(1)).toBe(0)
    expect(hands.last.ack()).toBe(false)
  })

  it('waits for a dead letter that is on its way', async () => {
    const { topic, world, remote, publish } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { group, assignment: 'range', ack: 'manual' })
    await publish(1, 1)
    await world.settle()
    const r = remote()
    await r.beat()
    expect(hands.last.reject('bad')).toBe(true)
    await r.beat()
    expect(r.has(1)).toBe(false)
    await world.settle()
    await r.beat()
    expect([r.has(1), r.committed(1)]).toEqual([true, 1])
  })

  it('is given it after five minutes, whatever a handler extends; its late ack is fenced', async () => {
    const { topic, world, remote, publish, clock } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { group, assignment: 'range', ack: 'manual' })
    await publish(1, 1)
    await world.settle()
    const r = remote()
    await r.beat()
    hands.last.extend(3_600_000)
    for (const _ of upTo(29)) {
      await clock.advance(10_000)
      await r.beat()
    }
    expect(r.has(1)).toBe(false)
    expect(hands.last.signal.aborted).toBe(false)
    await clock.advance(10_000)
    await r.beat()
    expect(r.has(1)).toBe(true)
    expect(hands.last.signal.aborted).toBe(true)
    expect(hands.last.ack()).toBe(false)
    expect(r.committed(1)).toBe(0)
  })

  it('gets nothing where the group is shared', async () => {
    const { subscribe, remote } = await withTopic()
    await subscribe('a', { assignment: 'shared' })
    expect(await remote().beat()).toMatchObject({ error: 'GROUP_ID_NOT_FOUND' })
  })

  it('leaves the group as it was where it is refused', async () => {
    const { broker, subscribe, remote, owners } = await withTopic()
    broker.parts.groups.configure({ maxSize: 0 })
    await subscribe('a')
    expect(await remote().beat()).toMatchObject({ error: 'GROUP_MAX_SIZE_REACHED' })
    expect(broker.parts.groups.modern(group)).toBeUndefined()
    expect(owners()).toEqual(['a', 'a', 'a', 'a'])
  })

  it('moves nothing of what may stay, sticky', async () => {
    const { subscribe, remote, owners } = await withTopic(6)
    await subscribe('a', { assignment: 'sticky' })
    await subscribe('b', { assignment: 'sticky' })
    const before = owners()
    const r = remote()
    await r.beat()
    const moved = owners().filter((owner, i) => owner !== before[i])
    expect(moved).toEqual(['r', 'r'])
  })
})

describe('a subscriber that joins members of the protocol', () => {
  it('gets a partition when its owner says that it has it no more, at the committed offset', async () => {
    const { world, subscribe, remote, publish, owners, seen } = await withTopic(2)
    await publish(4, 0)
    const r = remote()
    await r.beat()
    expect(r.digits()).toBe('01')
    await subscribe('a')
    await r.hear()
    expect(owners()).toEqual(['r', 'r'])
    expect(await r.commit(0, 3)).toBe('NONE')
    await r.beat()
    expect(owners()).toEqual(['r', 'r'])
    await r.beat()
    await world.settle()
    expect(owners()).toEqual(['a', 'r'])
    expect(seen).toEqual(['a: 0/3'])
  })

  it('gets it when the owner has left, or was not heard of for a session', async () => {
    const { world, clock, subscribe, remote, owners, publish, seen } = await withTopic(2)
    const [r, s] = [remote('r'), remote('s')]
    await r.beat()
    await s.settle()
    await r.settle()
    await s.settle()
    await subscribe('a', { assignment: 'sticky' })
    expect(owners()).toEqual(['r', 's'])
    await publish(1, 0)
    await s.leave()
    expect(owners()).toEqual(['r', 'a'])
    await clock.advance(45_000)
    await world.settle()
    expect(owners()).toEqual(['a', 'a'])
    expect(seen).toEqual(['a: 0/0'])
    expect(await r.beat()).toMatchObject({ error: 'UNKNOWN_MEMBER_ID' })
    expect(await r.commit(0, 1)).toBe('UNKNOWN_MEMBER_ID')
  })

  it('does not say where the group is in what others read, before anybody has committed', async () => {
    const { subscribe, remote, publish, broker } = await withTopic(2)
    await publish(3, 0)
    await publish(3, 1)
    const r = remote()
    await r.beat()
    await subscribe('a', { from: 'latest' })
    expect([r.committed(0), r.committed(1)]).toEqual([undefined, undefined])
    expect(broker.parts.groupOffsets.all(group)).toEqual([])
    await r.beat()
    await r.beat()
    // It is the subscriber's now, who reads from where he came.
    expect([r.committed(0), r.committed(1)]).toEqual([3, undefined])
    expect(await r.commit(1, 2)).toBe('NONE')
    expect(r.committed(1)).toBe(2)
  })

  it('is refused where it would share single records', async () => {
    const { subscribe, remote } = await withTopic()
    await remote().beat()
    expect(await codeOf(subscribe('a', { assignment: 'shared' }))).toBe('INCONSISTENT_GROUP')
  })

  it('reads other topics than they do, and what it matches', async () => {
    const { broker, world } = await withTopic(2)
    await broker.createTopic('events.a')
    const r = new Remote(broker, { group, topics: ['orders', 'events.b'] })
    await r.beat()
    const seen: string[] = []
    await broker.subscribe('events.*', (d) => void seen.push(d.topic), { group, assignment: 'sticky' })
    await r.settle()
    expect(r.digits()).toBe('01')
    await broker.createTopic('events.b', { partitions: 2 })
    await r.settle()
    await broker.publish('events.a', 1)
    await broker.publish('events.b', 1, { partition: 0 })
    await broker.publish('events.b', 2, { partition: 1 })
    await world.settle()
    await r.commit(0, 0)
    const described = broker.describeGroup(group)
    expect(described.cursors.map(({ topic }) => topic)).toEqual([
      'events.a',
      'events.b',
      'events.b',
      'orders',
    ])
    const mine = r.digits('events.b').length
    expect(mine).toBeLessThan(2)
    expect(seen).toEqual(['events.a', ...Array.from({ length: 2 - mine }, () => 'events.b')])
    await broker.deleteTopic('events.b')
    await broker.deleteTopic('events.a')
    await r.settle()
    expect(r.digits()).toBe('01')
  })
})

describe('offsets', () => {
  it('are one: where one side has committed, the other goes on', async () => {
    const { world, subscribe, remote, publish, seen } = await withTopic(1)
    await publish(2, 0)
    const a = await subscribe('a')
    await world.settle()
    const r = remote()
    await r.beat()
    await a.close()
    await r.settle()
    expect([r.digits(), r.committed(0)]).toEqual(['0', 2])
    await publish(3, 0)
    await subscribe('b')
    expect(await r.commit(0, 4)).toBe('NONE')
    await r.leave()
    await world.settle()
    expect(seen).toEqual(['a: 0/0', 'a: 0/1', 'b: 0/4'])
  })

  it('are committed by members in their epoch, by nobody who is none, and not where a subscriber reads', async () => {
    const { broker, subscribe, remote, publish } = await withTopic(2)
    await publish(5, 1)
    await subscribe('a')
    const r = remote()
    await r.beat()
    const { groups } = broker.parts
    expect(groups.checkCommit(group, { memberId: 'r', instanceId: null, generation: 1 })).toBe(
      'STALE_MEMBER_EPOCH',
    )
    expect(groups.checkCommit(group, NOBODY)).toBe('UNKNOWN_MEMBER_ID')
    expect(groups.checkCommit(group, { memberId: 'a', instanceId: null, generation: 2 })).toBe(
      'UNKNOWN_MEMBER_ID',
    )
    expect(await r.commit(0, 1)).toBe('HELD')
    expect(await r.commit(1, 3)).toBe('NONE')
    const { cursors } = broker.describeGroup(group)
    expect(cursors[1]).toMatchObject({ committed: 3, next: 3, lag: 2, inFlight: 0, owner: 'r' })
  })

  it('that a transaction has set aside are waited for before a subscriber reads on', async () => {
    const { world, broker, subscribe, remote, publish, seen } = await withTopic(1)
    await publish(4, 0)
    const r = remote()
    await r.beat()
    await broker.parts.groupOffsets.pending(7, group, [entry(broker, 'orders', 0, 3)])
    await subscribe('a')
    await r.leave()
    await world.settle()
    expect(seen).toEqual([])
    await broker.parts.groupOffsets.complete(7, true)
    await world.settle()
    expect(seen).toEqual(['a: 0/3'])
    expect(broker.parts.groups.modern(group)).toBeUndefined()
  })

  it('are not moved by a replay while members of the protocol are there', async () => {
    const { broker, subscribe, remote } = await withTopic(2)
    await subscribe('a')
    const r = remote()
    await r.beat()
    expect(await codeOf(broker.resetOffset('orders', group, 'latest'))).toBe('GROUP_NOT_EMPTY')
    await r.leave()
    await broker.resetOffset('orders', group, 'latest')
  })

  it('are waited for wherever they are committed', async () => {
    const { world, subscribe, remote, publish } = await withTopic(2)
    const a = await subscribe('a')
    const r = remote()
    await r.beat()
    await publish(2, 1)
    let isDrained = false
    const drained = a.drained().then(() => {
      isDrained = true
    })
    await world.settle()
    expect(isDrained).toBe(false)
    await r.commit(1, 2)
    await drained
  })
})

describe('a partition that is elsewhere', () => {
  it('is not handed out here, nor held, and is when it is back, from where retention is', async () => {
    const { world, broker, subscribe, remote, publish, seen } = await withTopic(2, { records: 4 })
    await subscribe('a')
    const r = remote()
    await r.beat()
    expect(broker.describeGroup(group).cursors.map(({ gating }) => gating)).toEqual([true, false])
    await publish(10, 1)
    await world.settle()
    expect(seen).toEqual([])
    expect(broker.describeGroup(group).cursors[1]).toMatchObject({ committed: 0, lag: 10 })
    expect(world.raised('dropped')).toEqual([])
    await r.leave()
    await world.settle()
    const { start } = broker.describe('orders').partitions[1] as { start: number }
    expect(start).toBeGreaterThan(0)
    expect(seen).toEqual(upTo(10 - start).map((i) => `a: 1/${start + i}`))
    expect(world.raised('dropped')).toMatchObject([{ partition: 1, count: start, reason: 'overtaken' }])
    expect(broker.describeGroup(group).cursors.map(({ gating }) => gating)).toEqual([true, true])
  })

  it('is not waited for by publishers when the last subscriber has gone', async () => {
    const { broker, subscribe, remote } = await withTopic(2)
    const a = await subscribe('a')
    const r = remote()
    await r.beat()
    await a.close()
    await r.settle()
    expect(r.digits()).toBe('01')
    expect(broker.describe('orders').readers).toEqual([])
    expect(broker.describeGroup(group)).toMatchObject({ kind: 'consumer', members: [{ id: 'r' }] })
  })

  it('takes along what came back here: its next owner begins at the head', async () => {
    const { topic, world, remote, publish } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, {
      group,
      assignment: 'range',
      ack: 'manual',
      order: 'none',
      concurrency: 3,
    })
    await publish(3, 1)
    await world.settle()
    hands.deliveries[1]?.ack()
    hands.deliveries[2]?.ack()
    hands.deliveries[0]?.nack({ delayMs: 60_000 })
    const r = remote()
    await r.beat()
    await r.beat()
    expect([r.has(1), r.committed(1)]).toEqual([true, 0])
    await r.leave()
    await world.settle()
    expect(hands.values).toEqual([0, 1, 2, 0, 1, 2])
    expect(hands.last.attempt).toBe(1)
  })
})

describe.each([
  ['drop-newest', 'here with 0, 1'],
  ['drop-oldest', 'here with 4, 5'],
] as const)('a subscriber with %s and a bound of its own', (overflow, what) => {
  it(`goes on by it where a partition comes back: ${what} of six`, async () => {
    const { world, subscribe, remote, publish, seen, broker } = await withTopic(2)
    await subscribe('a', { overflow, maxLag: { records: 2 } })
    const r = remote()
    await r.beat()
    await publish(6, 1)
    await world.settle()
    expect(broker.describeGroup(group).cursors[1]).toMatchObject({ committed: 0, lag: 6 })
    expect(world.raised('dropped')).toEqual([])
    await r.leave()
    await world.settle()
    const first = overflow === 'drop-newest' ? 0 : 4
    expect(seen).toEqual([`a: 1/${first}`, `a: 1/${first + 1}`])
    expect(world.raised('dropped')).toMatchObject([{ partition: 1, count: 4, reason: overflow }])
  })
})

it('at most once, what was handed out is behind the member that has the partition next', async () => {
  const { topic, world, remote, publish } = await withTopic(2)
  const hands = new Hands()
  await topic.subscribe(hands.take, {
    group,
    assignment: 'range',
    guarantee: 'at-most-once',
    from: 'earliest',
  })
  await publish(3, 1)
  await world.settle()
  const r = remote()
  await r.beat()
  await r.beat()
  expect([hands.values, r.digits(), r.committed(1)]).toEqual([[0, 1, 2], '1', 3])
})

describe('when one kind has left, the group is what it was', () => {
  it('a group of this process, whose generations go on', async () => {
    const { broker, world, subscribe, remote, owners } = await withTopic(2)
    await subscribe('a')
    const r = remote()
    await r.beat()
    await r.leave()
    expect(owners()).toEqual(['a', 'a'])
    expect(broker.parts.groups.modern(group)).toBeUndefined()
    await world.settle()
    const generations = world.raised('rebalance').map(({ generation }) => generation)
    expect(generations).toEqual([1, 2, 4])
    expect(world.raised('rebalance')[1]).toMatchObject({
      group,
      assignment: { a: [{ topic: 'orders', partition: 0 }], r: [{ topic: 'orders', partition: 1 }] },
    })
    expect(broker.describeGroup(group).generation).toBe(4)
    expect(await r.beat()).toMatchObject({ error: 'NONE', epoch: 5 })
  })

  it('a group of members of the protocol, whose epochs go on', async () => {
    const { broker, subscribe, remote } = await withTopic(2)
    const r = remote()
    await r.beat()
    const a = await subscribe('a')
    const b = await subscribe('b')
    await r.settle()
    await b.close()
    await a.unsubscribe()
    await r.settle()
    expect(r.digits()).toBe('01')
    expect(broker.parts.groups.modern(group)).toMatchObject({ state: 'Stable', epoch: r.epoch })
    await r.leave()
    expect(broker.parts.groups.modern(group)?.state).toBe('Empty')
    await broker.deleteGroup(group)
    expect(broker.listGroups()).toEqual([])
  })

  it('and in the end none, with nothing due', async () => {
    const { world, broker, subscribe, remote } = await withTopic(2)
    const r = remote()
    await r.beat()
    await subscribe('a')
    expect(await codeOf(broker.deleteGroup(group))).toBe('GROUP_NOT_EMPTY')
    await broker.close()
    expect(world.clock.pending).toBe(0)
    expect(await r.beat()).toMatchObject({ error: 'COORDINATOR_NOT_AVAILABLE' })
  })
})

describe('subscribers among themselves, with others there', () => {
  it('hand over without waiting for heartbeats', async () => {
    const { subscribe, remote, owners } = await withTopic(3)
    const a = await subscribe('a')
    const r = remote('x')
    await r.beat()
    expect(owners()).toEqual(['a', 'a', 'x'])
    await subscribe('b')
    expect(owners()).toEqual(['a', 'b', 'x'])
    await a.close()
    expect(owners()).toEqual(['b', 'b', 'x'])
  })

  it('keep a partition that one is asked to give up and is given back', async () => {
    const { topic, world, remote, publish, owners } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', group, assignment: 'range', ack: 'manual', concurrency: 2 })
    await publish(2, 1)
    await world.settle()
    const r = remote()
    await r.beat()
    await r.leave()
    expect(owners()).toEqual(['a', 'a'])
    expect(hands.last.ack()).toBe(true)
    await world.settle()
    expect(hands.values).toEqual([0, 1])
  })

  it('get new partitions, and those of a grown topic, at once', async () => {
    const { broker, subscribe, remote, owners } = await withTopic(2)
    await subscribe('a')
    const r = remote('x')
    await r.beat()
    await broker.alterTopic('orders', { partitions: 4 })
    await r.settle()
    expect(owners()).toEqual(['a', 'a', 'x', 'x'])
  })

  it('are told apart from members of the same id', async () => {
    const { broker, subscribe, remote } = await withTopic(2)
    await subscribe('same')
    const r = remote('same')
    await r.beat()
    expect(r.digits().length).toBe(1)
    const members = [...(broker.parts.groups.modern(group)?.members ?? [])]
    expect(members.map((member) => member instanceof LocalMember)).toEqual([false, true])
    await r.leave()
    expect(broker.describeGroup(group).members).toMatchObject([{ id: 'same' }])
  })
})
