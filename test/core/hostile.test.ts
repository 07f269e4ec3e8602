/** User code in places where nobody expects any: it may settle, look and answer nonsense, and breaks nothing. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { BatchError } from '../../src/model/errors.ts'
import { collectGarbage } from '../support/garbage.ts'
import { codeOf, Hands, upTo, World } from '../support/world.ts'

describe('an error that settles the record when asked for its text', () => {
  const settling = (settle: () => unknown): object => ({
    toString() {
      settle()
      return 'settled'
    },
  })

  it.each(['at once', 'later'])('has settled it, and is no failure any more (%s)', async (when) => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const sub = await broker.subscribe('orders', (d) => {
      const error = settling(() => d.ack())
      if (when === 'at once') throw error
      return Promise.reject(error)
    })
    for (const i of upTo(3)) await broker.publish('orders', i)
    await broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 3, acked: 3, nacked: 0 })
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 3, inFlight: 0 })
  })

  it('has settled it also as the cause of a BatchError', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const options = { batch: 3, from: 'earliest' } as const
    await broker.publishAll(
      'orders',
      upTo(3).map((value) => ({ value })),
    )
    const sub = await broker.subscribe(
      'orders',
      (batch) => {
        throw new BatchError(
          1,
          settling(() => batch.ack()),
        )
      },
      options,
    )
    await broker.idle()
    expect(sub.describe().counters).toMatchObject({ delivered: 3, acked: 3, nacked: 0 })
  })
})

it('a BatchError whose index is no number counts as a failure of all, so attempts run out', async () => {
  const { broker, clock } = new World()
  await broker.createTopic('orders')
  let calls = 0
  const handle = (): never => {
    calls++
    throw new BatchError('0' as unknown as number)
  }
  await broker.subscribe('orders', handle, { batch: 2, retry: { attempts: 3 }, deadLetter: false })
  await broker.publish('orders', 1)
  await clock.advance(10_000)
  expect(calls).toBe(3)
})

it('a strategy that looks at the readers, and so makes them drop, is not given what was dropped', async () => {
  const { broker, clock, raised } = new World()
  await broker.createTopic('orders')
  const seen: unknown[] = []
  let free = false
  const select = (record: { value: unknown }, members: readonly never[]): never | 'hold' => {
    if (record.value === 0 && !free) return 'hold'
    broker.metrics()
    return members[0] as never
  }
  const group = { group: 'g', strategy: { select }, overflow: 'drop-oldest', maxLag: { records: 3 } } as const
  const options = { ...group, order: 'none', ack: 'manual', concurrency: 2 } as const
  const hands = new Hands()
  await broker.subscribe('orders', hands.take, options)
  await broker.subscribe('orders', hands.take, options)
  await broker.publish('orders', 0)
  await broker.publish('orders', 1)
  await clock.settle()
  free = true
  for (const value of [2, 3, 4]) broker.tryPublish('orders', value)
  hands.deliveries[0]?.ack()
  await clock.settle()
  for (const delivery of hands.deliveries) delivery.ack()
  await clock.settle()
  for (const delivery of hands.deliveries) delivery.ack()
  seen.push(...hands.values)
  const dropped = raised('dropped').reduce((sum, { count }) => sum + count, 0)
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.length + dropped).toBe(5)
  expect(broker.describeGroup('g').cursors[0]).toMatchObject({ committed: 5, inFlight: 0 })
})

describe('a record that expired at one member', () => {
  it('goes back to it when the others may not have it for lack of credit', async () => {
    const { broker, clock } = new World()
    await broker.createTopic('orders')
    const hands = new Hands()
    const manual = { group: 'g', ack: 'manual' } as const
    await broker.subscribe('orders', hands.take, { ...manual, id: 'a', ackTimeoutMs: 100 })
    await broker.subscribe('orders', () => {}, { ...manual, id: 'b', credit: 'manual' })
    // A handler that returned is no zombie: its place is free again.
    await broker.publish('orders', 1)
    await clock.advance(100)
    expect(hands.deliveries.map(({ attempt }) => attempt)).toEqual([1, 2])
  })
})

describe('what is given up', () => {
  it('a wait for a position leaves no listener at the signal, however it ends', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    const { signal } = new AbortController()
    const served = await broker.subscribe('orders', () => {})
    const failed = await broker.subscribe('orders', () => {}, { id: 'alice' })
    const waits = [served, failed].map((each) =>
      codeOf(each.waitFor({ partition: 0, offset: 0 }, { signal })),
    )
    failed.pause()
    await settle()
    expect(getEventListeners(signal, 'abort')).toHaveLength(2)
    await broker.publish('orders', 1)
    await broker.idle()
    await failed.unsubscribe()
    expect(await Promise.all(waits)).toEqual(['resolved with undefined', 'CLOSED'])
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('a handler that never returns is not kept by its deadline once its member has left', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    const comeAndGo = async (): Promise<WeakRef<object>> => {
      const payload = { bytes: new Uint8Array(16) }
      const handle = (): Promise<unknown> => new Promise(() => payload.bytes)
      const subscription = await broker.subscribe('orders', handle, { ackTimeoutMs: 1_000_000 })
      await broker.publish('orders', 1)
      await settle()
      await subscription.unsubscribe()
      return new WeakRef(payload)
    }
    const kept = await comeAndGo()
    await settle()
    await collectGarbage()
    expect(kept.deref()).toBeUndefined()
  })

  it('topics that a paused pattern has read and that are deleted are not kept', async () => {
    const { broker, logs, specs, settle } = new World()
    const subscription = await broker.subscribe('orders.*', () => {}, { id: 'alice' })
    subscription.pause()
    const comeAndGo = async (name: string): Promise<WeakRef<object>> => {
      const validate = (value: unknown) => ({ value })
      const schema = { '~standard': { version: 1, vendor: 'ours', validate } } as const
      await broker.createTopic(name, { schema })
      await broker.publish(name, {})
      await settle()
      await broker.deleteTopic(name)
      return new WeakRef(schema)
    }
    const gone: WeakRef<object>[] = []
    for (const i of upTo(5)) gone.push(await comeAndGo(`orders.${i}`))
    await settle()
    logs.clear()
    specs.length = 0
    await collectGarbage()
    expect(gone.map((each) => each.deref())).toEqual(upTo(5).map(() => undefined))
  })
})
