/**
 * The one error class. Every failure a caller can meet carries a literal `code`, says whether trying
 * again can help, and keeps its cause. docs/errors.md lists every code; a test holds the two together.
 */
export const ERROR_CODES = [
  'ABORTED',
  'AUTHENTICATION_FAILED',
  'CLOSED',
  'CONNECTION_FAILED',
  'CONSUMER_EXISTS',
  'CORRUPT_LOG',
  'DATA_LOCKED',
  'FENCED',
  'FULL',
  'GROUP_NOT_EMPTY',
  'INCONSISTENT_GROUP',
  'INVALID_ARGUMENT',
  'INVALID_TOPIC',
  'INVALID_VALUE',
  'LISTEN_ERROR',
  'OFFSET_OUT_OF_RANGE',
  'OUTCOME_UNKNOWN',
  'PROTOCOL_ERROR',
  'REFUSED',
  'STORAGE_ERROR',
  'STORAGE_FULL',
  'TIMEOUT',
  'TOO_LARGE',
  'TOO_MANY_WAITING',
  'TOPIC_EXISTS',
  'UNKNOWN_CONSUMER',
  'UNKNOWN_TOPIC',
  'UNSUPPORTED',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** Codes after which the same call may succeed unchanged. */
const RETRIABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CONNECTION_FAILED',
  'FULL',
  'OUTCOME_UNKNOWN',
  'STORAGE_FULL',
  'TIMEOUT',
  'TOO_MANY_WAITING',
])

/** An error of Odradek. `code` is stable and meant for `switch`; `message` is for people. */
export class OdradekError extends Error {
  override readonly name = 'OdradekError'
  readonly code: ErrorCode
  /** Whether the same call may succeed later without being changed. */
  readonly retriable: boolean

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
    this.retriable = RETRIABLE.has(code)
  }
}

/** The error, where it is one that a caller can meet. @throws anything else: a fault of ours, which nobody may swallow */
export function odradekError(error: unknown): OdradekError {
  if (error instanceof OdradekError) return error
  throw error
}

/**
 * Thrown by a batch handler: the records before `index` are acked, the one at `index` is nacked with
 * `cause`, the rest go back unchanged (their attempt does not count).
 */
export class BatchError extends Error {
  override readonly name = 'BatchError'
  /** Position in the batch, from 0, of the record that failed. */
  readonly index: number

  constructor(index: number, cause?: unknown) {
    super(`record ${index} of the batch failed`, { cause })
    this.index = index
  }
}

/** An invariant of ours, not a mistake of the caller's. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`odradek: broken invariant: ${message}`)
}

/** The text of anything thrown, `undefined` included. Never throws, whatever getters it meets. */
export function messageOf(error: unknown): string {
  try {
    const { message } = (error ?? {}) as { message?: unknown }
    return typeof message === 'string' ? message : String(error)
  } catch {
    return 'something that has no text'
  }
}

/** The rejection for an aborted wait; keeps the signal's reason as its cause. */
export function abortedError(signal: AbortSignal, what: string): OdradekError {
  return new OdradekError('ABORTED', `${what} was aborted`, { cause: signal.reason })
}
