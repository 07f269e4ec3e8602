/**
 * Groups of this process as Kafka's tools see groups. Whole partitions to members are a consumer group, single records
 * a share group; their members assign nothing by themselves, so what they would say to one another is made up here.
 */
import type { Member } from '../core/member.ts'
import type { Reader } from '../core/reader.ts'
import type { Topic } from '../core/topic.ts'
import { assignmentBytes, subscriptionBytes } from '../wire/consumer-protocol.ts'
import { CONSUMER } from './consumer-protocol.ts'

const SHARE = 'share'
/** Nothing connects to it: it is the program itself. */
export const HOST = 'in-process'

export interface ReaderMember {
  readonly memberId: string
  readonly groupInstanceId: null
  readonly clientId: string
  readonly clientHost: string
  readonly memberMetadata: Uint8Array
  readonly memberAssignment: Uint8Array
}

export function readerState({ members }: Reader): string {
  return members.length > 0 ? 'Stable' : 'Empty'
}

/** What a list of groups says they speak. */
export function readerProtocol({ kind }: Reader): string {
  return kind === 'share' ? SHARE : CONSUMER
}

export function readerMembers(reader: Reader): ReaderMember[] {
  return reader.members.map((member) => ({
    memberId: member.id,
    groupInstanceId: null,
    clientId: reader.name,
    clientHost: HOST,
    memberMetadata: subscriptionBytes(subscribed(reader, member).map(({ name }) => name)),
    memberAssignment: assignmentBytes(assigned(reader, member)),
  }))
}

/** Topics that the member reads. */
export function subscribed(reader: Reader, { topics }: Member): Topic[] {
  return reader.topics.filter(({ id }) => topics.has(id))
}

/** Who shares records reads from all partitions. */
function assigned(reader: Reader, member: Member): { topic: string; partitions: number[] }[] {
  return subscribed(reader, member)
    .map(({ id, name }) => {
      const cursors = reader.cursorsOf(id).filter(({ owner }) => !reader.assigned || owner === member)
      return { topic: name, partitions: cursors.map(({ partition }) => partition.index) }
    })
    .filter(({ partitions }) => partitions.length > 0)
}
