/**
 * A record in the hands of one handler: the implementation behind the public `Delivery`.
 *
 * One object per hand-out, never reused: a record that is delivered again gets a new one, so that whatever
 * an old handler still does with its object is fenced by the object's own state. The object points into
 * the segment's columns instead of copying fields: the common delivery is read, acked and forgotten
 * before the collector ever sees it grow old. What few deliveries need sits in `extra`.
 *
 *   READY ──► IN_FLIGHT ──► SETTLED                 acked, or failed for good and dead-lettered
 *     ▲          │ nack, expiry, release
 *     │          └──► FENCED   (this object; a successor takes its place in the window)
 *     ├── RETRY      (the successor waits for its due time)
 *     └── HELD       (waits for an earlier record of its key, or for a member)
 *                DEAD: failed for good, its dead letter is on the way
 */
import type { Columns } from '../model/batch.ts'
import type { Delivery, NackOptions } from '../model/delivery.ts'
import { messageOf } from '../model/errors.ts'
import type { Published, PublishOptions } from '../model/options.ts'
import type { Cursor } from './cursor.ts'
import type { Due } from './due-queue.ts'
import { HandlerSignal } from './handler-signal.ts'
import type { Chain } from './key-chains.ts'
import type { Member } from './member.ts'
import type { Partition } from './partition.ts'
import { RecordView } from './record-view.ts'
import { invalid } from './settings.ts'
import type { Slot } from './slot.ts'

export const READY = 0
export const IN_FLIGHT = 1
export const RETRY = 2
export const HELD = 3
export const DEAD = 4
export const SETTLED = 5
export const FENCED = 6
/** Taken for the batch that is being gathered. */
export const GATHERED = 7

/**
 * What a nack asks for, read and checked before the state is looked at: options are the caller's, and what their
 * getters do is done by then. @throws OdradekError INVALID_ARGUMENT
 */
export function nackOf(options: NackOptions | undefined): { reason: string; delayMs: number | undefined } {
  const { reason, delayMs } = options ?? {}
  if (delayMs !== undefined && typeof delayMs !== 'number') {
    throw invalid(`delayMs is a number of milliseconds; got ${typeof delayMs}`)
  }
  return { reason: messageOf(reason ?? 'nacked'), delayMs }
}

/** What only some deliveries need. */
export class Extra {
  redelivered: boolean = false
  signal: HandlerSignal | null = null
  /** The unsettled records of its key, while it is one of them. */
  chain: Chain | null = null
  /** Next record of the same key, held until this one settles. */
  nextOfKey: DeliveryRecord | null = null
  /** Not to this member, if there is another: the one it expired at. */
  avoid: Member | null = null
  /** The retry's due time, while RETRY. */
  due: Due | null = null
  /** Monotonic milliseconds at which the pause before this attempt ends; 0 for none. */
  notBefore: number = 0
  /** Asked for by `extend` while the handler was on the stack; else 0. */
  deadlineAt: number = 0
}

/** A view of its row. */
export interface DeliveryRecord<T = unknown> extends RecordView<T> {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: what the interface adds is on the prototype, see below.
export class DeliveryRecord<T = unknown> implements Delivery<T> {
  // Declared, not defined: the constructor writes each field once, which is a quarter of its cost.
  declare readonly columns: Columns
  declare readonly row: number
  declare readonly cursor: Cursor
  declare state: number
  declare member: Member | null
  declare slot: Slot | null
  declare extra: Extra | null
  declare readonly count: number

  /** `count`: which delivery of the record it is, from 1. */
  constructor(cursor: Cursor, columns: Columns, row: number, count: number) {
    this.columns = columns
    this.row = row
    this.cursor = cursor
    this.state = READY
    this.member = null
    this.slot = null
    this.extra = null
    this.count = count
  }

  get home(): Partition {
    return this.cursor.partition
  }
  get attempt(): number {
    return this.count
  }
  get redelivered(): boolean {
    return this.extra?.redelivered === true
  }
  get signal(): AbortSignal {
    return handlerSignalOf(this).signal
  }

  ack(): boolean {
    return this.state === IN_FLIGHT && this.cursor.reader.settle.ack(this)
  }
  nack(options?: NackOptions): boolean {
    const { reason, delayMs } = nackOf(options)
    return this.state === IN_FLIGHT && this.cursor.reader.settle.nack(this, reason, delayMs)
  }
  reject(reason?: string): boolean {
    const text = messageOf(reason ?? 'rejected')
    return this.state === IN_FLIGHT && this.cursor.reader.settle.reject(this, text)
  }
  extend(ms: number): boolean {
    return typeof ms === 'number' && this.state === IN_FLIGHT && this.cursor.reader.settle.extend(this, ms)
  }
  publish(topic: string, value: unknown, options?: PublishOptions): Promise<Published> {
    return this.cursor.reader.publishFrom(this, topic, value, options)
  }

  toJSON(): object {
    return { ...RecordView.prototype.toJSON.call(this), attempt: this.attempt }
  }

  more(): Extra {
    this.extra ??= new Extra()
    return this.extra
  }

  /** Tells its handler, and the batch it is part of, that it settles nothing any more. */
  abort(reason: string): void {
    const { dispatcher } = this.cursor.reader.ctx
    handlerSignalOf(this).abort(reason, dispatcher)
    this.slot?.batch?.abort(reason, dispatcher)
  }
}

// `extends` would do the same, and call a constructor from the constructor: `super()` is not inlined, and costs as much
// as all the rest of a synchronous delivery.
Object.setPrototypeOf(DeliveryRecord.prototype, RecordView.prototype)

/** Not a private method: each instance would carry the proof that it has it. */
function handlerSignalOf(record: DeliveryRecord): HandlerSignal {
  const extra = record.more()
  extra.signal ??= new HandlerSignal()
  return extra.signal
}
