/** Retention by age beside readers that hold the log. */
import { describe, expect, it } from 'vitest'
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
})
