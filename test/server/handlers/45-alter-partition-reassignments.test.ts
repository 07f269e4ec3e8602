import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { alterPartitionReassignments } from '../../../src/wire/messages/45-alter-partition-reassignments.ts'
import { listPartitionReassignments } from '../../../src/wire/messages/46-list-partition-reassignments.ts'
import { KafkaWorld } from '../../support/kafka.ts'

async function reassign(
  world: KafkaWorld,
  name: string,
  index: number,
  replicas: readonly number[] | null,
  version = 1,
) {
  const topics = [{ name, partitions: [{ partitionIndex: index, replicas }] }]
  const { errorCode, responses } = await world.send(alterPartitionReassignments, version, { topics })
  expect(errorCode).toBe(0)
  expect(responses).toMatchObject([{ name, partitions: [{ partitionIndex: index }] }])
  return kafkaErrorName(responses[0]?.partitions[0]?.errorCode ?? -1)
}

describe('AlterPartitionReassignments', () => {
  it('takes it for done that a partition stays where it is, in every version', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    await world.broker.createTopic('t')
    const leader = world.kafka.cluster.leaderOf(world.broker.describe('t').id, 0).id
    for (let version = 0; version <= 1; version++) {
      expect(await reassign(world, 't', 0, [leader], version)).toBe('NONE')
    }
    expect(await reassign(world, 't', 0, [1 - leader])).toBe('INVALID_REPLICA_ASSIGNMENT')
    expect(await reassign(world, 't', 0, [leader, 1 - leader])).toBe('INVALID_REPLICA_ASSIGNMENT')
  })

  it.each([
    ['to nobody', []],
    ['to a stranger', [7]],
    ['to one broker twice', [0, 0]],
  ])('refuses a move %s', async (_, replicas) => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    expect(await reassign(world, 't', 0, replicas)).toBe('INVALID_REPLICA_ASSIGNMENT')
  })

  it('has no move that could be called off, and knows which partitions there are', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    expect(await reassign(world, 't', 0, null)).toBe('NO_REASSIGNMENT_IN_PROGRESS')
    expect(await reassign(world, 't', 1, null)).toBe('UNKNOWN_TOPIC_OR_PARTITION')
    expect(await reassign(world, 'missing', 0, [0])).toBe('UNKNOWN_TOPIC_OR_PARTITION')
  })
})

describe('ListPartitionReassignments', () => {
  it('answers that nothing is on its way', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    for (const topics of [null, [{ name: 't', partitionIndexes: [0] }]]) {
      const response = await world.send(listPartitionReassignments, 0, { topics })
      expect(response).toMatchObject({ errorCode: 0, errorMessage: null, topics: [] })
    }
  })
})
