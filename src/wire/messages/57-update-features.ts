/** UpdateFeatures: finalized features of the cluster (KIP-584). */
import { api } from '../api.ts'
import { array, boolean, int8, int16, int32, string, words } from '../schema.ts'

export const updateFeatures = api({
  key: 57,
  name: 'UpdateFeatures',
  versions: [0, 2],
  flexibleSince: 0,
  request: {
    timeoutMs: int32.or(60_000),
    featureUpdates: array({
      feature: string,
      maxVersionLevel: int16,
      allowDowngrade: boolean.until(0),
      upgradeType: int8.or(1).since(1),
    }),
    validateOnly: boolean.since(1),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    results: array({
      feature: string,
      errorCode: int16,
      errorMessage: words.nullable(),
    }).until(1),
  },
})
