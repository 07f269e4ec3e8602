/** JoinGroup: a member enters a classic group; answered once all have, with everybody's subscriptions for the leader. */
import { api } from '../api.ts'
import { array, boolean, bytes, int16, int32, string } from '../schema.ts'

export const joinGroup = api({
  key: 11,
  name: 'JoinGroup',
  versions: [0, 9],
  flexibleSince: 6,
  request: {
    groupId: string,
    sessionTimeoutMs: int32,
    rebalanceTimeoutMs: int32.or(-1).since(1),
    memberId: string,
    groupInstanceId: string.nullable().since(5),
    protocolType: string,
    protocols: array({
      name: string,
      metadata: bytes,
    }),
    reason: string.nullable().since(8),
  },
  response: {
    throttleTimeMs: int32.since(2),
    errorCode: int16,
    generationId: int32.or(-1),
    protocolType: string.nullable().since(7),
    protocolName: string.nullable(7),
    leader: string,
    skipAssignment: boolean.since(9),
    memberId: string,
    members: array({
      memberId: string,
      groupInstanceId: string.nullable().since(5),
      metadata: bytes,
    }),
  },
})
