/**
 * Brokers and partitions as clients see them, in the same way wherever they ask. A partition has one replica, on the node
 * that leads it.
 */
import type { Partition } from '../core/partition.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import type { World } from './world.ts'

/** Topics of Kafka's own, where somebody makes one of that name. */
const INTERNAL: ReadonlySet<string> = new Set([
  '__consumer_offsets',
  '__transaction_state',
  '__share_group_state',
])

export function isInternal(topic: string): boolean {
  return INTERNAL.has(topic)
}

export interface BrokerView {
  readonly id: number
  readonly host: string
  readonly port: number
}

/** Those that can be reached by a listener, where it says. */
export function brokersAt(listener: string, { cluster }: World): BrokerView[] {
  return cluster.nodes.flatMap(({ id, advertised }) => {
    const address = advertised.get(listener)
    return address === undefined ? [] : [{ id, host: address.host, port: address.port }]
  })
}

export interface PartitionView {
  readonly errorCode: number
  readonly partitionIndex: number
  readonly leaderId: number
  readonly leaderEpoch: number
  readonly replicaNodes: readonly number[]
  readonly isrNodes: readonly number[]
  readonly offlineReplicas: readonly number[]
}

export function partitionView({ topic, index, log }: Partition, { cluster }: World): PartitionView {
  const leader = cluster.leaderOf(topic.id, index).id
  return {
    errorCode: KAFKA_ERRORS.NONE,
    partitionIndex: index,
    leaderId: leader,
    leaderEpoch: log.marks.epoch,
    replicaNodes: [leader],
    isrNodes: [leader],
    offlineReplicas: [],
  }
}
