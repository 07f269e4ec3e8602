/**
 * One of a member's places for work that outlives the call of its handler: an asynchronous handler, or a
 * delivery that is acked by hand. A synchronous delivery that settles within the call needs none.
 *
 * A slot ends when both have happened: its work is settled (acked, nacked, expired, fenced …) and its
 * handler has returned. When the deadline passes first, the slot is given up: the member gets its place
 * back and the handler, still running somewhere, is a zombie until it returns.
 *
 * Slots and their two callbacks are used again (slots.ts).
 */
import type { BatchUnit } from './batch-unit.ts'
import type { DeliveryRecord } from './delivery.ts'
import type { Member } from './member.ts'

/** Stands for a moment, on a clock that starts at 0. */
export const NOT_SAMPLED = -1

export class Slot {
  readonly member: Member
  /** The work: one record or one batch. */
  record: DeliveryRecord | null = null
  batch: BatchUnit | null = null
  /** Monotonic milliseconds. */
  deadlineAt: number = 0
  /** When the handler was called, if this call is sampled; else NOT_SAMPLED. */
  sampledAt: number = NOT_SAMPLED
  settled: boolean = false
  returned: boolean = false
  zombie: boolean = false
  /** Its handler ended its own subscription: nobody waits for it. */
  spared: boolean = false
  previous: Slot | null = null
  next: Slot | null = null
  readonly onResolved: (value: unknown) => void
  readonly onRejected: (error: unknown) => void

  constructor(member: Member) {
    this.member = member
    const { dispatcher } = member.reader.ctx
    this.onResolved = (value) => {
      dispatcher.enter()
      if (!member.proceeds(this, value)) this.finish(false, value)
      dispatcher.leave()
    }
    this.onRejected = (error) => {
      dispatcher.enter()
      this.finish(true, error)
      dispatcher.leave()
    }
  }

  /** The work is settled, by whatever means. */
  workSettled(): void {
    this.settled = true
    const { dispatcher } = this.member.reader.ctx
    dispatcher.deactivate()
    if (this.returned) this.member.release(this)
    else dispatcher.goesOn()
  }

  /** The member takes its place back, whatever its handler still does. */
  giveUp(): void {
    const { dispatcher } = this.member.reader.ctx
    if (this.settled) dispatcher.wentOn()
    else {
      this.settled = true
      dispatcher.deactivate()
    }
  }

  finish(failed: boolean, outcome: unknown): void {
    this.returned = true
    const member = this.member
    if (this.sampledAt >= 0) member.sample(this.sampledAt)
    if (this.zombie) {
      member.zombieReturned(this)
      return
    }
    if (!this.settled) {
      if (this.batch !== null) member.batchReturned(this.batch, failed, outcome)
      else member.returned(this.record as DeliveryRecord, failed, outcome)
    } else {
      member.reader.ctx.dispatcher.wentOn()
      if (failed) member.reader.late(member, outcome)
    }
    if (this.settled) member.release(this)
  }
}
