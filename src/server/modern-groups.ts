/**
 * Groups whose partitions the broker assigns, as Kafka's tools see them: those of members of the protocol, and those of
 * this process that are consumer groups too. The tools of before KIP-848 are shown them in the words of classic groups.
 */
import { LocalMember } from '../coordinator/local-member.ts'
import type { ModernGroup } from '../coordinator/modern-group.ts'
import type { ModernMember } from '../coordinator/modern-member.ts'
import { byTopic, partitionKey } from '../coordinator/partition-keys.ts'
import type { Member } from '../core/member.ts'
import type { Reader } from '../core/reader.ts'
import type { ResponseInputOf } from '../wire/api.ts'
import { type AssignedTopic, assignmentBytes, subscriptionBytes } from '../wire/consumer-protocol.ts'
import type { consumerGroupDescribe } from '../wire/messages/69-consumer-group-describe.ts'
import { HOST, readerState, subscribed } from './reader-groups.ts'
import type { World } from './world.ts'

type Group = ResponseInputOf<typeof consumerGroupDescribe>['groups'][number]
type DescribedMember = Group['members'][number]
export type DescribedGroup = Pick<
  Group,
  'groupState' | 'groupEpoch' | 'assignmentEpoch' | 'assignorName' | 'members'
>
type Place = DescribedMember['assignment']

/** Assigned by the broker; 0 are members that assign among themselves. */
const CONSUMER_MEMBER = 1

export function describedModern(group: ModernGroup, { parts }: World): DescribedGroup {
  const { state, epoch, assignmentEpoch, assignor, members } = group
  return {
    groupState: state,
    groupEpoch: epoch,
    assignmentEpoch,
    assignorName: assignor,
    members: [...members].map((member) => ({
      memberId: member.id,
      instanceId: member.instanceId,
      rackId: member.rackId,
      memberEpoch: member.epoch,
      clientId: clientOf(member),
      clientHost: hostOf(member),
      subscribedTopicNames: [...member.topicNames].sort(),
      subscribedTopicRegex: member.topicPattern?.source || null,
      assignment: placeOf(member.assigned, parts),
      targetAssignment: placeOf(member.target, parts),
      memberType: CONSUMER_MEMBER,
    })),
  }
}

/** It assigns at once, so that all of it has one epoch. */
export function describedReader(reader: Reader, { parts }: World): DescribedGroup {
  const { generation, settings } = reader
  return {
    groupState: readerState(reader),
    groupEpoch: generation,
    assignmentEpoch: generation,
    assignorName: settings.assignment,
    members: reader.members.map((member) => {
      const assignment = placeOf(heldBy(reader, member), parts)
      return {
        memberId: member.id,
        instanceId: null,
        rackId: null,
        memberEpoch: generation,
        clientId: reader.name,
        clientHost: HOST,
        subscribedTopicNames: subscribed(reader, member).map(({ name }) => name),
        subscribedTopicRegex: null,
        assignment,
        targetAssignment: assignment,
        memberType: CONSUMER_MEMBER,
      }
    }),
  }
}

function heldBy(reader: Reader, member: Member): Set<string> {
  const held = [...reader.cursors()].filter(({ owner }) => owner === member)
  return new Set(held.map(({ partition }) => partitionKey(partition.topic.id, partition.index)))
}

/** What a topic was that is gone, nobody can tell. */
function placeOf(keys: ReadonlySet<string>, { topics }: World['parts']): Place {
  return {
    topicPartitions: [...byTopic(keys)].flatMap(([topicId, partitions]) => {
      const topic = topics.byId(topicId)
      return topic === undefined ? [] : [{ topicId, topicName: topic.name, partitions }]
    }),
  }
}

/** A subscriber goes by the name of its group, as where all are of this process. */
function clientOf(member: ModernMember): string {
  return member instanceof LocalMember ? member.member.reader.name : member.clientId
}

function hostOf(member: ModernMember): string {
  return member instanceof LocalMember ? HOST : `/${member.clientHost}`
}

/** A member as DescribeGroups shows one. */
export function asClassicMember(member: ModernMember, { parts }: World) {
  const assigned = placeOf(member.assigned, parts).topicPartitions.map(
    ({ topicName, partitions }): AssignedTopic => ({ topic: topicName, partitions }),
  )
  return {
    memberId: member.id,
    groupInstanceId: member.instanceId,
    clientId: clientOf(member),
    clientHost: hostOf(member),
    memberMetadata: subscriptionBytes([...member.topicNames].sort()),
    memberAssignment: assignmentBytes(assigned),
  }
}
