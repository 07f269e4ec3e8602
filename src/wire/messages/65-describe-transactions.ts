/** DescribeTransactions: transactions by their transactional ids (KIP-664). */
import { api } from '../api.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const describeTransactions = api({
  key: 65,
  name: 'DescribeTransactions',
  versions: [0, 0],
  flexibleSince: 0,
  request: {
    transactionalIds: array(string),
  },
  response: {
    throttleTimeMs: int32,
    transactionStates: array({
      errorCode: int16,
      transactionalId: string,
      transactionState: string,
      transactionTimeoutMs: int32,
      transactionStartTimeMs: int64,
      producerId: int64,
      producerEpoch: int16,
      topics: array({
        topic: string,
        partitions: array(int32),
      }),
    }),
  },
})
