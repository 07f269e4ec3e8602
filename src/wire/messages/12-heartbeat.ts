/** Heartbeat: a member of a classic group says that it is alive, and hears whether the group rebalances. */
import { api } from '../api.ts'
import { int16, int32, string } from '../schema.ts'

export const heartbeat = api({
  key: 12,
  name: 'Heartbeat',
  versions: [0, 4],
  flexibleSince: 4,
  request: {
    groupId: string,
    generationId: int32,
    memberId: string,
    groupInstanceId: string.nullable().since(3),
  },
  response: {
    throttleTimeMs: int32.since(1),
    errorCode: int16,
  },
})
