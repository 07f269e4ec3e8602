/**
 * How many partitions and replicas a client asks for, and where. There is one replica of each partition, and which node
 * it is on a hash says: a factor up to the number of nodes, and assignments to them, are checked as Kafka does, and
 * taken for the wish that they are.
 */
import { MAX_PARTITIONS } from '../model/limits.ts'
import { Refusal } from './admin-errors.ts'
import type { World } from './world.ts'

/** The one replica that there is. */
export const REPLICATION_FACTOR = 1
/** Partitions that one request may create: more of them would hold everybody up. As in Kafka. */
export const MAX_NEW_PARTITIONS = 10_000

export interface Wanted {
  readonly numPartitions: number
  readonly replicationFactor: number
  readonly assignments: readonly { readonly partitionIndex: number; readonly brokerIds: readonly number[] }[]
}

/** Partitions of a new topic. @throws Refusal */
export function partitionsOf(
  { numPartitions, replicationFactor, assignments }: Wanted,
  world: World,
): number {
  if (assignments.length > 0) {
    if (replicationFactor !== -1 || numPartitions !== -1) {
      throw new Refusal('INVALID_REQUEST', 'with assignments, partitions and replication factor are -1')
    }
    checkOrder(assignments.map(({ partitionIndex }) => partitionIndex))
    checkReplicas(
      assignments.map(({ brokerIds }) => brokerIds),
      world,
    )
    return counted(assignments.length)
  }
  if (replicationFactor < -1 || replicationFactor === 0) {
    throw new Refusal('INVALID_REPLICATION_FACTOR', 'a replication factor is above 0, or -1 for the default')
  }
  const { nodes } = world.cluster
  if (replicationFactor > nodes.length) {
    const there = nodes.length === 1 ? 'there is one broker' : `there are ${nodes.length} brokers`
    throw new Refusal(
      'INVALID_REPLICATION_FACTOR',
      `${replicationFactor} replicas are asked for, and ${there}`,
    )
  }
  if (numPartitions < -1 || numPartitions === 0) {
    throw new Refusal('INVALID_PARTITIONS', 'a number of partitions is above 0, or -1 for the default')
  }
  return counted(numPartitions === -1 ? world.options.defaultPartitions : numPartitions)
}

/** @throws Refusal */
export function counted(partitions: number): number {
  if (partitions <= MAX_PARTITIONS) return partitions
  throw new Refusal('INVALID_PARTITIONS', `a topic has at most ${MAX_PARTITIONS} partitions`)
}

function checkOrder(indexes: readonly number[]): void {
  const different = new Set(indexes)
  if (different.size < indexes.length) {
    throw new Refusal('INVALID_REPLICA_ASSIGNMENT', 'a partition is assigned more than once')
  }
  if (indexes.some((_, i) => !different.has(i))) {
    throw new Refusal(
      'INVALID_REPLICA_ASSIGNMENT',
      'assigned partitions are numbered from 0 on, without a gap',
    )
  }
}

/** Of each partition. `replicas`: how many each must have; those of the first, if nothing is said. @throws Refusal */
export function checkReplicas(
  assignments: readonly (readonly number[])[],
  { cluster }: World,
  replicas: number | undefined = assignments[0]?.length,
): void {
  const ids = new Set(cluster.nodes.map(({ id }) => id))
  for (const brokerIds of assignments) {
    const bad = (why: string): Refusal => new Refusal('INVALID_REPLICA_ASSIGNMENT', why)
    if (brokerIds.length === 0) throw bad('a partition is assigned to nobody')
    const stranger = brokerIds.find((id) => !ids.has(id))
    if (stranger !== undefined) throw bad(`there is no broker ${stranger}`)
    if (new Set(brokerIds).size < brokerIds.length) throw bad('a partition is assigned to a broker twice')
    if (brokerIds.length !== replicas) {
      throw bad(`a partition has ${brokerIds.length} replicas, where ${replicas} are asked for`)
    }
  }
}
