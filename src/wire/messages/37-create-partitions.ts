/** CreatePartitions: adds partitions to topics. */
import { api } from '../api.ts'
import { array, boolean, int16, int32, string, words } from '../schema.ts'

export const createPartitions = api({
  key: 37,
  name: 'CreatePartitions',
  versions: [0, 3],
  flexibleSince: 2,
  request: {
    topics: array({
      name: string,
      count: int32,
      assignments: array({
        brokerIds: array(int32),
      }).nullable(),
    }),
    timeoutMs: int32,
    validateOnly: boolean,
  },
  response: {
    throttleTimeMs: int32,
    results: array({
      name: string,
      errorCode: int16,
      errorMessage: words.nullable(),
    }),
  },
})
