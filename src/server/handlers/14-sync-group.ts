/**
 * SyncGroup: the leader of a classic group hands in who gets what; everybody is answered with his part.
 *
 *   1    throttle time
 *   3    static members
 *   4    flexible
 *   5    protocol type and name, which must be those of the generation (KIP-559)
 *
 * A consumer that the leader gave nothing gets an assignment of nothing, which it can read, not none.
 */
import { refusedSync, type SyncResult } from '../../coordinator/classic-requests.ts'
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { syncGroup as api } from '../../wire/messages/14-sync-group.ts'
import { readableAssignment } from '../consumer-protocol.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'

type Response = ResponseInputOf<typeof api>

const SINCE_PROTOCOL = 5

export const syncGroup: Handler = handler(api, async (request, call, world) => {
  const { groupId, memberId, groupInstanceId: instanceId, generationId: generation } = request
  const { protocolType, protocolName, assignments } = request
  if (!isGroupCoordinator(world, call, groupId)) {
    return { ...responseOf(refusedSync('UNKNOWN_MEMBER_ID')), errorCode: KAFKA_ERRORS.NOT_COORDINATOR }
  }
  if (call.version >= SINCE_PROTOCOL && (protocolType === null || protocolName === null)) {
    return responseOf(refusedSync('INCONSISTENT_GROUP_PROTOCOL'))
  }
  const result = await world.parts.groups.sync(groupId, {
    memberId,
    instanceId,
    generation,
    protocolType,
    protocolName,
    assignments: new Map(assignments.map((each) => [each.memberId, each.assignment.slice()])),
    signal: call.client.signal,
  })
  return result === null ? null : responseOf(result)
})

function responseOf({ error, protocolType, protocolName, assignment }: SyncResult): Response {
  const isAssigned = error === 'NONE'
  return {
    throttleTimeMs: 0,
    errorCode: groupErrorCode(error),
    protocolType,
    protocolName,
    assignment: isAssigned ? readableAssignment(protocolType, assignment) : assignment,
  }
}
