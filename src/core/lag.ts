/**
 * The two overflow policies that keep a bound of their own, below what the log retains. Both are lazy:
 * they judge when the cursor runs, settles, or is asked, and are exact all the same, because between two
 * such moments the log only grows.
 *
 * drop-oldest with `maxLag`: a sliding window that ends at the newest record.
 *
 *     dropped │ ◄──────── at most maxLag ────────► │ high
 *
 * drop-newest: takes in what fits when it arrives and misses the rest. What it took in is its own: when the
 * log wants to evict it, the policy keeps references to the rows and lets go.
 *
 *     │ taken │ missed │ taken │ missed … │ high
 */
import type { PeekResult } from '../log/contract.ts'
import { Slice } from '../model/batch.ts'
import type { Cursor } from './cursor.ts'
import type { DeliveryRecord } from './delivery.ts'
import { Deque } from './deque.ts'
import { dropTo } from './drop.ts'

export interface LagPolicy {
  /** Judges what is new; may drop, and moves the window's `next` to the first record to hand out. */
  apply(): void
  peek(max: number, into: Slice): PeekResult
  /** Called before a record leaves the window, since that makes room. */
  beforeSettle(record: DeliveryRecord): void
  /** The lowest offset it needs of the log; Infinity for none. */
  holdFrom(): number | undefined
  /** Lets go of the log; answers the offset that must be loaded first, if one must. */
  release(): number | undefined
  reset(): void
}

/** Policies for `maxLag` and drop-newest; plain drop-oldest and gating readers need none. */
export function lagPolicyFor(cursor: Cursor): LagPolicy | null {
  const { overflow, maxLagRecords, maxLagBytes } = cursor.reader.settings
  if (overflow === 'drop-newest') {
    const { records, bytes } = cursor.partition.topic.retention
    return new NewestPolicy(cursor, Math.min(maxLagRecords, records), Math.min(maxLagBytes, bytes))
  }
  if (
    overflow === 'drop-oldest' &&
    (maxLagRecords !== Number.POSITIVE_INFINITY || maxLagBytes !== Number.POSITIVE_INFINITY)
  ) {
    return new SlidingPolicy(cursor, maxLagRecords, maxLagBytes)
  }
  return null
}

const scratch = new Slice()

/** Calls `visit` with each resident row of `[from, to)`, until it answers false. */
function eachRow(
  cursor: Cursor,
  from: number,
  to: number,
  visit: (offset: number, sizeBytes: number) => boolean,
): void {
  for (let at = from; at < to; ) {
    if (cursor.log.peek(at, to - at, 'committed', scratch) !== 'hit') return
    const { columns, row, count, next } = scratch
    for (let i = row; i < row + count; i++) {
      const offset = columns.offsetAt(i)
      if (offset >= to || !visit(offset, columns.sizeAt(i))) return
    }
    at = next
  }
}

class SlidingPolicy implements LagPolicy {
  readonly #cursor: Cursor
  readonly #records: number
  readonly #bytes: number
  /** Bytes of the resident rows in `[#from, #to)`, for the bound by bytes. */
  #sum = 0
  #from: number
  #to: number

  constructor(cursor: Cursor, records: number, bytes: number) {
    this.#cursor = cursor
    this.#records = records
    this.#bytes = bytes
    this.#from = cursor.window.next
    this.#to = cursor.window.next
  }

  apply(): void {
    const cursor = this.#cursor
    const { start, stable } = cursor.log.marks
    let floor = Math.max(start, stable - this.#records)
    if (this.#bytes !== Number.POSITIVE_INFINITY) floor = Math.max(floor, this.#byteFloor(floor, stable))
    if (floor > cursor.window.next || (floor > cursor.droppedBelow && floor > cursor.window.committed)) {
      dropTo(cursor, floor, 'drop-oldest')
    }
  }

  /** Two pointers: each row's size is added once and taken away once. */
  #byteFloor(floor: number, stable: number): number {
    const cursor = this.#cursor
    const needed = Math.max(floor, cursor.position)
    if (this.#from < cursor.log.marks.start || needed >= this.#to) {
      this.#from = needed
      this.#to = needed
      this.#sum = 0
    }
    eachRow(cursor, this.#to, stable, (_, sizeBytes) => {
      this.#sum += sizeBytes
      return true
    })
    this.#to = stable
    eachRow(cursor, this.#from, stable, (offset, sizeBytes) => {
      if (offset >= needed && this.#sum <= this.#bytes) return false
      this.#sum -= sizeBytes
      this.#from = offset + 1
      return true
    })
    return this.#from
  }

  peek(max: number, into: Slice): PeekResult {
    return this.#cursor.log.peek(this.#cursor.window.next, max, 'committed', into)
  }

  beforeSettle(): void {}

  holdFrom(): undefined {
    return undefined
  }

  release(): undefined {
    return undefined
  }

  reset(): void {
    this.#from = this.#cursor.window.next
    this.#to = this.#from
    this.#sum = 0
  }
}

/** Offsets taken in; with `rows` once the log was let go of. */
interface Taken {
  from: number
  to: number
  rows: Deque<Slice> | null
}

