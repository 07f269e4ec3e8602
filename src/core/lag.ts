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
import { Columns, Slice } from '../model/batch.ts'
import type { Cursor } from './cursor.ts'
import { Deque } from './deque.ts'
import { dropTo } from './drop.ts'

export interface LagPolicy {
  /** Judges what is new; may drop, and moves the window's `next` to the first record to hand out. */
  apply(): void
  peek(max: number, into: Slice): PeekResult
  /** Called before a record leaves the window, or is passed by at the door, since that makes room. */
  leaves(sizeBytes: number): void
  /** The lowest offset it needs of the log, where its reader holds that. */
  holdFrom?(): number
  /** Lets go of the log; answers the offset that must be loaded first, if one must. */
  release?(): number | undefined
  reset(): void
}

/** Policies for `maxLag` and drop-newest; plain drop-oldest and gating readers need none. */
export function lagPolicyFor(cursor: Cursor): LagPolicy | null {
  const { overflow, maxLagRecords, maxLagBytes } = cursor.reader.settings
  if (overflow === 'drop-newest') return new NewestPolicy(cursor, maxLagRecords, maxLagBytes)
  if (
    overflow === 'drop-oldest' &&
    (maxLagRecords !== Number.POSITIVE_INFINITY || maxLagBytes !== Number.POSITIVE_INFINITY)
  ) {
    return new SlidingPolicy(cursor, maxLagRecords, maxLagBytes)
  }
  return null
}

const scratch = new Slice()

/** Calls `visit` with each row of `[from, to)`, as far as they are resident; answers how far that was. */
function eachRow(
  cursor: Cursor,
  from: number,
  to: number,
  visit: (offset: number, sizeBytes: number) => void,
): number {
  let at = from
  while (at < to && cursor.log.peek(at, to - at, 'committed', scratch) === 'hit') {
    const { columns, row, count, next } = scratch
    for (let i = row; i < row + count; i++) {
      const offset = columns.offsetAt(i)
      if (offset < to) visit(offset, columns.sizeAt(i))
    }
    at = Math.min(next, to)
  }
  return at
}

class SlidingPolicy implements LagPolicy {
  readonly #cursor: Cursor
  readonly #records: number
  readonly #bytes: number

  constructor(cursor: Cursor, records: number, bytes: number) {
    this.#cursor = cursor
    this.#records = records
    this.#bytes = bytes
  }

  apply(): void {
    const cursor = this.#cursor
    const { start, stable } = cursor.log.marks
    let floor = Math.max(start, stable - this.#records)
    if (this.#bytes !== Number.POSITIVE_INFINITY) floor = this.#byteFloor(floor, stable)
    if (floor > cursor.window.next || (floor > cursor.droppedBelow && floor > cursor.window.committed)) {
      dropTo(cursor, floor, 'drop-oldest')
    }
  }

  /** Each row is passed once: what was dropped is not looked at again. */
  #byteFloor(above: number, stable: number): number {
    const cursor = this.#cursor
    let floor = Math.max(above, cursor.position, cursor.droppedBelow)
    let excess = cursor.log.bytesFrom(floor) - cursor.log.bytesFrom(stable) - this.#bytes
    if (excess <= 0) return above
    eachRow(cursor, floor, stable, (offset, sizeBytes) => {
      if (excess <= 0) return
      excess -= sizeBytes
      floor = offset + 1
    })
    return floor
  }

  peek(max: number, into: Slice): PeekResult {
    return this.#cursor.log.peek(this.#cursor.window.next, max, 'committed', into)
  }

  leaves(): void {}

  reset(): void {}
}

/** Offsets `[from, to)`, each of them a record that was taken in. */
interface Run {
  from: number
  to: number
}

class NewestPolicy implements LagPolicy {
  readonly #cursor: Cursor
  readonly #records: number
  readonly #bytes: number
  /** Taken in, and still the log's. */
  readonly #runs = new Deque<Run>()
  #lastRun: Run | null = null
  /** Taken in before those, in columns of our own since the log wanted them back. */
  readonly #own = new Deque<Slice>()
  /** Records in both. */
  #waiting = 0
  /** Bytes taken in and not settled. */
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
    const { window } = this.#cursor
    const own = this.#own.peek()
    const next = own === undefined ? (this.#runs.peek()?.from ?? this.#judged) : own.columns.offsetAt(own.row)
    if (next > window.next) {
      window.skip(next)
      this.#cursor.stamp++
      this.#cursor.moved()
    }
  }

  // ── at the door ───────────────────────────────────────────────────────────────────────────────

  #judge(): void {
    const cursor = this.#cursor
    this.#pass()
    const { start, stable } = cursor.log.marks
    if (this.holdFrom() < start) this.#forgetEvicted(start)
    if (this.#judged >= stable) return
    const { retention } = cursor.partition.topic
    const bytes = Math.min(this.#bytes, retention.bytes)
    let room = Math.min(this.#records, retention.records) - this.#waiting - cursor.window.unsettled
    let missed = 0
    let first = 0
    let last = 0
    this.#judged = eachRow(cursor, this.#judged, stable, (offset, sizeBytes) => {
      if (room > 0 && this.#sum + sizeBytes <= bytes) {
        room--
        this.#take(offset, sizeBytes)
        return
      }
      if (missed++ === 0) first = offset
      last = offset
    })
    if (missed > 0) cursor.countDropped(missed, first, last + 1, 'drop-newest')
  }

