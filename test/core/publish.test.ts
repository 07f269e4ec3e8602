import { describe, expect, it } from 'vitest'
import { Broker } from '../../src/broker.ts'
import type { Engine, Marks, PartitionLog } from '../../src/log/contract.ts'
import { LOG_CLOSED, LOG_POISONED, NO_ROOM } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { createBroker } from '../../src/memory.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedLog, withLogs } from '../support/engines.ts'
import { codeOf, codeThrown, Hands, upTo, World, watch } from '../support/world.ts'

describe('publish', () => {
  it('never runs subscriber code, not even for the record itself', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    let inside = false
    let overlapped = 0
    const seen: unknown[] = []
    await topic.subscribe((d) => {
      if (inside) overlapped++
      seen.push(d.value)
    })
    for (const value of upTo(100)) {
      inside = true
      const published = topic.publish(value)
      expect(topic.tryPublish(value)).toBeDefined()
      inside = false
      await published
    }
    await broker.idle()
    expect(overlapped).toBe(0)
    expect(seen).toHaveLength(200)
  })

  it('rejects instead of throwing, whatever is wrong', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', {
      sizeOf: () => {
        throw new Error('cannot tell')
      },
    })
    await expect(topic.publish({})).rejects.toThrow('cannot tell')
    expect(await codeOf(topic.publish(undefined))).toBe('INVALID_VALUE')
    expect(await codeOf(broker.publish('nowhere', 1))).toBe('UNKNOWN_TOPIC')
    expect(await codeOf(topic.publish({}, 'anna' as never))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(topic.publish('text', { headers: 'web' as never }))).toBe('INVALID_VALUE')
    await broker.close()
    expect(await codeOf(topic.publish({}))).toBe('CLOSED')
    expect(await codeOf(broker.publish('t', 1))).toBe('CLOSED')
  })

  it('keeps the very value, and a tombstone as null', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    const value = { deep: { map: new Map([[1, () => 2]]) } }
    await topic.publish(value)
    await topic.publish(null, { key: 'gone' })
    const [first, second] = await broker.read('t')
    expect(first?.value).toBe(value)
    expect(second?.value).toBeNull()
  })

  it('copies bytes given as a key, which the caller may reuse', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    const key = new Uint8Array([1, 2, 3])
    await topic.publish('a', { key })
    key.fill(9)
    expect((await broker.read('t'))[0]?.key).toEqual(new Uint8Array([1, 2, 3]))
  })

  it('takes headers as an object literal, as pairs, and as those of a delivery', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    await topic.publish(1, { headers: { a: ['1', '2'], b: null, c: undefined } })
    await topic.publish(2, {
      headers: [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
      ],
    })
    await topic.publish(3, { headers: new RecordHeaders([['a', new Uint8Array([65])]]) })
    await topic.publish(4, { headers: {} })
    const lists = (await broker.read('t')).map((record) => [...record.headers])
    expect(lists).toEqual([
      [
        ['a', '1'],
        ['a', '2'],
        ['b', null],
      ],
      [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
      ],
      [['a', new Uint8Array([65])]],
      [],
    ])
  })

  it('names a record by its publish id, else by topic id, partition and offset', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    await topic.publish(1, { id: 'mine', headers: { h: '1' } })
    await topic.publish(2)
    const [first, second] = await broker.read('t')
    expect([first?.id, first?.headers.get('h')]).toEqual(['mine', '1'])
    expect(second?.id).toBe(`${topic.id}/0/1`)
    expect(await codeOf(topic.publish(3, { id: 7 as unknown as string }))).toBe('INVALID_ARGUMENT')
  })

  it('stamps records with a clock that does not go back within a partition', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    await topic.publish('a')
    world.clock.setWall(world.clock.now() - 60_000)
    await topic.publish('b')
    await topic.publishAll([{ value: 'c' }])
    await world.clock.advance(70_000)
    await topic.publish('d')
    const times = (await world.broker.read('t')).map((record) => record.timestamp)
    expect(times).toEqual([times[0], times[0], times[0], (times[0] as number) + 10_000])
  })

  it('may be called by a handler, also for the topic it reads, and by a listener', async () => {
    const world = new World()
    const { broker } = world
    const topic = await broker.createTopic<number>('t')
    const log = await broker.createTopic('log')
    const seen: number[] = []
    await topic.subscribe(
      (d) => {
        seen.push(d.value)
        if (d.value < 5) void broker.publish('t', d.value + 1)
      },
      { id: 'a' },
    )
    broker.on('topicCreated', (event) => void log.publish(event.topic))
    await broker.createTopic('u')
    await topic.publish(0)
    await broker.idle()
    expect(seen).toEqual([0, 1, 2, 3, 4, 5])
    expect((await broker.read('log')).map((record) => record.value)).toEqual(['u'])
  })

  it('counts what was accepted, and nothing else', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { dedupe: true, retention: { bytes: 1_000 } })
    await topic.publish('abc')
    topic.tryPublish('abc')
    await topic.publishAll([
      { value: 'abc', id: 'x' },
      { value: 'abc', id: 'x' },
    ])
    await codeOf(topic.publish('x'.repeat(1_000)))
    const [metrics] = broker.metrics().topics
    expect(metrics).toMatchObject({ published: 3, publishedBytes: 3 * 70, duplicates: 1 })
  })

  it('measures a sample of how long acceptance takes', async () => {
    const world = new World()
    await world.clock.advance(5)
    const topic = await world.broker.createTopic('t', { retention: { records: 64 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    for (const value of upTo(63)) await topic.publish(value)
    await topic.publish('the 64th is measured')
    const metrics = () => world.broker.metrics().topics[0]?.publishLatency
    expect(metrics()).toMatchObject({ count: 1, maxMs: 0 })
  })
})

describe('sizes', () => {
  it.each([
    ['bytes by length', new Uint8Array(10), 10 + 64],
    ['strings by twice their length', 'twelve chars', 24 + 64],
    ['anything else flat', { a: 1 }, 256 + 64],
    ['a tombstone flat', null, 256 + 64],
  ])('count %s, plus 64 a record', async (_, value, expected) => {
    const { broker } = new World()
    const topic = await broker.createTopic('t')
    await topic.publish(value)
    expect(topic.describe().partitions[0]?.sizeBytes).toBe(expected)
  })

  it("count other values by the topic's sizeOf, rounded up", async () => {
    const { broker } = new World()
    const topic = await broker.createTopic<unknown>('t', { sizeOf: (value) => (value as { n: number }).n })
    await topic.publish({ n: 99.5 })
    await topic.publish('abc')
    await topic.publish(new Uint8Array(4))
    await topic.publish(null)
    expect(topic.describe().partitions[0]?.sizeBytes).toBe(164 + 70 + 68 + 320)
    for (const n of [-1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32, undefined]) {
      expect(await codeOf(topic.publish({ n }))).toBe('INVALID_VALUE')
      expect(codeThrown(() => topic.tryPublish({ n }))).toBe('INVALID_VALUE')
    }
    expect(topic.describe().partitions[0]?.records).toBe(4)
  })

  it('make a record that is larger than retention TOO_LARGE, be it the only one', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { retention: { bytes: 1_064 } })
    expect(await topic.publish(new Uint8Array(1_000))).toEqual({ partition: 0, offset: 0 })
    expect(await codeOf(topic.publish(new Uint8Array(1_001)))).toBe('TOO_LARGE')
    expect(codeThrown(() => topic.tryPublish(new Uint8Array(1_001)))).toBe('TOO_LARGE')
    const halves = [{ value: new Uint8Array(500) }, { value: new Uint8Array(500) }]
    expect(await codeOf(topic.publishAll(halves))).toBe('TOO_LARGE')
    expect(topic.describe().partitions[0]).toMatchObject({ start: 0, end: 1 })
  })
})

