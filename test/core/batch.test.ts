/** Batches: a run of one partition in one place, and what becomes of each of its records. */
import { describe, expect, it } from 'vitest'
import type { DeliveryBatch } from '../../src/model/delivery.ts'
import { BatchError } from '../../src/model/errors.ts'
import type { BatchSubscribeOptions } from '../../src/model/options.ts'
import { upTo, World } from '../support/world.ts'

type Batch = DeliveryBatch<string>

async function orders(partitions = 1) {
  const world = new World()
  const topic = await world.broker.createTopic<string>('orders', { partitions })
  const put = async (...values: string[]): Promise<void> => {
    await topic.publishAll(values.map((value) => ({ value, key: value.split('-')[1] ?? null })))
  }
  return { world, topic, put }
}

const NO_PAUSE = { delayMs: 0 }
const told = (batch: Batch): string[] => [...batch].map((d) => `${d.value}${d.attempt}`)

/** Reads batches, doing `act` with each of them. */
async function reading(
  options: Partial<BatchSubscribeOptions>,
  act: (batch: Batch, call: number) => unknown = () => undefined,
  partitions = 1,
) {
  const scene = await orders(partitions)
  const batches: Batch[] = []
  const sub = await scene.topic.subscribe(
    (batch: Batch) => {
      batches.push(batch)
      return act(batch, batches.length)
    },
    { id: 'reader', batch: 10, retry: NO_PAUSE, ...options },
  )
  return { ...scene, sub, batches, told: () => batches.map(told) }
}

