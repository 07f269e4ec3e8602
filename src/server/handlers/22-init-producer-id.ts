/**
 * InitProducerId: who a producer is, by an id and an epoch. Without a transactional id every call gives a new id: such a
 * producer raises its epoch itself. With one, the older producer is fenced, and what it left open is aborted.
 *
 *   2    flexible
 *   3    says what the producer is, to go on after an error (KIP-360)
 *   4    PRODUCER_FENCED is known; before, INVALID_PRODUCER_EPOCH
 *   5    TRANSACTION_ABORTABLE is known
 *
 * Who says id 0 and epoch 0 says nothing: a client does that has neither (@platformatic/kafka 1.35), and nobody has id 0.
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { initProducerId as api } from '../../wire/messages/22-init-producer-id.ts'
import { type Handler, handler } from '../handler.ts'
import { claimOf, isCoordinator, transactionErrorCode } from '../transactions.ts'
import type { World } from '../world.ts'

type Response = ResponseInputOf<typeof api>

const SINCE = { fenced: 4, abortable: 5 }

export const initProducerId: Handler = handler(api, async (request, call, world) => {
  const { transactionalId, transactionTimeoutMs, producerId, producerEpoch } = request
  if ((producerId === -1) !== (producerEpoch === -1)) return failed(KAFKA_ERRORS.INVALID_REQUEST)
  if (transactionalId === null) return newId(world)
  if (!isCoordinator(world, call, transactionalId)) return failed(KAFKA_ERRORS.NOT_COORDINATOR)
  const isNew = producerId === -1 || (producerId === 0 && producerEpoch === 0)
  const given = isNew ? null : claimOf(request)
  const answer = await world.transactions.init(transactionalId, transactionTimeoutMs, given)
  if (typeof answer === 'string') return failed(transactionErrorCode(answer, call.version, SINCE))
  return { throttleTimeMs: 0, errorCode: 0, producerId: answer.producerId, producerEpoch: answer.epoch }
})

async function newId(world: World): Promise<Response> {
  try {
    return {
      throttleTimeMs: 0,
      errorCode: 0,
      producerId: await world.transactions.ids.next(),
      producerEpoch: 0,
    }
  } catch (error) {
    world.parts.ctx.events.error(error, 'reserving producer ids')
    // What is not to be had yet: clients ask again.
    return failed(KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS)
  }
}

function failed(errorCode: number): Response {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 }
}
