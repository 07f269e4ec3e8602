/**
 * One subscription as the dispatcher sees it: a handler, its places, its credit. A member never gates
 * and never orders; it only says whether it can take a record now.
 */
import type { Clock } from '../model/clock.ts'
import { messageOf } from '../model/errors.ts'
import type { MemberDescription } from '../model/views.ts'
import type { BatchUnit } from './batch-unit.ts'
import { MutableCounters } from './counters.ts'
import { type DeliveryRecord, IN_FLIGHT } from './delivery.ts'
import { Deque } from './deque.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Pump } from './pump.ts'
import type { Reader } from './reader.ts'
import type { MemberSettings } from './settings.ts'
import { NOT_SAMPLED, type Slot } from './slot.ts'
import { Slots } from './slots.ts'
import { follow, isThenable } from './thenable.ts'

/** Handlers measured: one in this many calls. A power of two. */
const SAMPLE_EVERY = 64
/** Stands for "as many as you like"; a small integer, so that the field stays one. */
const UNLIMITED = 0x3fff_ffff

export class Member {
  readonly reader: Reader
  readonly id: string
  readonly settings: MemberSettings
  /** Topics it subscribed to, by id. */
  readonly topics: Set<string> = new Set()
  /** Its own; once it left, its reader's. */
  counters: MutableCounters = new MutableCounters()
  readonly handler: (work: never) => unknown
  /** Whether an automatic ack takes `false` for a nack: only from an object's `onMessage`. */
  readonly falseNacks: boolean
  /** Places in use, zombies not counted. */
  busy: number = 0
  /** Places it may use now: its concurrency, or 0 while paused, closed or held up by zombies. */
  limit: number
  credit: number
  paused: boolean = false
  /** Cursors it owns that wait for it to have room. */
  readonly parked: Deque<Pump> = new Deque()
  closed: boolean = false
  /** Whether all there is to a delivery is to call the handler, and returning nothing acks it. */
  readonly isPlain: boolean
  readonly #countsCredit: boolean
  readonly #autoAck: boolean
  /** Whether returning nothing is an ack, plain and simple. */
  readonly #acksPlainly: boolean
  readonly #clock: Clock
  readonly #dispatcher: Dispatcher
  readonly #slots: Slots
  #whenIdle: (() => void)[] = []
  /** Places held by handlers that ended their own subscription. */
  #spared = 0

  constructor(
    reader: Reader,
    id: string,
    settings: MemberSettings,
    handler: (work: never) => unknown,
    falseNacks: boolean,
  ) {
    this.reader = reader
    this.id = id
    this.settings = settings
    this.handler = handler
    this.falseNacks = falseNacks && settings.ack === 'auto'
    this.#countsCredit = settings.manualCredit
    this.#autoAck = settings.ack === 'auto'
    this.#acksPlainly = this.#autoAck && !reader.atMostOnce
    this.isPlain = this.#acksPlainly && !this.#countsCredit && settings.batch === undefined
    this.#clock = reader.ctx.clock
    this.#dispatcher = reader.ctx.dispatcher
    this.#slots = new Slots(this, reader.ctx.due, () => this.#expireDue())
    this.limit = settings.concurrency
    this.credit = settings.manualCredit ? 0 : UNLIMITED
  }

  get free(): boolean {
    return this.busy < this.limit && this.credit > 0
  }

  get inFlight(): number {
    return this.busy
  }

  get weight(): number {
    return this.settings.weight
  }

  get concurrency(): number {
    return this.settings.concurrency
  }

  /**
   * Runs the handler on one record. `true`: it returned nothing and the record is still in flight, which is
   * the caller's to ack; this keeps the commonest delivery short. `false`: everything is taken care of.
   */
  invoke(record: DeliveryRecord): boolean {
    this.busy++
    this.#begin(record)
    const sampledAt = this.#startOfSample()
    // Called without a receiver: the handler is the user's and gets the record, not us.
    const { handler } = this
    let result: unknown
    try {
      result = handler(record as never)
    } catch (error) {
      this.#threw(record, error, sampledAt)
      return false
    }
    if (result === undefined && record.state === IN_FLIGHT && this.#acksPlainly) {
      if (sampledAt >= 0) this.sample(sampledAt)
      this.busy--
      return true
    }
    this.#took(record, result, sampledAt)
    return false
  }

  /**
   * `invoke` for a plain member and a record that nobody had before. What is left of it is little, and stays so: all
   * of it is to be inlined in the pump's loop, and room for that is short.
   */
  take(record: DeliveryRecord): boolean {
    const { counters, handler } = this
    if (((counters.delivered + 1) & (SAMPLE_EVERY - 1)) === 0) return this.invoke(record)
    counters.delivered++
    this.busy++
    record.state = IN_FLIGHT
    record.member = this
    let result: unknown
    try {
      result = handler(record as never)
    } catch (error) {
      this.#threw(record, error, NOT_SAMPLED)
      return false
    }
    if (result === undefined && record.state === IN_FLIGHT) {
      this.busy--
      return true
    }
    this.#took(record, result, NOT_SAMPLED)
    return false
  }

