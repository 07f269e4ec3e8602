/** A record as its handler sees it: the envelope, the value, what identifies it, and when it was. */
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { PublishOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World } from '../support/world.ts'

const utf8 = new TextEncoder()

async function orders() {
  const world = new World()
  const topic = await world.broker.createTopic('orders')
  const hands = new Hands()
  await topic.subscribe(hands.take, { id: 'reader', ack: 'manual', order: 'none', concurrency: 1_000 })
  return { world, topic, hands }
}

/** Publishes one record and answers its delivery. */
async function delivered(value: unknown, options?: PublishOptions): Promise<Delivery> {
  const { world, topic, hands } = await orders()
  await topic.publish(value, options)
  await world.settle()
  return hands.last
}

describe('the envelope of a record', () => {
  it('says where and when it stands, and what its publisher said of it', async () => {
    const { world, topic, hands } = await orders()
    await topic.publish('first')
    await topic.publish({ order: 7 }, { key: 'alice', headers: { source: 'web' } })
    await world.settle()
    const d = hands.last
    expect([d.topic, d.partition, d.offset, d.timestamp]).toEqual(['orders', 0, 1, world.clock.now()])
    expect([d.key, d.value, [...d.headers]]).toEqual(['alice', { order: 7 }, [['source', 'web']]])
    expect([d.attempt, d.redelivered, d.signal.aborted]).toEqual([1, false, false])
  })

  it('cannot be written to', async () => {
    const d = await delivered('a', { key: 'k', headers: { h: 'v' } })
    const names = [
      'topic',
      'partition',
      'offset',
      'timestamp',
      'key',
      'value',
      'headers',
      'id',
      'attempt',
      'redelivered',
      'signal',
    ] as const
    for (const name of names) {
      const before = d[name]
      expect(() => Object.assign(d, { [name]: 'forged' }), name).toThrow(TypeError)
      expect(d[name], name).toBe(before)
    }
  })

  it('is the same for every reader, and the value is the very object that was published', async () => {
    const { world, topic, hands } = await orders()
    const other = new Hands()
    await topic.subscribe(other.take, { id: 'other', ack: 'manual' })
    const value = { list: [1], when: new Date(0), call: () => 'mine' }
    await topic.publish(value)
    await world.settle()
    expect(hands.last.value).toBe(value)
    expect(other.last.value).toBe(value)
    expect((await world.broker.read('orders'))[0]?.value).toBe(value)
    expect(other.last.id).toBe(hands.last.id)
  })

  it('shows itself, and not our bookkeeping, to JSON and to the console', async () => {
    const d = await delivered('a', { key: 'k', headers: { h: 'v' } })
    const shown = {
      id: d.id,
      topic: 'orders',
      partition: 0,
      offset: 0,
      timestamp: d.timestamp,
      key: 'k',
      value: 'a',
      headers: [['h', 'v']],
      attempt: 1,
    }
    expect(JSON.parse(JSON.stringify(d))).toEqual(shown)
    expect(inspect(d)).toContain("value: 'a'")
    expect(inspect(d)).not.toContain('cursor')
  })
})

describe('the value of a record', () => {
  it('may be null, which is a tombstone, and is never undefined', async () => {
    expect((await delivered(null, { key: 'k' })).value).toBeNull()
    const { topic, world } = await orders()
    expect(await codeOf(topic.publish(undefined))).toBe('INVALID_VALUE')
    expect(await codeOf(topic.publishAll([{ value: 1 }, { value: undefined }]))).toBe('INVALID_VALUE')
    expect(await world.broker.read('orders')).toEqual([])
  })

  it('may be any falsy thing', async () => {
    for (const value of [0, '', false, Number.NaN, 0n]) expect((await delivered(value)).value).toBe(value)
  })
})

describe('the id of a record', () => {
  it('is the one it was published with', async () => {
    expect((await delivered('a', { id: 'order-7' })).id).toBe('order-7')
  })

  it('is else made of topic id, partition and offset, so that no two records share one', async () => {
    const { world, topic, hands } = await orders()
    for (const value of upTo(3)) await topic.publish(value)
    await world.settle()
    expect(hands.deliveries.map((d) => d.id)).toEqual(upTo(3).map((offset) => `${topic.id}/0/${offset}`))
  })

  it('is kept through the dead letters and back', async () => {
    for (const id of [undefined, 'order-7']) {
      const { world, topic, hands } = await orders()
      await topic.publish('a', id === undefined ? {} : { id })
      await world.settle()
      const original = hands.last.id
      hands.last.reject('bad')
      await world.settle()
      const [letter] = await world.broker.read('dlq.orders')
      expect(letter?.id).toBe(original)
      await world.broker.redrive('dlq.orders')
      await world.settle()
      expect([hands.last.offset, hands.last.id]).toEqual([1, original])
    }
  })
})

