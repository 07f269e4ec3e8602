/**
 * The checker of histories: one pass over the events for the facts, then judgement. About linear in the
 * number of events; two microseconds each.
 *
 *   History ──► LogChecks ─────► facts per offset ──► judged by themselves
 *         └───► GroupChecks ──► cursors ───────────► judged against those facts
 *
 * What the events mean is said in history.ts, what the anomalies mean in history-anomalies.ts. The checker
 * finds only what the history shows: a promise about which nothing was recorded is not checked.
 */
import { assert } from '../model/errors.ts'
import type { EventHandlers, History, HistoryEvent } from './history.ts'
import { type Anomaly, Findings } from './history-anomalies.ts'
import { GroupChecks } from './history-groups.ts'
import { LogChecks } from './history-log.ts'

export interface CheckOptions {
  /** Anomalies of one kind that are reported, at most. Default 100. */
  readonly maxPerKind?: number
}

/** Every anomaly in a history, in the order of the events that show it; empty when it is sound. */
export function checkHistory(history: History, options: CheckOptions = {}): Anomaly[] {
  const { events } = history
  const found = new Findings(options.maxPerKind ?? 100)
  const log = new LogChecks(events, found)
  const groups = new GroupChecks(events, log, found)
  const ended = new Uint8Array(events.length)
  for (const event of events) {
    if ('of' in event && event.type !== 'settle') {
      assert(ended[event.of] === 0, `event ${event.index} ends event ${event.of} a second time`)
      ended[event.of] = 1
    }
    handle(log.handlers, event)
    handle(groups.handlers, event)
  }
  log.finish()
  groups.finish()
  return found.list()
}

function handle(handlers: EventHandlers, event: HistoryEvent): void {
  const handler = handlers[event.type] as ((event: HistoryEvent) => void) | undefined
  handler?.(event)
}
