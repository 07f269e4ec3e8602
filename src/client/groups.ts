/** Groups as an administrator sees them. Each is known to its coordinator alone, so a list is put together from all. */
import type { OdradekError } from '../model/errors.ts'
import { assignedTopics } from '../wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { describeGroups } from '../wire/messages/15-describe-groups.ts'
import { listGroups as listApi } from '../wire/messages/16-list-groups.ts'
import { deleteGroups as deleteApi } from '../wire/messages/42-delete-groups.ts'
import { type KafkaCluster, kafkaError } from './cluster.ts'
import type { TopicPartition } from './offsets.ts'

export interface GroupListing {
  readonly group: string
  /** Empty where the broker is too old to say. */
  readonly state: string
  readonly protocolType: string
}

export interface GroupMemberView {
  readonly memberId: string
  readonly clientId: string
  readonly host: string
  readonly partitions: readonly TopicPartition[]
}

export interface GroupDescription {
  readonly group: string
  /** `Dead`: there is no such group. */
  readonly state: string
  readonly assignor: string
  readonly members: readonly GroupMemberView[]
}

const CONSUMER = 'consumer'

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
    .map(({ groupId, groupState, protocolType }) => ({ group: groupId, state: groupState, protocolType }))
    .sort((a, b) => (a.group < b.group ? -1 : 1))
}

/** Classic ones; of others what the broker says of them. @throws OdradekError UNKNOWN_CONSUMER where there is none */
export async function describeGroup(cluster: KafkaCluster, group: string): Promise<GroupDescription> {
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
  const members = found.members.map(({ memberId, clientId, clientHost, memberAssignment }) => {
    const assigned = found.protocolType === CONSUMER ? assignedTopics(memberAssignment) : []
    const partitions = assigned.flatMap((each) => {
      return each.partitions.map((partition) => ({ topic: each.topic, partition }))
    })
    return { memberId, clientId, host: clientHost.replace(/^\//, ''), partitions }
  })
  return { group, state: found.groupState, assignor: found.protocolData, members }
}

/** What became of each: undefined where it is gone. @throws OdradekError */
export async function deleteGroup(cluster: KafkaCluster, group: string): Promise<OdradekError | undefined> {
  const { results } = await cluster.askCoordinator(group, deleteApi, { groupsNames: [group] }, (answer) => {
    return answer.results[0]?.errorCode ?? KAFKA_ERRORS.NONE
  })
  const errorCode = results[0]?.errorCode ?? KAFKA_ERRORS.UNKNOWN_SERVER_ERROR
  return errorCode === KAFKA_ERRORS.NONE ? undefined : kafkaError(errorCode, `group "${group}"`)
}
