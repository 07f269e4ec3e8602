/**
 * EndTxn: commits or aborts. It is answered when that is durable in all partitions, and the offsets of groups with it.
 *
 *   2    PRODUCER_FENCED is known; before, INVALID_PRODUCER_EPOCH
 *   3    flexible
 *   4    TRANSACTION_ABORTABLE is known
 *   5    transactions v2 (KIP-890): every end raises the epoch, and says what the producer is from now on
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { endTxn as api } from '../../wire/messages/26-end-txn.ts'
import { type Handler, handler } from '../handler.ts'
import { claimOf, isCoordinator, transactionErrorCode } from '../transactions.ts'

const SINCE = { fenced: 2, abortable: 4 }
const FIRST_THAT_RAISES = 5

export const endTxn: Handler = handler(api, async (request, call, world) => {
  const { transactionalId, committed } = request
  if (!isCoordinator(world, call, transactionalId)) return failed(KAFKA_ERRORS.NOT_COORDINATOR)
  const raises = call.version >= FIRST_THAT_RAISES
  const answer = await world.transactions.end(transactionalId, claimOf(request), committed, raises)
  if (typeof answer === 'string') return failed(transactionErrorCode(answer, call.version, SINCE))
  return { throttleTimeMs: 0, errorCode: 0, producerId: answer.producerId, producerEpoch: answer.epoch }
})

function failed(errorCode: number): ResponseInputOf<typeof api> {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 }
}