  #took(record: DeliveryRecord, result: unknown, sampledAt: number): void {
    let pending: boolean
    try {
      pending = isThenable(result)
    } catch (error) {
      this.#threw(record, error, sampledAt)
      return
    }
    if (pending) this.#await(record, result as PromiseLike<unknown>, sampledAt)
    else this.#answered(record, result, sampledAt)
  }

  #threw(record: DeliveryRecord, error: unknown, sampledAt: number): void {
    if (sampledAt >= 0) this.sample(sampledAt)
    if (record.state === IN_FLIGHT) this.returned(record, true, error)
    else this.reader.late(this, error)
    this.busy--
  }

  #answered(record: DeliveryRecord, result: unknown, sampledAt: number): void {
    if (sampledAt >= 0) this.sample(sampledAt)
    if (record.state === IN_FLIGHT) {
      if (!this.#autoAck) {
        this.#awaitAck(record)
        return
      }
      this.returned(record, false, result)
    }
    this.busy--
  }

  /** The handler answered a promise: its record stays in flight, in a slot. */
  #await(record: DeliveryRecord, result: PromiseLike<unknown>, sampledAt: number): void {
    const slot = this.#open()
    this.#fill(slot, record, sampledAt)
    this.#follow(result, slot)
  }

  /** The handler is done, but nobody has acked yet. */
  #awaitAck(record: DeliveryRecord): void {
    const slot = this.#open()
    this.#fill(slot, record, NOT_SAMPLED)
    slot.returned = true
  }

  #begin(record: DeliveryRecord): void {
    if (this.#countsCredit) this.credit--
    record.state = IN_FLIGHT
    record.member = this
    this.counters.delivered++
    if (record.extra?.redelivered === true) {
      this.counters.redelivered++
    }
  }

  #startOfSample(): number {
    return (this.counters.delivered & (SAMPLE_EVERY - 1)) === 0 ? this.#clock.monotonic() : NOT_SAMPLED
  }

  /** Runs the handler on a batch: one place, one timeout. */
  invokeBatch(batch: BatchUnit): void {
    const records = batch.deliveries as DeliveryRecord[]
    this.busy++
    const slot = this.#open()
    slot.sampledAt = this.#clock.monotonic()
    this.#queue(slot, 0)
    slot.batch = batch
    batch.slot = slot
    for (const record of records) {
      this.#begin(record)
      record.slot = slot
    }
    const { handler } = this
    let result: unknown
    let pending: boolean
    try {
      result = handler(batch as never)
      pending = isThenable(result)
    } catch (error) {
      slot.finish(true, error)
      return
    }
    if (pending) this.#follow(result as PromiseLike<unknown>, slot)
    else slot.finish(false, result)
  }

  /** A member that is closed is called no more: this handler closed it, and may be waiting for just that. */
  #follow(result: PromiseLike<unknown>, slot: Slot): void {
    if (this.closed) {
      slot.spared = true
      this.#spared++
    }
    follow(result, slot)
  }

  /** The handler of an unsettled record returned. Manual acks leave a success open. */
  returned(record: DeliveryRecord, failed: boolean, outcome: unknown): void {
    const failure = this.#failure(failed, outcome)
    // To ask an error for its text is to call its maker, who may have settled the record meanwhile.
    if (record.state !== IN_FLIGHT) return
    if (failure !== undefined || this.#autoAck) this.reader.settle.conclude(record, failure)
  }

  batchReturned(batch: BatchUnit, failed: boolean, outcome: unknown): void {
    if (failed) batch.failed(outcome)
    else {
      const failure = this.#failure(false, outcome)
      if (failure !== undefined) batch.nack({ reason: failure })
      else if (this.#autoAck) batch.ack()
    }
  }

  #failure(failed: boolean, outcome: unknown): string | undefined {
    if (failed) return messageOf(outcome)
    return outcome === false && this.falseNacks ? 'the subscriber answered false' : undefined
  }

  /** Takes a slot for work that outlives its call. */
  #open(): Slot {
    this.#dispatcher.activate()
    return this.#slots.take()
  }

  /** Its work is `record`, which may have been settled within the call. */
  #fill(slot: Slot, record: DeliveryRecord, sampledAt: number): void {
    slot.record = record
    record.slot = slot
    slot.sampledAt = sampledAt
    this.#queue(slot, record.extra === null ? 0 : record.extra.deadlineAt)
    if (record.state !== IN_FLIGHT) slot.workSettled()
  }

  /** Until the deadline that was asked for, or the usual one (0). */
  #queue(slot: Slot, asked: number): void {
    this.#slots.add(slot, asked === 0 ? this.#dispatcher.tick + this.settings.ackTimeoutMs : asked)
  }

  /**
   * The handler of a record has resolved, which acks it. As a rule nothing else has happened, and what comes next has
   * the place in the same reaction, slot and all: the way by release, queue and drain costs more than the promise.
   * False, and nothing was done: it is not as simple as that.
   */
  proceeds(slot: Slot, outcome: unknown): boolean {
    const { record } = slot
    if (record === null || record.state !== IN_FLIGHT || outcome === false || !this.#acksPlainly) return false
    if (slot.sampledAt >= 0) this.sample(slot.sampledAt)
    record.slot = null
    this.#vacate(slot)
    const { pump } = record.cursor
    pump.resolved(record)
    const next = this.reader.nextFor(this, pump)
    if (next !== undefined) this.#invokeIn(slot, next)
    else {
      this.#slots.giveBack(slot)
      this.#freed()
      pump.unblock()
      // Last, so that there is something to live for all the while.
      this.#dispatcher.deactivate()
    }
    return true
  }

  /** Runs the handler on one record in the place that another has just left. While it is called, the slot is nobody's. */
  #invokeIn(slot: Slot, record: DeliveryRecord): void {
    this.busy++
    this.#begin(record)
    const sampledAt = this.#startOfSample()
    const { handler } = this
    let result: unknown
    let pending = false
    let failed = false
    try {
      result = handler(record as never)
      pending = isThenable(result)
    } catch (error) {
      result = error
      failed = true
    }
    this.#fill(slot, record, sampledAt)
    if (pending) this.#follow(result as PromiseLike<unknown>, slot)
    else slot.finish(failed, result)
  }

  /** The slot's work is settled and its handler back: the place is free. */
  release(slot: Slot): void {
    this.#vacate(slot)
    this.#slots.giveBack(slot)
    this.#freed()
  }

  zombieReturned(slot: Slot): void {
    this.#slots.giveBack(slot)
    this.counters.zombies--
    this.#relimit()
    this.#freed()
  }

  #vacate(slot: Slot): void {
    this.#slots.remove(slot)
    this.busy--
    if (slot.spared) this.#spared--
    slot.spared = false
  }

  /** Moves the deadline of work in hand. */
  extend(slot: Slot, deadlineAt: number): void {
    this.#slots.remove(slot)
    this.#queue(slot, deadlineAt)
  }

  #expireDue(): void {
    const now = this.#clock.monotonic()
    const slots = this.#slots
    for (let slot = slots.first; slot !== null && slot.deadlineAt <= now; slot = slots.first)
      this.#expire(slot)
    slots.waitForFirst()
  }

  #expire(slot: Slot): void {
    this.#vacate(slot)
    slot.zombie = !slot.returned
    const { record, batch } = slot
    if (slot.zombie) {
      this.counters.zombies++
      this.#relimit()
      const first = record ?? (batch?.deliveries[0] as DeliveryRecord | undefined)
      if (this.limit === 0 && !this.closed && !this.paused && first !== undefined)
        this.reader.zombiesStalled(first.cursor)
    }
    if (batch !== null) for (const each of batch.deliveries) this.#expireRecord(each as DeliveryRecord)
    else if (record !== null) this.#expireRecord(record)
    slot.giveUp()
    if (!slot.zombie) this.#slots.giveBack(slot)
    this.#freed()
  }

  #expireRecord(record: DeliveryRecord): void {
    if (record.state === IN_FLIGHT) this.reader.settle.expire(record)
  }

  /** Gives back everything in hand: `close` and the break of a stream. Attempts do not count. */
  releaseAll(): void {
    for (let slot = this.#slots.first; slot !== null; slot = this.#slots.first) {
      this.#vacate(slot)
      slot.zombie = !slot.returned
      const records = slot.batch !== null ? slot.batch.deliveries : slot.record !== null ? [slot.record] : []
      for (const record of records as DeliveryRecord[]) {
        if (record.state === IN_FLIGHT) this.reader.settle.release(record)
      }
      slot.giveUp()
      if (slot.zombie) this.counters.zombies++
      else this.#slots.giveBack(slot)
    }
    this.#slots.cancel()
    this.#freed()
  }

  pause(on: boolean): void {
    this.paused = on
    this.#relimit()
    if (!on) this.reader.memberFreed(this)
  }

  request(permits: number): void {
    this.credit = Math.min(this.credit + permits, UNLIMITED)
    this.reader.memberFreed(this)
  }

  stop(): void {
    this.closed = true
    this.#relimit()
  }

  /** Resolves when nothing is in its hands, but for handlers that ended their own subscription. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
      // One that calls this returns within the drain, and if it keeps nothing, tells nobody.
      this.#dispatcher.afterDrain(() => this.#checkIdle())
    })
  }

  #checkIdle(): void {
    if (this.busy > this.#spared) return
    const waiting = this.#whenIdle
    this.#whenIdle = []
    for (const resolve of waiting) resolve()
  }

  sample(since: number): void {
    this.reader.handleLatency.record(this.reader.ctx.clock.monotonic() - since)
  }

  describe(): MemberDescription {
    return {
      id: this.id,
      inFlight: this.busy,
      zombies: this.counters.zombies,
      paused: this.paused,
      counters: this.counters.snapshot(),
    }
  }

  #relimit(): void {
    const held = this.counters.zombies >= this.settings.concurrency
    this.limit = this.paused || this.closed || held ? 0 : this.settings.concurrency
  }

  #freed(): void {
    if (this.#whenIdle.length > 0) this.#checkIdle()
    this.reader.memberFreed(this)
  }
}
