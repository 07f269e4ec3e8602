/**
 * Waiting for what is in flight, for a while: shared by the close of a subscription and of the broker. The process
 * stays meanwhile, or whoever awaits the close would never hear of it.
 */
import type { CoreContext } from '../core/context.ts'
import { nonNegative } from '../core/settings.ts'
import { DEFAULT_DRAIN_MS } from '../model/limits.ts'
import type { CloseOptions } from '../model/options.ts'

/** Resolves with `settled`, after `drainMs`, or when the signal aborts, whatever comes first. */
export function drained(ctx: CoreContext, settled: Promise<void>, options: CloseOptions): Promise<void> {
  const drainMs = nonNegative('drainMs', options.drainMs, DEFAULT_DRAIN_MS)
  const { signal } = options
  if (drainMs === 0 || signal?.aborted === true) return Promise.resolve()
  ctx.dispatcher.activate()
  return new Promise<void>((resolve, reject) => {
    const timer = ctx.due.after(drainMs, done)
    function done(): void {
      ctx.due.cancel(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    signal?.addEventListener('abort', done, { once: true })
    settled.then(done, reject)
  }).finally(() => ctx.dispatcher.deactivate())
}
