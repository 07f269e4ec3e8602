/** DescribeAcls: access control lists that match a filter. A pattern type of 3 takes names literally. */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const describeAcls = api({
  key: 29,
  name: 'DescribeAcls',
  versions: [1, 3],
  flexibleSince: 2,
  request: {
    resourceTypeFilter: int8,
    resourceNameFilter: string.nullable(),
    patternTypeFilter: int8.or(3),
    principalFilter: string.nullable(),
    hostFilter: string.nullable(),
    operation: int8,
    permissionType: int8,
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    resources: array({
      resourceType: int8,
      resourceName: string,
      patternType: int8.or(3),
      acls: array({
        principal: string,
        host: string,
        operation: int8,
        permissionType: int8,
      }),
    }),
  },
})
