/**
 * How deliveries end. Each of these takes a delivery that is in flight, changes its state once, and
 * leaves window, counters, slot and cursor in agreement. User code never runs in here.
 *
 * A record that comes back (nack, expiry, release) gets a successor object in the same place of the
 * window; the old object is fenced.
 */
import { MAX_NACK_DELAY_MS } from '../model/limits.ts'
import { backoffMs } from './backoff.ts'
import type { CoreContext } from './context.ts'
import type { MutableCounters } from './counters.ts'
import { DEAD, DeliveryRecord, FENCED, HELD, IN_FLIGHT, RETRY, SETTLED } from './delivery.ts'
import { dropIfPassed } from './drop.ts'
import { Due } from './due-queue.ts'
import type { Member } from './member.ts'
import type { Reader } from './reader.ts'

class RetryDue extends Due {
  readonly record: DeliveryRecord

  constructor(record: DeliveryRecord) {
    super()
    this.record = record
  }

  override fire(): void {
    const { record } = this
    record.more().due = null
    record.cursor.reader.ctx.dispatcher.deactivate()
    record.cursor.retryIsDue(record)
  }
}

export class Settle {
  readonly #reader: Reader
  readonly #ctx: CoreContext

  constructor(reader: Reader) {
    this.#reader = reader
    this.#ctx = reader.ctx
  }

