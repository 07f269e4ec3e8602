import { describe, expect, it } from 'vitest'
import { Broker } from '../../src/broker.ts'
import type { Engine } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { murmur2 } from '../../src/model/key-hash.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { withLogs } from '../support/engines.ts'
import { codeOf, codeThrown, Hands, upTo, World, watch } from '../support/world.ts'

/** The memory engine, whose logs open only when the test lets them. */
function slowEngine(clock: ManualClock): { engine: Engine; open: () => void } {
  const memory = memoryEngine({ clock })
  const waiting: (() => void)[] = []
  const engine = withLogs(memory, async (spec) => {
    const log = await memory.openLog(spec)
    await new Promise<void>((resolve) => waiting.push(resolve))
    return log
  })
  return {
    engine,
    open: () => {
      for (const resolve of waiting.splice(0)) resolve()
    },
  }
}

describe('createTopic', () => {
  it('makes one partition with offsets from 0 unless told otherwise', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    expect(topic.partitions).toBe(1)
    expect(await topic.publish('a')).toEqual({ partition: 0, offset: 0 })
    expect(await topic.publish('b')).toEqual({ partition: 0, offset: 1 })
    expect((await broker.createTopic('wide', { partitions: 7 })).partitions).toBe(7)
  })

  it('retains 65,536 records and 256 MiB per partition, of any age, unless told otherwise', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    expect(broker.describe('orders').retention).toEqual({
      records: 65_536,
      bytes: 256 * 1024 * 1024,
      ageMs: Number.POSITIVE_INFINITY,
    })
  })

  it('is a no-op for an existing topic with equal settings', async () => {
    const { broker, raised, settle } = new World()
    const settings = { partitions: 2, retention: { records: 10, ageMs: 5_000 }, dedupe: { windowMs: 9 } }
    const first = await broker.createTopic('orders', settings)
    await first.publish('kept')
    const second = await broker.createTopic('orders', {
      ...settings,
      retention: { ageMs: 5_000, records: 10 },
    })
    expect(second.id).toBe(first.id)
    expect(second.partitions).toBe(2)
    await settle()
    expect(raised('topicCreated')).toEqual([{ topic: 'orders', topicId: first.id }])
  })

  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
  } as const
  const codec = { encode: () => ({ bytes: null, contentType: null }), decode: () => null }
  it.each([
    ['partitions', { partitions: 2 }],
    ['retention by records', { retention: { records: 5 } }],
    ['retention by bytes', { retention: { bytes: 5_000 } }],
    ['retention by age', { retention: { ageMs: 5 } }],
    ['dedupe', { dedupe: true }],
    ['maxWaiting', { maxWaiting: { records: 1 } }],
    ['publishTimeoutMs', { publishTimeoutMs: 1 }],
    ['sizeOf', { sizeOf: () => 1 }],
    ['schema', { schema }],
    ['codec', { codec }],
  ])('refuses an existing topic with other %s', async (_, options) => {
    const { broker } = new World()
    await broker.createTopic('orders')
    expect(await codeOf(broker.createTopic('orders', options))).toBe('TOPIC_EXISTS')
    await broker.createTopic('mine', options)
    expect(await codeOf(broker.createTopic('mine'))).toBe('TOPIC_EXISTS')
    expect((await broker.createTopic('mine', options)).name).toBe('mine')
  })

  it('creates once, however many ask at the same time', async () => {
    const clock = new ManualClock()
    const { engine, open } = slowEngine(clock)
    const broker = new Broker(engine, { clock })
    const asked = [broker.createTopic('orders'), broker.createTopic('orders'), broker.createTopic('orders')]
    const other = codeOf(broker.createTopic('orders', { partitions: 2 }))
    await clock.settle()
    open()
    const ids = (await Promise.all(asked)).map((topic) => topic.id)
    expect(new Set(ids).size).toBe(1)
    expect(await other).toBe('TOPIC_EXISTS')
  })

  it('creates nothing in a broker that closed meanwhile', async () => {
    const clock = new ManualClock()
    const { engine, open } = slowEngine(clock)
    const broker = new Broker(engine, { clock })
    const created = codeOf(broker.createTopic('orders'))
    const closed = broker.close()
    await clock.settle()
    open()
    expect(await created).toBe('CLOSED')
    await closed
    expect(broker.listTopics()).toEqual([])
    expect(await codeOf(broker.createTopic('late'))).toBe('CLOSED')
  })

  it.each(['', '.', '..', 'a b', 'a/b', 'é', 'orders*', 'a'.repeat(246), 7, null])(
    'refuses the name %j',
    async (name) => {
      const { broker } = new World()
      expect(await codeOf(broker.createTopic(name as string))).toBe('INVALID_TOPIC')
    },
  )

  it('takes names of 1 to 245 characters, and the dead letters of the longest too', async () => {
    const { broker, settle } = new World()
    const longest = 'a'.repeat(245)
    await broker.createTopic('x')
    const topic = await broker.createTopic(longest)
    await topic.subscribe(
      () => {
        throw new Error('never')
      },
      { id: 'reader', retry: { attempts: 1 } },
    )
    await topic.publish('bad')
    await settle()
    expect((await broker.read(`dlq.${longest}`)).map((letter) => letter.value)).toEqual(['bad'])
    expect(await codeOf(broker.createTopic(`dlq.${longest}a`))).toBe('INVALID_TOPIC')
  })

  it('refuses a name that differs from another in "." and "_" only, until that one is deleted', async () => {
    const { broker } = new World()
    await broker.createTopic('eu.orders_new')
    expect(await codeOf(broker.createTopic('eu_orders_new'))).toBe('INVALID_TOPIC')
    expect(await codeOf(broker.createTopic('eu_orders.new'))).toBe('INVALID_TOPIC')
    expect((await broker.createTopic('eu-orders-new')).name).toBe('eu-orders-new')
    await broker.deleteTopic('eu.orders_new')
    expect((await broker.createTopic('eu_orders_new')).name).toBe('eu_orders_new')
  })

  it('frees the name, and those it collides with, when the engine cannot open the topic', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    let broken = true
    const engine = withLogs(memory, (spec) =>
      broken ? Promise.reject(new Error('no disk')) : memory.openLog(spec),
    )
    const broker = new Broker(engine, { clock })
    await expect(broker.createTopic('a.b')).rejects.toThrow('no disk')
    broken = false
    expect((await broker.createTopic('a_b')).name).toBe('a_b')
  })
})

