/** close, drained, idle, request, waitFor, and what the process is held open for. */
import { describe, expect, it } from 'vitest'
import { codeOf, codeThrown, Hands, upTo, World, watch } from '../support/world.ts'

describe('the close of a broker', () => {
  it('stops deliveries first, lets what is in flight settle, and says what it abandoned', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual', concurrency: 2, order: 'none' })
    for (const i of upTo(4)) await topic.publish(i)
    await settle()
    const closing = watch(broker.close({ drainMs: 1000 }))
    expect(hands.deliveries[0]?.ack()).toBe(true)
    await settle()
    expect([hands.values, closing.state]).toEqual([[0, 1], 'waiting'])
    await clock.advance(1000)
    expect(closing).toEqual({ state: 'resolved', value: { abandoned: 1 } })
    expect(hands.deliveries[1]?.signal.aborted).toBe(true)
    expect(hands.deliveries[1]?.ack()).toBe(false)
  })

  it('lets handlers publish and dead letters land while it drains', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const audit = await broker.createTopic('audit')
    let finish: () => void = () => {}
    await topic.subscribe(
      async (d) => {
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        await d.publish('audit', 'done')
        throw new Error('after all')
      },
      { id: 'a', retry: { attempts: 1 } },
    )
    await topic.publish(1)
    await settle()
    const end = audit.describe
    const closing = broker.close()
    finish()
    expect(await closing).toEqual({ abandoned: 0 })
    expect(typeof end).toBe('function')
    expect(broker.metrics().topics.map(({ name, published }) => [name, published])).toEqual([
      ['orders', 1],
      ['audit', 1],
      ['dlq.orders', 1],
    ])
  })

  it('rejects whoever waits, and everything after, with CLOSED', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders', { retention: { records: 1 } })
    const subscription = await topic.subscribe(() => {}, { id: 'a' })
    subscription.pause()
    await topic.publish(0)
    const waiting = codeOf(topic.publish(1))
    await settle()
    await broker.close()
    expect(await waiting).toBe('CLOSED')
    expect(await codeOf(topic.publish(2))).toBe('CLOSED')
    expect(codeThrown(() => topic.tryPublish(2))).toBe('CLOSED')
    expect(await codeOf(topic.subscribe(() => {}))).toBe('CLOSED')
    expect(await codeOf(broker.createTopic('other'))).toBe('CLOSED')
    expect(await codeOf(broker.transaction((tx) => tx.publish('orders', 1)))).toBe('CLOSED')
    expect(subscription.ended).toBe(true)
    await subscription.closed
  })

  it('may be called by a handler, which does not wait for itself', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    let result: unknown
    await topic.subscribe(async () => {
      result = await broker.close()
    })
    await topic.publish(1)
    await settle()
    expect(result).toEqual({ abandoned: 1 })
  })

  it('ends its drain early by a signal, and is one and the same when called twice', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders')
    await topic.subscribe(() => new Promise(() => {}))
    await topic.publish(1)
    await settle()
    const stop = new AbortController()
    const closing = broker.close({ signal: stop.signal })
    expect(broker.close()).toBe(closing)
    stop.abort()
    expect(await closing).toEqual({ abandoned: 1 })
  })

  it('leaves no timer behind', async () => {
    const { broker, clock, settle } = new World({ offsetRetentionMs: 5000 })
    const topic = await broker.createTopic('orders', { retention: { ageMs: 1000 } })
    await topic.subscribe(() => Promise.reject(new Error('no')), { id: 'a', retry: { delayMs: 500 } })
    await (await topic.subscribe(() => {}, { id: 'b' })).close()
    await topic.publish(1)
    await settle()
    await broker.close({ drainMs: 0 })
    await clock.advance(60_000)
    expect(clock.pending).toBe(0)
    expect(clock.held).toBe(false)
  })

  it('happens at the end of an `await using` block', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    {
      await using subscription = await topic.subscribe(() => {}, { id: 'a' })
      expect(subscription.ended).toBe(false)
    }
    expect(broker.describe('orders').readers[0]?.members).toEqual([])
    await broker[Symbol.asyncDispose]()
    expect(await codeOf(topic.publish(1))).toBe('CLOSED')
  })
})

describe('the close of a subscription', () => {
  it('waits for its handler, hands out nothing more, and gives back what outlasts the drain', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    const subscription = await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    for (const i of upTo(2)) await topic.publish(i)
    await settle()
    const closing = watch(subscription.close({ drainMs: 100 }))
    await clock.advance(99)
    expect(closing.state).toBe('waiting')
    await clock.advance(1)
    expect([closing.state, hands.values]).toEqual(['resolved', [0]])
    expect(hands.last.ack()).toBe(false)
    const again = new Hands()
    await topic.subscribe(again.take, { id: 'a', ack: 'manual' })
    await settle()
    expect([again.values, again.last.attempt, again.last.redelivered]).toEqual([[0], 1, true])
  })

  it('is at once when nothing is in flight, and harmless twice', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const subscription = await topic.subscribe(() => {}, { id: 'a' })
    await subscription.close()
    await subscription.close()
    await subscription.unsubscribe()
    expect(subscription.ended).toBe(true)
  })

  it('by unsubscribe fences what is in flight', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders')
    const hands = new Hands()
    const subscription = await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    await topic.publish(1)
    await settle()
    const { signal } = hands.last
    await subscription.unsubscribe()
    await settle()
    expect([hands.last.ack(), signal.aborted]).toEqual([false, true])
  })
})

