import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { wireBatchOf } from '../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedLog, withLogs } from '../support/engines.ts'
import { Hands, upTo, World, watch } from '../support/world.ts'

const OPEN = { ack: 'manual', ackTimeoutMs: 3_600_000 } as const

async function subscribed(options: SubscribeOptions, retention: object = { records: 100 }) {
  const world = new World()
  const topic = await world.broker.createTopic<unknown>('t', {
    retention,
    sizeOf: (value) => (value as { bytes: number }).bytes - 64,
  })
  const hands = new Hands()
  const reader = await topic.subscribe(hands.take, { ...OPEN, ...options })
  const drain = async (): Promise<void> => {
    for (let seen = 0; seen < hands.deliveries.length; ) {
      seen = hands.deliveries.length
      hands.last.ack()
      await world.settle()
    }
  }
  return { world, topic, hands, reader, drain, dropped: () => reader.describe().counters.dropped }
}

const sized = (bytes: number): { bytes: number } => ({ bytes })

describe('maxLag of a drop-oldest reader', () => {
  it('by records is a sliding window below retention: the newest stay', async () => {
    const { world, topic, hands, drain, dropped, reader } = await subscribed({
      overflow: 'drop-oldest',
      maxLag: { records: 3 },
    })
    for (const value of upTo(10)) await topic.publish({ bytes: 64 + value })
    await world.settle()
    expect(reader.describe().cursors[0]).toMatchObject({ next: 7, inFlight: 1, gating: false })
    expect(dropped()).toBe(6)
    await drain()
    expect(hands.values).toEqual([0, 7, 8, 9].map((value) => ({ bytes: 64 + value })))
    expect(topic.describe().partitions[0]?.records).toBe(10)
  })

  it('by bytes keeps as many of the newest as fit, to the byte', async () => {
    const { world, topic, hands, drain, dropped } = await subscribed({
      id: 'a',
      overflow: 'drop-oldest',
      maxLag: { bytes: 500 },
    })
    for (const bytes of [100, 200, 300, 200, 100, 200]) await topic.publish(sized(bytes))
    await world.settle()
    expect(dropped()).toBe(2)
    await drain()
    expect(hands.values).toEqual([100, 200, 100, 200].map(sized))
    await topic.publish(sized(500))
    await drain()
    expect(hands.last.value).toEqual(sized(500))
    for (const bytes of [100, 200, 100, 201]) await topic.publish(sized(bytes))
    await drain()
    expect(hands.values.slice(5)).toEqual([100, 100, 201].map(sized))
  })

  it('holds whichever bound is reached first', async () => {
    const { world, topic, dropped } = await subscribed({
      overflow: 'drop-oldest',
      maxLag: { records: 4, bytes: 1_000 },
    })
    for (const bytes of [100, 100, 100, 100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    expect(dropped()).toBe(1)
    await topic.publish(sized(950))
    await world.settle()
    expect(dropped()).toBe(5)
  })

  it('says nothing of a reader that keeps up', async () => {
    const { world, topic, dropped, hands } = await subscribed({
      overflow: 'drop-oldest',
      maxLag: { records: 2, bytes: 300 },
    })
    for (const value of upTo(20)) {
      await topic.publish(sized(100 + value))
      await world.settle()
      hands.last.ack()
    }
    await world.settle()
    expect([dropped(), hands.deliveries.length]).toEqual([0, 20])
    expect(world.raised('dropped')).toEqual([])
  })

  it('gives up what retention takes, too, when that is less', async () => {
    const { world, topic, dropped } = await subscribed(
      { overflow: 'drop-oldest', maxLag: { records: 10, bytes: 100_000 } },
      { records: 3 },
    )
    for (const bytes of upTo(8)) await topic.publish(sized(100 + bytes))
    await world.settle()
    expect(dropped()).toBe(4)
  })

  it('applies to where a replay goes', async () => {
    const { world, topic, hands, drain } = await subscribed({
      id: 'a',
      overflow: 'drop-oldest',
      maxLag: { records: 2, bytes: 1_000 },
    })
    for (const value of upTo(5)) {
      await topic.publish(sized(100 + value))
      await world.settle()
      await drain()
    }
    await world.broker.resetOffset('t', 'a', 'earliest')
    await world.settle()
    await drain()
    expect(hands.values.slice(5)).toEqual([sized(103), sized(104)])
  })
})

describe('maxLag of a drop-newest reader', () => {
  it('by records admits no more than that, in hand and waiting', async () => {
    const { world, topic, hands, drain, dropped } = await subscribed({
      id: 'a',
      overflow: 'drop-newest',
      maxLag: { records: 3 },
    })
    for (const value of upTo(10)) await topic.publish(sized(100 + value))
    await world.settle()
    expect(dropped()).toBe(7)
    await drain()
    expect(hands.values).toEqual([100, 101, 102].map(sized))
  })

  it('by bytes misses what does not fit and takes in what does, one by one, whenever it looks', async () => {
    const sizes = [100, 200, 300, 100, 150, 80, 70, 90]
    for (const looksOften of [true, false]) {
      const { world, topic, hands, drain, dropped } = await subscribed({
        id: 'a',
        overflow: 'drop-newest',
        maxLag: { bytes: 500 },
      })
      for (const bytes of sizes) {
        topic.tryPublish(sized(bytes))
        if (looksOften) await world.settle()
      }
      await world.settle()
      expect(dropped()).toBe(4)
      await drain()
      expect(hands.values).toEqual([100, 200, 100, 80].map(sized))
      for (const bytes of [400, 100]) topic.tryPublish(sized(bytes))
      await world.settle()
      await drain()
      expect(hands.values.slice(4)).toEqual([400, 100].map(sized))
    }
  })

  it('counts bytes anew after a replay', async () => {
    const { world, topic, hands, drain, dropped } = await subscribed({
      id: 'a',
      overflow: 'drop-newest',
      maxLag: { bytes: 250 },
    })
    for (const bytes of [100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    await world.broker.resetOffset('t', 'a', 'earliest')
    await world.settle()
    await drain()
    expect(hands.deliveries.map((each) => each.offset)).toEqual([0, 0, 1])
    expect(dropped()).toBe(2)
  })

  it('follows retention when that is changed', async () => {
    const { world, topic, dropped } = await subscribed({ id: 'a', overflow: 'drop-newest' }, { records: 2 })
    for (const bytes of [100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    expect(dropped()).toBe(1)
    await world.broker.alterTopic('t', { retention: { records: 4 } })
    for (const bytes of [100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    expect(dropped()).toBe(2)
  })

  it('frees the bytes of copies that are meant for another reader', async () => {
    const { world, topic, hands, drain, dropped } = await subscribed({
      id: 'a',
      overflow: 'drop-newest',
      maxLag: { bytes: 300 },
    })
    const headers = { '__redrive.reader': 'somebody-else' }
    for (const bytes of [100, 100, 100]) {
      await topic.publish(sized(bytes), { headers })
      await world.settle()
    }
    for (const bytes of [100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    await drain()
    expect([hands.deliveries.length, dropped()]).toEqual([3, 0])
  })

  describe('of records that came as bytes', () => {
    /** A log of four records, a reader with nothing in hand that takes nothing, and two batches of bytes. */
    async function wire(changes: Partial<PartitionLog> = {}) {
      const memory = memoryEngine({ clock: new ManualClock() })
      const world = new World(
        {},
        withLogs(memory, async (spec) => changedLog(await memory.openLog(spec), changes)),
      )
      const topic = await world.broker.createTopic('t', { retention: { records: 4 } })
      const hands = new Hands()
      const reader = await topic.subscribe(hands.take, {
        ...OPEN,
        id: 'a',
        overflow: 'drop-newest',
        credit: 'manual',
      })
      const log = world.logs.get('t/0')
      for (const value of ['a', 'b']) log?.tryAppend(wireBatchOf([{ value }, { value: `${value}2` }]))
      return { world, topic, hands, reader }
    }

    it('takes in what there is before the log evicts it; publishers wait no longer than that', async () => {
      const { world, topic, hands, reader } = await wire()
      await Promise.all(['c', 'd', 'e'].map((value) => topic.publish(value)))
      reader.request(100)
      for (let i = 0; i < 10; i++) {
        await world.settle()
        hands.last.ack()
      }
      expect(hands.values).toEqual(['a', 'a2', 'b', 'b2'])
      expect(reader.describe().counters.dropped).toBe(3)
    })

    it('raises what the log cannot read, and keeps holding it', async () => {
      const { world, topic } = await wire({ load: () => Promise.reject(new Error('bad sector')) })
      const waiting = watch(topic.publish('c'))
      await world.settle()
      expect(waiting.state).toBe('waiting')
      const contexts = world.raised('error').map(({ context }) => context)
      expect(contexts.filter((context) => context.includes('about to evict'))).toHaveLength(1)
    })
  })

  it('counts bytes anew when retention takes what it had taken in', async () => {
    const { world, topic, hands, reader, drain } = await subscribed(
      { id: 'a', overflow: 'drop-newest', maxLag: { bytes: 400 }, graceMs: 0 },
      { records: 3 },
    )
    for (const bytes of [100, 100, 100]) await topic.publish(sized(bytes))
    await world.settle()
    for (const bytes of [100, 110]) topic.tryPublish(sized(bytes))
    await reader.close({ drainMs: 0 })
    await world.clock.advance(0)
    for (const bytes of [120, 130, 140, 150]) await topic.publish(sized(bytes))
    const again = await topic.subscribe(hands.take, {
      ...OPEN,
      id: 'a',
      overflow: 'drop-newest',
      maxLag: { bytes: 400 },
      graceMs: 0,
    })
    await world.settle()
    await drain()
    await topic.publish(sized(400))
    await world.settle()
    await drain()
    expect(hands.last.value).toEqual(sized(400))
    const { acked, dropped } = again.describe().counters
    expect(acked + dropped).toBe(10)
  })
})

describe('drop counters', () => {
  interface Step {
    readonly kind: 'publish' | 'settle' | 'look' | 'nack' | 'time'
    readonly n: number
  }
  const steps: fc.Arbitrary<Step[]> = fc.array(
    fc.record({
      kind: fc.constantFrom('publish', 'publish', 'settle', 'look', 'nack', 'time'),
      n: fc.integer({ min: 1, max: 12 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  const policies = fc.constantFrom<SubscribeOptions>(
    { overflow: 'drop-oldest' },
    { overflow: 'drop-oldest', maxLag: { records: 3 } },
    { overflow: 'drop-oldest', maxLag: { bytes: 700 } },
    { id: 'a', overflow: 'drop-newest' },
    { id: 'a', overflow: 'drop-newest', maxLag: { records: 3 } },
    { id: 'a', overflow: 'drop-newest', maxLag: { bytes: 700 } },
  )
  const orders = fc.constantFrom<SubscribeOptions>(
    {},
    { order: 'key', concurrency: 2 },
    { order: 'none', concurrency: 3 },
  )

  /** A reader whose deliveries are settled by chance, and what became of them. */
  class Run {
    readonly world: World = new World()
    readonly acked: number[] = []
    published = 0
    readonly #open = new Set<Delivery>()

    async start(options: SubscribeOptions) {
      const topic = await this.world.broker.createTopic<{ bytes: number }>('t', {
        retention: { records: 8 },
        sizeOf: ({ bytes }) => bytes,
      })
      const handler = (delivery: Delivery): void => void this.#open.add(delivery)
      const reader = await topic.subscribe(handler, {
        ...OPEN,
        ...options,
        retry: { attempts: 1_000, delayMs: 5 },
      })
      return { reader }
    }

    publish(): void {
      const bytes = (this.published * 37) % 200
      this.world.broker.tryPublish('t', { bytes }, { key: `k${this.published++ % 2}` })
    }

    settle(how: 'ack' | 'nack'): void {
      const [delivery] = this.#open
      if (delivery === undefined) return
      this.#open.delete(delivery)
      if (delivery[how]() && how === 'ack') this.acked.push(delivery.offset)
    }

    async step({ kind, n }: Step): Promise<void> {
      if (kind === 'publish') for (let i = 0; i < n; i++) this.publish()
      else if (kind === 'settle') for (let i = 0; i < n; i++) this.settle('ack')
      else if (kind === 'nack') this.settle('nack')
      else await this.world.clock.advance(kind === 'look' ? 0 : n)
    }

    /** Acks all that is left. */
    async finish(): Promise<void> {
      for (let i = 0; i < this.published + 40; i++) {
        await this.world.clock.advance(10)
        this.settle('ack')
      }
      await this.world.broker.idle()
    }
  }

  it('are exact per reader: every record is settled or dropped, once, whatever happens in between', async () => {
    await fc.assert(
      fc.asyncProperty(policies, orders, steps, async (policy, order, program) => {
        const run = new Run()
        const { reader } = await run.start({ ...policy, ...order })
        for (const step of program) await run.step(step)
        await run.finish()
        const { counters, cursors } = reader.describe()
        expect(new Set(run.acked).size).toBe(run.acked.length)
        expect(counters.acked).toBe(run.acked.length)
        expect(counters.acked + counters.dropped).toBe(run.published)
        const end = { lag: 0, inFlight: 0, retrying: 0, committed: run.published }
        expect(cursors[0]).toMatchObject(end)
        const raised = run.world.raised('dropped').reduce((sum, event) => sum + event.count, 0)
        expect(raised).toBe(counters.dropped)
      }),
      { numRuns: 150 },
    )
  }, 60_000)
})
