/** AlterClientQuotas: sets and removes quotas (KIP-546). */
import { api } from '../api.ts'
import { array, boolean, float64, int16, int32, string, words } from '../schema.ts'

export const alterClientQuotas = api({
  key: 49,
  name: 'AlterClientQuotas',
  versions: [0, 1],
  flexibleSince: 1,
  request: {
    entries: array({
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
      ops: array({
        key: string,
        value: float64,
        remove: boolean,
      }),
    }),
    validateOnly: boolean,
  },
  response: {
    throttleTimeMs: int32,
    entries: array({
      errorCode: int16,
      errorMessage: words.nullable(),
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
    }),
  },
})
