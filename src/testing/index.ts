/** `odradek/testing`: what users and we ourselves test with. */

export {
  type CloseEvent,
  type CommitEvent,
  type CrashEvent,
  type DeadLetterEvent,
  type DeliverEvent,
  type DeliveredRecord,
  type DrainedEvent,
  type DropEvent,
  type EvictEvent,
  type FailEvent,
  type GroupEvent,
  type GroupRules,
  History,
  type HistoryEvent,
  type HistoryJSON,
  type LeaveEvent,
  type PollEvent,
  type PolledRecord,
  type PollOkEvent,
  type ResetEvent,
  type ResetOkEvent,
  type ScanEvent,
  type ScannedRecord,
  type ScanOkEvent,
  type SeekEvent,
  type SendEvent,
  type SendOkEvent,
  type SettleEvent,
  type Settlement,
  type Token,
  type UnknownEvent,
} from './history.ts'
export { ANOMALY_KINDS, type Anomaly, type AnomalyKind, type AnomalyPlace } from './history-anomalies.ts'
export { type CheckOptions, checkHistory } from './history-checks.ts'
export { type ConformanceCase, type LogConformanceOptions, logConformance } from './log-conformance.ts'
export { ManualClock, type ManualClockOptions } from './manual-clock.ts'
