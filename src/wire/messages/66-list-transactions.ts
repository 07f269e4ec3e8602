/** ListTransactions: transactions by state, producer, duration and pattern (KIP-664). */
import { api } from '../api.ts'
import { array, int16, int32, int64, string } from '../schema.ts'

export const listTransactions = api({
  key: 66,
  name: 'ListTransactions',
  versions: [0, 2],
  flexibleSince: 0,
  request: {
    stateFilters: array(string),
    producerIdFilters: array(int64),
    durationFilter: int64.or(-1).since(1),
    transactionalIdPattern: string.nullable().since(2),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    unknownStateFilters: array(string),
    transactionStates: array({
      transactionalId: string,
      producerId: int64,
      transactionState: string,
    }),
  },
})
