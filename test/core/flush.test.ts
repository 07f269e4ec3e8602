/** What is taken and not durable yet: who waits for it, what is known when it fails, and when there is no room for more. */
import { describe, expect, it } from 'vitest'
import { ByteWorld, bytes } from '../support/byte-world.ts'
import { codeOf, codeThrown, Hands, upTo, watch } from '../support/world.ts'

async function topicOf(options: object = {}, engine: ConstructorParameters<typeof ByteWorld>[0] = {}) {
  const world = new ByteWorld(engine)
  const creating = world.broker.createTopic<unknown>('t', options)
  await world.settle()
  world.engine.commit()
  const topic = await creating
  return { world, topic, broker: world.broker, engine: world.engine }
}

const values = async (broker: ByteWorld['broker'], name = 't'): Promise<unknown[]> =>
  (await broker.read(name)).map(({ value }) => value)

describe('a record that is not durable yet', () => {
  it('is neither accepted nor read nor handed out before it is', async () => {
    const { world, topic, broker, engine } = await topicOf({}, { held: true })
    const seen: unknown[] = []
    await topic.subscribe((d) => void seen.push(d.value))
    const published = watch(topic.publish('a'))
    await world.settle()
    expect([published.state, seen, await values(broker)]).toEqual(['waiting', [], []])
    expect(topic.describe().partitions[0]).toMatchObject({ stable: 0, high: 0, end: 1, records: 1 })
    engine.commit()
    await world.settle()
    expect([published.state, seen, await values(broker)]).toEqual(['resolved', ['a'], ['a']])
  })

  it.each([
    ['publish', (w: ByteWorld) => void w.broker.publish('t', 1)],
    ['publish with a key', (w: ByteWorld) => void w.broker.publish('t', 1, { key: 'k' })],
    ['tryPublish', (w: ByteWorld) => void w.broker.tryPublish('t', 1)],
    ['publishAll', (w: ByteWorld) => void w.broker.publishAll('t', [{ value: 1 }])],
    ['a transaction', (w: ByteWorld) => void w.broker.transaction((tx) => tx.publish('t', 1))],
  ])('keeps idle() waiting, and the process: %s', async (_, publish) => {
    const { world, broker, engine } = await topicOf({}, { held: true })
    const seen: unknown[] = []
    await broker.subscribe('t', (d) => void seen.push(d.value))
    publish(world)
    await Promise.resolve()
    const idle = watch(broker.idle())
    await world.settle()
    expect([idle.state, world.clock.held]).toEqual(['waiting', true])
    engine.commit()
    await world.settle()
    expect([idle.state, world.clock.held, seen]).toEqual(['resolved', false, [1]])
  })

  it('keeps idle() waiting also when it had to wait for room before', async () => {
    const { world, topic, broker, engine } = await topicOf({ retention: { records: 1 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { group: 'g', ack: 'manual' })
    await topic.publish('a')
    await world.settle()
    void topic.publish('b')
    const idle = watch(broker.idle())
    engine.held = true
    hands.last.ack()
    await world.settle()
    expect([idle.state, topic.describe().partitions[0]?.end]).toEqual(['waiting', 2])
    engine.held = false
    engine.commit()
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect([idle.state, hands.values]).toEqual(['resolved', ['a', 'b']])
  })

  it('keeps idle() waiting no longer than until its flush failed', async () => {
    const { world, topic, broker, engine } = await topicOf({}, { held: true })
    const published = codeOf(topic.publish(1))
    const idle = watch(broker.idle())
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    await world.settle()
    expect([await published, idle.state]).toEqual(['OUTCOME_UNKNOWN', 'resolved'])
  })

  it('keeps idle() waiting for what came while another one was flushed', async () => {
    const { world, topic, broker, engine } = await topicOf({}, { held: true })
    topic.tryPublish(1)
    const idle = watch(broker.idle())
    engine.commit()
    topic.tryPublish(2)
    await world.settle()
    expect(idle.state).toBe('waiting')
    engine.commit()
    await world.settle()
    expect(idle.state).toBe('resolved')
  })

  it('is waited for by drained()', async () => {
    const { world, topic, engine } = await topicOf()
    const hands = new Hands()
    const sub = await topic.subscribe(hands.take, { ack: 'manual' })
    await sub.drained()
    engine.held = true
    topic.tryPublish('a')
    const drained = watch(sub.drained())
    await world.settle()
    engine.commit()
    await world.settle()
    expect([drained.state, hands.values]).toEqual(['waiting', ['a']])
    hands.last.ack()
    await world.settle()
    expect(drained.state).toBe('resolved')
    topic.tryPublish('b')
    const never = watch(sub.drained())
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    await world.settle()
    expect(never.state).toBe('resolved')
  })

  it('is flushed by close(), to whoever waits for it', async () => {
    const { world, topic, broker, engine } = await topicOf()
    engine.held = true
    const published = watch(topic.publish('a'))
    const closing = watch(broker.close())
    await world.settle()
    expect([published.state, closing.state]).toEqual(['waiting', 'waiting'])
    engine.commit()
    await world.settle()
    expect([published.state, closing.state]).toEqual(['resolved', 'resolved'])
  })

  it('that cannot be flushed keeps close() from nothing', async () => {
    const { world, topic, broker, engine } = await topicOf()
    engine.held = true
    const published = codeOf(topic.publish('a'))
    const closing = broker.close()
    await world.settle()
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    expect(await closing).toEqual({ abandoned: 0 })
    expect(await published).toBe('OUTCOME_UNKNOWN')
    expect(world.raised('error')).toMatchObject([{ error: { code: 'OUTCOME_UNKNOWN' } }])
  })
})

describe('a flush whose outcome is unknown', () => {
  it('is told to all who wait, and to those who publish the same id again, and afterwards', async () => {
    const { topic, broker, engine } = await topicOf({ dedupe: true, partitions: 2 })
    engine.held = true
    const waiting = [
      topic.publish('a', { id: 'x' }),
      topic.publish('a', { id: 'x' }),
      topic.publishAll([{ value: 'b' }, { value: 'c', id: 'y' }]),
      topic.publish('c', { id: 'y' }),
      broker.transaction((tx) => tx.publish('t', 'd', { id: 'z' })),
    ].map(codeOf)
    engine.fail('OUTCOME_UNKNOWN')
    await Promise.resolve()
    engine.commit()
    expect(await Promise.all(waiting)).toEqual(upTo(5).map(() => 'OUTCOME_UNKNOWN'))
    for (const id of ['x', 'y', 'z']) {
      expect(await codeOf(topic.publish('e', { id }))).toBe('OUTCOME_UNKNOWN')
    }
    expect(await codeOf(topic.publish('f'))).toBe('OUTCOME_UNKNOWN')
    expect(codeThrown(() => topic.tryPublish('f'))).toBe('OUTCOME_UNKNOWN')
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', 'g')))).toBe('OUTCOME_UNKNOWN')
    expect(await values(broker)).toEqual([])
  })

  it('is an error event where nobody waits for it, once', async () => {
    const { world, topic, engine } = await topicOf({ dedupe: true })
    engine.held = true
    expect(topic.tryPublish(1, { id: 'x' })).toEqual({ partition: 0, offset: 0 })
    expect(topic.tryPublish(1, { id: 'x' })).toEqual({ partition: 0, offset: 0, duplicate: true })
    topic.tryPublish(2)
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    await world.settle()
    expect(world.raised('error')).toMatchObject([
      { error: { code: 'OUTCOME_UNKNOWN' }, context: expect.stringContaining('"t" partition 0') },
    ])
  })
})

describe('a record that is known to be lost', () => {
  it('may be published again under the same id, and is not a repeat then', async () => {
    const { world, topic, broker, engine } = await topicOf({ dedupe: true })
    await topic.publish('before', { id: 'old' })
    engine.held = true
    const lost = [
      topic.publish('a', { id: 'a' }),
      topic.publish('a', { id: 'a' }),
      topic.publishAll([{ value: 'b', id: 'b' }]),
      broker.transaction((tx) => tx.publish('t', 'c', { id: 'c' })),
    ].map(codeOf)
    topic.tryPublish('d', { id: 'd' })
    await world.settle()
    engine.fail('STORAGE_FULL')
    engine.commit()
    expect(await Promise.all(lost)).toEqual(upTo(4).map(() => 'STORAGE_FULL'))
    engine.held = false
    await world.settle()
    expect(await values(broker)).toEqual(['before'])
    for (const id of ['a', 'b', 'c', 'd']) {
      expect((await topic.publish(id, { id })).duplicate).toBeUndefined()
    }
    expect(await topic.publish('again', { id: 'old' })).toEqual({ partition: 0, offset: 0, duplicate: true })
    expect(await values(broker)).toEqual(['before', 'a', 'b', 'c', 'd'])
  })

  it('leaves its offset empty, which readers pass', async () => {
    const { world, topic, engine } = await topicOf()
    const seen: unknown[] = []
    const sub = await topic.subscribe((d) => void seen.push([d.offset, d.value]), { group: 'g' })
    engine.held = true
    const lost = codeOf(topic.publish('lost'))
    engine.fail('STORAGE_FULL')
    engine.commit()
    expect(await lost).toBe('STORAGE_FULL')
    engine.held = false
    expect(await topic.publish('next')).toEqual({ partition: 0, offset: 1 })
    await world.broker.idle()
    expect(seen).toEqual([[1, 'next']])
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 2, lag: 0 })
  })

  it('that is a dead letter is written again, and once', async () => {
    const { world, topic, broker, engine } = await topicOf()
    const sub = await topic.subscribe(() => Promise.reject(new Error('no')), {
      id: 'a',
      retry: { attempts: 1 },
    })
    await broker.createTopic('dlq.t')
    await topic.publish('bad')
    engine.fail('STORAGE_FULL')
    await world.settle()
    expect(sub.describe().cursors[0]?.committed).toBe(0)
    expect(world.raised('error')).toMatchObject([{ error: { code: 'STORAGE_FULL' } }])
    await world.clock.advance(1_000)
    expect(sub.describe().cursors[0]?.committed).toBe(1)
    expect(await values(broker, 'dlq.t')).toEqual(['bad'])
  })

  it('that is the copy of a dead letter is sent back again by the next redrive', async () => {
    const { world, topic, broker, engine } = await topicOf()
    let broken = true
    const seen: unknown[] = []
    await topic.subscribe(
      (d) => {
        if (broken) throw new Error('no')
        seen.push(d.value)
      },
      { id: 'a', retry: { attempts: 1 } },
    )
    await topic.publish('bad')
    await broker.idle()
    broken = false
    const redriven = codeOf(broker.redrive('dlq.t'))
    await Promise.resolve()
    engine.fail('STORAGE_FULL')
    expect(await redriven).toBe('STORAGE_FULL')
    expect(await broker.redrive('dlq.t')).toEqual({ redriven: 1, kept: 0 })
    await broker.idle()
    expect([seen, world.raised('dropped')]).toEqual([['bad'], []])
  })
})

