/**
 * JoinGroup: a member enters a classic group, and is answered when the generation begins; the leader gets what all
 * members said.
 *
 *   1    rebalance timeout; before, it is the session timeout
 *   2    throttle time
 *   4    a member without an id is given one, and comes again with it (MEMBER_ID_REQUIRED, KIP-394)
 *   5    static members (KIP-345)
 *   6    flexible
 *   7    protocol type in the response, whose protocol name may be null; before, it is empty
 *   8    a reason, for people
 *   9    a static leader that is back is told to leave the assignment as it is (KIP-814)
 */
import { type JoinResult, refusedJoin } from '../../coordinator/classic-requests.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { joinGroup as api } from '../../wire/messages/11-join-group.ts'
import { CONSUMER, topicsOf } from '../consumer-protocol.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>

const SINCE_REBALANCE_TIMEOUT = 1
const SINCE_MEMBER_ID_REQUIRED = 4
const SINCE_NULL_PROTOCOL = 7
const SINCE_SKIP_ASSIGNMENT = 9

export const joinGroup: Handler = handler(api, async (request, call, world) => {
  const { version, clientId, client } = call
  const { groupId, memberId, groupInstanceId, sessionTimeoutMs, protocolType } = request
  if (!isGroupCoordinator(world, call, groupId)) {
    const refused = responseOf(refusedJoin('UNKNOWN_MEMBER_ID', memberId), version)
    return { ...refused, errorCode: KAFKA_ERRORS.NOT_COORDINATOR }
  }
  const result = await world.parts.groups.join(groupId, {
    memberId,
    instanceId: groupInstanceId,
    clientId,
    clientHost: client.host,
    sessionTimeoutMs,
    rebalanceTimeoutMs: version < SINCE_REBALANCE_TIMEOUT ? sessionTimeoutMs : request.rebalanceTimeoutMs,
    protocolType,
    protocols: protocolsOf(request),
    requiresId: version >= SINCE_MEMBER_ID_REQUIRED,
    canSkipAssignment: version >= SINCE_SKIP_ASSIGNMENT,
    signal: client.signal,
  })
  return result === null ? null : responseOf(result, version)
})

/** Copies: what a member says is kept for as long as it is one. */
function protocolsOf({ protocolType, protocols }: Request) {
  return protocols.map(({ name, metadata }) => {
    const topics = protocolType === CONSUMER ? topicsOf(metadata) : null
    return { name, metadata: metadata.slice(), topics }
  })
}

function responseOf(result: JoinResult, version: number): Response {
  const { error, generation, protocolType, protocolName, leader, skipAssignment, memberId, members } = result
  return {
    throttleTimeMs: 0,
    errorCode: groupErrorCode(error),
    generationId: generation,
    protocolType,
    protocolName: protocolName ?? (version < SINCE_NULL_PROTOCOL ? '' : null),
    leader,
    skipAssignment,
    memberId,
    members: members.map((each) => {
      return { memberId: each.memberId, groupInstanceId: each.instanceId, metadata: each.metadata }
    }),
  }
}
