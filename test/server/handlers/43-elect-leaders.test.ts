import { describe, expect, it } from 'vitest'
import { kafkaErrorName } from '../../../src/wire/errors.ts'
import { electLeaders } from '../../../src/wire/messages/43-elect-leaders.ts'
import { KafkaWorld } from '../../support/kafka.ts'

describe('ElectLeaders', () => {
  it('says that none is needed, and knows which partitions there are, in every version', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    const topicPartitions = [
      { topic: 't', partitions: [0, 1] },
      { topic: 'missing', partitions: [0] },
    ]
    for (let version = 0; version <= 2; version++) {
      const response = await world.send(electLeaders, version, { electionType: 1, topicPartitions })
      expect(response.errorCode).toBe(0)
      const told = response.replicaElectionResults.map(({ topic, partitionResult }) => [
        topic,
        ...partitionResult.map(({ partitionId, errorCode }) => `${partitionId} ${kafkaErrorName(errorCode)}`),
      ])
      expect(told).toEqual([
        ['t', '0 ELECTION_NOT_NEEDED', '1 UNKNOWN_TOPIC_OR_PARTITION'],
        ['missing', '0 UNKNOWN_TOPIC_OR_PARTITION'],
      ])
    }
  })

  it('elects nothing where all partitions are meant', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('t')
    const response = await world.send(electLeaders, 2, { topicPartitions: null })
    expect(response).toMatchObject({ errorCode: 0, replicaElectionResults: [] })
  })

  it('refuses an election of an unknown type', async () => {
    const response = await new KafkaWorld().send(electLeaders, 2, { electionType: 2, topicPartitions: null })
    expect(kafkaErrorName(response.errorCode)).toBe('INVALID_REQUEST')
  })
})
