/** ConsumerGroupDescribe: consumer groups (KIP-848), with members, current and target assignments. */
import { api } from '../api.ts'
import { UNKNOWN_OPERATIONS } from '../constants.ts'
import { array, boolean, int8, int16, int32, string, struct, uuid, words } from '../schema.ts'

export const consumerGroupDescribe = api({
  key: 69,
  name: 'ConsumerGroupDescribe',
  versions: [0, 1],
  flexibleSince: 0,
  request: {
    groupIds: array(string),
    includeAuthorizedOperations: boolean,
  },
  response: {
    throttleTimeMs: int32,
    groups: array({
      errorCode: int16,
      errorMessage: words.nullable(),
      groupId: string,
      groupState: string,
      groupEpoch: int32,
      assignmentEpoch: int32,
      assignorName: string,
      members: array({
        memberId: string,
        instanceId: string.nullable(),
        rackId: string.nullable(),
        memberEpoch: int32,
        clientId: string,
        clientHost: string,
        subscribedTopicNames: array(string),
        subscribedTopicRegex: string.nullable(),
        assignment: struct({
          topicPartitions: array({
            topicId: uuid,
            topicName: string,
            partitions: array(int32),
          }),
        }),
        targetAssignment: struct({
          topicPartitions: array({
            topicId: uuid,
            topicName: string,
            partitions: array(int32),
          }),
        }),
        memberType: int8.or(-1).since(1),
      }),
      authorizedOperations: int32.or(UNKNOWN_OPERATIONS),
    }),
  },
})
