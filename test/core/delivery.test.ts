/** At-least-once and at-most-once, acks, attempts and the pauses between them. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { Hands, upTo, World } from '../support/world.ts'

async function orders(options?: ConstructorParameters<typeof World>[0]) {
  const world = new World(options)
  const topic = await world.broker.createTopic<string>('orders')
  return { world, topic }
}

describe('automatic acks', () => {
  it('ack when the handler returns or resolves, whatever it answers', async () => {
    const { world, topic } = await orders()
    for (const [id, answer] of Object.entries({
      nothing: undefined,
      null: null,
      text: 'done',
      false: false,
      object: {},
      promise: Promise.resolve(),
      promiseOfFalse: Promise.resolve(false),
    })) {
      const sub = await topic.subscribe(() => answer, { id })
      await topic.publish('a')
      await world.broker.idle()
      expect([id, sub.describe().counters]).toMatchObject([id, { delivered: 1, acked: 1, nacked: 0 }])
    }
  })

  it('take false from an object with onMessage for a nack, also a promise of it', async () => {
    for (const answer of [false, Promise.resolve(false)]) {
      const { world, topic } = await orders()
      const attempts: number[] = []
      const subscriber = {
        answer,
        onMessage(d: Delivery) {
          attempts.push(d.attempt)
          return d.attempt < 3 ? this.answer : undefined
        },
      }
      const sub = await topic.subscribe(subscriber, { id: 'reader', retry: { delayMs: 0 } })
      await topic.publish('a')
      await world.broker.idle()
      expect(attempts).toEqual([1, 2, 3])
      expect(sub.describe().counters).toMatchObject({ nacked: 2, acked: 1 })
    }
  })

  it('say in the dead letter that the subscriber answered false', async () => {
    const { world, topic } = await orders()
    await topic.subscribe({ onMessage: () => false }, { id: 'reader', retry: { attempts: 1 } })
    await topic.publish('a')
    await world.broker.idle()
    const [letter] = await world.broker.read('dlq.orders')
    expect(letter?.headers.get('__dlq.errors.message')).toBe('the subscriber answered false')
  })

  it('commit in the order of the log although handlers end in another', async () => {
    const { world, topic } = await orders()
    const done: (() => void)[] = []
    const sub = await topic.subscribe(() => new Promise<void>((resolve) => done.push(resolve)), {
      id: 'reader',
      order: 'none',
      concurrency: 3,
    })
    for (const value of ['a', 'b', 'c']) await topic.publish(value)
    await world.settle()
    const committed = async (): Promise<unknown> => {
      await world.settle()
      return sub.describe().cursors[0]?.committed
    }
    done[2]?.()
    expect(await committed()).toBe(0)
    done[0]?.()
    expect(await committed()).toBe(1)
    done[1]?.()
    expect(await committed()).toBe(3)
  })
})

describe('manual acks', () => {
  it('settle what the handler has returned from, later and elsewhere', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const sub = await topic.subscribe(hands.take, { id: 'reader', ack: 'manual' })
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    expect(hands.values).toEqual(['a'])
    expect(hands.last.ack()).toBe(true)
    await world.settle()
    expect(hands.values).toEqual(['a', 'b'])
    expect(sub.describe().cursors[0]?.committed).toBe(1)
  })

  it('are not given by returning false, nor by a promise that resolves', async () => {
    const { world, topic } = await orders()
    const sub = await topic.subscribe(
      { onMessage: (d: Delivery) => (d.value === 'a' ? false : Promise.resolve()) },
      { id: 'reader', ack: 'manual', order: 'none', concurrency: 2 },
    )
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    expect(sub.describe().counters).toMatchObject({ delivered: 2, acked: 0, nacked: 0 })
    expect(sub.describe().cursors[0]?.inFlight).toBe(2)
  })

  it('leave a throw a nack', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const sub = await topic.subscribe(
      (d) => {
        hands.take(d)
        if (d.attempt === 1) throw new Error('not yet')
        if (d.attempt === 2) return Promise.reject(new Error('not yet'))
        return undefined
      },
      { id: 'reader', ack: 'manual', retry: { delayMs: 0 } },
    )
    await topic.publish('a')
    await world.settle()
    expect(hands.deliveries.map((d) => d.attempt)).toEqual([1, 2, 3])
    expect(hands.last.ack()).toBe(true)
    expect(sub.describe().counters).toMatchObject({ nacked: 2, acked: 1 })
  })

  it('keep the place of a handler that settled early until it returns', async () => {
    const { world, topic } = await orders()
    let letGo: () => void = () => {}
    const seen: string[] = []
    await topic.subscribe(
      (d) => {
        seen.push(d.value)
        d.ack()
        return new Promise<void>((resolve) => (letGo = resolve))
      },
      { id: 'reader', ack: 'manual' },
    )
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    expect(seen).toEqual(['a'])
    letGo()
    await world.settle()
    expect(seen).toEqual(['a', 'b'])
  })
})

describe('attempts', () => {
  it('are deliveries in all: 5 by default, the first included', async () => {
    for (const [retry, most] of [
      [{ delayMs: 0 }, 5],
      [{ attempts: 1 }, 1],
      [{ attempts: 2, delayMs: 0 }, 2],
    ] as const) {
      const { world, topic } = await orders()
      const seen: [number, boolean][] = []
      await topic.subscribe(
        (d) => {
          seen.push([d.attempt, d.redelivered])
          throw new Error('no')
        },
        { id: 'reader', retry },
      )
      await topic.publish('a')
      await world.broker.idle()
      expect(seen).toEqual(upTo(most).map((i) => [i + 1, i > 0]))
    }
  })

  it('do not grow when a member leaves, but the record says that it was handed out before', async () => {
    const { world, topic } = await orders()
    const first = new Hands()
    const second = new Hands()
    const one = await topic.subscribe(first.take, { group: 'g', id: 'one', ack: 'manual' })
    await topic.publish('a')
    await world.settle()
    await topic.subscribe(second.take, { group: 'g', id: 'two', ack: 'manual' })
    const closed = one.close({ drainMs: 10 })
    await world.clock.advance(10)
    await closed
    expect(second.deliveries.map((d) => [d.value, d.attempt, d.redelivered])).toEqual([['a', 1, true]])
    expect(first.last.ack()).toBe(false)
  })

  it('start at 1 again with a replay', async () => {
    const { world, topic } = await orders()
    const seen: [number, boolean][] = []
    await topic.subscribe(
      (d) => {
        seen.push([d.attempt, d.redelivered])
        if (seen.length === 1) throw new Error('not yet')
      },
      { id: 'reader', retry: { delayMs: 60_000, maxDelayMs: 60_000 } },
    )
    await topic.publish('a')
    await world.settle()
    await world.broker.resetOffset('orders', 'reader', 'earliest')
    await world.broker.idle()
    expect(seen).toEqual([
      [1, false],
      [1, false],
    ])
    await world.clock.advance(60_000)
    expect(seen).toHaveLength(2)
  })
})

/** Milliseconds between the deliveries of one record that always fails. */
async function pauses(
  options: SubscribeOptions,
  random: () => number,
  how: (d: Delivery) => unknown = (d) => d.nack(),
) {
  const { world, topic } = await orders({ random })
  const at: number[] = []
  const handler = (d: Delivery): void => {
    at.push(world.clock.monotonic())
    how(d)
  }
  await topic.subscribe(handler, { id: 'reader', ack: 'manual', deadLetter: false, ...options })
  await topic.publish('a')
  await world.clock.advance(10_000_000)
  return at.slice(1).map((ms, i) => ms - (at[i] as number))
}

