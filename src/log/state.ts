/**
 * What a partition's log implies beyond its records: who produced, which transactions are open or were
 * aborted, and where leader epochs begin. One class for every local engine, rebuilt from batch headers, or
 * from a snapshot and the headers after it. Pure and synchronous: the log that owns it calls it inside its
 * critical section, `check` before an append and `appended` after it.
 *
 *   offsets   0 ─── a a ─── B ── B ── c ─── C✗ ─────── B ───── end        a…c, A…C: producers' batches
 *                           │         └ aborted index: C, c to ✗          ✗: an abort marker
 *                           └ B is open since here: stable stops
 *
 * Invariants: open transactions are in the order of their first offsets; the aborted index is in the order
 * of its markers, and its `stable` never falls; epochs and their starts grow.
 *
 * A producer is known by its newest epoch and its last five batches (as many as a client has in flight). An
 * unknown one, also one forgotten since, may start at any sequence: refusing would lose data of a producer
 * that was idle for long, to catch duplicates that such a producer does not make.
 */
import type { ProducerInfo } from '../model/batch.ts'
import { assert, OdradekError } from '../model/errors.ts'
import type { Appended, ProducerView } from './contract.ts'

/** Batches of a producer that a retry is recognised by: Kafka's bound on requests in flight. */
const WINDOW = 5
/** Producers remembered; beyond it those that appended longest ago go first, open transactions excepted. */
const MAX_PRODUCERS = 10_000
const SEQUENCES = 2 ** 31

/** `INVALID`: a plain batch inside the producer's own transaction. An `Appended` is a duplicate's place. */
export type Verdict = 'ok' | 'OUT_OF_ORDER' | 'FENCED' | 'INVALID' | Appended

export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
}

interface AcceptedBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly base: number
  readonly last: number
}

interface Producer {
  readonly id: number
  epoch: number
  /** Newest last; empty after a marker raised the epoch. */
  batches: AcceptedBatch[]
  /** Milliseconds since the epoch, of its newest batch or marker. */
  timestamp: number
}

interface Ended {
  readonly first: number
  /** Offset of the marker. */
  readonly marker: number
}

/** From its first offset up to its marker, what a producer has in transactions is of this one. */
export interface Abortion extends Ended {
  readonly producerId: number
}

interface Aborted extends Abortion {
  /** No transaction that ends later begins below this. */
  readonly stable: number
}

interface Epoch {
  readonly epoch: number
  readonly start: number
}

/** Plain JSON. Take it of a log that is durable up to its end: it does not say which markers are not yet. */
export interface StateSnapshot {
  readonly version: 1
  /** Longest unused first. `openSince`: first offset of its open transaction, or −1. */
  readonly producers: readonly (Readonly<Producer> & { readonly openSince: number })[]
  readonly aborted: readonly Aborted[]
  readonly epochs: readonly Epoch[]
}

export class PartitionState {
  #start = 0
  /** In the order of their newest append, so that the first is the one to forget. */
  readonly #producers = new Map<number, Producer>()
  #newest = -1
  /** Producer id → first offset. Offsets grow, so insertion order is offset order. */
  readonly #open = new Map<number, number>()
  /** Ended by a marker that was not below the high watermark when last asked. */
  #ended: Ended[] = []
  #aborted: Aborted[] = []
  readonly #epochs: Epoch[] = []

  /** Whether `producer` may append `count` records now. Changes nothing. */
  check(producer: ProducerInfo, count: number): Verdict {
    const known = this.#producers.get(producer.id)
    if (known === undefined) return 'ok'
    if (producer.epoch < known.epoch) return 'FENCED'
    const first = producer.sequence
    if (producer.epoch > known.epoch) {
      if (first !== 0) return 'OUT_OF_ORDER'
    } else {
      const last = sequenceAfter(first, count - 1)
      const same = known.batches.find((batch) => batch.firstSequence === first && batch.lastSequence === last)
      if (same !== undefined) return { base: same.base, last: same.last, duplicate: true }
      if (first !== nextSequence(known)) return 'OUT_OF_ORDER'
    }
    return this.#open.has(producer.id) && !producer.transactional ? 'INVALID' : 'ok'
  }