  ack(record: DeliveryRecord): boolean {
    if (this.#reader.atMostOnce) return false
    record.cursor.ends(record)
    record.state = SETTLED
    this.#countersOf(record).acked++
    // Its place first: another cursor that waits for it is asked before this one, which would take it for ever.
    this.#endWork(record)
    record.cursor.leave(record)
    return true
  }

  nack(record: DeliveryRecord, reason: string, delayMs: number | undefined): boolean {
    const reader = this.#reader
    if (reader.atMostOnce) return false
    this.#countersOf(record).nacked++
    const { retry } = reader.settings
    if (record.attempt >= retry.attempts) this.#fail(record, reason)
    else {
      const wait =
        delayMs === undefined
          ? backoffMs(record.attempt, retry, this.#ctx.random)
          : Math.min(Math.max(delayMs, 0), MAX_NACK_DELAY_MS)
      this.#comeBack(record, record.attempt + 1, wait)
    }
    this.#endWork(record)
    return true
  }

  /** Done (`failure` undefined) or failed, as the reader's guarantee understands it. */
  conclude(record: DeliveryRecord, failure?: string, delayMs?: number): boolean {
    if (this.#reader.atMostOnce) {
      this.#finish(record, failure)
      return true
    }
    return failure === undefined ? this.ack(record) : this.nack(record, failure, delayMs)
  }

  /** To the dead letters, whatever the attempt. */
  reject(record: DeliveryRecord, reason: string): boolean {
    if (this.#reader.atMostOnce) return false
    this.#fail(record, reason)
    this.#endWork(record)
    return true
  }

  /** The deadline passed. The slot is the member's to free. */
  expire(record: DeliveryRecord): void {
    const reader = this.#reader
    const member = record.member as Member
    member.counters.expired++
    const reason = `not settled within ${member.settings.ackTimeoutMs} ms`
    record.abort(reason)
    if (reader.atMostOnce) this.#drop(record, reason)
    else if (record.attempt >= reader.settings.retry.attempts) this.#fail(record, reason)
    else {
      const successor = this.#comeBack(record, record.attempt + 1, 0)
      if (successor !== undefined) successor.more().avoid = member
    }
  }

  /** Goes back as if it had not been handed out; only `redelivered` tells. The slot is the caller's. */
  release(record: DeliveryRecord): void {
    const reason = 'its subscription ended'
    record.abort(reason)
    if (this.#reader.atMostOnce) this.#drop(record, reason)
    else this.#comeBack(record, record.attempt, 0)
  }

  /** The deadline is `ms` from now; while the handler is on the stack, for the slot that it may get. */
  extend(record: DeliveryRecord, ms: number): boolean {
    if (!(ms > 0)) return false
    const deadlineAt = this.#ctx.clock.monotonic() + ms
    if (record.slot === null) record.more().deadlineAt = deadlineAt
    else record.slot.member.extend(record.slot, deadlineAt)
    return true
  }

  /** At-most-once: the commit came first, so the outcome only counts. */
  #finish(record: DeliveryRecord, failure: string | undefined): void {
    record.cursor.ends(record)
    record.state = SETTLED
    if (failure === undefined) {
      this.#countersOf(record).acked++
    } else this.#skipped(record, failure)
    this.#endWork(record)
    record.cursor.leave(record)
  }

  /** A record that must not reach a handler: it is dead on arrival. */
  failUnseen(record: DeliveryRecord, reason: string): void {
    if (this.#reader.atMostOnce) this.#finish(record, reason)
    else this.#fail(record, reason)
  }

  #drop(record: DeliveryRecord, reason: string): void {
    record.cursor.ends(record)
    record.state = FENCED
    this.#skipped(record, reason)
    record.cursor.leave(record)
  }

  /** Slots are used again: a record lets go of its own when its work ends. */
  #endWork(record: DeliveryRecord): void {
    const { slot } = record
    if (slot === null) return
    record.slot = null
    if (slot.batch !== null) slot.batch.recordSettled()
    else slot.workSettled()
  }

  /** Another delivery, now or after `delayMs`. Undefined when overflow has passed it meanwhile. */
  #comeBack(record: DeliveryRecord, attempts: number, delayMs: number): DeliveryRecord | undefined {
    const { cursor } = record
    cursor.ends(record)
    record.state = FENCED
    const successor = new DeliveryRecord(cursor, record.columns, record.row, attempts)
    const more = successor.more()
    more.redelivered = true
    cursor.succeed(record, successor)
    if (dropIfPassed(cursor, successor)) return undefined
    if (delayMs > 0) more.notBefore = this.#ctx.clock.monotonic() + delayMs
    if (cursor.isHeldBack(successor)) successor.state = HELD
    else this.next(successor)
    cursor.mateReturned(successor)
    return successor
  }

  /** It is a record's turn: now, or when its pause is over. */
  next(record: DeliveryRecord): void {
    const { cursor, extra } = record
    const { clock, dispatcher, due } = this.#ctx
    if (extra === null || extra.notBefore <= 0 || extra.notBefore <= clock.monotonic()) {
      cursor.becomesReady(record)
      return
    }
    record.state = RETRY
    extra.due = new RetryDue(record)
    cursor.retrying++
    dispatcher.activate()
    due.schedule(extra.due, extra.notBefore)
  }

  /** Cancels what is due for a record that leaves the window otherwise. */
  cancelRetry(record: DeliveryRecord): void {
    const due = record.extra?.due ?? null
    if (due === null) return
    this.#ctx.due.cancel(due)
    record.more().due = null
    record.cursor.retrying--
    this.#ctx.dispatcher.deactivate()
  }

  /** Failed for good: the dead letter is appended before the record settles. */
  #fail(record: DeliveryRecord, reason: string): void {
    const { cursor } = record
    cursor.ends(record)
    const target = this.#reader.deadLetterName(cursor.partition.topic)
    if (target === undefined) {
      record.state = SETTLED
      this.#skipped(record, reason)
      cursor.leave(record)
      return
    }
    record.state = DEAD
    this.#ctx.dispatcher.activate()
    this.#reader.deadLetters.send(record, target, reason, () => {
      this.#ctx.dispatcher.deactivate()
      if (record.state !== DEAD) return
      record.state = SETTLED
      this.#countersOf(record).deadLettered++
      this.#raise(record, reason, target)
      cursor.leave(record)
      this.#ctx.dispatcher.schedule()
    })
  }

  #skipped(record: DeliveryRecord, reason: string): void {
    this.#countersOf(record).skipped++
    this.#raise(record, reason, null)
  }

  #countersOf(record: DeliveryRecord): MutableCounters {
    return record.member === null ? this.#reader.orphaned : record.member.counters
  }

  #raise(record: DeliveryRecord, reason: string, deadLetterTopic: string | null): void {
    this.#ctx.events.raise('deadLetter', {
      topic: record.topic,
      partition: record.partition,
      offset: record.offset,
      reader: this.#reader.name,
      attempts: record.attempt,
      reason,
      deadLetterTopic,
    })
  }

  /** A replay or a rebalance: what is in flight settles nothing any more. */
  fence(record: DeliveryRecord, reason: string): void {
    const inFlight = record.state === IN_FLIGHT
    this.cancelRetry(record)
    record.cursor.ends(record)
    record.state = FENCED
    if (!inFlight) return
    record.abort(reason)
    this.#endWork(record)
  }
}
