/** What can be looked at: descriptions, metrics and events. Plain data, safe to serialise. */

import type { OdradekError } from './errors.ts'
import type { Assignment, Guarantee, Order, Overflow } from './options.ts'

export interface PartitionDescription {
  readonly partition: number
  readonly start: number
  readonly stable: number
  readonly high: number
  readonly end: number
  readonly records: number
  readonly sizeBytes: number
  /** Publishers waiting for room. */
  readonly waiting: number
}

export interface CursorDescription {
  readonly topic: string
  readonly partition: number
  readonly committed: number
  /** Next offset to be handed out for the first time. */
  readonly next: number
  readonly lag: number
  readonly inFlight: number
  /** Waiting for another attempt. */
  readonly retrying: number
  /** Member that owns the partition, for partition-assigned groups. */
  readonly owner: string | null
  /** Whether it holds the log. */
  readonly gating: boolean
}

export interface MemberDescription {
  readonly id: string
  readonly inFlight: number
  readonly zombies: number
  readonly paused: boolean
  readonly counters: Counters
}

export interface ReaderDescription {
  /** Id of a broadcast reader (a made-up one when anonymous), or the group's name. */
  readonly name: string
  /** `classic`: a group of Kafka's protocol, whose members are not of this process. */
  readonly kind: 'broadcast' | 'share' | 'consumer' | 'classic'
  readonly durable: boolean
  readonly assignment: Assignment | null
  readonly overflow: Overflow
  readonly order: Order
  readonly guarantee: Guarantee
  readonly generation: number
  readonly members: readonly MemberDescription[]
  readonly cursors: readonly CursorDescription[]
  readonly counters: Counters
}

export interface TopicDescription {
  readonly name: string
  readonly id: string
  readonly retention: { readonly records: number; readonly bytes: number; readonly ageMs: number }
  readonly partitions: readonly PartitionDescription[]
  readonly pressure: number
  readonly readers: readonly ReaderDescription[]
}

/** Counts since the reader (or member) came to be. Each delivered record ends in exactly one of the outcomes. */
export interface Counters {
  readonly delivered: number
  readonly acked: number
  readonly nacked: number
  readonly redelivered: number
  readonly expired: number
  readonly deadLettered: number
  /** Failed for good and skipped, where `deadLetter` is false or the guarantee is at-most-once. */
  readonly skipped: number
  /** Never delivered, by overflow policy or because retention overtook the reader. */
  readonly dropped: number
  /** Handlers that outlived their delivery and have not returned. */
  readonly zombies: number
}

export interface HistogramSnapshot {
  readonly count: number
  readonly minMs: number
  readonly maxMs: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p90Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

export interface TopicMetrics extends TopicDescription {
  readonly published: number
  readonly publishedBytes: number
  readonly duplicates: number
  /** Sampled: from the call of `publish` to acceptance. */
  readonly publishLatency: HistogramSnapshot
}

export interface ReaderMetrics extends ReaderDescription {
  /** Sampled: how long handlers take. */
  readonly handleLatency: HistogramSnapshot
}

export interface MetricsSnapshot {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly topics: readonly TopicMetrics[]
  readonly readers: readonly ReaderMetrics[]
}

export interface BrokerEvents {
  /** A record failed for good. `deadLetterTopic` is null where it was only counted. */
  deadLetter: {
    topic: string
    partition: number
    offset: number
    reader: string
    attempts: number
    reason: string
    deadLetterTopic: string | null
  }
  /** Records a reader will never see, or dead letters evicted before a redrive. Coalesced. */
  dropped: {
    topic: string
    partition: number
    reader: string | null
    count: number
    from: number
    to: number
    reason: 'drop-oldest' | 'drop-newest' | 'overtaken' | 'dead-letter-evicted'
  }
  pressure: { topic: string; pressure: number }
  drain: { topic: string; pressure: number }
  /** `reason`: publishers wait and nothing settles, or every slot of a member is held by a zombie. */
  stalled: { topic: string; partition: number; reader: string; reason: 'publishers-waiting' | 'zombies' }
  rebalance: {
    group: string
    generation: number
    assignment: { readonly [member: string]: readonly { topic: string; partition: number }[] }
  }
  /** A failure nobody awaits. Without a listener it is logged. */
  error: { error: OdradekError | Error; context: string }
  topicCreated: { topic: string; topicId: string }
  topicDeleted: { topic: string; topicId: string }
}

/** Where diagnostics go: pino's shape, so pino fits; `console` is accepted too. */
export interface Logger {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
