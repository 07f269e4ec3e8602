/** AddPartitionsToTxn: partitions that a transaction is about to write to; several transactions from version 4, for brokers. */
import { api } from '../api.ts'
import { array, boolean, int16, int32, int64, string } from '../schema.ts'

export const addPartitionsToTxn = api({
  key: 24,
  name: 'AddPartitionsToTxn',
  versions: [0, 5],
  flexibleSince: 3,
  request: {
    transactions: array({
      transactionalId: string,
      producerId: int64,
      producerEpoch: int16,
      verifyOnly: boolean,
      topics: array({
        name: string,
        partitions: array(int32),
      }),
    }).since(4),
    v3AndBelowTransactionalId: string.until(3),
    v3AndBelowProducerId: int64.until(3),
    v3AndBelowProducerEpoch: int16.until(3),
    v3AndBelowTopics: array({
      name: string,
      partitions: array(int32),
    }).until(3),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16.since(4),
    resultsByTransaction: array({
      transactionalId: string,
      topicResults: array({
        name: string,
        resultsByPartition: array({
          partitionIndex: int32,
          partitionErrorCode: int16,
        }),
      }),
    }).since(4),
    resultsByTopicV3AndBelow: array({
      name: string,
      resultsByPartition: array({
        partitionIndex: int32,
        partitionErrorCode: int16,
      }),
    }).until(3),
  },
})
