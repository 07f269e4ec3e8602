import { describe, expect, it } from 'vitest'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

const OPEN = { ack: 'manual', ackTimeoutMs: 3_600_000 } as const

async function held(retention: object, options: SubscribeOptions = {}, partitions = 1) {
  const world = new World()
  const topic = await world.broker.createTopic('t', { retention, partitions })
  const hands = new Hands()
  const reader = await topic.subscribe(hands.take, {
    ...OPEN,
    id: 'slow',
    order: 'none',
    concurrency: 1_000,
    ...options,
  })
  /** Settles the `n` oldest that are in hand. */
  const settle = async (n: number): Promise<void> => {
    for (const delivery of hands.deliveries.splice(0, n)) delivery.ack()
    await world.settle()
  }
  const publish = async (n: number, partition = 0): Promise<void> => {
    for (const value of upTo(n)) await topic.publish(value, { partition })
    await world.settle()
  }
  const signals = () => [world.raised('pressure').length, world.raised('drain').length]
  return { world, topic, hands, reader, settle, publish, signals }
}

describe('topic.pressure', () => {
  it('is the share of retention that gating readers hold, by records', async () => {
    const { topic, publish, settle } = await held({ records: 10 })
    expect(topic.pressure).toBe(0)
    await publish(3)
    expect(topic.pressure).toBe(0.3)
    await publish(7)
    expect(topic.pressure).toBe(1)
    await settle(4)
    expect(topic.pressure).toBe(0.6)
    expect(topic.describe().pressure).toBe(0.6)
  })

  it('is the share by bytes where that is more, exactly those of the records held', async () => {
    const { world, topic, settle } = await held({ records: 1_000, bytes: 10_000 })
    for (const bytes of [3_000, 36, 36, 1_000])
      await topic.publish(new Uint8Array(bytes - 64 + (bytes < 64 ? 64 : 0)))
    await world.settle()
    expect(topic.pressure).toBeCloseTo((3_000 + 100 + 100 + 1_000) / 10_000)
    await settle(1)
    expect(topic.pressure).toBeCloseTo(0.12)
    await settle(2)
    expect(topic.pressure).toBeCloseTo(0.1)
    await settle(1)
    expect(topic.pressure).toBe(0)
  })

  it('is that of the fullest partition', async () => {
    const { topic, publish } = await held({ records: 10 }, {}, 3)
    await publish(2, 0)
    await publish(5, 1)
    expect(topic.pressure).toBe(0.5)
  })

  it('is of no concern to readers that drop', async () => {
    for (const options of [{ overflow: 'drop-oldest' }, { overflow: 'drop-newest' }] as const) {
      const { topic, publish, world } = await held({ records: 10 }, options)
      await publish(20)
      expect(topic.pressure).toBe(0)
      expect(world.raised('pressure')).toEqual([])
    }
  })

  it('counts those who wait over their limit, in number and in bytes', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', {
      retention: { records: 100 },
      maxWaiting: { records: 400, bytes: 100_000 },
    })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await topic.publish(0)
    void topic.publishAll(upTo(100).map((value) => ({ value }))).catch(() => undefined)
    expect(topic.pressure).toBeCloseTo((100 * 320) / 100_000)
    void topic.publishAll(upTo(100).map(() => ({ value: new Uint8Array(0) }))).catch(() => undefined)
    expect(topic.pressure).toBeCloseTo(0.5)
    await world.broker.close({ drainMs: 0 })
  })
})

