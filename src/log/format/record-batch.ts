/**
 * RecordBatches as wholes (layout.ts shows one): reading, checking, encoding and decoding them.
 *
 * Headers are read without touching records: brokers check, number and store batches whole. Offsets of
 * records are deltas and may have gaps (compaction), so `lastOffsetDelta >= count - 1`, and there may be none
 * left; what a producer sends must be exact (`validateProduced`).
 */
import type { Columns, ProducerInfo } from '../../model/batch.ts'
import { assert, OdradekError } from '../../model/errors.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import { defaultCodec } from '../../model/value-codec.ts'
import type { FinishOptions } from './batch-builder.ts'
import { BatchBuilder } from './batch-builder.ts'
import type { CompressionPort } from './compression.ts'
import { MAX_DECOMPRESSED_BYTES } from './compression.ts'
import type { Crc32c } from './crc32c.ts'
import { readInt8, readInt16, readInt32, readInt64, writeInt32, writeInt64 } from './integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COMPRESSION_BITS,
  CONTROL,
  COUNT_AT,
  CRC_AT,
  contradiction,
  DELETE_HORIZON,
  EPOCH_AT,
  HEADER_BYTES,
  IN_PROCESS,
  LAST_DELTA_AT,
  LOG_APPEND_TIME,
  MAGIC,
  MAGIC_AT,
  MAX_TIMESTAMP_AT,
  PREFIX_BYTES,
  PRODUCER_EPOCH_AT,
  PRODUCER_ID_AT,
  SEQUENCE_AT,
  SIZE_AT,
  TRANSACTIONAL,
} from './layout.ts'
import type { BadValue } from './record-reader.ts'
import { readRecords } from './record-reader.ts'
import { MIN_RECORD_BYTES } from './record-writer.ts'
import { corrupt } from './varint.ts'

export type { Crc32c } from './crc32c.ts'

export interface BatchHeader {
  baseOffset: number
  /** Whole batch, the 12 bytes of offset and length included. */
  sizeBytes: number
  leaderEpoch: number
  magic: number
  crc: number
  attributes: number
  /** Codec number, 0 for none. */
  compression: number
  logAppendTime: boolean
  transactional: boolean
  control: boolean
  /** The base timestamp is when the tombstones and markers in it may go (KIP-534). */
  deleteHorizon: boolean
  lastOffsetDelta: number
  baseTimestamp: number
  maxTimestamp: number
  producerId: number
  producerEpoch: number
  baseSequence: number
  count: number
}

export interface EncodeOptions extends FinishOptions {
  readonly baseOffset: number
}

/** @throws OdradekError CORRUPT_LOG when a whole batch of a possible shape does not start at `at`. */
export function readHeader(bytes: Uint8Array, at: number): BatchHeader {
  if (bytes.length - at < HEADER_BYTES) throw corrupt(`${bytes.length - at} bytes cannot be a batch`)
  const sizeBytes = readInt32(bytes, at + SIZE_AT) + PREFIX_BYTES
  const magic = readInt8(bytes, at + MAGIC_AT)
  const attributes = readInt16(bytes, at + ATTRIBUTES_AT)
  const header: BatchHeader = {
    baseOffset: readInt64(bytes, at),
    sizeBytes,
    leaderEpoch: readInt32(bytes, at + EPOCH_AT),
    magic,
    crc: readInt32(bytes, at + CRC_AT) >>> 0,
    attributes,
    compression: attributes & COMPRESSION_BITS,
    logAppendTime: (attributes & LOG_APPEND_TIME) !== 0,
    transactional: (attributes & TRANSACTIONAL) !== 0,
    control: (attributes & CONTROL) !== 0,
    deleteHorizon: (attributes & DELETE_HORIZON) !== 0,
    lastOffsetDelta: readInt32(bytes, at + LAST_DELTA_AT),
    baseTimestamp: readInt64(bytes, at + BASE_TIMESTAMP_AT),
    maxTimestamp: readInt64(bytes, at + MAX_TIMESTAMP_AT),
    producerId: readInt64(bytes, at + PRODUCER_ID_AT),
    producerEpoch: readInt16(bytes, at + PRODUCER_EPOCH_AT),
    baseSequence: readInt32(bytes, at + SEQUENCE_AT),
    count: readInt32(bytes, at + COUNT_AT),
  }
  if (magic !== MAGIC) throw corrupt(`magic ${magic} is not a batch of format 2`)
  if (sizeBytes < HEADER_BYTES) throw corrupt(`a batch of ${sizeBytes} bytes is shorter than its header`)
  if (sizeBytes > bytes.length - at) throw corrupt(`a batch of ${sizeBytes} bytes is cut short`)
  const why = contradiction(header.baseOffset, header.lastOffsetDelta, header.count, header.producerId)
  if (why !== null) throw corrupt(why)
  return header
}

/** `readHeader`, and the CRC of what follows. */
export function validateBatch(bytes: Uint8Array, at: number, crc32c: Crc32c): BatchHeader {
  const header = readHeader(bytes, at)
  const crc = crc32c(bytes.subarray(at + ATTRIBUTES_AT, at + header.sizeBytes))
  if (crc !== header.crc) throw corrupt(`CRC ${crc} of a batch that says ${header.crc}`)
  return header
}

