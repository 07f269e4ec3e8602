/** Deadlines: what expires, when, to whom it goes, and what the handler of a delivery that is gone still can do. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import { Hands, World } from '../support/world.ts'

async function orders() {
  const world = new World()
  const topic = await world.broker.createTopic<string>('orders')
  return { world, topic }
}

/** A handler that never settles, and what it was given. */
function never(): { taken: Delivery[]; take: (delivery: Delivery) => Promise<void> } {
  const taken: Delivery[] = []
  return {
    taken,
    take: (delivery) => {
      taken.push(delivery)
      return new Promise(() => {})
    },
  }
}

const values = (deliveries: readonly Delivery[]): unknown[] => deliveries.map((d) => d.value)

describe('expiry', () => {
  for (const ack of ['auto', 'manual'] as const) {
    it(`comes after 30 s by default, with ${ack} acks`, async () => {
      const { world, topic } = await orders()
      const hands = new Hands()
      const handler = (d: Delivery): unknown => {
        hands.take(d)
        return ack === 'auto' ? new Promise(() => {}) : undefined
      }
      const sub = await topic.subscribe(handler, { id: 'reader', ack, concurrency: 2 })
      await topic.publish('a')
      await world.clock.advance(29_999)
      expect(hands.deliveries).toHaveLength(1)
      await world.clock.advance(1)
      expect(hands.deliveries.map((d) => [d.attempt, d.redelivered])).toEqual([
        [1, false],
        [2, true],
      ])
      expect(sub.describe().counters).toMatchObject({ expired: 1, delivered: 2, redelivered: 1 })
    })
  }

  it('is measured on monotonic time: a wall clock that jumps expires nothing and saves nothing', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', ackTimeoutMs: 1_000 })
    await topic.publish('a')
    await world.settle()
    world.clock.setWall(world.clock.now() + 86_400_000)
    await world.clock.advance(999)
    world.clock.setWall(0)
    expect(hands.deliveries).toHaveLength(1)
    await world.clock.advance(1)
    expect(hands.deliveries).toHaveLength(2)
  })

  it('aborts the signal of that delivery, with a reason, and of no other', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    const signals: AbortSignal[] = []
    const handler = (d: Delivery): unknown => {
      signals.push(d.signal)
      return take(d)
    }
    await topic.subscribe(handler, { id: 'reader', ackTimeoutMs: 1_000, concurrency: 3 })
    await topic.publish('a')
    await world.clock.advance(500)
    await topic.publish('b')
    await world.clock.advance(500)
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false, false])
    expect(signals[0]?.reason).toMatchObject({ name: 'AbortError', message: 'not settled within 1000 ms' })
    expect(values(taken)).toEqual(['a', 'b', 'a'])
  })

  it('is told to a handler that asks for its signal afterwards', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    await topic.subscribe(take, { id: 'reader', ackTimeoutMs: 1_000, retry: { attempts: 1 } })
    await topic.publish('a')
    await world.clock.advance(1_000)
    expect(taken[0]?.signal.aborted).toBe(true)
    expect(taken[0]?.signal.reason).toMatchObject({ message: 'not settled within 1000 ms' })
  })

  it('runs the listeners of a signal after everything is settled, so that they may do anything', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    const sub = await topic.subscribe(
      (d) => {
        d.signal.addEventListener('abort', () => void sub.unsubscribe())
        return take(d)
      },
      { id: 'reader', ackTimeoutMs: 1_000, concurrency: 4 },
    )
    await topic.publish('a')
    await topic.publish('b')
    await world.clock.advance(1_000)
    await sub.closed
    expect(world.broker.describe('orders').readers).toEqual([])
    await world.broker.idle()
    expect(taken.length).toBeGreaterThanOrEqual(2)
  })

  it('gives the record to another member where there is one', async () => {
    const { world, topic } = await orders()
    const stuck = never()
    const well = new Hands()
    const options = { group: 'g', ackTimeoutMs: 1_000 }
    await topic.subscribe(stuck.take, { ...options, id: 'stuck', concurrency: 9 })
    await topic.subscribe((d) => well.take(d), { ...options, id: 'well' })
    for (const value of ['a', 'b', 'c', 'd']) await topic.publish(value)
    await world.clock.advance(1_000)
    expect(values(stuck.taken)).toEqual(['a', 'c'])
    expect(well.values.slice().sort()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('gives the record to another member although its key belongs to the one that hung', async () => {
    const { world, topic } = await orders()
    const seen: string[] = []
    for (const id of ['one', 'two']) {
      await topic.subscribe(
        (d) => {
          seen.push(`${id} ${d.attempt}`)
          return d.attempt === 1 ? new Promise(() => {}) : undefined
        },
        { group: 'g', id, strategy: 'sticky-key', ackTimeoutMs: 1_000 },
      )
    }
    await topic.publish('a', { key: 'k' })
    await world.clock.advance(1_000)
    await world.broker.idle()
    const [first, second] = seen.map((line) => line.split(' ')[0])
    expect(seen.map((line) => line.split(' ')[1])).toEqual(['1', '2'])
    expect(second).not.toBe(first)
  })

  it('waits for another member that is busy rather than asking the one that hung again', async () => {
    const { world, topic } = await orders()
    const seen: string[] = []
    const letGo: (() => void)[] = []
    const options = { group: 'g', order: 'none' as const }
    const hangs = (d: Delivery): unknown => {
      seen.push(`hangs ${d.value}`)
      return new Promise(() => {})
    }
    const busy = (d: Delivery): unknown => {
      seen.push(`busy ${d.value}`)
      return new Promise<void>((resolve) => letGo.push(resolve))
    }
    await topic.subscribe(hangs, { ...options, id: 'hangs', concurrency: 9, ackTimeoutMs: 1_000 })
    await topic.subscribe(busy, { ...options, id: 'busy', ackTimeoutMs: 60_000 })
    await topic.publish('a')
    await topic.publish('b')
    await world.clock.advance(1_000)
    expect(seen).toEqual(['hangs a', 'busy b'])
    letGo[0]?.()
    await world.settle()
    expect(seen).toEqual(['hangs a', 'busy b', 'busy a'])
  })

  it('drops the record where its reader has been passed by its overflow meanwhile', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    const sub = await topic.subscribe(take, {
      id: 'reader',
      overflow: 'drop-oldest',
      maxLag: { records: 1 },
      ackTimeoutMs: 1_000,
      concurrency: 9,
      order: 'none',
    })
    for (const value of ['a', 'b', 'c']) await topic.publish(value)
    await world.clock.advance(1_000)
    expect(values(taken)).toEqual(['a', 'b', 'c', 'c'])
    expect(sub.describe().counters).toMatchObject({ expired: 3, dropped: 2, delivered: 4 })
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 2, inFlight: 1 })
  })

  it('costs one timer, however many deliveries are in hand, and none when all are settled in time', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const idle = world.clock.pending
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', order: 'none', concurrency: 100 })
    for (const _ of Array(100)) await topic.publish('a')
    await world.settle()
    expect(hands.deliveries).toHaveLength(100)
    expect(world.clock.pending).toBe(idle + 1)
    for (const d of hands.deliveries) d.ack()
    await world.clock.advance(30_000)
    expect(hands.deliveries).toHaveLength(100)
    expect(world.clock.pending).toBe(idle)
  })

  it('under at-most-once skips the record: it was committed before', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    const sub = await topic.subscribe(take, {
      id: 'reader',
      guarantee: 'at-most-once',
      ackTimeoutMs: 1_000,
      concurrency: 2,
    })
    await topic.publish('a')
    await world.clock.advance(60_000)
    expect(values(taken)).toEqual(['a'])
    expect(sub.describe().counters).toMatchObject({ expired: 1, skipped: 1, deadLettered: 0, zombies: 1 })
    expect(taken[0]?.signal.aborted).toBe(true)
  })
})

