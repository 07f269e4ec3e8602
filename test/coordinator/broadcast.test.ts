/** Broadcast readers: own cursors, durable with a name, forgotten without one. */
import { describe, expect, it } from 'vitest'
import { codeOf, upTo, World } from '../support/world.ts'

describe('a broadcast subscriber', () => {
  it('sees every record accepted after subscribe resolved, in order, whoever else reads', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    await topic.publish(-1)
    const seen: Record<string, number[]> = { alice: [], bob: [] }
    for (const id of ['alice', 'bob']) await topic.subscribe((d) => void seen[id]?.push(d.value), { id })
    for (const i of upTo(5)) await topic.publish(i)
    await settle()
    expect(seen).toEqual({ alice: upTo(5), bob: upTo(5) })
  })

  it('starts where it asks to: earliest, latest, an offset, a date, or per partition', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders', { partitions: 2 })
    for (const i of upTo(4)) {
      await topic.publish(i, { partition: i % 2 })
      await clock.advance(1000)
    }
    const third = new Date(clock.now() - 2000)
    const from = async (
      position: 'earliest' | 'latest' | Date | Record<number, number>,
    ): Promise<number[]> => {
      const seen: number[] = []
      const subscription = await topic.subscribe((d) => void seen.push(d.value), { from: position })
      await settle()
      await subscription.close()
      return seen.sort()
    }
    expect(await from('earliest')).toEqual([0, 1, 2, 3])
    expect(await from('latest')).toEqual([])
    expect(await from(third)).toEqual([2, 3])
    expect(await from({ 0: 1, 1: 0 })).toEqual([1, 2, 3])
    expect(await codeOf(topic.subscribe(() => {}, { from: 0 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(topic.subscribe(() => {}, { from: { 0: 3 } }))).toBe('OFFSET_OUT_OF_RANGE')
  })

  it('with an id keeps its place over close, frees the id at once, and resumes', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    const first = await topic.subscribe((d) => void seen.push(d.value), { id: 'alice' })
    await topic.publish(0)
    await settle()
    expect(await codeOf(topic.subscribe(() => {}, { id: 'alice' }))).toBe('CONSUMER_EXISTS')
    await first.close()
    await topic.publish(1)
    await topic.subscribe((d) => void seen.push(d.value), { id: 'alice', from: 'latest' })
    await topic.publish(2)
    await settle()
    expect(seen).toEqual([0, 1, 2])
  })

  it('resumes in its place also when it comes back with other settings', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: string[] = []
    const first = await topic.subscribe((d) => void seen.push(`a${d.value}`), { id: 'alice' })
    for (const i of upTo(3)) await topic.publish(i)
    await settle()
    await first.close()
    await topic.publish(3)
    await topic.subscribe((d) => void seen.push(`b${d.value}`), {
      id: 'alice',
      order: 'none',
      concurrency: 4,
    })
    await settle()
    expect(seen).toEqual(['a0', 'a1', 'a2', 'b3'])
    expect(broker.describe('orders').readers.map(({ name, order }) => [name, order])).toEqual([
      ['alice', 'none'],
    ])
  })

  it('without an id is forgotten when it closes', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const subscription = await topic.subscribe(() => {})
    expect(broker.describe('orders').readers).toHaveLength(1)
    await subscription.close()
    expect(broker.describe('orders').readers).toEqual([])
  })

  it('that unsubscribes is forgotten: the next of its name starts anew', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    await topic.subscribe((d) => void seen.push(d.value), { id: 'alice' })
    await topic.publish(0)
    await settle()
    await broker.unsubscribe('orders', 'alice')
    await topic.publish(1)
    await topic.subscribe((d) => void seen.push(d.value), { id: 'alice' })
    await topic.publish(2)
    await settle()
    expect(seen).toEqual([0, 2])
    expect(await codeOf(broker.unsubscribe('orders', 'nobody'))).toBe('UNKNOWN_CONSUMER')
    expect(await codeOf(broker.unsubscribe('nowhere', 'alice'))).toBe('UNKNOWN_TOPIC')
  })

  it('that is closed can still be unsubscribed by its id', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await (await topic.subscribe(() => {}, { id: 'alice' })).close()
    await broker.unsubscribe('orders', 'alice')
    expect(broker.describe('orders').readers).toEqual([])
  })

  it('of the same id may read another topic', async () => {
    const { broker, settle } = new World()
    const seen: string[] = []
    for (const name of ['orders', 'payments']) {
      const topic = await broker.createTopic(name)
      await topic.subscribe((d) => void seen.push(`${d.topic} ${String(d.value)}`), { id: 'alice' })
    }
    await broker.publish('orders', 1)
    await broker.publish('payments', 2)
    await settle()
    expect(seen).toEqual(['orders 1', 'payments 2'])
  })

  it('with a name and without members is forgotten after offsetRetentionMs', async () => {
    const { broker, clock } = new World({ offsetRetentionMs: 60_000 })
    const topic = await broker.createTopic('orders')
    const first = await topic.subscribe(() => {}, { id: 'alice' })
    await first.close()
    await clock.advance(59_999)
    expect(broker.describe('orders').readers).toHaveLength(1)
    const second = await topic.subscribe(() => {}, { id: 'alice' })
    await clock.advance(60_000)
    expect(broker.describe('orders').readers).toHaveLength(1)
    await second.close()
    await clock.advance(60_000)
    expect(broker.describe('orders').readers).toEqual([])
  })
})

describe('pause and resume', () => {
  it('hold and continue deliveries; what is in flight goes on', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    const subscription = await topic.subscribe((d) => void seen.push(d.value), { id: 'alice' })
    subscription.pause()
    expect(subscription.paused).toBe(true)
    for (const i of upTo(3)) await topic.publish(i)
    await settle()
    expect(seen).toEqual([])
    subscription.resume()
    await settle()
    expect(seen).toEqual([0, 1, 2])
  })

  it('pauses from within its own handler', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    const subscription = await topic.subscribe((d) => {
      seen.push(d.value)
      subscription.pause()
    })
    await topic.publishAll(upTo(3).map((value) => ({ value })))
    await settle()
    expect(seen).toEqual([0])
    subscription.resume()
    await settle()
    expect(seen).toEqual([0, 1])
  })
})

describe('a signal', () => {
  it('that is aborted ends the subscription like close', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    const stop = new AbortController()
    const subscription = await topic.subscribe((d) => void seen.push(d.value), {
      id: 'alice',
      signal: stop.signal,
    })
    stop.abort()
    await subscription.closed
    await topic.publish(1)
    await settle()
    expect(seen).toEqual([])
    expect(subscription.ended).toBe(true)
    expect(broker.describe('orders').readers[0]?.members).toEqual([])
  })

  it('that was aborted before keeps subscribe from starting', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    expect(await codeOf(topic.subscribe(() => {}, { signal: AbortSignal.abort() }))).toBe('ABORTED')
    expect(broker.describe('orders').readers).toEqual([])
  })
})

describe('a subscriber', () => {
  it('is a function, or an object with onMessage that is called as its method', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const counter = {
      sum: 0,
      onMessage(d: { value: number }) {
        this.sum += d.value
      },
    }
    await topic.subscribe(counter)
    await topic.publish(2)
    await topic.publish(3)
    await settle()
    expect(counter.sum).toBe(5)
    expect(await codeOf(topic.subscribe({} as never))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(topic.subscribe(undefined as never))).toBe('INVALID_ARGUMENT')
  })
})
