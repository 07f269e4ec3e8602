/** What went wrong in a log, as clients of Kafka are told. */
import { type ErrorCode, OdradekError } from '../model/errors.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'

/**
 * Codes after which clients do what is right by themselves:
 *
 *   STORAGE_FULL …    nothing was done: KAFKA_STORAGE_ERROR, at which clients look for a leader and try again. So it is
 *                     where a log takes nothing more since a flush failed
 *   CORRUPT_LOG       CORRUPT_MESSAGE: damage does not go away by asking again, so who asks is to be told
 *   CLOSED, ABORTED   the broker goes: NOT_LEADER_OR_FOLLOWER, at which clients do the same without a complaint
 *   FULL …            nobody reads fast enough: nothing was done, and trying again later is all there is to do
 */
const CODES: { readonly [code in ErrorCode]?: number } = {
  ABORTED: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER,
  CLOSED: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER,
  CORRUPT_LOG: KAFKA_ERRORS.CORRUPT_MESSAGE,
  FULL: KAFKA_ERRORS.REQUEST_TIMED_OUT,
  OFFSET_OUT_OF_RANGE: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE,
  OUTCOME_UNKNOWN: KAFKA_ERRORS.KAFKA_STORAGE_ERROR,
  STORAGE_ERROR: KAFKA_ERRORS.KAFKA_STORAGE_ERROR,
  STORAGE_FULL: KAFKA_ERRORS.KAFKA_STORAGE_ERROR,
  TIMEOUT: KAFKA_ERRORS.REQUEST_TIMED_OUT,
  TOO_LARGE: KAFKA_ERRORS.MESSAGE_TOO_LARGE,
  TOO_MANY_WAITING: KAFKA_ERRORS.REQUEST_TIMED_OUT,
  UNKNOWN_TOPIC: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
  UNSUPPORTED: KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE,
}

/**
 * Of a batch that was appended, and is perhaps not durable. NOT_ENOUGH_REPLICAS_AFTER_APPEND says just that: it was
 * written, and is not as safe as was asked for. Clients try again, and know that the first attempt may count.
 */
export function durabilityError(error: unknown): number {
  const isUnknown = error instanceof OdradekError && error.code === 'OUTCOME_UNKNOWN'
  return isUnknown ? KAFKA_ERRORS.NOT_ENOUGH_REPLICAS_AFTER_APPEND : storageError(error)
}

/** @throws what is no error that a client could meet: a fault of ours */
export function storageError(error: unknown): number {
  const code = error instanceof OdradekError ? CODES[error.code] : undefined
  if (code === undefined) throw error
  return code
}
