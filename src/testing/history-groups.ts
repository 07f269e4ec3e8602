/**
 * The checks of groups: whether every delivery was called for, in order, in one pair of hands, with the
 * right attempt, and ended once. One pass, each event at a constant price. While a replay is on its way
 * (`reset` without its `reset-ok`) a delivery may belong to either side of it, so nothing is judged.
 */
import type {
  CloseEvent,
  CommitEvent,
  CrashEvent,
  DeadLetterEvent,
  DeliverEvent,
  DrainedEvent,
  DropEvent,
  EventHandlers,
  FailEvent,
  GroupEvent,
  HistoryEvent,
  LeaveEvent,
  ResetEvent,
  ResetOkEvent,
  SettleEvent,
  Settlement,
} from './history.ts'
import { judgeAccounts } from './history-accounts.ts'
import type { AnomalyKind, Findings } from './history-anomalies.ts'
import { Cursor, GroupFacts, type Lane, Tracked, type TrackedState } from './history-cursor.ts'
import type { LogChecks } from './history-log.ts'

export class GroupChecks {
  readonly #events: readonly HistoryEvent[]
  readonly #log: LogChecks
  readonly #found: Findings
  readonly #groups = new Map<string, GroupFacts>()
  #restarts = 0
  #crashes = 0

  readonly handlers: EventHandlers = {
    group: (event) => this.#rules(event),
    reset: (event) => this.#reset(event),
    'reset-ok': (event) => this.#resetOk(event),
    fail: (event) => this.#fail(event),
    deliver: (event) => this.#deliver(event),
    settle: (event) => this.#settle(event),
    'dead-letter': (event) => this.#deadLetter(event),
    drop: (event) => this.#drop(event),
    leave: (event) => this.#leave(event),
    commit: (event) => this.#commit(event),
    drained: (event) => this.#drained(event),
    crash: (event) => this.#restart(event),
    close: (event) => this.#restart(event),
  }

  constructor(events: readonly HistoryEvent[], log: LogChecks, found: Findings) {
    this.#events = events
    this.#log = log
    this.#found = found
  }

  finish(): void {
    for (const group of this.#groups.values()) {
      for (const cursor of group.cursors.values()) {
        judgeAccounts(group, cursor, this.#crashes, this.#found)
      }
    }
  }

  #rules(event: GroupEvent): void {
    const group = this.#group(event.group)
    group.rules = { ...group.rules, ...event.rules }
  }

  // ── where the cursor is ───────────────────────────────────────────────────────────────────────

