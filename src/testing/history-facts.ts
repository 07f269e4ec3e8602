/**
 * The facts that a history tells of logs: topics, their partitions, what stood at each offset, what became
 * of each value. Only kept here; judged by the checks of logs and groups.
 *
 *   topic ─► values      token  ─► sends, fails, acknowledged, first read
 *         └► partitions  number ─► entries   offset ─► value, acknowledged, first read
 *                               ├► runs      what readers passed
 *                               └► gaps      what they did not see on the way
 */
import type {
  EvictEvent,
  FailEvent,
  HistoryEvent,
  ScanEvent,
  SendEvent,
  SendOkEvent,
  Token,
} from './history.ts'
import type { AnomalyPlace } from './history-anomalies.ts'

/** All that is known of one value of a topic. */
export class ValueFacts {
  readonly value: Token
  /** Where it was seen first. */
  first: Entry | null = null
  sends: number = 0
  fails: number = 0
  firstSend: SendEvent | null = null
  lastFail: FailEvent | null = null
  acked: SendOkEvent | null = null
  firstRead: HistoryEvent | null = null

  constructor(value: Token) {
    this.value = value
  }

  get aborted(): boolean {
    return this.sends > 0 && this.fails === this.sends
  }
}

/** All that is known of one offset. */
export class Entry {
  readonly partition: number
  readonly offset: number
  readonly facts: ValueFacts
  /** The event that first told of it. */
  readonly evidence: HistoryEvent
  acked: SendOkEvent | null = null
  firstRead: HistoryEvent | null = null

  constructor(partition: number, offset: number, facts: ValueFacts, evidence: HistoryEvent) {
    this.partition = partition
    this.offset = offset
    this.facts = facts
    this.evidence = evidence
  }
}

/** What a reader passed: `[from, next)`. */
export interface Run {
  readonly from: number
  next: number
  /** Its latest event. */
  event: HistoryEvent
}

/** Offsets a reader did not see though it passed them, or, after a scan, though they had been read before. */
export interface Gap {
  readonly from: number
  readonly to: number
  readonly before: HistoryEvent
  readonly event: HistoryEvent
  /** Only records read before this event count. */
  readonly readBefore: number
  /** The last restart before a scan, −1 for none. */
  readonly restart: number
}

/** An acknowledged send. */
export interface Sent {
  /** Index of the call. */
  readonly call: number
  readonly offset: number
  readonly ok: SendOkEvent
}

/** How high acknowledged offsets had risen, to be asked for any moment. */
export class Watermark {
  readonly #events: SendOkEvent[] = []
  readonly #offsets: number[] = []

  raise(offset: number, event: SendOkEvent): void {
    if (offset <= (this.#offsets.at(-1) ?? -1)) return
    this.#offsets.push(offset)
    this.#events.push(event)
  }

  /** The event that reached `offset` or more before `index`. */
  reached(offset: number, index: number): SendOkEvent | null {
    const at = lowerBound(this.#events, index, (event) => event.index) - 1
    return (this.#offsets[at] ?? -1) >= offset ? (this.#events[at] ?? null) : null
  }
}

export class PartitionFacts {
  readonly topic: TopicFacts
  readonly partition: number
  readonly entries: Map<number, Entry> = new Map()
  readonly runs: Run[] = []
  readonly gaps: Gap[] = []
  readonly acked: Watermark = new Watermark()
  /** Acknowledged sends by process, with the index of the call. */
  readonly sends: Map<string, Sent[]> = new Map()
  lastScan: ScanEvent | null = null
  /** First offset not evicted, as far as the history went. */
  start: number = 0
  eviction: EvictEvent | null = null
  /** Lowest end that explains everything seen. */
  end: number = 0
  #sorted: Entry[] | null = null

  constructor(topic: TopicFacts, partition: number) {
    this.topic = topic
    this.partition = partition
  }

  /** By offset; to be used once all events were seen. */
  get sorted(): readonly Entry[] {
    this.#sorted ??= [...this.entries.values()].sort((a, b) => a.offset - b.offset)
    return this.#sorted
  }

  place(offset: number, value: Token | null = null): Partial<AnomalyPlace> {
    return { topic: this.topic.name, partition: this.partition, offset, value }
  }
}

export class TopicFacts {
  readonly name: string
  readonly partitions: Map<number, PartitionFacts> = new Map()
  readonly values: Map<Token, ValueFacts> = new Map()
  sends: number = 0
  /** Sends that may have put a record somewhere, nobody said where. */
  unplacedSends: number = 0

  constructor(name: string) {
    this.name = name
  }

  partition(number: number): PartitionFacts {
    let partition = this.partitions.get(number)
    if (partition === undefined) {
      partition = new PartitionFacts(this, number)
      this.partitions.set(number, partition)
    }
    return partition
  }

  value(value: Token): ValueFacts {
    let facts = this.values.get(value)
    if (facts === undefined) {
      facts = new ValueFacts(value)
      this.values.set(value, facts)
    }
    return facts
  }
}

/** The first place in `items`, sorted by `of`, where it is at least `value`. */
export function lowerBound<T>(items: readonly T[], value: number, of: (item: T) => number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (of(items[middle] as T) < value) low = middle + 1
    else high = middle
  }
  return low
}