describe('a batch', () => {
  it('holds what there is, at most as many as asked for, in order', async () => {
    const { world, put, batches, sub } = await reading({ batch: 3 })
    await put('a', 'b', 'c', 'd')
    await world.broker.idle()
    expect(batches.map((batch) => [batch.topic, batch.partition, batch.length])).toEqual([
      ['orders', 0, 3],
      ['orders', 0, 1],
    ])
    expect(batches[0]?.deliveries.map((d) => [d.value, d.offset])).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 2],
    ])
    expect(sub.describe().counters).toMatchObject({ delivered: 4, acked: 4 })
    expect(sub.describe().cursors[0]?.committed).toBe(4)
  })

  it('is of one partition', async () => {
    const { world, topic, batches } = await reading({}, () => undefined, 2)
    for (const i of upTo(6)) topic.tryPublish(`${i}`, { partition: i % 2 })
    await world.broker.idle()
    expect(batches.map((batch) => [...new Set([...batch].map((d) => d.partition))])).toEqual([[0], [1]])
    expect(batches.map((batch) => batch.partition)).toEqual([0, 1])
  })

  it('is acked as a whole when its handler returns or resolves', async () => {
    const { world, put, sub } = await reading({}, (_, call) => (call === 1 ? Promise.resolve() : 'anything'))
    await put('a', 'b')
    await world.broker.idle()
    await put('c')
    await world.broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 3, acked: 3 })
  })

  it('is nacked as a whole by what throws when it is looked at', async () => {
    const refuse = (): never => {
      throw new Error('refused')
    }
    const hostile = new Proxy({}, { get: refuse, getPrototypeOf: refuse })
    const {
      world,
      put,
      told: all,
    } = await reading({}, (_, call) => (call > 2 ? undefined : Promise.reject(hostile)))
    await put('a', 'b')
    await world.broker.idle()
    expect(all()).toEqual([
      ['a1', 'b1'],
      ['a2', 'b2'],
      ['a3', 'b3'],
    ])
  })

  for (const how of ['throw', 'reject'] as const) {
    it(`is nacked as a whole when its handler ${how}s`, async () => {
      const {
        world,
        put,
        told: all,
      } = await reading({}, (_, call) => {
        if (call > 2) return undefined
        if (how === 'throw') throw new Error('no')
        return Promise.reject(new Error('no'))
      })
      await put('a', 'b')
      await world.broker.idle()
      expect(all()).toEqual([
        ['a1', 'b1'],
        ['a2', 'b2'],
        ['a3', 'b3'],
      ])
    })
  }

  it('is nacked as a whole when an object answers false, and only then', async () => {
    for (const [isObject, calls] of [
      [true, 2],
      [false, 1],
    ] as const) {
      const { world, topic, put } = await orders()
      let called = 0
      const onMessage = (): unknown => ++called > 1
      await topic.subscribe(isObject ? { onMessage } : onMessage, { id: 'r', batch: 5, retry: NO_PAUSE })
      await put('a')
      await world.broker.idle()
      expect(called).toBe(calls)
    }
  })

  it('has one place and one timeout', async () => {
    const { world, put, batches, sub } = await reading(
      { concurrency: 2, order: 'none', batch: 2, ackTimeoutMs: 1_000 },
      (_, call) => (call < 3 ? new Promise(() => {}) : undefined),
    )
    await put('a', 'b', 'c', 'd', 'e')
    await world.settle()
    expect(batches.map(told)).toEqual([
      ['a1', 'b1'],
      ['c1', 'd1'],
    ])
    expect(sub.describe().member.inFlight).toBe(2)
    expect(sub.describe().cursors[0]?.inFlight).toBe(4)
    await world.clock.advance(1_000)
    expect(sub.describe().counters).toMatchObject({ expired: 4, zombies: 2 })
    expect(batches[0]?.ack()).toBe(0)
  })

  it('that expires spares what was settled in time', async () => {
    const { world, put, batches, sub } = await reading(
      { concurrency: 2, batch: 3, ackTimeoutMs: 1_000 },
      (batch, call) => {
        if (call > 1) return undefined
        batch.deliveries[0]?.ack()
        batch.deliveries[2]?.reject('bad')
        return new Promise(() => {})
      },
    )
    await put('a', 'b', 'c')
    await world.clock.advance(1_000)
    expect(batches.map(told)).toEqual([['a1', 'b1', 'c1'], ['b2']])
    expect(sub.describe().counters).toMatchObject({ acked: 2, expired: 1, deadLettered: 1 })
  })

  it('may be settled record by record, and what the handler leaves is acked', async () => {
    const { world, put, batches, sub } = await reading({}, (batch, call) => {
      if (call > 1) return
      const [first, second, third] = batch.deliveries
      expect([first?.ack(), first?.ack()]).toEqual([true, false])
      expect(second?.nack({ delayMs: 0 })).toBe(true)
      expect(third?.reject('bad')).toBe(true)
    })
    await put('a', 'b', 'c', 'd')
    await world.broker.idle()
    expect(batches.map(told)).toEqual([['a1', 'b1', 'c1', 'd1'], ['b2']])
    expect(sub.describe().counters).toMatchObject({ acked: 3, nacked: 1, deadLettered: 1 })
  })

  it('settled by hand frees its place when the last record is settled', async () => {
    const { world, put, batches, sub } = await reading({ ack: 'manual', batch: 2 })
    await put('a', 'b', 'c')
    await world.settle()
    const [first, second] = batches[0]?.deliveries ?? []
    expect(second?.ack()).toBe(true)
    await world.settle()
    expect(sub.describe().member.inFlight).toBe(1)
    expect(first?.ack()).toBe(true)
    await world.settle()
    expect(batches.map(told)).toEqual([['a1', 'b1'], ['c1']])
    expect(batches[1]?.nack({ delayMs: 0 })).toBe(1)
    await world.settle()
    expect(batches[2]?.ack()).toBe(1)
    expect(sub.describe().member.inFlight).toBe(0)
  })

  it('settles as a whole what is not settled yet, and says how many', async () => {
    const answers: number[] = []
    const { world, put, batches } = await reading({}, (batch, call) => {
      batch.deliveries[0]?.ack()
      answers.push(call === 1 ? batch.nack() : batch.ack(), batch.ack())
    })
    await put('a', 'b', 'c')
    await world.clock.advance(1_000)
    expect(answers).toEqual([2, 0, 1, 0])
    expect(batches.map(told)).toEqual([
      ['a1', 'b1', 'c1'],
      ['b2', 'c2'],
    ])
  })

  it('is given back when its subscription ends, attempts unchanged', async () => {
    const { world, topic, put, batches, sub } = await reading({ ack: 'manual' })
    await put('a', 'b')
    await world.settle()
    await sub.close({ drainMs: 0 })
    expect(batches[0]?.ack()).toBe(0)
    const again: Batch[] = []
    await topic.subscribe((batch) => void again.push(batch), { id: 'reader', batch: 10, retry: NO_PAUSE })
    await world.broker.idle()
    expect(again.map(told)).toEqual([['a1', 'b1']])
    expect(again[0]?.deliveries.every((d) => d.redelivered)).toBe(true)
  })

  it('takes a permit for each of its records', async () => {
    const { world, put, told: all, sub } = await reading({ credit: 'manual', batch: 10 })
    await put('a', 'b', 'c', 'd', 'e')
    sub.request(2)
    await world.settle()
    sub.request(1)
    await world.settle()
    expect(all()).toEqual([['a1', 'b1'], ['c1']])
  })

  it('goes to members of a group in turn, also beside members that take one at a time', async () => {
    const { world, topic, put } = await orders()
    const seen: string[] = []
    const options = { group: 'g', from: 'earliest', order: 'none' } as const
    await topic.subscribe((batch) => void seen.push(`batch of ${batch.length}`), {
      ...options,
      id: 'many',
      batch: 2,
    })
    await topic.subscribe((d) => void seen.push(d.value), { ...options, id: 'one' })
    await put('a', 'b', 'c', 'd', 'e', 'f')
    await world.broker.idle()
    expect(seen).toEqual(['batch of 2', 'c', 'batch of 2', 'f'])
  })
})

