/**
 * Which partition a request means, whether this node answers for it, and whether both are of the same leader epoch: what
 * every API of records asks first. Answers are error codes, since most are told to clients as they are.
 */
import type { Partition } from '../core/partition.ts'
import type { Topic } from '../core/topic.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import type { Call } from './handler.ts'
import type { World } from './world.ts'

/** What stands for no epoch: a client that does not know it yet. */
export const NO_EPOCH = -1

/** The partition, or the error code. `topic` undefined: there is none. */
export function partitionOf(
  world: World,
  call: Call,
  topic: Topic | undefined,
  index: number,
): Partition | number {
  const partition = topic?.partitions[index]
  if (partition === undefined) return KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
  return isLeader(world, call, partition) ? partition : KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER
}

export function isLeader(world: World, call: Call, { topic, index }: Partition): boolean {
  return world.cluster.leaderOf(topic.id, index) === call.node
}

/** What a client that believes in `epoch` is told (KIP-320); `NONE` where it is right, or does not say. */
export function epochError({ log }: Partition, epoch: number): number {
  if (epoch === NO_EPOCH || epoch === log.marks.epoch) return KAFKA_ERRORS.NONE
  return epoch < log.marks.epoch ? KAFKA_ERRORS.FENCED_LEADER_EPOCH : KAFKA_ERRORS.UNKNOWN_LEADER_EPOCH
}

/** The epoch in which the record at `offset` was written. */
export function epochOf({ log }: Partition, offset: number): number {
  let { epoch } = log.marks
  for (;;) {
    const before = log.epochEnd(epoch - 1)
    if (before === undefined || before.endOffset <= offset || before.epoch >= epoch) return epoch
    epoch = before.epoch
  }
}

/** The leader as clients are told of it: in the partition, and among the endpoints. */
export function leaderHint(
  world: World,
  { listener }: Call,
  { topic, index, log }: Partition,
): {
  readonly currentLeader: { readonly leaderId: number; readonly leaderEpoch: number }
  readonly endpoint: { readonly nodeId: number; readonly host: string; readonly port: number } | undefined
} {
  const { id, advertised } = world.cluster.leaderOf(topic.id, index)
  const address = advertised.get(listener)
  return {
    currentLeader: { leaderId: id, leaderEpoch: log.marks.epoch },
    endpoint: address === undefined ? undefined : { nodeId: id, host: address.host, port: address.port },
  }
}
