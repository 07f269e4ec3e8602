/** InitProducerId: an id and an epoch for a producer; with a transactional id, whatever it left open is ended. */
import { api } from '../api.ts'
import { int16, int32, int64, string } from '../schema.ts'

export const initProducerId = api({
  key: 22,
  name: 'InitProducerId',
  versions: [0, 5],
  flexibleSince: 2,
  request: {
    transactionalId: string.nullable(),
    transactionTimeoutMs: int32,
    producerId: int64.or(-1).since(3),
    producerEpoch: int16.or(-1).since(3),
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    producerId: int64.or(-1),
    producerEpoch: int16,
  },
})
