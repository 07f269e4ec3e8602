/** Metadata: brokers, and topics with their partitions and leaders. All topics: an empty array in version 0, null from 1. */
import { api } from '../api.ts'
import { UNKNOWN_OPERATIONS } from '../constants.ts'
import { array, boolean, int16, int32, string, uuid } from '../schema.ts'

export const metadata = api({
  key: 3,
  name: 'Metadata',
  versions: [0, 13],
  flexibleSince: 9,
  request: {
    topics: array({
      topicId: uuid.since(10),
      name: string.nullable(10),
    }).nullable(1),
    allowAutoTopicCreation: boolean.or(true).since(4),
    includeClusterAuthorizedOperations: boolean.since(8).until(10),
    includeTopicAuthorizedOperations: boolean.since(8),
  },
  response: {
    throttleTimeMs: int32.since(3),
    brokers: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable().since(1),
    }),
    clusterId: string.nullable().since(2),
    controllerId: int32.or(-1).since(1),
    topics: array({
      errorCode: int16,
      name: string.nullable(12),
      topicId: uuid.since(10),
      isInternal: boolean.since(1),
      partitions: array({
        errorCode: int16,
        partitionIndex: int32,
        leaderId: int32,
        leaderEpoch: int32.or(-1).since(7),
        replicaNodes: array(int32),
        isrNodes: array(int32),
        offlineReplicas: array(int32).since(5),
      }),
      topicAuthorizedOperations: int32.or(UNKNOWN_OPERATIONS).since(8),
    }),
    clusterAuthorizedOperations: int32.or(UNKNOWN_OPERATIONS).since(8).until(10),
    errorCode: int16.since(13),
  },
})
