/** Between a call and its effect, the world may move: what was looked up is looked up again, what ended lets go. */
import { describe, expect, it } from 'vitest'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

const TOPIC = { retention: { records: 2 } }

describe('a position that retention takes while it is looked up', () => {
  it("is the earliest there is by then, for resetOffset(…, 'earliest')", async () => {
    const { broker, raised, settle } = new World()
    await broker.createTopic('orders', TOPIC)
    const seen: unknown[] = []
    await broker.subscribe('orders', (d) => void seen.push(d.value), { id: 'alice', from: 'earliest' })
    await broker.publishAll('orders', [{ value: 0 }, { value: 1 }])
    await settle()
    const reset = broker.resetOffset('orders', 'alice', 'earliest')
    for (const value of [2, 3, 4]) broker.tryPublish('orders', value)
    await reset
    await settle()
    expect(broker.describe('orders').partitions[0]?.start).toBe(2)
    expect(seen.slice(2)).toEqual([2, 3, 2, 3])
    expect(raised('dropped')).toEqual([])
  })

  it('is out of range, for an offset', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders', TOPIC)
    await broker.subscribe('orders', () => {}, { id: 'alice', from: 'earliest' })
    await broker.publishAll('orders', [{ value: 0 }, { value: 1 }])
    await settle()
    const reset = codeOf(broker.resetOffset('orders', 'alice', 0))
    broker.tryPublish('orders', 2)
    expect(await reset).toBe('OFFSET_OUT_OF_RANGE')
  })

  it('is the earliest there is by then, for a reader that subscribes', async () => {
    const { broker, raised, settle } = new World()
    await broker.createTopic('orders', TOPIC)
    await broker.publishAll('orders', [{ value: 0 }, { value: 1 }])
    const seen: unknown[] = []
    const take = (d: { value: unknown }): void => void seen.push(d.value)
    const subscribed = broker.subscribe('orders', take, { id: 'alice', from: 'earliest' })
    for (const value of upTo(3)) broker.tryPublish('orders', value + 2)
    await subscribed
    await settle()
    expect(seen).toEqual([3, 4])
    expect(raised('dropped')).toEqual([])
  })
})

describe('a record that comes while a date is looked up', () => {
  it('comes after the date', async () => {
    const { broker, clock, settle } = new World()
    await broker.createTopic('orders')
    const seen: unknown[] = []
    const alice = await broker.subscribe('orders', (d) => void seen.push(d.value), { id: 'alice' })
    await broker.publish('orders', 0)
    await settle()
    await clock.advance(10)
    alice.pause()
    const reset = broker.resetOffset('orders', 'alice', new Date(clock.now()))
    broker.tryPublish('orders', 1)
    await reset
    alice.resume()
    await settle()
    expect(seen).toEqual([0, 1])
  })
})

describe('a handler that runs on after its topic was deleted', () => {
  it.each(['before', 'after'])('is nobody to wait for, if it settled %s', async (when) => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    let finish: () => void = () => {}
    await broker.subscribe('orders', (d) => {
      if (when === 'before') d.ack()
      return new Promise<void>((resolve) => {
        finish = resolve
      })
    })
    await broker.publish('orders', 1)
    await settle()
    await broker.deleteTopic('orders')
    await broker.idle()
    finish()
    await broker.idle()
  })
})

describe('a partition that goes to another member and back while records of it are in flight', () => {
  it('goes on at once', async () => {
    const { broker, raised, settle } = new World()
    const group = { group: 'g', assignment: 'round-robin', order: 'none', ack: 'manual' } as const
    for (const topic of ['a', 'b']) await broker.createTopic(topic)
    const hands = new Hands()
    await broker.subscribe('*', hands.take, { ...group, id: 'm1', concurrency: 9 })
    await broker.publish('b', 1)
    await settle()
    const second = await broker.subscribe('*', new Hands().take, { ...group, id: 'm2' })
    await settle()
    expect(raised('rebalance').at(-1)?.assignment).toEqual({
      m1: [{ topic: 'a', partition: 0 }],
      m2: [{ topic: 'b', partition: 0 }],
    })
    await second.close()
    await broker.publish('b', 2)
    await settle()
    expect(hands.values).toEqual([1, 2])
  })
})

describe('a reader that comes back with other settings while publishers wait for it', () => {
  it('loses nothing to them', async () => {
    const { broker, raised, settle } = new World()
    await broker.createTopic('orders', { retention: { records: 2 } })
    const slow = { id: 'slow', ack: 'manual', from: 'earliest' } as const
    const first = await broker.subscribe('orders', () => {}, slow)
    await broker.publishAll('orders', [{ value: 0 }, { value: 1 }])
    const waiting = watch(broker.publish('orders', 2))
    await first.close({ drainMs: 0 })
    const hands = new Hands()
    await broker.subscribe('orders', hands.take, { ...slow, retry: { attempts: 2 } })
    await settle()
    expect(hands.values).toEqual([0])
    expect(waiting.state).toBe('waiting')
    while (hands.last.ack()) await settle()
    expect(hands.values).toEqual([0, 1, 2])
    expect(raised('dropped')).toEqual([])
  })
})

describe('an empty group that turns to a topic it does not know', () => {
  it.each([
    [{}, [2]],
    [{ from: 'earliest' }, [0, 1, 2]],
    [{ from: 1 }, [1, 2]],
  ] as const)('starts there as it asks to: %j', async (options, expected) => {
    const { broker, settle } = new World()
    const seen: unknown[] = []
    const take = (d: { value: unknown }): void => void seen.push(d.value)
    await broker.createTopic('known')
    await broker.createTopic('other')
    const member = await broker.subscribe('known', take, { group: 'g' })
    await member.close()
    await broker.publishAll('other', [{ value: 0 }, { value: 1 }])
    await broker.subscribe('other', take, { group: 'g', ...options })
    await broker.publish('other', 2)
    await settle()
    expect(seen).toEqual(expected)
  })
})
