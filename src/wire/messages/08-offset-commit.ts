/** OffsetCommit: a group's places in partitions, by a member of its generation, or by anybody where it has no members. */
import { api } from '../api.ts'
import { array, int16, int32, int64, string, uuid } from '../schema.ts'

export const offsetCommit = api({
  key: 8,
  name: 'OffsetCommit',
  versions: [2, 10],
  flexibleSince: 8,
  request: {
    groupId: string,
    generationIdOrMemberEpoch: int32.or(-1),
    memberId: string,
    groupInstanceId: string.nullable().since(7),
    retentionTimeMs: int64.or(-1).until(4),
    topics: array({
      name: string.until(9),
      topicId: uuid.since(10),
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.or(-1).since(6),
        committedMetadata: string.nullable(),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.since(3),
    topics: array({
      name: string.until(9),
      topicId: uuid.since(10),
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
})
