/**
 * What callers hand in and get back: the public shapes of topics, publishing and subscribing. Names are
 * the contract; defaults stand beside them and live in limits.ts.
 */

import type { Delivery, DeliveryBatch } from './delivery.ts'
import type { HeadersInit, Key, LogRecord } from './record.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'
import type { ValueCodec } from './value-codec.ts'

// ── topics ──────────────────────────────────────────────────────────────────────────────────────

export interface Retention {
  /**
   * Records kept per partition, in a compacted topic their offsets; Infinity for no limit. Default 65,536 in memory, no
   * limit on disk.
   */
  readonly records?: number
  /** Bytes kept per partition, in memory nominal; Infinity for no limit. Default 256 MiB in memory, 1 GiB on disk. */
  readonly bytes?: number
  /** Milliseconds a record is kept. Default: no limit. */
  readonly ageMs?: number
}

export interface DedupeOptions {
  /** Milliseconds an id is remembered. Default 120,000. */
  readonly windowMs?: number
  /** Ids remembered at most. Default 100,000. */
  readonly records?: number
}

export interface TopicOptions<T = unknown> {
  /** Default 1. Grows by `alterTopic`, never shrinks. */
  readonly partitions?: number
  readonly retention?: Retention
  /**
   * `delete`: the oldest records give way to retention. `compact`: of each key only the newest record is kept, in the
   * long run, so every record needs a key, and `null` deletes it; retention has no limits unless they are given, and
   * then holds besides. Not in memory. Default `delete`.
   */
  readonly cleanup?: 'delete' | 'compact'
  /** Milliseconds that a compacted topic keeps a tombstone, for readers that are behind. Default a day. */
  readonly deleteRetentionMs?: number
  /** Any Standard Schema v1 (zod, valibot, arktype), synchronous. Its output is what is stored. */
  readonly schema?: StandardSchemaV1<unknown, T>
  readonly dedupe?: DedupeOptions | boolean
  /** How values become bytes where bytes are needed: in memory seldom, elsewhere in `publish`. */
  readonly codec?: ValueCodec
  /** In memory, nominal bytes of a value that is neither string nor bytes. Default: a flat 256. */
  readonly sizeOf?: (value: T) => number
  /** Publishers that may wait for room, in number and nominal bytes. Default 10,000 and 64 MiB. */
  readonly maxWaiting?: { readonly records?: number; readonly bytes?: number }
  /** Milliseconds a publish waits for room before TIMEOUT. Default 30,000. */
  readonly publishTimeoutMs?: number
}

/** What `alterTopic` may change. */
export interface TopicChanges {
  readonly partitions?: number
  readonly retention?: Retention
}

// ── publishing ──────────────────────────────────────────────────────────────────────────────────

export interface PublishOptions {
  readonly key?: Key | null
  readonly headers?: HeadersInit
  readonly partition?: number
  /** For dedupe, and as the record's `id`. */
  readonly id?: string
  /** Ends the wait for room. After the append it has no effect. */
  readonly signal?: AbortSignal
}

export interface PublishEntry<T = unknown> extends Omit<PublishOptions, 'signal'> {
  readonly value: T
}

/** Where a record went. */
export interface Position {
  readonly partition: number
  readonly offset: number
}

export interface Published extends Position {
  /** Present and true when `id` was seen before: this is the first one's position. */
  readonly duplicate?: true
}

// ── subscribing ─────────────────────────────────────────────────────────────────────────────────

/** Where a new reader starts, or a replay goes. A number is an offset, and only for one partition. */
export type StartPosition = 'earliest' | 'latest' | Date | number | { readonly [partition: number]: number }

export type Overflow = 'wait' | 'reject' | 'drop-oldest' | 'drop-newest'
export type Order = 'partition' | 'key' | 'none'
export type Guarantee = 'at-least-once' | 'at-most-once'
export type Assignment = 'shared' | 'range' | 'round-robin' | 'sticky'
export type AckMode = 'auto' | 'manual'

export interface RetryOptions {
  /** Deliveries in all, the first included. Default 5. */
  readonly attempts?: number
  /** Milliseconds before the second delivery; doubles each time. Default 50. */
  readonly delayMs?: number
  /** Default 1,000. */
  readonly maxDelayMs?: number
  /** Share of the delay that is random, 0 to 1. Default 0.2. */
  readonly jitter?: number
}