describe('a full disk', () => {
  it('refuses publishers with STORAGE_FULL, reads go on, and freed space is enough', async () => {
    const { world, topic, broker, engine } = await topicOf({ partitions: 2 })
    await topic.publish('a', { partition: 0 })
    engine.full = true
    expect(await codeOf(topic.publish(1))).toBe('STORAGE_FULL')
    expect(codeThrown(() => topic.tryPublish(1))).toBe('STORAGE_FULL')
    expect(await codeOf(topic.publishAll([{ value: 1 }, { value: 2 }]))).toBe('STORAGE_FULL')
    const both = codeOf(
      broker.transaction((tx) => {
        for (const partition of [0, 1]) tx.publish('t', 1, { partition })
      }),
    )
    expect(await both).toBe('STORAGE_FULL')
    expect(await values(broker)).toEqual(['a'])
    engine.full = false
    await topic.publish('b', { partition: 0 })
    expect(await values(broker)).toEqual(['a', 'b'])
    expect(world.raised('error')).toEqual([])
  })

  it('is told to who would wait for room as well, and holds up dead letters no longer than it lasts', async () => {
    const { world, topic, broker, engine } = await topicOf({ retention: { records: 1 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual', retry: { attempts: 1 } })
    await broker.createTopic('dlq.t')
    await topic.publish('a')
    await world.settle()
    engine.full = true
    expect(await codeOf(topic.publish('b'))).toBe('STORAGE_FULL')
    hands.last.nack()
    await world.settle()
    expect(topic.describe().readers[0]?.cursors[0]?.committed).toBe(0)
    engine.full = false
    await world.clock.advance(1_000)
    expect(topic.describe().readers[0]?.cursors[0]?.committed).toBe(1)
    expect(await values(broker, 'dlq.t')).toEqual(['a'])
  })
})

describe('an engine that is behind', () => {
  /** Two topics on an engine that takes 100 bytes at once: each record here has 50. */
  async function behind(options: object = {}) {
    const made = await topicOf(options, { gatheringBytes: 100 })
    const other = await made.broker.createTopic<unknown>('u')
    const record = bytes('x'.repeat(50 - 16))
    made.engine.held = true
    return { ...made, other, record }
  }

  it('makes publishers wait, first come, first served, and accuses nobody', async () => {
    const { world, topic, broker, engine, record } = await behind({ publishTimeoutMs: 60_000 })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'slow', ack: 'manual', ackTimeoutMs: 3_600_000 })
    const published = upTo(5).map(() => watch(topic.publish(record)))
    expect(topic.tryPublish(record)).toBeUndefined()
    await world.clock.advance(6_000)
    expect(world.raised('stalled')).toEqual([])
    expect(topic.describe().partitions[0]).toMatchObject({ end: 2, waiting: 3 })
    engine.commit()
    await world.settle()
    expect(published.map(({ state }) => state)).toEqual([
      'resolved',
      'resolved',
      ...upTo(3).map(() => 'waiting'),
    ])
    expect(topic.describe().partitions[0]).toMatchObject({ end: 4, waiting: 1 })
    const late = topic.publish(record)
    engine.held = false
    engine.commit()
    await world.settle()
    expect(published.map(({ value }) => value?.offset)).toEqual(upTo(5))
    expect((await late).offset).toBe(5)
    expect(broker.metrics().topics[0]?.published).toBe(6)
  })

  it('serves who waits for it in a log that had nothing to flush itself', async () => {
    const { world, topic, other, engine, record } = await behind()
    void topic.publish(record)
    void topic.publish(record)
    const published = watch(other.publish(record))
    await world.settle()
    expect(published.state).toBe('waiting')
    engine.held = false
    engine.commit()
    await world.settle()
    expect(published).toEqual({ state: 'resolved', value: { partition: 0, offset: 0 } })
  })

  it('names no reader when a publisher gives up, though one holds the log', async () => {
    const { world, topic, record } = await behind({ publishTimeoutMs: 1_000 })
    await topic.subscribe(() => {}, { id: 'innocent', credit: 'manual' })
    for (const _ of upTo(2)) void topic.publish(record)
    const given = topic.publish(record).catch((error: Error) => error.message)
    await world.clock.advance(1_000)
    expect(await given).toBe('publish: no room within 1000 ms in "t" partition 0')
  })

  it('is no reason for TOO_LARGE, nor for FULL; what it could never take at once is', async () => {
    const { world, topic, broker, engine, record } = await behind({ partitions: 2 })
    await topic.subscribe(() => {}, { id: 'a', overflow: 'reject' })
    const entries = (n: number) => upTo(n).map((i) => ({ value: record, partition: i % 2 }))
    void topic.publish(record, { partition: 0 })
    const waiting = watch(
      topic.publishAll([
        { value: record, partition: 0 },
        { value: record, partition: 0 },
      ]),
    )
    const large = bytes('x'.repeat(100))
    expect(await codeOf(topic.publish(large))).toBe('TOO_LARGE')
    expect(codeThrown(() => topic.tryPublish(large, { partition: 1 }))).toBe('TOO_LARGE')
    expect(await codeOf(topic.publishAll(upTo(3).map(() => ({ value: record, partition: 1 }))))).toBe(
      'TOO_LARGE',
    )
    const transaction = broker.transaction((tx) => {
      for (const { value, partition } of entries(3)) tx.publish('t', value, { partition })
    })
    expect(await codeOf(transaction)).toBe('TOO_LARGE')
    expect(waiting.state).toBe('waiting')
    engine.held = false
    engine.commit()
    await world.settle()
    expect(waiting.state).toBe('resolved')
    expect(topic.describe().partitions.map(({ end }) => end)).toEqual([3, 0])
  })

  it('takes a transaction as a whole or not at all: room for each of its logs is not room for all', async () => {
    const { world, topic, other, broker, engine, record } = await behind()
    void topic.publish(record)
    const transaction = watch(
      broker.transaction((tx) => {
        tx.publish('t', record)
        tx.publish('u', record)
      }),
    )
    await world.settle()
    expect(transaction.state).toBe('waiting')
    expect([topic, other].map((each) => each.describe().partitions[0]?.end)).toEqual([1, 0])
    engine.commit()
    await world.settle()
    expect([topic, other].map((each) => each.describe().partitions[0]?.end)).toEqual([2, 1])
    engine.commit()
    await world.settle()
    expect(transaction.state).toBe('resolved')
  })
})