describe('the pause before another attempt', () => {
  it('doubles from 50 ms to 1,000 ms', async () => {
    const none = { retry: { attempts: 8, jitter: 0 } }
    expect(await pauses(none, () => 0.5)).toEqual([50, 100, 200, 400, 800, 1_000, 1_000])
  })

  it('is shorter by up to a fifth, at random', async () => {
    expect(await pauses({ retry: { attempts: 4 } }, () => 0)).toEqual([50, 100, 200])
    expect(await pauses({ retry: { attempts: 4 } }, () => 0.5)).toEqual([45, 90, 180])
    const wide = { retry: { attempts: 4, jitter: 1 } }
    expect(await pauses(wide, () => 0.75)).toEqual([12.5, 25, 50])
  })

  it('is as the reader asks, and never longer than maxDelayMs', async () => {
    const retry = { attempts: 4, delayMs: 300, maxDelayMs: 500, jitter: 0 }
    expect(await pauses({ retry }, () => 0)).toEqual([300, 500, 500])
    const long = { attempts: 3, delayMs: 5_000, jitter: 0 }
    expect(await pauses({ retry: long }, () => 0)).toEqual([5_000, 5_000])
  })

  it('is what nack says, from none to a quarter of an hour', async () => {
    const asked = [0, 10, 60_000, -5, Number.NaN, 10_000_000, undefined]
    const nack = (d: Delivery): void => {
      const delayMs = asked[d.attempt - 1]
      d.nack(delayMs === undefined ? {} : { delayMs, reason: 'asked' })
    }
    const retry = { attempts: 8, jitter: 0 }
    expect(await pauses({ retry }, () => 0, nack)).toEqual([0, 10, 60_000, 0, 0, 900_000, 1_000])
  })

  it('does not stop the delivery of other records, nor of other readers', async () => {
    const { world, topic } = await orders()
    const seen: string[] = []
    const retry = { delayMs: 1_000, jitter: 0 }
    await topic.subscribe(
      (d) => {
        seen.push(`free ${d.value}`)
        if (d.value === 'a' && d.attempt === 1) throw new Error('later')
      },
      { id: 'free', order: 'none', retry },
    )
    await topic.subscribe((d) => void seen.push(`other ${d.value}`), { id: 'other' })
    for (const value of ['a', 'b']) await topic.publish(value)
    await world.settle()
    expect(seen.slice().sort()).toEqual(['free a', 'free b', 'other a', 'other b'])
    await world.clock.advance(1_000)
    expect(seen.at(-1)).toBe('free a')
  })

  it('ends with the subscription, and is not due when nobody is there', async () => {
    const { world, topic } = await orders()
    const sub = await topic.subscribe(() => Promise.reject(new Error('no')), { id: 'reader' })
    await topic.publish('a')
    await world.settle()
    await sub.unsubscribe()
    await world.broker.idle()
    expect(world.clock.pending).toBeLessThanOrEqual(1)
    await world.clock.advance(10_000)
    expect(world.raised('error')).toEqual([])
  })
})