describe('BatchError', () => {
  it('acks what is before, nacks the one, and releases the rest unchanged', async () => {
    const {
      world,
      put,
      told: all,
      sub,
    } = await reading({}, (_, call) => {
      if (call === 1) throw new BatchError(1, new Error('bad apple'))
    })
    await put('a', 'b', 'c', 'd')
    await world.broker.idle()
    expect(all()).toEqual([
      ['a1', 'b1', 'c1', 'd1'],
      ['b2', 'c1', 'd1'],
    ])
    expect(sub.describe().counters).toMatchObject({ acked: 4, nacked: 1, delivered: 7, redelivered: 3 })
  })

  it('ends the one in the dead letters with its own reason, and the rest lose no attempt by it', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading({ retry: { attempts: 2, delayMs: 0 } }, (batch) => {
      const at = batch.deliveries.findIndex((d) => d.value === 'bad')
      if (at >= 0) throw new BatchError(at, new Error('bad apple'))
    })
    await put('a', 'bad', 'c')
    await world.broker.idle()
    expect(all()).toEqual([['a1', 'bad1', 'c1'], ['bad2', 'c1'], ['c1']])
    const letters = await world.broker.read('dlq.orders')
    expect(letters.map((letter) => letter.headers.get('__dlq.errors.message'))).toEqual(['bad apple'])
  })

  it('leaves alone what the handler settled itself, and has a text without a cause', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading({ retry: { attempts: 1 } }, (batch, call) => {
      if (call > 1) return
      batch.deliveries[3]?.ack()
      batch.deliveries[0]?.nack({ delayMs: 0 })
      throw new BatchError(1)
    })
    await put('a', 'b', 'c', 'd')
    await world.broker.idle()
    expect(all()).toEqual([['a1', 'b1', 'c1', 'd1'], ['c1']])
    const letters = await world.broker.read('dlq.orders')
    expect(letters.map((letter) => letter.headers.get('__dlq.errors.message'))).toEqual([
      'nacked',
      'record 1 of the batch failed',
    ])
  })

  it('at most once skips the one and drops the rest', async () => {
    const {
      world,
      put,
      told: all,
      sub,
    } = await reading({ guarantee: 'at-most-once', retry: undefined as never }, (_, call) => {
      if (call === 1) throw new BatchError(1)
    })
    await put('a', 'b', 'c')
    await world.broker.idle()
    expect(all()).toEqual([['a1', 'b1', 'c1']])
    expect(sub.describe().counters).toMatchObject({ acked: 1, skipped: 2 })
  })
})

describe('a batch and order', () => {
  it('by partition: nothing else of the partition is in flight, and a retry goes first', async () => {
    let letGo: (error?: Error) => void = () => {}
    const {
      world,
      put,
      told: all,
    } = await reading(
      { concurrency: 5, batch: 2, order: 'partition', retry: { delayMs: 1_000, jitter: 0 } },
      (_, call) => {
        if (call > 1) return undefined
        return new Promise<void>((resolve, reject) => {
          letGo = (error) => (error === undefined ? resolve() : reject(error))
        })
      },
    )
    await put('a', 'b', 'c')
    await world.settle()
    expect(all()).toEqual([['a1', 'b1']])
    letGo(new BatchError(1))
    await world.settle()
    expect(all()).toEqual([['a1', 'b1']])
    await world.clock.advance(1_000)
    expect(all()).toEqual([
      ['a1', 'b1'],
      ['b2', 'c1'],
    ])
  })

  it('by key: records of one key may follow each other in a batch, and hold back those after it', async () => {
    const ends: (() => void)[] = []
    const {
      world,
      put,
      told: all,
    } = await reading(
      { concurrency: 5, batch: 4, order: 'key' },
      () => new Promise<void>((resolve) => ends.push(resolve)),
    )
    await put('1-a', '2-a', '1-b', '3-a', '4-a', '2-b', '1-c')
    await world.settle()
    expect(all()).toEqual([['1-a1', '2-a1', '1-b1', '3-a1'], ['1-c1']])
    ends[0]?.()
    await world.settle()
    expect(all().slice(2).flat().sort()).toEqual(['2-b1', '4-a1'])
  })

  it('by key: a failed batch comes back in the order of its keys', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading({ batch: 4, order: 'key', concurrency: 2 }, (_, call) => {
      if (call === 1) throw new Error('all of it')
    })
    await put('1-a', '2-a', '1-b', '3-a')
    await world.broker.idle()
    const values = all()
      .slice(1)
      .flat()
      .map((line) => line.slice(0, 3))
    expect(values.filter((value) => value.endsWith('a'))).toEqual(['1-a', '2-a', '3-a'])
    expect(values.slice().sort()).toEqual(['1-a', '1-b', '2-a', '3-a'])
  })

  it('by key: one of several of a key that fails holds back those behind it', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading(
      { batch: 4, order: 'key', concurrency: 2, retry: { delayMs: 1_000, jitter: 0 } },
      (batch, call) => {
        if (call === 1) batch.deliveries[1]?.nack()
      },
    )
    await put('1-a', '2-a', '3-a', '1-b')
    await world.settle()
    await put('4-a', '2-b')
    await world.settle()
    expect(all()).toEqual([['1-a1', '2-a1', '3-a1', '1-b1'], ['2-b1']])
    await world.clock.advance(1_000)
    expect(all().slice(2).flat()).toEqual(['2-a2', '4-a1'])
  })

  it('none: batches overlap, and retries mix with what is new', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading(
      { batch: 2, order: 'none', concurrency: 3, retry: { delayMs: 1_000, jitter: 0 } },
      (batch) => {
        if (batch.deliveries.some((d) => d.value === 'a' && d.attempt === 1)) throw new BatchError(0)
      },
    )
    await put('a', 'b', 'c')
    await world.settle()
    expect(all()).toEqual([
      ['a1', 'b1'],
      ['b1', 'c1'],
    ])
    await world.clock.advance(999)
    await put('d')
    await world.settle()
    await world.clock.advance(1)
    expect(all().slice(2)).toEqual([['d1'], ['a2']])
  })
})

