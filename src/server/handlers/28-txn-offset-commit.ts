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
import { groupErrorCode, isGroupCoordinator, offsetEntry, storedErrorCode } from '../groups.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { claimOf, type Since, transactionErrorCode } from '../transactions.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>

/** Such a producer is told INVALID_PRODUCER_EPOCH in every version. */
const SINCE: Since = { fenced: Number.POSITIVE_INFINITY, abortable: 4 }
/** Before it, clients of Kafka 0.11 do not know COORDINATOR_LOAD_IN_PROGRESS. */
const FIRST_WITH_LOADING = 2
const FIRST_IMPLICIT = 5

export const txnOffsetCommit: Handler = handler(api, async (request, call, world) => {
  const entries: OffsetEntry[] = []
  /** The errors of partitions, in their order. */
  const codes = request.topics.map(({ name, partitions }) => {
    const topic = world.parts.topics.get(name)
    return partitions.map((partition) => {
      const entry = offsetEntry(topic, partition)
      if (typeof entry === 'number') return entry
      // A subscriber of this process reads it, who commits it himself.
      if (world.parts.groups.isHeldHere(request.groupId, entry)) return KAFKA_ERRORS.ILLEGAL_GENERATION
      entries.push(entry)
      return KAFKA_ERRORS.NONE
    })
  })
  const errorCode = await setAside(request, entries, call, world)
  return {
    throttleTimeMs: 0,
    topics: request.topics.map(({ name, partitions }, t) => ({
      name,
      partitions: partitions.map(({ partitionIndex }, p) => ({
        partitionIndex,
        errorCode: codes[t]?.[p] || errorCode,
      })),
    })),
  }
})

/** Admitted and set aside in one run: what is set aside belongs to a transaction that will end. */
async function setAside(
  request: Request,
  entries: readonly OffsetEntry[],
  call: Call,
  world: World,
): Promise<number> {
  const { groupId, transactionalId, producerId, memberId, groupInstanceId: instanceId } = request
  const { groups, groupOffsets } = world.parts
  if (!isGroupCoordinator(world, call, groupId)) return KAFKA_ERRORS.NOT_COORDINATOR
  if (entries.length === 0) return KAFKA_ERRORS.NONE
  const refused = groups.checkCommit(
    groupId,
    { memberId, instanceId, generation: request.generationId },
    true,
  )
  if (refused === 'GROUP_ID_NOT_FOUND' || refused === 'STALE_MEMBER_EPOCH') {
    return KAFKA_ERRORS.ILLEGAL_GENERATION
  }
  if (refused !== 'NONE') return groupErrorCode(refused)
  const implicit = call.version >= FIRST_IMPLICIT
  const error = world.transactions.admitGroup(transactionalId, claimOf(request), groupId, implicit)
  if (error !== null) return errorCodeOf(error, call.version)
  return groupOffsets.pending(producerId, groupId, entries).then(() => KAFKA_ERRORS.NONE, storedErrorCode)
}

function errorCodeOf(error: TransactionError, version: number): number {
  if (error !== 'CONCURRENT_TRANSACTIONS') return transactionErrorCode(error, version, SINCE)
  return version < FIRST_WITH_LOADING
    ? KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
    : KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS
}