/**
 * What a broker asks of a batch from a producer, on top of `validateBatch`: see `checkProduced`.
 * @throws OdradekError CORRUPT_LOG when it is broken, INVALID_VALUE when it is not allowed.
 */
export function validateProduced(bytes: Uint8Array, crc32c: Crc32c): BatchHeader {
  const header = validateBatch(bytes, 0, crc32c)
  checkProduced(header, bytes.length)
  return header
}

/**
 * Refuses what a producer must not send in `sizeBytes`: more than one batch, a base offset, gaps, control
 * records, our own mark of what was validated, a transaction without a producer, a producer without a
 * sequence, more records than can be there (a count is taken from the log's offsets long before a record is
 * looked at).
 * @throws OdradekError INVALID_VALUE
 */
export function checkProduced(header: BatchHeader, sizeBytes: number): void {
  const { count, lastOffsetDelta, baseOffset } = header
  if (header.sizeBytes !== sizeBytes) throw notAllowed('more than one batch')
  if (baseOffset !== 0) throw notAllowed(`base offset ${baseOffset}`)
  if (count === 0 || lastOffsetDelta !== count - 1)
    throw notAllowed(`${count} records up to offset delta ${lastOffsetDelta}`)
  if (header.control) throw notAllowed('control records')
  if ((header.attributes & IN_PROCESS) !== 0) throw notAllowed('what counts as published in process')
  if (header.producerId >= 0 && (header.baseSequence < 0 || header.producerEpoch < 0)) {
    throw notAllowed('a producer without epoch and sequence')
  }
  if (header.producerId < 0 && header.transactional) throw notAllowed('a transaction without a producer')
  const roomBytes = header.compression === 0 ? sizeBytes - HEADER_BYTES : MAX_DECOMPRESSED_BYTES
  if (count > roomBytes / MIN_RECORD_BYTES) throw notAllowed(`${count} records in ${sizeBytes} bytes`)
}

function notAllowed(what: string): OdradekError {
  return new OdradekError('INVALID_VALUE', `a producer must not send ${what}`)
}

/** The producer that a header names, or `null`. */
export function producerOf(header: BatchHeader): ProducerInfo | null {
  if (header.producerId < 0) return null
  return {
    id: header.producerId,
    epoch: header.producerEpoch,
    sequence: header.baseSequence,
    transactional: header.transactional,
  }
}

/**
 * One batch of the `count` rows from `row` on, in memory of its own. Offset deltas follow the rows' offsets,
 * so they may have gaps. Without a codec, values are bytes already, and headers say what they are.
 * @throws OdradekError INVALID_VALUE when the codec does not take a value, UNSUPPORTED when the compression
 * is not available.
 */
export function encodeBatch(
  rows: Columns,
  row: number,
  count: number,
  codec: ValueCodec | null,
  options: EncodeOptions,
): Uint8Array {
  assert(count > 0 && row >= 0 && row + count <= rows.count, 'rows of a batch exist')
  const base = rows.offsetAt(row)
  const builder = new BatchBuilder()
  builder.open(options.baseOffset, rows.timestampAt(row))
  for (let at = row; at < row + count; at++) {
    const value = rows.values[at]
    const encoded = codec === null ? null : codec.encode(value)
    const bytes = encoded === null ? (value as Uint8Array | null) : encoded.bytes
    const delta = rows.offsetAt(at) - base
    builder.add(bytes, rows.keyAt(at), rows.headersAt(at), rows.timestampAt(at), encoded?.contentType, delta)
  }
  return builder.finish(options)
}

/**
 * The rows of the batch at `at`, in memory of their own; `sizes` are the encoded sizes of the records. The
 * CRC is not looked at: `validateBatch` did that once. Control records are rows too, undecoded. A value that the codec
 * cannot decode is what `badValue` makes of it; without that, the codec's error is thrown. Without a codec, values stay
 * bytes, and headers as they are.
 * @throws OdradekError CORRUPT_LOG, or UNSUPPORTED when the compression is not available.
 */
export function decodeBatch(
  bytes: Uint8Array,
  at: number,
  codec: ValueCodec | null,
  compression: CompressionPort,
  badValue?: BadValue,
): Columns {
  const header = readHeader(bytes, at)
  const start = at + HEADER_BYTES
  const end = at + header.sizeBytes
  const records =
    header.compression === 0
      ? bytes.slice(start, end)
      : compression.decompress(header.compression, bytes.subarray(start, end), MAX_DECOMPRESSED_BYTES)
  return readRecords(records, header, header.control ? defaultCodec : codec, badValue)
}

/** Sets, in place, what the CRC does not cover. */
export function patchBatch(bytes: Uint8Array, at: number, baseOffset: number, leaderEpoch: number): void {
  writeInt64(bytes, at, baseOffset)
  writeInt32(bytes, at + EPOCH_AT, leaderEpoch)
}
