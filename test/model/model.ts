/**
 * The plain model of a broker: what is in the logs, where every reader is, and what it may be told next. It
 * does not predict: strategies and races may hand out records in many orders. It watches, and says of
 * everything that it sees whether that was allowed; what must have happened is asked when all is at rest.
 *
 *   log rows ──► appended ┐                     ┌─ allowed? else a problem
 *   handlers ──► delivered├──► fates of records ┤
 *   commands ──► settled  ┘                     └─ at rest: nothing left undone (rest.ts)
 *
 * It hears of a settle when the handler decides, which is at or before the moment the broker does.
 */
import type { Delivery, DeliveryBatch } from '../../src/model/delivery.ts'
import type { Counters } from '../../src/model/views.ts'
import type { History } from '../../src/testing/history.ts'
import type { BusyClock } from './busy-clock.ts'
import { isTooLarge, ModelPartition, ModelTopic, type Request, type Row } from './logs.ts'
import type { ReaderPlan } from './program.ts'
import {
  addCounts,
  addDoubt,
  Fate,
  ModelCursor,
  type ModelMember,
  ModelReader,
  noCounts,
  Unit,
} from './readers.ts'

const MAX_DELAY_MS = 1_000
/** When handlers take time, a promise is heard of that much later, at most. */
const LATE_MS = 1_000
/** Settled deliveries that are kept, to try to settle them again. */
const KEPT_UNITS = 32

export class Model {
  readonly clock: BusyClock
  readonly history: History
  readonly problems: string[] = []
  /** Every one that exists, by name; not all are visible yet. */
  readonly topics = new Map<string, ModelTopic>()
  readonly readers: ModelReader[] = []
  readonly members: ModelMember[] = []
  readonly units: Unit[] = []
  /** Who published a value. */
  readonly requests = new Map<string, Request>()
  /** Failures for which there are dead letters, and where these are. */
  readonly letters = new Map<string, { readonly partition: ModelPartition; readonly offset: number }[]>()
  /** How many topics there were of each name. */
  readonly lives = new Map<string, number>()
  readonly jitter: boolean
  /** Handlers take no time, so that deadlines pass when they say. */
  readonly exact: boolean
  /** When anything last happened to any reader. */
  touchedAt = 0
  /** When all was at rest the last time. */
  restedAt = 0
  rests = 0
  /** The broker closes: readers let go of their logs. */
  closing = false
  closed = false
  #lives = 0
  #batches = 0

  constructor(clock: BusyClock, history: History, options: { jitter: boolean; exact: boolean }) {
    this.clock = clock
    this.history = history
    this.jitter = options.jitter
    this.exact = options.exact
  }

  get now(): number {
    return this.clock.monotonic()
  }

  problem(what: string): void {
    if (this.problems.length < 20) this.problems.push(`at ${this.now} ms: ${what}`)
  }

  // ── logs ──────────────────────────────────────────────────────────────────────────────────────

  /** A log was opened: of a new topic, or one more of a known one. */
  opened(name: string, id: string, index: number): ModelPartition {
    let topic = this.topics.get(name)
    if (topic === undefined || topic.id !== id) {
      topic = new ModelTopic(name, id)
      this.topics.set(name, topic)
      this.lives.set(name, (this.lives.get(name) ?? 0) + 1)
    }
    const partition = new ModelPartition(topic, index)
    topic.partitions.push(partition)
    return partition
  }

  /** Patterns find it, and everybody can publish to it. */
  nowVisible(topic: ModelTopic): void {
    topic.visible = true
    for (const reader of this.readers) {
      for (const member of reader.members) {
        if (this.isPattern(reader) && matches(topic)) {
          member.topics.add(topic)
          this.attach(reader, topic, () => 0)
        }
      }
    }
  }

  isPattern({ plan }: ModelReader): boolean {
    return plan.target === 3
  }

  /** New partitions start at 0 for every reader. */
  grown(topic: ModelTopic): void {
    for (const reader of this.readers) {
      const reads = topic.partitions.some((partition) => reader.cursors.has(partition))
      if (reads) this.attach(reader, topic, () => 0)
    }
  }

