/**
 * A tiny broker that is right by construction: it makes sound histories out of a list of random steps. It
 * shares nothing with the checker but the vocabulary, so a mistake in one shows against the other.
 *
 * A log is an array, `null` where a marker took an offset. A cursor is a state per offset; what may be
 * delivered next is found by looking at all of them, which is slow, and easy to believe.
 */
import { type GroupRules, History, type Settlement, type Token } from '../../src/testing/history.ts'

/** What to do, and two numbers to choose with. */
export type Step = readonly [action: number, a: number, b: number]

const TOPIC = 't'
const PARTITIONS = 2
const MEMBERS = ['m', 'n', 'o']
const KEYS = ['red', 'green', null]

interface Log {
  readonly records: ({ readonly value: Token; readonly key: Token | null } | null)[]
  start: number
}

interface RecordState {
  state: 'new' | 'in-flight' | 'waiting' | 'done'
  attempt: number
  member: string
  delivery: number
  acked: boolean
}

interface Place {
  states: Map<number, RecordState>
  start: number
  committed: number
}

interface Group {
  readonly name: string
  readonly rules: GroupRules
  readonly places: Place[]
}

const GROUPS: { readonly [name: string]: GroupRules } = {
  orders: { order: 'key', attempts: 3, lossless: true },
  audit: { order: 'partition', ownership: 'partition', attempts: 2 },
  free: { order: 'none', attempts: 2 },
  once: { order: 'partition', guarantee: 'at-most-once' },
}

export class Simulation {
  readonly history: History = new History()
  readonly #logs: Log[] = []
  readonly #groups: Group[] = []
  /** Offsets that polling processes read next, per partition. */
  #readers = new Map<string, (number | null)[]>()
  #sent = 0
  #readerNames = 0

  constructor() {
    for (let p = 0; p < PARTITIONS; p++) this.#logs.push({ records: [], start: 0 })
    for (const [name, rules] of Object.entries(GROUPS)) {
      const places = this.#logs.map(() => ({ states: new Map(), start: 0, committed: 0 }))
      this.#groups.push({ name, rules, places })
      this.history.group(name, rules)
      for (let p = 0; p < PARTITIONS; p++) this.history.resetOk(this.history.reset(name, TOPIC, p), 0)
    }
  }

  run(steps: readonly Step[]): void {
    for (const [action, a, b] of steps) this.#step(action, a, b)
  }

  /** Everything is delivered and settled, all groups are drained, every partition is scanned. */
  finish(): void {
    for (const group of this.#groups) {
      for (let p = 0; p < PARTITIONS; p++) {
        for (const [offset, it] of this.#place(group, p).states) {
          if (it.state === 'in-flight') this.#settle(group, p, offset, it, 'ack')
        }
        while (this.#deliver(group, p, 0, 'ack')) this.#commit(group, p)
        this.#commit(group, p)
      }
      this.history.drained(group.name)
    }
    for (let p = 0; p < PARTITIONS; p++) this.#scan(p)
  }

  #step(action: number, a: number, b: number): void {
    const p = a % PARTITIONS
    const group = pick(this.#groups, b)
    const actions: (() => void)[] = [
      () => this.#send(p, a, b),
      () => this.#send(p, b, a),
      () => this.#overlap(p, b),
      () => this.#poll(a, b),
      () => this.#seek(p, b),
      () => this.#scan(p),
      () => this.#evict(p, b),
      () => this.#deliver(group, p, a, pick(['ack', 'ack', null, 'nack'], a)),
      () => this.#deliver(group, p, b, pick([null, 'expire', 'reject', 'release'], a)),
      () => this.#settleOne(group, p, a),
      () => this.#settleOne(group, p, a),
      () => this.#commit(group, p),
      () => this.#leave(group, pick(MEMBERS, a)),
      () => this.#reset(group, p, a, b),
      () => this.#drop(group, p, a),
      () => this.#restart(a, b),
    ]
    pick(actions, action)()
  }

  // ── the log ───────────────────────────────────────────────────────────────────────────────────

  #send(p: number, a: number, b: number): void {
    const value = ++this.#sent
    const key = pick(KEYS, b)
    const send = this.history.send(`p${b % 2}`, TOPIC, value, key)
    const outcome = a % 8
    if (outcome === 0) {
      this.history.fail(send)
      return
    }
    if (outcome === 1) {
      this.history.unknown(send)
      return
    }
    const { records } = this.#log(p)
    if (a % 5 === 0) records.push(null)
    const offset = records.push({ value, key }) - 1
    if (outcome === 2) {
      this.history.unknown(send)
      return
    }
    if (outcome === 3) return
    this.history.sendOk(send, outcome === 4 ? null : { partition: p, offset })
  }

