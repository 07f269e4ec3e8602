import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

/** A topic of `records`, and on it a reader that has its first record in hand and takes no other. */
async function stuckReader(records: number, options: SubscribeOptions) {
  const world = new World()
  const topic = await world.broker.createTopic('t', { retention: { records } })
  const hands = new Hands()
  const reader = await topic.subscribe(hands.take, { ack: 'manual', ackTimeoutMs: 3_600_000, ...options })
  await topic.publish(0)
  await world.settle()
  const counters = () => reader.describe().counters
  /** Publishes the numbers from `from` to below `to`, none of which may wait. */
  const publish = async (from: number, to: number): Promise<void> => {
    for (let value = from; value < to; value++) await topic.publish(value)
  }
  /** Settles what is in hand, and what comes then, until nothing does. */
  const drain = async (): Promise<void> => {
    for (let seen = 0; seen < hands.deliveries.length; ) {
      seen = hands.deliveries.length
      hands.last.ack()
      await world.settle()
    }
  }
  return { world, topic, hands, reader, counters, publish, drain }
}

describe('overflow "wait"', () => {
  it('makes the producer wait and loses nothing', async () => {
    const { world, topic, hands, counters, publish, drain } = await stuckReader(3, {
      id: 'a',
      overflow: 'wait',
    })
    await publish(1, 3)
    const waiting = watch(topic.publish(3))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 3])
    expect(counters().dropped).toBe(0)
  })

  it.each([
    ['a subscription with an id', { id: 'a' }],
    ['a shared group', { group: 'g' }],
    ['a consumer group', { group: 'g', assignment: 'range' }],
  ] as const)('is the default of %s', async (_, options) => {
    const { world, topic, reader } = await stuckReader(1, options)
    expect(reader.describe().overflow).toBe('wait')
    expect(reader.describe().cursors[0]?.gating).toBe(true)
    const waiting = watch(topic.publish(1))
    await world.settle()
    expect(waiting.state).toBe('waiting')
  })

  it('gates for the group, never for a member: a stuck one does not stop the others', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 4 } })
    const hands = new Hands()
    let handled = 0
    const group = { group: 'g', order: 'none', ackTimeoutMs: 3_600_000 } as const
    await topic.subscribe(hands.take, { ...group, id: 'stuck', ack: 'manual' })
    await topic.subscribe(() => void handled++, { ...group, id: 'fast' })
    for (const value of upTo(4)) await topic.publish(value)
    await world.settle()
    expect([hands.deliveries.length, handled]).toEqual([1, 3])
    const waiting = watch(topic.publish(4))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    hands.last.ack()
    await world.settle()
    expect(waiting.state).toBe('resolved')
  })
})

describe('overflow "reject"', () => {
  it('answers FULL at once, loses nothing, and accepts again when a record settled', async () => {
    const { topic, hands, publish, drain, counters } = await stuckReader(3, { id: 'a', overflow: 'reject' })
    await publish(1, 3)
    await expect(topic.publish(3)).rejects.toMatchObject({
      code: 'FULL',
      retriable: true,
      message: expect.stringContaining('reader "a" (overflow "reject")'),
    })
    expect(await codeOf(topic.publishAll([{ value: 3 }]))).toBe('FULL')
    expect(topic.tryPublish(3)).toBeUndefined()
    hands.last.ack()
    expect(await topic.publish(3)).toEqual({ partition: 0, offset: 3 })
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 3])
    expect(counters().dropped).toBe(0)
  })

  it('says FULL to a transaction', async () => {
    const { world, publish } = await stuckReader(2, { group: 'g', overflow: 'reject' })
    await publish(1, 2)
    expect(await codeOf(world.broker.transaction((tx) => tx.publish('t', 2)))).toBe('FULL')
  })

  it('goes before "wait": FULL when both are full, a wait when only the other is', async () => {
    const { world, topic, hands, publish } = await stuckReader(2, { id: 'a', overflow: 'reject' })
    await topic.subscribe(() => {}, { id: 'b', from: 'earliest', credit: 'manual', overflow: 'wait' })
    await publish(1, 2)
    expect(await codeOf(topic.publish(2))).toBe('FULL')
    hands.last.ack()
    const waiting = watch(topic.publish(2))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    expect(await codeOf(topic.publishAll([{ value: 3 }, { value: 4 }]))).toBe('FULL')
  })

  it('evicts nothing of what others need while it is asked', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 4 } })
    const slow = await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await topic.subscribe(() => {}, { id: 'quick', overflow: 'reject' })
    for (const value of upTo(4)) await topic.publish(value)
    await world.settle()
    await world.broker.alterTopic('t', { retention: { records: 2 } })
    const abort = new AbortController()
    const given = codeOf(topic.publish(4, { signal: abort.signal }))
    await world.settle()
    abort.abort()
    expect(await given).toBe('ABORTED')
    expect(topic.describe().partitions[0]).toMatchObject({ start: 0, end: 4 })
    expect(slow.describe().counters.dropped).toBe(0)
  })
})

