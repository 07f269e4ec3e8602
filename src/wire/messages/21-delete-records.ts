/** DeleteRecords: moves the start of partitions. */
import { api } from '../api.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const deleteRecords = api({
  key: 21,
  name: 'DeleteRecords',
  versions: [0, 2],
  flexibleSince: 2,
  request: {
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        offset: int64,
      }),
    }),
    timeoutMs: int32,
  },
  response: {
    throttleTimeMs: int32,
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        lowWatermark: int64,
        errorCode: int16,
      }),
    }),
  },
})