describe('alterTopic', () => {
  it('adds partitions that start at 0 for every reader, whose first records are seen', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await topic.publish('old')
    const seen: unknown[] = []
    await topic.subscribe((d) => void seen.push(d.value), { id: 'a' })
    await topic.subscribe((d) => void seen.push(d.value), { group: 'g' })
    await topic.subscribe((d) => void seen.push(d.value), { group: 'c', assignment: 'range' })
    await topic.subscribe((d) => void seen.push(d.value))
    await broker.alterTopic('orders', { partitions: 3 })
    expect(topic.partitions).toBe(3)
    expect(await topic.publish('new', { partition: 2 })).toEqual({ partition: 2, offset: 0 })
    await broker.idle()
    expect(seen).toEqual(['new', 'new', 'new', 'new'])
  })

  it('sends keys by the new number of partitions from then on', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders', { partitions: 2 })
    await broker.alterTopic('orders', { partitions: 5 })
    const keys = upTo(20).map((i) => `key-${i}`)
    for (const key of keys) {
      const { partition } = await topic.publish(key, { key })
      expect(partition).toBe((murmur2(new TextEncoder().encode(key)) & 0x7fff_ffff) % 5)
    }
  })

  it('never removes partitions, and changes nothing when it refuses', async () => {
    const { broker } = new World()
    await broker.createTopic('orders', { partitions: 3 })
    const change = { partitions: 2, retention: { records: 7 } }
    expect(await codeOf(broker.alterTopic('orders', change))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.alterTopic('orders', { partitions: 0 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.alterTopic('orders', { partitions: 100_001 }))).toBe('INVALID_ARGUMENT')
    const unknown = { schema: null } as object
    expect(await codeOf(broker.alterTopic('orders', unknown))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.alterTopic('nobody', {}))).toBe('UNKNOWN_TOPIC')
    expect(broker.describe('orders').partitions).toHaveLength(3)
    expect(broker.describe('orders').retention.records).toBe(65_536)
  })

  it('adds the partitions asked for, not their sum, when two ask at once', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    await Promise.all([
      broker.alterTopic('orders', { partitions: 3 }),
      broker.alterTopic('orders', { partitions: 4 }),
      broker.alterTopic('orders', { partitions: 4 }),
    ])
    expect(broker.describe('orders').partitions.map((each) => each.partition)).toEqual([0, 1, 2, 3])
  })

  it('stops at a topic that is deleted meanwhile', async () => {
    const clock = new ManualClock()
    const { engine, open } = slowEngine(clock)
    const broker = new Broker(engine, { clock })
    const created = broker.createTopic('orders')
    await clock.settle()
    open()
    await created
    const altered = codeOf(broker.alterTopic('orders', { partitions: 2 }))
    await clock.settle()
    await broker.deleteTopic('orders')
    open()
    expect(await altered).toBe('UNKNOWN_TOPIC')
    expect([...engine.meta.scan('topic/')]).toEqual([])
  })

  it('lets publishers in that wait for the room it makes', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders', { retention: { records: 2 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await topic.publish(0)
    await topic.publish(1)
    const waiting = watch(topic.publish(2))
    await settle()
    expect(waiting.state).toBe('waiting')
    await broker.alterTopic('orders', { retention: { records: 3 } })
    await settle()
    expect(waiting.value).toEqual({ partition: 0, offset: 2 })
  })

  it('gives the partitions it adds the retention it sets', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await broker.alterTopic('orders', { partitions: 2, retention: { records: 3 } })
    for (const value of upTo(5)) {
      await topic.publish(value, { partition: 0 })
      await topic.publish(value, { partition: 1 })
    }
    expect(topic.describe().partitions.map(({ start, end }) => [start, end])).toEqual([
      [2, 5],
      [2, 5],
    ])
  })

  it('keeps what it does not name', async () => {
    const { broker } = new World()
    await broker.createTopic('orders', { retention: { records: 9, bytes: 9_000, ageMs: 900 } })
    await broker.alterTopic('orders', { retention: { bytes: 8_000 } })
    expect(broker.describe('orders').retention).toEqual({ records: 9, bytes: 8_000, ageMs: 900 })
    await broker.createTopic('orders', { retention: { records: 9, bytes: 8_000, ageMs: 900 } })
  })
})

