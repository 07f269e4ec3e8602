/**
 * A record of what producers, readers and groups saw, in the order they saw it, to be judged afterwards by
 * `checkHistory`. It belongs to the test: it knows nothing of a broker, so the same checks judge every
 * engine, the wire, a cluster, and a process that was killed.
 *
 *   index   0      1         2      3          4           5
 *           send ─ send-ok   poll ─ poll-ok    deliver ─── settle …      one list, in order of time
 *             └──── of ───┘    └─── of ───┘      └─── of ────┘           completions name their start
 *
 * Values are *tokens*: strings or numbers, unique per topic. What is sent again on purpose keeps its
 * token (a retry under a publish id); a redriven copy is a new record and needs a token of its own.
 * A topic that is deleted and created again is another topic: name it with its id.
 *
 * | event | recorded |
 * |---|---|
 * | `send` | before a publish is called, by a named process, with token and key |
 * | `send-ok` | it resolved; the position where it is known |
 * | `poll` | before a read by a named process that keeps its own position |
 * | `poll-ok` | what it returned, in the order returned |
 * | `seek` | that process went elsewhere on purpose; the next record it reads is the first from there |
 * | `scan` | before a partition is read from its first record to its last |
 * | `scan-ok` | the range `[from, to)` that was read, `to` being the high watermark, and all it held |
 * | `fail` | a send, poll, scan or reset certainly had no effect |
 * | `unknown` | nobody knows: timeouts, OUTCOME_UNKNOWN. One that never ends is the same |
 * | `evict` | retention (or trim) moved the start of a partition; recorded before a read shows it |
 * | `group` | the rules of a group, or of a broadcast reader, which is a group of one |
 * | `reset` | before a cursor is put somewhere: by the first subscribe, and by every replay |
 * | `reset-ok` | it was put to this offset. From here on every record must be accounted for |
 * | `deliver` | a record was handed to a member; `batch` names what was handed over together |
 * | `settle` | its end, if it took effect: `ack`, `nack`, `reject`, `expire`, or `release` (given back with its attempt unchanged: a stream that left, the rest of a failed batch, a revoked partition) |
 * | `dead-letter` | a record failed for good: its copy is in the dead-letter topic, or it was counted and skipped |
 * | `drop` | the group will not see `count` records within `[from, to]` (the broker's `dropped` event) |
 * | `leave` | a member left, and with it what it had in flight |
 * | `commit` | a committed offset that a restart must not undo |
 * | `drained` | the group has nothing in flight, waiting or deliverable (`broker.idle()`) |
 * | `crash` | the process died; the next event happens after it was started again |
 * | `close` | the broker closed cleanly; likewise |
 *
 * Record a start before the call and an end when the result is known, both without an `await` between:
 * then the order of events is an order of time, and nothing is found that did not happen.
 */
import { assert } from '../model/errors.ts'
import type { Guarantee, Order } from '../model/options.ts'

/** Identifies a value, and a key. */
export type Token = string | number

/** What a group promises; what is left out is not checked. */
export interface GroupRules {
  /** What may be in flight at once, and so what stays in order. Default `none`. */
  readonly order?: Order
  /** Default `at-least-once`. */
  readonly guarantee?: Guarantee
  /** Deliveries of one record, at most, before it is dead-lettered. Default: any number. */
  readonly attempts?: number
  /** What one member owns: single records (shared groups) or whole partitions. Default `record`. */
  readonly ownership?: 'record' | 'partition'
  /** Whether it holds the log (`wait`, `reject`): then nothing may be dropped or evicted unsettled. Default false. */
  readonly lossless?: boolean
}

/** A record as a reader saw it, within a known partition. */
export interface ScannedRecord {
  readonly offset: number
  readonly value: Token
}

export interface PolledRecord extends ScannedRecord {
  readonly topic: string
  readonly partition: number
}

export interface DeliveredRecord extends PolledRecord {
  readonly key: Token | null
}

export type Settlement = 'ack' | 'nack' | 'reject' | 'expire' | 'release'

export interface Indexed<Type extends string> {
  readonly type: Type
  /** Place in the history, from 0. */
  readonly index: number
}
export interface Completion<Type extends string> extends Indexed<Type> {
  /** Index of the event that this one ends. */
  readonly of: number
}
export interface AtPartition<Type extends string> extends Indexed<Type> {
  readonly topic: string
  readonly partition: number
}
export interface AtCursor<Type extends string> extends AtPartition<Type> {
  readonly group: string
}

