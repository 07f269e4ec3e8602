/** Values on an engine of bytes: encoded once, in `publish`, and never the caller's object again. */
import { describe, expect, it } from 'vitest'
import type { TopicOptions } from '../../src/model/options.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { defaultCodec, JSON_TYPE, TEXT_TYPE, type ValueCodec } from '../../src/model/value-codec.ts'
import { ByteWorld, bytes } from '../support/byte-world.ts'
import { codeOf, codeThrown, Hands, upTo } from '../support/world.ts'

/** The default codec, counting what it is asked. */
function counting(): ValueCodec & { encoded: number } {
  return {
    encoded: 0,
    encode(value) {
      this.encoded++
      return defaultCodec.encode(value)
    },
    decode: (data, type) => defaultCodec.decode(data, type),
  }
}

/** Points as text, which names no type. */
const points: ValueCodec = {
  encode: (value) => {
    const { x, y } = value as { x: number; y: number }
    return { bytes: bytes(`${x},${y}`), contentType: null }
  },
  decode: (data) => {
    const [x, y] = new TextDecoder()
      .decode(data ?? undefined)
      .split(',')
      .map(Number)
    if (x === undefined || y === undefined || Number.isNaN(y)) throw new Error('no point')
    return { x, y }
  },
}

async function topicOf(options: TopicOptions = {}) {
  const world = new ByteWorld()
  const topic = await world.broker.createTopic<unknown>('t', options)
  return { world, topic, broker: world.broker, read: () => world.broker.read('t') }
}

