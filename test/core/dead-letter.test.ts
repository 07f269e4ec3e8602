/** Where records go that failed for good, what is written on them, and when the original is settled. */
import { describe, expect, it } from 'vitest'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { wireBatch, wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { Machine } from '../support/durable.ts'
import { changedLog, withLogs } from '../support/engines.ts'
import { Hands, upTo, World } from '../support/world.ts'

/** Where a RecordBatch v2 has its checksum, of all that follows, and its records. */
const CRC_AT = 17
const RECORDS_AT = 61

const READER = { id: 'reader', retry: { attempts: 2, delayMs: 0 } } as const

/** A topic whose reader fails on everything but 'good'. */
async function failing(options: SubscribeOptions = READER, world = new World()) {
  const topic = await world.broker.createTopic('orders')
  const seen: unknown[] = []
  const sub = await topic.subscribe((d) => {
    seen.push(d.value)
    if (d.value !== 'good') throw new Error('no luck')
  }, options)
  return { world, topic, seen, sub, letters: (name = 'dlq.orders') => world.broker.read(name) }
}

/** A wire batch of two records whose checksum is right and whose records are not. */
function undecodable(): Uint8Array {
  const { bytes } = wireBatchOf([{ value: 'x' }, { value: 'y' }])
  const broken = (bytes as Uint8Array).slice()
  broken.fill(0xff, RECORDS_AT)
  new DataView(broken.buffer).setUint32(CRC_AT, crc32c(broken.subarray(CRC_AT + 4)))
  return broken
}

describe('a dead letter', () => {
  it('is a copy of the record, with the headers of KIP-1191 beside its own', async () => {
    const { world, topic, letters } = await failing({ ...READER, group: 'shippers', id: 'one' })
    const value = { order: 7 }
    await topic.publish('good')
    await topic.publish(value, {
      key: 'alice',
      headers: [
        ['a', '1'],
        ['a', '2'],
      ],
      id: 'order-7',
    })
    await world.broker.idle()
    const [letter] = await letters()
    expect([letter?.value, letter?.key, letter?.id]).toEqual([value, 'alice', 'order-7'])
    expect(letter?.value).toBe(value)
    expect([...(letter?.headers ?? [])]).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['__odradek.id', 'order-7'],
      ['__dlq.errors.topic', 'orders'],
      ['__dlq.errors.partition', '0'],
      ['__dlq.errors.offset', '1'],
      ['__dlq.errors.group', 'shippers'],
      ['__dlq.errors.delivery.count', '2'],
      ['__dlq.errors.message', 'no luck'],
    ])
  })

  it('of a broadcast reader is filed under a name that no group can have', async () => {
    const { world, topic, letters } = await failing()
    await topic.publish('bad')
    await world.broker.idle()
    expect((await letters())[0]?.headers.get('__dlq.errors.group')).toBe('odradek.reader.reader')
  })

  it('is raised, with where it went and how often it was tried', async () => {
    const { world, topic } = await failing()
    await topic.publish('bad')
    await world.broker.idle()
    expect(world.raised('deadLetter')).toEqual([
      {
        topic: 'orders',
        partition: 0,
        offset: 0,
        reader: 'reader',
        attempts: 2,
        reason: 'no luck',
        deadLetterTopic: 'dlq.orders',
      },
    ])
  })

  it('goes to the topic that the reader names, which is made when it is missing', async () => {
    const { world, topic, letters } = await failing({ ...READER, deadLetter: 'graveyard' })
    await topic.publish('bad')
    await world.broker.idle()
    expect((await letters('graveyard')).map((letter) => letter.value)).toEqual(['bad'])
    expect(world.broker.listTopics()).not.toContain('dlq.orders')
  })

  it('comes at once from reject, whatever the attempt, with the reason that was given', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('orders')
    await topic.subscribe((d) => void d.reject(d.value === 'a' ? 'malformed' : undefined), READER)
    await topic.publish('a')
    await topic.publish('b')
    await world.broker.idle()
    const letters = await world.broker.read('dlq.orders')
    expect(letters.map(({ headers }) => headers.get('__dlq.errors.message'))).toEqual([
      'malformed',
      'rejected',
    ])
    expect(letters.map(({ headers }) => headers.get('__dlq.errors.delivery.count'))).toEqual(['1', '1'])
  })

  it('is not held up by a reader of the dead letters that gates them', async () => {
    const { world, topic, letters } = await failing({ ...READER, retry: { attempts: 1 } })
    const graves = await world.broker.createTopic('dlq.orders', { retention: { records: 3 } })
    const slow = new Hands()
    const sub = await graves.subscribe(slow.take, { id: 'undertaker', ack: 'manual' })
    for (const value of upTo(9)) await topic.publish(value)
    await world.broker.idle
    await world.settle()
    expect((await letters()).map((letter) => letter.value)).toEqual([6, 7, 8])
    expect(sub.describe().counters.dropped).toBeGreaterThan(0)
  })

  it('of what cannot be decoded keeps its bytes, and is no jam', async () => {
    const { world, topic, seen, letters } = await failing()
    const log = world.logs.get('orders/0')
    const broken = undecodable()
    expect(log?.tryAppend(wireBatch(broken, 2))).toMatchObject({ base: 0, last: 1 })
    log?.tryAppend(wireBatchOf([{ value: 'good' }]))
    await topic.publish('good')
    await world.broker.idle()
    expect(seen).toEqual(['good', 'good'])
    const dead = await letters()
    // One for the whole batch: nobody can say what its records are.
    expect(dead.map((letter) => (letter.value as Uint8Array).length)).toEqual([broken.length])
    expect(dead[0]?.headers.get('__dlq.errors.message')).toMatch(/cannot be decoded/)
  })
})

