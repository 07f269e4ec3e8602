/** DeleteGroups: groups without members, with their offsets. */
import { api } from '../api.ts'
import { array, int16, int32, string } from '../schema.ts'

export const deleteGroups = api({
  key: 42,
  name: 'DeleteGroups',
  versions: [0, 2],
  flexibleSince: 2,
  request: {
    groupsNames: array(string),
  },
  response: {
    throttleTimeMs: int32,
    results: array({
      groupId: string,
      errorCode: int16,
    }),
  },
})
