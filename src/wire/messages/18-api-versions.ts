/** ApiVersions: what the broker can do. Its response has never a flexible header (KIP-511). */
import { api } from '../api.ts'
import { array, boolean, int16, int32, int64, string } from '../schema.ts'

export const apiVersions = api({
  key: 18,
  name: 'ApiVersions',
  versions: [0, 4],
  flexibleSince: 3,
  request: {
    clientSoftwareName: string.since(3),
    clientSoftwareVersion: string.since(3),
  },
  response: {
    errorCode: int16,
    apiKeys: array({
      apiKey: int16,
      minVersion: int16,
      maxVersion: int16,
    }),
    throttleTimeMs: int32.since(1),
    supportedFeatures: array({
      name: string,
      minVersion: int16,
      maxVersion: int16,
    }).tagged(0, 3),
    finalizedFeaturesEpoch: int64.or(-1).tagged(1, 3),
    finalizedFeatures: array({
      name: string,
      maxVersionLevel: int16,
      minVersionLevel: int16,
    }).tagged(2, 3),
    zkMigrationReady: boolean.tagged(3, 3),
  },
})