export interface SendEvent extends Indexed<'send'> {
  readonly process: string
  readonly topic: string
  readonly value: Token
  readonly key: Token | null
}
export interface SendOkEvent extends Completion<'send-ok'> {
  /** Where it went; `null` where the sender is not told. */
  readonly position: { readonly partition: number; readonly offset: number } | null
}
export interface PollEvent extends Indexed<'poll'> {
  readonly process: string
}
export interface PollOkEvent extends Completion<'poll-ok'> {
  readonly records: readonly PolledRecord[]
}
export interface SeekEvent extends AtPartition<'seek'> {
  readonly process: string
  readonly offset: number
}
export interface ScanEvent extends AtPartition<'scan'> {}
export interface ScanOkEvent extends Completion<'scan-ok'> {
  readonly from: number
  readonly to: number
  readonly records: readonly ScannedRecord[]
}
export interface FailEvent extends Completion<'fail'> {}
export interface UnknownEvent extends Completion<'unknown'> {}
export interface EvictEvent extends AtPartition<'evict'> {
  /** The first offset that is still there. */
  readonly start: number
}
export interface GroupEvent extends Indexed<'group'> {
  readonly group: string
  readonly rules: GroupRules
}
export interface ResetEvent extends AtCursor<'reset'> {}
export interface ResetOkEvent extends Completion<'reset-ok'> {
  readonly offset: number
}
export interface DeliverEvent extends AtCursor<'deliver'> {
  readonly member: string
  readonly offset: number
  readonly value: Token
  readonly key: Token | null
  readonly attempt: number
  readonly batch: number | null
}
export interface SettleEvent extends Completion<'settle'> {
  readonly how: Settlement
}
export interface DeadLetterEvent extends AtCursor<'dead-letter'> {
  readonly offset: number
}
export interface DropEvent extends AtCursor<'drop'> {
  readonly from: number
  /** The last offset, inclusive. */
  readonly to: number
  readonly count: number
}
export interface LeaveEvent extends Indexed<'leave'> {
  readonly group: string
  readonly member: string
}
export interface CommitEvent extends AtCursor<'commit'> {
  /** The next offset to be settled. */
  readonly offset: number
}
export interface DrainedEvent extends Indexed<'drained'> {
  readonly group: string
}
export interface CrashEvent extends Indexed<'crash'> {}
export interface CloseEvent extends Indexed<'close'> {}

export type HistoryEvent =
  | SendEvent
  | SendOkEvent
  | PollEvent
  | PollOkEvent
  | SeekEvent
  | ScanEvent
  | ScanOkEvent
  | FailEvent
  | UnknownEvent
  | EvictEvent
  | GroupEvent
  | ResetEvent
  | ResetOkEvent
  | DeliverEvent
  | SettleEvent
  | DeadLetterEvent
  | DropEvent
  | LeaveEvent
  | CommitEvent
  | DrainedEvent
  | CrashEvent
  | CloseEvent

/** What to do with an event, by its type. */
export type EventHandlers = {
  readonly [Type in HistoryEvent['type']]?: (event: Extract<HistoryEvent, { type: Type }>) => void
}

/** A history as JSON: all that is needed to judge it elsewhere, or again. */
export interface HistoryJSON {
  /** What the run was made from, so that it can be repeated. */
  readonly seed: Token | null
  readonly events: readonly HistoryEvent[]
}

/** Appends events. Methods that start something answer the index that its end must name. */
export class History {
  readonly seed: Token | null
  readonly #events: HistoryEvent[] = []

  constructor(options: { seed?: Token } = {}) {
    this.seed = options.seed ?? null
  }

  get events(): readonly HistoryEvent[] {
    return this.#events
  }

  // ── producers ─────────────────────────────────────────────────────────────────────────────────

  send(process: string, topic: string, value: Token, key: Token | null = null): number {
    return this.#add({ type: 'send', index: this.#events.length, process, topic, value, key })
  }

  sendOk(send: number, position: { partition: number; offset: number } | null): void {
    this.#ends(send, 'send')
    const where = position === null ? null : { partition: position.partition, offset: position.offset }
    this.#add({ type: 'send-ok', index: this.#events.length, of: send, position: where })
  }

  /** A send, poll, scan or reset had no effect. */
  fail(start: number): void {
    this.#ends(start, 'send', 'poll', 'scan', 'reset')
    this.#add({ type: 'fail', index: this.#events.length, of: start })
  }