  /** Notes a batch that is in the log now, at offsets `base` to `last`. Does not check, for replay. */
  appended(producer: ProducerInfo, base: number, last: number, timestamp: number): void {
    const known = this.#touch(producer.id, producer.epoch, timestamp)
    const firstSequence = producer.sequence
    const lastSequence = sequenceAfter(firstSequence, last - base)
    known.batches.push({ firstSequence, lastSequence, base, last })
    if (known.batches.length > WINDOW) known.batches.shift()
    if (producer.transactional && !this.#open.has(producer.id)) this.#open.set(producer.id, base)
  }

  /** Whether a marker of this epoch may end the producer's transaction. Changes nothing. */
  checkMarker(producerId: number, epoch: number): 'ok' | 'FENCED' {
    return epoch < (this.#producers.get(producerId)?.epoch ?? epoch) ? 'FENCED' : 'ok'
  }

  /**
   * Notes the end-transaction marker that is in the log now at `offset`. Its epoch may be newer than the
   * transaction's (the coordinator fences the producer by it); sequences then start again at 0.
   */
  marker(producerId: number, epoch: number, commit: boolean, offset: number, timestamp: number): void {
    this.#touch(producerId, epoch, timestamp)
    const first = this.#open.get(producerId)
    if (first === undefined) return
    this.#open.delete(producerId)
    this.#ended.push({ first, marker: offset })
    if (!commit)
      this.#aborted.push({ producerId, first, marker: offset, stable: this.#firstOpen(offset + 1) })
  }

  /**
   * The stable offset under a high watermark, which never goes back. A transaction whose marker is not below
   * it yet counts as open: a crash could still lose its outcome.
   */
  stable(high: number): number {
    let stable = this.#firstOpen(high)
    if (this.#ended.length > 0) {
      this.#ended = this.#ended.filter(({ marker }) => marker >= high)
      for (const { first } of this.#ended) stable = Math.min(stable, first)
    }
    return Math.max(Math.min(stable, high), this.#start)
  }

  /** Aborted transactions that have records in [from, to), sorted by first offset. */
  aborted(from: number, to: number): AbortedTransaction[] {
    const found: AbortedTransaction[] = []
    for (let i = this.#abortedBelow(from); i < this.#aborted.length; i++) {
      const { producerId, first, stable } = this.#aborted[i] as Aborted
      if (first < to) found.push({ producerId, firstOffset: first })
      if (stable >= to) break
    }
    return found.sort((a, b) => a.firstOffset - b.firstOffset)
  }

  /** All that are known, in the order of their markers. */
  get abortions(): readonly Abortion[] {
    return this.#aborted
  }

  /** Nothing is left in the log of aborted transactions with these markers, nor the markers. */
  forgetAborted(markers: ReadonlySet<number>): void {
    if (markers.size > 0) this.#aborted = this.#aborted.filter(({ marker }) => !markers.has(marker))
  }

  /** Notes that records from `start` on are of `epoch`. Epochs never fall; the newest again is a no-op. */
  epochStarted(epoch: number, start: number): void {
    const newest = this.#epochs.at(-1)
    if (newest?.epoch === epoch) return
    assert(newest === undefined || epoch > newest.epoch, `epoch ${epoch} follows ${newest?.epoch}`)
    // An epoch that no record was written in leaves nothing to tell apart.
    if (newest?.start === start) this.#epochs.pop()
    this.#epochs.push({ epoch, start })
  }

  /**
   * Where `epoch` ends in a log that ends at `end`, for a follower to find where it diverged: the largest
   * known epoch not above it and that one's end. `undefined` for an epoch newer than all.
   */
  epochEnd(epoch: number, end: number): { epoch: number; endOffset: number } | undefined {
    const higher = this.#epochs.findIndex((each) => each.epoch > epoch)
    if (higher >= 0) {
      const known = this.#epochs[higher - 1]?.epoch ?? epoch
      return { epoch: known, endOffset: Math.max((this.#epochs[higher] as Epoch).start, this.#start) }
    }
    return this.#epochs.at(-1)?.epoch === epoch ? { epoch, endOffset: end } : undefined
  }

  /** First offset of the producer's open transaction, or −1. */
  openSince(producerId: number): number {
    return this.#open.get(producerId) ?? -1
  }

  *producers(): IterableIterator<ProducerView> {
    for (const { id, epoch, batches, timestamp } of this.#producers.values()) {
      const lastSequence = batches.at(-1)?.lastSequence ?? -1
      yield { id, epoch, lastSequence, timestamp, openSince: this.openSince(id) }
    }
  }

  /** Forgets producers without an open transaction whose newest timestamp is below `before`. */
  expireProducers(before: number): void {
    for (const { id, timestamp } of this.#producers.values()) {
      if (timestamp < before && !this.#open.has(id)) this.#producers.delete(id)
    }
  }

  /** The log begins at `start` now: forgets what mattered below it only. Cheap enough for every eviction. */
  trim(start: number): void {
    this.#start = start
    while (this.#epochs.length > 1 && (this.#epochs[1] as Epoch).start <= start) this.#epochs.shift()
    const gone = this.#abortedBelow(start)
    // By halves, so that an entry is moved once on average.
    if (gone > 0 && gone * 2 >= this.#aborted.length) this.#aborted.splice(0, gone)
  }

  toJSON(): StateSnapshot {
    const producers = [...this.#producers.values()].map((each) => ({
      ...each,
      batches: [...each.batches],
      openSince: this.openSince(each.id),
    }))
    return { version: 1, producers, aborted: [...this.#aborted], epochs: [...this.#epochs] }
  }

  /**
   * The state that a snapshot was taken of, for the log to replay what follows and to `trim`.
   * @throws OdradekError CORRUPT_LOG when it is not what `toJSON` made.
   */
  static fromJSON(snapshot: unknown): PartitionState {
    const { version, producers, aborted, epochs } = fields(snapshot)
    if (version !== 1) throw damaged(`version ${String(version)}`)
    const state = new PartitionState()
    const open: { id: number; since: number }[] = []
    for (const each of items(producers)) {
      const { batches, ...rest } = fields(each)
      const { id, epoch, timestamp, openSince } = whole(rest, 'id', 'epoch', 'timestamp', 'openSince')
      const accepted = items(batches).map((batch) =>
        whole(fields(batch), 'firstSequence', 'lastSequence', 'base', 'last'),
      )
      state.#producers.set(id, { id, epoch, batches: accepted, timestamp })
      if (openSince >= 0) open.push({ id, since: openSince })
    }
    for (const { id, since } of open.sort((a, b) => a.since - b.since)) state.#open.set(id, since)
    for (const each of items(aborted)) {
      state.#aborted.push(whole(fields(each), 'producerId', 'first', 'marker', 'stable'))
    }
    for (const each of items(epochs)) state.#epochs.push(whole(fields(each), 'epoch', 'start'))
    return state
  }

  /** The producer, made the newest one and known by `epoch` if that is newer. */
  #touch(id: number, epoch: number, timestamp: number): Producer {
    let known = this.#producers.get(id)
    if (known === undefined) {
      if (this.#producers.size >= MAX_PRODUCERS) this.#forgetOne()
      known = { id, epoch, batches: [], timestamp }
      this.#producers.set(id, known)
    } else if (id !== this.#newest) {
      this.#producers.delete(id)
      this.#producers.set(id, known)
    }
    this.#newest = id
    if (epoch > known.epoch) {
      known.epoch = epoch
      known.batches = []
    }
    known.timestamp = timestamp
    return known
  }

  #forgetOne(): void {
    for (const id of this.#producers.keys()) {
      if (this.#open.has(id)) continue
      this.#producers.delete(id)
      return
    }
  }

  #firstOpen(otherwise: number): number {
    for (const first of this.#open.values()) return first
    return otherwise
  }

  /** How many entries of the aborted index lie below `offset` whole. */
  #abortedBelow(offset: number): number {
    let low = 0
    let high = this.#aborted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#aborted[middle] as Aborted).marker < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Sequences are 32 bits and wrap to 0. */
function sequenceAfter(sequence: number, steps: number): number {
  return (sequence + steps) % SEQUENCES
}

function nextSequence(producer: Producer): number {
  const newest = producer.batches.at(-1)
  return newest === undefined ? 0 : sequenceAfter(newest.lastSequence, 1)
}

function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw damaged('no object where one belongs')
  return value as Record<string, unknown>
}

function items(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw damaged('no list where one belongs')
  return value
}

/** The named fields, which must be whole numbers. */
function whole<K extends string>(value: Record<string, unknown>, ...names: K[]): Record<K, number> {
  const numbers = {} as Record<K, number>
  for (const name of names) {
    const number = value[name]
    if (!Number.isSafeInteger(number)) throw damaged(`${name} is ${String(number)}`)
    numbers[name] = number as number
  }
  return numbers
}

function damaged(what: string): OdradekError {
  return new OdradekError('CORRUPT_LOG', `the snapshot of a partition's state is damaged: ${what}`)
}
