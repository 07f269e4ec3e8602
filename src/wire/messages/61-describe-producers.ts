/** DescribeProducers: producers that are active in partitions (KIP-664). */
import { api } from '../api.ts'
import { array, int16, int32, int64, string, words } from '../schema.ts'

export const describeProducers = api({
  key: 61,
  name: 'DescribeProducers',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    }),
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: words.nullable(),
        activeProducers: array({
          producerId: int64,
          producerEpoch: int32,
          lastSequence: int32.or(-1),
          lastTimestamp: int64.or(-1),
          coordinatorEpoch: int32,
          currentTxnStartOffset: int64.or(-1),
        }),
      }),
    }),
  },
})
