/**
 * LeaveGroup: members leave a classic group, and the others rebalance at once.
 *
 *   1    throttle time
 *   3    several members, each with its own error; an administrator names static ones by their instance (KIP-345)
 *   4    flexible
 *   5    a reason, for people
 */
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { leaveGroup as api } from '../../wire/messages/13-leave-group.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'

const SINCE_SEVERAL = 3

export const leaveGroup: Handler = handler(api, async (request, call, world) => {
  const { groupId, memberId } = request
  if (!isGroupCoordinator(world, call, groupId)) {
    return { throttleTimeMs: 0, errorCode: KAFKA_ERRORS.NOT_COORDINATOR, members: [] }
  }
  const isOne = call.version < SINCE_SEVERAL
  const leaving = isOne ? [{ memberId, groupInstanceId: null }] : request.members
  const refs = leaving.map((each) => ({ memberId: each.memberId, instanceId: each.groupInstanceId }))
  const errors = await world.parts.groups.leave(groupId, refs)
  const ofAll = isOne || errors[0] === 'INVALID_GROUP_ID' ? errors[0] : 'NONE'
  return {
    throttleTimeMs: 0,
    errorCode: groupErrorCode(ofAll ?? 'NONE'),
    members: leaving.map((each, i) => {
      const { memberId: id, groupInstanceId } = each
      return { memberId: id, groupInstanceId, errorCode: groupErrorCode(errors[i] ?? 'NONE') }
    }),
  }
})
