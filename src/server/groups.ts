/**
 * What handlers of groups share: who coordinates a group, the coordinator's answers as error codes, and which partitions
 * a commit means.
 */
import type { GroupError } from '../coordinator/classic-requests.ts'
import type { OffsetEntry } from '../coordinator/group-offsets.ts'
import type { Topic } from '../core/topic.ts'
import { OdradekError } from '../model/errors.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import type { Call } from './handler.ts'
import type { World } from './world.ts'

/** Characters of a commit's metadata: Kafka's offset.metadata.max.bytes. */
const MAX_OFFSET_METADATA = 4_096

export function isGroupCoordinator(world: World, call: Call, group: string): boolean {
  return world.cluster.coordinatorOf('group', group) === call.node
}

export function groupErrorCode(error: GroupError): number {
  return KAFKA_ERRORS[error]
}

/** What could not be stored, as clients are told, who try again. @throws what is a fault of ours */
export function storedErrorCode(error: unknown): number {
  if (error instanceof OdradekError) return KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
  throw error
}

interface CommittedPartition {
  readonly partitionIndex: number
  readonly committedOffset: number
  readonly committedLeaderEpoch: number
  readonly committedMetadata: string | null
}

/** The commit of a partition, or why there is none: its error code. `topic` undefined: there is no such topic. */
export function offsetEntry(topic: Topic | undefined, committed: CommittedPartition): OffsetEntry | number {
  const { partitionIndex, committedOffset, committedLeaderEpoch } = committed
  if (topic?.partitions[partitionIndex] === undefined) return KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
  const metadata = committed.committedMetadata ?? ''
  if (metadata.length > MAX_OFFSET_METADATA) return KAFKA_ERRORS.OFFSET_METADATA_TOO_LARGE
  // Nobody could go on there. A negative one says that there is none, which is how KafkaJS has its default chosen.
  if (!Number.isSafeInteger(committedOffset)) return KAFKA_ERRORS.OFFSET_OUT_OF_RANGE
  return {
    topicId: topic.id,
    partition: partitionIndex,
    offset: committedOffset,
    metadata,
    epoch: committedLeaderEpoch,
  }
}
