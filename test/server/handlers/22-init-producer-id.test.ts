import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine } from '../../../src/log/contract.ts'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { initProducerId } from '../../../src/wire/messages/22-init-producer-id.ts'
import { changedEngine } from '../../support/engines.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import {
  committedValues,
  markersOf,
  type Protocol,
  TransactionalProducer,
} from '../../support/kafka-transactions.ts'

const IDEMPOTENT = { transactionalId: null, transactionTimeoutMs: 60_000 }

describe('InitProducerId without a transactional id', () => {
  it('gives every producer an id of its own and epoch 0, in every version', async () => {
    const { send } = new KafkaWorld()
    for (let version = 0; version <= 5; version++) {
      const { errorCode, producerId, producerEpoch } = await send(initProducerId, version, IDEMPOTENT)
      expect({ errorCode, producerId, producerEpoch }).toEqual({
        errorCode: 0,
        producerId: version + 1,
        producerEpoch: 0,
      })
    }
  })

  it('gives a new id also to one that names the id it has', async () => {
    const { send } = new KafkaWorld()
    await send(initProducerId, 5, IDEMPOTENT)
    const again = await send(initProducerId, 5, { ...IDEMPOTENT, producerId: 1, producerEpoch: 3 })
    expect(again).toMatchObject({ errorCode: 0, producerId: 2, producerEpoch: 0 })
  })

  it('lets clients ask again where an id cannot be reserved', async () => {
    const clock = new ManualClock()
    const inner = memoryEngine({ clock })
    const meta = { ...metaOf(inner), put: () => Promise.reject(new Error('no')) }
    const { send, raised } = new KafkaWorld({ engine: changedEngine(inner, { meta }), clock })
    expect(await send(initProducerId, 5, IDEMPOTENT)).toMatchObject({
      errorCode: KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS,
      producerId: -1,
    })
    expect(raised('error')).toHaveLength(1)
  })

  it('refuses an id without an epoch, and an epoch without an id', async () => {
    const { send } = new KafkaWorld()
    const refused = { errorCode: KAFKA_ERRORS.INVALID_REQUEST, producerId: -1, producerEpoch: -1 }
    expect(await send(initProducerId, 3, { ...IDEMPOTENT, producerId: 4 })).toMatchObject(refused)
    expect(await send(initProducerId, 3, { ...IDEMPOTENT, producerEpoch: 4 })).toMatchObject(refused)
  })
})

function metaOf({ meta }: Engine): Engine['meta'] {
  return {
    get: (key) => meta.get(key),
    scan: (prefix) => meta.scan(prefix),
    put: (changes) => meta.put(changes),
  }
}