describe('a handler that publishes', () => {
  it('hands the trace context on, except where it sets its own', async () => {
    const { broker } = new World()
    const source = await broker.createTopic('source')
    await broker.createTopic('target')
    const trace = { traceparent: '00-1', tracestate: 'a=1', baggage: 'b=2' }
    await source.subscribe(async (d) => {
      await d.publish('target', 'bare')
      await d.publish('target', 'own', { headers: { tracestate: 'mine', other: 'o' } })
    })
    await source.publish('traced', { headers: { ...trace, private: 'p' } })
    await source.publish('untraced')
    await source.publish('other headers', { headers: { private: 'p' } })
    await source.publish('null', { headers: { traceparent: null } })
    await broker.idle()
    const headers = (await broker.read('target')).map((record) => Object.fromEntries(record.headers))
    expect(headers).toEqual([
      trace,
      { ...trace, tracestate: 'mine', other: 'o' },
      {},
      { tracestate: 'mine', other: 'o' },
      {},
      { tracestate: 'mine', other: 'o' },
      { traceparent: null },
      { traceparent: null, tracestate: 'mine', other: 'o' },
    ])
  })

  it('is told of a topic that is not there', async () => {
    const { broker, settle } = new World()
    const topic = await broker.createTopic('t')
    const codes: string[] = []
    await topic.subscribe(async (d) => void codes.push(await codeOf(d.publish('nowhere', 1))))
    await topic.publish(1)
    await settle()
    expect(codes).toEqual(['UNKNOWN_TOPIC'])
  })

  it('does not wait for the reader that it belongs to, and loses nothing of it', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic<number>('t', { retention: { records: 4 } })
    const seen: number[] = []
    await topic.subscribe(
      async (d) => {
        seen.push(d.value)
        for (const child of d.value === 0 ? [10, 20] : d.value < 4 ? [d.value + 100] : []) {
          await d.publish('t', child)
        }
      },
      { id: 'pipeline' },
    )
    await topic.publishAll(upTo(4).map((value) => ({ value })))
    await broker.idle()
    expect(seen).toEqual([0, 1, 2, 3, 10, 20, 101, 102, 103])
    expect(topic.describe().readers[0]?.counters).toMatchObject({ dropped: 0, acked: 9 })
  })

  it('grows the log to twice its retention at most, and waits then', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 3 }, publishTimeoutMs: 1_000 })
    const codes: string[] = []
    const handler = async (d: {
      publish(topic: string, value: unknown): Promise<unknown>
    }): Promise<void> => {
      if (codes.length > 0) return
      for (const value of upTo(6)) codes.push(await codeOf(d.publish('t', value)))
    }
    await topic.subscribe(handler, { id: 'pipeline' })
    await topic.publish('first')
    await world.settle()
    expect(codes).toHaveLength(5)
    expect(topic.describe().partitions[0]).toMatchObject({ records: 6, waiting: 1 })
    await world.clock.advance(1_000)
    expect(codes.at(-1)).toBe('TIMEOUT')
    await world.broker.idle()
    const later = topic.tryPublish('later')
    expect(later).toEqual({ partition: 0, offset: 6 })
    expect(topic.describe().partitions[0]).toMatchObject({ start: 4, records: 3 })
  })

  describe('and waits for another reader', () => {
    /** `pipeline` has "a" in hand and publishes "child" when told to; `other` has "a" too, and the log is full. */
    async function full() {
      const world = new World()
      const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
      const other = new Hands()
      const done: string[] = []
      let publish = (): void => {}
      const told = new Promise<void>((resolve) => {
        publish = resolve
      })
      const handler = async (d: Delivery): Promise<void> => {
        if (d.value !== 'a') return
        await told
        await d.publish('t', 'child')
        done.push('child')
      }
      const pipeline = await topic.subscribe(handler, { id: 'pipeline' })
      await topic.subscribe(other.take, { id: 'other', ack: 'manual' })
      await topic.publish('a')
      await topic.publish('b')
      await world.settle()
      return { world, topic, other, pipeline, done, publish }
    }

    it('is let in when that one moved on, though its own reader has not', async () => {
      const { world, other, pipeline, done, publish } = await full()
      publish()
      await world.settle()
      expect(done).toEqual([])
      other.last.ack()
      await world.settle()
      expect(done).toEqual(['child'])
      expect(pipeline.describe().counters.dropped).toBe(0)
    })

    it('goes before the line, which may be waiting for its own reader', async () => {
      const { world, topic, other, done, publish } = await full()
      const outside = topic.publish('outside').then(() => done.push('outside'))
      await world.settle()
      publish()
      await world.settle()
      expect(topic.describe().partitions[0]?.waiting).toBe(2)
      other.last.ack()
      await world.settle()
      other.last.ack()
      await outside
      expect(done).toEqual(['child', 'outside'])
    })
  })

  it.each([
    ['at once', (again: () => unknown) => void again()],
    ['and awaits it', async (again: () => unknown) => void (await again())],
  ])('for ever, %s, delays a timer of 10 ms by 25 ms at most', async (_, body) => {
    const broker = createBroker()
    const topic = await broker.createTopic('t')
    let handled = 0
    await topic.subscribe(
      (d) => {
        handled++
        return body(() => d.publish('t', 1))
      },
      { id: 'loop' },
    )
    await topic.publish(0)
    const usedMs: number[] = []
    for (let i = 0; i < 10; i++) {
      const from = process.cpuUsage()
      await new Promise((resolve) => setTimeout(resolve, 10))
      const { user, system } = process.cpuUsage(from)
      usedMs.push((user + system) / 1000)
    }
    await broker.close({ drainMs: 0 })
    expect(handled).toBeGreaterThan(1_000)
    // Time on the processor, which the loop keeps busy: what others take from it on a busy machine is not ours.
    // The median, since collections of garbage run on other threads besides.
    expect(usedMs.sort((a, b) => a - b)[5]).toBeLessThan(10 + 25)
  })

  it('lets the event loop turn for those who publish in a loop outside, with and without readers', async () => {
    for (const readers of [0, 1]) {
      const broker = createBroker()
      const topic = await broker.createTopic('t')
      if (readers > 0) await topic.subscribe(() => {})
      let over = false
      setTimeout(() => {
        over = true
      }, 10)
      const from = performance.now()
      while (!over && performance.now() - from < 5_000) await topic.publish(1)
      expect(over).toBe(true)
      await broker.close()
    }
  })
})

