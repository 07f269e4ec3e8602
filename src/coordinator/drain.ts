/**
 * Waiting for what is in flight, for a while: shared by the close of a subscription and of the broker. The process
 * stays meanwhile, or whoever awaits the close would never hear of it.
 */
import type { CoreContext } from '../core/context.ts'
import { known, nonNegative, signalOf } from '../core/settings.ts'
import { DEFAULT_DRAIN_MS } from '../model/limits.ts'
import type { CloseOptions } from '../model/options.ts'

/** How long a close waits, checked before anything is stopped: a call that is refused has changed nothing. */
export interface Drain {
  readonly drainMs: number
  readonly signal: AbortSignal | undefined
}

/** @throws OdradekError INVALID_ARGUMENT */
export function drainOf(options: CloseOptions): Drain {
  const { drainMs, signal } = known('close', options, ['drainMs', 'signal'])
  return { drainMs: nonNegative('drainMs', drainMs, DEFAULT_DRAIN_MS), signal: signalOf(signal) }
}

/** Resolves with `settled`, after `drainMs`, or when the signal aborts, whatever comes first. */
export function drained(ctx: CoreContext, settled: Promise<void>, { drainMs, signal }: Drain): Promise<void> {
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