  #take(offset: number, sizeBytes: number): void {
    this.#waiting++
    this.#sum += sizeBytes
    if (this.#lastRun?.to === offset) {
      this.#lastRun.to++
      return
    }
    this.#lastRun = { from: offset, to: offset + 1 }
    this.#runs.push(this.#lastRun)
  }

  /** Only a reader that does not hold the log, or whose hold was broken by force, can lose what it took in. */
  #forgetEvicted(start: number): void {
    let lost = 0
    const first = this.holdFrom()
    for (const run of this.#runs) {
      const evicted = Math.max(0, Math.min(run.to, start) - run.from)
      run.from += evicted
      lost += evicted
    }
    this.#waiting -= lost
    lost += Math.max(0, start - this.#judged)
    this.#judged = Math.max(start, this.#judged)
    this.#pass()
    this.#sum = this.#bytesInHand()
    if (lost > 0) this.#cursor.countDropped(lost, first, start, 'overtaken')
  }

  /** What was evicted took the knowledge of its size along. */
  #bytesInHand(): number {
    let bytes = 0
    for (const record of this.#cursor.window) bytes += record.columns.sizeAt(record.row)
    for (const { columns, row, count } of this.#own) {
      for (let i = row; i < row + count; i++) bytes += columns.sizeAt(i)
    }
    for (const { from, to } of this.#runs) {
      eachRow(this.#cursor, from, to, (_, sizeBytes) => {
        bytes += sizeBytes
      })
    }
    return bytes
  }

  // ── handing out ───────────────────────────────────────────────────────────────────────────────

  /** Takes what was handed out, or skipped, out of what waits. */
  #pass(): void {
    const { next } = this.#cursor.window
    for (let rows = this.#own.peek(); rows !== undefined; rows = this.#own.peek()) {
      for (; rows.count > 0 && rows.columns.offsetAt(rows.row) < next; rows.row++) {
        rows.count--
        this.#waiting--
      }
      if (rows.count > 0) return
      this.#own.shift()
    }
    for (let run = this.#runs.peek(); run !== undefined; run = this.#runs.peek()) {
      if (run.from < next) {
        const passed = Math.min(run.to, next) - run.from
        run.from += passed
        this.#waiting -= passed
      }
      if (run.from < run.to) return
      this.#runs.shift()
      if (run === this.#lastRun) this.#lastRun = null
    }
  }

  peek(max: number, into: Slice): PeekResult {
    this.#pass()
    const own = this.#own.peek()
    if (own !== undefined) {
      into.columns = own.columns
      into.row = own.row
      into.count = Math.min(max, own.count)
      into.next = into.count === own.count ? own.next : own.columns.offsetAt(own.row + into.count)
      return 'hit'
    }
    const run = this.#runs.peek()
    if (run !== undefined) {
      return this.#cursor.log.peek(run.from, Math.min(max, run.to - run.from), 'committed', into)
    }
    return this.#judged < this.#cursor.log.marks.stable ? 'miss' : 'end'
  }

  leaves(sizeBytes: number): void {
    this.#judge()
    this.#sum -= sizeBytes
  }

  // ── the log ───────────────────────────────────────────────────────────────────────────────────

  holdFrom(): number {
    const run = this.#runs.peek()
    return run === undefined ? this.#judged : Math.max(run.from, this.#cursor.window.next)
  }

  /** Keeps its own references to what it took in. */
  release(): number | undefined {
    this.apply()
    const { log } = this.#cursor
    for (let run = this.#runs.peek(); run !== undefined; run = this.#runs.peek()) {
      while (run.from < run.to) {
        if (log.peek(run.from, run.to - run.from, 'committed', scratch) !== 'hit') return run.from
        this.#own.push(ownRows(scratch))
        run.from = scratch.next
      }
      this.#runs.shift()
    }
    this.#lastRun = null
    return this.#judged < log.marks.stable ? this.#judged : undefined
  }

  reset(): void {
    this.#runs.clear()
    this.#own.clear()
    this.#lastRun = null
    this.#waiting = 0
    this.#sum = 0
    this.#judged = this.#cursor.window.next
  }
}

/** A run in columns of its own: nothing else of the segment is kept alive by it. */
function ownRows({ columns, row, count, next }: Slice): Slice {
  const run = new Slice()
  run.columns = new Columns(columns.offsetAt(row), count)
  for (let i = row; i < row + count; i++) {
    run.columns.push(
      columns.values[i],
      columns.keyAt(i),
      columns.headersAt(i),
      columns.timestampAt(i),
      columns.sizeAt(i),
    )
  }
  run.columns.offsets = columns.offsets?.slice(row, row + count) ?? null
  run.columns.foreign = columns.foreign
  run.count = count
  run.next = next
  return run
}
