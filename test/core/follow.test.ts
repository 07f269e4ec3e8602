/** What takes the place of a record whose handler has resolved: in the same reaction, without a run of the pump. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { DeliveryStrategy, StrategyName } from '../../src/model/options.ts'
import { upTo, World } from '../support/world.ts'

type GroupStrategy = StrategyName | DeliveryStrategy
type Handle = (delivery: Delivery<number>, sub: Subscription) => unknown

const CASES: readonly [what: string, handle: Handle, attempts: number][] = [
  ['answers a plain value', () => 'done', 1],
  ['answers nothing', () => undefined, 1],
  ['acks by hand', async (d) => d.ack(), 1],
  ['acks by hand and answers nothing', (d) => void d.ack(), 1],
  ['pauses its subscription for a moment', pauses, 1],
  ['asks for more time', async (d) => d.extend(60_000), 1],
  ['throws', (d) => fails(d), 2],
  ['rejects', async (d) => fails(d), 2],
  ['nacks by hand', async (d) => d.attempt === 1 && d.nack({ delayMs: 0 }), 2],
  ['answers a promise of its own', () => new Foreign((done) => done()), 1],
]

class Foreign extends Promise<void> {}

async function pauses(_: Delivery, sub: Subscription): Promise<void> {
  sub.pause()
  sub.resume()
}

function fails(delivery: Delivery): void {
  if (delivery.attempt === 1) throw new Error('not yet')
}

describe.each(['partition', 'key', 'none'] as const)('with order %s, a handler that', (order) => {
  // The first record is handed out by a run, the others follow each other.
  describe.each([0, 3])('with record %i', (special) => {
    it.each(CASES)('%s gets the others all the same', async (_what, handle, attempts) => {
      const world = new World()
      const topic = await world.broker.createTopic<number>('orders')
      const seen: number[] = []
      const sub: Subscription = await topic.subscribe(
        (d) => {
          seen.push(d.value)
          return d.value === special ? (handle(d, sub) as Promise<void>) : Promise.resolve()
        },
        { id: 'reader', order, retry: { attempts: 2, delayMs: 0 } },
      )
      await topic.publishAll(upTo(6).map((value) => ({ value })))
      await world.broker.idle()
      expect(seen.filter((value) => value === special)).toHaveLength(attempts)
      expect(new Set(seen)).toEqual(new Set(upTo(6)))
      expect(sub.describe().counters).toMatchObject({ delivered: 5 + attempts, acked: 6, zombies: 0 })
      expect(sub.describe()).toMatchObject({
        cursors: [{ committed: 6, inFlight: 0 }],
        member: { inFlight: 0 },
      })
    })
  })
})

describe('a record that follows another', () => {
  it.each([0, 3])(
    'is acked when the handler of record %i ends its own subscription and succeeds',
    async (last) => {
      const world = new World()
      const topic = await world.broker.createTopic<number>('orders')
      const seen: number[] = []
      const sub: Subscription = await topic.subscribe(
        async (d) => {
          seen.push(d.value)
          if (d.value === last) void sub.unsubscribe()
        },
        { group: 'workers', id: 'leaver' },
      )
      await topic.publishAll(upTo(6).map((value) => ({ value })))
      await world.broker.idle()
      expect(seen).toEqual(upTo(last + 1))
      const { counters, cursors } = sub.describe()
      expect(counters).toMatchObject({ acked: last + 1, zombies: 0 })
      expect(cursors).toMatchObject([{ committed: last + 1, inFlight: 0 }])
    },
  )

  it('expires by its own deadline, not by that of the one before', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('orders')
    const seen: [number, number][] = []
    const options = { id: 'reader', ackTimeoutMs: 1_000, retry: { attempts: 2, delayMs: 0 } }
    await topic.subscribe(
      (d) => {
        seen.push([d.value, d.attempt])
        if (d.value === 1 && d.attempt === 1) return new Promise<void>(() => {})
        return new Promise<void>((done) => void world.clock.setTimer(done, 600))
      },
      { ...options, concurrency: 2, order: 'partition' },
    )
    await topic.publishAll(upTo(2).map((value) => ({ value })))
    await world.clock.advance(600)
    expect(seen).toEqual([
      [0, 1],
      [1, 1],
    ])
    await world.clock.advance(999)
    expect(seen).toHaveLength(2)
    await world.clock.advance(2)
    expect(seen).toEqual([
      [0, 1],
      [1, 1],
      [1, 2],
    ])
  })

  it.each(['partition', 'key'] as const)(
    'leaves every other turn to another partition: order %s',
    async (order) => {
      const world = new World()
      const topic = await world.broker.createTopic<number>('orders', { partitions: 2 })
      const seen: number[] = []
      await topic.subscribe(async (d) => void seen.push(d.partition), { id: 'reader', order })
      await topic.publishAll(upTo(200).map((value) => ({ value, partition: value % 2 })))
      await world.broker.idle()
      const runs = seen.slice(0, 150).join('').match(/0+|1+/g) ?? []
      expect(Math.max(...runs.map((run) => run.length))).toBeLessThanOrEqual(2)
    },
  )

  it('is of a topic that its member reads', async () => {
    const world = new World()
    const seen: { [topic: string]: Set<string> } = { x: new Set(), y: new Set() }
    for (const name of ['x', 'y']) {
      const topic = await world.broker.createTopic<number>(name)
      const handle = async ({ topic }: Delivery): Promise<void> => {
        seen[name]?.add(topic)
        // Out of step, so that each is first in line when the other has a place.
        if (name === 'y') await Promise.resolve()
      }
      await topic.subscribe(handle, { group: 'workers', id: name })
    }
    for (const name of ['x', 'y']) {
      await world.broker.topic(name).publishAll(upTo(200).map((value) => ({ value })))
    }
    await world.broker.idle()
    expect(seen).toEqual({ x: new Set(['x']), y: new Set(['y']) })
  })

  it('does not pass one of its key that waits', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('orders')
    const open = new Map<string, number>()
    let most = 0
    const order: number[] = []
    await topic.subscribe(
      async (d) => {
        const key = String(d.key)
        open.set(key, (open.get(key) ?? 0) + 1)
        most = Math.max(most, open.get(key) as number)
        order.push(d.value)
        await new Promise<void>((done) => void world.clock.setTimer(done, d.value % 3))
        open.set(key, (open.get(key) as number) - 1)
      },
      { id: 'reader', concurrency: 4 },
    )
    await topic.publishAll(upTo(60).map((value) => ({ value, key: `k${value % 5}` })))
    await world.clock.advance(200)
    expect(most).toBe(1)
    expect(order).toHaveLength(60)
    for (const each of upTo(5)) {
      const ofKey = order.filter((value) => value % 5 === each)
      expect(ofKey).toEqual([...ofKey].sort((a, b) => a - b))
    }
  })

  it('waits when the window is full, and goes on when its head has settled', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('orders')
    let settleHead: () => void = () => {}
    let seen = 0
    await topic.subscribe(
      (d) => {
        seen++
        return d.value === 0 ? new Promise<void>((done) => (settleHead = done)) : Promise.resolve()
      },
      { id: 'reader', concurrency: 2 },
    )
    await topic.publishAll(upTo(20_000).map((value) => ({ value })))
    await world.settle()
    expect(seen).toBe(16_384)
    settleHead()
    await world.broker.idle()
    expect(seen).toBe(20_000)
  })
})

describe('in a group, what follows a record', () => {
  const strategies: readonly [string, GroupStrategy][] = [
    ['round-robin', 'round-robin'],
    ['least-in-flight', 'least-in-flight'],
    ['weighted', 'weighted'],
    ['sticky-key', 'sticky-key'],
    [
      'one that sets every other record aside',
      { select: (record, [free]) => (setsAside(record) ? 'hold' : (free ?? 'hold')) },
    ],
    [
      'one that wants a certain member, busy or not',
      { select: (record, _, { all }) => all[Number(record.value) % all.length] ?? 'hold' },
    ],
  ]
  const asked = new Map<number, number>()

  function setsAside({ offset }: { offset: number }): boolean {
    const times = (asked.get(offset) ?? 0) + 1
    asked.set(offset, times)
    return offset % 2 === 1 && times === 1
  }

  it.each(strategies)('is whom the strategy gives it to, and nothing is left: %s', async (_, strategy) => {
    asked.clear()
    const world = new World()
    const topic = await world.broker.createTopic<number>('orders')
    const seen = new Map<string, number[]>()
    for (const id of ['a', 'b', 'c']) {
      const values: number[] = []
      seen.set(id, values)
      await topic.subscribe(async (d) => void values.push(d.value), { group: 'workers', id, strategy })
    }
    await topic.publishAll(upTo(300).map((value) => ({ value, key: `k${value % 7}` })))
    await world.broker.idle()
    const all = [...seen.values()].flat()
    expect(all.sort((x, y) => x - y)).toEqual(upTo(300))
    for (const values of seen.values()) {
      for (const key of upTo(7)) {
        const ofKey = values.filter((value) => value % 7 === key)
        expect(ofKey).toEqual([...ofKey].sort((x, y) => x - y))
      }
    }
    if (strategy === 'round-robin') for (const values of seen.values()) expect(values).toHaveLength(100)
    if (strategy === 'sticky-key') {
      for (const key of upTo(7)) {
        expect([...seen.values()].filter((values) => values.some((value) => value % 7 === key))).toHaveLength(
          1,
        )
      }
    }
    if (typeof strategy === 'object' && asked.size === 0) {
      expect([...seen.values()].map((values) => new Set(values.map((value) => value % 3)))).toEqual([
        new Set([0]),
        new Set([1]),
        new Set([2]),
      ])
    }
  })
})
