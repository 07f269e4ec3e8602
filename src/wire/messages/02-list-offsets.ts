/** ListOffsets: offsets by timestamp, or by −1 the end, −2 the start, −3 the newest timestamp (KIP-734), −4 and −5 the tiers (KIP-405). */
import { api } from '../api.ts'
import { array, int8, int16, int32, int64, string } from '../schema.ts'

export const listOffsets = api({
  key: 2,
  name: 'ListOffsets',
  versions: [1, 11],
  flexibleSince: 6,
  request: {
    replicaId: int32,
    isolationLevel: int8.since(2),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        currentLeaderEpoch: int32.or(-1).since(4),
        timestamp: int64,
      }),
    }),
    timeoutMs: int32.since(10),
  },
  response: {
    throttleTimeMs: int32.since(2),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        timestamp: int64.or(-1),
        offset: int64.or(-1),
        leaderEpoch: int32.or(-1).since(4),
      }),
    }),
  },
})