describe('InitProducerId with a transactional id', () => {
  let world: DataWorld

  beforeEach(async () => {
    world = new DataWorld()
    await world.broker.createTopic('orders')
  })

  const producerOf = (protocol: Protocol = 'v1', id = 't') =>
    new TransactionalProducer(world, id, { protocol })

  it('keeps the id and raises the epoch, in every version', async () => {
    const producer = producerOf()
    for (let version = 0; version <= 5; version++) {
      expect(await producer.init({}, version)).toBe('NONE')
      expect(producer.claim).toEqual({ producerId: 1, producerEpoch: version })
    }
    const other = producerOf('v1', 'other')
    await other.init()
    expect(other.claim).toEqual({ producerId: 2, producerEpoch: 0 })
  })

  it('refuses an empty transactional id', async () => {
    expect(await producerOf('v1', '').init()).toBe('INVALID_REQUEST')
  })

  it('takes timeouts of 1 ms to 15 minutes', async () => {
    for (const [timeoutMs, expected] of [
      [1, 'NONE'],
      [900_000, 'NONE'],
      [900_001, 'INVALID_TRANSACTION_TIMEOUT'],
      [0, 'INVALID_TRANSACTION_TIMEOUT'],
      [-1, 'INVALID_TRANSACTION_TIMEOUT'],
    ] as const) {
      expect(await new TransactionalProducer(world, 't', { timeoutMs }).init()).toBe(expected)
    }
  })

  it.each(['v1', 'v2'] as const)(
    'aborts what is in flight, and fences the older producer (%s)',
    async (protocol) => {
      const older = producerOf(protocol)
      await older.init()
      await older.send('orders', ['a'])
      const newer = producerOf(protocol)
      expect(await newer.init()).toBe('NONE')
      expect(newer.claim).toEqual({ producerId: 1, producerEpoch: 1 })
      expect(await markersOf(world, 'orders')).toEqual(['abort 1/1'])
      expect(await older.produce('orders', ['b'])).toBe('INVALID_PRODUCER_EPOCH')
      expect(await older.add('orders')).toBe('PRODUCER_FENCED')
      expect(await older.addOffsets('g')).toBe('PRODUCER_FENCED')
      expect(await older.commitOffset('g', 'orders', 0)).toBe('INVALID_PRODUCER_EPOCH')
      expect(await older.commit()).toBe('PRODUCER_FENCED')
      expect(await older.init({ producerId: 1, producerEpoch: 0 })).toBe('PRODUCER_FENCED')
      expect(await older.init({ producerId: 1, producerEpoch: 0 }, 3)).toBe('INVALID_PRODUCER_EPOCH')
      expect(await newer.send('orders', ['c'])).toBe('NONE')
      expect(await newer.commit()).toBe('NONE')
      expect(await committedValues(world, 'orders')).toEqual(['c'])
    },
  )

  it('leaves a transaction alone when somebody who was fenced asks to go on', async () => {
    const [older, newer] = [producerOf(), producerOf()]
    await older.init()
    await newer.init()
    await newer.send('orders', ['a'])
    expect(await older.init({ producerId: 1, producerEpoch: 0 })).toBe('PRODUCER_FENCED')
    expect(await newer.commit()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['a'])
  })

  it('goes on at the next epoch for a producer that says what it is, also when it asks twice', async () => {
    const producer = producerOf()
    await producer.init()
    const given = { producerId: 1, producerEpoch: 0 }
    expect(await producer.init(given)).toBe('NONE')
    expect(producer.epoch).toBe(1)
    expect(await producer.init(given)).toBe('NONE')
    expect(producer.epoch).toBe(1)
    expect(await producer.init({ producerId: 1, producerEpoch: 1 })).toBe('NONE')
    expect(producer.epoch).toBe(2)
    expect(await producer.init(given)).toBe('PRODUCER_FENCED')
    expect(await producer.init({ producerId: 7, producerEpoch: 2 })).toBe('PRODUCER_FENCED')
  })

  it('aborts the transaction of a producer that says what it is, and lets it go on', async () => {
    const producer = producerOf()
    await producer.init()
    await producer.send('orders', ['a'])
    expect(await producer.init({ producerId: 1, producerEpoch: 0 })).toBe('NONE')
    expect(producer.epoch).toBe(1)
    expect(await producer.init({ producerId: 1, producerEpoch: 0 })).toBe('NONE')
    expect(producer.epoch).toBe(1)
    expect(await committedValues(world, 'orders')).toEqual([])
  })

  it('takes id 0 and epoch 0 for nothing said, since clients do that have neither', async () => {
    for (let epoch = 0; epoch < 3; epoch++) {
      const producer = producerOf()
      expect(await producer.init({ producerId: 0, producerEpoch: 0 })).toBe('NONE')
      expect(producer.claim).toEqual({ producerId: 1, producerEpoch: epoch })
      expect(await producer.send('orders', [`${epoch}`])).toBe('NONE')
      expect(await producer.commit()).toBe('NONE')
    }
    expect(await committedValues(world, 'orders')).toEqual(['0', '1', '2'])
  })

  it('gives a new id to one that it does not know, whatever it says', async () => {
    const producer = producerOf()
    expect(await producer.init({ producerId: 99, producerEpoch: 9 })).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 1, producerEpoch: 0 })
  })

  it('goes on with another id when the epochs are used up: one is left to fence with', async () => {
    const producer = producerOf()
    for (let epoch = 0; epoch <= 32_766; epoch++) {
      expect(await world.kafka.transactions.init('t', 60_000, null)).toEqual({ producerId: 1, epoch })
    }
    Object.assign(producer, { producerId: 1, epoch: 32_766 })
    await producer.send('orders', ['a'])
    const given = { producerId: 1, producerEpoch: 32_766 }
    expect(await producer.init(given)).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 2, producerEpoch: 0 })
    expect(await markersOf(world, 'orders')).toEqual(['abort 1/32767'])
    expect(await producer.init(given)).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 2, producerEpoch: 0 })
  })

  it('gives each of many that ask at once an epoch of its own', async () => {
    const producers = Array.from({ length: 20 }, () => producerOf())
    expect(await Promise.all(producers.map((each) => each.init()))).toEqual(Array(20).fill('NONE'))
    expect(producers.map(({ producerId }) => producerId)).toEqual(Array(20).fill(1))
    expect(new Set(producers.map(({ epoch }) => epoch)).size).toBe(20)
  })
})
