/**
 * What handlers answer, by the look of it: nothing, as a rule; a promise; or something with a `then`, which is
 * somebody's code.
 */
import type { Slot } from './slot.ts'

/** Written for what handlers answer most: undefined, then promises. */
export function isThenable(result: unknown): boolean {
  return (
    typeof result === 'object' && result !== null && typeof (result as { then?: unknown }).then === 'function'
  )
}

const nativeThen = Promise.prototype.then

/**
 * The `then` of promises calls back once. Any other may do so twice, at once, or throw, and is adopted by a
 * promise of ours; what only looks like a promise has failed.
 */
export function follow(result: PromiseLike<unknown>, slot: Slot): void {
  try {
    const native = result.then === nativeThen
    const promise = native ? result : new Promise<unknown>((resolve) => resolve(result))
    void nativeThen.call(promise, slot.onResolved, slot.onRejected)
  } catch (error) {
    slot.finish(true, error)
  }
}
