import { describe, expect, it } from 'vitest'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

/** Fills partition `partition`, which a reader of `topic` that takes nothing holds. */
async function fill(world: World, topic: string, partition: number, records: number): Promise<void> {
  for (const value of upTo(records)) await world.broker.publish(topic, value, { partition })
}

describe('the partition of a record', () => {
  it('is the explicit one, whatever the key', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { partitions: 4 })
    for (const partition of upTo(4)) {
      expect((await topic.publish(1, { partition, key: 'k' })).partition).toBe(partition)
    }
    for (const partition of [4, -1, 0.5, Number.NaN, '0', 'length']) {
      const options = { partition: partition as number }
      expect(await codeOf(topic.publish(1, options))).toBe('INVALID_ARGUMENT')
      expect(await codeOf(topic.publishAll([{ value: 1, ...options }]))).toBe('INVALID_ARGUMENT')
    }
  })

  it("is the one of Kafka's Java client for a key, be it text or the bytes of that text", async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { partitions: 6 })
    // What org.apache.kafka.common.utils.Utils.murmur2 answers for the bytes of these keys.
    const murmur2 = {
      '21': -973932308,
      foobar: -790332482,
      'a-little-bit-long-string': -985981536,
      'a-little-bit-longer-string': -1486304829,
      abc: 479470107,
    }
    for (const [key, hash] of Object.entries(murmur2)) {
      const expected = (hash & 0x7fff_ffff) % 6
      expect((await topic.publish(1, { key })).partition).toBe(expected)
      expect((await topic.publish(1, { key: new TextEncoder().encode(key) })).partition).toBe(expected)
    }
  })

  it('without a key stays the same for a run, then is the next one', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { partitions: 3 })
    const partitions: number[] = []
    for (const value of upTo(64 * 6)) partitions.push((await topic.publish(value)).partition)
    const runs = partitions.filter((partition, i) => partition !== partitions[i - 1])
    expect(runs).toEqual([0, 1, 2, 0, 1, 2])
  })

  it('without a key is one with room, while there is one', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 3, retention: { records: 2 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await fill(world, 't', 0, 2)
    await fill(world, 't', 1, 1)
    const went: number[] = []
    for (const value of upTo(3)) went.push((await topic.publish(value)).partition)
    expect(went.sort()).toEqual([1, 2, 2])
    const waiting = watch(topic.publish('waits'))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    expect(topic.tryPublish('no')).toBeUndefined()
  })

  it('without a key is not one where others wait', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 2, retention: { records: 4 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await fill(world, 't', 0, 3)
    const batch = watch(topic.publishAll(upTo(2).map((value) => ({ value, partition: 0 }))))
    await world.settle()
    expect(batch.state).toBe('waiting')
    expect((await topic.publish('elsewhere')).partition).toBe(1)
  })

  it('without a key in a batch is one with room for what was planned for it, too', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 3, retention: { records: 4 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    const published = await topic.publishAll(upTo(12).map((value) => ({ value })))
    const counts = upTo(3).map((partition) => published.filter((each) => each.partition === partition).length)
    expect(counts).toEqual([4, 4, 4])
  })

  it('holds one order: what was published first is delivered first, per partition and per key', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic<number>('t', { partitions: 4 })
    const seen: { key: unknown; value: number; partition: number }[] = []
    await topic.subscribe(({ key, value, partition }) => void seen.push({ key, value, partition }), {
      id: 'a',
    })
    await Promise.all(upTo(400).map((i) => topic.publish(i, { key: `k${i % 10}` })))
    await broker.idle()
    expect(seen).toHaveLength(400)
    for (const key of upTo(10).map((i) => `k${i}`)) {
      const values = seen.filter((each) => each.key === key).map((each) => each.value)
      expect(values).toEqual(upTo(40).map((i) => i * 10 + Number(key.slice(1))))
      expect(new Set(seen.filter((each) => each.key === key).map((each) => each.partition)).size).toBe(1)
    }
  })
})