describe('a reader without dead letters', () => {
  it('at most once, skips what cannot be decoded', async () => {
    const { world, topic, seen, sub } = await failing({ id: 'reader', guarantee: 'at-most-once' })
    world.logs.get('orders/0')?.tryAppend(wireBatch(undecodable(), 2))
    await topic.publish('good')
    await world.broker.idle()
    expect(seen).toEqual(['good'])
    expect(sub.describe().counters).toMatchObject({ delivered: 1, acked: 1, skipped: 1 })
    expect(world.raised('deadLetter')).toMatchObject([{ offset: 0, deadLetterTopic: null }])
  })

  it('counts, skips and raises', async () => {
    const { world, topic, sub, seen } = await failing({ ...READER, deadLetter: false })
    await topic.publish('bad')
    await topic.publish('good')
    await world.broker.idle()
    expect(seen).toEqual(['bad', 'bad', 'good'])
    expect(sub.describe().counters).toMatchObject({ skipped: 1, deadLettered: 0, acked: 1 })
    expect(world.raised('deadLetter')).toMatchObject([{ offset: 0, attempts: 2, deadLetterTopic: null }])
    expect(world.broker.listTopics()).toEqual(['orders'])
  })

  it('at most once, skips a record whose handler failed, and it does not come again', async () => {
    const { world, topic, sub, seen } = await failing({ id: 'reader', guarantee: 'at-most-once' })
    await topic.publish('bad')
    await topic.publish('good')
    await world.broker.idle()
    expect(seen).toEqual(['bad', 'good'])
    expect(sub.describe().counters).toMatchObject({ skipped: 1, nacked: 0, acked: 1, deadLettered: 0 })
    expect(world.raised('deadLetter')).toMatchObject([{ reason: 'no luck', deadLetterTopic: null }])
    expect(world.broker.listTopics()).toEqual(['orders'])
  })

  it('at most once, has nothing to ack, nack, reject', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('orders')
    const answers: boolean[] = []
    const sub = await topic.subscribe((d) => void answers.push(d.ack(), d.nack(), d.reject()), {
      id: 'reader',
      guarantee: 'at-most-once',
    })
    await topic.publish('a')
    await world.broker.idle()
    expect(answers).toEqual([false, false, false])
    expect(sub.describe().counters).toMatchObject({ acked: 1, nacked: 0 })
  })

  it('is one that reads dead letters: what fails there stays there', async () => {
    for (const [name, deadLetter] of [
      ['dlq.orders', undefined],
      ['graveyard', 'graveyard'],
    ] as const) {
      const { world, topic, letters } = await failing(
        deadLetter === undefined ? READER : { ...READER, deadLetter },
      )
      await topic.publish('bad')
      await world.broker.idle()
      const undertaker = await world.broker.subscribe(
        name,
        () => {
          throw new Error('here too')
        },
        { id: 'undertaker', from: 'earliest', retry: { attempts: 2, delayMs: 0 }, deadLetter: 'elsewhere' },
      )
      await world.broker.idle()
      expect(undertaker.describe().counters).toMatchObject({ delivered: 2, skipped: 1, deadLettered: 0 })
      expect(world.raised('deadLetter').at(-1)).toMatchObject({ topic: name, deadLetterTopic: null })
      expect(world.broker.listTopics()).toEqual(['orders', name])
      expect(await letters(name)).toHaveLength(1)
    }
  })

  it('stays one after a restart, whatever its topic is called', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    await first.broker.createTopic('graveyard')
    const { topic } = await failing({ ...READER, deadLetter: 'graveyard' }, first)
    await topic.publish('bad')
    await first.broker.idle()
    await first.broker.close()
    const { broker } = await machine.boot()
    await broker.subscribe('graveyard', () => Promise.reject(new Error('here too')), {
      id: 'undertaker',
      from: 'earliest',
      retry: { attempts: 1 },
    })
    await broker.idle()
    expect(broker.listTopics().sort()).toEqual(['graveyard', 'orders'])
    expect(await broker.redrive('graveyard')).toEqual({ redriven: 1, kept: 0 })
  })
})

