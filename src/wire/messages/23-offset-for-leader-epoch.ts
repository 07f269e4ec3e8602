/** OffsetForLeaderEpoch: where a leader epoch ends, so that a consumer notices truncation (KIP-320). */
import { api } from '../api.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const offsetForLeaderEpoch = api({
  key: 23,
  name: 'OffsetForLeaderEpoch',
  versions: [2, 4],
  flexibleSince: 4,
  request: {
    replicaId: int32.or(-2).since(3),
    topics: array({
      topic: string,
      partitions: array({
        partition: int32,
        currentLeaderEpoch: int32.or(-1),
        leaderEpoch: int32,
      }),
    }),
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      topic: string,
      partitions: array({
        errorCode: int16,
        partition: int32,
        leaderEpoch: int32.or(-1),
        endOffset: int64.or(-1),
      }),
    }),
  },
})