describe('publishAll', () => {
  it('keeps the order given, and answers the positions in it', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { partitions: 2 })
    const entries = upTo(20).map((value) => ({ value, partition: value % 3 === 0 ? 0 : 1 }))
    const published = await topic.publishAll(entries)
    for (const [i, { partition, offset }] of published.entries()) {
      expect(partition).toBe(entries[i]?.partition)
      const [record] = await broker.read('t', partition, offset, offset + 1)
      expect(record?.value).toBe(i)
    }
    const odd = await broker.read('t', 1)
    expect(odd.map((record) => record.value)).toEqual(upTo(20).filter((i) => i % 3 !== 0))
  })

  it('of nothing is nothing, and takes any iterable', async () => {
    const { broker } = new World()
    await broker.createTopic('t')
    expect(await broker.publishAll('t', [])).toEqual([])
    const entries = new Set([{ value: 'a', key: 'k', headers: { h: '1' } }])
    expect(await broker.publishAll('t', entries)).toEqual([{ partition: 0, offset: 0 }])
    const [record] = await broker.read('t')
    expect([record?.key, record?.headers.get('h')]).toEqual(['k', '1'])
  })

  it('appends nothing of it when one entry is refused', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { partitions: 2, retention: { records: 3 } })
    const good = { value: 'good', partition: 0 }
    const bad = [
      [{ value: undefined, partition: 1 }, 'INVALID_VALUE'],
      [{ value: 1, partition: 2 }, 'INVALID_ARGUMENT'],
      [{ value: 1, key: 7 }, 'INVALID_ARGUMENT'],
      [{ value: 1, headers: { h: 1 } }, 'INVALID_VALUE'],
      [{ value: 1, id: '' }, 'INVALID_ARGUMENT'],
      [{ key: 'a value is missing' }, 'INVALID_ARGUMENT'],
      ['a bare value', 'INVALID_ARGUMENT'],
      [null, 'INVALID_ARGUMENT'],
    ] as const
    for (const [entry, code] of bad) {
      expect(await codeOf(topic.publishAll([good, entry as unknown as typeof good]))).toBe(code)
    }
    for (const none of [good, null, undefined]) {
      expect(await codeOf(topic.publishAll(none as never))).toBe('INVALID_ARGUMENT')
    }
    const tooMany = upTo(4).map((value) => ({ value, partition: 1 }))
    expect(await codeOf(topic.publishAll([good, ...tooMany]))).toBe('TOO_LARGE')
    expect(topic.describe().partitions.map((each) => each.end)).toEqual([0, 0])
  })

  it('is atomic per partition: what has room goes in, what has none waits whole', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 2, retention: { records: 3 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'slow', ack: 'manual', order: 'none', concurrency: 10 })
    await fill(world, 't', 0, 2)
    const entries = [
      { value: 'a', partition: 0 },
      { value: 'b', partition: 1 },
      { value: 'c', partition: 0 },
    ]
    const published = watch(topic.publishAll(entries))
    await world.settle()
    expect(published.state).toBe('waiting')
    expect(topic.describe().partitions.map((each) => each.end)).toEqual([2, 1])
    hands.deliveries.find((each) => each.partition === 0 && each.offset === 0)?.ack()
    await world.settle()
    expect(published.value).toEqual([
      { partition: 0, offset: 2 },
      { partition: 1, offset: 0 },
      { partition: 0, offset: 3 },
    ])
    expect((await world.broker.read('t', 0, 2)).map((record) => record.value)).toEqual(['a', 'c'])
  })

  it('keeps the values of records that waited, with their keys and headers', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'slow', ack: 'manual' })
    await fill(world, 't', 0, 2)
    const batch = topic.publishAll([{ value: 'a', key: 'k', headers: { h: '1' } }, { value: 'b' }])
    const single = topic.publish('c', { headers: { h: '2' } })
    await world.settle()
    for (let i = 0; i < 5; i++) {
      hands.last.ack()
      await world.settle()
    }
    await Promise.all([batch, single])
    const seen = hands.deliveries.map((each) => [each.value, each.key, each.headers.get('h')])
    expect(seen).toEqual([
      [0, null, undefined],
      [1, null, undefined],
      ['a', 'k', '1'],
      ['b', null, undefined],
      ['c', null, '2'],
    ])
  })
})
