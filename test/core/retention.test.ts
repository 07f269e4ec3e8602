import { describe, expect, it } from 'vitest'
import { wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

const HOUR_MS = 3_600_000

async function kept(world: World, topic: string, partition = 0): Promise<unknown[]> {
  return (await world.broker.read(topic, partition)).map((record) => record.value)
}

describe('retention', () => {
  it('by records keeps exactly the newest, per partition', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 2, retention: { records: 3 } })
    for (const value of upTo(10)) await topic.publish(value, { partition: 0 })
    for (const value of upTo(2)) await topic.publish(value, { partition: 1 })
    expect(await kept(world, 't', 0)).toEqual([7, 8, 9])
    expect(await kept(world, 't', 1)).toEqual([0, 1])
    expect(topic.describe().partitions.map(({ start, end, records }) => [start, end, records])).toEqual([
      [7, 10, 3],
      [0, 2, 2],
    ])
  })

  it('by bytes keeps as many of the newest as fit, to the byte', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { bytes: 300 } })
    for (const length of [36, 36, 36]) await topic.publish(new Uint8Array(length))
    expect(topic.describe().partitions[0]).toMatchObject({ start: 0, sizeBytes: 300 })
    await topic.publish(new Uint8Array(0))
    expect(topic.describe().partitions[0]).toMatchObject({ start: 1, sizeBytes: 264 })
    await topic.publish(new Uint8Array(137))
    expect(topic.describe().partitions[0]).toMatchObject({ start: 3, sizeBytes: 265 })
  })

  it('by age forgets what is older, whether or not anything is published', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { ageMs: HOUR_MS } })
    await topic.publish('old')
    await world.clock.advance(HOUR_MS / 2)
    await topic.publish('new')
    await world.clock.advance(HOUR_MS / 2)
    expect(await kept(world, 't')).toEqual(['old', 'new'])
    await world.clock.advance(1)
    expect(topic.describe().partitions[0]).toMatchObject({ start: 1, records: 1 })
    expect(await kept(world, 't')).toEqual(['new'])
    await world.clock.advance(HOUR_MS)
    expect(topic.describe().partitions[0]).toMatchObject({ start: 2, end: 2, records: 0, sizeBytes: 0 })
  })

  it('by age gives memory back though nobody looks, within a tenth of the age', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { ageMs: 1_000 } })
    for (const value of upTo(10)) await topic.publish(value)
    await world.clock.advance(1_101)
    expect(world.logs.get('t/0')?.marks.start).toBe(10)
  })

  it('applies new limits at once, and an age that is set later', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    for (const value of upTo(10)) await topic.publish(value)
    await world.broker.alterTopic('t', { retention: { records: 4 } })
    expect(await kept(world, 't')).toEqual([6, 7, 8, 9])
    await world.broker.alterTopic('t', { retention: { bytes: 320 * 2 } })
    expect(await kept(world, 't')).toEqual([8, 9])
    await world.broker.alterTopic('t', { retention: { ageMs: 50 } })
    await world.clock.advance(100)
    expect(world.logs.get('t/0')?.marks.start).toBe(10)
  })

  it('holds for ever less than its limits: memory does not grow with what was published', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 100 } })
    await topic.subscribe(() => {}, { credit: 'manual' })
    for (let round = 0; round < 50; round++) {
      for (const value of upTo(100)) topic.tryPublish(value)
      await world.settle()
      expect(world.logs.get('t/0')?.records).toBe(100)
    }
  })
})

