/**
 * Groups as an administrator sees them. Each is known to its coordinator alone, so a list is put together from all. Those
 * whose members assign among themselves and those whose broker assigns (KIP-848) are asked for by two APIs.
 */
import type { OdradekError } from '../model/errors.ts'
import { assignedTopics } from '../wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { describeGroups } from '../wire/messages/15-describe-groups.ts'
import { listGroups as listApi } from '../wire/messages/16-list-groups.ts'
import { deleteGroups as deleteApi } from '../wire/messages/42-delete-groups.ts'
import { consumerGroupDescribe } from '../wire/messages/69-consumer-group-describe.ts'
import { type KafkaCluster, kafkaError } from './cluster.ts'
import type { TopicPartition } from './offsets.ts'

export interface GroupListing {
  readonly group: string
  /** Empty where the broker is too old to say, as the type is. */
  readonly state: string
  /** `classic`, `consumer`, `share`: which protocol its members speak. */
  readonly type: string
  readonly protocolType: string
}

export interface GroupMemberView {
  readonly memberId: string
  readonly clientId: string
  readonly host: string
  /** Of a static member. */
  readonly instanceId: string | null
  /** How far it has followed its group; null in a classic one, where all members are of one generation. */
  readonly epoch: number | null
  readonly partitions: readonly TopicPartition[]
  /** What it is to have, once others have given it up; null in a classic one. */
  readonly target: readonly TopicPartition[] | null
}

export interface GroupDescription {
  readonly group: string
  readonly type: 'classic' | 'consumer'
  readonly state: string
  readonly assignor: string
  /** Grows with members, subscriptions and topics; null in a classic group. */
  readonly epoch: number | null
  /** Of the target that members are led to. */
  readonly assignmentEpoch: number | null
  readonly members: readonly GroupMemberView[]
}

const CONSUMER = 'consumer'
const NOT_OF_THIS_KIND: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.GROUP_ID_NOT_FOUND,
  KAFKA_ERRORS.UNSUPPORTED_VERSION,
])

/** In the order of their names. @throws OdradekError */
export async function listGroups(cluster: KafkaCluster): Promise<GroupListing[]> {
  const { brokers } = await cluster.metadata([])
  const answers = await Promise.all(
    brokers.map(async ({ nodeId }) => {
      const answer = await (await cluster.broker(nodeId)).request(listApi, {})
      if (answer.errorCode !== KAFKA_ERRORS.NONE)
        throw kafkaError(answer.errorCode, `groups of broker ${nodeId}`)
      return answer.groups
    }),
  )
  return answers
    .flat()
    .map(({ groupId, groupState, groupType, protocolType }) => {
      return { group: groupId, state: groupState, type: groupType.toLowerCase(), protocolType }
    })
    .sort((a, b) => (a.group < b.group ? -1 : 1))
}

/** Of whichever kind it is. @throws OdradekError UNKNOWN_CONSUMER where there is none */
export async function describeGroup(cluster: KafkaCluster, group: string): Promise<GroupDescription> {
  return (await describeConsumerGroup(cluster, group)) ?? (await describeClassicGroup(cluster, group))
}

/** Undefined where it is of another kind, or none, or where the broker knows none of this kind. */
async function describeConsumerGroup(
  cluster: KafkaCluster,
  group: string,
): Promise<GroupDescription | undefined> {
  if ((await cluster.any()).versionOf(consumerGroupDescribe) === undefined) return undefined
  const body = { groupIds: [group], includeAuthorizedOperations: false }
  const { groups } = await cluster.askCoordinator(group, consumerGroupDescribe, body, (answer) => {
    return answer.groups[0]?.errorCode ?? KAFKA_ERRORS.NONE
  })
  const [found] = groups
  if (found === undefined || NOT_OF_THIS_KIND.has(found.errorCode)) return undefined
  if (found.errorCode !== KAFKA_ERRORS.NONE) {
    throw kafkaError(found.errorCode, `group "${group}"`, found.errorMessage)
  }
  return {
    group,
    type: 'consumer',
    state: found.groupState,
    assignor: found.assignorName,
    epoch: found.groupEpoch,
    assignmentEpoch: found.assignmentEpoch,
    members: found.members.map(({ memberId, clientId, clientHost, instanceId, memberEpoch, ...of }) => ({
      memberId,
      clientId,
      host: hostOf(clientHost),
      instanceId,
      epoch: memberEpoch,
      partitions: placesOf(of.assignment.topicPartitions),
      target: placesOf(of.targetAssignment.topicPartitions),
    })),
  }
}

/** @throws OdradekError UNKNOWN_CONSUMER where there is none */
async function describeClassicGroup(cluster: KafkaCluster, group: string): Promise<GroupDescription> {
  const body = { groups: [group], includeAuthorizedOperations: false }
  const { groups } = await cluster.askCoordinator(group, describeGroups, body, (answer) => {
    return answer.groups[0]?.errorCode ?? KAFKA_ERRORS.NONE
  })
  const [found] = groups
  const errorCode = found?.errorCode ?? KAFKA_ERRORS.GROUP_ID_NOT_FOUND
  if (found === undefined || errorCode !== KAFKA_ERRORS.NONE) {
    throw kafkaError(errorCode, `group "${group}"`, found?.errorMessage)
  }
  // Until version 5 this is how the broker says that there is none.
  if (found.groupState === 'Dead') throw kafkaError(KAFKA_ERRORS.GROUP_ID_NOT_FOUND, `group "${group}"`)
  const members = found.members.map(
    ({ memberId, clientId, clientHost, groupInstanceId, memberAssignment }) => {
      const assigned = found.protocolType === CONSUMER ? assignedTopics(memberAssignment) : []
      const partitions = assigned.flatMap((each) => {
        return each.partitions.map((partition) => ({ topic: each.topic, partition }))
      })
      const one = { memberId, clientId, host: hostOf(clientHost), instanceId: groupInstanceId }
      return { ...one, epoch: null, partitions, target: null }
    },
  )
  const { groupState: state, protocolData: assignor } = found
  return { group, type: 'classic', state, assignor, epoch: null, assignmentEpoch: null, members }
}

function placesOf(
  topics: readonly { readonly topicName: string; readonly partitions: readonly number[] }[],
): TopicPartition[] {
  return topics.flatMap(({ topicName, partitions }) => {
    return partitions.map((partition) => ({ topic: topicName, partition }))
  })
}

/** Brokers in Java put a slash in front. */
function hostOf(clientHost: string): string {
  return clientHost.replace(/^\//, '')
}

/** What became of each: undefined where it is gone. @throws OdradekError */
export async function deleteGroup(cluster: KafkaCluster, group: string): Promise<OdradekError | undefined> {
  const { results } = await cluster.askCoordinator(group, deleteApi, { groupsNames: [group] }, (answer) => {
    return answer.results[0]?.errorCode ?? KAFKA_ERRORS.NONE
  })
  const errorCode = results[0]?.errorCode ?? KAFKA_ERRORS.UNKNOWN_SERVER_ERROR
  return errorCode === KAFKA_ERRORS.NONE ? undefined : kafkaError(errorCode, `group "${group}"`)
}
