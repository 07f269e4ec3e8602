/** SaslAuthenticate: one step of the SASL exchange. */
import { api } from '../api.ts'
import { bytes, int16, int64, words } from '../schema.ts'

export const saslAuthenticate = api({
  key: 36,
  name: 'SaslAuthenticate',
  versions: [0, 2],
  flexibleSince: 2,
  request: {
    authBytes: bytes,
  },
  response: {
    errorCode: int16,
    errorMessage: words.nullable(),
    authBytes: bytes,
    sessionLifetimeMs: int64.since(1),
  },
})
