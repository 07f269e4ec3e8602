/**
 * ApiVersions: what this broker can do, taken from the handlers that it has, so that the two cannot differ.
 *
 * A version that is not known is answered too, in version 0, with an error and the versions of ApiVersions itself, so
 * that the client can ask again (KIP-511). From version 3 on the client says what it is, and is refused if that is no
 * name. Before version 4, a client cannot read a feature whose least version is 0: it is left out.
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { apiVersions } from '../../wire/messages/18-api-versions.ts'
import { featuresOf } from '../features.ts'
import { type Handler, handler } from '../handler.ts'

type Response = ResponseInputOf<typeof apiVersions>

const SINCE_SOFTWARE = 3
const SINCE_ZERO_FEATURES = 4
/** Any that is not −1: there is one set of features, which does not change. */
const FEATURES_EPOCH = 0
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/

/** `advertised`: the versions to ask again in. */
export function unsupportedApiVersions({ advertised: [minVersion, maxVersion] }: Handler): Response {
  return {
    errorCode: KAFKA_ERRORS.UNSUPPORTED_VERSION,
    apiKeys: [{ apiKey: apiVersions.key, minVersion, maxVersion }],
  }
}
const INVALID: Response = { errorCode: KAFKA_ERRORS.INVALID_REQUEST, apiKeys: [] }

/** `handlers`: all there are, this one among them. */
export function apiVersionsOf(handlers: () => readonly Handler[]): Handler {
  return handler(apiVersions, (request, { version }) => {
    if (version >= SINCE_SOFTWARE) {
      const { clientSoftwareName, clientSoftwareVersion } = request
      if (!SOFTWARE.test(clientSoftwareName) || !SOFTWARE.test(clientSoftwareVersion)) return INVALID
    }
    return capabilities(handlers(), version)
  })
}

function capabilities(handlers: readonly Handler[], version: number): Response {
  const features = featuresOf(handlers)
  return {
    errorCode: KAFKA_ERRORS.NONE,
    apiKeys: handlers.map(({ api, advertised: [minVersion, maxVersion] }) => {
      return { apiKey: api.key, minVersion, maxVersion }
    }),
    supportedFeatures: features
      .filter(({ minVersion }) => version >= SINCE_ZERO_FEATURES || minVersion > 0)
      .map(({ name, minVersion, maxVersion }) => ({ name, minVersion, maxVersion })),
    finalizedFeaturesEpoch: FEATURES_EPOCH,
    finalizedFeatures: features.map(({ name, maxVersion }) => {
      return { name, maxVersionLevel: maxVersion, minVersionLevel: maxVersion }
    }),
  }
}