describe('extend', () => {
  it('moves the deadline to that many milliseconds from now, later or sooner', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', ackTimeoutMs: 1_000 })
    await topic.publish('a')
    await world.clock.advance(900)
    expect(hands.last.extend(1_000)).toBe(true)
    await world.clock.advance(999)
    expect(hands.deliveries).toHaveLength(1)
    expect(hands.last.extend(10)).toBe(true)
    await world.clock.advance(9)
    expect(hands.deliveries).toHaveLength(1)
    await world.clock.advance(1)
    expect(hands.deliveries).toHaveLength(2)
  })

  it('takes effect while the handler is still on the stack', async () => {
    const { world, topic } = await orders()
    const answers: boolean[] = []
    const handler = (d: Delivery): unknown => {
      answers.push(d.extend(5_000))
      return new Promise(() => {})
    }
    await topic.subscribe(handler, { id: 'reader', ackTimeoutMs: 1_000, concurrency: 2 })
    await topic.publish('a')
    await world.clock.advance(4_999)
    expect(answers).toEqual([true])
    await world.clock.advance(1)
    expect(answers).toEqual([true, true])
  })

  it('of one delivery leaves the deadlines of the others where they are', async () => {
    const { world, topic } = await orders()
    const { taken, take } = never()
    const handler = (d: Delivery): unknown => {
      if (d.value === 'long') d.extend(3_600_000)
      return take(d)
    }
    await topic.subscribe(handler, { id: 'reader', ackTimeoutMs: 1_000, concurrency: 9 })
    await topic.publish('long')
    await world.clock.advance(100)
    await topic.publish('short')
    await world.clock.advance(1_000)
    expect(values(taken)).toEqual(['long', 'short', 'short'])
    await world.clock.advance(1_000)
    expect(values(taken)).toEqual(['long', 'short', 'short', 'short'])
  })

  it('refuses what is no time to come', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', ackTimeoutMs: 1_000 })
    await topic.publish('a')
    await world.settle()
    for (const ms of [0, -1, Number.NaN]) expect(hands.last.extend(ms)).toBe(false)
    await world.clock.advance(999)
    expect(hands.deliveries).toHaveLength(1)
  })

  it('of a delivery in a batch extends the batch', async () => {
    const { world, topic } = await orders()
    const batches: Delivery[][] = []
    await topic.subscribe(
      (batch) => {
        batches.push([...batch] as Delivery[])
        return new Promise(() => {})
      },
      { id: 'reader', batch: 2, ackTimeoutMs: 1_000, concurrency: 2 },
    )
    await topic.publishAll([{ value: 'a' }, { value: 'b' }])
    await world.settle()
    expect(batches[0]?.[1]?.extend(2_000)).toBe(true)
    await world.clock.advance(1_999)
    expect(batches).toHaveLength(1)
    await world.clock.advance(1)
    expect(batches.map((batch) => batch.map((d) => d.attempt))).toEqual([
      [1, 1],
      [2, 2],
    ])
  })
})

