/** OffsetDelete: forgets a group's places in partitions that it does not read. */
import { api } from '../api.ts'
import { array, int16, int32, string } from '../schema.ts'

export const offsetDelete = api({
  key: 47,
  name: 'OffsetDelete',
  versions: [0, 0],
  flexibleSince: Number.POSITIVE_INFINITY,
  request: {
    groupId: string,
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
      }),
    }),
  },
  response: {
    errorCode: int16,
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
