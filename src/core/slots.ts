/**
 * The slots of one member: those in use, by deadline, with one due thing for the first of them; and those that are free
 * to be used again, so that awaiting a handler allocates nothing of ours.
 *
 *   in use:   first ⇄ slot ⇄ slot ⇄ last        free: [slot, slot, …]
 *
 * Deadlines come in order as a rule, so a new one is the last, unless others were extended.
 */
import { type Due, DueCallback, type DueQueue } from './due-queue.ts'
import type { Member } from './member.ts'
import { Slot } from './slot.ts'

export class Slots {
  readonly #member: Member
  readonly #due: DueQueue
  readonly #expiry: Due
  readonly #free: Slot[] = []
  #first: Slot | null = null
  #last: Slot | null = null

  /** `expire`: the deadline of the first ones may have passed. */
  constructor(member: Member, due: DueQueue, expire: () => void) {
    this.#member = member
    this.#due = due
    this.#expiry = new DueCallback(expire)
  }

  /** The one in use with the earliest deadline. */
  get first(): Slot | null {
    return this.#first
  }

  /** One that is free. */
  take(): Slot {
    return this.#free.pop() ?? new Slot(this.#member)
  }

  /** Not in use any more, and nobody's: the next may have it. */
  giveBack(slot: Slot): void {
    slot.record = null
    slot.batch = null
    slot.settled = false
    slot.returned = false
    slot.zombie = false
    this.#free.push(slot)
  }

  /** In use from now on, until `deadlineAt`. */
  add(slot: Slot, deadlineAt: number): void {
    slot.deadlineAt = deadlineAt
    let before = this.#last
    while (before !== null && before.deadlineAt > deadlineAt) before = before.previous
    this.#link(slot, before)
    const expiry = this.#expiry
    if (expiry.heapIndex < 0 || expiry.dueAt > deadlineAt) this.#due.schedule(expiry, deadlineAt)
  }

  remove(slot: Slot): void {
    if (slot.previous === null) this.#first = slot.next
    else slot.previous.next = slot.next
    if (slot.next === null) this.#last = slot.previous
    else slot.next.previous = slot.previous
    slot.previous = null
    slot.next = null
  }

  /** The deadlines that have passed are dealt with: waits for the next one. */
  waitForFirst(): void {
    if (this.#first !== null) this.#due.schedule(this.#expiry, this.#first.deadlineAt)
  }

  /** Else the queue would keep the reader, and whatever its handler closes over, until the ack timeout. */
  cancel(): void {
    this.#due.cancel(this.#expiry)
  }

  #link(slot: Slot, before: Slot | null): void {
    const after = before === null ? this.#first : before.next
    slot.previous = before
    slot.next = after
    if (before === null) this.#first = slot
    else before.next = slot
    if (after === null) this.#last = slot
    else after.previous = slot
  }
}
