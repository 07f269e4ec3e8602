/**
 * Groups as the deliveries tell of them: a cursor per partition, with what became of each record since the
 * cursor was last put somewhere, and what each member has in its hands.
 *
 *   deliver        ┌── nack, expire, release, leave, crash ──► waiting ──► in-flight again, or dead letter
 *      └─► in-flight ── ack ──────────────────────────────────► ended
 *                  └── reject, or the last attempt failed ───► ended, and a dead letter is due
 *
 * A *lane* is what its order keeps one at a time: the partition, or a key. A lane never holds more than
 * what is unsettled, so that asking whether a delivery keeps the order costs the same at any size.
 */
import type {
  CommitEvent,
  DeadLetterEvent,
  DeliverEvent,
  DrainedEvent,
  DropEvent,
  GroupRules,
  HistoryEvent,
  ResetEvent,
  Token,
} from './history.ts'
import { lowerBound, type PartitionFacts } from './history-facts.ts'

export type TrackedState = 'in-flight' | 'waiting' | 'ended'

/** What became of one record. */
export class Tracked {
  readonly offset: number
  state: TrackedState = 'ended'
  /** Whether it was acked, once at least. */
  acked = false
  /** The latest one. */
  deadLetter: DeadLetterEvent | null = null
  /** The latest delivery; null when it was dead-lettered without one. */
  delivery: DeliverEvent | null = null
  /** The latest event of all. */
  last: HistoryEvent
  /** Bounds of the attempt that may come next, restarts aside. */
  lowest = 1
  highest = 1
  /** Restarts, and crashes among them, when `last` happened. */
  restarts = 0
  crashes = 0
  /** Delivered while a replay was on its way: before or after it, nobody knows. */
  doubtful = false
  lane: Lane | null = null

  constructor(offset: number, event: HistoryEvent) {
    this.offset = offset
    this.last = event
  }

  /** Whether it was dead-lettered after its latest delivery. */
  get rejected(): boolean {
    return this.deadLetter !== null && this.deadLetter.index > (this.delivery?.index ?? -1)
  }
}

/** Records of which one at a time may be in flight, in the order of their offsets. */
export class Lane {
  #inFlight = 0
  #batch: number | null = null
  #last: DeliverEvent | null = null
  #highest = -1
  /** Given back, by offset. */
  readonly #waiting: Tracked[] = []

  /** Takes a delivery in. What it should have waited for, if anything: a delivery, or a waiting record. */
  enter(record: Tracked, event: DeliverEvent, again: boolean): DeliverEvent | Tracked | null {
    const waiting = this.#waiting[0]
    let conflict: DeliverEvent | Tracked | null = null
    if (this.#inFlight > 0 && (event.batch === null || event.batch !== this.#batch)) conflict = this.#last
    else if (waiting !== undefined && waiting.offset < event.offset) {
      this.#waiting.shift()
      conflict = waiting
    } else if (!again && event.offset <= this.#highest) conflict = this.#last
    record.lane = this
    this.#inFlight++
    this.#batch = event.batch
    this.#last = event
    this.#highest = Math.max(this.#highest, event.offset)
    return conflict
  }

  /** What was in flight ended; `waits` for another delivery. */
  leave(record: Tracked, waits: boolean): void {
    this.#inFlight--
    if (waits) this.#waiting.splice(this.#find(record.offset), 0, record)
  }

  /** What was waiting goes on, or ended. */
  forget(record: Tracked): void {
    const at = this.#find(record.offset)
    if (this.#waiting[at] === record) this.#waiting.splice(at, 1)
  }

  #find(offset: number): number {
    return lowerBound(this.#waiting, offset, (record) => record.offset)
  }
}

/** A delivery that overtook a waiting record: wrong, unless that was dropped, which may be told later. */
export interface Suspect {
  readonly overtaken: Tracked
  readonly since: HistoryEvent
  readonly by: DeliverEvent
}

export class Cursor {
  readonly facts: PartitionFacts
  records: Map<number, Tracked> = new Map()
  readonly lanes: Map<Token | null, Lane> = new Map()
  /** Where it was put, once that is known. */
  start: number | null = null
  committed = -1
  lastCommit: CommitEvent | null = null
  /** Over all replays. */
  highestCommit: CommitEvent | null = null
  /** The replay that is on its way. */
  pending: ResetEvent | null = null
  /** What was delivered since it set out. */
  doubtful: Tracked[] = []
  resets = 0
  /** Restarts, and crashes among them, when it was put where it is. */
  restarts = 0
  crashes = 0
  drops: DropEvent[] = []
  suspects: Suspect[] = []
  /** Dead letters per offset, over all replays. */
  readonly deadLetters: Map<number, { count: number; readonly first: HistoryEvent }> = new Map()
  inFlight = 0
  /** The latest delivery, and with it the member that owns the partition while anything is in flight. */
  lastDelivery: DeliverEvent | null = null

  constructor(facts: PartitionFacts) {
    this.facts = facts
  }

  lane(key: Token | null): Lane {
    let lane = this.lanes.get(key)
    if (lane === undefined) {
      lane = new Lane()
      this.lanes.set(key, lane)
    }
    return lane
  }

  /** A replay took effect: only what was delivered since it set out may belong to it. */
  restart(offset: number, restarts: number, crashes: number): void {
    this.start = offset
    this.committed = offset
    this.lastCommit = null
    this.pending = null
    this.resets++
    this.restarts = restarts
    this.crashes = crashes
    this.records = new Map(this.doubtful.map((record) => [record.offset, record]))
    this.doubtful = []
    this.drops = []
    this.suspects = []
    this.calm()
  }

  /** Nothing is in flight any more, and what comes next starts its order anew. */
  calm(): void {
    this.lanes.clear()
    this.inFlight = 0
  }
}

/** A group, its rules complete. */
export class GroupFacts {
  readonly name: string
  rules: Required<GroupRules> = {
    order: 'none',
    guarantee: 'at-least-once',
    attempts: Number.POSITIVE_INFINITY,
    ownership: 'record',
    lossless: false,
  }
  readonly cursors: Map<PartitionFacts, Cursor> = new Map()
  /** What each member has in flight. */
  readonly members: Map<string, Map<Tracked, Cursor>> = new Map()
  drained: DrainedEvent | null = null

  constructor(name: string) {
    this.name = name
  }

  get atMostOnce(): boolean {
    return this.rules.guarantee === 'at-most-once'
  }

  hands(member: string): Map<Tracked, Cursor> {
    let hands = this.members.get(member)
    if (hands === undefined) {
      hands = new Map()
      this.members.set(member, hands)
    }
    return hands
  }
}
