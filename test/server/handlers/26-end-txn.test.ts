import { beforeEach, describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { listOffsets } from '../../../src/wire/messages/02-list-offsets.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import {
  committedValues,
  markersOf,
  type Protocol,
  TransactionalProducer,
} from '../../support/kafka-transactions.ts'

let world: DataWorld

beforeEach(async () => {
  world = new DataWorld()
  await world.broker.createTopic('orders', { partitions: 2 })
  await world.broker.createTopic('audit')
})

async function started(protocol: Protocol, id = 't'): Promise<TransactionalProducer> {
  const producer = new TransactionalProducer(world, id, { protocol })
  expect(await producer.init()).toBe('NONE')
  return producer
}

describe.each(['v1', 'v2'] as const)('EndTxn, transactions %s', (protocol) => {
  it('shows what was committed in all partitions, and nothing before', async () => {
    const producer = await started(protocol)
    expect(await producer.send('orders', ['a', 'b'])).toBe('NONE')
    expect(await producer.send('orders', ['c'], 1)).toBe('NONE')
    expect(await producer.send('audit', ['d'])).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual([])
    expect(await producer.commit()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['a', 'b'])
    expect(await committedValues(world, 'orders', 1)).toEqual(['c'])
    expect(await committedValues(world, 'audit')).toEqual(['d'])
  })

  it('hides what was aborted, between what was committed', async () => {
    const producer = await started(protocol)
    for (const [value, commit] of [
      ['a', true],
      ['b', false],
      ['c', true],
    ] as const) {
      await producer.send('orders', [value])
      expect(await producer.end(commit)).toBe('NONE')
    }
    expect(await committedValues(world, 'orders')).toEqual(['a', 'c'])
    expect(await world.values()).toEqual(['a', 'b', 'c'])
  })

  it('retried, succeeds; in the other direction it is INVALID_TXN_STATE', async () => {
    for (const commit of [true, false]) {
      const producer = await started(protocol, `t-${commit}`)
      await producer.send('orders', ['a'])
      const { claim } = producer
      const first = await producer.ended(commit, claim)
      expect(first.errorCode).toBe(0)
      expect(await producer.ended(commit, claim)).toEqual(first)
      expect((await producer.ended(!commit, claim)).errorCode).toBe(KAFKA_ERRORS.INVALID_TXN_STATE)
    }
    expect((await markersOf(world, 'orders')).length).toBe(2)
  })

  it('commits no transaction that nobody began', async () => {
    const producer = await started(protocol)
    expect(await producer.commit()).toBe('INVALID_TXN_STATE')
  })

  it('refuses a transactional id that nobody has, another id, and older and newer epochs', async () => {
    const producer = await started(protocol)
    await producer.send('orders', ['a'])
    const { producerId, producerEpoch } = producer.claim
    const stranger = new TransactionalProducer(world, 'stranger', { protocol })
    expect(await stranger.commit()).toBe('INVALID_PRODUCER_ID_MAPPING')
    const end = (claim: typeof producer.claim, version?: number) => producer.end(true, claim, version)
    expect(await end({ producerId: producerId + 1, producerEpoch })).toBe('INVALID_PRODUCER_ID_MAPPING')
    expect(await end({ producerId, producerEpoch: producerEpoch + 1 })).toBe('PRODUCER_FENCED')
    expect(await end({ producerId, producerEpoch: producerEpoch - 1 })).toBe('PRODUCER_FENCED')
    expect(await end({ producerId, producerEpoch: producerEpoch + 1 }, 1)).toBe('INVALID_PRODUCER_EPOCH')
    expect(await producer.commit()).toBe('NONE')
  })

  it('takes an empty transactional id for a mistake', async () => {
    const producer = new TransactionalProducer(world, '', { protocol })
    expect(await producer.commit()).toBe('INVALID_REQUEST')
  })

  it('leaves out topics that were deleted meanwhile', async () => {
    const producer = await started(protocol)
    await producer.send('orders', ['a'])
    await producer.send('audit', ['b'])
    await world.broker.deleteTopic('audit')
    await world.broker.createTopic('audit')
    expect(await producer.commit()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['a'])
    expect(await markersOf(world, 'audit')).toEqual([])
  })
})

describe('EndTxn before version 5', () => {
  it('leaves the epoch as it is, so sequences go on', async () => {
    const producer = await started('v1')
    for (let version = 0; version <= 4; version++) {
      expect(await producer.send('orders', ['a', 'b'])).toBe('NONE')
      expect(await producer.end(version % 2 === 0, undefined, version)).toBe('NONE')
      expect(producer.epoch).toBe(0)
    }
    expect(await markersOf(world, 'orders')).toEqual([
      'commit 1/0',
      'abort 1/0',
      'commit 1/0',
      'abort 1/0',
      'commit 1/0',
    ])
  })

  it('aborts no transaction that nobody began', async () => {
    const producer = await started('v1')
    expect(await producer.abort()).toBe('INVALID_TXN_STATE')
  })

  it('goes with AddPartitionsToTxn of version 5', async () => {
    const producer = new TransactionalProducer(world, 't', { protocol: 'v1', versions: { addPartitions: 5 } })
    await producer.init()
    expect(await producer.send('orders', ['a'])).toBe('NONE')
    expect(await producer.commit()).toBe('NONE')
    expect(await producer.send('orders', ['b'])).toBe('NONE')
    expect(await producer.abort()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['a'])
  })

  it('does not end what the epoch before has ended by version 5', async () => {
    const producer = await started('v2')
    await producer.send('orders', ['a'])
    const { claim } = producer
    await producer.commit()
    expect(await producer.end(true, claim, 4)).toBe('PRODUCER_FENCED')
  })
})