  deleted(topic: ModelTopic): void {
    this.topics.delete(topic.name)
    for (const { line } of topic.partitions)
      for (const request of [...line]) this.leaveLine(request, 'refused')
    for (const reader of [...this.readers]) {
      if (!topic.partitions.some((partition) => reader.cursors.has(partition))) continue
      for (const partition of topic.partitions) {
        const cursor = reader.cursors.get(partition)
        if (cursor !== undefined) this.#abandon(cursor)
        reader.cursors.delete(partition)
      }
      reader.leftAt.delete(topic)
      for (const member of reader.members) member.topics.delete(topic)
      if (reader.cursors.size === 0 && reader.members.length === 0) this.#remove(reader)
    }
  }

  /** Rows were added, or the start moved. `start` and `rows` are what the log says now. */
  advanced(partition: ModelPartition, start: number, rows: readonly Row[]): void {
    const request = rows[0] === undefined ? undefined : this.#requestOf(rows[0])
    this.#expireDue()
    if (request?.anywhere === true && request.state === 'calling') request.partition = partition
    this.#judgeStart(partition, start, rows, request)
    for (const row of rows) {
      partition.rows.push(row)
      if (row.letterOf !== null) this.#letter(partition, row.offset, row.letterOf)
      for (const cursor of partition.cursors) {
        cursor.fates.push(this.#arrive(cursor, row))
      }
    }
    partition.start = start
    for (const cursor of partition.cursors) cursor.moved = true
    this.touch()
    if (request !== undefined) this.#admitted(request, rows)
  }

  #requestOf(row: Row): Request | undefined {
    return row.letterOf === null && !row.isCopy ? this.requests.get(row.value) : undefined
  }

