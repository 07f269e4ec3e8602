/** DescribeUserScramCredentials: which users have SCRAM credentials, and of which mechanisms (KIP-554). */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const describeUserScramCredentials = api({
  key: 50,
  name: 'DescribeUserScramCredentials',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    users: array({
      name: string,
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    results: array({
      user: string,
      errorCode: int16,
      errorMessage: words.nullable(),
      credentialInfos: array({
        mechanism: int8,
        iterations: int32,
      }),
    }),
  },
})