describe('overflow "drop-oldest"', () => {
  it('never makes a producer wait; the reader skips forward and keeps the newest', async () => {
    const { world, hands, counters, publish, drain, reader } = await stuckReader(4, {
      id: 'a',
      overflow: 'drop-oldest',
    })
    await publish(1, 11)
    await world.settle()
    expect(counters().dropped).toBe(6)
    expect(reader.describe().cursors[0]).toMatchObject({ gating: false, next: 7, inFlight: 1 })
    await drain()
    expect(hands.values).toEqual([0, 7, 8, 9, 10])
    expect(counters()).toMatchObject({ dropped: 6, acked: 5 })
  })

  it.each([
    [
      'a subscription',
      (world: World, hands: Hands) => world.broker.subscribe('t', hands.take, { ack: 'manual' }),
    ],
    [
      'a stream',
      async (world: World, hands: Hands) => {
        const stream = world.broker.stream('t')
        hands.take((await stream.next()).value as Delivery)
      },
    ],
  ])('is always that of %s without a name, which never holds the log', async (_, open) => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const hands = new Hands()
    const opened = open(world, hands)
    await world.settle()
    for (const value of upTo(10)) await topic.publish(value)
    await opened
    const [reader] = topic.describe().readers
    expect(reader).toMatchObject({ durable: false, overflow: 'drop-oldest' })
    expect(reader?.cursors[0]).toMatchObject({ gating: false })
    expect(hands.values).toEqual([0])
    expect(reader?.counters.dropped).toBe(7)
  })

  it('drops what waits for a retry or for its key, and lets what is in flight settle', async () => {
    const { world, topic, hands, counters } = await stuckReader(3, {
      group: 'g',
      overflow: 'drop-oldest',
      order: 'key',
      concurrency: 3,
      retry: { delayMs: 1_000 },
    })
    await topic.publish('retries', { key: 'r' })
    await topic.publish('in flight', { key: 'k' })
    await world.settle()
    await topic.publish('held behind it', { key: 'k' })
    hands.deliveries[1]?.nack()
    await world.settle()
    for (const value of upTo(4)) await topic.publish(value)
    await world.settle()
    expect(counters()).toMatchObject({ dropped: 2, delivered: 4 })
    for (const i of [0, 2, 3]) expect(hands.deliveries[i]?.ack()).toBe(true)
    await world.clock.advance(2_000)
    expect(hands.values.slice(3)).toEqual([0, 1, 2, 3])
    expect(hands.deliveries.every((each) => each.attempt === 1)).toBe(true)
  })

  it('drops a record that comes back after the log has passed it', async () => {
    const { world, hands, counters, publish } = await stuckReader(2, { id: 'a', overflow: 'drop-oldest' })
    await publish(1, 5)
    await world.settle()
    expect(counters().dropped).toBe(2)
    expect(hands.last.nack()).toBe(true)
    await world.settle()
    expect(counters()).toMatchObject({ dropped: 3, nacked: 1 })
    expect(hands.values).toEqual([0, 3])
  })
})

