/** What takes the place of a record whose handler has resolved: in the same reaction, without a run of the pump. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { upTo, World } from '../support/world.ts'

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
      for (const value of upTo(6)) await topic.publish(value)
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
      for (const value of upTo(6)) await topic.publish(value)
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
    for (const value of upTo(2)) await topic.publish(value)
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

  it('leaves every other turn to the other partition that waits for the same place', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('orders', { partitions: 2 })
    const seen: number[] = []
    await topic.subscribe(async (d) => void seen.push(d.partition), { id: 'reader' })
    await topic.publishAll(upTo(200).map((value) => ({ value, partition: value % 2 })))
    await world.broker.idle()
    const runs = seen.slice(0, 150).join('').match(/0+|1+/g) ?? []
    expect(Math.max(...runs.map((run) => run.length))).toBeLessThanOrEqual(2)
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
    for (const value of upTo(60)) await topic.publish(value, { key: `k${value % 5}` })
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
