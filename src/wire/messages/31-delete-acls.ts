/** DeleteAcls: removes entries of access control lists that match filters. */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const deleteAcls = api({
  key: 31,
  name: 'DeleteAcls',
  versions: [1, 3],
  flexibleSince: 2,
  request: {
    filters: array({
      resourceTypeFilter: int8,
      resourceNameFilter: string.nullable(),
      patternTypeFilter: int8.or(3),
      principalFilter: string.nullable(),
      hostFilter: string.nullable(),
      operation: int8,
      permissionType: int8,
    }),
  },
  response: {
    throttleTimeMs: int32,
    filterResults: array({
      errorCode: int16,
      errorMessage: words.nullable(),
      matchingAcls: array({
        errorCode: int16,
        errorMessage: words.nullable(),
        resourceType: int8,
        resourceName: string,
        patternType: int8.or(3),
        principal: string,
        host: string,
        operation: int8,
        permissionType: int8,
      }),
    }),
  },
})
