/** ElectLeaders: elects leaders for partitions; here there is one replica of each. */
import { api } from '../api.ts'
import { array, int8, int16, int32, string, words } from '../schema.ts'

export const electLeaders = api({
  key: 43,
  name: 'ElectLeaders',
  versions: [0, 2],
  flexibleSince: 2,
  request: {
    electionType: int8.since(1),
    topicPartitions: array({
      topic: string,
      partitions: array(int32),
    }).nullable(),
    timeoutMs: int32.or(60_000),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16.since(1),
    replicaElectionResults: array({
      topic: string,
      partitionResult: array({
        partitionId: int32,
        errorCode: int16,
        errorMessage: words.nullable(),
      }),
    }),
  },
})
