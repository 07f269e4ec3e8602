/**
 * Which member of a consumer group gets which partitions. Pure: the same members, partitions and history
 * give the same answer, whatever the order they come in. Every partition goes to exactly one member that
 * subscribes to its topic, if there is one.
 *
 *   range        topic by topic, runs of neighbours: partition 0 of two topics meets in one member
 *   round-robin  all partitions of all topics, one each in turn
 *   sticky       as even as can be, and moves as little as it can (see sticky-assignor.ts)
 *
 * Range and round-robin are Kafka's RangeAssignor and RoundRobinAssignor.
 */
import type { Assignment } from '../model/options.ts'
import { stickyAssignment } from './sticky-assignor.ts'

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export interface Subscriber {
  readonly id: string
  readonly topics: ReadonlySet<string>
}

/** How many partitions each topic has. */
export type PartitionCounts = ReadonlyMap<string, number>

/**
 * The partitions of every member, by id, each list by topic and partition. `previous` is what members held
 * before; only `sticky` looks at it, and whatever is in it that cannot be any more is passed over.
 */
export function assign(
  strategy: Exclude<Assignment, 'shared'>,
  members: readonly Subscriber[],
  partitions: PartitionCounts,
  previous: ReadonlyMap<string, readonly TopicPartition[]>,
): Map<string, TopicPartition[]> {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1))
  const topics = [...partitions.keys()].sort()
  switch (strategy) {
    case 'range':
      return rangeAssignment(sorted, topics, partitions)
    case 'round-robin':
      return roundRobinAssignment(sorted, topics, partitions)
    case 'sticky':
      return stickyAssignment(sorted, topics, partitions, previous)
  }
}

function rangeAssignment(
  members: readonly Subscriber[],
  topics: readonly string[],
  partitions: PartitionCounts,
): Map<string, TopicPartition[]> {
  const assigned = new Map<string, TopicPartition[]>(members.map((member) => [member.id, []]))
  for (const topic of topics) {
    const count = partitions.get(topic) as number
    const subscribers = members.filter((member) => member.topics.has(topic))
    let partition = 0
    for (const [index, member] of subscribers.entries()) {
      // The first ones take one more where it does not divide evenly.
      const share = Math.ceil((count - partition) / (subscribers.length - index))
      for (const end = partition + share; partition < end; partition++) {
        assigned.get(member.id)?.push({ topic, partition })
      }
    }
  }
  return assigned
}

function roundRobinAssignment(
  members: readonly Subscriber[],
  topics: readonly string[],
  partitions: PartitionCounts,
): Map<string, TopicPartition[]> {
  const assigned = new Map<string, TopicPartition[]>(members.map((member) => [member.id, []]))
  let turn = 0
  for (const topic of topics) {
    if (!members.some((member) => member.topics.has(topic))) continue
    for (let partition = 0; partition < (partitions.get(topic) as number); partition++) {
      // The turn passes over who does not subscribe, and they do not get it back.
      while (members[turn % members.length]?.topics.has(topic) === false) turn++
      const member = members[turn++ % members.length] as Subscriber
      assigned.get(member.id)?.push({ topic, partition })
    }
  }
  return assigned
}
