import { beforeEach, describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { addPartitionsToTxn } from '../../../src/wire/messages/24-add-partitions-to-txn.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { committedValues, markersOf, TransactionalProducer } from '../../support/kafka-transactions.ts'
import { Hands, watch } from '../../support/world.ts'

let world: DataWorld
let producer: TransactionalProducer

beforeEach(async () => {
  world = new DataWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  producer = new TransactionalProducer(world, 't')
  await producer.init()
})

interface Asked {
  readonly id?: string
  readonly version?: number
  readonly verifyOnly?: boolean
  readonly topics?: readonly { readonly name: string; readonly partitions: readonly number[] }[]
}

async function add({ id = 't', version = 4, verifyOnly = false, topics = ORDERS }: Asked): Promise<string[]> {
  const transactions = [{ transactionalId: id, ...producer.claim, verifyOnly, topics }]
  const answer = await world.send(addPartitionsToTxn, version, { transactions })
  expect(answer.errorCode).toBe(0)
  expect(answer.resultsByTransaction[0]?.transactionalId).toBe(id)
  return (answer.resultsByTransaction[0]?.topicResults ?? []).flatMap(({ name, resultsByPartition }) =>
    resultsByPartition.map(
      ({ partitionIndex, partitionErrorCode }) =>
        `${name}/${partitionIndex} ${kafkaErrorName(partitionErrorCode)}`,
    ),
  )
}

const ORDERS = [{ name: 'orders', partitions: [0, 1] }]

describe('AddPartitionsToTxn', () => {
  it('lets the transaction write to them, in every version', async () => {
    for (let addPartitions = 0; addPartitions <= 5; addPartitions++) {
      const each = new TransactionalProducer(world, `t${addPartitions}`, { versions: { addPartitions } })
      await each.init()
      expect(await each.send('orders', [`v${addPartitions}`])).toBe('NONE')
      expect(await each.commit()).toBe('NONE')
    }
    expect(await committedValues(world, 'orders')).toEqual(['v0', 'v1', 'v2', 'v3', 'v4', 'v5'])
  })

  it('again, changes nothing', async () => {
    expect(await producer.add('orders')).toBe('NONE')
    expect(await producer.add('orders')).toBe('NONE')
    await producer.produce('orders', ['a'])
    await producer.commit()
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/0'])
  })

  it('adds all of them or none: where one is not there, the others are not attempted', async () => {
    const topics = [...ORDERS, { name: 'nowhere', partitions: [0] }, { name: 'orders', partitions: [7] }]
    expect(await add({ topics })).toEqual([
      'orders/0 OPERATION_NOT_ATTEMPTED',
      'orders/1 OPERATION_NOT_ATTEMPTED',
      'nowhere/0 UNKNOWN_TOPIC_OR_PARTITION',
      'orders/7 UNKNOWN_TOPIC_OR_PARTITION',
    ])
    expect(await producer.produce('orders', ['a'])).toBe('TRANSACTION_ABORTABLE')
  })

  it('answers several transactions each for itself', async () => {
    const other = new TransactionalProducer(world, 'other')
    await other.init()
    const transactions = [
      { transactionalId: 't', ...producer.claim, verifyOnly: false, topics: ORDERS },
      { transactionalId: 'other', ...producer.claim, verifyOnly: false, topics: ORDERS },
    ]
    const answer = await world.send(addPartitionsToTxn, 5, { transactions })
    const errors = answer.resultsByTransaction.map(({ topicResults }) =>
      topicResults.flatMap(({ resultsByPartition }) =>
        resultsByPartition.map(({ partitionErrorCode }) => kafkaErrorName(partitionErrorCode)),
      ),
    )
    expect(errors).toEqual([
      ['NONE', 'NONE'],
      ['INVALID_PRODUCER_ID_MAPPING', 'INVALID_PRODUCER_ID_MAPPING'],
    ])
  })

  it('says whether partitions are in the transaction, without adding them', async () => {
    const verifyOnly = true
    await producer.add('orders', 1)
    expect(await add({ verifyOnly, version: 4 })).toEqual(['orders/0 INVALID_TXN_STATE', 'orders/1 NONE'])
    expect(await add({ verifyOnly, version: 5 })).toEqual(['orders/0 TRANSACTION_ABORTABLE', 'orders/1 NONE'])
    expect(await add({ verifyOnly, id: 'nobody' })).toEqual([
      'orders/0 INVALID_PRODUCER_ID_MAPPING',
      'orders/1 INVALID_PRODUCER_ID_MAPPING',
    ])
  })

  it('refuses who is fenced, by the name that the version knows', async () => {
    const newer = new TransactionalProducer(world, 't')
    await newer.init()
    for (let addPartitions = 0; addPartitions <= 5; addPartitions++) {
      const older = new TransactionalProducer(world, 't', { versions: { addPartitions } })
      Object.assign(older, { producerId: producer.producerId, epoch: producer.epoch })
      const expected = addPartitions < 2 ? 'INVALID_PRODUCER_EPOCH' : 'PRODUCER_FENCED'
      expect(await older.add('orders')).toBe(expected)
    }
  })
})

describe('a batch of a transaction', () => {
  it('is refused where its partition was not added, by the name that the version knows', async () => {
    for (const [version, expected] of [
      [3, 'INVALID_TXN_STATE'],
      [10, 'INVALID_TXN_STATE'],
      [11, 'TRANSACTION_ABORTABLE'],
    ] as const) {
      const each = new TransactionalProducer(world, `t${version}`, { versions: { produce: version } })
      await each.init()
      expect(await each.produce('orders', ['a'])).toBe(expected)
    }
    expect(await world.values()).toEqual([])
  })

  it('is refused once the transaction has ended', async () => {
    await producer.send('orders', ['a'])
    await producer.commit()
    expect(await producer.produce('orders', ['late'])).toBe('TRANSACTION_ABORTABLE')
    expect(await committedValues(world, 'orders')).toEqual(['a'])
  })

  it('is refused where it names another transaction, or none', async () => {
    await producer.add('orders')
    const by = { id: producer.producerId, epoch: 0, sequence: 0, transactional: true }
    for (const [transactionalId, expected] of [
      ['other', 'INVALID_PRODUCER_ID_MAPPING'],
      ['', 'INVALID_REQUEST'],
      [null, 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'],
    ] as const) {
      const { errorCode } = await world.produce({ producer: by }, { transactionalId })
      expect(kafkaErrorName(errorCode)).toBe(expected)
    }
  })

  it('adds its partition itself from version 12 on', async () => {
    const v2 = new TransactionalProducer(world, 'v2', { protocol: 'v2' })
    await v2.init()
    expect(await v2.produce('orders', ['a'], 1)).toBe('NONE')
    const { phase, partitions } = world.kafka.transactions.get('v2') ?? {}
    expect({ phase, names: Object.values(partitions ?? {}) }).toEqual({ phase: 'Ongoing', names: ['orders'] })
  })
})

describe('a batch that stands in line for room', () => {
  it('is refused when its transaction has ended meanwhile, so that nothing stays open', async () => {
    await world.broker.createTopic('small', { retention: { records: 4 } })
    const hands = new Hands()
    await world.broker.subscribe('small', hands.take, { group: 'slow', ack: 'manual', concurrency: 4 })
    for (const value of ['a', 'b', 'c', 'd']) await world.broker.publish('small', value)
    await world.settle()
    await producer.add('small')
    const waiting = watch(producer.produce('small', ['late']))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    expect(await producer.abort()).toBe('NONE')
    for (const delivery of hands.deliveries) await delivery.ack()
    await world.settle()
    expect(waiting).toEqual({ state: 'resolved', value: 'TRANSACTION_ABORTABLE' })
    const { marks } = world.kafka.parts.topics.require('small').partitionAt(0).log
    expect(marks.stable).toBe(marks.end)
  })
})
