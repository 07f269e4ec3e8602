/** Fetch: batches from partitions, in sessions (KIP-227) from version 7; waits up to `maxWaitMs` for `minBytes`. */
import { api } from '../api.ts'
import { MAX_INT32 } from '../constants.ts'
import { array, bytes, int8, int16, int32, int64, string, struct, uuid } from '../schema.ts'

export const fetch = api({
  key: 1,
  name: 'Fetch',
  versions: [4, 18],
  flexibleSince: 12,
  request: {
    clusterId: string.nullable().tagged(0, 12),
    replicaId: int32.or(-1).until(14),
    replicaState: struct({
      replicaId: int32.or(-1),
      replicaEpoch: int64.or(-1),
    }).tagged(1, 15),
    maxWaitMs: int32,
    minBytes: int32,
    maxBytes: int32.or(MAX_INT32),
    isolationLevel: int8,
    sessionId: int32.since(7),
    sessionEpoch: int32.or(-1).since(7),
    topics: array({
      topic: string.until(12),
      topicId: uuid.since(13),
      partitions: array({
        partition: int32,
        currentLeaderEpoch: int32.or(-1).since(9),
        fetchOffset: int64,
        lastFetchedEpoch: int32.or(-1).since(12),
        logStartOffset: int64.or(-1).since(5),
        partitionMaxBytes: int32,
        replicaDirectoryId: uuid.tagged(0, 17),
        // −1: not known. What is not sent is the largest there is: the replica does not tell (KIP-1166).
        highWatermark: int64.or(2 ** 63).tagged(1, 18),
      }),
    }),
    forgottenTopicsData: array({
      topic: string.until(12),
      topicId: uuid.since(13),
      partitions: array(int32),
    }).since(7),
    rackId: string.since(11),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16.since(7),
    sessionId: int32.since(7),
    responses: array({
      topic: string.until(12),
      topicId: uuid.since(13),
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        highWatermark: int64,
        lastStableOffset: int64.or(-1),
        logStartOffset: int64.or(-1).since(5),
        divergingEpoch: struct({
          epoch: int32.or(-1),
          endOffset: int64.or(-1),
        }).tagged(0, 12),
        currentLeader: struct({
          leaderId: int32.or(-1),
          leaderEpoch: int32.or(-1),
        }).tagged(1, 12),
        snapshotId: struct({
          endOffset: int64.or(-1),
          epoch: int32.or(-1),
        }).tagged(2, 12),
        abortedTransactions: array({
          producerId: int64,
          firstOffset: int64,
        }).nullable(),
        preferredReadReplica: int32.or(-1).since(11),
        records: bytes.nullable(),
      }),
    }),
    nodeEndpoints: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable(),
    }).tagged(0, 16),
  },
})
