/** DescribeTopicPartitions: topics with partitions, a page at a time (KIP-966). */
import { api } from '../api.ts'
import { UNKNOWN_OPERATIONS } from '../constants.ts'
import { array, boolean, int16, int32, string, struct, uuid } from '../schema.ts'

export const describeTopicPartitions = api({
  key: 75,
  name: 'DescribeTopicPartitions',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    topics: array({
      name: string,
    }),
    responsePartitionLimit: int32.or(2000),
    cursor: struct({
      topicName: string,
      partitionIndex: int32,
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      errorCode: int16,
      name: string.nullable(),
      topicId: uuid,
      isInternal: boolean,
      partitions: array({
        errorCode: int16,
        partitionIndex: int32,
        leaderId: int32,
        leaderEpoch: int32.or(-1),
        replicaNodes: array(int32),
        isrNodes: array(int32),
        eligibleLeaderReplicas: array(int32).nullable(),
        lastKnownElr: array(int32).nullable(),
        offlineReplicas: array(int32),
      }),
      topicAuthorizedOperations: int32.or(UNKNOWN_OPERATIONS),
    }),
    nextCursor: struct({
      topicName: string,
      partitionIndex: int32,
    }).nullable(),
  },
})
