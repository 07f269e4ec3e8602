/** Consumer groups: whole partitions to members, generations, and hand-overs that wait for what is in flight. */
import { describe, expect, it } from 'vitest'
import { Hands, upTo, World } from '../support/world.ts'

const group = 'workers'

async function withTopic(partitions: number) {
  const world = new World()
  const topic = await world.broker.createTopic<number>('orders', { partitions })
  const owners = () => world.broker.describeGroup(group).cursors.map((cursor) => cursor.owner)
  return { ...world, broker: world.broker, topic, owners }
}

describe('a consumer group', () => {
  it('gives every partition to exactly one member, by range', async () => {
    const { topic, owners } = await withTopic(4)
    await topic.subscribe(() => {}, { id: 'a', group, assignment: 'range' })
    expect(owners()).toEqual(['a', 'a', 'a', 'a'])
    await topic.subscribe(() => {}, { id: 'b', group })
    expect(owners()).toEqual(['a', 'a', 'b', 'b'])
  })

  it('gives them round-robin', async () => {
    const { topic, owners } = await withTopic(4)
    for (const id of ['a', 'b']) await topic.subscribe(() => {}, { id, group, assignment: 'round-robin' })
    expect(owners()).toEqual(['a', 'b', 'a', 'b'])
  })

  it('moves no more than it must, sticky', async () => {
    const { topic, owners } = await withTopic(6)
    await topic.subscribe(() => {}, { id: 'a', group, assignment: 'sticky' })
    const b = await topic.subscribe(() => {}, { id: 'b', group })
    const before = owners()
    expect(before.filter((owner) => owner === 'a')).toHaveLength(3)
    await topic.subscribe(() => {}, { id: 'c', group })
    const after = owners()
    expect(after.filter((owner, i) => owner !== before[i])).toHaveLength(2)
    await b.close()
    const last = owners()
    expect(last.filter((owner, i) => owner !== after[i] && after[i] !== 'b')).toHaveLength(0)
    expect(last).not.toContain('b')
  })

  it('keeps order within a partition, and leaves members beyond the partitions idle', async () => {
    const { topic, settle } = await withTopic(2)
    const seen: Record<string, number[]> = { a: [], b: [], c: [] }
    for (const id of ['a', 'b', 'c']) {
      await topic.subscribe((d) => void seen[id]?.push(d.value), { id, group, assignment: 'range' })
    }
    for (const i of upTo(10)) await topic.publish(i, { partition: i % 2 })
    await settle()
    expect(seen).toEqual({ a: [0, 2, 4, 6, 8], b: [1, 3, 5, 7, 9], c: [] })
  })

  it('raises the generation and says who owns what, on every change', async () => {
    const { broker, topic, raised, settle } = await withTopic(2)
    await topic.subscribe(() => {}, { id: 'a', group, assignment: 'range' })
    const b = await topic.subscribe(() => {}, { id: 'b', group })
    await b.close()
    await broker.alterTopic('orders', { partitions: 3 })
    await settle()
    const one = (partition: number) => ({ topic: 'orders', partition })
    expect(raised('rebalance')).toEqual([
      { group, generation: 1, assignment: { a: [one(0), one(1)] } },
      { group, generation: 2, assignment: { a: [one(0)], b: [one(1)] } },
      { group, generation: 3, assignment: { a: [one(0), one(1)] } },
      { group, generation: 4, assignment: { a: [one(0), one(1), one(2)] } },
    ])
    expect(broker.describeGroup(group).generation).toBe(4)
  })

  it('starts a revoked partition at its new owner once what is in flight has settled', async () => {
    const { topic, owners, settle } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', group, assignment: 'range', ack: 'manual', concurrency: 2 })
    for (const i of upTo(2)) await topic.publish(i, { partition: 1 })
    await settle()
    expect(hands.values).toEqual([0])
    const seen: number[] = []
    await topic.subscribe((d) => void seen.push(d.value), { id: 'b', group })
    await settle()
    expect([seen, owners()]).toEqual([[], ['a', null]])
    expect(hands.last.ack()).toBe(true)
    await settle()
    expect([seen, owners()]).toEqual([[1], ['a', 'b']])
  })

  it('starts it there also when what is in flight expires, and fences the old owner', async () => {
    const { topic, clock, settle } = await withTopic(2)
    const hands = new Hands()
    await topic.subscribe(hands.take, {
      id: 'a',
      group,
      assignment: 'range',
      ack: 'manual',
      ackTimeoutMs: 1000,
    })
    await topic.publish(5, { partition: 1 })
    await settle()
    const seen: string[] = []
    await topic.subscribe((d) => void seen.push(`${d.value} attempt ${d.attempt}`), { id: 'b', group })
    await clock.advance(1000)
    expect(seen).toEqual(['5 attempt 2'])
    expect(hands.last.ack()).toBe(false)
  })

  it('holds a partition back at a busy owner without holding the others', async () => {
    const { topic, settle } = await withTopic(2)
    const seen: number[] = []
    await topic.subscribe((d) => (d.partition === 0 ? new Promise(() => {}) : void seen.push(d.value)), {
      group,
      assignment: 'range',
      concurrency: 2,
    })
    for (const i of upTo(6)) await topic.publish(i, { partition: i % 2 })
    await settle()
    expect(seen).toEqual([1, 3, 5])
  })

  it('has one owner per partition when many members join at once', async () => {
    const { topic, owners } = await withTopic(5)
    await Promise.all(
      upTo(8).map((i) => topic.subscribe(() => {}, { id: `m${i}`, group, assignment: 'round-robin' })),
    )
    expect(new Set(owners()).size).toBe(5)
    expect(owners()).not.toContain(null)
  })

  it('gives a member without an id one that nobody chose', async () => {
    const { topic, broker, owners } = await withTopic(3)
    await topic.subscribe(() => {}, { id: 'member-1', group, assignment: 'range' })
    await topic.subscribe(() => {}, { group })
    await topic.subscribe(() => {}, { group })
    expect(new Set(broker.describeGroup(group).members.map(({ id }) => id)).size).toBe(3)
    expect(new Set(owners()).size).toBe(3)
  })

  it('gives partitions of a deleted topic to nobody and ends who read only that', async () => {
    const { broker, topic } = await withTopic(2)
    const subscription = await topic.subscribe(() => {}, { id: 'a', group, assignment: 'range' })
    await broker.deleteTopic('orders')
    await subscription.closed
    expect(broker.listGroups()).toEqual([])
  })
})
