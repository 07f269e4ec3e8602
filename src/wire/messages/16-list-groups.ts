/** ListGroups: groups, by state (KIP-518) and type (KIP-848). */
import { api } from '../api.ts'
import { array, int16, int32, string } from '../schema.ts'

export const listGroups = api({
  key: 16,
  name: 'ListGroups',
  versions: [0, 5],
  flexibleSince: 3,
  request: {
    statesFilter: array(string).since(4),
    typesFilter: array(string).since(5),
  },
  response: {
    throttleTimeMs: int32.since(1),
    errorCode: int16,
    groups: array({
      groupId: string,
      protocolType: string,
      groupState: string.since(4),
      groupType: string.since(5),
    }),
  },
})
