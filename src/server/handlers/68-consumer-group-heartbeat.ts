/**
 * ConsumerGroupHeartbeat: all that a member of a modern group says, and is told (KIP-848). It joins with epoch 0 and owns
 * nothing then, leaves with −1, and with −2 where it is static and will be back. In between it says what has changed, and
 * what it owns; what it may read is told when that has changed, and whenever it says all that it is, as one does that
 * does not know whether it was heard.
 *
 *   1    a pattern of topics (KIP-848); the client makes its own id (KIP-1082)
 */
import { ASSIGNORS, type Assignor, JOINS, LEAVES, LEAVES_FOR_NOW } from '../../coordinator/modern-requests.ts'
import { byTopic, partitionKey } from '../../coordinator/partition-keys.ts'
import { patternOf } from '../../coordinator/pattern.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { consumerGroupHeartbeat as api } from '../../wire/messages/68-consumer-group-heartbeat.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>

const SINCE_OWN_ID = 1

export const consumerGroupHeartbeat: Handler = handler(api, async (request, call, world) => {
  const { groupId, memberId, memberEpoch, serverAssignor, subscribedTopicRegex } = request
  if (!isGroupCoordinator(world, call, groupId)) return refused(KAFKA_ERRORS.NOT_COORDINATOR)
  const fault = faultOf(request, call.version)
  if (fault !== null) return refused(KAFKA_ERRORS.INVALID_REQUEST, fault)
  if (serverAssignor !== null && !isAssignor(serverAssignor)) {
    const message = `there is no assignor "${serverAssignor}"; there are ${ASSIGNORS.join(' and ')}`
    return refused(KAFKA_ERRORS.UNSUPPORTED_ASSIGNOR, message)
  }
  const topicPattern = subscribedTopicRegex === null ? null : topicPatternOf(subscribedTopicRegex)
  if (topicPattern === undefined) {
    const message = `"${subscribedTopicRegex}" is no pattern that is understood here`
    return refused(KAFKA_ERRORS.INVALID_REGULAR_EXPRESSION, message)
  }
  const { error, ...result } = await world.parts.groups.consumerHeartbeat(groupId, {
    memberId,
    epoch: memberEpoch,
    instanceId: request.instanceId,
    rackId: request.rackId,
    clientId: call.clientId,
    clientHost: call.client.host,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs,
    topicNames: request.subscribedTopicNames,
    topicPattern,
    assignor: serverAssignor,
    owned: ownedOf(request),
  })
  if (error !== 'NONE') return refused(groupErrorCode(error))
  return {
    throttleTimeMs: 0,
    errorCode: KAFKA_ERRORS.NONE,
    errorMessage: null,
    memberId: result.memberId,
    memberEpoch: result.epoch,
    heartbeatIntervalMs: result.heartbeatIntervalMs,
    assignment:
      result.assigned === null
        ? null
        : {
            topicPartitions: [...byTopic(result.assigned)].map(([topicId, partitions]) => {
              return { topicId, partitions }
            }),
          },
  }
})

/** What is wrong with a request whatever became of the group, in words. */
function faultOf(request: Request, version: number): string | null {
  const { groupId, memberId, memberEpoch, instanceId, rackId } = request
  if (groupId === '') return 'a group has a name'
  if (instanceId === '') return 'an instance has a name'
  if (rackId === '') return 'a rack has a name'
  const mayHaveNoId = memberEpoch === JOINS && version < SINCE_OWN_ID
  if (memberId === '' && !mayHaveNoId) return 'a member has an id'
  if (memberEpoch === JOINS) return faultOfJoin(request)
  if (memberEpoch === LEAVES_FOR_NOW && instanceId === null) return 'only static members leave for now'
  return memberEpoch < LEAVES && memberEpoch !== LEAVES_FOR_NOW ? `${memberEpoch} is no epoch` : null
}

function faultOfJoin(request: Request): string | null {
  const { rebalanceTimeoutMs, topicPartitions, subscribedTopicNames, subscribedTopicRegex } = request
  if (rebalanceTimeoutMs === -1) return 'whoever joins says its rebalance timeout'
  if (topicPartitions?.length !== 0) return 'whoever joins owns no partitions, and says so'
  const subscribes = subscribedTopicNames !== null || subscribedTopicRegex !== null
  return subscribes ? null : 'whoever joins says what it subscribes to'
}

function isAssignor(name: string): name is Assignor {
  return (ASSIGNORS as readonly string[]).includes(name)
}

/** An empty one takes back what was there. */
function topicPatternOf(source: string) {
  const pattern = patternOf(source)
  return pattern === undefined ? undefined : { source, matches: pattern.matches }
}

function ownedOf({ topicPartitions }: Request): ReadonlySet<string> | null {
  if (topicPartitions === null) return null
  const keys = topicPartitions.flatMap(({ topicId, partitions }) =>
    partitions.map((partition) => partitionKey(topicId, partition)),
  )
  return new Set(keys)
}

function refused(errorCode: number, errorMessage: string | null = null): Response {
  return {
    throttleTimeMs: 0,
    errorCode,
    errorMessage,
    memberId: null,
    memberEpoch: 0,
    heartbeatIntervalMs: 0,
    assignment: null,
  }
}
