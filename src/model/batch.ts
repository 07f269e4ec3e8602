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

/**
 * Rows of records, one array per field. A field that no row needs is `null`: `keys` and `headers` when
 * nobody has one, `offsets` when they are `base + row`, `timestamps` and `sizes` when all rows share
 * `timestamp` and `size`.
 *
 * Rows are only ever appended (by the log that owns the segment); a row, once written, never changes.
 */
export class Columns {
  /** Offset of row 0. */
  base: number
  /** Rows in use. */
  count: number = 0
  values: unknown[] = []
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

  constructor(base: number) {
    this.base = base
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
