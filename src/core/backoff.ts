/** How long a failed delivery waits before the next attempt: doubling, capped, and partly random. */

/** Doublings after which every delay has met its cap; keeps the power finite. */
const MAX_DOUBLINGS = 52

/**
 * Milliseconds to wait after `attempt` (from 1) failed: `delayMs` doubled each time, at most `maxDelayMs`, of
 * which a share of up to `jitter` is taken off at random, so that what failed together does not return
 * together. `random` answers from 0 (included) to 1 (excluded).
 */
export function backoffMs(
  attempt: number,
  retry: { readonly delayMs: number; readonly maxDelayMs: number; readonly jitter: number },
  random: () => number,
): number {
  const doubled = retry.delayMs * 2 ** Math.min(attempt - 1, MAX_DOUBLINGS)
  return Math.min(doubled, retry.maxDelayMs) * (1 - retry.jitter * random())
}
