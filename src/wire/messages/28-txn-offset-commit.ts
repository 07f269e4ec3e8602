/** TxnOffsetCommit: places of a group that count once the transaction commits. */
import { api } from '../api.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const txnOffsetCommit = api({
  key: 28,
  name: 'TxnOffsetCommit',
  versions: [0, 5],
  flexibleSince: 3,
  request: {
    transactionalId: string,
    groupId: string,
    producerId: int64,
    producerEpoch: int16,
    generationId: int32.or(-1).since(3),
    memberId: string.since(3),
    groupInstanceId: string.nullable().since(3),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.or(-1).since(2),
        committedMetadata: string.nullable(),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
})