describe('the key of a record', () => {
  it('is compared as UTF-8 bytes: text and its bytes are one key, other bytes another', async () => {
    const { world, topic } = await orders()
    const seen: unknown[] = []
    await topic.subscribe(
      (d) => {
        seen.push(d.value)
        return new Promise(() => {})
      },
      { group: 'g', concurrency: 9, order: 'key' },
    )
    await topic.publish('text', { key: 'ключ' })
    await topic.publish('the same bytes', { key: utf8.encode('ключ') })
    await topic.publish('the same bytes in a Buffer', { key: Buffer.from('ключ') })
    await topic.publish('other bytes', { key: Uint8Array.of(0xff, 0xfe) })
    await topic.publish('those other bytes again', { key: Uint8Array.of(0xff, 0xfe) })
    await topic.publish('more of other bytes', { key: Uint8Array.of(0xff, 0xfe, 0xfd) })
    await topic.publish('no key')
    await world.settle()
    expect(seen).toEqual(['text', 'other bytes', 'more of other bytes', 'no key'])
  })

  it('chooses the partition by its bytes, whatever form it has', async () => {
    const { world } = await orders()
    const topic = await world.broker.createTopic('wide', { partitions: 16 })
    for (const key of ['a', 'ключ', '🧵', '']) {
      const { partition } = await topic.publish(1, { key })
      expect(await topic.publish(2, { key: utf8.encode(key) })).toMatchObject({ partition })
      expect(await topic.publish(3, { key: Buffer.from(key) })).toMatchObject({ partition })
    }
  })

  it('is a copy of the bytes that were given, since their owner may use them again', async () => {
    for (const key of [utf8.encode('alice'), Buffer.from('alice')]) {
      const { world, topic, hands } = await orders()
      const header = Buffer.from('blue')
      await topic.publish('a', { key, headers: { colour: header } })
      key.fill(0)
      header.fill(0)
      await world.settle()
      expect(Buffer.from(hands.last.key as Uint8Array).toString()).toBe('alice')
      expect(hands.last.headers.get('colour')).toBe('blue')
    }
  })

  it('goes on in order although a handler scribbles over its bytes', async () => {
    const { world, topic } = await orders()
    const seen: unknown[] = []
    await topic.subscribe(
      async (d) => {
        seen.push(d.value)
        if (d.key instanceof Uint8Array) d.key.fill(0)
      },
      { group: 'g', concurrency: 9, order: 'key' },
    )
    for (const value of upTo(3)) await topic.publish(value, { key: utf8.encode('alice') })
    for (const value of upTo(3)) await topic.publish(3 + value, { key: 'alice' })
    await world.settle()
    expect(seen).toEqual(upTo(6))
  })
})

describe('the headers of a record', () => {
  it('are an ordered multi-map: get answers the last value, getAll every one', async () => {
    const d = await delivered('a', {
      headers: [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
        ['bytes', utf8.encode('four')],
        ['none', null],
      ],
    })
    expect([d.headers.get('a'), d.headers.getAll('a')]).toEqual(['3', ['1', '3']])
    expect([...d.headers].map(([name]) => name)).toEqual(['a', 'b', 'a', 'bytes', 'none'])
    expect([d.headers.get('bytes'), d.headers.getBytes('b')]).toEqual(['four', utf8.encode('2')])
    expect([d.headers.get('none'), d.headers.get('missing'), d.headers.has('none')]).toEqual([
      null,
      undefined,
      true,
    ])
  })

  it('may be given as an object, lists and all, or taken from another delivery', async () => {
    const d = await delivered('a', { headers: { a: ['1', '2'], b: 'x', left: undefined, none: null } })
    expect([...d.headers]).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['b', 'x'],
      ['none', null],
    ])
    const copy = await delivered('b', { headers: d.headers })
    expect([...copy.headers]).toEqual([...d.headers])
  })

  it('are empty where there are none, and may have any name', async () => {
    expect([...(await delivered('a')).headers]).toEqual([])
    const headers = { ['__proto__' as string]: 'own', constructor: 'too' }
    const d = await delivered('a', { headers: Object.entries(headers) })
    expect(d.headers.get('constructor')).toBe('too')
    const proto = await delivered('a', { headers: [['__proto__', 'own']] })
    expect(proto.headers.get('__proto__')).toBe('own')
  })

  it('do not change, whatever a reader does with what it was given', async () => {
    const d = await delivered('a', { headers: { h: 'v' } })
    for (const pair of [...d.headers, ...d.headers.toJSON()]) Object.assign(pair, ['h', 'forged'])
    expect([...d.headers, ...d.headers.toJSON()]).toEqual([
      ['h', 'v'],
      ['h', 'v'],
    ])
  })
})

describe('the timestamp of a record', () => {
  it('never goes back within a partition, even if the wall clock does', async () => {
    const { world, topic, hands } = await orders()
    const start = world.clock.now()
    await topic.publish('a')
    world.clock.setWall(start - 60_000)
    await topic.publish('b')
    await topic.publishAll([{ value: 'c' }, { value: 'd' }])
    world.clock.setWall(start + 5)
    await topic.publish('e')
    await world.settle()
    expect(hands.deliveries.map((d) => d.timestamp - start)).toEqual([0, 0, 0, 0, 5])
  })
})