describe('the signal of a delivery', () => {
  it('is not aborted by what the handler itself did with it', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', order: 'none', concurrency: 9 })
    for (const value of ['a', 'b', 'c']) await topic.publish(value)
    await world.settle()
    const [acked, nacked, rejected] = hands.deliveries as [Delivery, Delivery, Delivery]
    const early = [acked, nacked, rejected].map((d) => d.signal)
    acked.ack()
    nacked.nack()
    rejected.reject()
    await world.settle()
    expect(early.map((signal) => signal.aborted)).toEqual([false, false, false])
    expect(nacked.signal.aborted).toBe(false)
  })

  it('aborts when a replay takes the delivery away', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'reader', ack: 'manual' })
    await topic.publish('a')
    await world.settle()
    const { signal } = hands.last
    await world.broker.resetOffset('orders', 'reader', 'earliest')
    await world.settle()
    expect(signal.aborted).toBe(true)
    expect((signal.reason as Error).message).toMatch(/replay/)
  })

  for (const end of ['unsubscribe', 'close'] as const) {
    it(`aborts when its subscription ends by ${end}`, async () => {
      const { world, topic } = await orders()
      const hands = new Hands()
      const sub = await topic.subscribe(hands.take, { id: 'reader', ack: 'manual' })
      await topic.publish('a')
      await world.settle()
      const { signal } = hands.last
      const ended = end === 'close' ? sub.close({ drainMs: 10 }) : sub.unsubscribe()
      await world.clock.advance(10)
      await ended
      expect(signal.aborted).toBe(true)
      expect(hands.last.ack()).toBe(false)
    })
  }

  it('of a batch aborts when the batch expires, even if its first record is settled', async () => {
    const { world, topic } = await orders()
    const signals: AbortSignal[] = []
    await topic.subscribe(
      (batch) => {
        signals.push(batch.signal)
        if (signals.length === 1) batch.deliveries[0]?.ack()
        return new Promise(() => {})
      },
      { id: 'reader', batch: 2, ackTimeoutMs: 1_000, concurrency: 2 },
    )
    await topic.publishAll([{ value: 'a' }, { value: 'b' }])
    await world.clock.advance(1_000)
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false])
  })

  it('of a batch is not aborted by a record that the handler gave back', async () => {
    const { world, topic } = await orders()
    let signal: AbortSignal | undefined
    await topic.subscribe(
      (batch) => {
        signal = batch.signal
        batch.deliveries[0]?.nack()
        return new Promise(() => {})
      },
      { id: 'reader', batch: 2, ackTimeoutMs: 1_000, concurrency: 2 },
    )
    await topic.publishAll([{ value: 'a' }, { value: 'b' }])
    await world.settle()
    expect(signal?.aborted).toBe(false)
  })
})

describe('a place for work', () => {
  it('is not lost when a replay meets a dead letter that is still on its way', async () => {
    const { world, topic } = await orders()
    // Nothing can be appended there: a partition of 1 byte takes no record.
    await world.broker.createTopic('dlq.orders', { retention: { bytes: 1 } })
    const hands = new Hands()
    const sub = await topic.subscribe(hands.take, {
      id: 'reader',
      ack: 'manual',
      order: 'none',
      retry: { attempts: 1 },
    })
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    hands.last.nack()
    await world.settle()
    expect(hands.values).toEqual(['a', 'b'])
    await world.broker.resetOffset('orders', 'reader', 'latest')
    await topic.publish('c')
    await world.settle()
    expect(hands.values).toEqual(['a', 'b', 'c'])
    hands.last.ack()
    await topic.publish('d')
    await world.settle()
    expect(hands.values).toEqual(['a', 'b', 'c', 'd'])
    expect(sub.describe().member.inFlight).toBe(1)
  })
})