describe('deleteTopic', () => {
  it('rejects waiting publishers and transactions, and ends subscriptions', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders', { retention: { records: 1 } })
    const hands = new Hands()
    const durable = await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    const member = await topic.subscribe(() => {}, { group: 'g' })
    const anonymous = await topic.subscribe(() => {})
    await topic.publish('held')
    const waiting = codeOf(topic.publish('waits'))
    const batch = codeOf(topic.publishAll([{ value: 'waits' }]))
    const transaction = codeOf(broker.transaction((tx) => tx.publish('orders', 'waits')))
    await settle()
    const { signal } = hands.last
    await broker.deleteTopic('orders')
    expect(await Promise.all([waiting, batch, transaction])).toEqual([
      'UNKNOWN_TOPIC',
      'UNKNOWN_TOPIC',
      'UNKNOWN_TOPIC',
    ])
    await Promise.all([durable.closed, member.closed, anonymous.closed])
    expect(signal.aborted).toBe(true)
    expect(hands.last.ack()).toBe(false)
    await broker.idle()
  })

  it('leaves nothing of the topic: neither its name, its records nor its readers', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    await topic.subscribe(() => {}, { id: 'a' })
    await broker.deleteTopic('orders')
    expect(broker.listTopics()).toEqual([])
    expect(codeThrown(() => broker.describe('orders'))).toBe('UNKNOWN_TOPIC')
    expect(codeThrown(() => broker.topic('orders'))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(broker.publish('orders', 1))).toBe('UNKNOWN_TOPIC')
    expect(codeThrown(() => broker.tryPublish('orders', 1))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(broker.publishAll('orders', []))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(topic.publish(1))).toBe('UNKNOWN_TOPIC')
    expect(codeThrown(() => topic.tryPublish(1))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(broker.subscribe('orders', () => {}))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(broker.deleteTopic('orders'))).toBe('UNKNOWN_TOPIC')
    expect(broker.metrics().readers).toEqual([])
  })

  it('gives a topic of the same name a new id, offsets from 0, and readers that know nothing', async () => {
    const { broker, raised, settle } = new World()
    const before = await broker.createTopic('orders')
    await before.publish('a')
    await before.subscribe(() => {}, { id: 'reader' })
    await broker.idle()
    await broker.deleteTopic('orders')
    const after = await broker.createTopic('orders')
    expect(after.id).not.toBe(before.id)
    expect(await after.publish('b')).toEqual({ partition: 0, offset: 0 })
    const hands = new Hands()
    await after.subscribe(hands.take, { id: 'reader', from: 'earliest' })
    await settle()
    expect(hands.values).toEqual(['b'])
    expect(hands.last.id).toBe(`${after.id}/0/0`)
    expect(raised('topicDeleted')).toEqual([{ topic: 'orders', topicId: before.id }])
  })

  it('can be called by a handler of the topic', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders')
    const deleted = watch(
      new Promise<void>((resolve, reject) => {
        void topic.subscribe(() => broker.deleteTopic('orders').then(resolve, reject), { id: 'a' })
      }),
    )
    await topic.publish('go')
    await settle()
    expect(deleted.state).toBe('resolved')
    expect(broker.listTopics()).toEqual([])
  })
})

