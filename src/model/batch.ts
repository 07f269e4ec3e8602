/**
 * The unit between modules: a batch of records with two views of the same thing.
 *
 *   columns   values | keys | headers | timestamps ...     what in-process readers take, no decoding
 *   bytes     RecordBatch v2 | RecordBatch v2 | ...         what the wire and the disk take, no encoding
 *
 * One view is authoritative, the other a cache made at most once. Columns hold one array per field and
 * leave out what every row has in common, because objects per record cost 100 bytes each and most of
 * the time in the collector.
 */
import type { Key, RecordHeaders } from './record.ts'

/** Rows that a typed array has at first, when nothing better is known. */
const FIRST_ROWS = 16

/**
 * Rows of records, one array per field. A field that no row needs is `null`: `keys` and `headers` when
 * nobody has one, `offsets` when they are `base + row`, `timestamps` and `sizes` when all rows share
 * `timestamp` and `size`. Arrays may be longer than `count`.
 *
 *   row         0     1     2    count     capacity
 *   values    │ a   │ b   │ c   │          │
 *   keys      │ null: no row has one
 *   sizes     │ 64  │ 64  │ 71  │          │
 *
 * Rows are only ever appended (`push`, by whoever made the columns); a row, once written, never changes,
 * so that a delivery may keep a reference to the columns and its row.
 */
export class Columns {
  /** Offset of row 0. */
  base: number
  /** Rows in use. */
  count: number = 0
  values: unknown[]
  keys: (Key | null)[] | null = null
  headers: (RecordHeaders | null)[] | null = null
  offsets: Float64Array | null = null
  /** Milliseconds since the epoch of every row, unless `timestamps` says otherwise. */
  timestamp: number = 0
  timestamps: Float64Array | null = null
  /** Nominal bytes of every row, unless `sizes` says otherwise. */
  size: number = 0
  sizes: Uint32Array | null = null
  /** Rows were decoded from bytes somebody else may have written: check them before a handler sees them. */
  foreign: boolean = false

  /** `capacity`: rows to make room for at once, which is faster than growing row by row. */
  constructor(base: number, capacity: number = 0) {
    this.base = base
    this.values = new Array(capacity)
    // One kind of array whatever it holds: otherwise each kind of payload makes the store below slower.
    this.values[0] = undefined
  }

  /** Adds a row at `base + count`. */
  push(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    size: number,
  ): void {
    const row = this.count
    if (timestamp !== this.timestamp || this.timestamps !== null) putTimestamp(this, row, timestamp)
    if (size !== this.size || this.sizes !== null) putSize(this, row, size)
    if (key !== null || this.keys !== null) this.keys = putItem(this, this.keys, row, key)
    if (headers !== null || this.headers !== null) {
      this.headers = putItem(this, this.headers, row, headers)
    }
    this.values[row] = value
    this.count = row + 1
  }

  offsetAt(row: number): number {
    return this.offsets === null ? this.base + row : (this.offsets[row] as number)
  }

  keyAt(row: number): Key | null {
    return this.keys === null ? null : (this.keys[row] ?? null)
  }

  headersAt(row: number): RecordHeaders | null {
    return this.headers === null ? null : (this.headers[row] ?? null)
  }

  timestampAt(row: number): number {
    return this.timestamps === null ? this.timestamp : (this.timestamps[row] as number)
  }

  sizeAt(row: number): number {
    return this.sizes === null ? this.size : (this.sizes[row] as number)
  }
}

function putTimestamp(rows: Columns, row: number, timestamp: number): void {
  if (row === 0) {
    rows.timestamp = timestamp
    return
  }
  let column = rows.timestamps
  if (column === null) {
    column = new Float64Array(capacityFor(row, rows)).fill(rows.timestamp, 0, row)
  } else if (row >= column.length) {
    const short = column
    column = new Float64Array(capacityFor(row, rows))
    column.set(short)
  }
  column[row] = timestamp
  rows.timestamps = column
}

function putSize(rows: Columns, row: number, size: number): void {
  if (row === 0) {
    rows.size = size
    return
  }
  let column = rows.sizes
  if (column === null) {
    column = new Uint32Array(capacityFor(row, rows)).fill(rows.size, 0, row)
  } else if (row >= column.length) {
    const short = column
    column = new Uint32Array(capacityFor(row, rows))
    column.set(short)
  }
  column[row] = size
  rows.sizes = column
}

/** Typed arrays do not grow, so they double; where `values` was made for more rows, they follow it. */
function capacityFor(row: number, rows: Columns): number {
  return Math.max(row < FIRST_ROWS ? FIRST_ROWS : row * 2, rows.values.length)
}

/** Stores into a column that comes to be with the first row that needs it; rows before read as `null`. */
function putItem<T>(rows: Columns, column: (T | null)[] | null, row: number, item: T | null): (T | null)[] {
  const grown = column ?? new Array<T | null>(rows.values.length).fill(null, 0, row)
  grown[row] = item
  return grown
}

/** A run of rows inside somebody's columns: what `peek` fills in. Reused by its owner, never kept. */
export class Slice {
  columns: Columns = new Columns(0)
  /** First row of the run. */
  row: number = 0
  /** Rows in the run; 0 when there was nothing to see, and `next` still says where to go on. */
  count: number = 0
  /** Where a reader that consumed the run goes on. May lie beyond the last row (markers, compaction). */
  next: number = 0
}

/** Who appended, for idempotence and transactions. `id` −1: nobody in particular. */
export interface ProducerInfo {
  readonly id: number
  readonly epoch: number
  /** Sequence of the first record of the batch. */
  readonly sequence: number
  readonly transactional: boolean
}

/** Records on their way into a log. Exactly one view is given by the maker; `bytes` is one RecordBatch v2. */
export interface Batch {
  readonly count: number
  /** Nominal bytes of the whole batch, what retention counts. */
  readonly sizeBytes: number
  readonly columns: Columns | null
  readonly bytes: Uint8Array | null
  readonly producer: ProducerInfo | null
}
