/** What may be in flight at once: the three orders, their defaults, and what a record that is not done holds back. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { DeliveryBatch } from '../../src/model/delivery.ts'
import { MAX_WINDOW } from '../../src/model/limits.ts'
import type { DeliveryStrategy, MemberView, SubscribeOptions } from '../../src/model/options.ts'
import { Hands, upTo, World } from '../support/world.ts'

async function orders(partitions = 1) {
  const world = new World()
  const topic = await world.broker.createTopic<string>('orders', { partitions })
  return { world, topic }
}

/** A handler whose calls end when they are told to, by value. */
class Slow {
  readonly started: string[] = []
  readonly #ends = new Map<string, () => void>()

  readonly handle = (d: { value: unknown }): Promise<void> => {
    this.started.push(String(d.value))
    return new Promise((resolve) => this.#ends.set(String(d.value), resolve))
  }

  finish(value: string): void {
    this.#ends.get(value)?.()
  }
}

describe('the default order', () => {
  const defaults: [string, SubscribeOptions, string][] = [
    ['a broadcast reader at concurrency 1', { id: 'r' }, 'partition'],
    ['a broadcast reader of several at once', { id: 'r', concurrency: 2 }, 'key'],
    ['a shared group', { group: 'g' }, 'key'],
    ['a shared group of several at once', { group: 'g', concurrency: 2 }, 'key'],
    ['a consumer group', { group: 'g', assignment: 'range' }, 'partition'],
    [
      'a consumer group of several at once',
      { group: 'g', assignment: 'sticky', concurrency: 9 },
      'partition',
    ],
    ['a reader that says otherwise', { group: 'g', order: 'none' }, 'none'],
  ]
  for (const [name, options, order] of defaults) {
    it(`of ${name} is by ${order}`, async () => {
      const { topic } = await orders()
      expect((await topic.subscribe(() => {}, options)).describe().order).toBe(order)
    })
  }

  it('is the same for later members, whatever their concurrency', async () => {
    const { topic } = await orders()
    const options = { group: 'g', assignment: 'round-robin' } as const
    await topic.subscribe(() => {}, options)
    const later = await topic.subscribe(() => {}, { ...options, concurrency: 8 })
    expect(later.describe().order).toBe('partition')
  })
})

describe('order by partition', () => {
  it('has one unsettled delivery per partition, over all members and places', async () => {
    const { world, topic } = await orders(2)
    const slow = new Slow()
    const options = { group: 'g', order: 'partition', concurrency: 9 } as const
    await topic.subscribe(slow.handle, { ...options, id: 'one' })
    await topic.subscribe(slow.handle, { ...options, id: 'two' })
    for (const partition of [0, 1]) {
      for (const value of ['a', 'b']) await topic.publish(`${value}${partition}`, { partition })
    }
    await world.settle()
    expect(slow.started.slice().sort()).toEqual(['a0', 'a1'])
    slow.finish('a1')
    await world.settle()
    expect(slow.started.slice().sort()).toEqual(['a0', 'a1', 'b1'])
  })

  it('waits for a record that is tried again, and for its dead letter', async () => {
    const { world, topic } = await orders()
    const seen: string[] = []
    await topic.subscribe(
      (d) => {
        seen.push(`${d.value}${d.attempt}`)
        if (d.value === 'a') throw new Error('no')
      },
      { id: 'reader', retry: { attempts: 3, delayMs: 1_000, jitter: 0 } },
    )
    await topic.publish('a')
    await topic.publish('b')
    await world.clock.advance(1_000)
    expect(seen).toEqual(['a1', 'a2'])
    await world.clock.advance(1_000)
    expect(seen).toEqual(['a1', 'a2', 'a3', 'b1'])
  })
})

describe('order by key', () => {
  it('has one unsettled delivery per partition and key, and keyless ones are free', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    await topic.subscribe(slow.handle, { id: 'reader', order: 'key', concurrency: 9 })
    const records = [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
      ['a3', 'a'],
      ['b2', 'b'],
      ['x', null],
      ['y', null],
    ] as const
    for (const [value, key] of records) await topic.publish(value, { key })
    await world.settle()
    expect(slow.started).toEqual(['a1', 'b1', 'x', 'y'])
    slow.finish('a1')
    await world.settle()
    expect(slow.started.slice(4)).toEqual(['a2'])
    slow.finish('b1')
    slow.finish('a2')
    await world.settle()
    expect(slow.started.slice(5).sort()).toEqual(['a3', 'b2'])
  })

  it('holds over all members of a group', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    for (const id of ['one', 'two', 'three']) await topic.subscribe(slow.handle, { group: 'g', id })
    for (const value of ['a1', 'a2', 'a3']) await topic.publish(value, { key: 'a' })
    await topic.publish('b1', { key: 'b' })
    await world.settle()
    expect(slow.started).toEqual(['a1', 'b1'])
  })