describe('idle', () => {
  it('resolves when nothing is deliverable, in flight, waiting or due', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual', retry: { delayMs: 50 } })
    await broker.idle()
    await topic.publish(1)
    const idle = watch(broker.idle())
    await settle()
    expect(idle.state).toBe('waiting')
    hands.last.nack()
    await settle()
    expect(idle.state).toBe('waiting')
    await clock.advance(50)
    hands.last.ack()
    await settle()
    expect(idle.state).toBe('resolved')
  })

  it('does not wait for what a paused or creditless reader has not asked for', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    ;(await topic.subscribe(() => {}, { id: 'paused' })).pause()
    await topic.subscribe(() => {}, { id: 'patient', credit: 'manual' })
    await topic.publish(1)
    await broker.idle()
  })
})

describe('drained', () => {
  it('resolves once every record accepted before the call is settled', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    const subscription = await topic.subscribe(hands.take, {
      id: 'a',
      ack: 'manual',
      order: 'none',
      concurrency: 9,
    })
    for (const i of upTo(2)) await topic.publish(i)
    await settle()
    const drained = watch(subscription.drained())
    await topic.publish(2)
    await settle()
    hands.deliveries[1]?.ack()
    await settle()
    expect(drained.state).toBe('waiting')
    hands.deliveries[0]?.ack()
    await settle()
    expect(drained.state).toBe('resolved')
  })

  it('can be given up, and rejects when the reader is forgotten', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const subscription = await topic.subscribe(() => {}, { id: 'a' })
    subscription.pause()
    await topic.publish(1)
    const stop = new AbortController()
    const given = codeOf(subscription.drained({ signal: stop.signal }))
    const lost = codeOf(subscription.drained())
    stop.abort()
    expect(await given).toBe('ABORTED')
    expect(await codeOf(subscription.drained({ signal: AbortSignal.abort() }))).toBe('ABORTED')
    await subscription.unsubscribe()
    expect(await lost).toBe('CLOSED')
  })
})

describe('waitFor', () => {
  it('resolves once the record at a position is settled for the reader', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const hands = new Hands()
    const subscription = await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    const position = await topic.publish(1)
    const waiting = watch(subscription.waitFor(position))
    await settle()
    expect(waiting.state).toBe('waiting')
    hands.last.ack()
    await settle()
    expect(waiting.state).toBe('resolved')
    await subscription.waitFor({ ...position, topic: 'orders' })
  })

  it('refuses what the reader does not read', async () => {
    const { broker } = new World()
    for (const name of ['a.x', 'a.y']) await broker.createTopic(name)
    const subscription = await broker.subscribe('a.*', () => {})
    expect(await codeOf(subscription.waitFor({ partition: 0, offset: 0 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(subscription.waitFor({ topic: 'b', partition: 0, offset: 0 }))).toBe(
      'INVALID_ARGUMENT',
    )
    for (const partition of [1, -1, 0.5, 'length' as unknown as number]) {
      const position = { topic: 'a.x', partition, offset: 0 }
      expect(await codeOf(subscription.waitFor(position))).toBe('INVALID_ARGUMENT')
    }
    for (const offset of [Number.NaN, 0.5, undefined as unknown as number]) {
      const position = { topic: 'a.x', partition: 0, offset }
      expect(await codeOf(subscription.waitFor(position))).toBe('INVALID_ARGUMENT')
    }
  })
})

describe('manual credit', () => {
  it('receives nothing until request(n); a permit is one delivery', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const seen: number[] = []
    const subscription = await topic.subscribe((d) => void seen.push(d.value), { credit: 'manual' })
    for (const i of upTo(5)) await topic.publish(i)
    await settle()
    expect(seen).toEqual([])
    subscription.request(2)
    await settle()
    expect(seen).toEqual([0, 1])
    subscription.request(1)
    subscription.request(9)
    await settle()
    expect(seen).toEqual(upTo(5))
  })

  it('counts redeliveries too', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    const attempts: number[] = []
    const subscription = await topic.subscribe(
      (d) => {
        attempts.push(d.attempt)
        throw new Error('no')
      },
      { id: 'a', credit: 'manual', retry: { attempts: 3, delayMs: 10 } },
    )
    await topic.publish(1)
    subscription.request(1)
    await clock.advance(1000)
    expect(attempts).toEqual([1])
    subscription.request(1)
    await settle()
    expect(attempts).toEqual([1, 2])
  })

  it('refuses nonsense', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const patient = await topic.subscribe(() => {}, { credit: 'manual' })
    for (const n of [0, -1, 1.5, Number.NaN])
      expect(codeThrown(() => patient.request(n))).toBe('INVALID_ARGUMENT')
    const eager = await topic.subscribe(() => {})
    expect(codeThrown(() => eager.request(1))).toBe('INVALID_ARGUMENT')
  })
})

describe('the process', () => {
  it('is held open only while a publish waits, a delivery is unsettled or a retry is due', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders', { retention: { records: 1 } })
    const hands = new Hands()
    const subscription = await topic.subscribe(hands.take, { id: 'a', ack: 'manual', retry: { delayMs: 10 } })
    await settle()
    expect(clock.held).toBe(false)
    await topic.publish(0)
    await settle()
    expect(clock.held).toBe(true)
    hands.last.nack()
    await settle()
    expect(clock.held).toBe(true)
    await clock.advance(10)
    hands.last.ack()
    await settle()
    expect(clock.held).toBe(false)
    subscription.pause()
    await topic.publish(1)
    const waiting = codeOf(topic.publish(2))
    await settle()
    expect(clock.held).toBe(true)
    await broker.close({ drainMs: 0 })
    expect([await waiting, clock.held]).toEqual(['CLOSED', false])
  })
})
