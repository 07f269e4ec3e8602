/**
 * What requests of administration are refused with, for each thing they name on its own. What only the broker's parts
 * find out comes as an OdradekError, and keeps its words.
 */
import type { CoreContext } from '../core/context.ts'
import { DueCallback } from '../core/due-queue.ts'
import { type ErrorCode, OdradekError } from '../model/errors.ts'
import { KAFKA_ERRORS, type KafkaErrorName } from '../wire/errors.ts'

/** How it went, as most responses have it. */
export interface Outcome {
  readonly errorCode: number
  readonly errorMessage: string | null
}

export const DONE: Outcome = { errorCode: KAFKA_ERRORS.NONE, errorMessage: null }

export class Refusal extends Error {
  readonly outcome: Outcome

  constructor(error: KafkaErrorName, message: string) {
    super(message)
    this.outcome = { errorCode: KAFKA_ERRORS[error], errorMessage: message }
  }
}

export function refused(error: KafkaErrorName, message: string): Outcome {
  return { errorCode: KAFKA_ERRORS[error], errorMessage: message }
}

const CODES: { readonly [code in ErrorCode]?: KafkaErrorName } = {
  // The broker goes. Clients look for another controller, and find this one once it is back.
  CLOSED: 'NOT_CONTROLLER',
  INVALID_TOPIC: 'INVALID_TOPIC_EXCEPTION',
  OUTCOME_UNKNOWN: 'KAFKA_STORAGE_ERROR',
  STORAGE_ERROR: 'KAFKA_STORAGE_ERROR',
  STORAGE_FULL: 'KAFKA_STORAGE_ERROR',
  TOPIC_EXISTS: 'TOPIC_ALREADY_EXISTS',
  UNKNOWN_TOPIC: 'UNKNOWN_TOPIC_OR_PARTITION',
  UNSUPPORTED: 'INVALID_CONFIG',
}

/** `invalid`: what an argument that the broker refuses is here. @throws what is a fault of ours */
export function outcomeOf(error: unknown, invalid: KafkaErrorName = 'INVALID_CONFIG'): Outcome {
  if (error instanceof Refusal) return error.outcome
  const code = error instanceof OdradekError ? error.code : undefined
  const name = code === 'INVALID_ARGUMENT' ? invalid : code && CODES[code]
  if (name === undefined) throw error
  return refused(name, (error as OdradekError).message)
}

/**
 * What comes of `work`, or of its being late: then it goes on all the same. A client that gives no time waits for as
 * long as it takes.
 */
export function within<T>(
  { due, clock }: CoreContext,
  timeoutMs: number,
  work: Promise<T>,
  late: (outcome: Outcome) => T,
): Promise<T> {
  if (timeoutMs <= 0) return work
  return new Promise((resolve, reject) => {
    const timeout = new DueCallback(() =>
      resolve(late(refused('REQUEST_TIMED_OUT', `not done after ${timeoutMs} ms; it goes on`))),
    )
    due.schedule(timeout, clock.monotonic() + timeoutMs)
    work.finally(() => due.cancel(timeout)).then(resolve, reject)
  })
}

/** What is there more than once. */
export function repeated<T>(all: readonly T[]): Set<T> {
  const seen = new Set<T>()
  const twice = new Set<T>()
  for (const each of all) {
    if (seen.has(each)) twice.add(each)
    seen.add(each)
  }
  return twice
}