describe('a subscriber that is slow, or never returns', () => {
  it('stalls neither its topic nor anybody else who reads it', async () => {
    const { world, topic } = await orders()
    const counts: Record<string, number> = { sync: 0, async: 0, group: 0 }
    const count = (name: string): void => {
      counts[name] = (counts[name] as number) + 1
    }
    await topic.subscribe(() => new Promise(() => {}), { id: 'never' })
    await topic.subscribe(() => new Promise(() => {}), { group: 'g', id: 'never' })
    await topic.subscribe(() => count('group'), { group: 'g', id: 'quick' })
    await topic.subscribe(() => count('sync'), { id: 'sync' })
    await topic.subscribe(async () => count('async'), { id: 'async' })
    for (const value of upTo(100)) await topic.publish(`${value}`)
    await world.settle()
    expect(counts).toEqual({ sync: 100, async: 100, group: 99 })
  })
})

describe('at-most-once', () => {
  it('commits before the handler runs', async () => {
    const { world, topic } = await orders()
    const committed: unknown[] = []
    const sub = await topic.subscribe(
      async () => {
        committed.push(sub.describe().cursors[0]?.committed)
      },
      { id: 'reader', guarantee: 'at-most-once' },
    )
    for (const value of ['a', 'b']) await topic.publish(value)
    await world.broker.idle()
    expect(committed).toEqual([1, 2])
  })

  it('has no ack, retry or dead letter, and says so at subscribe', async () => {
    const { topic } = await orders()
    for (const options of [
      { ack: 'manual' },
      { retry: { attempts: 2 } },
      { deadLetter: 'elsewhere' },
    ] as const) {
      await expect(
        topic.subscribe(() => {}, { id: 'reader', guarantee: 'at-most-once', ...options }),
      ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })

  it('drops what is in hand when its subscription ends: it may have been handled', async () => {
    const { world, topic } = await orders()
    const options = { id: 'reader', guarantee: 'at-most-once' } as const
    const sub = await topic.subscribe(() => new Promise(() => {}), options)
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    await sub.close({ drainMs: 0 })
    expect(sub.describe().counters).toMatchObject({ delivered: 1, skipped: 1 })
    const seen: string[] = []
    await topic.subscribe((d) => void seen.push(d.value), options)
    await world.broker.idle()
    expect(seen).toEqual(['b'])
  })

  it('in batches, counts every record as the handler ends', async () => {
    const { world, topic } = await orders()
    const sub = await topic.subscribe(
      (batch) => {
        if (batch.deliveries[0]?.value === 'c') throw new Error('no')
      },
      { id: 'reader', guarantee: 'at-most-once', batch: 2 },
    )
    await topic.publishAll(['a', 'b', 'c', 'd'].map((value) => ({ value })))
    await world.broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 4, acked: 2, skipped: 2, nacked: 0 })
  })
})