class NewestPolicy implements LagPolicy {
  readonly #cursor: Cursor
  readonly #records: number
  readonly #bytes: number
  readonly #taken = new Deque<Taken>()
  #last: Taken | null = null
  /** Offsets in `#taken`. */
  #waiting = 0
  /** Bytes taken in and not settled, where a bound by bytes needs them. */
  #sum = 0
  /** Everything below was judged. */
  #judged: number

  constructor(cursor: Cursor, records: number, bytes: number) {
    this.#cursor = cursor
    this.#records = records
    this.#bytes = bytes
    this.#judged = cursor.window.next
  }

  apply(): void {
    this.#judge()
    this.#forgetEvicted()
    const { window } = this.#cursor
    for (let first = this.#taken.peek(); first !== undefined; first = this.#taken.peek()) {
      if (first.from < window.next) {
        const passed = Math.min(first.to, window.next) - first.from
        first.from += passed
        this.#waiting -= passed
      }
      if (first.from < first.to) break
      this.#taken.shift()
      if (first === this.#last) this.#last = null
    }
    const next = this.#taken.peek()?.from ?? this.#judged
    if (next > window.next) {
      window.skip(next)
      this.#cursor.moved()
    }
  }

  /** Only a reader that no longer holds the log can lose what it took in. */
  #forgetEvicted(): void {
    const { start } = this.#cursor.log.marks
    for (const taken of this.#taken) {
      if (taken.from >= start) return
      if (taken.rows !== null) continue
      const lost = Math.min(taken.to, start) - taken.from
      this.#cursor.countDropped(lost, taken.from, taken.from + lost, 'overtaken')
      taken.from += lost
      this.#waiting -= lost
    }
  }

  #judge(): void {
    const { start, stable } = this.#cursor.log.marks
    if (this.#judged < start) {
      this.#cursor.countDropped(start - this.#judged, this.#judged, start, 'drop-newest')
      this.#judged = start
    }
    const fresh = stable - this.#judged
    if (fresh <= 0) return
    let take = Math.min(fresh, this.#records - this.#waiting - this.#cursor.window.unsettled)
    if (this.#bytes !== Number.POSITIVE_INFINITY) take = this.#fitting(take)
    if (take > 0) this.#take(this.#judged, this.#judged + take)
    if (take < fresh) this.#cursor.countDropped(fresh - take, this.#judged + take, stable, 'drop-newest')
    this.#judged = stable
  }

  #fitting(most: number): number {
    let fitting = 0
    eachRow(this.#cursor, this.#judged, this.#judged + most, (_, sizeBytes) => {
      if (this.#sum + sizeBytes > this.#bytes) return false
      this.#sum += sizeBytes
      fitting++
      return true
    })
    return fitting
  }

  #take(from: number, to: number): void {
    this.#waiting += to - from
    if (this.#last !== null && this.#last.rows === null && this.#last.to === from) {
      this.#last.to = to
      return
    }
    this.#last = { from, to, rows: null }
    this.#taken.push(this.#last)
  }

  peek(max: number, into: Slice): PeekResult {
    const first = this.#taken.peek()
    if (first === undefined) return 'end'
    if (first.rows === null) {
      return this.#cursor.log.peek(first.from, Math.min(max, first.to - first.from), 'committed', into)
    }
    for (let rows = first.rows.peek(); rows !== undefined; rows = first.rows.peek()) {
      if (rows.next <= first.from) {
        first.rows.shift()
        continue
      }
      const passed = Math.max(0, first.from - rows.columns.offsetAt(rows.row))
      into.columns = rows.columns
      into.row = rows.row + passed
      into.count = Math.min(max, rows.count - passed)
      into.next =
        into.count === rows.count - passed ? rows.next : rows.columns.offsetAt(into.row + into.count)
      return 'hit'
    }
    into.count = 0
    into.next = first.to
    return 'hit'
  }

  beforeSettle(record: DeliveryRecord): void {
    this.#judge()
    if (this.#bytes !== Number.POSITIVE_INFINITY) this.#sum -= record.columns.sizeAt(record.row)
  }

  holdFrom(): number {
    for (const taken of this.#taken) {
      if (taken.rows === null) return Math.max(taken.from, this.#cursor.window.next)
    }
    return this.#waiting + this.#cursor.window.unsettled < this.#records
      ? this.#judged
      : Number.POSITIVE_INFINITY
  }

  /** Keeps its own references to what it took in. */
  release(): number | undefined {
    this.apply()
    for (const taken of this.#taken) {
      if (taken.rows !== null) continue
      const rows = new Deque<Slice>()
      for (let at = taken.from; at < taken.to; ) {
        const part = new Slice()
        if (this.#cursor.log.peek(at, taken.to - at, 'committed', part) !== 'hit') return at
        rows.push(part)
        at = part.next
      }
      taken.rows = rows
    }
    return undefined
  }

  reset(): void {
    this.#taken.clear()
    this.#last = null
    this.#waiting = 0
    this.#sum = 0
    this.#judged = this.#cursor.window.next
  }
}
