/** AddOffsetsToTxn: a group whose offsets a transaction is about to commit. */
import { api } from '../api.ts'
import { int16, int32, int64, string } from '../schema.ts'

export const addOffsetsToTxn = api({
  key: 25,
  name: 'AddOffsetsToTxn',
  versions: [0, 4],
  flexibleSince: 3,
  request: {
    transactionalId: string,
    producerId: int64,
    producerEpoch: int16,
    groupId: string,
  },
  response: {
    throttleTimeMs: int32,
    errorCode: int16,
  },
})
