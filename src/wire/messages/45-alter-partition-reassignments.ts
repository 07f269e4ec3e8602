/** AlterPartitionReassignments: moves replicas; here there is one of each. */
import { api } from '../api.ts'
import { array, boolean, int16, int32, string, words } from '../schema.ts'

export const alterPartitionReassignments = api({
  key: 45,
  name: 'AlterPartitionReassignments',
  versions: [0, 1],
  flexibleSince: 0,
  request: {
    timeoutMs: int32.or(60_000),
    allowReplicationFactorChange: boolean.or(true).since(1),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        replicas: array(int32).nullable(),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32,
    allowReplicationFactorChange: boolean.or(true).since(1),
    errorCode: int16,
    errorMessage: words.nullable(),
    responses: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: words.nullable(),
      }),
    }),
  },
})
