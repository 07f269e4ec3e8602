/**
 * `odradek/testing`: what users and we ourselves test with. The log contract is here too, for whoever writes
 * an engine and runs the conformance suite on it.
 */

export {
  type Appended,
  type At,
  type BatchCodecs,
  type ByteSlice,
  type Cleanup,
  type Engine,
  type Isolation,
  LOG_CLOSED,
  LOG_POISONED,
  LOG_STORAGE_FULL,
  type LogSpec,
  type Marks,
  type Meta,
  type MetaChange,
  NO_ROOM,
  type PartitionLog,
  type PeekResult,
  PoisonValue,
  type ProducerView,
  type Refusal,
  type RetentionLimits,
  type RoomMode,
} from '../log/contract.ts'
export { type Batch, Columns, type ProducerInfo, Slice } from '../model/batch.ts'
export {
  Fault,
  type FaultMatch,
  type FaultOptions,
  Faults,
  KAFKA_ERRORS,
  type KafkaErrorName,
  type ObservedRequest,
} from '../server/faults.ts'
export {
  type AtCursor,
  type AtPartition,
  type CloseEvent,
  type CommitEvent,
  type Completion,
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
  type Indexed,
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
export {
  type Capability,
  type ConformanceCase,
  type LogConformanceOptions,
  logConformance,
  type ProcessEnd,
} from './log-conformance.ts'
export { ManualClock, type ManualClockOptions } from './manual-clock.ts'
export { startTestServer, TestServer, type TestServerOptions } from './test-server.ts'
