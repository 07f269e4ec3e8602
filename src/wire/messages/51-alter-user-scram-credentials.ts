/** AlterUserScramCredentials: gives users SCRAM credentials, and takes them away (KIP-554). */
import { api } from '../api.ts'
import { array, bytes, int8, int16, int32, string, words } from '../schema.ts'

export const alterUserScramCredentials = api({
  key: 51,
  name: 'AlterUserScramCredentials',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    deletions: array({
      name: string,
      mechanism: int8,
    }),
    upsertions: array({
      name: string,
      mechanism: int8,
      iterations: int32,
      salt: bytes,
      saltedPassword: bytes,
    }),
  },
  response: {
    throttleTimeMs: int32,
    results: array({
      user: string,
      errorCode: int16,
      errorMessage: words.nullable(),
    }),
  },
})
