/** Whatever handlers do, in whatever order, number and form: every record ends once, in its order, and no place is lost. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Order, SubscribeOptions } from '../../src/model/options.ts'
import { upTo, World } from '../support/world.ts'

const ACTS = [
  'return',
  'return',
  'resolve',
  'resolve',
  'resolve later',
  'resolve after expiry',
  'throw',
  'reject',
  'ack, then throw',
  'ack, then resolve later',
  'nack at once',
  'nack, then resolve later',
  'to the dead letters',
  'extend, then resolve later',
  'answer a thenable that calls back twice',
] as const
type Act = (typeof ACTS)[number]

const scene = fc.record({
  partitions: fc.integer({ min: 1, max: 3 }),
  order: fc.constantFrom<Order>('partition', 'key', 'none'),
  members: fc.integer({ min: 1, max: 3 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  assignment: fc.constantFrom('shared', 'range' as const),
  keys: fc.array(fc.constantFrom('a', 'b', null), { minLength: 1, maxLength: 30 }),
  acts: fc.array(fc.constantFrom(...ACTS), { minLength: 1, maxLength: 20 }),
})
type Scene = typeof scene extends fc.Arbitrary<infer S> ? S : never

/** What is in hand at a time, and whether order allows it. */
class Watched {
  readonly starts: Delivery[] = []
  readonly #open = new Set<Delivery>()
  readonly #order: Order
  rejected = 0
  broken: string | undefined

  constructor(order: Order) {
    this.#order = order
  }

  begins(d: Delivery): void {
    for (const other of this.#open) {
      const samePlace = other.partition === d.partition
      const sameKey = samePlace && other.key !== null && other.key === d.key
      if (this.#order === 'partition' ? samePlace : this.#order === 'key' && sameKey) {
        this.broken ??= `${d.partition}/${d.offset} while ${other.partition}/${other.offset} was in hand`
      }
    }
    this.#open.add(d)
    d.signal.addEventListener('abort', () => this.#open.delete(d))
    this.starts.push(d)
  }

  ends(d: Delivery): void {
    this.#open.delete(d)
  }
}

function perform(act: Act, d: Delivery, watched: Watched, world: World): unknown {
  const done = (): void => watched.ends(d)
  const later = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      world.clock.setTimer(() => {
        done()
        resolve()
      }, ms)
    })
  const settled = (): void => done()
  switch (act) {
    case 'return':
      return settled()
    case 'resolve':
      return Promise.resolve().then(settled)
    case 'resolve later':
      return later(10)
    case 'resolve after expiry':
      return later(5_000)
    case 'throw':
      settled()
      throw new Error(act)
    case 'reject':
      settled()
      return Promise.reject(new Error(act))
    case 'ack, then throw':
      settled()
      d.ack()
      throw new Error(act)
    case 'ack, then resolve later':
      settled()
      d.ack()
      return later(10)
    case 'nack at once':
      settled()
      d.nack({ delayMs: 0 })
      return undefined
    case 'nack, then resolve later':
      settled()
      d.nack()
      return later(10)
    case 'to the dead letters':
      settled()
      if (d.reject()) watched.rejected++
      return undefined
    case 'extend, then resolve later':
      d.extend(4_000)
      return later(3_000)
    case 'answer a thenable that calls back twice':
      settled()
      return Object.defineProperty({}, 'then', {
        value: (resolve: () => void) => {
          resolve()
          resolve()
        },
      })
  }
}

async function play({
  partitions,
  order,
  members,
  concurrency,
  assignment,
  keys,
  acts,
}: Scene): Promise<void> {
  const world = new World()
  const topic = await world.broker.createTopic<number>('orders', { partitions })
  const watched = new Watched(order)
  let turn = 0
  const handler = (d: Delivery): unknown => {
    watched.begins(d)
    return perform(acts[turn++ % acts.length] as Act, d, watched, world)
  }
  const options: SubscribeOptions = {
    group: 'g',
    assignment,
    order,
    concurrency,
    ackTimeoutMs: 1_000,
    retry: { attempts: 3, delayMs: 20 },
  }
  const subs = await Promise.all(
    upTo(members).map((id) => topic.subscribe(handler, { ...options, id: `${id}` })),
  )
  for (const [value, key] of keys.entries()) await topic.publish(value, { key })
  await world.clock.runAll()
  await world.broker.idle()

  expect(watched.broken).toBeUndefined()
  const { counters, cursors } = world.broker.describeGroup('g')
  expect(cursors.reduce((sum, cursor) => sum + cursor.committed, 0)).toBe(keys.length)
  expect(cursors.every((cursor) => cursor.inFlight === 0 && cursor.retrying === 0 && cursor.lag === 0)).toBe(
    true,
  )
  expect(counters.acked + counters.deadLettered).toBe(keys.length)
  expect(counters.delivered).toBe(watched.starts.length)
  expect(counters.delivered).toBe(counters.acked + counters.nacked + counters.expired + watched.rejected)
  expect(Math.max(...watched.starts.map((d) => d.attempt))).toBeLessThanOrEqual(3)
  for (const sub of subs) expect(sub.describe().member).toMatchObject({ inFlight: 0, zombies: 0 })
  expect(world.clock.held).toBe(false)
  expect(world.raised('error')).toEqual([])
  expect(await world.broker.close()).toEqual({ abandoned: 0 })
}

describe('deliveries', () => {
  it('end once each, in their order, and leave every place free, whatever handlers do', async () => {
    await fc.assert(fc.asyncProperty(scene, play), { numRuns: 150 })
  })
})
