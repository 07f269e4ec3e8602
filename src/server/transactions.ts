/**
 * What handlers of transactions share: who coordinates a transactional id, and the coordinator's answers as error codes.
 * Some errors came later than the APIs that give them; older versions hear of them by another name.
 */
import type { ProducerIdentity, TransactionError } from '../coordinator/producer-transaction.ts'
import type { ProducerTransactions } from '../coordinator/producer-transactions.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import type { Call } from './handler.ts'
import type { VerifyTransaction, World } from './world.ts'

/** The first versions of an API that know them. */
export interface Since {
  readonly fenced: number
  /** KIP-890. */
  readonly abortable: number
}

/** The error code for a request of that version; `NONE` for null. */
export function transactionErrorCode(error: TransactionError | null, version: number, since: Since): number {
  if (error === null) return KAFKA_ERRORS.NONE
  if (error === 'PRODUCER_FENCED' && version < since.fenced) return KAFKA_ERRORS.INVALID_PRODUCER_EPOCH
  if (error === 'TRANSACTION_ABORTABLE' && version < since.abortable) return KAFKA_ERRORS.INVALID_TXN_STATE
  return KAFKA_ERRORS[error]
}

export function isCoordinator(world: World, call: Call, transactionalId: string): boolean {
  return world.cluster.coordinatorOf('transaction', transactionalId) === call.node
}

export function claimOf(request: {
  readonly producerId: number
  readonly producerEpoch: number
}): ProducerIdentity {
  return { producerId: request.producerId, epoch: request.producerEpoch }
}

// ── Produce ─────────────────────────────────────────────────────────────────────────────────────

/** Produce never learned PRODUCER_FENCED. */
const PRODUCE_SINCE: Since = { fenced: Number.POSITIVE_INFINITY, abortable: 11 }
/** Versions of Produce whose batches add their partitions to the transaction themselves (KIP-890). */
const FIRST_IMPLICIT_PRODUCE = 12

/** Whether a batch may be appended to its partition, to be asked in the run that appends it: `NONE`, or the error code. */
export function batchAdmission(transactions: ProducerTransactions): VerifyTransaction {
  return (transactionalId, { id, epoch }, { topic, index }, version) => {
    const claim = { producerId: id, epoch }
    const place = { topic: topic.name, topicId: topic.id, partition: index }
    const implicit = version >= FIRST_IMPLICIT_PRODUCE
    const error = transactions.admit(transactionalId, claim, place, implicit)
    // What older clients do not try again by themselves, they do after this one.
    if (error === 'CONCURRENT_TRANSACTIONS' && !implicit) return KAFKA_ERRORS.NOT_ENOUGH_REPLICAS
    return transactionErrorCode(error, version, PRODUCE_SINCE)
  }
}
