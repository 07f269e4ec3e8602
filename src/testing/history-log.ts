/**
 * The checks of the log: what sends were told against what readers saw, per partition. One pass over the
 * events collects facts; `finish` judges what can only be judged when all is known. All of it is linear but
 * for sorting offsets and runs.
 *
 *   offsets      0   1   2   3   4   5   6   7          an entry per offset that anybody told of
 *   run of A     ├───────────┤                          what a reader passed without going elsewhere
 *   run of B             ├───────·───┤                  with a gap at 4: skipped, if others read it
 *   last scan    ├───────────────────────┤
 *                                    │   └ unseen: acknowledged, read by nobody, beyond the last scan
 *                                    └ lost: acknowledged, read by nobody, inside a run
 */
import type {
  CloseEvent,
  CrashEvent,
  DeliverEvent,
  EventHandlers,
  EvictEvent,
  FailEvent,
  HistoryEvent,
  PollEvent,
  PollOkEvent,
  ScanEvent,
  ScanOkEvent,
  SeekEvent,
  SendEvent,
  SendOkEvent,
  Token,
  UnknownEvent,
} from './history.ts'
import type { Findings } from './history-anomalies.ts'
import type { Gap, PartitionFacts, Run, Sent, ValueFacts } from './history-facts.ts'
import { Entry, lowerBound, TopicFacts } from './history-facts.ts'

export class LogChecks {
  readonly #events: readonly HistoryEvent[]
  readonly #found: Findings
  readonly #topics = new Map<string, TopicFacts>()
  /** Positions of processes that poll. */
  readonly #readers = new Map<string, Map<PartitionFacts, Run>>()
  #lastRestart = -1

  readonly handlers: EventHandlers = {
    send: (event) => this.#send(event),
    'send-ok': (event) => this.#sendOk(event),
    fail: (event) => this.#fail(event),
    unknown: (event) => this.#unknown(event),
    'poll-ok': (event) => this.#pollOk(event),
    seek: (event) => this.#seek(event),
    'scan-ok': (event) => this.#scanOk(event),
    deliver: (event) => this.#deliver(event),
    evict: (event) => this.#evict(event),
    crash: (event) => this.#restart(event),
    close: (event) => this.#restart(event),
  }

  constructor(events: readonly HistoryEvent[], found: Findings) {
    this.#events = events
    this.#found = found
  }

  partition(topic: string, partition: number): PartitionFacts {
    return this.#topic(topic).partition(partition)
  }

  finish(): void {
    for (const topic of this.#topics.values()) {
      for (const facts of topic.values.values()) this.#judgeValue(topic, facts)
      for (const partition of topic.partitions.values()) {
        this.#judgeUnread(partition)
        for (const gap of partition.gaps) this.#judgeGap(partition, gap)
        for (const sends of partition.sends.values()) this.#judgeSends(partition, sends)
      }
    }
  }

  // ── while the events pass ─────────────────────────────────────────────────────────────────────