  it('lets a failing record hold back later records of its own key, and nothing else', async () => {
    const { world, topic } = await orders()
    const seen: string[] = []
    await topic.subscribe(
      (d) => {
        seen.push(`${d.value}${d.attempt}`)
        if (d.value === 'bad') throw new Error('no')
      },
      { id: 'reader', order: 'key', retry: { attempts: 2, delayMs: 1_000, jitter: 0 } },
    )
    const records = [
      ['bad', 'a'],
      ['behind', 'a'],
      ['other', 'b'],
      ['free', null],
    ] as const
    for (const [value, key] of records) await topic.publish(value, { key })
    await world.settle()
    expect(seen).toEqual(['bad1', 'other1', 'free1'])
    await world.clock.advance(1_000)
    expect(seen).toEqual(['bad1', 'other1', 'free1', 'bad2', 'behind1'])
  })

  it('keeps the order of a key over nacks, expiries and leaves', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const options = { group: 'g', ack: 'manual', ackTimeoutMs: 1_000, retry: { delayMs: 0 } } as const
    await topic.subscribe(hands.take, { ...options, id: 'stays', concurrency: 9 })
    const leaver = await topic.subscribe(hands.take, { ...options, id: 'leaves', concurrency: 9 })
    for (const value of ['a1', 'a2', 'a3']) await topic.publish(value, { key: 'a' })
    await world.settle()
    expect(hands.values).toEqual(['a1'])
    hands.last.nack()
    await world.settle()
    expect(hands.values).toEqual(['a1', 'a1'])
    await world.clock.advance(1_000)
    expect(hands.values).toEqual(['a1', 'a1', 'a1'])
    await leaver.close({ drainMs: 0 })
    await world.settle()
    while (hands.last.ack()) await world.settle()
    expect(hands.values.filter((value, i) => value !== hands.values[i - 1])).toEqual(['a1', 'a2', 'a3'])
  })

  it('holds although the handler ended its subscription before it answered', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    const options = { group: 'g', strategy: 'least-in-flight' } as const
    const leaving: Subscription = await topic.subscribe(
      (d) => {
        void leaving.unsubscribe()
        return slow.handle(d)
      },
      { ...options, id: 'leaves' },
    )
    await topic.subscribe(slow.handle, { ...options, id: 'stays' })
    await topic.publish('a1', { key: 'a' })
    await topic.publish('a2', { key: 'a' })
    await world.settle()
    expect(slow.started).toEqual(['a1'])
    slow.finish('a1')
    await world.settle()
    expect(slow.started).toEqual(['a1', 'a2'])
  })

  it('also holds at most once', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    const options = { order: 'key', concurrency: 9, guarantee: 'at-most-once' } as const
    await topic.subscribe(slow.handle, { id: 'reader', ...options })
    for (const value of ['a1', 'a2']) await topic.publish(value, { key: 'a' })
    await world.settle()
    expect(slow.started).toEqual(['a1'])
    slow.finish('a1')
    await world.settle()
    expect(slow.started).toEqual(['a1', 'a2'])
  })
})

