/** AlterConfigs: replaces all configs of a resource. */
import { api } from '../api.ts'
import { array, boolean, int8, int16, int32, string, words } from '../schema.ts'

export const alterConfigs = api({
  key: 33,
  name: 'AlterConfigs',
  versions: [0, 2],
  flexibleSince: 2,
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        value: string.nullable(),
      }),
    }),
    validateOnly: boolean,
  },
  response: {
    throttleTimeMs: int32,
    responses: array({
      errorCode: int16,
      errorMessage: words.nullable(),
      resourceType: int8,
      resourceName: string,
    }),
  },
})
