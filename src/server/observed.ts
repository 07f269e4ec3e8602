/** What becomes of a request, for interceptors that look on: its answer or its error, and how long it took. */
import type { Clock } from '../model/clock.ts'
import type { Answer } from './handler.ts'

/** `error`: undefined where it was answered; else there is no response, and the connection is closed. */
export type Tell = (response: unknown, error: unknown, durationMs: number) => void

/** Answers what `next` does, once `tell` has heard of it. */
export function observed(
  next: () => Answer<unknown>,
  clock: Pick<Clock, 'monotonic'>,
  tell: Tell,
): Answer<unknown> {
  const since = clock.monotonic()
  const answered = (response: unknown): unknown => {
    tell(response, undefined, clock.monotonic() - since)
    return response
  }
  const failed = (error: unknown): never => {
    tell(null, error, clock.monotonic() - since)
    throw error
  }
  let answer: Answer<unknown>
  try {
    answer = next()
  } catch (error) {
    return failed(error)
  }
  return answer instanceof Promise ? answer.then(answered, failed) : answered(answer)
}
