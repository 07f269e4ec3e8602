/** The front door: URLs, loggers, diagnostics channels, metrics, events. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it, vi } from 'vitest'
import * as odradek from '../src/index.ts'
import { openBroker } from '../src/index.ts'
import { ManualClock } from '../src/testing/manual-clock.ts'
import { codeOf, codeThrown, Hands, upTo, World } from './support/world.ts'

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

describe('openBroker', () => {
  it('opens the memory engine by default and by URL', async () => {
    for (const url of [undefined, 'memory:', 'MEMORY:', 'memory:tests']) {
      const broker = await openBroker(url)
      await (await broker.createTopic('orders')).publish(1)
      expect(await broker.close()).toEqual({ abandoned: 0 })
    }
  })

  it('says so when there is no engine for a scheme, or no scheme', async () => {
    expect(await codeOf(openBroker('kafka://localhost:9092'))).toBe('UNSUPPORTED')
    expect(await codeOf(openBroker('./data'))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(openBroker(7 as never))).toBe('INVALID_ARGUMENT')
  })

  it('checks its options', async () => {
    expect(await codeOf(openBroker('memory:', { commitFlushMs: -1 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(openBroker('memory:', { offsetRetentionMs: 0 }))).toBe('INVALID_ARGUMENT')
    for (const options of [{ loger: console }, { logger: { warn: () => {} } }, { logger: 'pino' }, 'quiet']) {
      expect(await codeOf(openBroker('memory:', options as never))).toBe('INVALID_ARGUMENT')
    }
  })

  it('exports these names and no others', () => {
    expect(Object.keys(odradek).sort()).toEqual([
      'BatchError',
      'ERROR_CODES',
      'KiB',
      'MiB',
      'OdradekError',
      'RecordHeaders',
      'defaultCodec',
      'openBroker',
    ])
  })
})

describe('lifecycle events', () => {
  it('are published on the diagnostics channels odradek:<event>', async () => {
    const heard: unknown[] = []
    const listener = (event: unknown): void => void heard.push(event)
    subscribe('odradek:topicCreated', listener)
    const broker = await openBroker('memory:', { clock: new ManualClock() })
    const topic = await broker.createTopic('orders')
    await broker.idle()
    unsubscribe('odradek:topicCreated', listener)
    await broker.createTopic('unheard')
    await broker.close()
    expect(heard).toEqual([{ topic: 'orders', topicId: topic.id }])
  })

  it('reach listeners in order, after the drain; on answers the way to stop, once hears one', async () => {
    const { broker, settle } = new World()
    const heard: string[] = []
    const stop = broker.on('topicCreated', ({ topic }) => heard.push(`on ${topic}`))
    broker.once('topicCreated', ({ topic }) => heard.push(`once ${topic}`))
    const listener = ({ topic }: { topic: string }): void => void heard.push(`off ${topic}`)
    broker.on('topicCreated', listener)
    await broker.createTopic('a')
    await settle()
    broker.off('topicCreated', listener)
    await broker.createTopic('b')
    await settle()
    stop()
    await broker.createTopic('c')
    await broker.deleteTopic('c')
    await settle()
    expect(heard).toEqual(['on a', 'once a', 'off a', 'on b'])
  })

  it('whose listener throws or rejects are logged and stop nobody', async () => {
    const { broker, logged, settle } = new World()
    const heard: string[] = []
    broker.on('topicCreated', () => {
      throw new Error('clumsy')
    })
    broker.on('topicCreated', () => Promise.reject(new Error('late')) as never)
    broker.on('topicCreated', ({ topic }) => heard.push(topic))
    await broker.createTopic('a')
    await settle()
    expect(heard).toEqual(['a'])
    expect(logged.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      'a listener of "topicCreated" failed: clumsy',
      'a listener of "topicCreated" failed: late',
    ])
  })

  it('of errors are logged when nobody listens, never thrown', async () => {
    const strategy = {
      select: () => {
        throw new Error('no idea')
      },
    }
    const listen = [false, true]
    for (const listens of listen) {
      const { broker, logged, settle } = new World()
      const heard: string[] = []
      if (listens) broker.on('error', ({ error, context }) => heard.push(`${context}: ${error.message}`))
      const topic = await broker.createTopic('orders')
      for (const id of ['a', 'b']) await topic.subscribe(() => {}, { id, group: 'g', strategy })
      await topic.publish(1)
      await settle()
      const lines = logged.filter(({ level }) => level === 'error').map(({ message }) => message)
      const text = 'delivery strategy of "g": no idea'
      expect([heard, lines]).toEqual(listens ? [[text], []] : [[], [text]])
    }
  })
})

describe('the logger', () => {
  it('is the console for warnings and errors by default, and silent otherwise', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const debug = vi.spyOn(console, 'debug').mockImplementation(() => {})
    const broker = await openBroker()
    const topic = await broker.createTopic('orders', { retention: { records: 1 } })
    const subscription = await topic.subscribe(() => {})
    subscription.pause()
    for (const i of upTo(3)) topic.tryPublish(i)
    await broker.idle()
    broker.metrics()
    await broker.idle()
    await broker.close()
    expect(warn.mock.calls.map(([message]) => message)).toEqual([
      'records dropped: one line an episode, counters and events have them all',
    ])
    expect(debug).not.toHaveBeenCalled()
    vi.restoreAllMocks()
  })

  it('may throw without harm', async () => {
    const boom = (): never => {
      throw new Error('disk full')
    }
    const { broker, settle } = new World({ logger: { ...QUIET, debug: boom, warn: boom, error: boom } })
    const topic = await broker.createTopic<number>('orders', { retention: { records: 2 } })
    const seen: number[] = []
    await topic.subscribe((d) => void seen.push(d.value))
    for (const i of upTo(5)) topic.tryPublish(i)
    await settle()
    expect(seen).toEqual([3, 4])
  })
})

describe('metrics', () => {
  it('are a plain snapshot of topics, partitions, readers and members', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<string>('orders', { retention: { records: 100 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, {
      id: 'alice',
      ack: 'manual',
      concurrency: 3,
      order: 'none',
      retry: { attempts: 2 },
    })
    for (const i of upTo(6)) await topic.publish(`v${i}`)
    await settle()
    hands.deliveries[0]?.ack()
    hands.deliveries[1]?.nack({ delayMs: 1000 })
    hands.deliveries[2]?.reject('bad')
    await settle()
    const { at, topics, readers } = broker.metrics()
    expect(at).toBe(clock.now())
    expect(topics.map(({ name, published, publishedBytes }) => [name, published, publishedBytes])).toEqual([
      ['orders', 6, 6 * 68],
      ['dlq.orders', 1, 68],
    ])
    expect(topics[0]?.partitions).toEqual([
      { partition: 0, start: 0, stable: 6, high: 6, end: 6, records: 6, sizeBytes: 408, waiting: 0 },
    ])
    expect(readers).toHaveLength(1)
    const { handleLatency, ...alice } = readers[0] as (typeof readers)[0]
    expect(handleLatency.count).toBe(0)
    const counters = {
      delivered: 6,
      acked: 1,
      nacked: 1,
      redelivered: 0,
      expired: 0,
      deadLettered: 1,
      skipped: 0,
      dropped: 0,
      zombies: 0,
    }
    expect(alice).toEqual({
      name: 'alice',
      kind: 'broadcast',
      durable: true,
      assignment: null,
      overflow: 'wait',
      order: 'none',
      guarantee: 'at-least-once',
      generation: 0,
      counters,
      members: [{ id: 'alice', inFlight: 3, zombies: 0, paused: false, counters }],
      cursors: [
        {
          topic: 'orders',
          partition: 0,
          committed: 1,
          next: 6,
          lag: 5,
          inFlight: 3,
          retrying: 1,
          owner: null,
          gating: true,
        },
      ],
    })
    expect(JSON.parse(JSON.stringify(broker.metrics().readers))).toEqual(JSON.parse(JSON.stringify(readers)))
  })

  it('keep what members counted that have left', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    for (const id of ['a', 'b']) {
      const member = await topic.subscribe(() => {}, { id, group: 'g' })
      await topic.publish(1)
      await settle()
      await member.close()
    }
    expect(broker.describeGroup('g').counters.acked).toBe(2)
  })

  it('sample how long publishing and handling take', async () => {
    const { broker, clock, settle } = new World()
    const topic = await broker.createTopic<number>('orders')
    await topic.subscribe((d) => new Promise<void>((resolve) => clock.setTimer(() => resolve(), d.value)), {
      id: 'alice',
      concurrency: 200,
      order: 'none',
    })
    for (let i = 0; i < 128; i++) await topic.publish(20)
    await clock.advance(20)
    await settle()
    const { readers, topics } = broker.metrics()
    expect([readers[0]?.handleLatency.count, topics[0]?.publishLatency.count]).toEqual([2, 2])
    expect(readers[0]?.handleLatency.p50Ms).toBeGreaterThan(19)
    expect(readers[0]?.handleLatency.p50Ms).toBeLessThan(21)
  })

  it('describe refuses strangers', async () => {
    const { broker } = new World()
    expect(codeThrown(() => broker.describe('nowhere'))).toBe('UNKNOWN_TOPIC')
    expect(codeThrown(() => broker.describeGroup('nobody'))).toBe('UNKNOWN_CONSUMER')
    expect(codeThrown(() => broker.topic('nowhere'))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(broker.publish('nowhere', 1))).toBe('UNKNOWN_TOPIC')
  })
})

describe('a handle', () => {
  it('knows its topic and does what the broker does by name', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic<number>('orders', { partitions: 3 })
    expect([topic.name, topic.partitions, topic.pressure]).toEqual(['orders', 3, 0])
    expect(topic.id).toMatch(/^[\w-]{22}$/)
    expect(topic.describe()).toEqual(broker.describe('orders'))
    const seen: number[] = []
    await broker.topic<number>('orders').subscribe((d) => void seen.push(d.value))
    await broker.publish('orders', 1)
    expect(broker.tryPublish('orders', 2)?.offset).toBeGreaterThanOrEqual(0)
    await broker.publishAll('orders', [{ value: 3 }, { value: 4 }])
    await settle()
    expect(seen.sort()).toEqual([1, 2, 3, 4])
  })
})
