/**
 * AddOffsetsToTxn: a group whose offsets a transaction is about to commit.
 *
 *   2    PRODUCER_FENCED is known; before, INVALID_PRODUCER_EPOCH
 *   3    flexible
 *   4    TRANSACTION_ABORTABLE is known
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { addOffsetsToTxn as api } from '../../wire/messages/25-add-offsets-to-txn.ts'
import { type Handler, handler } from '../handler.ts'
import { claimOf, isCoordinator, transactionErrorCode } from '../transactions.ts'

const SINCE = { fenced: 2, abortable: 4 }

export const addOffsetsToTxn: Handler = handler(api, async (request, call, world) => {
  const { transactionalId, groupId } = request
  if (!isCoordinator(world, call, transactionalId)) {
    return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.NOT_COORDINATOR }
  }
  const error = await world.transactions.addGroup(transactionalId, claimOf(request), groupId)
  return { throttleTimeMs: 0, errorCode: transactionErrorCode(error, call.version, SINCE) }
})
