/**
 * ElectLeaders: a new leader for partitions. Each has one replica, which leads it, so there is never anything to elect.
 *
 *   0    preferred leaders
 *   1    preferred or unclean; an error of the whole request
 *   2    flexible
 *
 * Who asks for all partitions is told of those that had an election: none.
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { electLeaders as api } from '../../wire/messages/43-elect-leaders.ts'
import { type Outcome, refused } from '../admin-errors.ts'
import { type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

const UNCLEAN = 1

export const electLeaders: Handler = handler(api, ({ electionType, topicPartitions }, _call, world) => {
  if (electionType < 0 || electionType > UNCLEAN) {
    return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.INVALID_REQUEST, replicaElectionResults: [] }
  }
  const replicaElectionResults = (topicPartitions ?? []).map(({ topic, partitions }) => ({
    topic,
    partitionResult: partitions.map((partitionId) => {
      return { partitionId, ...outcomeFor(topic, partitionId, world) }
    }),
  }))
  return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.NONE, replicaElectionResults }
})

function outcomeFor(topic: string, partition: number, { parts: { topics } }: World): Outcome {
  if (topics.get(topic)?.partitions[partition] !== undefined) {
    return refused('ELECTION_NOT_NEEDED', 'the one replica leads')
  }
  return refused('UNKNOWN_TOPIC_OR_PARTITION', `there is no partition ${partition} of "${topic}"`)
}