describe('"pressure" and "drain"', () => {
  it('are raised at 0.8 and at 0.5, once per crossing', async () => {
    const { world, publish, settle, signals } = await held({ records: 100 })
    await publish(79)
    expect(signals()).toEqual([0, 0])
    await publish(1)
    expect(world.raised('pressure')).toEqual([{ topic: 't', pressure: 0.8 }])
    await publish(15)
    await settle(20)
    await publish(10)
    expect(signals()).toEqual([1, 0])
    await settle(34)
    expect(signals()).toEqual([1, 0])
    await settle(1)
    expect(world.raised('drain')).toEqual([{ topic: 't', pressure: 0.5 }])
    await settle(20)
    await publish(49)
    expect(signals()).toEqual([1, 1])
    await publish(1)
    expect(signals()).toEqual([2, 1])
  })

  it('are exact by bytes, also when a few large records follow many small ones', async () => {
    const { world, topic, settle, signals } = await held({ records: 100_000, bytes: 1_000_000 })
    for (const value of upTo(1_000)) topic.tryPublish(new Uint8Array(36), { key: String(value) })
    await world.settle()
    for (let left = 1_000; left > 0; left -= 100) await settle(100)
    for (const _ of upTo(3)) await topic.publish(new Uint8Array(199_936))
    expect(signals()).toEqual([0, 0])
    await topic.publish(new Uint8Array(199_936))
    await world.settle()
    expect(world.raised('pressure')).toEqual([{ topic: 't', pressure: 0.8 }])
  })

  it('are raised for a batch as for its records', async () => {
    const { world, topic } = await held({ records: 10, bytes: 1_000_000 })
    await topic.publishAll(upTo(9).map((value) => ({ value })))
    await world.settle()
    expect(world.raised('pressure')).toEqual([{ topic: 't', pressure: 0.9 }])
  })

  it('are raised for a topic, which has drained when the last of its partitions has', async () => {
    const { world, hands, publish, signals } = await held({ records: 10 }, {}, 2)
    await publish(8, 0)
    await publish(7, 1)
    expect(signals()).toEqual([1, 0])
    const of = (partition: number) => hands.deliveries.filter((each) => each.partition === partition)
    for (const delivery of of(0).slice(0, 5)) delivery.ack()
    await world.settle()
    expect(signals()).toEqual([1, 0])
    for (const delivery of of(1).slice(0, 2)) delivery.ack()
    await world.settle()
    expect(world.raised('drain')).toEqual([{ topic: 't', pressure: 0.5 }])
  })

  it('are raised for those who stay, when who held the gate has left before', async () => {
    const { world, topic, reader, publish } = await held({ records: 10 })
    const stays = new Hands()
    await topic.subscribe(stays.take, { ...OPEN, id: 'stays', order: 'none', concurrency: 100 })
    await publish(4)
    await reader.unsubscribe()
    await publish(4)
    expect(world.raised('pressure')).toEqual([{ topic: 't', pressure: 0.8 }])
    for (const delivery of stays.deliveries.splice(0, 3)) delivery.ack()
    await world.settle()
    expect(world.raised('drain')).toEqual([{ topic: 't', pressure: 0.5 }])
  })

  it('are raised once while several partitions are above the mark', async () => {
    const { hands, publish, signals, world } = await held({ records: 10 }, {}, 2)
    await publish(8, 0)
    await publish(8, 1)
    expect(signals()).toEqual([1, 0])
    for (const partition of [0, 1]) {
      expect(signals()).toEqual([1, 0])
      for (const each of hands.deliveries.filter((d) => d.partition === partition).slice(0, 3)) each.ack()
      await world.settle()
    }
    expect(signals()).toEqual([1, 1])
  })

  it('are raised when a reader comes, goes, or is moved back', async () => {
    const { world, topic, publish, settle, signals, reader } = await held({ records: 10 })
    await publish(9)
    await settle(9)
    expect(signals()).toEqual([1, 1])
    const late = await topic.subscribe(() => {}, { id: 'late', from: 'earliest', credit: 'manual' })
    await world.settle()
    expect(signals()).toEqual([2, 1])
    await late.unsubscribe()
    await world.settle()
    expect(signals()).toEqual([2, 2])
    await world.broker.resetOffset('t', 'slow', 'earliest')
    await world.settle()
    expect(signals()).toEqual([3, 2])
    await reader.unsubscribe()
    await world.settle()
    expect(signals()).toEqual([3, 3])
  })

  it('are raised when retention changes', async () => {
    const { world, publish, signals } = await held({ records: 100 })
    await publish(10)
    await world.broker.alterTopic('t', { retention: { records: 12 } })
    await world.settle()
    expect(signals()).toEqual([1, 0])
    await world.broker.alterTopic('t', { retention: { records: 20 } })
    await world.settle()
    expect(signals()).toEqual([1, 1])
  })
})

