/** SaslHandshake: which SASL mechanism is to be used. */
import { api } from '../api.ts'
import { array, int16, string } from '../schema.ts'

export const saslHandshake = api({
  key: 17,
  name: 'SaslHandshake',
  versions: [0, 1],
  flexibleSince: Number.POSITIVE_INFINITY,
  request: {
    mechanism: string,
  },
  response: {
    errorCode: int16,
    mechanisms: array(string),
  },
})
