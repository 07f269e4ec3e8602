/** SyncGroup: the leader hands in the assignment, everybody else waits for his part. */
import { api } from '../api.ts'
import { array, bytes, int16, int32, string } from '../schema.ts'

export const syncGroup = api({
  key: 14,
  name: 'SyncGroup',
  versions: [0, 5],
  flexibleSince: 4,
  request: {
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: string.nullable().since(3),
    protocolType: string.nullable().since(5),
    protocolName: string.nullable().since(5),
    assignments: array({
      memberId: string,
      assignment: bytes,
    }),
  },
  response: {
    throttleTimeMs: int32.since(1),
    errorCode: int16,
    protocolType: string.nullable().since(5),
    protocolName: string.nullable().since(5),
    assignment: bytes,
  },
})
