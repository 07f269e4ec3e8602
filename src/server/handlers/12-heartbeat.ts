/**
 * Heartbeat: a member of a classic group is alive. It hears REBALANCE_IN_PROGRESS while the others wait for it to join.
 *
 *   1    throttle time
 *   3    static members
 *   4    flexible
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { heartbeat as api } from '../../wire/messages/12-heartbeat.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'

export const heartbeat: Handler = handler(api, (request, call, world) => {
  const { groupId, memberId, groupInstanceId: instanceId, generationId: generation } = request
  const errorCode = isGroupCoordinator(world, call, groupId)
    ? groupErrorCode(world.parts.groups.heartbeat(groupId, { memberId, instanceId, generation }))
    : KAFKA_ERRORS.NOT_COORDINATOR
  return { throttleTimeMs: 0, errorCode }
})
