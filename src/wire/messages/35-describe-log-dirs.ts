/** DescribeLogDirs: how much partitions take on the disk. */
import { api } from '../api.ts'
import { array, boolean, int16, int32, int64, string } from '../schema.ts'

export const describeLogDirs = api({
  key: 35,
  name: 'DescribeLogDirs',
  versions: [1, 4],
  flexibleSince: 2,
  request: {
    topics: array({
      topic: string,
      partitions: array(int32),
    }).nullable(),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16.since(3),
    results: array({
      errorCode: int16,
      logDir: string,
      topics: array({
        name: string,
        partitions: array({
          partitionIndex: int32,
          partitionSize: int64,
          offsetLag: int64,
          isFutureKey: boolean,
        }),
      }),
      totalBytes: int64.or(-1).since(4),
      usableBytes: int64.or(-1).since(4),
    }),
  },
})
