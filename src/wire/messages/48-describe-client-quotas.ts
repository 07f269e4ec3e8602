/** DescribeClientQuotas: quotas of users, clients and addresses (KIP-546). */
import { api } from '../api.ts'
import { array, boolean, float64, int8, int16, int32, string, words } from '../schema.ts'

export const describeClientQuotas = api({
  key: 48,
  name: 'DescribeClientQuotas',
  versions: [0, 1],
  flexibleSince: 1,
  request: {
    components: array({
      entityType: string,
      matchType: int8,
      match: string.nullable(),
    }),
    strict: boolean,
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    entries: array({
      entity: array({
        entityType: string,
        entityName: string.nullable(),
      }),
      values: array({
        key: string,
        value: float64,
      }),
    }).nullable(),
  },
})