describe('"stalled"', () => {
  it('names reader and partition when publishers wait and nothing has settled for 5 s', async () => {
    const { world, topic, publish } = await held({ records: 3 }, {}, 2)
    await topic.subscribe(() => {}, { id: 'quick' })
    await publish(3, 1)
    const waiting = watch(topic.publish('waits', { partition: 1 }))
    await world.clock.advance(4_999)
    expect(world.raised('stalled')).toEqual([])
    await world.clock.advance(1)
    expect(world.raised('stalled')).toEqual([
      { topic: 't', partition: 1, reader: 'slow', reason: 'publishers-waiting' },
    ])
    expect(waiting.state).toBe('waiting')
  })

  it('counts from the last settle, whoever looked at the clock last', async () => {
    const { world, topic, publish, hands } = await held({ records: 3 })
    await publish(3)
    void topic.publishAll([{ value: 1 }, { value: 2 }, { value: 3 }]).catch(() => undefined)
    await world.clock.advance(3_000)
    hands.deliveries[0]?.ack()
    await world.clock.advance(4_999)
    expect(world.raised('stalled')).toEqual([])
    await world.clock.advance(1)
    expect(world.raised('stalled')).toHaveLength(1)
  })

  it('is raised again every 5 s, and no more once nobody waits', async () => {
    const { world, topic, publish, settle } = await held({ records: 1 })
    await publish(1)
    const waiting = watch(topic.publish(1))
    await world.clock.advance(10_000)
    expect(world.raised('stalled')).toHaveLength(2)
    await settle(1)
    expect(waiting.state).toBe('resolved')
    await world.clock.advance(60_000)
    expect(world.raised('stalled')).toHaveLength(2)
  })

  it('does not accuse the reader of a partition that has room for who waits for another one', async () => {
    const { world, topic, publish } = await held({ records: 2 }, {}, 2)
    await topic.subscribe(() => {}, { id: 'quick' })
    await publish(2, 0)
    const transaction = codeOf(
      world.broker.transaction((tx) => {
        tx.publish('t', 1, { partition: 0 })
        tx.publish('t', 1, { partition: 1 })
      }),
    )
    await world.clock.advance(6_000)
    expect(world.raised('stalled')).toMatchObject([{ partition: 0, reader: 'slow' }])
    await world.broker.close({ drainMs: 0 })
    expect(await transaction).toBe('CLOSED')
  })
})

describe('"dropped"', () => {
  it('is raised once for all that one turn dropped, with the range and the exact count', async () => {
    const { world, topic } = await held({ records: 4 }, { id: 'a', overflow: 'drop-oldest', concurrency: 1 })
    await topic.publish(0)
    await world.settle()
    for (const value of upTo(20)) topic.tryPublish(value)
    await world.settle()
    expect(world.raised('dropped')).toEqual([
      { topic: 't', partition: 0, reader: 'a', count: 16, from: 1, to: 17, reason: 'drop-oldest' },
    ])
    topic.tryPublish(1)
    await world.settle()
    expect(world.raised('dropped')[1]).toMatchObject({ count: 1, from: 17, to: 18 })
  })

  it('is raised per reader and partition', async () => {
    const { world, topic } = await held(
      { records: 2 },
      { id: 'a', overflow: 'drop-oldest', concurrency: 1 },
      2,
    )
    await topic.subscribe(new Hands().take, { ...OPEN, id: 'b', overflow: 'drop-newest' })
    for (const partition of [0, 1]) for (const value of upTo(4)) topic.tryPublish(value, { partition })
    await world.settle()
    const who = world
      .raised('dropped')
      .map(({ reader, partition, reason, count }) => [reader, partition, reason, count])
    expect(who.sort()).toEqual([
      ['a', 0, 'drop-oldest', 2],
      ['a', 1, 'drop-oldest', 2],
      ['b', 0, 'drop-newest', 2],
      ['b', 1, 'drop-newest', 2],
    ])
  })

  it('is logged once per episode, which ends when the reader is at the end again', async () => {
    const { world, publish, settle } = await held({ records: 2 }, { overflow: 'drop-oldest', concurrency: 1 })
    const lines = () =>
      world.logged.filter(
        ({ message }) =>
          message === 'records dropped: one line an episode, counters and events have them all',
      ).length
    await publish(5)
    await publish(5)
    await publish(5)
    expect(world.raised('dropped').length).toBeGreaterThan(1)
    expect(lines()).toBe(1)
    for (const _ of upTo(3)) await settle(1)
    await publish(5)
    expect(lines()).toBe(2)
  })
})