describe('maxWaitMs', () => {
  it('waits for a batch to fill, no longer than that', async () => {
    const { world, put, told: all } = await reading({ batch: { records: 3, maxWaitMs: 100 } })
    await put('a')
    await world.clock.advance(99)
    expect(all()).toEqual([])
    await put('b')
    await world.clock.advance(1)
    expect(all()).toEqual([['a1', 'b1']])
  })

  it('does not wait for a batch that is full', async () => {
    const { world, put, told: all } = await reading({ batch: { records: 2, maxWaitMs: 100 } })
    await put('a')
    await world.settle()
    expect(all()).toEqual([])
    await put('b')
    await world.settle()
    expect(all()).toEqual([['a1', 'b1']])
    await put('c')
    await world.settle()
    expect(all()).toHaveLength(1)
    await world.clock.advance(100)
    expect(all()[1]).toEqual(['c1'])
  })

  it('does not hold back what comes again, by partition', async () => {
    const {
      world,
      put,
      told: all,
    } = await reading({ batch: { records: 3, maxWaitMs: 100 } }, (_, call) => {
      if (call === 1) throw new Error('no')
    })
    await put('a')
    await world.clock.advance(100)
    expect(all()).toEqual([['a1'], ['a2']])
  })

  it('is not idle time, and ends with the subscription', async () => {
    const { world, put, told: all, sub } = await reading({ batch: { records: 3, maxWaitMs: 100 } })
    await put('a')
    await world.settle()
    let idle = false
    void world.broker.idle().then(() => {
      idle = true
    })
    await world.settle()
    expect(idle).toBe(false)
    await sub.unsubscribe()
    await world.settle()
    expect(idle).toBe(true)
    await world.clock.advance(100)
    expect(all()).toEqual([])
  })

  it('starts anew with a replay', async () => {
    const { world, put, told: all } = await reading({ batch: { records: 3, maxWaitMs: 100 } })
    await put('a', 'b')
    await world.clock.advance(60)
    await world.broker.resetOffset('orders', 'reader', 1)
    await world.clock.advance(99)
    expect(all()).toEqual([])
    await world.clock.advance(1)
    expect(all()).toEqual([['b1']])
  })
})

describe('a batch of a reader that drops', () => {
  it('holds every record it was admitted once, oldest first, and counts the others', async () => {
    const {
      world,
      put,
      told: all,
      sub,
    } = await reading({
      batch: 100,
      overflow: 'drop-newest',
      maxLag: { records: 4 },
    })
    await put('a', 'b', 'c', 'd', 'e', 'f')
    await world.broker.idle()
    expect(all().flat()).toEqual(['a1', 'b1', 'c1', 'd1'])
    expect(sub.describe().counters).toMatchObject({ delivered: 4, acked: 4, dropped: 2 })
  })

  it('holds the newest of a sliding window', async () => {
    const {
      world,
      put,
      told: all,
      sub,
    } = await reading({
      batch: 100,
      overflow: 'drop-oldest',
      maxLag: { records: 4 },
    })
    await put('a', 'b', 'c', 'd', 'e', 'f')
    await world.broker.idle()
    expect(all().flat()).toEqual(['c1', 'd1', 'e1', 'f1'])
    expect(sub.describe().counters).toMatchObject({ delivered: 4, acked: 4, dropped: 2 })
  })
})