  /** What retention took: no more than it must, and nothing that a reader holds, dead letters aside. */
  #judgeStart(
    partition: ModelPartition,
    start: number,
    rows: readonly Row[],
    request: Request | undefined,
  ): void {
    if (start < partition.start) this.problem(`the start of ${nameOf(partition)} went back to ${start}`)
    if (start === partition.start || this.closing) return
    const forced = rows.some((row) => row.letterOf !== null)
    const gate = this.gate(partition, 'highest', null)
    if (!forced && start > gate) {
      this.problem(`${nameOf(partition)} evicted to ${start} through the gate at ${gate}`)
    }
    const bytes = rows.reduce((sum, row) => sum + row.sizeBytes, 0)
    const needed = partition.startFor(rows.length, bytes)
    const { ageMs } = partition.topic
    let aged = partition.start
    const oldest = this.clock.now() - ageMs
    while ((partition.rows[aged]?.timestamp ?? Number.POSITIVE_INFINITY) <= oldest) aged++
    if (start > Math.max(needed, aged) && request?.exempt == null) {
      this.problem(`${nameOf(partition)} evicted to ${start} where ${Math.max(needed, aged)} would do`)
    }
  }

  /** The fate of a record at a reader that is already there. */
  #arrive(cursor: ModelCursor, row: Row): Fate {
    const fate = new Fate(cursor, row)
    const { plan } = cursor.reader
    if (plan.overflow === 'drop-newest' && cursor.reader.durable && !this.#admits(cursor, row))
      this.#drops(fate)
    return fate
  }

  /** drop-newest takes in what fits beside what it has taken in and not settled. */
  #admits(cursor: ModelCursor, row: Row): boolean {
    const { plan } = cursor.reader
    const { records, bytes } = cursor.partition.topic
    const { open } = cursor
    const held = open.reduce((sum, fate) => sum + fate.row.sizeBytes, 0)
    return (
      open.length < Math.min(plan.maxLagRecords || records, records) &&
      held + row.sizeBytes <= Math.min(plan.maxLagBytes || bytes, bytes)
    )
  }

  /**
   * Once per failure, as long as the letter is kept. It does not say of which life its topic was, so each life
   * has one.
   */
  #letter(partition: ModelPartition, offset: number, identity: string): void {
    const letters = this.letters.get(identity) ?? []
    const origin = identity.slice(0, identity.indexOf('/'))
    const kept = letters.filter(({ partition: each }) => each.topic === partition.topic).filter(isKept)
    if (kept.length >= (this.lives.get(origin) ?? 0)) {
      this.problem(`${identity} was dead-lettered to ${partition.topic.name} twice`)
    }
    this.letters.set(identity, [...letters, { partition, offset }])
  }

  // ── publishers ────────────────────────────────────────────────────────────────────────────────

  #admitted(request: Request, rows: readonly Row[]): void {
    const { partition, values } = request
    const { now } = this
    const wrong = rows.length !== values.length || rows.some((row, i) => row.value !== values[i])
    if (wrong) this.problem(`${nameOf(partition)} took a part of ${values.join(', ')}`)
    if (request.state === 'in' || request.state === 'refused') {
      this.problem(`${values[0]} is in ${nameOf(partition)} although it was ${request.state}`)
      return
    }
    const before = partition.line.find(
      (each) =>
        each === request ||
        (each.exempt === null && !each.unsure && each.deadline > now && !isTooLarge(each)),
    )
    if (request.exempt === null && before !== undefined && before !== request) {
      this.problem(`${values[0]} overtook ${before.values[0]} in the line of ${nameOf(partition)}`)
    }
    request.base = rows[0]?.offset ?? -1
    this.leaveLine(request, 'in')
    if (!request.together.every((each) => each.state === 'in')) return
    for (const fate of request.acks) {
      if (fate.state !== 'flight')
        this.problem(`a transaction acked ${fate.row.offset}, which was ${fate.state}`)
      this.ack(fate)
    }
  }

  leaveLine(request: Request, state: 'in' | 'refused'): void {
    request.state = state
    request.ended = this.rests
    const { line } = request.partition
    const at = line.indexOf(request)
    if (at >= 0) line.splice(at, 1)
  }

  /**
   * The lowest offset that readers keep from eviction. `highest`: as if all that is about to settle had;
   * `lowest`: as if none of it.
   */
  gate(partition: ModelPartition, bound: 'lowest' | 'highest', except: ModelReader | null): number {
    let gate = Number.POSITIVE_INFINITY
    for (const cursor of partition.cursors) {
      const { reader } = cursor
      if (reader === except || !reader.gates || !this.holds(reader, partition.topic, bound)) continue
      gate = Math.min(gate, this.needs(cursor, bound))
    }
    return gate
  }

  /** The lowest offset that one cursor needs: what is idle below its floor is as good as gone. */
  needs(cursor: ModelCursor, bound: 'lowest' | 'highest'): number {
    const { reader } = cursor
    const floor = this.floor(cursor)
    return cursor.lowest((fate) => {
      if (fate.isIdle && fate.row.offset < floor) return false
      if (reader.atMostOnce) return fate.state === 'pending' && (bound === 'lowest' || !isForOthers(fate))
      if (bound === 'highest') return fate.isOpen && !this.#isEnding(fate)
      return fate.isOpen || fate.promised === this.rests
    })
  }

  /** It may have settled, or been passed by, unseen. */
  #isEnding(fate: Fate): boolean {
    if (fate.state === 'pending') return isForOthers(fate)
    return fate.state === 'dying' || (fate.state === 'flight' && (fate.unit as Unit).deadlineFrom <= this.now)
  }

  /** Whether a reader holds the log of a topic now: with members, and for a while after. */
  holds(reader: ModelReader, topic: ModelTopic, bound: 'lowest' | 'highest' = 'highest'): boolean {
    if (!reader.holdsLogs) return false
    if (reader.membersOn(topic).length > 0) return true
    const left = reader.leftAt.get(topic)
    if (left === undefined) return false
    const until = left.at + reader.plan.graceMs
    if (this.now < until) return true
    // Its timer is due, and has fired for sure once all was at rest.
    return bound === 'lowest' && !(this.rests > left.rests && this.restedAt >= until)
  }

  /** Whether a request would be let in, were it its turn. */
  fits({ partition, values, sizeBytes, exempt }: Request, bound: 'lowest' | 'highest'): boolean {
    const records = values.length
    if (isTooLarge({ partition, values, sizeBytes })) return true
    const gate = this.gate(partition, bound, null)
    if (partition.hasRoom(records, sizeBytes, gate)) return true
    if (exempt === null) return false
    // Only its own reader is in the way, and the log grows to twice its retention at most.
    const others = this.gate(partition, bound, exempt)
    return partition.startFor(records, sizeBytes) <= others && partition.hasRoom(records, sizeBytes, gate, 2)
  }

  /** Whether a reader that wants FULL is in the way. */
  rejects({ partition, values, sizeBytes, exempt }: Request, bound: 'lowest' | 'highest'): boolean {
    for (const cursor of partition.cursors) {
      const { reader } = cursor
      if (reader === exempt || reader.plan.overflow !== 'reject') continue
      if (!this.holds(reader, partition.topic, bound)) continue
      const start = partition.startFor(values.length, sizeBytes)
      if (start > this.needs(cursor, bound)) return true
    }
    return false
  }

  // ── readers and members ───────────────────────────────────────────────────────────────────────

  makeReader(plan: ReaderPlan, name: string): ModelReader {
    const reader = new ModelReader(plan, name, `${name}#${++this.#lives}`)
    this.readers.push(reader)
    this.history.group(reader.life, {
      order: plan.order,
      guarantee: plan.guarantee,
      attempts: plan.attempts,
      ownership: reader.assigned ? 'partition' : 'record',
    })
    return reader
  }

  /** Puts a reader's cursors in the partitions that it does not know. */
  attach(reader: ModelReader, topic: ModelTopic, startOf: (partition: ModelPartition) => number): void {
    for (const partition of topic.partitions) {
      if (reader.cursors.has(partition)) continue
      const cursor = new ModelCursor(reader, partition, 0)
      reader.cursors.set(partition, cursor)
      partition.cursors.add(cursor)
      this.put(cursor, startOf(partition))
    }
  }

  /** The cursor is at `offset`, and nothing is known of what comes from there. */
  put(cursor: ModelCursor, offset: number): void {
    const { partition, reader } = cursor
    this.#fence(cursor)
    partition.cursors.add(cursor)
    cursor.from = offset
    cursor.fates = []
    cursor.moved = false
    this.touch()
    const reset = this.history.reset(reader.life, logOf(partition), partition.index)
    this.history.resetOk(reset, offset)
    for (const row of partition.rows.slice(offset)) cursor.fates.push(this.#arrive(cursor, row))
  }

  /**
   * Whatever is in flight settles nothing any more. Whether overflow had taken what it may, and dead letters were
   * in, is not to be seen.
   */
  #fence(cursor: ModelCursor): void {
    const floor = this.floor(cursor)
    cursor.reader.orphaned.dropped -= cursor.freshDrops
    addDoubt(cursor.reader.orphaned, 'dropped', cursor.freshDrops)
    cursor.freshDrops = 0
    for (const fate of cursor.fates) {
      if (fate.isIdle && fate.row.offset < floor) addDoubt(cursor.reader.orphaned, 'dropped', 1)
      if (fate.state === 'dying' && this.#hasLetter(fate)) addDoubt(this.#countsOf(fate), 'deadLettered', 1)
      if (fate.promised === this.rests) this.#doubtPromise(fate)
      fate.state = 'done'
      fate.unit = null
    }
    cursor.partition.cursors.delete(cursor)
  }

  /** The cursor is no more. What becomes of its records is nobody's business: a replay that never ends says so. */
  #abandon(cursor: ModelCursor): void {
    this.#fence(cursor)
    this.history.reset(cursor.reader.life, logOf(cursor.partition), cursor.partition.index)
  }

  /** A promise may have been heard of before a replay, or not. */
  #doubtPromise(fate: Fate): void {
    const unit = this.#hands.get(fate)
    if (unit === undefined) return
    const names: (keyof Counters)[] = [unit.promisedAs]
    if (fate.ending === 'skipped') names.push('skipped')
    for (const name of names) {
      unit.counts[name]--
      addDoubt(unit.counts, name, 1)
    }
  }

  joined(member: ModelMember, topics: readonly ModelTopic[]): void {
    const { reader } = member
    for (const topic of topics) {
      member.topics.add(topic)
      reader.leftAt.delete(topic)
    }
    reader.members.push(member)
    this.touch()
  }

  /** The member is gone, and what it had in its hands goes back. */
  left(member: ModelMember): void {
    const { reader } = member
    for (const unit of member.units) if (unit.isBusy && unit.deadlineFrom <= this.now) this.expire(unit)
    if (member.busy > 0 && (member.closing === null || this.now < member.closing.by)) {
      this.problem(`${member.id} left with ${member.busy} deliveries in its hands`)
    }
    for (const unit of member.units) {
      unit.counts = reader.orphaned
      if (!unit.isBusy || (unit.onStack && unit.batch === null)) continue
      for (const fate of unit.unsettled) this.release(fate)
      if (!unit.returned) member.counts.zombies++
      unit.givenUp = true
    }
    member.left = true
    reader.members = reader.members.filter((each) => each !== member)
    addCounts(reader.orphaned, member.counts)
    member.counts = reader.orphaned
    for (const topic of member.topics) {
      if (reader.membersOn(topic).length > 0) continue
      reader.leftAt.set(topic, { at: this.now, rests: this.rests })
    }
    this.touch()
    const { kind } = reader.plan
    if (reader.members.length > 0) return
    const wasLast = reader.cursors.size === 0 && !this.isPattern(reader)
    if (kind === 'anonymous' || (kind === 'broadcast' && member.forgets) || wasLast) this.forget(reader)
  }

  /** The reader and its place are no more. */
  forget(reader: ModelReader): void {
    for (const cursor of reader.cursors.values()) this.#abandon(cursor)
    reader.cursors.clear()
    this.#remove(reader)
  }

  #remove(reader: ModelReader): void {
    const at = this.readers.indexOf(reader)
    if (at >= 0) this.readers.splice(at, 1)
  }

  /** An empty reader gets a member with other settings: in the same place, with nothing remembered. */
  reopened(reader: ModelReader, plan: ReaderPlan): void {
    reader.plan = plan
    reader.orphaned = noCounts()
    reader.raisedDrops = 0
    for (const cursor of reader.cursors.values()) {
      const floor = this.floor(cursor)
      for (const fate of cursor.open) {
        if (fate.isIdle && fate.row.offset < floor) {
          // Whether it was counted before is not to be seen.
          addDoubt(reader.orphaned, 'dropped', 1)
          this.#end(fate, 'dropped')
          continue
        }
        fate.state = 'pending'
        fate.attempt = 1
        fate.handed = false
        fate.avoid = null
      }
      this.#tellPlace(cursor)
    }
    this.history.group(reader.life, {
      order: plan.order,
      guarantee: plan.guarantee,
      attempts: plan.attempts,
      ownership: reader.assigned ? 'partition' : 'record',
    })
  }

  /** To the checker of histories: it starts again at the lowest that is open, and the others are settled. */
  #tellPlace(cursor: ModelCursor): void {
    const { reader, partition } = cursor
    const reset = this.history.reset(reader.life, logOf(partition), partition.index)
    this.history.resetOk(
      reset,
      cursor.lowest((fate) => fate.isOpen),
    )
    const [first] = cursor.open
    if (first === undefined) return
    for (const fate of cursor.fates) {
      if (!fate.isOpen && fate.row.offset > first.row.offset) this.#deadLettered(fate)
    }
  }

  touch(): void {
    this.touchedAt = this.now
  }

  // ── deliveries ────────────────────────────────────────────────────────────────────────────────

  /** A handler is called. */
  delivered(
    member: ModelMember,
    deliveries: readonly Delivery<string>[],
    batch: DeliveryBatch<string> | null,
  ): Unit {
    const { reader, plan } = member
    this.#expireDue()
    const fates: Fate[] = []
    for (const delivery of deliveries) {
      const fate = this.#fateOf(member, delivery)
      if (fate === undefined) continue
      this.#judgeDelivery(member, fate, delivery, fates)
      fates.push(fate)
    }
    this.#judgeHands(member, fates)
    const latest = this.now + plan.ackTimeoutMs
    const earliest = this.clock.baseMs + plan.ackTimeoutMs
    const unit = new Unit(member, fates, deliveries, batch, earliest, latest)
    const together = batch === null ? null : ++this.#batches
    for (const fate of fates) {
      const { row, cursor } = fate
      if (fate.handed) member.counts.redelivered++
      member.counts.delivered++
      member.credit--
      fate.state = 'flight'
      fate.unit = unit
      fate.avoid = null
      const record = {
        topic: logOf(cursor.partition),
        partition: cursor.partition.index,
        offset: row.offset,
        value: rowValue(row),
        key: row.key,
      }
      this.#events.set(fate, this.history.deliver(reader.life, member.id, record, fate.attempt, together))
    }
    this.touch()
    member.units.push(unit)
    this.units.push(unit)
    return unit
  }

  readonly #events = new Map<Fate, number>()

  #fateOf(member: ModelMember, delivery: Delivery<string>): Fate | undefined {
    const { topic, partition, offset } = delivery
    const what = `${member.id} got ${topic}/${partition}/${offset}`
    const log = [...member.topics].find((each) => each.name === topic)?.partitions[partition]
    const cursor = log === undefined ? undefined : member.reader.cursors.get(log)
    if (cursor === undefined) {
      this.problem(`${what}, of a topic that it does not read`)
      return undefined
    }
    const fate = cursor.fate(offset)
    if (fate === undefined) this.problem(`${what}, but was put to ${cursor.from} of ${cursor.partition.end}`)
    return fate
  }

  #judgeDelivery(member: ModelMember, fate: Fate, delivery: Delivery<string>, before: readonly Fate[]): void {
    const { cursor, row } = fate
    const { partition } = cursor
    const what = `${cursor.reader.life}: ${member.id} got ${nameOf(partition)}/${row.offset}`
    if (fate.state === 'flight' && fate.unit !== null && fate.unit.deadlineFrom <= this.now) {
      this.expire(fate.unit)
    }
    if (!fate.isIdle) this.problem(`${what}, which was ${fate.ending ?? fate.state}`)
    if (fate.state === 'waiting' && this.now < fate.dueFrom) {
      this.problem(`${what} before its time, ${fate.dueFrom}`)
    }
    if (delivery.attempt !== fate.attempt) {
      this.problem(`${what} as attempt ${delivery.attempt}, not ${fate.attempt}`)
    }
    if (delivery.redelivered !== fate.handed) this.problem(`${what} as redelivered: ${delivery.redelivered}`)
    if (delivery.value !== row.value || delivery.key !== row.key) {
      this.problem(`${what} as ${delivery.key}: ${delivery.value}, not ${row.key}: ${row.value}`)
    }
    if (row.onlyFor !== null && row.onlyFor !== cursor.reader.key) {
      this.problem(`${what}, a copy for ${row.onlyFor} alone`)
    }
    this.#judgeOrder(what, fate, before)
    this.#passed(fate)
  }

  /** Everything that its order puts before it is settled, gone from the log, or in the same batch. */
  #judgeOrder(what: string, fate: Fate, before: readonly Fate[]): void {
    const { cursor, row } = fate
    const { order } = cursor.reader.plan
    if (order === 'none') return
    const floor = this.floor(cursor)
    for (const other of cursor.fates) {
      const ahead = other.row.offset < row.offset
      if (!other.isOpen || other === fate || before.includes(other)) continue
      if (other.state === 'flight' && (other.unit as Unit).deadlineFrom <= this.now) {
        this.expire(other.unit as Unit)
      }
      if (!other.isOpen || (other.state !== 'flight' && !ahead)) continue
      if (other.isIdle && (other.row.offset < floor || isForOthers(other))) continue
      if (other.state === 'dying' && this.#hasLetter(other)) continue
      if (order === 'key' && (row.key === null || other.row.key !== row.key)) continue
      this.problem(`${what} while ${other.row.offset} was ${other.state}, against its order by ${order}`)
    }
  }

  /** Copies for others are passed by on the way. */
  #passed(fate: Fate): void {
    if (fate.state !== 'pending') return
    for (const other of fate.cursor.fates) {
      if (other === fate) return
      if (other.state === 'pending' && isForOthers(other)) this.pass(other)
    }
  }

  /** A copy for others is no business of this reader: to the checker of histories, it was skipped. */
  pass(fate: Fate): void {
    // Unless overflow took it before.
    if (fate.row.offset < this.floor(fate.cursor)) addDoubt(fate.cursor.reader.orphaned, 'dropped', 1)
    fate.state = 'done'
    fate.ending = 'passed'
    this.#deadLettered(fate)
  }

  #judgeHands(member: ModelMember, fates: readonly Fate[]): void {
    const what = `${member.reader.life}: ${member.id} got ${fates.map((fate) => fate.row.offset).join(', ')}`
    const { plan, reader } = member
    if (this.closed) this.problem(`${what} after the broker was closed`)
    if (member.left || member.closing !== null) this.problem(`${what} after it was closed`)
    if (member.paused) this.problem(`${what} while paused`)
    const expired = member.units.filter((unit) => unit.isBusy && unit.deadlineFrom <= this.now).length
    if (member.busy - expired >= plan.concurrency) this.problem(`${what} with ${member.busy} in its hands`)
    if (member.zombies >= plan.concurrency) this.problem(`${what} with ${member.zombies} zombies`)
    if (member.credit < fates.length) this.problem(`${what} with credit for ${member.credit}`)
    if (fates.length > Math.max(1, plan.batch)) this.problem(`${what} in a batch of at most ${plan.batch}`)
    if (new Set(fates.map((fate) => fate.cursor)).size > 1) this.problem(`${what} of several partitions`)
    if (!reader.assigned) return
    for (const other of fates[0]?.cursor.inFlight ?? []) {
      if (other.unit === null || other.unit.member === member) continue
      if (other.unit.deadlineFrom <= this.now) this.expire(other.unit)
      else this.problem(`${what} while ${other.unit.member.id} has ${other.row.offset} in flight`)
    }
  }

  // ── how they end ──────────────────────────────────────────────────────────────────────────────

  ack(fate: Fate): void {
    if (fate.state !== 'flight') return
    this.#settled(fate, 'ack')
    this.#countsOf(fate).acked++
    this.#end(fate, 'acked')
  }

  nack(fate: Fate, delayMs?: number): void {
    if (fate.state !== 'flight') return
    if (fate.cursor.reader.atMostOnce) {
      this.#skip(fate)
      return
    }
    const { plan } = fate.cursor.reader
    this.#settled(fate, 'nack')
    this.#countsOf(fate).nacked++
    if (fate.attempt >= plan.attempts) {
      this.#fail(fate)
      return
    }
    const doubled = Math.min(plan.delayMs * 2 ** (fate.attempt - 1), MAX_DELAY_MS)
    const waitMs = delayMs ?? doubled
    const soonest = delayMs === undefined && this.jitter ? doubled * 0.8 : waitMs
    this.#comeBack(fate, fate.attempt + 1, soonest, waitMs)
  }

  reject(fate: Fate): void {
    if (fate.state !== 'flight') return
    this.#settled(fate, 'reject')
    this.#fail(fate)
  }

  /** It goes back unchanged. */
  release(fate: Fate): void {
    if (fate.state !== 'flight') return
    this.#settled(fate, 'release')
    if (fate.cursor.reader.atMostOnce) this.#skip(fate, false)
    else this.#comeBack(fate, fate.attempt, 0, 0)
  }

  expire(unit: Unit): void {
    const { unsettled, member } = unit
    unit.givenUp = true
    if (!unit.returned) unit.counts.zombies++
    for (const fate of unsettled) {
      this.#countsOf(fate).expired++
      if (fate.cursor.reader.atMostOnce) {
        this.#skip(fate)
        continue
      }
      this.#settled(fate, 'expire')
      if (fate.attempt >= fate.cursor.reader.plan.attempts) this.#fail(fate)
      else {
        this.#comeBack(fate, fate.attempt + 1, 0, 0)
        fate.avoid = member
      }
    }
  }

  /** Keeps what may still end, and the newest of the others. */
  forgetUnits(): void {
    const old = this.units.length - 2 * KEPT_UNITS
    if (old <= 0) return
    const kept = this.units.filter((unit, i) => i >= old + KEPT_UNITS || unit.isBusy || !unit.returned)
    this.units.length = 0
    this.units.push(...kept)
  }

  /** What time has ended by now. Code that takes time makes timers late: then it is up to the broker. */
  #expireDue(): void {
    if (!this.exact) return
    for (const unit of this.units) if (unit.isBusy && unit.deadlineBy <= this.now) this.expire(unit)
  }

  /** What was settled just now by a promise, which the broker hears of a moment later. */
  promised(unit: Unit, as: Unit['promisedAs']): void {
    unit.promisedAs = as
    for (const fate of unit.fates) {
      fate.promised = this.rests
      this.#hands.set(fate, unit)
    }
  }

  /** The handler returned, or its promise settled; its place is free when its work is settled too. */
  returned(unit: Unit): void {
    if (unit.returned) return
    unit.returned = true
    if (unit.givenUp) unit.counts.zombies--
  }

  #comeBack(fate: Fate, attempt: number, soonestMs: number, latestMs: number): void {
    fate.unit = null
    fate.state = 'waiting'
    fate.attempt = attempt
    fate.handed = true
    fate.dueFrom = this.now + soonestMs
    fate.dueBy = this.now + latestMs + (this.exact ? 0 : LATE_MS)
    this.touch()
  }

  #fail(fate: Fate): void {
    fate.unit = null
    if (this.deadLetterName(fate) === undefined) this.#skip(fate, false)
    else fate.state = 'dying'
    this.touch()
    if (fate.state === 'dying') this.#deadLettered(fate)
  }

  #deadLettered({ cursor, row }: Fate): void {
    const { partition, reader } = cursor
    this.history.deadLetter(reader.life, logOf(partition), partition.index, row.offset)
  }

  #skip(fate: Fate, once = true): void {
    if (once) this.#settled(fate, 'reject')
    this.#countsOf(fate).skipped++
    this.#deadLettered(fate)
    this.#end(fate, 'skipped')
  }

  /** The dead letter is in its topic. */
  dead(fate: Fate): void {
    const identity = this.identityOf(fate)
    if (!this.letters.has(identity)) this.problem(`there is no dead letter of ${identity}`)
    this.#countsOf(fate).deadLettered++
    this.#end(fate, 'dead')
  }

  #hasLetter(fate: Fate): boolean {
    const topic = this.topics.get(this.deadLetterName(fate) ?? '')
    const letters = this.letters.get(this.identityOf(fate)) ?? []
    return letters.some(({ partition }) => partition.topic === topic)
  }

  identityOf({ cursor, row }: Fate): string {
    return `${nameOf(cursor.partition)}/${row.offset}/${cursor.reader.key}`
  }

  deadLetterName({ cursor }: Fate): string | undefined {
    const { topic } = cursor.partition
    const { deadLetter } = cursor.reader.plan
    if (deadLetter === 'none' || topic.isDeadLetter || cursor.reader.atMostOnce) return undefined
    return deadLetter === 'named' ? 'graveyard' : `dlq.${topic.name}`
  }

  /** Records below are given up by who waits for them. */
  floor(cursor: ModelCursor): number {
    const { reader, partition } = cursor
    const { plan } = reader
    // What drop-newest took in is its own.
    const keeps = plan.overflow === 'drop-newest' && reader.durable
    if (keeps && this.holds(reader, partition.topic)) return 0
    let floor = partition.start
    if (plan.overflow !== 'drop-oldest') return floor
    if (plan.maxLagRecords > 0) floor = Math.max(floor, partition.end - plan.maxLagRecords)
    if (plan.maxLagBytes > 0) {
      while (floor < partition.end && partition.bytesFrom(floor) > plan.maxLagBytes) floor++
    }
    return floor
  }

  /** Overflow takes what is below the floor and not in flight. */
  sweep(cursor: ModelCursor): void {
    const floor = this.floor(cursor)
    for (const fate of cursor.fates) {
      if (!fate.isIdle || fate.row.offset >= floor) continue
      fate.unit = null
      if (isForOthers(fate)) this.pass(fate)
      else this.#drops(fate)
    }
  }

  #drops(fate: Fate): void {
    const { cursor, row } = fate
    const { reader, partition } = cursor
    reader.orphaned.dropped++
    cursor.freshDrops++
    this.history.drop(reader.life, logOf(partition), partition.index, row.offset, row.offset, 1)
    this.#end(fate, 'dropped')
  }

  #countsOf(fate: Fate): Unit['counts'] {
    return fate.unit?.counts ?? this.#hands.get(fate)?.counts ?? fate.cursor.reader.orphaned
  }

  /** Who had it last: what becomes of it later is counted there. */
  readonly #hands = new Map<Fate, Unit>()

  #settled(fate: Fate, how: 'ack' | 'nack' | 'reject' | 'expire' | 'release'): void {
    const event = this.#events.get(fate)
    if (event === undefined) return
    if (fate.unit !== null) this.#hands.set(fate, fate.unit)
    this.history.settle(event, how)
  }

  #end(fate: Fate, ending: NonNullable<Fate['ending']>): void {
    fate.state = 'done'
    fate.ending = ending
    this.touch()
  }
}

function isKept({ partition, offset }: { partition: ModelPartition; offset: number }): boolean {
  return offset >= partition.start
}

/** A copy that another reader gets. */
export function isForOthers({ row, cursor }: Fate): boolean {
  return row.onlyFor !== null && row.onlyFor !== cursor.reader.key
}

export function matches(topic: ModelTopic): boolean {
  return topic.name.startsWith('t.')
}

export function nameOf({ topic, index }: ModelPartition): string {
  return `${topic.name}/${index}`
}

/** A topic's name in the history: one that was deleted and made again is another one. */
export function logOf({ topic }: ModelPartition): string {
  return `${topic.name}@${topic.id}`
}

/** What names a record in the history: copies of a value need a name of their own. */
export function rowValue({ value, letterOf, isCopy, offset }: Row): string {
  return letterOf === null && !isCopy ? value : `${value} again at ${offset}`
}