describe('a reader that holds the log', () => {
  it('keeps what it has not settled, whatever the age', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { ageMs: 1_000 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual', ackTimeoutMs: HOUR_MS })
    for (const value of upTo(3)) await topic.publish(value)
    await world.clock.advance(10_000)
    expect(await kept(world, 't')).toEqual([0, 1, 2])
    hands.last.ack()
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(await kept(world, 't')).toEqual([2])
  })

  it('keeps holding for graceMs after its last member left, and loses nothing by a restart within it', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const hands = new Hands()
    const first = await topic.subscribe(hands.take, { id: 'a', credit: 'manual' })
    for (const value of upTo(2)) await topic.publish(value)
    await first.close()
    const waiting = watch(topic.publish(2))
    await world.clock.advance(29_999)
    expect(waiting.state).toBe('waiting')
    await topic.subscribe(hands.take, { id: 'a' })
    await world.broker.idle()
    expect(hands.values).toEqual([0, 1, 2])
    expect(world.raised('dropped')).toEqual([])
  })

  it('is passed by retention after that, which lets waiting publishers in', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const group = { group: 'g', credit: 'manual', graceMs: 500 } as const
    const one = await topic.subscribe(() => {}, group)
    const two = await topic.subscribe(() => {}, group)
    for (const value of upTo(2)) await topic.publish(value)
    await one.close()
    await world.clock.advance(600)
    const waiting = watch(topic.publish(2))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    await two.close()
    await world.clock.advance(499)
    expect(waiting.state).toBe('waiting')
    await world.clock.advance(1)
    expect(waiting.value).toEqual({ partition: 0, offset: 2 })
    expect(topic.describe().readers[0]?.cursors[0]?.gating).toBe(false)
  })

  it('that was overtaken resumes at the start of the log, never at the tail, with the range counted and raised', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 3 } })
    const first = await topic.subscribe(() => {}, { id: 'a', credit: 'manual', graceMs: 0 })
    await topic.publish(0)
    await first.close()
    await world.clock.advance(0)
    for (const value of [1, 2, 3, 4, 5]) await topic.publish(value)
    const hands = new Hands()
    const second = await topic.subscribe(hands.take, { id: 'a', graceMs: 0 })
    await world.broker.idle()
    expect(hands.values).toEqual([3, 4, 5])
    expect(second.describe().counters).toMatchObject({ dropped: 3, delivered: 3 })
    const events = world.raised('dropped')
    expect(events.map((event) => event.count).reduce((a, b) => a + b, 0)).toBe(3)
    expect(events.at(-1)).toMatchObject({ topic: 't', partition: 0, reader: 'a', reason: 'overtaken', to: 3 })
  })

  it('holds again as soon as it is back, from the start of the log on', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const first = await topic.subscribe(() => {}, { id: 'a', credit: 'manual', graceMs: 0 })
    await first.close()
    await world.clock.advance(0)
    for (const value of upTo(5)) await topic.publish(value)
    const second = await topic.subscribe(() => {}, { id: 'a', credit: 'manual', graceMs: 0 })
    const waiting = watch(topic.publish('waits'))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    second.request(1)
    await world.settle()
    expect(waiting.state).toBe('resolved')
    expect(second.describe().cursors[0]).toMatchObject({ committed: 4, lag: 2 })
  })

  it('does not hold the dead letters it reads: a forced append passes it, and it goes on at the start', async () => {
    const world = new World()
    await world.broker.createTopic('dlq.t', { retention: { records: 2 } })
    const topic = await world.broker.createTopic('t')
    const hands = new Hands()
    const reader = await world.broker.subscribe('dlq.t', hands.take, { id: 'morgue', credit: 'manual' })
    const fail = (): never => {
      throw new Error('always')
    }
    await topic.subscribe(fail, { id: 'a', retry: { attempts: 1 } })
    for (const value of upTo(5)) await topic.publish(value)
    await world.settle()
    reader.request(10)
    await world.settle()
    expect(hands.values).toEqual([3, 4])
    expect(reader.describe().counters.dropped).toBe(3)
    await topic.publish(5)
    await world.settle()
    expect(hands.values).toEqual([3, 4, 5])
  })

  it('far behind does not keep new readers, replays or other topics from being served', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 10 } })
    const other = await world.broker.createTopic('other', { retention: { records: 2 } })
    await topic.subscribe(() => {}, { id: 'stuck', credit: 'manual' })
    for (const value of upTo(10)) await topic.publish(value)
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'late', from: 'earliest' })
    await world.broker.idle()
    expect(hands.values).toEqual(upTo(10))
    await world.broker.resetOffset('t', 'late', 'earliest')
    await world.broker.idle()
    expect(hands.values).toEqual([...upTo(10), ...upTo(10)])
    for (const value of upTo(5)) await other.publish(value)
  })
})

describe('what is retained', () => {
  it('can be read without a reader, from any offset to any other', async () => {
    const world = new World()
    const { broker } = world
    const topic = await broker.createTopic('t', { partitions: 2, retention: { records: 5 } })
    for (const value of upTo(8)) await topic.publish(value, { partition: 1, key: `k${value}` })
    const values = async (from?: number, to?: number): Promise<unknown[]> =>
      (await broker.read('t', 1, from, to)).map((record) => record.value)
    expect(await values()).toEqual([3, 4, 5, 6, 7])
    expect(await values(5)).toEqual([5, 6, 7])
    expect(await values(4, 6)).toEqual([4, 5])
    expect(await values(6, 100)).toEqual([6, 7])
    expect(await values(6, 6)).toEqual([])
    expect(await values(6, 2)).toEqual([])
    expect(await values(8)).toEqual([])
    expect(await broker.read('t')).toEqual([])
    const [record] = await broker.read('t', 1, 4, 5)
    expect(JSON.parse(JSON.stringify(record))).toMatchObject({
      topic: 't',
      partition: 1,
      offset: 4,
      key: 'k4',
      value: 4,
    })
    expect(record?.id).toBe(`${topic.id}/1/4`)
  })

  it('is all that can be read: an offset outside is OFFSET_OUT_OF_RANGE and does not wrap around', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { retention: { records: 2 } })
    for (const value of upTo(4)) await topic.publish(value)
    for (const offset of [-1, 0, 1, 5, -4294967294]) {
      expect(await codeOf(broker.read('t', 0, offset))).toBe('OFFSET_OUT_OF_RANGE')
      expect(await codeOf(topic.subscribe(() => {}, { from: offset }))).toBe('OFFSET_OUT_OF_RANGE')
    }
    for (const offset of [0.5, Number.NaN, '1', Number.POSITIVE_INFINITY]) {
      expect(await codeOf(broker.read('t', 0, offset as number))).toBe('INVALID_ARGUMENT')
    }
    expect(await codeOf(broker.read('t', 0, 2, 2.5))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.read('t', 1))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.read('nowhere'))).toBe('UNKNOWN_TOPIC')
  })

  it.each([
    [0, undefined],
    [0, 1],
    [1, 3],
    [2, 8],
    [6, 7],
  ] as const)(
    'can be read where it came as bytes, from %s to %s, in as many steps as it takes',
    async (from, to) => {
      const world = new World()
      const topic = await world.broker.createTopic('t')
      const expected: unknown[] = []
      for (let batch = 0; batch < 3; batch++) {
        const values = upTo(4).map((i) => `wire ${batch} ${i}`)
        world.logs.get('t/0')?.tryAppend(wireBatchOf(values.map((value) => ({ value }))))
        await topic.publish(`local ${batch}`)
        expected.push(...values, `local ${batch}`)
      }
      const read = (await world.broker.read('t', 0, from, to)).map((record) => record.value)
      expect(read).toEqual(expected.slice(from, to))
    },
  )
})
