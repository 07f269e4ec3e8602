/** ListConfigResources: what can have configs, by type; until version 0 only client metrics (KIP-1142). */
import { api } from '../api.ts'
import { array, int8, int16, int32, string } from '../schema.ts'

export const listConfigResources = api({
  key: 74,
  name: 'ListConfigResources',
  versions: [0, 1],
  flexibleSince: 0,
  request: {
    resourceTypes: array(int8).since(1),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    configResources: array({
      resourceName: string,
      resourceType: int8.or(16).since(1),
    }),
  },
})
