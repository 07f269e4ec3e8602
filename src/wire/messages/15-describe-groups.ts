/** DescribeGroups: classic groups, with members, their subscriptions and assignments. */
import { api } from '../api.ts'
import { UNKNOWN_OPERATIONS } from '../constants.ts'
import { array, boolean, bytes, int16, int32, string, words } from '../schema.ts'

export const describeGroups = api({
  key: 15,
  name: 'DescribeGroups',
  versions: [0, 6],
  flexibleSince: 5,
  request: {
    groups: array(string),
    includeAuthorizedOperations: boolean.since(3),
  },
  response: {
    throttleTimeMs: int32.since(1),
    groups: array({
      errorCode: int16,
      errorMessage: words.nullable().since(6),
      groupId: string,
      groupState: string,
      protocolType: string,
      protocolData: string,
      members: array({
        memberId: string,
        groupInstanceId: string.nullable().since(4),
        clientId: string,
        clientHost: string,
        memberMetadata: bytes,
        memberAssignment: bytes,
      }),
      authorizedOperations: int32.or(UNKNOWN_OPERATIONS).since(3),
    }),
  },
})