  /** Two processes at once, answered the other way round. */
  #overlap(p: number, b: number): void {
    const { records } = this.#log(p)
    const sends = ['p0', 'p1'].map((process) => {
      const value = ++this.#sent
      return { send: this.history.send(process, TOPIC, value, pick(KEYS, b)), value }
    })
    if (b % 2 === 0) sends.reverse()
    const placed = sends.map(({ send, value }) => {
      return { send, offset: records.push({ value, key: pick(KEYS, b) }) - 1 }
    })
    for (const { send, offset } of placed.reverse()) this.history.sendOk(send, { partition: p, offset })
  }

  #poll(a: number, b: number): void {
    const process = `r${this.#readerNames}-${a % 2}`
    const poll = this.history.poll(process)
    if (b % 8 === 0) {
      this.history.fail(poll)
      return
    }
    if (b % 8 === 1) {
      this.#readers.delete(process)
      this.history.unknown(poll)
      return
    }
    const next = this.#readers.get(process) ?? this.#logs.map(() => null)
    this.#readers.set(process, next)
    const seen: { topic: string; partition: number; offset: number; value: Token }[] = []
    for (const [partition, log] of this.#logs.entries()) {
      let offset = Math.max(next[partition] ?? b % (log.records.length + 1), log.start)
      for (let left = b % 5; left > 0 && offset < log.records.length; offset++) {
        const record = log.records[offset]
        if (!record) continue
        seen.push({ topic: TOPIC, partition, offset, value: record.value })
        left--
      }
      // Without a record nothing shows where a reader without a seek began.
      if (next[partition] !== null || seen.some((record) => record.partition === partition)) {
        next[partition] = offset
      }
    }
    this.history.pollOk(poll, seen)
  }

  #seek(p: number, b: number): void {
    const process = `r${this.#readerNames}-${b % 2}`
    const next = this.#readers.get(process) ?? this.#logs.map(() => null)
    this.#readers.set(process, next)
    const log = this.#log(p)
    const offset = log.start + (b % (log.records.length - log.start + 1))
    next[p] = offset
    this.history.seek(process, TOPIC, p, offset)
  }

  #scan(p: number): void {
    const { records, start } = this.#log(p)
    const seen: { offset: number; value: Token }[] = []
    const scan = this.history.scan(TOPIC, p)
    for (let offset = start; offset < records.length; offset++) {
      const record = records[offset]
      if (record) seen.push({ offset, value: record.value })
    }
    this.history.scanOk(scan, start, records.length, seen)
  }

  /** As far as the commits of groups that hold the log let it; from the others it takes, and they count. */
  #evict(p: number, b: number): void {
    const log = this.#log(p)
    let start = Math.min(log.start + (b % 6), log.records.length)
    for (const group of this.#groups) {
      if (group.rules.lossless === true) start = Math.min(start, this.#place(group, p).committed)
    }
    if (start <= log.start) return
    log.start = start
    this.history.evict(TOPIC, p, start)
    for (const group of this.#groups) if (group.rules.lossless !== true) this.#skip(group, p, start)
  }

  // ── groups ────────────────────────────────────────────────────────────────────────────────────

  /** Delivers one of those that may be delivered, if any. */
  #deliver(group: Group, p: number, choice: number, then: Settlement | null): boolean {
    // What was evicted while in flight, and given back since, is gone.
    if (group.rules.lossless !== true) this.#skip(group, p, this.#log(p).start)
    const eligible = this.#eligible(group, p)
    if (eligible.length === 0) return false
    const offset = pick(eligible, choice)
    const record = this.#log(p).records[offset]
    const place = this.#place(group, p)
    const inFlight = [...place.states.values()].find((other) => other.state === 'in-flight')
    const owned = group.rules.ownership === 'partition' ? inFlight?.member : undefined
    const it = this.#state(place, offset)
    it.state = 'in-flight'
    it.member = owned ?? pick(MEMBERS, choice)
    const delivered = {
      topic: TOPIC,
      partition: p,
      offset,
      value: record?.value ?? 0,
      key: record?.key ?? null,
    }
    it.delivery = this.history.deliver(group.name, it.member, delivered, it.attempt)
    if (then !== null) this.#settle(group, p, offset, it, then)
    return true
  }

  #settleOne(group: Group, p: number, a: number): void {
    const inFlight = [...this.#place(group, p).states].filter(([, it]) => it.state === 'in-flight')
    if (inFlight.length === 0) return
    const [offset, it] = pick(inFlight, a)
    const hows: readonly Settlement[] = ['ack', 'nack', 'expire', 'ack', 'reject', 'release']
    this.#settle(group, p, offset, it, pick(hows, a))
  }

  #settle(group: Group, p: number, offset: number, it: RecordState, how: Settlement): void {
    this.history.settle(it.delivery, how)
    const { attempts = 1, guarantee } = group.rules
    it.acked = how === 'ack'
    if (guarantee === 'at-most-once' || how === 'ack') it.state = 'done'
    else if (how === 'release') it.state = 'waiting'
    else if (how === 'reject' || it.attempt >= attempts) this.#deadLetter(group, p, offset, it)
    else {
      it.state = 'waiting'
      it.attempt++
    }
  }

  #deadLetter(group: Group, p: number, offset: number, it: RecordState): void {
    this.history.deadLetter(group.name, TOPIC, p, offset)
    it.state = 'done'
  }

  #commit(group: Group, p: number): void {
    const place = this.#place(group, p)
    place.committed = this.#lowestUnsettled(group, p)
    this.history.commit(group.name, TOPIC, p, place.committed)
  }

  #leave(group: Group, member: string): void {
    this.history.leave(group.name, member)
    for (const place of group.places) {
      for (const it of place.states.values()) {
        if (it.state === 'in-flight' && it.member === member) this.#giveBack(group, it)
      }
    }
  }

  /** Deliveries go on while it is on its way, first from the old place, then from the new. */
  #reset(group: Group, p: number, a: number, b: number): void {
    const log = this.#log(p)
    const place = this.#place(group, p)
    const offset = log.start + (a % (log.records.length - log.start + 1))
    const reset = this.history.reset(group.name, TOPIC, p)
    if (b % 3 === 0) this.#deliver(group, p, a, 'ack')
    if (b % 7 === 0) {
      this.history.fail(reset)
      return
    }
    place.states = new Map()
    place.start = offset
    place.committed = offset
    if (b % 2 === 0) this.#deliver(group, p, b, pick(['ack', null, 'nack'], a))
    this.history.resetOk(reset, offset)
  }

  #drop(group: Group, p: number, a: number): void {
    if (group.rules.lossless === true) return
    this.#skip(group, p, this.#place(group, p).committed + (a % 6))
  }

  /** Takes what is not in flight below `end` from a group, and says how much that was. */
  #skip(group: Group, p: number, end: number): void {
    const place = this.#place(group, p)
    const { records } = this.#log(p)
    const taken: number[] = []
    for (let offset = place.start; offset < Math.min(end, records.length); offset++) {
      const it = this.#state(place, offset)
      if (records[offset] === null || (it.state !== 'new' && it.state !== 'waiting')) continue
      it.state = 'done'
      taken.push(offset)
    }
    const [first] = taken
    if (first !== undefined)
      this.history.drop(group.name, TOPIC, p, first, taken.at(-1) ?? first, taken.length)
  }

  /** The log survives, commits survive, of the acks beyond them a crash keeps some. */
  #restart(a: number, b: number): void {
    const crash = a % 2 === 0
    if (crash) this.history.crash()
    else this.history.close()
    this.#readers = new Map()
    this.#readerNames++
    for (const group of this.#groups) {
      for (const [p, place] of group.places.entries()) {
        for (const [offset, it] of place.states) {
          if (it.state === 'in-flight') this.#cutOff(group, p, offset, it, crash)
          else if (crash && offset >= place.committed && it.acked && b % 3 === 0) this.#forget(group, it)
        }
      }
    }
  }

  #cutOff(group: Group, p: number, offset: number, it: RecordState, crash: boolean): void {
    this.#giveBack(group, it)
    if (!crash || it.state !== 'waiting') return
    it.attempt++
    if (it.attempt > (group.rules.attempts ?? 1)) this.#deadLetter(group, p, offset, it)
  }

  /** What was acked and not committed comes again. */
  #forget(group: Group, it: RecordState): void {
    if (group.rules.guarantee === 'at-most-once') return
    it.state = 'waiting'
    it.acked = false
    it.attempt = 2
  }

  #giveBack(group: Group, it: RecordState): void {
    it.state = group.rules.guarantee === 'at-most-once' ? 'done' : 'waiting'
  }

  // ── looking ───────────────────────────────────────────────────────────────────────────────────

  #eligible(group: Group, p: number): number[] {
    const place = this.#place(group, p)
    const { records } = this.#log(p)
    const { order } = group.rules
    const blocked = new Set<Token | null>()
    const eligible: number[] = []
    for (let offset = place.start; offset < records.length; offset++) {
      const record = records[offset]
      const { state } = this.#state(place, offset)
      if (!record || state === 'done') continue
      const lane = order === 'partition' ? 'all' : order === 'key' ? record.key : null
      if (state !== 'in-flight' && !blocked.has(lane)) eligible.push(offset)
      if (lane !== null) blocked.add(lane)
    }
    return eligible
  }

  #lowestUnsettled(group: Group, p: number): number {
    const place = this.#place(group, p)
    const { records } = this.#log(p)
    const atMostOnce = group.rules.guarantee === 'at-most-once'
    for (let offset = place.start; offset < records.length; offset++) {
      const { state } = this.#state(place, offset)
      if (records[offset] !== null && state !== 'done' && !(atMostOnce && state === 'in-flight'))
        return offset
    }
    return Math.max(records.length, place.committed)
  }

  #state(place: Place, offset: number): RecordState {
    let it = place.states.get(offset)
    if (it === undefined) {
      it = { state: 'new', attempt: 1, member: '', delivery: -1, acked: false }
      place.states.set(offset, it)
    }
    return it
  }

  #log(p: number): Log {
    return pick(this.#logs, p)
  }

  #place(group: Group, p: number): Place {
    return pick(group.places, p)
  }
}

/** `items[choice]`, going round. */
export function pick<T>(items: readonly T[], choice: number): T {
  return items[choice % items.length] as T
}
