/** ConsumerGroupHeartbeat: a member of a consumer group (KIP-848) joins, stays, acknowledges its assignment, leaves. */
import { api } from '../api.ts'
import { array, int16, int32, string, struct, uuid, words } from '../schema.ts'

export const consumerGroupHeartbeat = api({
  key: 68,
  name: 'ConsumerGroupHeartbeat',
  versions: [0, 1],
  flexibleSince: 0,
  request: {
    groupId: string,
    memberId: string,
    memberEpoch: int32,
    instanceId: string.nullable(),
    rackId: string.nullable(),
    rebalanceTimeoutMs: int32.or(-1),
    subscribedTopicNames: array(string).nullable(),
    subscribedTopicRegex: string.nullable().since(1),
    serverAssignor: string.nullable(),
    topicPartitions: array({
      topicId: uuid,
      partitions: array(int32),
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    memberId: string.nullable(),
    memberEpoch: int32,
    heartbeatIntervalMs: int32,
    assignment: struct({
      topicPartitions: array({
        topicId: uuid,
        partitions: array(int32),
      }),
    }).nullable(),
  },
})
