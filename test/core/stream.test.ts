/** Pull: what asking, leaving and aborting do to the record in hand, in every form of leaving. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { RecordStream } from '../../src/core/stream.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { StreamOptions } from '../../src/model/options.ts'
import { Machine } from '../support/durable.ts'
import { codeOf, codeThrown, Hands, World, watch } from '../support/world.ts'

async function orders(...values: string[]) {
  const world = new World()
  const topic = await world.broker.createTopic<string>('orders')
  for (const value of values) await topic.publish(value)
  return { world, topic }
}

const EARLIEST = { from: 'earliest' } as const

/** Takes the first record in hand, and everything that can happen before it came. */
async function first(stream: RecordStream<string>): Promise<Delivery<string>> {
  const { value } = await stream.next()
  return value as Delivery<string>
}

function listenersAt(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length
}

describe('stream', () => {
  it('hands out records one by one, in order; asking for the next acks the one before', async () => {
    const { world, topic } = await orders('a', 'b', 'c')
    const stream = topic.stream({ ...EARLIEST, id: 'puller' })
    const committed = (): unknown => world.broker.describe('orders').readers[0]?.cursors[0]?.committed
    const seen: unknown[] = []
    for await (const d of stream) {
      seen.push([d.value, d.offset, committed()])
      if (seen.length === 3) break
    }
    expect(seen).toEqual([
      ['a', 0, 0],
      ['b', 1, 1],
      ['c', 2, 2],
    ])
  })

  it('asks for nothing before it is asked, and never has more than one record in hand', async () => {
    const { world, topic } = await orders('a', 'b')
    const stream = topic.stream({ ...EARLIEST, id: 'puller' })
    await world.settle()
    const inFlight = (): unknown => world.broker.describe('orders').readers[0]?.cursors[0]?.inFlight
    expect(inFlight()).toBe(0)
    await stream.next()
    await world.settle()
    expect(inFlight()).toBe(1)
    await stream.return()
  })

  it('waits for records to come', async () => {
    const { world, topic } = await orders()
    const stream = topic.stream()
    const next = watch(stream.next())
    await world.settle()
    expect(next.state).toBe('waiting')
    await topic.publish('late')
    await world.settle()
    expect(next.value).toMatchObject({ done: false, value: { value: 'late' } })
    await stream.return()
  })

  it('serves calls of next that do not wait for each other, in order and one by one', async () => {
    const { world, topic } = await orders('a', 'b', 'c')
    const stream = topic.stream({ ...EARLIEST, id: 'puller' })
    const results = await Promise.all([stream.next(), stream.next(), stream.next()])
    expect(results.map((result) => (result.value as Delivery).value)).toEqual(['a', 'b', 'c'])
    const { cursors } = world.broker.describe('orders').readers[0] ?? {}
    expect(cursors?.[0]).toMatchObject({ committed: 2, inFlight: 1 })
    const more = [stream.next(), stream.next()].map(watch)
    await world.settle()
    await stream.return()
    expect(more.map((next) => next.value)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ])
  })

  it('is pulled like any async iterator: it is its own', async () => {
    const { topic } = await orders()
    const stream = topic.stream()
    expect(stream[Symbol.asyncIterator]()).toBe(stream)
    await stream.return()
  })

  it('gives a record that expired in its hands once more, when it is asked again', async () => {
    const { world, topic } = await orders('a', 'b')
    const stream = topic.stream({ ...EARLIEST, id: 'puller', ackTimeoutMs: 1_000 })
    const held = await first(stream)
    await world.clock.advance(1_000)
    expect(held.signal.aborted).toBe(true)
    const again = await first(stream)
    expect([again.value, again.attempt, again.redelivered]).toEqual(['a', 2, true])
    expect((await first(stream)).value).toBe('b')
    await stream.return()
  })

  it('lets the record in hand be settled otherwise, which asking does not undo', async () => {
    const { world, topic } = await orders('bad', 'good')
    const stream = topic.stream({ ...EARLIEST, id: 'puller' })
    expect((await first(stream)).reject('by hand')).toBe(true)
    expect((await first(stream)).value).toBe('good')
    expect(world.broker.describe('orders').readers[0]?.counters).toMatchObject({ deadLettered: 1, acked: 0 })
    await stream.return()
  })

  it('has no settings that are not for one record at a time, and says so at once', async () => {
    const { topic } = await orders()
    for (const option of [{ ack: 'manual' }, { credit: 'auto' }, { concurrency: 2 }, { batch: 2 }]) {
      expect(codeThrown(() => topic.stream(option as StreamOptions))).toBe('INVALID_ARGUMENT')
    }
  })

  it('throws from next, once, what kept it from subscribing', async () => {
    const { world, topic } = await orders()
    const unknown = world.broker.stream('nowhere')
    const waiting = codeOf(unknown.next())
    expect(await waiting).toBe('UNKNOWN_TOPIC')
    expect(await unknown.next()).toEqual({ done: true, value: undefined })
    const late = world.broker.stream('nowhere')
    await world.settle()
    expect(await codeOf(late.next())).toBe('UNKNOWN_TOPIC')
    expect(await late.next()).toEqual({ done: true, value: undefined })
    const left = world.broker.stream('nowhere')
    expect(await left.return()).toEqual({ done: true, value: undefined })

    await topic.subscribe(() => {}, { id: 'taken' })
    expect(await codeOf(topic.stream({ id: 'taken' }).next())).toBe('CONSUMER_EXISTS')
    await world.broker.close()
    expect(await codeOf(topic.stream().next())).toBe('CLOSED')
  })

  it('without id or group is forgotten when it ends, with either it keeps its place', async () => {
    const { world, topic } = await orders('a', 'b', 'c')
    for (const [options, remembered] of [
      [{}, undefined],
      [{ id: 'puller' }, 'puller'],
      [{ group: 'pullers' }, 'pullers'],
    ] as const) {
      const stream = topic.stream({ ...EARLIEST, ...options })
      await stream.next()
      await stream.next()
      await stream.return()
      const reader = world.broker.describe('orders').readers.find((each) => each.name === remembered)
      expect(reader?.members ?? []).toEqual([])
      expect(reader?.cursors[0]?.committed).toBe(remembered === undefined ? undefined : 1)
      if (remembered === undefined) expect(world.broker.describe('orders').readers).toEqual([])
      const again = await first(topic.stream({ ...EARLIEST, ...options }))
      expect([again.value, again.attempt, again.redelivered]).toEqual(
        remembered === undefined ? ['a', 1, false] : ['b', 1, true],
      )
      again.ack()
    }
  })

  it('shares a group with other members', async () => {
    const { world, topic } = await orders()
    const hands = new Hands()
    await topic.subscribe(hands.take, { group: 'g', id: 'pushed', ack: 'manual' })
    const stream = topic.stream({ group: 'g' })
    const next = watch(stream.next())
    await world.settle()
    await topic.publish('a')
    await topic.publish('b')
    await world.settle()
    expect(hands.values).toEqual(['a'])
    expect(next.value).toMatchObject({ value: { value: 'b' } })
    await stream.return()
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(hands.deliveries.map((d) => [d.value, d.attempt])).toEqual([
      ['a', 1],
      ['b', 1],
    ])
  })
})