/** One member as a delivery strategy sees it. */
export interface MemberView {
  readonly id: string
  readonly weight: number
  /** Deliveries in its hands now. */
  readonly inFlight: number
  readonly concurrency: number
  /** Whether it could take a record right now. */
  readonly free: boolean
}

/**
 * Decides which member of a shared group gets a record. `members` are those that could take it now (never
 * empty); `state.all` has the busy ones too. Choosing a busy member, or `'hold'`, sets the record aside
 * until somebody has room; later records go on meanwhile, as far as the group's order allows.
 */
export interface DeliveryStrategy {
  select(
    record: LogRecord,
    members: readonly MemberView[],
    state: { readonly all: readonly MemberView[]; readonly attempt: number },
  ): MemberView | 'hold'
}

export type StrategyName = 'round-robin' | 'least-in-flight' | 'weighted' | 'sticky-key'

/** What belongs to a reader: a broadcast subscription, or a group (fixed by its first member). */
export interface ReaderOptions {
  /** Default: the tail. A known reader resumes where it was. */
  readonly from?: StartPosition
  /** Default `wait` with a group or an id; without either always `drop-oldest`. */
  readonly overflow?: Overflow
  /** A tighter bound than retention, for the drop policies. */
  readonly maxLag?: { readonly records?: number; readonly bytes?: number }
  readonly guarantee?: Guarantee
  readonly order?: Order
  readonly retry?: RetryOptions
  /** Topic for records that failed for good. Default `dlq.<topic>`; `false` counts and skips them. */
  readonly deadLetter?: string | false
  /** Groups only. Default `shared`. */
  readonly assignment?: Assignment
  /** Shared groups only. Default `round-robin`. */
  readonly strategy?: StrategyName | DeliveryStrategy
  /** Milliseconds a gating reader without members still holds the log. Default 30,000. */
  readonly graceMs?: number
}

/** What belongs to one member. */
export interface MemberOptions {
  /** A broadcast reader with an id is durable; in a group it names the member. */
  readonly id?: string
  readonly ack?: AckMode
  /** Milliseconds a delivery may stay unsettled. Default 30,000. */
  readonly ackTimeoutMs?: number
  /** Deliveries in hand at once, over all partitions. Default 1. */
  readonly concurrency?: number
  /** `auto` receives as it has room; `manual` receives what `request(n)` allows. Default `auto`. */
  readonly credit?: 'auto' | 'manual'
  /** For the `weighted` strategy. Default 1. */
  readonly weight?: number
  /** Ends the subscription (as `close()`) when aborted. */
  readonly signal?: AbortSignal
}

export interface SubscribeOptions extends ReaderOptions, MemberOptions {
  readonly group?: string
}

export interface BatchSubscribeOptions extends SubscribeOptions {
  /** Records per call, at most, from one partition; `maxWaitMs` (default 0) waits for a batch to fill. */
  readonly batch: number | { readonly records: number; readonly maxWaitMs?: number }
}

export type Handler<T = unknown> = (delivery: Delivery<T>) => unknown
export type BatchHandler<T = unknown> = (batch: DeliveryBatch<T>) => unknown

/** A subscriber as an object. With automatic acks, `false` (also a promise of it) is a nack. */
export interface Subscriber<T = unknown> {
  onMessage(delivery: Delivery<T>): unknown
}
export interface BatchSubscriber<T = unknown> {
  onMessage(batch: DeliveryBatch<T>): unknown
}

export interface StreamOptions extends ReaderOptions {
  readonly id?: string
  readonly group?: string
  readonly ackTimeoutMs?: number
  readonly signal?: AbortSignal
}

/** Names a reader where a bare string could be several: a broadcast or member id, or a group. */
export type ReaderRef = string | { readonly id: string } | { readonly group: string }

export interface RedriveOptions {
  /** Records to send back, at most. Default: all there are now. */
  readonly limit?: number
  readonly filter?: (record: LogRecord) => boolean
  /** Records per second, at most. */
  readonly rate?: number
  /** Hand the copy to every reader of the original topic, not only to the one that failed. */
  readonly toAll?: boolean
  readonly signal?: AbortSignal
}

export interface CloseOptions {
  /** Milliseconds to let what is in flight settle. Default 10,000. */
  readonly drainMs?: number
  /** Ends the drain early. */
  readonly signal?: AbortSignal
}
