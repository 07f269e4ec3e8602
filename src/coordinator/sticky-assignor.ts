/**
 * The sticky assignment: as even as the subscriptions allow, moving as little as it can.
 *
 *   1. everybody keeps what they held before;
 *   2. what nobody holds goes to the least loaded subscriber;
 *   3. while somebody has two more than a member that could relieve it, one partition moves.
 *
 * In step 3 the relief may take several hands, where the loaded member and the idle one share no topic:
 *
 *   loaded ──orders──► middle ──payments──► idle       middle's load stays as it is
 *
 * A breadth-first search from the most loaded member finds the least loaded one that can be reached, and the
 * shortest way to it. When no such path is left, no other assignment is more even. Where all subscribe to the
 * same, every path is one move from the most to the least loaded, and fewer moves would not do; elsewhere a
 * path may, rarely, cost a move or two more than another choice would have.
 */
import type { PartitionCounts, Subscriber, TopicPartition } from './assignors.ts'

class Holder {
  readonly id: string
  readonly topics: ReadonlySet<string>
  /** Partitions held, by topic. */
  readonly held = new Map<string, number[]>()
  load = 0
  /** Nothing more to be gained by taking from it. */
  settled = false
  /** In a search: who could hand it a partition, and of which topic. */
  from: Holder | undefined
  via = ''

  constructor(member: Subscriber) {
    this.id = member.id
    this.topics = member.topics
  }

  give(topic: string, partition: number): void {
    const partitions = this.held.get(topic)
    if (partitions === undefined) this.held.set(topic, [partition])
    else partitions.push(partition)
    this.load++
  }
}

class StickyAssignment {
  readonly holders: readonly Holder[]
  /** By topic, who subscribes to it. */
  readonly #subscribers = new Map<string, Holder[]>()
  /** By topic and partition, whether somebody keeps it. */
  readonly #kept = new Map<string, boolean[]>()

  constructor(members: readonly Subscriber[], topics: readonly string[], partitions: PartitionCounts) {
    this.holders = members.map((member) => new Holder(member))
    for (const topic of topics) {
      const subscribers = this.holders.filter((holder) => holder.topics.has(topic))
      if (subscribers.length === 0) continue
      this.#subscribers.set(topic, subscribers)
      this.#kept.set(topic, new Array(partitions.get(topic) as number).fill(false))
    }
  }

  keep(previous: ReadonlyMap<string, readonly TopicPartition[]>): void {
    for (const holder of this.holders) {
      for (const { topic, partition } of previous.get(holder.id) ?? []) {
        const kept = this.#kept.get(topic)
        if (kept?.[partition] !== false || !holder.topics.has(topic)) continue
        kept[partition] = true
        holder.give(topic, partition)
      }
    }
  }

  fill(): void {
    for (const [topic, kept] of this.#kept) {
      const subscribers = this.#subscribers.get(topic) as Holder[]
      for (const [partition, isKept] of kept.entries()) {
        if (!isKept) leastLoaded(subscribers).give(topic, partition)
      }
    }
  }

  level(): void {
    for (let loaded = this.#mostLoaded(); loaded !== undefined; loaded = this.#mostLoaded()) {
      const relief = this.#findRelief(loaded)
      if (relief.load > loaded.load - 2) loaded.settled = true
      else this.#passAlong(loaded, relief)
    }
  }

  #mostLoaded(): Holder | undefined {
    let most: Holder | undefined
    for (const holder of this.holders) {
      if (!holder.settled && (most === undefined || holder.load > most.load)) most = holder
    }
    return most
  }

  /** The least loaded one that partitions of `loaded` can be handed to, over however many hands. */
  #findRelief(loaded: Holder): Holder {
    const seenTopics = new Set<string>()
    const reached = new Set([loaded])
    let relief = loaded
    // A set is walked in the order of adding, also of what is added meanwhile: it is the search's queue.
    for (const holder of reached) {
      if (holder.load < relief.load) relief = holder
      for (const [topic, partitions] of holder.held) {
        if (partitions.length === 0 || seenTopics.has(topic)) continue
        seenTopics.add(topic)
        for (const next of this.#subscribers.get(topic) as Holder[]) {
          if (reached.has(next)) continue
          reached.add(next)
          next.from = holder
          next.via = topic
        }
      }
    }
    return relief
  }

  /** Each hand gives the last it got: what it held before the assignment comes first in its list. */
  #passAlong(loaded: Holder, relief: Holder): void {
    for (let to = relief; to !== loaded; to = to.from as Holder) {
      const from = to.from as Holder
      const partition = from.held.get(to.via)?.pop() as number
      from.load--
      to.give(to.via, partition)
    }
  }
}

function leastLoaded(holders: readonly Holder[]): Holder {
  let least = holders[0] as Holder
  for (const holder of holders) if (holder.load < least.load) least = holder
  return least
}

/** `members` and `topics` come sorted. */
export function stickyAssignment(
  members: readonly Subscriber[],
  topics: readonly string[],
  partitions: PartitionCounts,
  previous: ReadonlyMap<string, readonly TopicPartition[]>,
): Map<string, TopicPartition[]> {
  const assignment = new StickyAssignment(members, topics, partitions)
  assignment.keep(previous)
  assignment.fill()
  assignment.level()
  const assigned = new Map<string, TopicPartition[]>()
  for (const holder of assignment.holders) {
    const held = topics.flatMap((topic) =>
      (holder.held.get(topic) ?? []).sort((a, b) => a - b).map((partition) => ({ topic, partition })),
    )
    assigned.set(holder.id, held)
  }
  return assigned
}