describe('overflow "drop-newest"', () => {
  it('never makes a producer wait; the reader keeps the oldest it admitted, also when the log has lost them', async () => {
    const { world, topic, hands, counters, publish, drain } = await stuckReader(4, {
      id: 'a',
      overflow: 'drop-newest',
    })
    await publish(1, 20)
    await world.settle()
    expect(topic.describe().partitions[0]?.start).toBe(16)
    expect(counters().dropped).toBe(16)
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 3])
    await publish(20, 22)
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 3, 20, 21])
    expect(counters()).toMatchObject({ dropped: 16, acked: 6 })
  })

  it('admits again for every record that settles', async () => {
    const { world, hands, counters, publish, drain } = await stuckReader(3, {
      id: 'a',
      overflow: 'drop-newest',
    })
    await publish(1, 5)
    hands.last.ack()
    await publish(5, 7)
    await world.settle()
    hands.last.ack()
    await publish(7, 9)
    await world.settle()
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 5, 7])
    expect(counters().dropped).toBe(4)
  })

  it('admits the oldest of a burst that no reader could have looked at meanwhile', async () => {
    const { topic, hands, counters, drain } = await stuckReader(4, { id: 'a', overflow: 'drop-newest' })
    for (const value of upTo(20)) topic.tryPublish(value + 1)
    hands.last.ack()
    for (const value of upTo(20)) topic.tryPublish(value + 100)
    await drain()
    expect(hands.values).toEqual([0, 1, 2, 3, 100])
    expect(counters().dropped).toBe(17 + 19)
    for (const value of upTo(20)) topic.tryPublish(value + 200)
    await drain()
    expect(hands.values.slice(5)).toEqual([200, 201, 202, 203])
  })

  it('hands its records out in batches too, each once', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 32 } })
    const batches: unknown[][] = []
    const reader = await topic.subscribe(
      (batch) => void batches.push([...batch].map((delivery) => delivery.value)),
      { id: 'a', overflow: 'drop-newest', batch: 10, credit: 'manual' },
    )
    for (const value of upTo(40)) await topic.publish(value)
    await world.settle()
    reader.request(1_000)
    await world.broker.idle()
    expect(batches).toEqual([upTo(10), upTo(10).map((i) => i + 10), upTo(10).map((i) => i + 20), [30, 31]])
    expect(reader.describe().counters).toMatchObject({ dropped: 8, acked: 32 })
  })

  it('hands them out in smaller batches than the log had let go of', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 64 } })
    const batches: unknown[][] = []
    const reader = await topic.subscribe(
      (batch) => void batches.push([...batch].map((delivery) => delivery.value)),
      { id: 'a', overflow: 'drop-newest', batch: 3, credit: 'manual', maxLag: { records: 8 } },
    )
    for (const value of upTo(200)) await topic.publish(value)
    await world.settle()
    reader.request(1_000)
    await world.broker.idle()
    expect(batches).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7],
    ])
  })

  it('is no reason for pressure, a wait or a stall', async () => {
    const { world, topic, publish } = await stuckReader(10, { id: 'a', overflow: 'drop-newest' })
    await publish(1, 30)
    await world.clock.advance(60_000)
    expect(topic.pressure).toBe(0)
    expect(world.raised('pressure')).toEqual([])
    expect(world.raised('stalled')).toEqual([])
  })

  it('keeps alive what it admitted and nothing else', async () => {
    const { world, topic, hands, publish, drain } = await stuckReader(16, {
      id: 'a',
      overflow: 'drop-newest',
      maxLag: { records: 2 },
    })
    await publish(1, 2)
    for (let round = 0; round < 20; round++) {
      hands.last.ack()
      await world.settle()
      await publish(100, 140)
      await world.settle()
    }
    const log = world.logs.get('t/0')
    expect(log?.records).toBe(16)
    await drain()
    expect(topic.describe().readers[0]?.cursors[0]?.lag).toBe(0)
  })

  it('that nobody reads after its grace is overtaken like any other', async () => {
    const { world, topic, reader, hands, publish, drain } = await stuckReader(4, {
      id: 'a',
      overflow: 'drop-newest',
      graceMs: 0,
    })
    await publish(1, 3)
    await reader.close({ drainMs: 0 })
    await world.clock.advance(0)
    await publish(3, 10)
    const again = await topic.subscribe(hands.take, {
      id: 'a',
      overflow: 'drop-newest',
      graceMs: 0,
      ack: 'manual',
    })
    await world.settle()
    await drain()
    // Full with 0 to 3, it missed 4; every record that retention took then made room for one, until 5 went too.
    expect(hands.values).toEqual([0, 0, 6, 7, 9])
    expect(again.describe().counters).toMatchObject({ dropped: 6, acked: 4 })
    const dropped = (reason: string): number =>
      world
        .raised('dropped')
        .filter((event) => event.reason === reason)
        .reduce((sum, event) => sum + event.count, 0)
    expect([dropped('overtaken'), dropped('drop-newest')]).toEqual([4, 2])
  })
})

describe('who may choose', () => {
  it.each([
    ['a reader without a name cannot hold the log', { overflow: 'wait' }],
    ['a reader without a name cannot refuse for others', { overflow: 'reject' }],
    ['a reader without a name cannot keep what the log drops', { overflow: 'drop-newest' }],
    ['a gating reader has no bound of its own', { id: 'a', maxLag: { records: 1 } }],
    ['a rejecting reader has no bound of its own', { group: 'g', overflow: 'reject', maxLag: { bytes: 1 } }],
    ['a policy is one of four', { id: 'a', overflow: 'drop' }],
    ['a bound is a number above 0', { overflow: 'drop-oldest', maxLag: { records: 0 } }],
    ['a bound in bytes is a number above 0', { overflow: 'drop-oldest', maxLag: { bytes: -1 } }],
  ])('%s', async (_, options) => {
    const { broker } = new World()
    await broker.createTopic('t')
    expect(await codeOf(broker.subscribe('t', () => {}, options as SubscribeOptions))).toBe(
      'INVALID_ARGUMENT',
    )
  })
})
