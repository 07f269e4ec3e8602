/** Offsets of partitions, by time or by name, asked of their leaders: one request to each. */
import type { ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { listOffsets } from '../wire/messages/02-list-offsets.ts'
import { isNotTheOne, type KafkaCluster, kafkaError } from './cluster.ts'
import type { Connection } from './connection.ts'

/** Instead of a time. */
export const END = -1
export const START = -2

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export interface OffsetQuery extends TopicPartition {
  /** Milliseconds since the epoch, `START` or `END`. */
  readonly timestamp: number
}

export type Isolation = 'read_committed' | 'read_uncommitted'

const REPLICA_NONE = -1
const ROUNDS = 50

export function isolationLevel(isolation: Isolation): number {
  return isolation === 'read_committed' ? 1 : 0
}

/** As text, for a `Map`. */
export function placeKey({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}

/**
 * The first offset at or after each time; where there is none, −1. By `placeKey`; a partition may be asked for once.
 * @throws OdradekError UNKNOWN_TOPIC, REFUSED
 */
export async function offsetsFor(
  cluster: KafkaCluster,
  queries: readonly OffsetQuery[],
  isolation: Isolation = 'read_uncommitted',
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  let left = queries
  for (let round = 0; left.length > 0; round++) {
    if (round > 0) await cluster.pause()
    const byLeader = new Map<Connection, OffsetQuery[]>()
    for (const query of left) {
      const leader = await cluster.leader(query.topic, query.partition)
      byLeader.set(leader, [...(byLeader.get(leader) ?? []), query])
    }
    const again = [...byLeader].map(async ([leader, asked]) => {
      const body = {
        replicaId: REPLICA_NONE,
        isolationLevel: isolationLevel(isolation),
        topics: byTopic(asked),
      }
      return unanswered(cluster, asked, await leader.request(listOffsets, body), found, round < ROUNDS)
    })
    left = (await Promise.all(again)).flat()
  }
  return found
}

/** Those whose leader is another one by now. */
function unanswered(
  cluster: KafkaCluster,
  asked: readonly OffsetQuery[],
  { topics }: ResponseOf<typeof listOffsets>,
  found: Map<string, number>,
  mayRetry: boolean,
): OffsetQuery[] {
  const left: OffsetQuery[] = []
  for (const query of asked) {
    const answer = topics
      .find(({ name }) => name === query.topic)
      ?.partitions.find(({ partitionIndex }) => partitionIndex === query.partition)
    const errorCode = answer?.errorCode ?? KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
    if (answer !== undefined && errorCode === KAFKA_ERRORS.NONE) {
      found.set(placeKey(query), answer.offset)
    } else if (mayRetry && isNotTheOne(errorCode)) {
      cluster.forget(query.topic)
      left.push(query)
    } else throw kafkaError(errorCode, `offsets of ${placeKey(query)}`)
  }
  return left
}

function byTopic(
  queries: readonly OffsetQuery[],
): { name: string; partitions: { partitionIndex: number; timestamp: number }[] }[] {
  return [...grouped(queries)].map(([name, asked]) => ({
    name,
    partitions: asked.map(({ partition, timestamp }) => ({ partitionIndex: partition, timestamp })),
  }))
}

/** Partitions by the name of their topic, as requests want them. */
export function grouped<T extends { readonly topic: string }>(items: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(item.topic)
    if (group === undefined) groups.set(item.topic, [item])
    else group.push(item)
  }
  return groups
}
