/**
 * What arrives as bytes, or must be kept as bytes, on its way into a log: checked as a whole by its header and
 * CRC, with no record looked at.
 */
import { type Batch, Columns, type ProducerInfo } from '../../model/batch.ts'
import { odradekError } from '../../model/errors.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import { decodeMarker, type Marker } from './control.ts'
import {
  type BatchHeader,
  type Crc32c,
  checkProduced,
  encodeBatch,
  producerOf,
  validateBatch,
} from './record-batch.ts'

/** A batch that may be appended if its producer, its size and the log's room allow it. */
export interface Incoming {
  readonly bytes: Uint8Array
  /** Offsets it takes. */
  readonly count: number
  /** Nominal. */
  readonly sizeBytes: number
  readonly maxTimestamp: number
  readonly producer: ProducerInfo | null
  /** What a control batch holds; it has a producer. */
  readonly marker: Marker | null
}

/**
 * `codec`: of the values in columns, `null` where they are bytes already; `notBefore`: what the timestamps of columns
 * are raised to, in milliseconds since the epoch.
 */
export function readIncoming(
  batch: Batch,
  codec: ValueCodec | null,
  crc32c: Crc32c,
  notBefore: number,
): Incoming | 'INVALID' {
  try {
    const bytes = batch.bytes ?? encoded(batch, codec, crc32c, notBefore)
    const header = validateBatch(bytes, 0, crc32c)
    if (header.control) return readControl(bytes, header, batch.sizeBytes)
    checkProduced(header, bytes.length)
    const { count, maxTimestamp } = header
    return {
      bytes,
      count,
      sizeBytes: batch.sizeBytes,
      maxTimestamp,
      producer: producerOf(header),
      marker: null,
    }
  } catch (error) {
    odradekError(error)
    return 'INVALID'
  }
}

function readControl(bytes: Uint8Array, header: BatchHeader, sizeBytes: number): Incoming | 'INVALID' {
  const producer = producerOf(header)
  const marker = decodeMarker(bytes, 0)
  if (header.count !== 1 || producer === null || marker === null) return 'INVALID'
  return { bytes, count: 1, sizeBytes, maxTimestamp: header.maxTimestamp, producer, marker }
}

function encoded(batch: Batch, codec: ValueCodec | null, crc32c: Crc32c, notBefore: number): Uint8Array {
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
