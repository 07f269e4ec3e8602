/** What is no signal, no options, no name and no number is refused at the door, and has changed nothing. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { codeOf, codeThrown, Hands, upTo, World } from '../support/world.ts'

const signal = {} as AbortSignal

describe('a signal that is none', () => {
  it('takes no place among those who wait for room', async () => {
    const { broker } = new World()
    await broker.createTopic('orders', { retention: { records: 1 }, maxWaiting: { records: 2 } })
    await broker.subscribe('orders', () => {}, { id: 'alice', ack: 'manual' })
    await broker.publish('orders', 0)
    for (const _ of upTo(3)) {
      expect(await codeOf(broker.publish('orders', 1, { signal }))).toBe('INVALID_ARGUMENT')
      expect(await codeOf(broker.publishAll('orders', [{ value: 1 }], { signal }))).toBe('INVALID_ARGUMENT')
      const transaction = broker.transaction((tx) => tx.publish('orders', 1), { signal })
      expect(await codeOf(transaction)).toBe('INVALID_ARGUMENT')
    }
    expect(broker.topic('orders').pressure).toBe(1)
    expect(broker.describe('orders').partitions[0]?.waiting).toBe(0)
  })

  it('makes no member, no stream and no wait', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    await broker.createTopic('dlq.orders')
    expect(await codeOf(broker.subscribe('orders', () => {}, { group: 'g', signal }))).toBe(
      'INVALID_ARGUMENT',
    )
    expect(broker.listGroups()).toEqual([])
    expect(codeThrown(() => broker.stream('orders', { signal }))).toBe('INVALID_ARGUMENT')
    const subscription = await broker.subscribe('orders', () => {})
    const calls = [
      () => subscription.waitFor({ partition: 0, offset: 0 }, { signal }),
      () => subscription.drained({ signal }),
      () => subscription.close({ signal }),
      () => broker.redrive('dlq.orders', { signal }),
      () => broker.close({ signal }),
    ]
    for (const call of calls) expect(await codeOf(call())).toBe('INVALID_ARGUMENT')
    expect(subscription.ended).toBe(false)
  })
})

describe('an option that there is not', () => {
  it('is refused by whatever publishes, which names those there are, and has published nothing', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders')
    const message = 'unknown publish option "kye"; there are key, headers, partition, id, signal'
    const wrong = { kye: 'anna' } as never
    await expect(topic.publish(1, wrong)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message })
    await expect(broker.publish('orders', 1, wrong)).rejects.toThrow(message)
    expect(() => topic.tryPublish(1, wrong)).toThrow(message)
    await expect(broker.transaction((tx) => tx.publish('orders', 1, wrong))).rejects.toThrow(message)
    const entries = [{ value: 1 }, { value: 2, kye: 'anna' } as never]
    await expect(topic.publishAll(entries)).rejects.toThrow(
      'unknown publishAll option "kye"; there are value, key, headers, partition, id',
    )
    expect(() => topic.tryPublish(1, Object.create({ kye: 'anna' }))).toThrow(message)
    expect(topic.describe().partitions[0]?.end).toBe(0)
  })

  it('is refused by the publish of a handler, which is how its delivery fails', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    const codes: string[] = []
    await broker.subscribe('orders', async (d) => {
      codes.push(await codeOf(d.publish('orders', 2, { kye: 'anna' } as never)))
    })
    await broker.publish('orders', 1)
    await settle()
    expect(codes).toEqual(['INVALID_ARGUMENT'])
  })

  it('is none where options are left out', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('orders', { partitions: 2 })
    await topic.publish(1, undefined)
    await topic.publish(2, null as never)
    await topic.publish(3, {})
    const entry = { value: 3, key: 'anna' }
    await topic.publish(entry.value, entry)
    await topic.publishAll([{ value: 4, key: 'anna', headers: {}, partition: 1, id: 'four' }])
    expect(topic.describe().partitions.reduce((sum, { end }) => sum + end, 0)).toBe(5)
  })
})

describe('headers that somebody made himself', () => {
  it('are checked like any others, and copied', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const headers = new RecordHeaders([['a', 5 as never]])
    expect(await codeOf(broker.publish('orders', 1, { headers }))).toBe('INVALID_VALUE')
    const entries: [string, string][] = [['a', '1']]
    await broker.publish('orders', 1, { headers: new RecordHeaders(entries) })
    entries[0] = ['b', '2']
    const [record] = await broker.read('orders')
    expect([...(record?.headers ?? [])]).toEqual([['a', '1']])
  })

  it('have no code of their own in the middle of a delivery', async () => {
    class Hostile extends RecordHeaders {
      override get(): never {
        throw new Error('nobody may ask')
      }
    }
    const { broker } = new World()
    await broker.createTopic('orders')
    const seen: unknown[] = []
    await broker.subscribe('orders', (d) => void seen.push(d.headers.get('a')))
    await broker.publish('orders', 1, { headers: new Hostile([['a', '0']]) })
    await broker.publish('orders', 2, { headers: Hostile.from({ a: '1' }) })
    await broker.idle()
    expect(seen).toEqual(['0', '1'])
  })
})

describe('options that are none', () => {
  const nothing = null as never

  it.each<[string, (world: World) => Promise<unknown>]>([
    ['subscribe', ({ broker }) => broker.subscribe('orders', () => {}, nothing)],
    ['transaction', ({ broker }) => broker.transaction(() => {}, nothing)],
    ['redrive', ({ broker }) => broker.redrive('orders', nothing)],
    ['close', ({ broker }) => broker.close(nothing)],
    ['close, misspelt', ({ broker }) => broker.close({ drainMS: 5 } as never)],
    ['transaction, misspelt', ({ broker }) => broker.transaction(() => {}, { timeout: 5 } as never)],
    ['redrive, misspelt', ({ broker }) => broker.redrive('orders', { to: 'all' } as never)],
  ])('are refused by %s', async (_, call) => {
    const world = new World()
    await world.broker.createTopic('orders')
    expect(await codeOf(call(world))).toBe('INVALID_ARGUMENT')
  })

  it('a topic that has no name is an unknown one', async () => {
    const { broker } = new World()
    expect(await codeOf(broker.subscribe(undefined as never, () => {}))).toBe('UNKNOWN_TOPIC')
  })
})

describe('a name for dead letters', () => {
  it.each(['my letters', 'a/b', '*', '..'])(
    'must be one that a topic may have, or no letter would ever land: %s',
    async (deadLetter) => {
      const { broker } = new World()
      await broker.createTopic('orders')
      expect(await codeOf(broker.subscribe('orders', () => {}, { deadLetter }))).toBe('INVALID_TOPIC')
    },
  )

  it('is not that of the topic itself', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const subscribed = broker.subscribe('orders', () => {}, { deadLetter: 'orders' })
    expect(await codeOf(subscribed)).toBe('INVALID_ARGUMENT')
  })
})

it.each([
  ['weight', { group: 'g', weight: Number.POSITIVE_INFINITY }],
  ['retry.delayMs', { retry: { delayMs: Number.POSITIVE_INFINITY } }],
])('%s without end is refused', async (_, options) => {
  const { broker } = new World()
  await broker.createTopic('orders')
  expect(await codeOf(broker.subscribe('orders', () => {}, options))).toBe('INVALID_ARGUMENT')
})

it('pressure is raised where bytes are without bound', async () => {
  const { broker, raised, settle } = new World()
  await broker.createTopic('orders', { retention: { records: 10, bytes: Number.POSITIVE_INFINITY } })
  await broker.subscribe('orders', () => {}, { id: 'alice', ack: 'manual' })
  for (const i of upTo(10)) await broker.publish('orders', i)
  await settle()
  expect(raised('pressure')).toEqual([{ topic: 'orders', pressure: 0.8 }])
})

describe('what a handler asks for', () => {
  async function first(): Promise<{ world: World; hands: Hands; delivery: Delivery }> {
    const world = new World()
    await world.broker.createTopic('orders')
    const hands = new Hands()
    const options = { ack: 'manual', ackTimeoutMs: 1_000, retry: { delayMs: 0 } } as const
    await world.broker.subscribe('orders', hands.take, { id: 'alice', ...options })
    await world.broker.publish('orders', 1)
    await world.settle()
    return { world, hands, delivery: hands.last }
  }

  it.each([
    ['text', '5'],
    ['a BigInt', 5n],
  ])('a delay that is %s is refused, and nothing has happened', async (_, delayMs) => {
    const { world, delivery } = await first()
    expect(codeThrown(() => delivery.nack({ delayMs } as never))).toBe('INVALID_ARGUMENT')
    expect(world.broker.describe('orders').readers[0]?.counters.nacked).toBe(0)
    expect(delivery.ack()).toBe(true)
  })

  it('an extension that is no number has no effect', async () => {
    const { world, hands, delivery } = await first()
    expect(delivery.extend('60000' as never)).toBe(false)
    await world.clock.advance(1_000)
    expect(hands.deliveries).toHaveLength(2)
  })

  it('an option that settles when it is read was first', async () => {
    const { world, delivery } = await first()
    const options = {
      get reason() {
        delivery.ack()
        return 'too late'
      },
    }
    expect(delivery.nack(options)).toBe(false)
    await world.broker.idle()
    expect(world.broker.describe('orders').readers[0]?.counters).toMatchObject({ acked: 1, nacked: 0 })
    expect(world.broker.describe('orders').readers[0]?.cursors[0]).toMatchObject({ committed: 1 })
  })

  it('a reason that is no text becomes one', async () => {
    const { world, delivery } = await first()
    delivery.reject({ toString: () => 'broken' } as never)
    await world.broker.idle()
    expect(world.raised('deadLetter')[0]?.reason).toBe('broken')
  })
})

it('once the broker is closed, what does something is CLOSED, what only looks is not', async () => {
  const { broker } = new World()
  const topic = await broker.createTopic('orders')
  await broker.createTopic('dlq.orders')
  await broker.close()
  expect(await codeOf(broker.read('orders'))).toBe('CLOSED')
  expect(await codeOf(broker.deleteTopic('orders'))).toBe('CLOSED')
  expect(await codeOf(broker.redrive('dlq.orders'))).toBe('CLOSED')
  expect(await codeOf(broker.resetOffset('orders', 'alice', 'earliest'))).toBe('CLOSED')
  expect(await codeOf(broker.unsubscribe('orders', 'alice'))).toBe('CLOSED')
  expect(broker.describe('orders').name).toBe('orders')
  expect(topic.describe().name).toBe('orders')
})
