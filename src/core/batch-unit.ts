/**
 * A batch in the hands of one handler: records of one partition, in one place, with one timeout. Its
 * records settle one by one or together; the place is free when the last one has.
 */

import { type Columns, Slice } from '../model/batch.ts'
import type { Delivery, DeliveryBatch, NackOptions } from '../model/delivery.ts'
import { BatchError, messageOf } from '../model/errors.ts'
import type { Cursor } from './cursor.ts'
import { type DeliveryRecord, GATHERED, IN_FLIGHT, nackOf, READY } from './delivery.ts'
import type { Dispatcher } from './dispatcher.ts'
import { Due } from './due-queue.ts'
import { HandlerSignal } from './handler-signal.ts'
import type { Member } from './member.ts'
import { isConsumed, needsLook, recordOf } from './row.ts'
import type { BatchSettings } from './settings.ts'
import type { Slot } from './slot.ts'

export class BatchUnit<T = unknown> implements DeliveryBatch<T> {
  readonly topic: string
  readonly partition: number
  readonly deliveries: readonly Delivery<T>[]
  /** Records not settled yet. */
  open: number
  slot: Slot | null = null
  readonly #signal = new HandlerSignal()

  constructor(deliveries: readonly DeliveryRecord<T>[]) {
    const first = deliveries[0] as DeliveryRecord<T>
    this.topic = first.topic
    this.partition = first.partition
    this.deliveries = deliveries
    this.open = deliveries.length
  }

  get length(): number {
    return this.deliveries.length
  }

  get signal(): AbortSignal {
    return this.#signal.signal
  }

  [Symbol.iterator](): IterableIterator<Delivery<T>> {
    return this.deliveries[Symbol.iterator]() as IterableIterator<Delivery<T>>
  }

  ack(): number {
    return this.#each((record) => record.cursor.reader.settle.conclude(record))
  }

  nack(options?: NackOptions): number {
    const { reason, delayMs } = nackOf(options)
    return this.#each((record) => record.cursor.reader.settle.conclude(record, reason, delayMs))
  }

  #each(settle: (record: DeliveryRecord) => boolean): number {
    let settled = 0
    for (const record of this.deliveries as readonly DeliveryRecord[]) {
      if (record.state === IN_FLIGHT && settle(record)) settled++
    }
    return settled
  }

  /** The handler threw: a BatchError says how far it came. */
  failed(error: unknown): void {
    const index = batchIndexOf(error)
    if (!Number.isInteger(index) || index < 0 || index >= this.length) {
      this.nack({ reason: messageOf(error) })
      return
    }
    // Before the first record settles: what an error says of itself is its maker's code.
    const reason = messageOf((error as BatchError).cause ?? error)
    const records = this.deliveries as readonly DeliveryRecord[]
    for (let i = 0; i < records.length; i++) {
      const record = records[i] as DeliveryRecord
      if (record.state !== IN_FLIGHT) continue
      const { settle } = record.cursor.reader
      if (i < index) settle.conclude(record)
      else if (i === index) settle.conclude(record, reason)
      else {
        settle.release(record)
        this.recordSettled()
      }
    }
  }

  /** It expired, or one of its records was taken away. */
  abort(reason: string, dispatcher: Dispatcher): void {
    this.#signal.abort(reason, dispatcher)
  }

  recordSettled(): void {
    if (--this.open === 0) this.slot?.workSettled()
  }
}

/** Where a BatchError points; NaN for anything else, also for what throws when it is looked at. */
function batchIndexOf(error: unknown): number {
  try {
    return error instanceof BatchError ? error.index : Number.NaN
  } catch {
    return Number.NaN
  }
}

/** Waits, for `maxWaitMs` at most, until there are enough new records for a full batch. */
export class BatchLinger extends Due {
  readonly #cursor: Cursor
  #over = false
  #marked = false

  constructor(cursor: Cursor) {
    super()
    this.#cursor = cursor
  }

  /** Whether a batch of `most` should wait for more than the `available` records. */
  holds(available: number, most: number, maxWaitMs: number): boolean {
    if (available >= most || maxWaitMs === 0) {
      this.#stop()
      return false
    }
    if (this.#over) return false
    if (this.heapIndex < 0) {
      const { clock, due, dispatcher } = this.#cursor.reader.ctx
      dispatcher.activate()
      due.schedule(this, clock.monotonic() + maxWaitMs)
    }
    return true
  }

  override fire(): void {
    this.#over = true
    this.#cursor.reader.ctx.dispatcher.deactivate()
    this.#cursor.pump.wakeFromIdle()
  }

  /** Whether another mark may be stored for this batch: once, or it would wait for whatever comes meanwhile. */
  asksForMark(): boolean {
    if (this.#marked) return false
    this.#marked = true
    return true
  }

  /** The batch is given, or there is none: the next one begins anew. */
  cancel(): void {
    this.#over = false
    this.#marked = false
    this.#stop()
  }

  #stop(): void {
    if (this.heapIndex < 0) return
    const { due, dispatcher } = this.#cursor.reader.ctx
    due.cancel(this)
    dispatcher.deactivate()
  }
}

const slice = new Slice()

/**
 * Gathers a batch for `member`: redeliveries that are ready, then new records, as far as order allows.
 * Records of one key may follow each other within a batch. Empty when nothing could be taken.
 */
export function gather(cursor: Cursor, member: Member): DeliveryRecord[] {
  const settings = member.settings.batch as BatchSettings
  const most = Math.min(settings.records, member.credit)
  const records: DeliveryRecord[] = []
  if (takeReady(cursor, most, records)) {
    while (records.length < most) {
      if (cursor.peek(most - records.length, slice) !== 'hit') break
      const { columns, row, count, next } = slice
      for (let i = row; i < row + count; i++) {
        const record = takeRow(cursor, columns, i)
        if (record !== undefined) records.push(record)
      }
      cursor.passTo(next)
    }
  }
  return records
}

/** Moves what is ready into a batch. Answers whether order lets new records follow. */
function takeReady(cursor: Cursor, most: number, into: DeliveryRecord[]): boolean {
  const { byPartition, ready, window } = cursor
  if (!byPartition) {
    while (into.length < most && ready.length > 0) {
      const record = ready.shift() as DeliveryRecord
      if (record.state === READY && !cursor.waitsForMate(record)) into.push(record)
    }
    return true
  }
  for (const record of window) {
    if (record.state !== READY || into.length === most) return false
    into.push(record)
  }
  return true
}

/** Takes a row if order allows: enters it into the window and its key's chain. */
function takeRow(cursor: Cursor, columns: Columns, row: number): DeliveryRecord | undefined {
  const offset = columns.offsetAt(row)
  if (isConsumed(cursor, columns, row, offset, needsLook(cursor, columns))) return undefined
  const record = recordOf(cursor, columns, row, offset)
  record.state = GATHERED
  cursor.window.enter(record, offset)
  if (cursor.byKey) cursor.chains.add(record)
  return record
}
