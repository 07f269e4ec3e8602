import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../../src/model/errors.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { listOffsets } from '../../../src/wire/messages/02-list-offsets.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { batchOf, by, START_MS } from '../../support/record-batches.ts'

const NOTHING = { errorCode: KAFKA_ERRORS.NONE, offset: -1, timestamp: -1, leaderEpoch: -1 }

interface Asked {
  readonly version?: number
  readonly isolationLevel?: number
  readonly currentLeaderEpoch?: number
  readonly topic?: string
  readonly partition?: number
}

async function ask(world: DataWorld, timestamp: number, asked: Asked = {}) {
  const { version = 11, isolationLevel = 0, currentLeaderEpoch = -1, topic = 'orders', partition = 0 } = asked
  const { topics } = await world.send(listOffsets, version, {
    replicaId: -1,
    isolationLevel,
    timeoutMs: 1_000,
    topics: [{ name: topic, partitions: [{ partitionIndex: partition, currentLeaderEpoch, timestamp }] }],
  })
  return topics[0]?.partitions[0]
}

/** Offsets 0 to 2 at 10, 30, 20; 3 and 4 in process. */
async function filled(): Promise<DataWorld> {
  const world = new DataWorld()
  await world.broker.createTopic('orders')
  for (const timestamp of [10, 30, 20]) await world.produce({ timestamp })
  await world.broker.publish('orders', 'd')
  await world.broker.publish('orders', 'e')
  return world
}

