/**
 * What arrives as bytes, or must be kept as bytes, on its way into a log: checked as a whole by its header and
 * CRC, with no record looked at.
 */
import { type Batch, Columns, type ProducerInfo } from '../../model/batch.ts'
import { OdradekError } from '../../model/errors.ts'
import { type Key, keyBytes } from '../../model/record.ts'
import { defaultCodec, type ValueCodec } from '../../model/value-codec.ts'
import { noCompression } from '../format/compression.ts'
import {
  type Crc32c,
  decodeBatch,
  encodeBatch,
  producerOf,
  readHeader,
  validateBatch,
  validateProduced,
} from '../format/record-batch.ts'

/** What a control batch does to its producer's transaction. */
export type Marker = 'commit' | 'abort'

/** A batch that may be appended if its producer, its size and the log's room allow it. */
export interface Incoming {
  readonly bytes: Uint8Array
  /** Offsets it takes. */
  readonly count: number
  /** Nominal. */
  readonly sizeBytes: number
  readonly maxTimestamp: number
  readonly producer: ProducerInfo | null
  /** For a control batch, which has a producer. */
  readonly marker: Marker | null
}

/** `notBefore`: what the timestamps of columns are raised to, in milliseconds since the epoch. */
export function readIncoming(
  batch: Batch,
  codec: ValueCodec,
  crc32c: Crc32c,
  notBefore: number,
): Incoming | 'INVALID' {
  try {
    const bytes = batch.bytes ?? encoded(batch, codec, crc32c, notBefore)
    const control = readHeader(bytes, 0).control
    const marker = control ? readMarker(bytes, crc32c) : null
    const header = control ? readHeader(bytes, 0) : validateProduced(bytes, crc32c)
    const { count, maxTimestamp } = header
    return { bytes, count, sizeBytes: batch.sizeBytes, maxTimestamp, producer: producerOf(header), marker }
  } catch (error) {
    if (error instanceof OdradekError) return 'INVALID'
    throw error
  }
}

function encoded(batch: Batch, codec: ValueCodec, crc32c: Crc32c, notBefore: number): Uint8Array {
  const given = batch.columns as Columns
  const rows = new Columns(0, given.count)
  for (let row = 0; row < given.count; row++) {
    const timestamp = Math.max(given.timestampAt(row), notBefore)
    rows.push(given.values[row], given.keyAt(row), given.headersAt(row), timestamp, given.sizeAt(row))
  }
  return encodeBatch(rows, 0, rows.count, codec, {
    baseOffset: 0,
    leaderEpoch: 0,
    producer: batch.producer,
    crc32c,
  })
}

function readMarker(bytes: Uint8Array, crc32c: Crc32c): Marker {
  validateBatch(bytes, 0, crc32c)
  const rows = decodeBatch(bytes, 0, defaultCodec, noCompression)
  const key = keyBytes(rows.keyAt(0) as Key)
  return key[3] === 1 ? 'commit' : 'abort'
}
