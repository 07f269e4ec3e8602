/** OffsetFetch: the places that a group has committed; several groups from version 8. */
import { api } from '../api.ts'
import { array, boolean, int16, int32, int64, string, uuid } from '../schema.ts'

export const offsetFetch = api({
  key: 9,
  name: 'OffsetFetch',
  versions: [1, 10],
  flexibleSince: 6,
  request: {
    groupId: string.until(7),
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    })
      .nullable(2)
      .until(7),
    groups: array({
      groupId: string,
      memberId: string.nullable().since(9),
      memberEpoch: int32.or(-1).since(9),
      topics: array({
        name: string.until(9),
        topicId: uuid.since(10),
        partitionIndexes: array(int32),
      }).nullable(),
    }).since(8),
    requireStable: boolean.since(7),
  },
  response: {
    throttleTimeMs: int32.since(3),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.or(-1).since(5),
        metadata: string.nullable(),
        errorCode: int16,
      }),
    }).until(7),
    errorCode: int16.since(2).until(7),
    groups: array({
      groupId: string,
      topics: array({
        name: string.until(9),
        topicId: uuid.since(10),
        partitions: array({
          partitionIndex: int32,
          committedOffset: int64,
          committedLeaderEpoch: int32.or(-1),
          metadata: string.nullable(),
          errorCode: int16,
        }),
      }),
      errorCode: int16,
    }).since(8),
  },
})
