import { beforeEach, describe, expect, it } from 'vitest'
import type { RequestInputOf } from '../../../src/wire/api.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { describeProducers } from '../../../src/wire/messages/61-describe-producers.ts'
import { describeTransactions } from '../../../src/wire/messages/65-describe-transactions.ts'
import { listTransactions } from '../../../src/wire/messages/66-list-transactions.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { TransactionalProducer } from '../../support/kafka-transactions.ts'
import { START_MS } from '../../support/record-batches.ts'

let world: DataWorld

/** `app-open` is ongoing for a second, `app-done` has committed, `tool` has done nothing yet. */
beforeEach(async () => {
  world = new DataWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  const [done, open, idle] = ['app-done', 'app-open', 'tool'].map(
    (id) => new TransactionalProducer(world, id),
  )
  for (const producer of [done, open, idle]) await producer?.init()
  await done?.send('orders', ['a'])
  await done?.commit()
  await open?.send('orders', ['b'], 1)
  await open?.send('orders', ['c', 'd'])
  await open?.addOffsets('g')
  await world.clock.advance(1_000)
})

describe('ListTransactions', () => {
  const list = async (filters: Partial<RequestInputOf<typeof listTransactions>> = {}, version = 2) =>
    world.send(listTransactions, version, { stateFilters: [], producerIdFilters: [], ...filters })

  const ids = async (filters: Partial<RequestInputOf<typeof listTransactions>>) => {
    const { errorCode, transactionStates } = await list(filters)
    expect(errorCode).toBe(0)
    return transactionStates.map(({ transactionalId }) => transactionalId)
  }

  it('tells all of them, in every version', async () => {
    for (let version = 0; version <= 2; version++) {
      expect(await list({}, version)).toEqual({
        throttleTimeMs: 0,
        errorCode: 0,
        unknownStateFilters: [],
        transactionStates: [
          { transactionalId: 'app-done', producerId: 1, transactionState: 'CompleteCommit' },
          { transactionalId: 'app-open', producerId: 2, transactionState: 'Ongoing' },
          { transactionalId: 'tool', producerId: 3, transactionState: 'Empty' },
        ],
      })
    }
  })

  it('tells those in a state, and which states nobody knows', async () => {
    const { unknownStateFilters, transactionStates } = await list({
      stateFilters: ['Ongoing', 'Dead', 'Odd'],
    })
    expect(unknownStateFilters).toEqual(['Odd'])
    expect(transactionStates.map(({ transactionalId }) => transactionalId)).toEqual(['app-open'])
  })

  it('tells those of producers, and those that last for long', async () => {
    expect(await ids({ producerIdFilters: [3, 1] })).toEqual(['app-done', 'tool'])
    expect(await ids({ durationFilter: 999, stateFilters: ['Ongoing'] })).toEqual(['app-open'])
    expect(await ids({ durationFilter: 1_000, stateFilters: ['Ongoing'] })).toEqual([])
  })

  it('tells those whose id matches a pattern as a whole', async () => {
    expect(await ids({ transactionalIdPattern: 'app-.*' })).toEqual(['app-done', 'app-open'])
    expect(await ids({ transactionalIdPattern: 'app' })).toEqual([])
    expect(await ids({ transactionalIdPattern: '' })).toHaveLength(3)
    const { errorCode, transactionStates } = await list({ transactionalIdPattern: '(' })
    expect({ errorCode, transactionStates }).toEqual({
      errorCode: KAFKA_ERRORS.INVALID_REGULAR_EXPRESSION,
      transactionStates: [],
    })
  })

  it('tells those that the node coordinates', async () => {
    const several = new DataWorld({ nodes: 2 })
    const { cluster } = several.kafka
    for (const [i, id] of ['a', 'b'].entries()) {
      cluster.moveCoordinator('transaction', id, cluster.nodes[i] as never)
      await new TransactionalProducer(several, id, { sender: { node: i } }).init()
    }
    for (const [node, id] of ['a', 'b'].entries()) {
      const body = { stateFilters: [], producerIdFilters: [] }
      const { transactionStates } = await several.send(listTransactions, 2, body, { node })
      expect(transactionStates.map(({ transactionalId }) => transactionalId)).toEqual([id])
    }
  })
})

describe('DescribeTransactions', () => {
  it('tells what a transaction is at', async () => {
    const { transactionStates } = await world.send(describeTransactions, 0, {
      transactionalIds: ['app-open', 'app-done', 'nobody', ''],
    })
    expect(transactionStates).toEqual([
      {
        errorCode: 0,
        transactionalId: 'app-open',
        transactionState: 'Ongoing',
        transactionTimeoutMs: 60_000,
        transactionStartTimeMs: world.clock.now() - 1_000,
        producerId: 2,
        producerEpoch: 0,
        topics: [{ topic: 'orders', partitions: [1, 0] }],
      },
      expect.objectContaining({ errorCode: 0, transactionState: 'CompleteCommit', topics: [] }),
      expect.objectContaining({ errorCode: KAFKA_ERRORS.TRANSACTIONAL_ID_NOT_FOUND }),
      expect.objectContaining({ errorCode: KAFKA_ERRORS.INVALID_REQUEST }),
    ])
  })

  it('is the business of the coordinator', async () => {
    const several = new DataWorld({ nodes: 2 })
    const { cluster } = several.kafka
    cluster.moveCoordinator('transaction', 't', cluster.nodes[1] as never)
    const body = { transactionalIds: ['t'] }
    const asked = async (node: number) =>
      (await several.send(describeTransactions, 0, body, { node })).transactionStates[0]?.errorCode
    expect(await asked(0)).toBe(KAFKA_ERRORS.NOT_COORDINATOR)
    expect(await asked(1)).toBe(KAFKA_ERRORS.TRANSACTIONAL_ID_NOT_FOUND)
  })
})

describe('DescribeProducers', () => {
  it('tells who produces, and whose transactions are open since when', async () => {
    const topics = [{ name: 'orders', partitionIndexes: [0, 1, 9] }]
    const answer = await world.send(describeProducers, 0, { topics })
    const [zero, one, none] = answer.topics[0]?.partitions ?? []
    expect(zero).toMatchObject({ partitionIndex: 0, errorCode: 0, errorMessage: null })
    expect(zero?.activeProducers).toEqual([
      {
        producerId: 1,
        producerEpoch: 0,
        lastSequence: 0,
        lastTimestamp: START_MS,
        coordinatorEpoch: 0,
        currentTxnStartOffset: -1,
      },
      {
        producerId: 2,
        producerEpoch: 0,
        lastSequence: 1,
        lastTimestamp: START_MS + 1,
        coordinatorEpoch: 0,
        currentTxnStartOffset: 2,
      },
    ])
    expect(one?.activeProducers.map(({ currentTxnStartOffset }) => currentTxnStartOffset)).toEqual([0])
    expect(none).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION, activeProducers: [] })
  })
})
