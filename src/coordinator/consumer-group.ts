/**
 * A consumer group: whole partitions to members, by an assignor. Every change of members, topics or
 * partitions starts a new generation; a partition that changes hands starts at its new owner once what
 * is in flight at the old one has settled or expired. Where members elsewhere are in it too, joint-group.ts does that.
 */
import type { Cursor } from '../core/cursor.ts'
import type { Reader, ReaderKind } from '../core/reader.ts'
import type { Assignment } from '../model/options.ts'
import { assign, type TopicPartition } from './assignors.ts'

/** Members of Kafka's protocol, as far as readers are concerned with them. */
export interface RemoteMembers {
  /** A reader takes the name of a group. @throws OdradekError INCONSISTENT_GROUP where members have it for themselves */
  claim(group: string, kind: ReaderKind): void
  /** The reader has members, and may have them in common with a group. */
  joined(reader: Reader): void
  /** Whether one of them has the partition. */
  reads(group: string, topicId: string, partition: number): boolean
}

export function rebalance(reader: Reader): void {
  if (!reader.assigned) return
  if (reader.remote !== null) {
    reader.remote.changed()
    return
  }
  const members = reader.members.filter((member) => !member.closed)
  const partitions = new Map<string, number>()
  const cursors = new Map<string, readonly Cursor[]>()
  for (const topic of reader.topics) {
    partitions.set(topic.name, topic.partitions.length)
    cursors.set(topic.name, reader.cursorsOf(topic.id))
  }
  const previous = new Map<string, TopicPartition[]>()
  for (const [topic, all] of cursors) {
    for (const cursor of all) {
      if (cursor.owner === null) continue
      const owned = previous.get(cursor.owner.id) ?? []
      owned.push({ topic, partition: cursor.partition.index })
      previous.set(cursor.owner.id, owned)
    }
  }
  const subscribers = members.map((member) => ({
    id: member.id,
    topics: new Set(reader.topics.filter((topic) => member.topics.has(topic.id)).map((topic) => topic.name)),
  }))
  const strategy = reader.settings.assignment as Exclude<Assignment, 'shared'>
  const target = assign(strategy, subscribers, partitions, previous)
  reader.generation++
  const owners = new Map<Cursor, string>()
  const assignment: Record<string, readonly TopicPartition[]> = Object.create(null) as Record<
    string,
    TopicPartition[]
  >
  for (const [member, owned] of target) {
    assignment[member] = owned
    for (const { topic, partition } of owned) owners.set(cursors.get(topic)?.[partition] as Cursor, member)
  }
  for (const all of cursors.values()) {
    for (const cursor of all)
      cursor.assign(members.find((member) => member.id === owners.get(cursor)) ?? null)
  }
  reader.ctx.events.raise('rebalance', { group: reader.name, generation: reader.generation, assignment })
}
