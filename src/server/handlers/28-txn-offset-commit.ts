/**
 * TxnOffsetCommit: places of a group that count once the transaction commits.
 *
 *   2    leader epochs
 *   3    flexible; says which member of which generation commits (KIP-447), so that one that was fenced cannot
 *   4    TRANSACTION_ABORTABLE is known; before, INVALID_TXN_STATE
 *   5    transactions v2 (KIP-890): adds the group to the transaction by itself, without AddOffsetsToTxn before
 *
 * Each partition is answered for itself; what concerns the group or the transaction concerns all of them. A transaction
 * that is being completed is told as a coordinator that is loading, which every client tries again.
 */

import type { OffsetEntry } from '../../coordinator/group-offsets.ts'
import type { TransactionError } from '../../coordinator/producer-transaction.ts'
import type { RequestOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { txnOffsetCommit as api } from '../../wire/messages/28-txn-offset-commit.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { claimOf, transactionErrorCode } from '../transactions.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>
type Committed = Request['topics'][number]['partitions'][number]

const SINCE = { fenced: Number.POSITIVE_INFINITY, abortable: 4 }
/** Before it, clients of Kafka 0.11 do not know COORDINATOR_LOAD_IN_PROGRESS. */
const FIRST_WITH_LOADING = 2
const FIRST_IMPLICIT = 5
/** Kafka's default of offset.metadata.max.bytes. */
const MAX_METADATA_BYTES = 4_096

export const txnOffsetCommit: Handler = handler(api, async (request, call, world) => {
  const entries: OffsetEntry[] = []
  const topics = request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map((each) => {
      const entry = entryOf(world, name, each)
      if (typeof entry !== 'number') entries.push(entry)
      return { partitionIndex: each.partitionIndex, errorCode: typeof entry === 'number' ? entry : 0 }
    }),
  }))
  if (entries.length === 0) return { throttleTimeMs: 0, topics }
  const errorCode = await committed(world, call, request, entries)
  if (errorCode !== KAFKA_ERRORS.NONE) {
    for (const each of topics.flatMap(({ partitions }) => partitions)) each.errorCode ||= errorCode
  }
  return { throttleTimeMs: 0, topics }
})

/** What is to be set aside for a partition, or why nothing can be. */
function entryOf(world: World, name: string, committed: Committed): OffsetEntry | number {
  const { partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata } = committed
  const topic = world.parts.topics.get(name)
  if (topic?.partitions[partitionIndex] === undefined) return KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
  const metadata = committedMetadata ?? ''
  if (metadata.length > MAX_METADATA_BYTES) return KAFKA_ERRORS.OFFSET_METADATA_TOO_LARGE
  return {
    topicId: topic.id,
    partition: partitionIndex,
    offset: committedOffset,
    metadata,
    epoch: committedLeaderEpoch,
  }
}

/** Admitted and set aside in one run: what is set aside belongs to a transaction that will end. */
async function committed(
  world: World,
  call: Call,
  request: Request,
  entries: readonly OffsetEntry[],
): Promise<number> {
  const { groupId, transactionalId, producerId, memberId, groupInstanceId, generationId } = request
  if (world.cluster.coordinatorOf('group', groupId) !== call.node) return KAFKA_ERRORS.NOT_COORDINATOR
  const member = { memberId, instanceId: groupInstanceId, generation: generationId }
  const refused = world.parts.groups.checkCommit(groupId, member, true)
  if (refused === 'GROUP_ID_NOT_FOUND') return KAFKA_ERRORS.ILLEGAL_GENERATION
  if (refused !== 'NONE') return KAFKA_ERRORS[refused]
  const implicit = call.version >= FIRST_IMPLICIT
  const error = world.transactions.admitGroup(transactionalId, claimOf(request), groupId, implicit)
  if (error !== null) return errorCodeOf(error, call.version)
  try {
    await world.parts.groupOffsets.pending(producerId, groupId, entries)
    return KAFKA_ERRORS.NONE
  } catch (failure) {
    world.parts.ctx.events.error(failure, 'storing offsets of a transaction')
    return KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
  }
}

function errorCodeOf(error: TransactionError, version: number): number {
  if (error !== 'CONCURRENT_TRANSACTIONS') return transactionErrorCode(error, version, SINCE)
  return version < FIRST_WITH_LOADING
    ? KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
    : KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS
}