describe('a batch whose records settle one by one', () => {
  const options = { batch: 3, ack: 'manual', concurrency: 2, retry: { delayMs: 0 } } as const

  it.each(['partition', 'key'] as const)(
    'has nothing of its %s beside it: what came back waits until the last one has ended',
    async (order) => {
      const { world, topic } = await orders()
      await topic.publishAll(['a', 'b', 'c', 'd'].map((value) => ({ value, key: 'k' })))
      const batches: DeliveryBatch<string>[] = []
      await topic.subscribe((batch) => void batches.push(batch), { ...options, order, from: 'earliest' })
      await world.settle()
      const values = () => batches.map((batch) => batch.deliveries.map(({ value }) => value).join(''))
      const [first] = batches
      first?.deliveries[0]?.nack()
      await world.settle()
      expect(values()).toEqual(['abc'])
      first?.deliveries[1]?.ack()
      await world.settle()
      expect(values()).toEqual(['abc'])
      first?.deliveries[2]?.nack({ delayMs: 60_000 })
      await world.settle()
      expect(values()).toEqual(['abc', 'a'])
    },
  )

  it.each(['partition', 'key'] as const)(
    'goes on with what came back when the last one is acked, or expires (%s)',
    async (order) => {
      for (const last of ['ack', 'expire']) {
        const { world, topic } = await orders()
        await topic.publishAll(['a', 'b', 'c'].map((value) => ({ value, key: 'k' })))
        const batches: DeliveryBatch<string>[] = []
        await topic.subscribe((batch) => void batches.push(batch), { ...options, order, from: 'earliest' })
        await world.settle()
        const [first] = batches
        first?.deliveries[0]?.nack()
        first?.deliveries[1]?.nack()
        await world.settle()
        if (last === 'ack') first?.deliveries[2]?.ack()
        else await world.clock.advance(30_000)
        await world.settle()
        const again = batches.slice(1).flatMap((batch) => batch.deliveries.map(({ value }) => value))
        expect([last, again[0]]).toEqual([last, 'a'])
        for (const _ of upTo(3)) {
          for (const batch of batches) batch.ack()
          await world.settle()
        }
        await world.broker.idle()
        expect(world.broker.describe('orders').readers[0]?.cursors[0]?.lag).toBe(0)
      }
    },
  )
})