describe('the original of a dead letter', () => {
  it('is settled after the copy is in, and the handler does not run again while that is tried', async () => {
    const { world, topic, seen, sub, letters } = await failing()
    await world.broker.createTopic('dlq.orders', { retention: { bytes: 1 } })
    await topic.publish('bad')
    await topic.publish('good')
    await world.clock.advance(60_000)
    expect(seen).toEqual(['bad', 'bad'])
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 0, inFlight: 0 })
    expect(sub.describe().counters.deadLettered).toBe(0)
    const errors = world.raised('error')
    expect(errors[0]).toMatchObject({
      error: { code: 'TOO_LARGE' },
      context: 'dead-lettering orders/0/0 to "dlq.orders"',
    })
    // Tries at 0, 100, 300, 700, 1,500, 3,100 and 6,300 ms, then every 5 s.
    expect(errors).toHaveLength(17)

    await world.broker.alterTopic('dlq.orders', { retention: { bytes: 10_000 } })
    await world.clock.advance(5_000)
    expect(seen).toEqual(['bad', 'bad', 'good'])
    expect((await letters()).map((letter) => letter.value)).toEqual(['bad'])
    expect(sub.describe().cursors[0]?.committed).toBe(2)
    expect(sub.describe().counters.deadLettered).toBe(1)
  })

  it('holds back what its order says meanwhile, and nothing else', async () => {
    const { world, topic, seen } = await failing({ ...READER, order: 'key', concurrency: 9 })
    await world.broker.createTopic('dlq.orders', { retention: { bytes: 1 } })
    await topic.publish('bad', { key: 'k' })
    await topic.publish('good', { key: 'k' })
    await topic.publish('other', { key: 'other' })
    await world.settle()
    expect(seen).toEqual(['bad', 'bad', 'other', 'other'])
    await world.broker.alterTopic('dlq.orders', { retention: { bytes: 10_000 } })
    await world.clock.advance(200)
    expect(seen).toEqual(['bad', 'bad', 'other', 'other', 'good'])
  })

  it('waits for an engine that is behind, which is no error', async () => {
    const memory = memoryEngine({ clock: new ManualClock() })
    let behind = true
    const engine = withLogs(memory, async (spec) => {
      const log = await memory.openLog(spec)
      if (spec.topic !== 'dlq.orders') return log
      return changedLog(log, {
        tryAppend: (batch, mode) => (behind ? 'NO_ROOM' : log.tryAppend(batch, mode)),
      })
    })
    const { world, topic, sub } = await failing(READER, new World({}, engine))
    await topic.publish('bad')
    await world.clock.advance(1_000)
    expect(sub.describe().cursors[0]?.committed).toBe(0)
    behind = false
    await world.clock.advance(5_000)
    expect(sub.describe().cursors[0]?.committed).toBe(1)
    expect((await world.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['bad'])
    expect(world.raised('error')).toEqual([])
  })

  it('waits until the copy is durable, and there is one copy however often that is asked', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    let durable = false
    let asked = 0
    const engine = withLogs(memory, async (spec) => {
      const log = await memory.openLog(spec)
      if (spec.topic !== 'dlq.orders') return log
      const marks = new Proxy(log.marks, {
        get: (target, name) => (name === 'high' && !durable ? 0 : Reflect.get(target, name)),
      })
      return changedLog(log, {
        marks,
        durable: async () => {
          asked++
          if (!durable) throw new Error('flush failed')
        },
      })
    })
    const { world, topic, sub } = await failing(READER, new World({}, engine))
    await topic.publish('bad')
    await world.clock.advance(1_000)
    expect(asked).toBeGreaterThan(2)
    expect(sub.describe().cursors[0]?.committed).toBe(0)
    durable = true
    await world.clock.advance(5_000)
    expect(sub.describe().cursors[0]?.committed).toBe(1)
    expect((await world.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['bad'])
  })

  it('has one copy for each reader that failed', async () => {
    const { world, topic, letters } = await failing()
    await topic.subscribe(() => Promise.reject(new Error('me too')), { ...READER, id: 'other' })
    await topic.publish('bad')
    await world.broker.idle()
    expect((await letters()).map(({ headers }) => headers.get('__dlq.errors.group')).sort()).toEqual([
      'odradek.reader.other',
      'odradek.reader.reader',
    ])
  })

  it('that fails again after a replay has no second copy, unless the first is gone', async () => {
    const { world, topic, letters } = await failing()
    await world.broker.createTopic('dlq.orders', { retention: { records: 2 } })
    const replay = async (): Promise<unknown[]> => {
      await world.broker.resetOffset('orders', 'reader', 'earliest')
      await world.broker.idle()
      return (await letters()).map((letter) => letter.value)
    }
    await topic.publish('a')
    await topic.publish('b')
    expect(await replay()).toEqual(['a', 'b'])
    expect(await replay()).toEqual(['a', 'b'])
    await topic.publish('c')
    await world.broker.idle()
    expect((await letters()).map(({ offset, value }) => [offset, value])).toEqual([
      [1, 'b'],
      [2, 'c'],
    ])
    // Each of the three finds its first copy gone, since each second copy takes another first one.
    await replay()
    expect((await letters()).map(({ offset, value }) => [offset, value])).toEqual([
      [4, 'b'],
      [5, 'c'],
    ])
  })
})

describe('a dead letter that retention takes', () => {
  it('before it was ever redriven raises dropped, one that was redriven does not', async () => {
    const { world, topic } = await failing({ ...READER, retry: { attempts: 1 } })
    await world.broker.createTopic('dlq.orders', { retention: { records: 2 } })
    await topic.publish('a')
    await topic.publish('b')
    await world.broker.idle()
    await world.broker.redrive('dlq.orders', { limit: 1 })
    await world.broker.idle()
    expect(world.raised('dropped')).toEqual([])
    await topic.publish('c')
    await world.broker.idle()
    expect(world.raised('dropped')).toEqual([
      {
        topic: 'dlq.orders',
        partition: 0,
        reader: null,
        count: 1,
        from: 1,
        to: 2,
        reason: 'dead-letter-evicted',
      },
    ])
  })
})