describe('a value on an engine of bytes', () => {
  it.each([
    ['an object', { order: 7, lines: [1, 'b', null] }, '{"order":7,"lines":[1,"b",null]}', JSON_TYPE],
    ['a number', 1.5, '1.5', JSON_TYPE],
    ['text', 'Käse', 'Käse', TEXT_TYPE],
    ['bytes', bytes('raw'), 'raw', null],
  ])('is stored as bytes and a type, and comes back equal: %s', async (_, value, stored, type) => {
    const { world, topic, read } = await topicOf()
    await topic.publish(value)
    await topic.publish(value, { key: 'k', headers: { h: '1' } })
    topic.tryPublish(value)
    await topic.publishAll([{ value }])
    await world.broker.transaction((tx) => tx.publish('t', value))
    await world.broker.idle()
    const types = type === null ? [] : [['content-type', type]]
    expect(world.stored('t', 0)).toEqual({ value: stored, headers: types })
    expect(world.stored('t', 1)).toEqual({ value: stored, headers: [['h', '1'], ...types] })
    for (const offset of [2, 3, 4]) expect(world.stored('t', offset)).toEqual(world.stored('t', 0))
    const records = await read()
    expect(records.map((record) => record.value)).toEqual(upTo(5).map(() => value))
    expect(records.map((record) => [...record.headers])).toEqual([[], [['h', '1']], [], [], []])
    if (typeof value === 'object') expect(records[0]?.value).not.toBe(value)
  })

  it('that is null is a tombstone, whatever the codec', async () => {
    const { world, topic, read } = await topicOf({ codec: points })
    await topic.publish(null, { key: 'k', headers: { 'content-type': 'text/csv' } })
    expect(world.stored('t', 0)).toEqual({ value: null, headers: [['content-type', 'text/csv']] })
    expect((await read())[0]?.headers.get('content-type')).toBe('text/csv')
  })

  it('has its own content-type beside that of the caller, who gets his own back', async () => {
    const { world, topic, read } = await topicOf()
    const headers = { 'content-type': 'application/vnd.order+json' }
    await topic.publish({ order: 7 }, { headers })
    await topic.publish(bytes('<order/>'), { headers: { 'content-type': 'text/xml' } })
    expect(world.stored('t', 0).headers).toEqual([
      ['content-type', 'application/vnd.order+json'],
      ['content-type', JSON_TYPE],
    ])
    expect(world.stored('t', 1).headers).toEqual([
      ['content-type', 'text/xml'],
      ['__odradek.untyped', null],
    ])
    const records = await read()
    expect(records.map((record) => record.value)).toEqual([{ order: 7 }, bytes('<order/>')])
    expect(records.map((record) => record.headers.getAll('content-type'))).toEqual([
      ['application/vnd.order+json'],
      ['text/xml'],
    ])
  })

  it('is what the schema makes of it', async () => {
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'string' ? { value: { text: value } } : { issues: [{ message: 'no text' }] },
      },
    } as const
    const { world, topic } = await topicOf({ schema })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    await topic.publish('x')
    await world.settle()
    // It was validated when it was published: `{ text: 'x' }` would not fit.
    expect(hands.values).toEqual([{ text: 'x' }])
  })

  it('is encoded once, however it gets in', async () => {
    const codec = counting()
    const { world, topic, broker } = await topicOf({ codec, retention: { records: 2 }, partitions: 2 })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'slow', ack: 'manual', order: 'none', concurrency: 99 })
    await topic.publish('a', { partition: 0 })
    topic.tryPublish('b', { partition: 0 })
    await topic.publishAll([{ value: 'c', partition: 1 }])
    await broker.transaction((tx) => tx.publish('t', 'd', { partition: 1 }))
    expect(codec.encoded).toBe(4)
    await world.settle()
    const waiting = [
      topic.publish('e', { partition: 0 }),
      topic.publishAll([{ value: 'f', partition: 0 }]),
      broker.transaction((tx) => tx.publish('t', 'g', { partition: 1 })),
    ]
    await world.settle()
    for (const delivery of hands.deliveries) delivery.ack()
    await Promise.all(waiting)
    await world.settle()
    expect(codec.encoded).toBe(7)
    expect(hands.values.sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  it.each([
    ['a Map, by default', undefined, new Map(), '$ is an instance of Map'],
    [
      'what makes it throw',
      {
        ...points,
        encode: () => {
          throw new TypeError('no x')
        },
      },
      {},
      'no x',
    ],
    ['what it makes no bytes of', { ...points, encode: () => 'text' as never }, {}, 'no bytes'],
    ['what it answers nothing for', { ...points, encode: () => undefined as never }, {}, 'no bytes'],
  ])('is INVALID_VALUE where the codec refuses it: %s', async (_, codec, value, message) => {
    const { topic, broker } = await topicOf(codec === undefined ? {} : { codec })
    await expect(topic.publish(value)).rejects.toThrow(message)
    expect(await codeOf(topic.publish(value))).toBe('INVALID_VALUE')
    expect(await codeOf(topic.publish(value, { key: 'k' }))).toBe('INVALID_VALUE')
    expect(codeThrown(() => topic.tryPublish(value))).toBe('INVALID_VALUE')
    expect(await codeOf(topic.publishAll([{ value }]))).toBe('INVALID_VALUE')
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', value)))).toBe('INVALID_VALUE')
    expect(topic.describe().partitions[0]?.end).toBe(0)
  })

  it('may be changed by its publisher as soon as the call returned, also while it waits', async () => {
    const { world, topic, broker } = await topicOf({ retention: { records: 3 }, partitions: 2 })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'slow', ack: 'manual', order: 'none', concurrency: 99 })
    const value = bytes('kept')
    const entry = (partition: number) => ({ value, partition })
    const published: Promise<unknown>[] = [
      topic.publish(value, { partition: 0 }),
      topic.publishAll([entry(0), entry(0)]),
      topic.publish(value, { partition: 1 }),
      topic.publishAll([entry(1), entry(1)]),
    ]
    await world.settle()
    published.push(
      topic.publish(value, { partition: 0 }),
      topic.publishAll([entry(1)]),
      broker.transaction(async (tx) => {
        tx.publish('t', value, { partition: 0 })
        await Promise.resolve()
      }),
    )
    value.fill(0)
    await world.settle()
    for (const delivery of hands.deliveries) delivery.ack()
    await Promise.all(published)
    await world.settle()
    expect(hands.values).toEqual(upTo(9).map(() => bytes('kept')))
  })

  it('counts as its bytes, those of key and headers, and 16 more', async () => {
    const { topic, world } = await topicOf({ sizeOf: () => 1_000_000 })
    const sizeOf = async (value: unknown, options = {}): Promise<number> => {
      const before = topic.describe().partitions[0]?.sizeBytes as number
      await topic.publish(value, options)
      return (topic.describe().partitions[0]?.sizeBytes as number) - before
    }
    expect(await sizeOf(bytes('12345'))).toBe(5 + 16)
    expect(await sizeOf(null, { key: 'ä' })).toBe(2 + 16)
    expect(await sizeOf('€', { key: bytes('k') })).toBe(3 + 1 + 'content-type'.length + TEXT_TYPE.length + 16)
    expect(await sizeOf(bytes(''), { headers: { name: 'valuë', b: bytes('12'), n: null } })).toBe(
      4 + 6 + 1 + 2 + 1 + 16,
    )
    expect(world.broker.metrics().topics[0]?.publishedBytes).toBe(topic.describe().partitions[0]?.sizeBytes)
  })

  it('is TOO_LARGE by that size', async () => {
    const { topic } = await topicOf({ retention: { bytes: 100 } })
    expect(await topic.publish(new Uint8Array(84))).toEqual({ partition: 0, offset: 0 })
    expect(await codeOf(topic.publish(new Uint8Array(85)))).toBe('TOO_LARGE')
    expect(codeThrown(() => topic.tryPublish(new Uint8Array(85)))).toBe('TOO_LARGE')
  })
})