describe('ListOffsets', () => {
  it('knows the end and the start of a log in every version, without a timestamp', async () => {
    const world = await filled()
    await world.kafka.parts.topics.require('orders').partitionAt(0).trim(1)
    for (let version = 1; version <= 11; version++) {
      const leaderEpoch = version < 4 ? -1 : 0
      const known = { errorCode: KAFKA_ERRORS.NONE, timestamp: -1, leaderEpoch }
      expect(await ask(world, -1, { version })).toMatchObject({ ...known, offset: 5 })
      expect(await ask(world, -2, { version })).toMatchObject({ ...known, offset: 1 })
    }
  })

  it('finds the first record at or after a timestamp', async () => {
    const world = await filled()
    const at = async (timestamp: number): Promise<number[]> => {
      const found = await ask(world, timestamp)
      return [found?.offset as number, found?.timestamp as number]
    }
    expect(await at(0)).toEqual([0, 10])
    expect(await at(10)).toEqual([0, 10])
    expect(await at(11)).toEqual([1, 30])
    expect(await at(30)).toEqual([1, 30])
    expect(await at(31)).toEqual([3, START_MS])
    expect(await at(START_MS)).toEqual([3, START_MS])
  })

  it('answers a timestamp behind all records with neither an offset nor a timestamp', async () => {
    const world = await filled()
    expect(await ask(world, START_MS + 1)).toMatchObject(NOTHING)
    await world.broker.createTopic('empty')
    expect(await ask(world, 0, { topic: 'empty' })).toMatchObject(NOTHING)
    expect(await ask(world, -3, { topic: 'empty' })).toMatchObject(NOTHING)
    expect(await ask(world, -1, { topic: 'empty' })).toMatchObject({ offset: 0 })
  })

  it('finds the record with the newest timestamp', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    for (const timestamp of [10, 30, 20]) await world.produce({ timestamp })
    expect(await ask(world, -3)).toMatchObject({ offset: 1, timestamp: 30, leaderEpoch: 0 })
  })

  it('takes this node for the only tier there is', async () => {
    const world = await filled()
    expect(await ask(world, -4)).toMatchObject({ offset: 0, timestamp: -1, leaderEpoch: 0 })
    expect(await ask(world, -5)).toMatchObject(NOTHING)
    expect(await ask(world, -6)).toMatchObject(NOTHING)
  })

  it.each([
    [-3, 7],
    [-4, 8],
    [-5, 9],
    [-6, 11],
    [-7, 99],
  ])('does not know %i before version %i', async (timestamp, since) => {
    const world = await filled()
    for (let version = 1; version <= 11; version++) {
      const errorCode = version < since ? KAFKA_ERRORS.UNSUPPORTED_VERSION : KAFKA_ERRORS.NONE
      expect(await ask(world, timestamp, { version })).toMatchObject({ errorCode })
    }
  })

  it('ends with read_committed where stable records end', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    await world.produce({ timestamp: 10 })
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    const bytes = batchOf({ timestamp: 20, producer: by(1, 0, 0, true) })
    log.tryAppend({ count: 1, sizeBytes: bytes.length, columns: null, bytes, producer: null })
    const committed = { isolationLevel: 1 }
    expect(await ask(world, -1)).toMatchObject({ offset: 2 })
    expect(await ask(world, -1, committed)).toMatchObject({ offset: 1 })
    expect(await ask(world, 15)).toMatchObject({ offset: 1, timestamp: 20 })
    expect(await ask(world, 15, committed)).toMatchObject(NOTHING)
    expect(await ask(world, -3, committed)).toMatchObject(NOTHING)
    expect(await ask(world, 5, committed)).toMatchObject({ offset: 0, timestamp: 10 })
  })

  it('tells the epoch in which a record was written', async () => {
    const world = await filled()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    // Epoch 0 up to 2, epoch 1 up to 3, then epoch 4.
    ;(log.marks as { epoch: number }).epoch = 4
    log.epochEnd = (epoch) => {
      if (epoch >= 4) return epoch === 4 ? { epoch, endOffset: 5 } : undefined
      if (epoch >= 1) return { epoch: 1, endOffset: 3 }
      return { epoch, endOffset: epoch === 0 ? 2 : 0 }
    }
    const epochs = await Promise.all([-1, -2, 11, 20, 31].map((timestamp) => ask(world, timestamp)))
    expect(epochs.map((each) => [each?.offset, each?.leaderEpoch])).toEqual([
      [5, 4],
      [0, 0],
      [1, 0],
      [1, 0],
      [3, 4],
    ])
    await world.kafka.parts.topics.require('orders').partitionAt(0).trim(2)
    expect(await ask(world, 15)).toMatchObject({ offset: 2, leaderEpoch: 1 })
    expect(await ask(world, -1, { currentLeaderEpoch: 3 })).toMatchObject({
      errorCode: KAFKA_ERRORS.FENCED_LEADER_EPOCH,
    })
    expect(await ask(world, -1, { currentLeaderEpoch: 5 })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNKNOWN_LEADER_EPOCH,
    })
  })

  it('says why an offset could not be looked for', async () => {
    const world = await filled()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    log.offsetAt = () => Promise.reject(new OdradekError('STORAGE_ERROR', 'a disk that fails'))
    expect(await ask(world, 0)).toMatchObject({ errorCode: KAFKA_ERRORS.KAFKA_STORAGE_ERROR, offset: -1 })
    log.offsetAt = async () => {
      await world.broker.deleteTopic('orders')
      throw new OdradekError('CLOSED', 'the log is closed')
    }
    expect(await ask(world, 0)).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION })
  })

  it('says so where a partition is not there, or is asked for twice', async () => {
    const world = await filled()
    const missing = { errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION, offset: -1 }
    expect(await ask(world, -1, { topic: 'missing' })).toMatchObject(missing)
    expect(await ask(world, -1, { partition: 1 })).toMatchObject(missing)
    const twice = [0, 1, 0].map((partitionIndex) => ({ partitionIndex, timestamp: -1 }))
    const { topics } = await world.send(listOffsets, 5, {
      replicaId: -1,
      topics: [{ name: 'orders', partitions: twice }],
    })
    expect(topics[0]?.partitions.map(({ errorCode }) => errorCode)).toEqual([
      KAFKA_ERRORS.INVALID_REQUEST,
      KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
      KAFKA_ERRORS.INVALID_REQUEST,
    ])
  })
})
