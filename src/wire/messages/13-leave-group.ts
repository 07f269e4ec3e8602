/** LeaveGroup: members leave a classic group; several from version 3. */
import { api } from '../api.ts'
import { array, int16, int32, string } from '../schema.ts'

export const leaveGroup = api({
  key: 13,
  name: 'LeaveGroup',
  versions: [0, 5],
  flexibleSince: 4,
  request: {
    groupId: string,
    memberId: string.until(2),
    members: array({
      memberId: string,
      groupInstanceId: string.nullable(),
      reason: string.nullable().since(5),
    }).since(3),
  },
  response: {
    throttleTimeMs: int32.since(1),
    errorCode: int16,
    members: array({
      memberId: string,
      groupInstanceId: string.nullable(),
      errorCode: int16,
    }).since(3),
  },
})