  #reset(event: ResetEvent): void {
    this.#cursor(event).pending = event
  }

  #resetOk(event: ResetOkEvent): void {
    const reset = this.#events[event.of] as ResetEvent
    const cursor = this.#cursor(reset)
    for (const hands of this.#group(reset.group).members.values()) {
      for (const [record, its] of hands) if (its === cursor && !record.doubtful) hands.delete(record)
    }
    cursor.restart(event.offset, this.#restarts, this.#crashes)
  }

  #fail(event: FailEvent): void {
    const start = this.#events[event.of] as HistoryEvent
    if (start.type !== 'reset') return
    const cursor = this.#cursor(start)
    cursor.pending = null
    cursor.doubtful = []
  }

  #commit(event: CommitEvent): void {
    const cursor = this.#cursor(event)
    if (cursor.pending !== null) return
    if (event.offset < cursor.committed) {
      const message = `the committed offset went from ${cursor.committed} back to ${event.offset}`
      this.#add('commit-regressed', cursor, event.group, event.offset, message, cursor.lastCommit, event)
      return
    }
    cursor.committed = event.offset
    cursor.lastCommit = event
    if (event.offset > (cursor.highestCommit?.offset ?? -1)) cursor.highestCommit = event
  }

  // ── deliveries ────────────────────────────────────────────────────────────────────────────────

  #deliver(event: DeliverEvent): void {
    const group = this.#group(event.group)
    const cursor = this.#cursor(event)
    const known = cursor.records.get(event.offset)
    const doubtful = cursor.pending !== null
    const disputed = !doubtful && this.#judgeDelivery(group, cursor, known, event)
    const lane = this.#laneOf(group, cursor, event)
    const again = known !== undefined && (known.doubtful || known.lane === lane)
    if (known?.state === 'in-flight') this.#end(group, cursor, known, event, 'ended')
    else if (known?.state === 'waiting') known.lane?.forget(known)

    const record = known ?? new Tracked(event.offset, event)
    cursor.records.set(event.offset, record)
    record.state = 'in-flight'
    record.delivery = event
    record.doubtful = doubtful
    record.lane = null
    this.#touch(record, event)
    group.hands(event.member).set(record, cursor)
    if (doubtful) {
      cursor.doubtful.push(record)
      return
    }
    const conflict = lane === null ? null : lane.enter(record, event, again)
    if (conflict !== null && !disputed) this.#judgeOrder(group, cursor, event, conflict)
    cursor.inFlight++
    cursor.lastDelivery = event
  }

  /** Whether the delivery was called for; answers whether its ownership is in dispute. */
  #judgeDelivery(
    group: GroupFacts,
    cursor: Cursor,
    known: Tracked | undefined,
    event: DeliverEvent,
  ): boolean {
    if (known?.state === 'in-flight' && !known.doubtful && known.delivery?.member !== event.member) {
      const message = `${event.member} got what ${known.delivery?.member} still had in flight`
      this.#add('concurrent-ownership', cursor, group.name, event.offset, message, known.delivery, event)
      return true
    }
    const bad = this.#uncalledFor(group, cursor, known, event)
    if (bad !== null) {
      this.#add('bad-redelivery', cursor, group.name, event.offset, bad, known?.last ?? null, event)
    } else if (known?.doubtful !== true) this.#judgeAttempt(group, cursor, known, event)

    const { lastDelivery } = cursor
    if (group.rules.ownership !== 'partition' || cursor.inFlight === 0) return false
    if (lastDelivery === null || lastDelivery.member === event.member) return false
    const message = `${event.member} got a record while ${lastDelivery.member} had the partition`
    this.#add('concurrent-ownership', cursor, group.name, event.offset, message, lastDelivery, event)
    return true
  }

  #uncalledFor(
    group: GroupFacts,
    cursor: Cursor,
    known: Tracked | undefined,
    event: DeliverEvent,
  ): string | null {
    if (cursor.start !== null && event.offset < cursor.start) {
      return `offset ${event.offset} came although the cursor was put to ${cursor.start}`
    }
    if (known === undefined || known.doubtful) return null
    if (known.state === 'in-flight') return `${event.member} got again what it still had in flight`
    if (group.atMostOnce) return `offset ${event.offset} came twice, at most once`
    if (known.state === 'waiting') return null
    const end = known.rejected ? 'dead-lettered' : known.acked ? 'acked' : 'out of attempts'
    if (this.#crashes === known.crashes) return `offset ${event.offset} came again after it was ${end}`
    return event.offset < cursor.committed
      ? `offset ${event.offset} came again after a crash, below the committed ${cursor.committed}`
      : null
  }

  #judgeAttempt(group: GroupFacts, cursor: Cursor, known: Tracked | undefined, event: DeliverEvent): void {
    const restarts = this.#restarts - (known ?? cursor).restarts
    let lowest = known?.lowest ?? 1
    let highest = known?.highest ?? 1
    if (restarts > 0) {
      // What was not stored is not remembered, but that it was handed out before is.
      lowest = Math.min(lowest, 2)
      highest += restarts
    }
    highest = Math.min(highest, group.rules.attempts)
    if (event.attempt >= lowest && event.attempt <= highest) return
    const expected = lowest < highest ? `${lowest} to ${highest}` : `${Math.min(lowest, highest)}`
    const message = `attempt ${event.attempt} at offset ${event.offset}, where ${expected} is next`
    const before = known?.last ?? null
    this.#add('attempts-out-of-bounds', cursor, group.name, event.offset, message, before, event)
  }

  #judgeOrder(
    group: GroupFacts,
    cursor: Cursor,
    event: DeliverEvent,
    conflict: DeliverEvent | Tracked,
  ): void {
    const overtook = conflict instanceof Tracked
    if (overtook && !group.rules.lossless) {
      cursor.suspects.push({ overtaken: conflict, since: conflict.last, by: event })
      return
    }
    const message = `offset ${event.offset} came while the order still belonged to ${conflict.offset}`
    const before = overtook ? conflict.last : conflict
    this.#add('order-violation', cursor, group.name, event.offset, message, before, event)
  }

  // ── how they end ──────────────────────────────────────────────────────────────────────────────

  #settle(event: SettleEvent): void {
    const delivery = this.#events[event.of] as DeliverEvent
    const group = this.#group(delivery.group)
    const cursor = this.#cursor(delivery)
    const record = cursor.records.get(delivery.offset)
    if (record === undefined || record.delivery !== delivery || record.state !== 'in-flight') {
      if (cursor.pending === null) {
        const message = `${event.how} took effect on a delivery of offset ${delivery.offset} that had ended`
        this.#add(
          'stale-settle',
          cursor,
          group.name,
          delivery.offset,
          message,
          record?.last ?? delivery,
          event,
        )
      }
      return
    }
    const { attempt } = delivery
    if (!this.#isFinal(group, record, event.how, attempt)) {
      this.#end(group, cursor, record, event, 'waiting', event.how === 'release' ? attempt : attempt + 1)
      return
    }
    if (event.how === 'ack') {
      if (record.rejected) this.#judgeBoth(group, cursor, record, event)
      record.acked = true
    }
    this.#end(group, cursor, record, event, 'ended')
    if (group.atMostOnce || cursor.pending !== null) return
    if (cursor.lastCommit === null || cursor.committed <= record.offset) return
    const message = `the committed offset ${cursor.committed} passed offset ${record.offset} before it was settled`
    this.#add('commit-past-unsettled', cursor, group.name, record.offset, message, cursor.lastCommit, event)
  }

  #isFinal(group: GroupFacts, record: Tracked, how: Settlement, attempt: number): boolean {
    if (how === 'release') return false
    if (how === 'ack' || how === 'reject') return true
    return record.rejected || attempt >= group.rules.attempts
  }

  #deadLetter(event: DeadLetterEvent): void {
    const group = this.#group(event.group)
    const cursor = this.#cursor(event)
    const record = cursor.records.get(event.offset) ?? new Tracked(event.offset, event)
    cursor.records.set(event.offset, record)

    const before = cursor.deadLetters.get(event.offset)
    const count = (before?.count ?? 0) + 1
    cursor.deadLetters.set(event.offset, { count, first: before?.first ?? event })
    if (before !== undefined && count > Math.max(1, cursor.resets)) {
      const message = `offset ${event.offset} was dead-lettered ${count} times`
      this.#add('dead-lettered-twice', cursor, group.name, event.offset, message, before.first, event)
    } else if (cursor.pending === null && !record.doubtful)
      this.#judgeDeadLetter(group, cursor, record, event)

    if (record.state === 'waiting') {
      record.lane?.forget(record)
      record.state = 'ended'
    }
    record.deadLetter = event
    if (record.state !== 'in-flight') this.#touch(record, event)
  }

  #judgeDeadLetter(group: GroupFacts, cursor: Cursor, record: Tracked, event: DeadLetterEvent): void {
    if (record.restarts !== this.#restarts) return
    const { last } = record
    if (last.type === 'settle' && last.how === 'ack') this.#judgeBoth(group, cursor, record, event)
    const { attempts } = group.rules
    if (record.state !== 'waiting' || attempts === Number.POSITIVE_INFINITY) return
    const message = `offset ${event.offset} was dead-lettered before attempt ${record.highest} of ${attempts}`
    this.#add('attempts-out-of-bounds', cursor, group.name, event.offset, message, record.last, event)
  }

  #judgeBoth(group: GroupFacts, cursor: Cursor, record: Tracked, event: HistoryEvent): void {
    const message = `offset ${record.offset} was both acked and dead-lettered`
    this.#add('stale-settle', cursor, group.name, record.offset, message, record.last, event)
  }

  #drop(event: DropEvent): void {
    this.#cursor(event).drops.push(event)
  }

  #leave(event: LeaveEvent): void {
    const group = this.#group(event.group)
    for (const [record, cursor] of group.hands(event.member)) {
      this.#end(group, cursor, record, event, 'waiting', record.delivery?.attempt)
    }
    group.members.delete(event.member)
  }

  #drained(event: DrainedEvent): void {
    this.#group(event.group).drained = event
  }

  /** What was in flight comes again: after a crash with a higher attempt, after a close with either. */
  #restart(event: CrashEvent | CloseEvent): void {
    for (const group of this.#groups.values()) {
      for (const hands of group.members.values()) {
        for (const [record, cursor] of hands) {
          const attempt = record.delivery?.attempt ?? 1
          this.#end(group, cursor, record, event, 'waiting', attempt)
          if (event.type === 'crash') record.lowest = 2
        }
      }
      for (const cursor of group.cursors.values()) cursor.calm()
    }
    this.#restarts++
    if (event.type === 'crash') this.#crashes++
  }

  /** A delivery ended, and `next` is the attempt that may follow. */
  #end(
    group: GroupFacts,
    cursor: Cursor,
    record: Tracked,
    event: HistoryEvent,
    state: TrackedState,
    next?: number,
  ): void {
    if (record.delivery !== null) group.hands(record.delivery.member).delete(record)
    // At most once, a delivery is its own end.
    record.state = group.atMostOnce ? 'ended' : state
    record.lane?.leave(record, record.state === 'waiting')
    if (!record.doubtful) cursor.inFlight--
    record.lowest = next ?? 2
    record.highest = next ?? record.delivery?.attempt ?? 1
    this.#touch(record, event)
  }

  #touch(record: Tracked, event: HistoryEvent): void {
    record.last = event
    record.restarts = this.#restarts
    record.crashes = this.#crashes
  }

  // ── finding things ────────────────────────────────────────────────────────────────────────────

  #group(name: string): GroupFacts {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = new GroupFacts(name)
      this.#groups.set(name, group)
    }
    return group
  }

  #cursor(at: { group: string; topic: string; partition: number }): Cursor {
    const group = this.#group(at.group)
    const facts = this.#log.partition(at.topic, at.partition)
    let cursor = group.cursors.get(facts)
    if (cursor === undefined) {
      cursor = new Cursor(facts)
      group.cursors.set(facts, cursor)
    }
    return cursor
  }

  #laneOf(group: GroupFacts, cursor: Cursor, event: DeliverEvent): Lane | null {
    if (group.rules.order === 'partition') return cursor.lane(null)
    return group.rules.order === 'key' && event.key !== null ? cursor.lane(event.key) : null
  }

  #add(
    kind: AnomalyKind,
    cursor: Cursor,
    group: string,
    offset: number,
    message: string,
    ...events: (HistoryEvent | null)[]
  ): void {
    const value = cursor.facts.entries.get(offset)?.facts.value ?? null
    this.#found.add(kind, { ...cursor.facts.place(offset, value), group }, message, ...events)
  }
}
