/**
 * Makes rows of a log's batches. Rows may keep views of the bytes they are made of, and a value of bytes is the reader's
 * to change: so those bytes must be nobody else's. What he changed must never reach the disk or another reader.
 *
 * Offsets of batches may have gaps (compaction, control batches), so a row says its offset where `base + row` is
 * not it: `Columns.offsets` comes to be with the first gap.
 */
import type { Columns } from '../../model/batch.ts'
import { defaultCodec, type ValueCodec } from '../../model/value-codec.ts'
import { PoisonValue } from '../contract.ts'
import { type CompressionPort, codecsReady, MAX_DECOMPRESSED_BYTES } from '../format/compression.ts'
import { HEADER_BYTES } from '../format/layout.ts'
import { readHeader } from '../format/record-batch.ts'
import { type BadValue, readRecords } from '../format/record-reader.ts'

/** Leaves values as they are, for whom only offsets and times matter. */
const untouched: ValueCodec = { encode: defaultCodec.encode, decode: (bytes) => bytes }

export class RowDecoder {
  readonly #codec: ValueCodec
  readonly #compression: CompressionPort

  constructor(codec: ValueCodec, compression: CompressionPort) {
    this.#codec = codec
    this.#compression = compression
  }

  /** Resolves when batches of these codecs can be read, a bit for each; `undefined` where they can. */
  ready(codecs: number): Promise<unknown> | undefined {
    return codecsReady(this.#compression, codecs)
  }

  /**
   * Adds the rows of the batch at `at`, all or none, and answers the size of their records. A value that does not
   * decode becomes a PoisonValue, and its row is told to `bad`.
   * @throws whatever keeps the batch from being read at all
   */
  decode(bytes: Uint8Array, at: number, into: Columns, bad: number[]): number {
    const before = into.count
    const rows = this.#read(bytes, at, this.#codec, poison)
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

  /** The rows of the batch at `at` for their offsets and times: values stay bytes. */
  skim(bytes: Uint8Array, at: number): Columns {
    return this.#read(bytes, at, untouched, poison)
  }

  #read(bytes: Uint8Array, at: number, codec: ValueCodec, badValue: BadValue): Columns {
    const header = readHeader(bytes, at)
    const packed = bytes.subarray(at + HEADER_BYTES, at + header.sizeBytes)
    const { compression } = header
    const records =
      compression === 0 ? packed : this.#compression.decompress(compression, packed, MAX_DECOMPRESSED_BYTES)
    return readRecords(records, header, codec, badValue)
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
