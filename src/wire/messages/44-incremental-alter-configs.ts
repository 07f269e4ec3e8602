/** IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single configs (KIP-339). */
import { api } from '../api.ts'
import { array, boolean, int8, int16, int32, string, words } from '../schema.ts'

export const incrementalAlterConfigs = api({
  key: 44,
  name: 'IncrementalAlterConfigs',
  versions: [0, 1],
  flexibleSince: 1,
  request: {
    resources: array({
      resourceType: int8,
      resourceName: string,
      configs: array({
        name: string,
        configOperation: int8,
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
