/** ListPartitionReassignments: replicas that are being moved. */
import { api } from '../api.ts'
import { array, int16, int32, string, words } from '../schema.ts'

export const listPartitionReassignments = api({
  key: 46,
  name: 'ListPartitionReassignments',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    timeoutMs: int32.or(60_000),
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: words.nullable(),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        replicas: array(int32),
        addingReplicas: array(int32),
        removingReplicas: array(int32),
      }),
    }),
  },
})
