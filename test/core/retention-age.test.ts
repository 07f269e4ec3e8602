/** Retention by age beside readers that hold the log. */
import { describe, expect, it, vi } from 'vitest'
import { Hands, World } from '../support/world.ts'

async function aMinute(world: World): Promise<() => number | undefined> {
  await world.broker.createTopic('t', { retention: { ageMs: 60_000 } })
  return () => world.broker.describe('t').partitions[0]?.start
}

describe('retention by age', () => {
  it('evicts what a reader that holds the log has settled, without waiting for the log to be full', async () => {
    const world = new World()
    const start = await aMinute(world)
    await world.broker.subscribe('t', () => {}, { id: 'r' })
    for (const value of [0, 1, 2]) await world.broker.publish('t', value)
    await world.clock.advance(59_000)
    await world.broker.publish('t', 3)
    await world.settle()
    expect(start()).toBe(0)
    await world.clock.advance(7_000)
    expect(start()).toBe(3)
  })

  it('happens on its own, when nobody looks and nothing is published', async () => {
    const world = new World()
    await aMinute(world)
    await world.broker.subscribe('t', () => {}, { credit: 'manual' })
    await world.broker.publish('t', 0)
    await world.clock.advance(67_000)
    expect(world.raised('dropped')).toMatchObject([{ count: 1, from: 0, to: 1, reason: 'drop-oldest' }])
  })

  it('keeps what such a reader has not settled, however old, until it has', async () => {
    const world = new World()
    const start = await aMinute(world)
    const hands = new Hands()
    await world.broker.subscribe('t', hands.take, { id: 'r', ack: 'manual', ackTimeoutMs: 1_000_000 })
    await world.broker.publish('t', 0)
    await world.clock.advance(600_000)
    expect(start()).toBe(0)
    hands.last.ack()
    expect(start()).toBe(1)
  })

  it('applies to what is there when it is lowered', async () => {
    const world = new World()
    const start = await aMinute(world)
    await world.broker.subscribe('t', () => {}, { id: 'r' })
    await world.broker.publish('t', 0)
    await world.clock.advance(10_000)
    await world.broker.alterTopic('t', { retention: { ageMs: 5_000 } })
    expect(start()).toBe(1)
  })

  it('of a millisecond is looked at 100 times a second while records come, and once a second while none do', async () => {
    const world = new World()
    await world.broker.createTopic('t', { retention: { ageMs: 1 } })
    const topic = world.broker.parts.topics.require('t')
    const expire = vi.spyOn(topic, 'expire')
    await world.clock.advance(60_000)
    expect(expire.mock.calls.length).toBeLessThanOrEqual(20 + 60)
    await world.broker.publish('t', 0)
    await world.clock.advance(1_000)
    expect(world.broker.describe('t').partitions[0]?.start).toBe(1)
    expire.mockClear()
    for (let ms = 0; ms < 1_000; ms += 10) {
      await world.broker.publish('t', ms)
      await world.clock.advance(10)
    }
    expect(expire.mock.calls.length).toBeGreaterThan(50)
    expect(world.broker.describe('t').partitions[0]?.start).toBeGreaterThan(50)
  })

  it('of a millisecond costs little in very many topics that are idle', async () => {
    const world = new World()
    for (let i = 0; i < 1_000; i++) await world.broker.createTopic(`t${i}`, { retention: { ageMs: 1 } })
    await world.clock.advance(1_000)
    let looks = 0
    for (const topic of world.broker.parts.topics.list()) {
      vi.spyOn(topic, 'expire').mockImplementation(() => void looks++)
    }
    await world.clock.advance(10_000)
    expect(looks).toBeLessThanOrEqual(10 * 1_000)
    expect(looks).toBeGreaterThan(9 * 1_000)
  })

  it('is as exact as ever where an age is long, however many looks find nothing', async () => {
    const world = new World()
    const start = await aMinute(world)
    await world.clock.advance(3_600_000)
    await world.broker.publish('t', 0)
    await world.clock.advance(67_000)
    expect(start()).toBe(1)
  })

  it('is looked at less often in a topic of very many partitions, whose looks take longer', async () => {
    const world = new World()
    await world.broker.createTopic('t', { retention: { ageMs: 1 }, partitions: 5_000 })
    const expire = vi.spyOn(world.broker.parts.topics.require('t'), 'expire')
    await world.clock.advance(5_000)
    expect(expire.mock.calls.length).toBeLessThanOrEqual(10)
  })
})
