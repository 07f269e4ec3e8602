/** Time that a request takes and no work fills: an answer that is to be late. */
import type { DueQueue } from '../core/due-queue.ts'

/** Resolves after so long, or when `signal` aborts: then nobody waits any more. */
export function pause(due: DueQueue, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      due.cancel(waiting)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const waiting = due.after(delayMs, end)
    signal.addEventListener('abort', end)
  })
}