describe('describe and listTopics', () => {
  it('tell marks, records, bytes and waiting publishers of every partition', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders', { partitions: 2, retention: { records: 3 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    for (const value of ['a', 'b', 'c']) await topic.publish(value, { partition: 1 })
    const abort = new AbortController()
    const given = codeOf(topic.publish('never', { partition: 1, signal: abort.signal }))
    const waiting = codeOf(topic.publish('d', { partition: 1 }))
    abort.abort()
    await settle()
    expect(broker.listTopics()).toEqual(['orders'])
    expect(topic.describe()).toEqual(broker.describe('orders'))
    expect(topic.describe()).toMatchObject({ name: 'orders', id: topic.id, pressure: 1 })
    const none = { start: 0, stable: 0, high: 0, end: 0, records: 0, sizeBytes: 0, waiting: 0 }
    expect(topic.describe().partitions).toEqual([
      { partition: 0, ...none },
      { partition: 1, start: 0, stable: 3, high: 3, end: 3, records: 3, sizeBytes: 3 * 66, waiting: 1 },
    ])
    expect(await given).toBe('ABORTED')
    await broker.close({ drainMs: 0 })
    expect(await waiting).toBe('CLOSED')
  })

  it('tell where each reader is, and what it holds', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('orders')
    await broker.createTopic('other')
    const hands = new Hands()
    await topic.subscribe(hands.take, { group: 'g', ack: 'manual', order: 'none', concurrency: 2 })
    await broker.subscribe('other', () => {}, { group: 'g' })
    for (const value of upTo(5)) await topic.publish(value)
    await settle()
    hands.deliveries[1]?.ack()
    await settle()
    const [reader] = topic.describe().readers
    expect(reader).toMatchObject({ name: 'g', kind: 'share', durable: true, overflow: 'wait', order: 'none' })
    expect(reader?.cursors).toEqual([
      {
        topic: 'orders',
        partition: 0,
        committed: 0,
        next: 3,
        lag: 5,
        inFlight: 2,
        retrying: 0,
        owner: null,
        gating: true,
      },
    ])
    expect(reader?.counters).toMatchObject({ delivered: 3, acked: 1 })
  })
})
