/**
 * One batch of a Produce request, as its header shows it: what a client must not send is refused here, by the code and in
 * the words that clients know. The log checks again what it depends on, and the CRC, which is why nothing here sums a
 * batch that is sound. Records are only looked at where a topic asks for it: it is compacted, or has a compression of
 * its own.
 */

import { type CompressionPort, MAX_DECOMPRESSED_BYTES } from '../log/format/compression.ts'
import type { Crc32c } from '../log/format/crc32c.ts'
import {
  readInt8,
  readInt16,
  readInt32,
  readInt64,
  writeInt16,
  writeInt32,
  writeInt64,
} from '../log/format/integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COMPRESSION_BITS,
  CONTROL,
  COUNT_AT,
  CRC_AT,
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
} from '../log/format/layout.ts'
import { RecordScan } from '../log/format/record-scan.ts'
import type { ProducerInfo } from '../model/batch.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'

export interface Fault {
  readonly errorCode: number
  readonly errorMessage: string | null
  /** Which record is at fault, where one is. */
  readonly recordIndex?: number
}

export interface Codecs {
  readonly crc32c: Crc32c
  readonly compression: CompressionPort
}

const ZSTD = 4
/** First version of Produce whose clients know zstd (KIP-110). */
const ZSTD_SINCE = 7

/** What a topic allows. */
export interface BatchLimits {
  readonly maxMessageBytes: number
  readonly timestampType: 'CreateTime' | 'LogAppendTime'
  readonly timestampBeforeMaxMs: number
  readonly timestampAfterMaxMs: number
}

/** Why a client must not send this as a batch; `null` for no reason. `now`: milliseconds since the epoch. */
export function faultOf(
  bytes: Uint8Array | null,
  version: number,
  limits: BatchLimits,
  now: number,
): Fault | null {
  if (bytes === null || bytes.length < HEADER_BYTES) return invalid('a partition is sent exactly one batch')
  const magic = readInt8(bytes, MAGIC_AT)
  if (magic !== MAGIC) return invalid(`batches have magic 2, not ${magic}`)
  const sizeBytes = readInt32(bytes, SIZE_AT) + PREFIX_BYTES
  if (sizeBytes < HEADER_BYTES) {
    return fault(KAFKA_ERRORS.CORRUPT_MESSAGE, `a batch of ${sizeBytes} bytes is shorter than its header`)
  }
  if (sizeBytes !== bytes.length) return invalid('a partition is sent exactly one batch, whole')
  const compression = compressionOf(bytes)
  if (compression > ZSTD || (compression === ZSTD && version < ZSTD_SINCE)) {
    const errorMessage = `compression type ${compression} in version ${version} of Produce`
    return fault(KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE, errorMessage)
  }
  if (sizeBytes > limits.maxMessageBytes) {
    const errorMessage = `the batch has ${sizeBytes} bytes, and max.message.bytes is ${limits.maxMessageBytes}`
    return fault(KAFKA_ERRORS.MESSAGE_TOO_LARGE, errorMessage)
  }
  return faultOfNumbers(bytes) ?? faultOfTime(bytes, limits, now)
}

/** By the header alone: the newest of all records, and for the oldest the first one. */
function faultOfTime(bytes: Uint8Array, limits: BatchLimits, now: number): Fault | null {
  if (limits.timestampType !== 'CreateTime') return null
  const newest = readInt64(bytes, MAX_TIMESTAMP_AT)
  const oldest = readInt64(bytes, BASE_TIMESTAMP_AT)
  const isSound = newest <= now + limits.timestampAfterMaxMs && oldest >= now - limits.timestampBeforeMaxMs
  if (isSound || newest < 0) return null
  const errorMessage = `timestamps from ${oldest} to ${newest} are too far from ${now}`
  return fault(KAFKA_ERRORS.INVALID_TIMESTAMP, errorMessage)
}

function faultOfNumbers(bytes: Uint8Array): Fault | null {
  const base = readInt64(bytes, 0)
  if (base !== 0) return invalid(`the base offset of a batch from a producer is 0, not ${base}`)
  const count = readInt32(bytes, COUNT_AT)
  if (count <= 0) return invalid(`a batch of ${count} records`)
  const lastDelta = readInt32(bytes, LAST_DELTA_AT)
  if (lastDelta !== count - 1) return invalid(`${count} records up to offset delta ${lastDelta}`)
  const attributes = readInt16(bytes, ATTRIBUTES_AT)
  if ((attributes & CONTROL) !== 0) return invalid('clients must not write control records')
  if ((attributes & IN_PROCESS) !== 0) return invalid(`attributes ${attributes} are not for clients`)
  const producerId = readInt64(bytes, PRODUCER_ID_AT)
  if (producerId < 0) {
    return (attributes & TRANSACTIONAL) === 0 ? null : invalid('a transaction has a producer')
  }
  if (readInt32(bytes, SEQUENCE_AT) >= 0 && readInt16(bytes, PRODUCER_EPOCH_AT) >= 0) return null
  return invalid(`producer ${producerId} has an epoch and sequences`)
}

