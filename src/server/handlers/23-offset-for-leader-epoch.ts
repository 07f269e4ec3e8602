/**
 * OffsetForLeaderEpoch: where a leader epoch ends, so that a client notices when what it has read is no longer there.
 *
 *   2    the client's own epoch is checked
 *   3    the id of a replica
 *   4    flexible
 *
 * An epoch that nobody has heard of ends nowhere: both answers are −1, and no error.
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { offsetForLeaderEpoch as api } from '../../wire/messages/23-offset-for-leader-epoch.ts'
import { type Handler, handler } from '../handler.ts'
import { epochError, partitionOf } from '../partitions.ts'

export const offsetForLeaderEpoch: Handler = handler(api, ({ topics }, call, world) => ({
  throttleTimeMs: 0,
  topics: topics.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition: index, currentLeaderEpoch, leaderEpoch }) => {
      const partition = partitionOf(world, call, world.parts.topics.get(topic), index)
      const errorCode = typeof partition === 'number' ? partition : epochError(partition, currentLeaderEpoch)
      if (typeof partition === 'number' || errorCode !== KAFKA_ERRORS.NONE) {
        return { errorCode, partition: index, leaderEpoch: -1, endOffset: -1 }
      }
      const end = partition.log.epochEnd(leaderEpoch)
      return {
        errorCode,
        partition: index,
        leaderEpoch: end?.epoch ?? -1,
        endOffset: end?.endOffset ?? -1,
      }
    }),
  })),
}))