describe('what a handler publishes with its delivery', () => {
  it('carries the trace context of the record, except what the handler says itself', async () => {
    const { world, topic } = await orders()
    await world.broker.createTopic('next')
    await topic.subscribe(
      async (d) => {
        await d.publish('next', 'plain')
        await d.publish('next', 'own', { headers: { traceparent: 'mine', other: 'x' }, key: 'k' })
      },
      { id: 'reader' },
    )
    const headers = [
      ['traceparent', '00-abc'],
      ['tracestate', 'a=b'],
      ['baggage', 'c=d'],
      ['secret', 'stays here'],
    ] as const
    await topic.publish('a', { headers })
    await topic.publish('untraced')
    await world.broker.idle()
    const sent = (await world.broker.read('next')).map((r) => [r.value, Object.fromEntries(r.headers)])
    expect(sent).toEqual([
      ['plain', { traceparent: '00-abc', tracestate: 'a=b', baggage: 'c=d' }],
      ['own', { traceparent: 'mine', other: 'x', tracestate: 'a=b', baggage: 'c=d' }],
      ['plain', {}],
      ['own', { traceparent: 'mine', other: 'x' }],
    ])
  })

  it('is refused as a rejection, never as a throw', async () => {
    const { world, topic } = await orders()
    const codes: unknown[] = []
    const nameless = { [Symbol.iterator]: 7 } as never
    await topic.subscribe(
      async (d) => {
        for (const [name, options] of [
          ['nowhere'],
          ['orders', { headers: nameless }],
          ['orders', { headers: 5 }],
        ] as [string, never][]) {
          const published = d.publish(name, 1, options)
          codes.push(
            await published.catch((error: { code?: string; name: string }) => error.code ?? error.name),
          )
        }
      },
      { id: 'reader' },
    )
    await topic.publish('a', { headers: { traceparent: 'x' } })
    await world.broker.idle()
    expect(codes).toEqual(['UNKNOWN_TOPIC', 'TypeError', 'INVALID_VALUE'])
  })
})
