import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../../src/model/errors.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { deleteRecords } from '../../../src/wire/messages/21-delete-records.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { Hands } from '../../support/world.ts'

async function filled(): Promise<DataWorld> {
  const world = new DataWorld()
  await world.broker.createTopic('orders')
  for (const value of ['a', 'b', 'c']) await world.produce({ values: [value] })
  return world
}

async function deleteBelow(
  world: DataWorld,
  offset: number,
  version = 2,
  partitionIndex = 0,
  name = 'orders',
) {
  const { topics } = await world.send(deleteRecords, version, {
    timeoutMs: 1_000,
    topics: [{ name, partitions: [{ partitionIndex, offset }] }],
  })
  return topics[0]?.partitions[0]
}

describe('DeleteRecords', () => {
  it('moves the start of a log, and never back', async () => {
    const world = await filled()
    for (const version of [0, 1, 2]) {
      expect(await deleteBelow(world, version, version)).toEqual({
        partitionIndex: 0,
        lowWatermark: version,
        errorCode: KAFKA_ERRORS.NONE,
      })
    }
    expect(await deleteBelow(world, 1)).toMatchObject({ lowWatermark: 2, errorCode: KAFKA_ERRORS.NONE })
    expect(await world.values({ offset: 2 })).toEqual(['c'])
  })

  it('takes -1 for the high watermark', async () => {
    const world = await filled()
    expect(await deleteBelow(world, -1)).toMatchObject({ lowWatermark: 3, errorCode: KAFKA_ERRORS.NONE })
    await world.produce({ values: ['d'] })
    expect(await world.values({ offset: 3 })).toEqual(['d'])
  })

  it('refuses offsets outside of the log', async () => {
    const world = await filled()
    for (const offset of [-2, 4]) {
      expect(await deleteBelow(world, offset)).toMatchObject({
        lowWatermark: -1,
        errorCode: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE,
      })
    }
  })

  it('says so where there is no such partition', async () => {
    const world = await filled()
    const missing = { lowWatermark: -1, errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION }
    expect(await deleteBelow(world, 0, 2, 1)).toMatchObject(missing)
    expect(await deleteBelow(world, 0, 2, 0, 'missing')).toMatchObject(missing)
  })

  it('says so where the disk fails', async () => {
    const world = await filled()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    log.trim = () => Promise.reject(new OdradekError('OUTCOME_UNKNOWN', 'a disk that fails'))
    expect(await deleteBelow(world, 1)).toMatchObject({
      lowWatermark: -1,
      errorCode: KAFKA_ERRORS.KAFKA_STORAGE_ERROR,
    })
  })

  it('leaves to a reader that holds the log what it has not settled', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const hands = new Hands()
    await world.broker.subscribe('orders', hands.take, { id: 'slow', ack: 'manual' })
    for (const value of ['a', 'b', 'c']) await world.produce({ values: [value] })
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(await deleteBelow(world, 3)).toMatchObject({
      lowWatermark: 1,
      errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT,
    })
    hands.last.ack()
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(await deleteBelow(world, 3)).toMatchObject({ lowWatermark: 3, errorCode: KAFKA_ERRORS.NONE })
  })
})
