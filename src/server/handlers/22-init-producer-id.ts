/**
 * InitProducerId: who a producer is, by an id and an epoch. Without a transactional id every call gives a new id: such a
 * producer raises its epoch itself.
 *
 *   0–1
 *   2    flexible
 *   3    names the id and epoch that the producer has, to go on after an error (KIP-360)
 *   4    PRODUCER_FENCED is understood; before, INVALID_PRODUCER_EPOCH
 *   5    TRANSACTION_ABORTABLE is understood
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { initProducerId as api } from '../../wire/messages/22-init-producer-id.ts'
import { type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

type Response = ResponseInputOf<typeof api>

export const initProducerId: Handler = handler(api, (request, _call, world) => {
  const { transactionalId, producerId, producerEpoch } = request
  if ((producerId === -1) !== (producerEpoch === -1)) return failed(KAFKA_ERRORS.INVALID_REQUEST)
  if (transactionalId !== null) return failed(KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE)
  return newId(world)
})

async function newId(world: World): Promise<Response> {
  try {
    return { throttleTimeMs: 0, errorCode: 0, producerId: await world.producerIds.next(), producerEpoch: 0 }
  } catch (error) {
    world.parts.ctx.events.error(error, 'reserving producer ids')
    // What is not to be had yet: clients ask again.
    return failed(KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS)
  }
}

function failed(errorCode: number): Response {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 }
}
