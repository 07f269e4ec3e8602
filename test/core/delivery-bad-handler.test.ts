/** Handlers that do everything wrong: attempts stay bounded, one dead letter each, and the next record is served. */
import { describe, expect, it } from 'vitest'
import { BatchError } from '../../src/model/errors.ts'
import { Hands, upTo, World } from '../support/world.ts'

const FIVE = { attempts: 5, delayMs: 0 } as const

/** What a handler may throw, or reject with, and the text that ends up in the dead letter. */
const FAILURES: readonly (readonly [name: string, thrown: () => unknown, text: string])[] = [
  ['an error', () => new Error('no luck'), 'no luck'],
  ['undefined', () => undefined, 'undefined'],
  ['null', () => null, 'null'],
  ['a symbol', () => Symbol('odd'), 'Symbol(odd)'],
  ['an object without a prototype', () => Object.create(null), 'something that has no text'],
  [
    'an error whose message cannot be read',
    () =>
      Object.defineProperty(new Error('x'), 'message', {
        get: () => {
          throw new Error('not even this')
        },
      }),
    'something that has no text',
  ],
  [
    'an object whose text cannot be read',
    () => ({
      toString: () => {
        throw new Error('not even this')
      },
    }),
    'something that has no text',
  ],
  [
    'a proxy that refuses everything',
    () =>
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('refused')
          },
          getPrototypeOf: () => {
            throw new Error('refused')
          },
        },
      ),
    'something that has no text',
  ],
]

type Then = (done: () => void, failed: (error: unknown) => void) => unknown

function thenable(then: Then, on: object = {}): object {
  return Object.defineProperty(on, 'then', { value: then })
}

/** Things with a `then` that a handler may answer with, and whether that is a success. */
const THENABLES: readonly (readonly [name: string, made: () => unknown, succeeds: boolean])[] = [
  ['a thenable that resolves', () => thenable((done) => done()), true],
  [
    'a thenable that calls back twice',
    () =>
      thenable((done, failed) => {
        done()
        done()
        failed(new Error('too late'))
      }),
    true,
  ],
  [
    'a thenable that resolves and then throws',
    () =>
      thenable((done) => {
        done()
        throw new Error('too late')
      }),
    true,
  ],
  [
    'a thenable that throws',
    () =>
      thenable(() => {
        throw new Error('in then')
      }),
    false,
  ],
  [
    'an object whose then cannot be read',
    () =>
      Object.defineProperty({}, 'then', {
        get: () => {
          throw new Error('no then')
        },
      }),
    false,
  ],
  [
    'an object whose then can be read once',
    () => {
      let reads = 0
      return Object.defineProperty({}, 'then', {
        get: () => {
          if (reads++ > 0) throw new Error('no then any more')
          return (done: () => void) => done()
        },
      })
    },
    false,
  ],
  [
    'a promise whose then calls back twice',
    () =>
      thenable((done) => {
        done()
        done()
      }, Promise.resolve()),
    true,
  ],
  ['what only looks like a promise', () => Object.create(Promise.prototype), false],
  ['a proxy of a promise', () => new Proxy(Promise.resolve(), {}), false],
  [
    'a promise whose constructor cannot be read',
    () =>
      Object.defineProperty(Promise.resolve(), 'constructor', {
        get: () => {
          throw new Error('no constructor')
        },
      }),
    false,
  ],
  ['a promise of a class of its own', () => class Own extends Promise<void> {}.resolve(), true],
]

async function orders(retry: object = FIVE) {
  const world = new World()
  const topic = await world.broker.createTopic<string>('orders')
  const seen: { value: string; attempt: number }[] = []
  return { world, topic, seen, options: { id: 'reader', retry } }
}