  #send(event: SendEvent): void {
    const topic = this.#topic(event.topic)
    const facts = topic.value(event.value)
    topic.sends++
    topic.unplacedSends++
    facts.sends++
    facts.firstSend ??= event
  }

  #sendOk(event: SendOkEvent): void {
    const send = this.#events[event.of] as SendEvent
    const topic = this.#topic(send.topic)
    const facts = topic.value(send.value)
    facts.acked ??= event
    if (event.position === null) return
    topic.unplacedSends--
    const { offset } = event.position
    const partition = topic.partition(event.position.partition)
    const entry = this.#tell(partition, offset, send.value, event)
    entry.acked ??= event
    // A value sent twice is answered with its first position, as old as that is.
    if (facts.sends > 1) return
    const before = partition.acked.reached(offset + 1, send.index)
    if (before !== null) this.#sentBackwards(partition, offset, send.value, before, event)
    partition.acked.raise(offset, event)
    const sends = partition.sends.get(send.process)
    const sent = { call: send.index, offset, ok: event }
    if (sends === undefined) partition.sends.set(send.process, [sent])
    else sends.push(sent)
  }

  #fail(event: FailEvent): void {
    const start = this.#events[event.of] as HistoryEvent
    if (start.type !== 'send') return
    const topic = this.#topic(start.topic)
    const facts = topic.value(start.value)
    topic.unplacedSends--
    facts.fails++
    facts.lastFail = event
  }

  /** A poll of unknown outcome may have moved its reader anywhere. */
  #unknown(event: UnknownEvent): void {
    const start = this.#events[event.of] as HistoryEvent
    if (start.type === 'poll') this.#readers.delete(start.process)
  }

  #pollOk(event: PollOkEvent): void {
    const { process } = this.#events[event.of] as PollEvent
    const runs = this.#runs(process)
    for (const record of event.records) {
      const partition = this.partition(record.topic, record.partition)
      this.#read(partition, record.offset, record.value, event)
      const run = runs.get(partition) ?? this.#begin(partition, record.offset, event)
      runs.set(partition, this.#step(partition, run, record.offset, event))
    }
  }

  #seek(event: SeekEvent): void {
    const partition = this.partition(event.topic, event.partition)
    this.#runs(event.process).set(partition, this.#begin(partition, event.offset, event))
  }

  /** A scan is a reader of its own that passed all of `[from, to)`. */
  #scanOk(event: ScanOkEvent): void {
    const scan = this.#events[event.of] as ScanEvent
    const partition = this.partition(scan.topic, scan.partition)
    const restart = this.#lastRestart
    let run = this.#begin(partition, event.from, event)
    for (const record of event.records) {
      this.#read(partition, record.offset, record.value, event)
      run = this.#step(partition, run, record.offset, event, restart)
    }
    this.#gap(partition, run, event.to, event, restart)
    run.next = Math.max(run.next, event.to)
    // Beyond its end nothing may be missing that had been read before it began.
    const beyond = { from: run.next, next: run.next, event: scan }
    this.#gap(partition, beyond, partition.end, event, restart, scan.index)
    partition.end = Math.max(partition.end, event.to)
    partition.lastScan = scan
  }

  #deliver(event: DeliverEvent): void {
    this.#read(this.partition(event.topic, event.partition), event.offset, event.value, event)
  }

  #evict(event: EvictEvent): void {
    const partition = this.partition(event.topic, event.partition)
    if (event.start <= partition.start) return
    partition.start = event.start
    partition.eviction = event
    partition.end = Math.max(partition.end, event.start)
  }

  #restart(event: CrashEvent | CloseEvent): void {
    this.#lastRestart = event.index
  }

  #topic(name: string): TopicFacts {
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = new TopicFacts(name)
      this.#topics.set(name, topic)
    }
    return topic
  }

  #runs(process: string): Map<PartitionFacts, Run> {
    let runs = this.#readers.get(process)
    if (runs === undefined) {
      runs = new Map()
      this.#readers.set(process, runs)
    }
    return runs
  }

  #read(partition: PartitionFacts, offset: number, value: Token, event: HistoryEvent): void {
    const entry = this.#tell(partition, offset, value, event)
    entry.firstRead ??= event
    partition.topic.value(value).firstRead ??= event
  }

  /** Somebody says that `value` is at `offset`. The first to say so is believed. */
  #tell(partition: PartitionFacts, offset: number, value: Token, event: HistoryEvent): Entry {
    const known = partition.entries.get(offset)
    if (known !== undefined) {
      if (known.facts.value !== value) {
        const message = `offset ${offset} held ${known.facts.value} and ${value}`
        this.#found.add(
          'inconsistent-offsets',
          partition.place(offset, value),
          message,
          known.evidence,
          event,
        )
      }
      return known
    }
    const facts = partition.topic.value(value)
    const entry = new Entry(partition.partition, offset, facts, event)
    partition.entries.set(offset, entry)
    partition.end = Math.max(partition.end, offset + 1)
    if (facts.first === null) facts.first = entry
    else {
      const { first } = facts
      const message = `${value} is at ${first.partition}/${first.offset} and at ${entry.partition}/${offset}`
      this.#found.add('duplicate', partition.place(offset, value), message, first.evidence, event)
    }
    return entry
  }

  #begin(partition: PartitionFacts, from: number, event: HistoryEvent): Run {
    const run: Run = { from, next: from, event }
    partition.runs.push(run)
    return run
  }

  #step(partition: PartitionFacts, run: Run, offset: number, event: HistoryEvent, restart = -1): Run {
    let current = run
    if (offset < run.next) {
      const within = run.event === event ? 'within one read' : 'from one read to the next'
      const message = `a reader at offset ${run.next} went back to ${offset}, ${within}`
      this.#found.add('nonmonotonic-read', partition.place(offset), message, run.event, event)
      current = this.#begin(partition, offset, event)
    } else this.#gap(partition, run, offset, event, restart)
    current.next = offset + 1
    current.event = event
    return current
  }

  #gap(
    partition: PartitionFacts,
    run: Run,
    to: number,
    event: HistoryEvent,
    restart: number,
    readBefore: number = Number.POSITIVE_INFINITY,
  ): void {
    const from = Math.max(run.next, partition.start)
    if (from < to) partition.gaps.push({ from, to, before: run.event, event, readBefore, restart })
  }

  #sentBackwards(
    partition: PartitionFacts,
    offset: number,
    value: Token,
    before: SendOkEvent,
    event: SendOkEvent,
  ): void {
    const message = `${value} was sent after what went to offset ${before.position?.offset}, and went to ${offset}`
    this.#found.add('nonmonotonic-send', partition.place(offset, value), message, before, event)
  }

  // ── when all events have passed ───────────────────────────────────────────────────────────────

  #judgeValue(topic: TopicFacts, facts: ValueFacts): void {
    const place = { topic: topic.name, value: facts.value }
    if (facts.firstRead === null) {
      if (facts.acked !== null && facts.first === null) this.#judgeUnplaced(topic, facts, facts.acked)
      return
    }
    if (facts.aborted) {
      const message = `${facts.value} was read, though every send of it failed`
      this.#found.add('aborted-read', place, message, facts.lastFail, facts.firstRead)
    } else if (
      topic.sends > 0 &&
      (facts.firstSend?.index ?? Number.POSITIVE_INFINITY) > facts.firstRead.index
    ) {
      const message = `${facts.value} was read before anybody sent it`
      this.#found.add('unsent-read', place, message, facts.firstRead, facts.firstSend)
    }
  }

  /** Without a position it may be anywhere: all must have been scanned, and nothing evicted since. */
  #judgeUnplaced(topic: TopicFacts, facts: ValueFacts, acked: SendOkEvent): void {
    let last: ScanEvent | null = null
    for (const { lastScan, eviction } of topic.partitions.values()) {
      if (lastScan === null || lastScan.index < acked.index) return
      if (eviction !== null && eviction.index > acked.of) return
      if (last === null || lastScan.index > last.index) last = lastScan
    }
    if (last === null) return
    const message = `${facts.value} was acknowledged and is in no partition`
    this.#found.add('unseen', { topic: topic.name, value: facts.value }, message, acked, last)
  }

  /** Acknowledged records that nobody read: lost where a reader passed, unseen beyond the last scan. */
  #judgeUnread(partition: PartitionFacts): void {
    const runs = partition.runs.sort((a, b) => a.from - b.from)
    let widest: Run | null = null
    let at = 0
    for (const entry of partition.sorted) {
      for (let run = runs[at]; run !== undefined && run.from <= entry.offset; run = runs[++at]) {
        if (widest === null || run.next > widest.next) widest = run
      }
      const { acked, offset } = entry
      if (acked === null || entry.firstRead !== null || offset < partition.start) continue
      const place = partition.place(offset, entry.facts.value)
      const scan = partition.lastScan
      if (widest !== null && widest.next > offset) {
        const message = `${entry.facts.value} was acknowledged at offset ${offset}; a reader passed it, nobody read it`
        this.#found.add('lost-write', place, message, acked, widest.event)
      } else if (scan !== null && acked.index < scan.index) {
        const message = `${entry.facts.value} was acknowledged at offset ${offset}, where the last scan found nothing`
        this.#found.add('unseen', place, message, acked, scan)
      }
    }
  }

  #judgeGap(partition: PartitionFacts, gap: Gap): void {
    const entries = partition.sorted
    for (let i = lowerBound(entries, gap.from, (entry) => entry.offset); i < entries.length; i++) {
      const entry = entries[i] as Entry
      if (entry.offset >= gap.to) return
      const read = entry.firstRead
      if (read === null || read.index >= gap.readBefore || entry.facts.aborted) continue
      const place = partition.place(entry.offset, entry.facts.value)
      if (read.index < gap.restart) {
        const message = `offset ${entry.offset} was read before a restart and is missing after it`
        this.#found.add('restart-read-regressed', place, message, read, gap.event)
      } else {
        const within = gap.before === gap.event ? 'within one read' : 'from one read to the next'
        const message = `a reader passed over offset ${entry.offset}, ${within}`
        this.#found.add('skipped-read', place, message, gap.before, gap.event)
      }
    }
  }

  /** Calls of one process that overlapped; those that did not were judged against everybody's. */
  #judgeSends(partition: PartitionFacts, sends: Sent[]): void {
    let highest: Sent | null = null
    for (const send of sends.sort((a, b) => a.call - b.call)) {
      if (highest !== null && highest.offset > send.offset && highest.ok.index > send.call) {
        const { value } = this.#events[send.call] as SendEvent
        this.#sentBackwards(partition, send.offset, value, highest.ok, send.ok)
      }
      if (highest === null || send.offset > highest.offset) highest = send
    }
  }
}