  /** A send, poll, scan or reset may have had its effect. */
  unknown(start: number): void {
    this.#ends(start, 'send', 'poll', 'scan', 'reset')
    this.#add({ type: 'unknown', index: this.#events.length, of: start })
  }

  // ── readers of the log ────────────────────────────────────────────────────────────────────────

  poll(process: string): number {
    return this.#add({ type: 'poll', index: this.#events.length, process })
  }

  /** `records` is kept, not copied. */
  pollOk(poll: number, records: readonly PolledRecord[]): void {
    this.#ends(poll, 'poll')
    this.#add({ type: 'poll-ok', index: this.#events.length, of: poll, records })
  }

  seek(process: string, topic: string, partition: number, offset: number): void {
    this.#add({ type: 'seek', index: this.#events.length, topic, partition, process, offset })
  }

  scan(topic: string, partition: number): number {
    return this.#add({ type: 'scan', index: this.#events.length, topic, partition })
  }

  /** `records` is kept, not copied. */
  scanOk(scan: number, from: number, to: number, records: readonly ScannedRecord[]): void {
    this.#ends(scan, 'scan')
    this.#add({ type: 'scan-ok', index: this.#events.length, of: scan, from, to, records })
  }

  evict(topic: string, partition: number, start: number): void {
    this.#add({ type: 'evict', index: this.#events.length, topic, partition, start })
  }

  // ── groups ────────────────────────────────────────────────────────────────────────────────────

  group(group: string, rules: GroupRules): void {
    this.#add({ type: 'group', index: this.#events.length, group, rules })
  }

  reset(group: string, topic: string, partition: number): number {
    return this.#add({ type: 'reset', index: this.#events.length, topic, partition, group })
  }

  resetOk(reset: number, offset: number): void {
    this.#ends(reset, 'reset')
    this.#add({ type: 'reset-ok', index: this.#events.length, of: reset, offset })
  }

  deliver(
    group: string,
    member: string,
    record: DeliveredRecord,
    attempt: number,
    batch: number | null = null,
  ): number {
    const { topic, partition, offset, value, key } = record
    const index = this.#events.length
    return this.#add({
      type: 'deliver',
      index,
      topic,
      partition,
      group,
      member,
      offset,
      value,
      key,
      attempt,
      batch,
    })
  }

  /** Only what took effect: an ack that answered `false` is no event. */
  settle(delivery: number, how: Settlement): void {
    this.#ends(delivery, 'deliver')
    this.#add({ type: 'settle', index: this.#events.length, of: delivery, how })
  }

  deadLetter(group: string, topic: string, partition: number, offset: number): void {
    this.#add({ type: 'dead-letter', index: this.#events.length, topic, partition, group, offset })
  }

  drop(group: string, topic: string, partition: number, from: number, to: number, count: number): void {
    this.#add({ type: 'drop', index: this.#events.length, topic, partition, group, from, to, count })
  }

  leave(group: string, member: string): void {
    this.#add({ type: 'leave', index: this.#events.length, group, member })
  }

  commit(group: string, topic: string, partition: number, offset: number): void {
    this.#add({ type: 'commit', index: this.#events.length, topic, partition, group, offset })
  }

  drained(group: string): void {
    this.#add({ type: 'drained', index: this.#events.length, group })
  }

  // ── the process ───────────────────────────────────────────────────────────────────────────────

  crash(): void {
    this.#add({ type: 'crash', index: this.#events.length })
  }

  close(): void {
    this.#add({ type: 'close', index: this.#events.length })
  }

  // ── saving ────────────────────────────────────────────────────────────────────────────────────

  toJSON(): HistoryJSON {
    return { seed: this.seed, events: this.#events }
  }

  static fromJSON(json: HistoryJSON): History {
    const history = new History(json.seed === null ? {} : { seed: json.seed })
    for (const [index, event] of json.events.entries()) {
      assert(event.index === index, `event ${index} of the history says it is number ${event.index}`)
      history.#events.push(event)
    }
    return history
  }

  #add(event: HistoryEvent): number {
    this.#events.push(event)
    return event.index
  }

  #ends(start: number, ...types: HistoryEvent['type'][]): void {
    const type = this.#events[start]?.type
    assert(type !== undefined && types.includes(type), `event ${start} is no ${types.join(' or ')}`)
  }
}