describe('a handler that fails', () => {
  for (const [name, thrown, text] of FAILURES) {
    for (const how of ['throws', 'rejects with'] as const) {
      it(`${how} ${name}: all attempts, one dead letter, then the next record`, async () => {
        const { world, topic, seen, options } = await orders()
        const sub = await topic.subscribe((d) => {
          seen.push({ value: d.value, attempt: d.attempt })
          if (d.value !== 'bad') return undefined
          if (how === 'throws') throw thrown()
          return Promise.reject(thrown())
        }, options)
        await topic.publish('bad')
        await topic.publish('good')
        await world.broker.idle()

        expect(seen).toEqual([
          ...[1, 2, 3, 4, 5].map((attempt) => ({ value: 'bad', attempt })),
          { value: 'good', attempt: 1 },
        ])
        const letters = await world.broker.read('dlq.orders')
        expect(letters.map((letter) => letter.value)).toEqual(['bad'])
        expect(letters[0]?.headers.get('__dlq.errors.message')).toBe(text)
        expect(sub.describe().counters).toMatchObject({ delivered: 6, acked: 1, nacked: 5, deadLettered: 1 })
        expect(world.raised('error')).toEqual([])
      })
    }
  }

  for (const [name, made, succeeds] of THENABLES) {
    it(`${name} ${succeeds ? 'acks once' : 'nacks once'}, and the place is free again`, async () => {
      const { world, topic, seen, options } = await orders()
      const sub = await topic.subscribe((d) => {
        seen.push({ value: d.value, attempt: d.attempt })
        return d.value === 'odd' && d.attempt === 1 ? made() : Promise.resolve()
      }, options)
      for (const value of ['odd', 'a', 'b']) await topic.publish(value)
      await world.broker.idle()

      const again = succeeds ? [] : [{ value: 'odd', attempt: 2 }]
      expect(seen).toEqual([
        { value: 'odd', attempt: 1 },
        ...again,
        { value: 'a', attempt: 1 },
        { value: 'b', attempt: 1 },
      ])
      expect(sub.describe().counters).toMatchObject({ acked: 3, nacked: succeeds ? 0 : 1, zombies: 0 })
      expect(sub.describe().member.inFlight).toBe(0)
    })
  }

  it('keeps records in order when a hostile promise calls back while the next one is in flight', async () => {
    const { world, topic, options } = await orders()
    let callBack: () => void = () => {}
    const running: string[] = []
    let most = 0
    await topic.subscribe((d) => {
      if (d.value === 'odd') return thenable((done) => (callBack = done), Promise.resolve())
      running.push(d.value)
      most = Math.max(most, running.length)
      return Promise.resolve().then(() => running.pop())
    }, options)
    await topic.publish('odd')
    await world.settle()
    callBack()
    for (const value of ['a', 'b', 'c']) await topic.publish(value)
    callBack()
    await world.broker.idle()
    expect(most).toBe(1)
    expect(running).toEqual([])
  })

  it('a batch handler that throws what has no text nacks all of its records', async () => {
    const { world, topic } = await orders()
    const sizes: number[] = []
    await topic.subscribe(
      (batch) => {
        sizes.push(batch.length)
        if (sizes.length === 1) throw Object.create(null)
      },
      { id: 'reader', batch: 10, retry: FIVE },
    )
    await topic.publishAll([{ value: 'a' }, { value: 'b' }])
    await world.broker.idle()
    expect(sizes).toEqual([2, 2])
  })

  it('a BatchError that names no record of the batch counts as a failure of all, so attempts run out', async () => {
    for (const index of [-1, 3, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { world, topic } = await orders()
      let calls = 0
      await topic.subscribe(
        () => {
          calls++
          throw new BatchError(index, new Error('nowhere'))
        },
        { id: 'reader', batch: 10, retry: FIVE },
      )
      await topic.publishAll([{ value: 'a' }, { value: 'b' }, { value: 'c' }])
      await world.broker.idle()
      expect({ index, calls }).toEqual({ index, calls: 5 })
      expect((await world.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['a', 'b', 'c'])
    }
  })
})

describe('a handler that never settles', () => {
  it('runs out of attempts one expiry at a time, leaves one dead letter, and stalls its member', async () => {
    const { world, topic } = await orders()
    const attempts: number[] = []
    const sub = await topic.subscribe(
      (d) => {
        attempts.push(d.attempt)
        return new Promise(() => {})
      },
      { id: 'reader', retry: FIVE, concurrency: 5, ackTimeoutMs: 1_000 },
    )
    await topic.publish('stuck', { key: 'k' })
    await topic.publish('behind', { key: 'k' })
    for (const _ of upTo(4)) await world.clock.advance(1_000)
    expect(attempts).toEqual([1, 2, 3, 4, 5])
    expect(world.raised('stalled')).toEqual([])

    await world.clock.advance(1_000)
    expect((await world.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['stuck'])
    expect(world.raised('stalled')).toEqual([
      { topic: 'orders', partition: 0, reader: 'reader', reason: 'zombies' },
    ])
    expect(sub.describe().counters).toMatchObject({ delivered: 5, expired: 5, deadLettered: 1, zombies: 5 })
    await world.clock.advance(60_000)
    expect(attempts).toHaveLength(5)
  })

  it('at concurrency 1 gets nothing more until it returns, and then goes on', async () => {
    const { world, topic } = await orders()
    const seen: [string, number][] = []
    let letGo: () => void = () => {}
    await topic.subscribe(
      (d) => {
        seen.push([d.value, d.attempt])
        return seen.length === 1 ? new Promise<void>((resolve) => (letGo = resolve)) : undefined
      },
      { id: 'reader', retry: FIVE, ackTimeoutMs: 1_000 },
    )
    await topic.publish('a')
    await topic.publish('b')
    await world.clock.advance(10_000)
    expect(seen).toEqual([['a', 1]])
    expect(world.raised('stalled')).toHaveLength(1)
    letGo()
    await world.broker.idle()
    expect(seen).toEqual([
      ['a', 1],
      ['a', 2],
      ['b', 1],
    ])
  })
})

describe('a handler that settles more than once', () => {
  it('only the first settle takes effect, whatever the second is', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const sub = await topic.subscribe(hands.take, {
      id: 'reader',
      ack: 'manual',
      order: 'none',
      concurrency: 9,
    })
    for (const value of ['ack', 'nack', 'reject']) await topic.publish(value)
    await world.settle()
    const [acked, nacked, rejected] = hands.deliveries
    expect([acked?.ack(), acked?.ack(), acked?.nack(), acked?.reject(), acked?.extend(1)]).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
    expect([nacked?.nack(), nacked?.ack(), nacked?.nack()]).toEqual([true, false, false])
    expect([rejected?.reject('bad'), rejected?.ack(), rejected?.reject()]).toEqual([true, false, false])
    await world.settle()
    expect(sub.describe().counters).toMatchObject({ acked: 1, nacked: 1, deadLettered: 1 })
    expect(await world.broker.read('dlq.orders')).toHaveLength(1)
  })

  it('automatic acks do not undo what the handler said first, not even by throwing afterwards', async () => {
    const { world, topic, options } = await orders()
    const sub = await topic.subscribe((d) => {
      if (d.value === 'acked, then thrown') {
        d.ack()
        throw new Error('afterwards')
      }
      if (d.value === 'acked, then rejected') {
        d.ack()
        return Promise.reject(new Error('afterwards'))
      }
      if (d.attempt === 1) d.nack({ delayMs: 0 })
      return undefined
    }, options)
    for (const value of ['acked, then thrown', 'acked, then rejected', 'nacked, then returned']) {
      await topic.publish(value)
    }
    await world.broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 4, acked: 3, nacked: 1, deadLettered: 0 })
    expect(
      world.logged.filter((line) => line.message.includes('after its delivery was settled')),
    ).toHaveLength(2)
  })

  it('a settle after the deadline is fenced, the redelivery is not touched', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    const sub = await topic.subscribe(hands.take, {
      id: 'reader',
      ack: 'manual',
      ackTimeoutMs: 1_000,
      retry: FIVE,
    })
    await topic.publish('a')
    await world.settle()
    const late = hands.last
    await world.clock.advance(1_000)
    expect(hands.deliveries.map((d) => d.attempt)).toEqual([1, 2])
    expect([late.ack(), late.nack(), late.reject(), late.extend(5_000)]).toEqual([false, false, false, false])
    expect(sub.describe().member.inFlight).toBe(1)
    expect(hands.last.ack()).toBe(true)
    await world.broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 2, expired: 1, acked: 1, nacked: 0 })
  })
})
