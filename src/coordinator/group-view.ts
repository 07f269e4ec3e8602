/**
 * A group of Kafka's protocol as this process describes readers. Who reads by Kafka's protocol counts by himself, and holds no log:
 * what can be told is who is there, and how far the group has committed.
 */
import { MutableCounters } from '../core/counters.ts'
import type { Topics } from '../core/topics.ts'
import type { CursorDescription, MemberDescription, ReaderDescription } from '../model/views.ts'
import type { CommittedOffset, GroupOffsets } from './group-offsets.ts'
import type { WireGroup } from './groups.ts'
import type { JointGroup } from './joint-group.ts'
import { ModernGroup } from './modern-group.ts'
import { partitionKey } from './partition-keys.ts'

export function describeWireGroup(
  group: WireGroup,
  topics: Topics,
  offsets: GroupOffsets,
): ReaderDescription {
  return {
    name: group.name,
    kind: group instanceof ModernGroup ? 'consumer' : 'classic',
    durable: true,
    assignment: null,
    overflow: 'drop-oldest',
    order: 'partition',
    guarantee: 'at-least-once',
    generation: group instanceof ModernGroup ? group.epoch : group.generation,
    members: [...group.members].map(({ id }) => memberOf(id)),
    cursors: cursorsOf(group, offsets.all(group.name), topics),
    counters: new MutableCounters(),
  }
}

/** One of both kinds: as the subscribers' reader, with the others' members and with what those read alone. */
export function describeJointGroup(
  { group, reader }: JointGroup,
  topics: Topics,
  offsets: GroupOffsets,
): ReaderDescription {
  const described = reader.describe()
  const alone = offsets.all(group.name).filter(({ topicId }) => !reader.reads(topicId))
  return {
    ...described,
    generation: group.epoch,
    members: [...described.members, ...[...group.remoteMembers].map(({ id }) => memberOf(id))],
    cursors: [...described.cursors, ...cursorsOf(group, alone, topics)],
  }
}

/** Who reads by Kafka's protocol counts by himself. */
function memberOf(id: string): MemberDescription {
  return { id, inFlight: 0, zombies: 0, paused: false, counters: new MutableCounters() }
}

/** Who has which partition is known where this process assigns: members of a classic group do so among themselves. */
function cursorsOf(
  group: WireGroup,
  committed: readonly CommittedOffset[],
  topics: Topics,
): CursorDescription[] {
  return committed.flatMap((each) => {
    const key = partitionKey(each.topicId, each.partition)
    const owner = group instanceof ModernGroup ? group.ownerOf(key)?.id : undefined
    return cursorOf(each, topics, owner ?? null)
  })
}

function cursorOf(
  { topicId, partition, offset }: CommittedOffset,
  topics: Topics,
  owner: string | null,
): CursorDescription[] {
  const topic = topics.list().find(({ id }) => id === topicId)
  const log = topic?.partitions[partition]?.log
  if (topic === undefined || log === undefined) return []
  return [
    {
      topic: topic.name,
      partition,
      committed: offset,
      next: offset,
      lag: Math.max(log.marks.high - offset, 0),
      inFlight: 0,
      retrying: 0,
      owner,
      gating: false,
    },
  ]
}