describe('a compacted topic', () => {
  it('takes no record without a key, by whatever way', async () => {
    const { topic, broker } = await topicOf({ cleanup: 'compact' })
    expect(await topic.publish(1, { key: 'a' })).toEqual({ partition: 0, offset: 0 })
    expect(topic.tryPublish(null, { key: 'a' })).toEqual({ partition: 0, offset: 1 })
    expect(await codeOf(topic.publish(1))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(topic.publish(1, { key: null }))).toBe('INVALID_ARGUMENT')
    expect(codeThrown(() => topic.tryPublish(1))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(topic.publishAll([{ value: 1, key: 'a' }, { value: 1 }]))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', 1)))).toBe('INVALID_ARGUMENT')
    expect(topic.describe().partitions[0]?.end).toBe(2)
  })

  it('is opened as one, and compared', async () => {
    const { world, broker } = await topicOf({ cleanup: 'compact', deleteRetentionMs: 5 })
    expect(world.specs.at(-1)).toMatchObject({ cleanup: 'compact', deleteRetentionMs: 5 })
    expect(await codeOf(broker.createTopic('t'))).toBe('TOPIC_EXISTS')
    expect(await codeOf(broker.createTopic('t', { cleanup: 'compact' }))).toBe('TOPIC_EXISTS')
    await broker.createTopic('t', { cleanup: 'compact', deleteRetentionMs: 5 })
  })

  it('takes no dead letters, which go by where they failed and not by their key', async () => {
    const { world, topic, broker } = await topicOf()
    expect(await codeOf(broker.createTopic('dlq.t', { cleanup: 'compact' }))).toBe('INVALID_ARGUMENT')
    await broker.createTopic('graveyard', { cleanup: 'compact' })
    await topic.subscribe(() => Promise.reject(new Error('no')), {
      id: 'a',
      retry: { attempts: 1 },
      deadLetter: 'graveyard',
    })
    await topic.publish(1)
    await world.settle()
    expect(world.raised('error')).toMatchObject([{ error: { code: 'INVALID_ARGUMENT' } }])
  })
})

describe('a dead letter on an engine of bytes', () => {
  const READER = { id: 'reader', retry: { attempts: 1 } } as const

  it.each([
    ['JSON', {}, { b: 1, a: 'x' }],
    ['text', {}, 'text'],
    ['bytes', {}, bytes('raw')],
    ['null', {}, null],
    ['what another codec made', { codec: points }, { x: 1, y: 2 }],
  ])('has the bytes and the type of its record, and so has its copy: %s', async (_, options, value) => {
    const { world, topic, broker } = await topicOf(options)
    const headers = { 'content-type': 'mine', own: '1' }
    let broken = true
    const seen: unknown[] = []
    await topic.subscribe((d) => {
      if (broken) throw new Error('no')
      seen.push([d.value, d.headers.getAll('content-type')])
    }, READER)
    await topic.publish(value, { headers, key: 'k' })
    await broker.idle()
    const original = world.stored('t', 0)
    const own = (record: { headers: [string, unknown][] }): [string, unknown][] =>
      record.headers.filter(([name]) => !/^__(dlq|redrive|odradek\.id)/.test(name))
    const letter = world.stored('dlq.t', 0)
    expect([letter.value, own(letter)]).toEqual([original.value, original.headers])
    broken = false
    expect(await broker.redrive('dlq.t')).toEqual({ redriven: 1, kept: 0 })
    await broker.idle()
    const copy = world.stored('t', 1)
    expect([copy.value, own(copy)]).toEqual([original.value, original.headers])
    expect(seen).toEqual([[value, ['mine']]])
  })

  it('of what could not be decoded is bytes to read, and goes back as it came', async () => {
    let mended = false
    const codec: ValueCodec = {
      encode: (value) => ({ bytes: bytes(`v2:${value}`), contentType: 'x/versioned' }),
      decode: (data, type) => {
        const text = new TextDecoder().decode(data ?? undefined)
        if (!mended || type !== 'x/versioned') throw new Error('which version?')
        return text.slice(3)
      },
    }
    const { world, topic, broker } = await topicOf({ codec })
    const seen: unknown[] = []
    await topic.subscribe((d) => void seen.push(d.value), READER)
    await topic.publish('a', { key: 'k' })
    await broker.idle()
    const [letter] = await broker.read('dlq.t')
    expect(letter?.value).toEqual(bytes('v2:a'))
    expect(letter?.headers.get('content-type')).toBe('x/versioned')
    expect(letter?.headers.get('__dlq.errors.message')).toContain('which version?')
    mended = true
    await broker.redrive('dlq.t')
    await broker.idle()
    expect(seen).toEqual(['a'])
    expect(world.stored('t', 1).value).toBe('v2:a')
    expect(world.stored('t', 1).headers.filter(([name]) => name === 'content-type')).toEqual([
      ['content-type', 'x/versioned'],
    ])
  })

  it('that its own topic cannot decode goes back as it came, too', async () => {
    const { world, topic, broker } = await topicOf()
    await broker.createTopic('dlq.t', { codec: points })
    let broken = true
    const seen: unknown[] = []
    await topic.subscribe((d) => {
      if (broken) throw new Error('no')
      seen.push(d.value)
    }, READER)
    await topic.publish({ a: 1 })
    await broker.idle()
    broken = false
    await broker.redrive('dlq.t')
    await broker.idle()
    expect(seen).toEqual([{ a: 1 }])
    expect(world.stored('t', 1).value).toBe('{"a":1}')
  })

  it('of a value that its handler made unfit for the codec is a null that says so, and no jam', async () => {
    const { topic, broker } = await topicOf()
    await topic.subscribe((d) => {
      Object.assign(d.value as object, { cache: new Map() })
      throw new Error('no')
    }, READER)
    await topic.publish({ a: 1 })
    await broker.idle()
    const [letter] = await broker.read('dlq.t')
    expect(letter?.value).toBeNull()
    expect(letter?.headers.get('__odradek.unencodable')).toContain('$.cache is an instance of Map')
    expect(topic.describe().readers[0]?.cursors[0]?.committed).toBe(1)
  })
})

describe('headers', () => {
  it('of many types are not kept for ever', async () => {
    let type = 0
    const codec: ValueCodec = {
      encode: () => ({ bytes: bytes(''), contentType: `x/${type++}` }),
      decode: (data) => data,
    }
    const { world, topic } = await topicOf({ codec })
    for (const value of upTo(200)) await topic.publish(value)
    expect(world.stored('t', 199).headers).toEqual([['content-type', 'x/199']])
    expect(new RecordHeaders([]).sizeBytes).toBe(0)
  })
})
