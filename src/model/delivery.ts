/** One record, or one batch, in the hands of one handler. It settles once. */
import type { Published, PublishOptions } from './options.ts'
import type { LogRecord } from './record.ts'

export interface Delivery<T = unknown> extends LogRecord<T> {
  /** Which delivery of this record it is, from 1. */
  readonly attempt: number
  /** Whether the record was handed out before, for whatever reason. */
  readonly redelivered: boolean
  /** Aborts when the delivery expires, is fenced by a replay or a rebalance, or its subscription ends. */
  readonly signal: AbortSignal
  /** Settles it as done. `false`: it was settled or fenced before, and nothing happened. */
  ack(): boolean
  /** Gives it back for another attempt, after the backoff or `delayMs` (capped). */
  nack(options?: NackOptions): boolean
  /** Sends it to the dead letters at once. */
  reject(reason?: string): boolean
  /** Moves its deadline to `ms` milliseconds from now. */
  extend(ms: number): boolean
  /**
   * Publishes with the trace context of this record, exempt from this reader's own gate, so that a
   * pipeline cannot wait for itself.
   */
  publish(topic: string, value: unknown, options?: PublishOptions): Promise<Published>
}

export interface NackOptions {
  readonly delayMs?: number
  readonly reason?: string
}

/** A run of records of one partition, handed over together: one slot, one timeout. */
export interface DeliveryBatch<T = unknown> extends Iterable<Delivery<T>> {
  readonly topic: string
  readonly partition: number
  readonly length: number
  readonly deliveries: readonly Delivery<T>[]
  readonly signal: AbortSignal
  /** Settle all that is not settled yet; how many took effect. */
  ack(): number
  nack(options?: NackOptions): number
}
