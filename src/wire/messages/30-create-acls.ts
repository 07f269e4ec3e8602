/** CreateAcls: adds entries to access control lists. */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const createAcls = api({
  key: 30,
  name: 'CreateAcls',
  versions: [1, 3],
  flexibleSince: 2,
  request: {
    creations: array({
      resourceType: int8,
      resourceName: string,
      resourcePatternType: int8.or(3),
      principal: string,
      host: string,
      operation: int8,
      permissionType: int8,
    }),
  },
  response: {
    throttleTimeMs: int32,
    results: array({
      errorCode: int16,
      errorMessage: words.nullable(),
    }),
  },
})