/** Why the log does not take a batch of which nothing is wrong in the header. */
export function faultWithin(bytes: Uint8Array, crc32c: Crc32c): Fault | null {
  const crc = crc32c(bytes.subarray(ATTRIBUTES_AT))
  const stored = readInt32(bytes, CRC_AT) >>> 0
  if (crc === stored) return null
  return fault(KAFKA_ERRORS.CORRUPT_MESSAGE, `the CRC of the batch is ${crc}, and it says ${stored}`)
}

export function countOf(bytes: Uint8Array): number {
  return readInt32(bytes, COUNT_AT)
}

export function producerOf(bytes: Uint8Array): ProducerInfo | null {
  const id = readInt64(bytes, PRODUCER_ID_AT)
  if (id < 0) return null
  return {
    id,
    epoch: readInt16(bytes, PRODUCER_EPOCH_AT),
    sequence: readInt32(bytes, SEQUENCE_AT),
    transactional: (readInt16(bytes, ATTRIBUTES_AT) & TRANSACTIONAL) !== 0,
  }
}

/** Codec number, 0 for none. */
export function compressionOf(bytes: Uint8Array): number {
  return readInt16(bytes, ATTRIBUTES_AT) & COMPRESSION_BITS
}

export function hasAppendTime(bytes: Uint8Array): boolean {
  return (readInt16(bytes, ATTRIBUTES_AT) & LOG_APPEND_TIME) !== 0
}

/**
 * Makes `now` the time of all records, or with `null` takes that claim back. In place; the sum, which was checked before,
 * is made anew.
 */
export function setAppendTime(bytes: Uint8Array, now: number | null, crc32c: Crc32c): void {
  const attributes = readInt16(bytes, ATTRIBUTES_AT)
  writeInt16(
    bytes,
    ATTRIBUTES_AT,
    now === null ? attributes & ~LOG_APPEND_TIME : attributes | LOG_APPEND_TIME,
  )
  if (now !== null) writeInt64(bytes, MAX_TIMESTAMP_AT, now)
  writeInt32(bytes, CRC_AT, crc32c(bytes.subarray(ATTRIBUTES_AT)))
}

/** The first record that has no key. @throws OdradekError UNSUPPORTED, CORRUPT_LOG */
export function faultOfKeys(bytes: Uint8Array, { compression }: Codecs): Fault | null {
  const records = recordsOf(bytes, compression)
  const scan = new RecordScan().start(records, 0, records.length, countOf(bytes))
  for (let recordIndex = 0; scan.next(); recordIndex++) {
    if (scan.keyEnd >= 0) continue
    return { ...invalid('a compacted topic takes no record without a key'), recordIndex }
  }
  return null
}

/** The same batch with another compression. @throws OdradekError UNSUPPORTED, CORRUPT_LOG */
export function recompressed(bytes: Uint8Array, type: number, { crc32c, compression }: Codecs): Uint8Array {
  const records = recordsOf(bytes, compression)
  const packed = type === 0 ? records : compression.compress(type, records)
  const made = new Uint8Array(HEADER_BYTES + packed.length)
  made.set(bytes.subarray(0, HEADER_BYTES))
  made.set(packed, HEADER_BYTES)
  writeInt32(made, SIZE_AT, made.length - PREFIX_BYTES)
  writeInt16(made, ATTRIBUTES_AT, (readInt16(bytes, ATTRIBUTES_AT) & ~COMPRESSION_BITS) | type)
  writeInt32(made, CRC_AT, crc32c(made.subarray(ATTRIBUTES_AT)))
  return made
}

function recordsOf(bytes: Uint8Array, compression: CompressionPort): Uint8Array {
  const type = compressionOf(bytes)
  const packed = bytes.subarray(HEADER_BYTES)
  return type === 0 ? packed : compression.decompress(type, packed, MAX_DECOMPRESSED_BYTES)
}

function invalid(errorMessage: string): Fault {
  return fault(KAFKA_ERRORS.INVALID_RECORD, errorMessage)
}

function fault(errorCode: number, errorMessage: string): Fault {
  return { errorCode, errorMessage }
}