describe('EndTxn from version 5 on', () => {
  it('raises the epoch with each transaction, and says so', async () => {
    const producer = await started('v2')
    for (let epoch = 1; epoch <= 3; epoch++) {
      expect(await producer.send('orders', [`${epoch}`])).toBe('NONE')
      expect(await producer.end(epoch !== 2)).toBe('NONE')
      expect(producer.claim).toEqual({ producerId: 1, producerEpoch: epoch })
    }
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/1', 'abort 1/2', 'commit 1/3'])
    expect(await committedValues(world, 'orders')).toEqual(['1', '3'])
  })

  it('fences batches of a transaction that it has ended', async () => {
    const producer = await started('v2')
    await producer.send('orders', ['a'])
    const late = new TransactionalProducer(world, 't', { protocol: 'v2' })
    Object.assign(late, { producerId: producer.producerId, epoch: producer.epoch })
    await producer.abort()
    expect(await late.produce('orders', ['late'])).toBe('INVALID_PRODUCER_EPOCH')
    expect(await late.produce('orders', ['late'], 1)).toBe('INVALID_PRODUCER_EPOCH')
  })

  it('aborts where no batch has arrived, since the producer cannot know', async () => {
    const producer = await started('v2')
    expect(await producer.abort()).toBe('NONE')
    expect(producer.epoch).toBe(1)
    await producer.send('orders', ['a'])
    await producer.commit()
    expect(await producer.abort()).toBe('NONE')
    expect(producer.epoch).toBe(3)
    expect(await producer.abort()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['a'])
  })

  it('gives another id when the epochs are used up, also when it is retried', async () => {
    const producer = await started('v2')
    await exhaust(producer)
    await producer.send('orders', ['a'])
    const { claim } = producer
    const answer = { errorCode: 0, producerId: 2, producerEpoch: 0 }
    expect(await producer.ended(true, claim)).toMatchObject(answer)
    expect(await producer.ended(true, claim)).toMatchObject(answer)
    expect((await producer.ended(false, claim)).errorCode).toBe(KAFKA_ERRORS.INVALID_TXN_STATE)
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/32767'])
    expect(await committedValues(world, 'orders')).toEqual(['a'])
  })
})

/** Takes all epochs but the last one that a producer is given. */
async function exhaust(producer: TransactionalProducer): Promise<void> {
  while (producer.epoch < 32_766) {
    const given = { producerId: producer.producerId, epoch: producer.epoch }
    const next = await world.kafka.transactions.init(producer.id, 60_000, given)
    if (typeof next === 'string') throw new Error(next)
    producer.epoch = next.epoch
  }
}

describe('the last stable offset', () => {
  it('stays before a transaction that is open, whatever others commit behind it', async () => {
    const [open, other] = [await started('v1', 'open'), await started('v2', 'other')]
    await open.send('orders', ['a'])
    await other.send('orders', ['b'])
    await other.commit()
    expect(await committedValues(world, 'orders')).toEqual([])
    const body = {
      replicaId: -1,
      isolationLevel: 1,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    }
    const latest = async () => {
      const answer = await world.send(listOffsets, 4, body)
      return answer.topics[0]?.partitions[0]?.offset
    }
    expect(await latest()).toBe(0)
    await open.commit()
    expect(await latest()).toBe(4)
    expect(await committedValues(world, 'orders')).toEqual(['a', 'b'])
  })
})

describe('the coordinator of a transactional id', () => {
  it('is one node: others answer NOT_COORDINATOR', async () => {
    const several = new DataWorld({ nodes: 3 })
    await several.broker.createTopic('orders')
    const topic = several.kafka.parts.topics.require('orders')
    const right = several.kafka.cluster.coordinatorOf('transaction', 't').id
    several.kafka.cluster.moveLeader(topic.id, 0, several.kafka.cluster.nodes[0] as never)
    for (const node of [0, 1, 2]) {
      const producer = new TransactionalProducer(several, 't', { sender: { node } })
      const expected = node === right ? 'NONE' : 'NOT_COORDINATOR'
      expect(await producer.init()).toBe(expected)
      if (node !== right) Object.assign(producer, { producerId: 0, epoch: 0 })
      expect(await producer.add('orders')).toBe(expected)
      expect(await producer.addOffsets('g')).toBe(expected)
      expect(await producer.abort()).toBe(expected)
    }
  })
})
