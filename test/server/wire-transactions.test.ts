/** What readers in this process make of the transactions of wire clients: committed isolation, always. */
import { describe, expect, it } from 'vitest'
import { DataWorld } from '../support/kafka-data.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { type Protocol, TransactionalProducer } from '../support/kafka-transactions.ts'

function textOf(value: unknown): unknown {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}

interface Place {
  readonly world: DataWorld
  /** Lets everything happen that can. */
  settle(): Promise<void>
}

async function onMemory(): Promise<Place> {
  const world = new DataWorld()
  await world.broker.createTopic('orders')
  return { world, settle: () => world.settle() }
}

async function onFiles(): Promise<Place> {
  const { world, clock } = await KafkaMachine.open()
  await world.broker.createTopic('orders')
  return { world, settle: () => clock.settle() }
}

async function producerOf({ world }: Place, id: string, protocol: Protocol): Promise<TransactionalProducer> {
  const producer = new TransactionalProducer(world, id, { protocol, timeoutMs: 10_000 })
  expect(await producer.init()).toBe('NONE')
  return producer
}

const PLACES = { memory: onMemory, files: onFiles }

describe.each([
  ['memory', 'v1'],
  ['memory', 'v2'],
  ['files', 'v1'],
  ['files', 'v2'],
] as const)('a transaction over the wire, seen in process (%s, %s)', (engine, protocol) => {
  const place = PLACES[engine]

  it('is delivered when it commits, and nothing of one that is aborted ever is', async () => {
    const here = await place()
    const { world } = here
    const seen: unknown[] = []
    const subscription = await world.broker.subscribe(
      'orders',
      ({ value }) => void seen.push(textOf(value)),
      {
        group: 'g',
      },
    )
    const producer = await producerOf(here, 't', protocol)
    for (const [value, commit] of [
      ['a', true],
      ['b', false],
      ['c', true],
      ['d', false],
    ] as const) {
      const before = [...seen]
      await producer.send('orders', [value, `${value}2`])
      await here.settle()
      expect(seen).toEqual(before)
      await producer.end(commit)
      await here.settle()
      expect(seen).toEqual(commit ? [...before, value, `${value}2`] : before)
    }
    // What was aborted was not handed out, so not acked either; and it is behind the reader.
    const [described] = world.broker.describe('orders').readers
    const [cursor] = described?.cursors ?? []
    expect(cursor).toMatchObject({ lag: 0, committed: world.broker.describe('orders').partitions[0]?.end })
    const [metrics] = world.broker.metrics().readers
    expect(metrics).toMatchObject({ counters: { delivered: 4, acked: 4 } })
    await subscription.close()
  })

  it('holds what is published behind it, until it ends', async () => {
    const here = await place()
    const { world } = here
    const seen: unknown[] = []
    await world.broker.subscribe('orders', ({ value }) => void seen.push(textOf(value)))
    const producer = await producerOf(here, 't', protocol)
    await world.broker.publish('orders', 'before')
    await producer.send('orders', ['open'])
    await world.broker.publish('orders', 'behind')
    await here.settle()
    expect(seen).toEqual(['before'])
    await producer.commit()
    await here.settle()
    expect(seen).toEqual(['before', 'open', 'behind'])
  })

  it('holds it until its timeout at the longest', async () => {
    const here = await place()
    const { world } = here
    const seen: unknown[] = []
    await world.broker.subscribe('orders', ({ value }) => void seen.push(textOf(value)))
    const producer = await producerOf(here, 't', protocol)
    await producer.send('orders', ['open'])
    await world.broker.publish('orders', 'behind')
    await world.clock.advance(9_999)
    expect(seen).toEqual([])
    await world.clock.advance(1)
    await here.settle()
    expect(seen).toEqual(['behind'])
  })

  it('is left out by whoever begins in the middle of it, and by a read without a reader', async () => {
    const here = await place()
    const { world } = here
    const producer = await producerOf(here, 't', protocol)
    const other = await producerOf(here, 'other', protocol)
    await producer.send('orders', ['a1', 'a2'])
    await other.send('orders', ['b1'])
    await producer.send('orders', ['a3'])
    await other.send('orders', ['b2'])
    await producer.abort()
    await other.commit()
    const seen: unknown[] = []
    await world.broker.subscribe('orders', ({ value }) => void seen.push(textOf(value)), { from: 1 })
    await here.settle()
    expect(seen).toEqual(['b1', 'b2'])
    const read = await world.broker.read('orders')
    expect(read.map(({ value }) => textOf(value))).toEqual(['b1', 'b2'])
  })
})

describe('a group in process on files', () => {
  it('goes on behind what was aborted, after a restart', async () => {
    const machine = await KafkaMachine.open()
    await machine.world.broker.createTopic('orders')
    const seen: unknown[] = []
    const subscribe = () =>
      machine.world.broker.subscribe('orders', ({ value }) => void seen.push(textOf(value)), { group: 'g' })
    await subscribe()
    const producer = new TransactionalProducer(machine.world, 't')
    await producer.init()
    await producer.send('orders', ['a'])
    await producer.abort()
    await producer.send('orders', ['b'])
    await producer.commit()
    await producer.send('orders', ['open'])
    await machine.clock.advance(1_000)
    expect(seen).toEqual(['b'])
    await machine.kill()
    await subscribe()
    await machine.world.broker.publish('orders', 'c')
    await machine.clock.settle()
    expect(seen).toEqual(['b'])
    await new TransactionalProducer(machine.world, 't').init()
    await machine.clock.settle()
    expect(seen).toEqual(['b', 'c'])
  })
})

describe('a transaction in process, seen over the wire', () => {
  it('is there as a whole, and needs no marker', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { partitions: 2 })
    await world.broker.transaction((tx) => {
      tx.publish('orders', 'a', { partition: 0 })
      tx.publish('orders', 'b', { partition: 1 })
    })
    expect(await world.values({ isolationLevel: 1 })).toEqual(['a'])
    expect(await world.values({ isolationLevel: 1, partition: 1 })).toEqual(['b'])
  })
})