/** The memory engine, with logs that the test can hold back and break. */
function frailEngine(clock: ManualClock, change: (log: PartitionLog) => Partial<PartitionLog>): Engine {
  const memory = memoryEngine({ clock })
  return withLogs(memory, async (spec) => {
    const log = await memory.openLog(spec)
    return changedLog(log, change(log))
  })
}

describe('a log that stopped accepting', () => {
  it.each([
    ['after a failed flush', 'OUTCOME_UNKNOWN', LOG_POISONED, 'POISONED'],
    ['since it is closed', 'CLOSED', LOG_CLOSED, 'CLOSED'],
  ] as const)('%s is %s to every publisher at once', async (_, code, offset, refusal) => {
    const clock = new ManualClock()
    const engine = frailEngine(clock, () => ({ tryAppendOne: () => offset, tryAppend: () => refusal }))
    const broker = new Broker(engine, { clock })
    const topic = await broker.createTopic('t')
    expect(await codeOf(topic.publish(1))).toBe(code)
    expect(codeThrown(() => topic.tryPublish(1))).toBe(code)
    expect(await codeOf(topic.publishAll([{ value: 1 }]))).toBe(code)
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', 1)))).toBe(code)
  })

  it('without a reader to blame makes publishers wait until they give up, and accuses nobody', async () => {
    const clock = new ManualClock()
    const engine = frailEngine(clock, () => ({ tryAppendOne: () => NO_ROOM, hasRoom: () => false }))
    const raised: string[] = []
    const broker = new Broker(engine, { clock }, { observe: (name) => raised.push(name) })
    const topic = await broker.createTopic('t')
    const waiting = codeOf(topic.publish(1))
    await clock.advance(30_000)
    expect(await waiting).toBe('TIMEOUT')
    expect(raised).not.toContain('stalled')
  })

  it('is told to those who wait when their turn comes', async () => {
    const clock = new ManualClock()
    let poisoned = false
    const engine = frailEngine(clock, (log) => ({
      tryAppend: (batch, mode) => (poisoned ? 'POISONED' : log.tryAppend(batch, mode)),
    }))
    const broker = new Broker(engine, { clock })
    const topic = await broker.createTopic('t', { retention: { records: 1 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { id: 'a', ack: 'manual' })
    await topic.publish(1)
    const waiting = codeOf(topic.publish(2))
    await clock.settle()
    poisoned = true
    hands.last.ack()
    expect(await waiting).toBe('OUTCOME_UNKNOWN')
  })
})

/** Live, but nothing is durable. */
function unflushedMarks(marks: Readonly<Marks>): Marks {
  return {
    start: 0,
    stable: 0,
    high: 0,
    epoch: 0,
    get end() {
      return marks.end
    },
  }
}

describe('a durable log', () => {
  /** A topic with dedupe whose records are durable when the test says so, or never. */
  async function unflushed() {
    const clock = new ManualClock()
    let flushed = (): void => {}
    let failed = (_: Error): void => {}
    const flush = new Promise<void>((resolve, reject) => {
      flushed = resolve
      failed = reject
    })
    flush.catch(() => undefined)
    const engine = frailEngine(clock, ({ marks }) => ({
      durable: () => flush,
      marks: unflushedMarks(marks),
    }))
    const broker = new Broker(engine, { clock })
    const topic = await broker.createTopic('t', { dedupe: true })
    return { clock, broker, topic, flushed, failed }
  }

  it('resolves a publish when its record is durable; an abort after the append changes nothing', async () => {
    const { clock, broker, topic, flushed } = await unflushed()
    const abort = new AbortController()
    const waits = [
      topic.publish(1, { id: 'x', signal: abort.signal }),
      topic.publish(1, { id: 'x' }),
      topic.publishAll([{ value: 2 }], { signal: abort.signal }),
      broker.transaction((tx) => tx.publish('t', 3), { signal: abort.signal }),
    ].map((each) => watch<unknown>(each))
    await clock.settle()
    abort.abort()
    await clock.settle()
    expect(waits.map((each) => each.state)).toEqual(['waiting', 'waiting', 'waiting', 'waiting'])
    flushed()
    await clock.settle()
    expect(waits.map((each) => each.state)).toEqual(['resolved', 'resolved', 'resolved', 'resolved'])
  })

  it('says of a failed flush that the outcome is unknown, to repeats of the id as well', async () => {
    const { broker, topic, failed } = await unflushed()
    const waits = [
      topic.publish(1, { id: 'x' }),
      topic.publish(1, { id: 'x' }),
      topic.publishAll([{ value: 2, id: 'y' }]),
      broker.transaction((tx) => tx.publish('t', 3, { id: 'z' })),
    ].map((each) => codeOf(each))
    failed(new OdradekError('OUTCOME_UNKNOWN', 'the flush failed'))
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['OUTCOME_UNKNOWN']))
    const repeats = ['x', 'y', 'z'].map((id) => codeOf(topic.publish(1, { id })))
    expect(new Set(await Promise.all(repeats))).toEqual(new Set(['OUTCOME_UNKNOWN']))
    expect(await codeOf(topic.publishAll([{ value: 1, id: 'x' }]))).toBe('OUTCOME_UNKNOWN')
    expect(await codeOf(broker.transaction((tx) => tx.publish('t', 1, { id: 'x' })))).toBe('OUTCOME_UNKNOWN')
  })
})
