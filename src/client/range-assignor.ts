/**
 * The range assignor: the partitions of each topic in runs of equal length, the first members one more where it does not
 * come out even. Members are in the order of their ids. What Kafka's clients call `range`, so that a group may mix them.
 *
 *   7 partitions, 3 members   │ 0 1 2 │ 3 4 │ 5 6 │
 */
import type { AssignedTopic } from '../wire/consumer-protocol.ts'

export interface Subscribed {
  readonly memberId: string
  readonly topics: readonly string[]
}

/** `partitionsOf`: how many a topic has; 0 for one that is not there. */
export function assignRanges(
  members: readonly Subscribed[],
  partitionsOf: ReadonlyMap<string, number>,
): Map<string, AssignedTopic[]> {
  const assigned = new Map<string, AssignedTopic[]>(members.map(({ memberId }) => [memberId, []]))
  const ordered = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  for (const topic of new Set(members.flatMap(({ topics }) => topics))) {
    const takers = ordered.filter(({ topics }) => topics.includes(topic))
    const partitions = partitionsOf.get(topic) ?? 0
    const [each, more] = [Math.floor(partitions / takers.length), partitions % takers.length]
    for (const [i, { memberId }] of takers.entries()) {
      const first = i * each + Math.min(i, more)
      const length = each + (i < more ? 1 : 0)
      if (length === 0) continue
      assigned.get(memberId)?.push({ topic, partitions: Array.from({ length }, (_, n) => first + n) })
    }
  }
  return assigned
}