describe('no order', () => {
  it('has as much in flight as there are places, whatever fails', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    await topic.subscribe(slow.handle, { id: 'reader', order: 'none', concurrency: 3 })
    for (const value of ['a', 'b', 'c', 'd']) await topic.publish(value, { key: 'same' })
    await world.settle()
    expect(slow.started).toEqual(['a', 'b', 'c'])
    slow.finish('b')
    await world.settle()
    expect(slow.started).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('a record that the strategy set aside', () => {
  it('is asked for again when a delivery has ended, and is dropped like any other that waits', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    const strategy: DeliveryStrategy = {
      select: (d, free) => (d.value === 'held' && slow.started.length < 3 ? 'hold' : (free[0] as MemberView)),
    }
    const options = { group: 'g', order: 'none', strategy, overflow: 'drop-oldest' } as const
    const one = await topic.subscribe(slow.handle, {
      ...options,
      maxLag: { records: 4 },
      id: 'one',
      concurrency: 2,
    })
    await topic.subscribe(slow.handle, { ...options, id: 'two', concurrency: 2 })
    await topic.publish('held')
    await topic.publish('a')
    await world.settle()
    expect(slow.started).toEqual(['a'])
    slow.finish('a')
    await world.settle()
    expect(slow.started).toEqual(['a'])
    for (const value of ['b', 'c', 'd', 'e']) await topic.publish(value)
    await world.settle()
    expect(slow.started).toEqual(['a', 'b', 'c', 'd', 'e'])
    slow.finish('b')
    await world.settle()
    expect(slow.started).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(one.describe().counters).toMatchObject({ dropped: 1, delivered: 5 })
  })
})

describe('concurrency', () => {
  it('counts what a member has in hand over all its partitions', async () => {
    const { world, topic } = await orders(4)
    const slow = new Slow()
    const sub = await topic.subscribe(slow.handle, { id: 'reader', order: 'none', concurrency: 3 })
    for (const partition of upTo(4)) await topic.publish(`p${partition}`, { partition })
    await world.settle()
    expect(slow.started).toHaveLength(3)
    expect(sub.describe().member.inFlight).toBe(3)
    slow.finish(slow.started[0] as string)
    await world.settle()
    expect(slow.started).toHaveLength(4)
  })

  it('is shared fairly by partitions that always have more', async () => {
    const { world, topic } = await orders(3)
    const counts = [0, 0, 0]
    await topic.subscribe(
      async (d) => {
        counts[d.partition] = (counts[d.partition] as number) + 1
      },
      { id: 'reader', from: 'earliest' },
    )
    for (const value of upTo(300)) topic.tryPublish(`${value}`, { partition: value % 3 })
    await world.broker.idle()
    expect(counts).toEqual([100, 100, 100])
  })

  it('lets no partition starve behind one that is served within the call', async () => {
    const { world, topic } = await orders(2)
    const slow = new Slow()
    const seen: string[] = []
    await topic.subscribe(
      (d) => {
        if (d.value === 'slow') return slow.handle(d)
        seen.push(d.value)
        // It publishes the next one itself: this partition is never at its end.
        if (d.partition === 0 && seen.length < 5_000) topic.tryPublish('more', { partition: 0 })
        return undefined
      },
      { id: 'reader', order: 'none' },
    )
    await topic.publish('slow', { partition: 0 })
    await world.settle()
    await topic.publish('starving', { partition: 1 })
    await topic.publish('more', { partition: 0 })
    await world.settle()
    slow.finish('slow')
    await world.broker.idle()
    expect(seen.indexOf('starving')).toBeGreaterThanOrEqual(0)
    expect(seen.indexOf('starving')).toBeLessThan(1_000)
  })
})

describe('the window of a reader', () => {
  it(`stops the partition ${MAX_WINDOW.toLocaleString('en')} records beyond its oldest unsettled one, until that settles`, async () => {
    const { world, topic } = await orders(2)
    const slow = new Slow()
    let fast = 0
    const sub = await topic.subscribe(
      (d) => {
        if (d.value === 'slow') return slow.handle(d)
        fast++
        return undefined
      },
      { id: 'reader', order: 'none', concurrency: 2 },
    )
    await topic.publish('slow', { partition: 0 })
    for (const _ of upTo(MAX_WINDOW + 100)) topic.tryPublish('fast', { partition: 0 })
    for (const _ of upTo(50)) topic.tryPublish('fast', { partition: 1 })
    await world.settle()
    expect(fast).toBe(MAX_WINDOW - 1 + 50)
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 0, next: MAX_WINDOW })
    slow.finish('slow')
    await world.broker.idle()
    expect(fast).toBe(MAX_WINDOW + 100 + 50)
    expect(sub.describe().cursors[0]?.lag).toBe(0)
  })

  it('counts what is held back by its key, so that a stuck key is bounded too', async () => {
    const { world, topic } = await orders()
    const slow = new Slow()
    const sub = await topic.subscribe(slow.handle, { id: 'reader', order: 'key', concurrency: 2 })
    for (const i of upTo(MAX_WINDOW + 100)) topic.tryPublish(`${i}`, { key: 'k' })
    await world.settle()
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 0, next: MAX_WINDOW, inFlight: 1 })
  })
})
