/**
 * Produce: batches for partitions. Those before version 3 carried message sets of the old format, which nobody speaks
 * here; their frames can be read and answered all the same, to say so.
 */
import { api } from '../api.ts'
import { array, bytes, int16, int32, int64, string, struct, uuid, words } from '../schema.ts'

export const produce = api({
  key: 0,
  name: 'Produce',
  versions: [3, 13],
  flexibleSince: 9,
  request: {
    transactionalId: string.nullable().since(3),
    acks: int16,
    timeoutMs: int32,
    topicData: array({
      name: string.until(12),
      topicId: uuid.since(13),
      partitionData: array({
        index: int32,
        records: bytes.nullable(),
      }),
    }),
  },
  response: {
    responses: array({
      name: string.until(12),
      topicId: uuid.since(13),
      partitionResponses: array({
        index: int32,
        errorCode: int16,
        baseOffset: int64,
        logAppendTimeMs: int64.or(-1).since(2),
        logStartOffset: int64.or(-1).since(5),
        recordErrors: array({
          batchIndex: int32,
          batchIndexErrorMessage: words.nullable(),
        }).since(8),
        errorMessage: words.nullable().since(8),
        currentLeader: struct({
          leaderId: int32.or(-1),
          leaderEpoch: int32.or(-1),
        }).tagged(0, 10),
      }),
    }),
    throttleTimeMs: int32.since(1),
    nodeEndpoints: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable(),
    }).tagged(0, 10),
  },
})
