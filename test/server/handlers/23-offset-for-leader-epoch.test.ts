import { describe, expect, it } from 'vitest'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { offsetForLeaderEpoch } from '../../../src/wire/messages/23-offset-for-leader-epoch.ts'
import { DataWorld } from '../../support/kafka-data.ts'

async function ask(
  world: DataWorld,
  leaderEpoch: number,
  currentLeaderEpoch = -1,
  version = 4,
  partition = 0,
) {
  const { topics } = await world.send(offsetForLeaderEpoch, version, {
    replicaId: -1,
    topics: [{ topic: 'orders', partitions: [{ partition, currentLeaderEpoch, leaderEpoch }] }],
  })
  return topics[0]?.partitions[0]
}

describe('OffsetForLeaderEpoch', () => {
  it('answers where an epoch ends: the current one at the end of the log', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    await world.produce({ values: ['a', 'b'] })
    for (const version of [2, 3, 4]) {
      expect(await ask(world, 0, 0, version)).toEqual({
        errorCode: KAFKA_ERRORS.NONE,
        partition: 0,
        leaderEpoch: 0,
        endOffset: 2,
      })
    }
  })

  it('answers -1 for an epoch that nobody has heard of', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    expect(await ask(world, 1)).toMatchObject({
      errorCode: KAFKA_ERRORS.NONE,
      leaderEpoch: -1,
      endOffset: -1,
    })
  })

  it('checks the epoch of the client, and whether there is such a partition', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const failure = { leaderEpoch: -1, endOffset: -1 }
    expect(await ask(world, 0, 1)).toMatchObject({
      ...failure,
      errorCode: KAFKA_ERRORS.UNKNOWN_LEADER_EPOCH,
    })
    expect(await ask(world, 0, -1, 4, 7)).toMatchObject({
      ...failure,
      errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
    })
  })
})