/** Ways to leave a loop that holds a record, after which nothing may be left in hand. */
const LEAVING: Readonly<Record<string, (stream: RecordStream<string>) => Promise<unknown>>> = {
  break: async (stream) => {
    for await (const _ of stream) break
  },
  'a throw in the loop': async (stream) => {
    await expect(
      (async () => {
        for await (const d of stream) throw new Error(d.value)
      })(),
    ).rejects.toThrow('a')
  },
  'return from a function': (stream) =>
    (async () => {
      for await (const d of stream) return d.value
      return undefined
    })(),
  'the iterator’s return': async (stream) => {
    await stream.next()
    expect(await stream.return()).toEqual({ done: true, value: undefined })
  },
  'the iterator’s throw': async (stream) => {
    await stream.next()
    await expect(stream.throw(new Error('mine'))).rejects.toThrow('mine')
  },
}

describe('leaving a stream', () => {
  for (const [name, leave] of Object.entries(LEAVING)) {
    for (const id of [undefined, 'puller']) {
      it(`by ${name} releases the record in hand, its attempt unchanged, and unsubscribes${id ? ', its place kept' : ''}`, async () => {
        const { world, topic } = await orders('a', 'b')
        const options = id === undefined ? EARLIEST : { ...EARLIEST, id }
        const stream = topic.stream(options)
        await leave(stream)
        expect(await stream.next()).toEqual({ done: true, value: undefined })
        const { readers } = world.broker.describe('orders')
        expect(readers.map((reader) => [reader.name, reader.members.length])).toEqual(
          id === undefined ? [] : [['puller', 0]],
        )
        if (id !== undefined) {
          const again = await first(topic.stream(options))
          expect([again.value, again.attempt, again.redelivered]).toEqual(['a', 1, true])
          again.ack()
        }
        await world.broker.idle()
        expect(await world.broker.close()).toEqual({ abandoned: 0 })
      })
    }
  }

  it('by a signal ends the loop as if there were no more, and gives back what is in hand', async () => {
    const { world, topic } = await orders('a', 'b')
    const stop = new AbortController()
    const { signal } = stop
    const seen: string[] = []
    const loop = (async () => {
      for await (const d of topic.stream({ ...EARLIEST, id: 'puller', signal })) {
        seen.push(d.value)
        if (d.value === 'b') stop.abort()
      }
    })()
    await loop
    expect(seen).toEqual(['a', 'b'])
    await world.settle()
    expect(listenersAt(signal)).toBe(0)
    const [reader] = world.broker.describe('orders').readers
    expect(reader?.cursors[0]).toMatchObject({ committed: 1, inFlight: 0 })
  })

  it('by a signal wakes who waits for a record', async () => {
    const { world, topic } = await orders()
    const stop = new AbortController()
    const { signal } = stop
    const stream = topic.stream({ signal })
    const next = watch(stream.next())
    await world.settle()
    stop.abort()
    await world.settle()
    expect(next.value).toEqual({ done: true, value: undefined })
    expect(world.broker.describe('orders').readers).toEqual([])
  })

  it('by a signal hands out nothing that arrives while it leaves', async () => {
    const { world, topic } = await orders()
    const stop = new AbortController()
    const { signal } = stop
    const stream = topic.stream({ id: 'puller', signal })
    const next = watch(stream.next())
    await world.settle()
    topic.tryPublish('late')
    stop.abort()
    await world.settle()
    expect(next.value).toEqual({ done: true, value: undefined })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    const again = await first(topic.stream({ id: 'puller' }))
    expect([again.value, again.attempt]).toEqual(['late', 1])
  })

  it('by a signal tells who asks next that its place could not be kept', async () => {
    const machine = new Machine()
    const process = await machine.boot()
    const topic = await process.broker.createTopic<string>('orders')
    const stop = new AbortController()
    const stream = topic.stream({ id: 'puller', signal: stop.signal })
    const next = watch(stream.next())
    await process.settle()
    machine.beforePut = () => {
      throw new Error('disk full')
    }
    stop.abort()
    await process.settle()
    expect(next.value).toEqual({ done: true, value: undefined })
    await expect(stream.next()).rejects.toThrow('disk full')
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(process.broker.describe('orders').readers[0]?.members).toEqual([])
  })

  it('before it began: an aborted signal subscribes nobody', async () => {
    const { world, topic } = await orders('a')
    const stream = topic.stream({ ...EARLIEST, id: 'puller', signal: AbortSignal.abort() })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(await stream.return()).toEqual({ done: true, value: undefined })
    expect(world.broker.describe('orders').readers).toEqual([])
  })

  it('while it still subscribes ends the subscription as soon as there is one', async () => {
    const { world, topic } = await orders('a')
    const stream = topic.stream(EARLIEST)
    const next = watch(stream.next())
    await stream.return()
    expect(next.value).toEqual({ done: true, value: undefined })
    expect(world.broker.describe('orders').readers).toEqual([])
  })

  it('in any way leaves no listener at a signal that lives on', async () => {
    const { topic } = await orders('a')
    const { signal } = new AbortController()
    for (let i = 0; i < 10; i++) {
      for await (const _ of topic.stream({ ...EARLIEST, signal })) break
    }
    expect(listenersAt(signal)).toBe(0)
    const sub = await topic.subscribe(() => {}, { signal })
    expect(listenersAt(signal)).toBe(1)
    await sub.close()
    expect(listenersAt(signal)).toBe(0)
  })

  it('because its topic is deleted ends the loop', async () => {
    const { world, topic } = await orders('a')
    const stream = topic.stream(EARLIEST)
    const held = await first(stream)
    const next = watch(stream.next())
    await world.settle()
    await world.broker.deleteTopic('orders')
    await world.settle()
    expect(next.value).toEqual({ done: true, value: undefined })
    expect(held.ack()).toBe(false)
  })

  it('because the broker closes ends the loop', async () => {
    const { world, topic } = await orders('a')
    const stream = topic.stream(EARLIEST)
    await stream.next()
    const next = watch(stream.next())
    await world.broker.close()
    await world.settle()
    expect(next.value).toEqual({ done: true, value: undefined })
  })
})
