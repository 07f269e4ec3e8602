/**
 * Makes rows of a log's batches. Rows have memory of their own: a value of bytes is the reader's to change, and
 * what it changed must never reach the disk or somebody else.
 *
 * Offsets of batches may have gaps (compaction, control batches), so a row says its offset where `base + row` is
 * not it: `Columns.offsets` comes to be with the first gap.
 */
import type { Columns } from '../../model/batch.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import { PoisonValue } from '../contract.ts'
import type { CompressionPort } from '../format/compression.ts'
import { decodeBatch } from '../format/record-batch.ts'

/** Leaves values as they are, for whom only offsets and times matter. */
const untouched: ValueCodec = {
  encode: (value) => ({ bytes: value as Uint8Array, contentType: null }),
  decode: (bytes) => bytes,
}

export class RowDecoder {
  readonly #codec: ValueCodec
  readonly #compression: CompressionPort

  constructor(codec: ValueCodec, compression: CompressionPort) {
    this.#codec = codec
    this.#compression = compression
  }

  /**
   * Adds the rows of the batch at `at`, all or none, and answers the size of their records. A value that does not
   * decode becomes a PoisonValue, and its row is told to `bad`.
   * @throws whatever keeps the batch from being read at all
   */
  decode(bytes: Uint8Array, at: number, into: Columns, bad: number[]): number {
    const before = into.count
    const rows = decodeBatch(bytes, at, this.#codec, this.#compression, poison)
    let sizeBytes = 0
    for (let row = 0; row < rows.count; row++) {
      const value = rows.values[row]
      const size = rows.sizeAt(row)
      if (value instanceof PoisonValue) bad.push(before + row)
      putOffset(into, rows.offsetAt(row))
      into.push(value, rows.keyAt(row), rows.headersAt(row), rows.timestampAt(row), size)
      sizeBytes += size
    }
    return sizeBytes
  }

  /** The rows of the batch at `at`, without anything made of their values; they are views of `bytes`. */
  skim(bytes: Uint8Array, at: number): Columns {
    return decodeBatch(bytes, at, untouched, this.#compression)
  }
}

function poison(cause: unknown, bytes: Uint8Array | null): PoisonValue {
  return new PoisonValue(cause, bytes ?? new Uint8Array(0))
}

/** Says the offset of the row that is pushed next. */
function putOffset(rows: Columns, offset: number): void {
  const row = rows.count
  if (row === 0) rows.base = offset
  if (rows.offsets === null) {
    if (offset === rows.base + row) return
    rows.offsets = new Float64Array(Math.max(row * 2, rows.values.length))
    for (let before = 0; before < row; before++) rows.offsets[before] = rows.base + before
  } else if (row >= rows.offsets.length) {
    const short = rows.offsets
    rows.offsets = new Float64Array(Math.max(row * 2, rows.values.length))
    rows.offsets.set(short)
  }
  rows.offsets[row] = offset
}
