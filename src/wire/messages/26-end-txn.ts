/** EndTxn: commits or aborts; from version 5 the epoch grows with every transaction (KIP-890). */
import { api } from '../api.ts'
import { boolean, int16, int32, int64, string } from '../schema.ts'

export const endTxn = api({
  key: 26,
  name: 'EndTxn',
  versions: [0, 5],
  flexibleSince: 3,
  request: {
    transactionalId: string,
    producerId: int64,
    producerEpoch: int16,
    committed: boolean,
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
    producerId: int64.or(-1).since(5),
    producerEpoch: int16.or(-1).since(5),
  },
})
