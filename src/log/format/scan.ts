/**
 * Walks a run of batches that follow each other in bytes, as in a segment file or a Produce request, without
 * looking at records. One object is the scan and the batch it stands on: recovery walks gigabytes of small
 * batches, where an object for each header costs more than the checksum.
 *
 *   │ batch │ batch │ batch │ 00 00 00 ...
 *                   ↑ position: the batch that `next` answered true for, or where the scan stopped
 *
 * A scan that answered false says why in `end`, and stays there:
 *
 *   end      exactly at the end of the bytes
 *   cut      what is there may be the beginning of a batch that reaches beyond the bytes
 *   zeros    nothing but zeros up to the end, at least as many as a batch has before its length is known
 *   corrupt  no batch: `fault` says why
 *
 * Where the bytes are a part of a file, `cut` asks for more from `position` on (`sizeBytes` in all, where that
 * is known), and `zeros` holds for this part. A few zeros may be the beginning of a base offset, so they are `cut`.
 */
import type { Crc32c } from './crc32c.ts'
import { readInt8, readInt16, readInt32, readInt64 } from './integers.ts'
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
  LAST_DELTA_AT,
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

export type ScanEnd = 'end' | 'cut' | 'zeros' | 'corrupt'

export interface ScanOptions {
  /** Checks every batch; without one, records are taken as they are. */
  readonly crc32c?: Crc32c
  /** A batch that says it is larger is corrupt, however many bytes may follow. */
  readonly maxBatchBytes?: number
}

export class BatchScan {
  readonly #crc32c: Crc32c | undefined
  readonly #maxBatchBytes: number
  #bytes: Uint8Array = new Uint8Array(0)
  #until = 0
  /** Where the next batch begins. */
  #following = 0

  /** Where the batch begins, or where the scan stopped. */
  position: number = 0
  /** Of the batch, its offset and length included; 0 where the scan stopped before they were known. */
  sizeBytes: number = 0
  base: number = 0
  last: number = 0
  count: number = 0
  leaderEpoch: number = 0
  baseTimestamp: number = 0
  maxTimestamp: number = 0
  /** −1 for none. */
  producerId: number = 0
  producerEpoch: number = 0
  baseSequence: number = 0
  attributes: number = 0
  /** Why the scan stopped; `null` while it goes on. */
  end: ScanEnd | null = null
  /** What is wrong where it ended as `corrupt`, for messages. */
  fault: string = ''

  constructor(options: ScanOptions = {}) {
    this.#crc32c = options.crc32c
    this.#maxBatchBytes = options.maxBatchBytes ?? Number.POSITIVE_INFINITY
  }

  /** Codec number, 0 for none. */
  get compression(): number {
    return this.attributes & COMPRESSION_BITS
  }

  get transactional(): boolean {
    return (this.attributes & TRANSACTIONAL) !== 0
  }

  get control(): boolean {
    return (this.attributes & CONTROL) !== 0
  }

  get deleteHorizon(): boolean {
    return (this.attributes & DELETE_HORIZON) !== 0
  }

  /** Begins with the batch at `from`; the bytes end at `until`. */
  start(bytes: Uint8Array, from: number = 0, until: number = bytes.length): this {
    this.#bytes = bytes
    this.#until = until
    this.#following = from
    this.end = null
    this.fault = ''
    return this
  }

  /** Moves to the next batch; false where there is none, see `end`. */
  next(): boolean {
    if (this.end !== null) return false
    const bytes = this.#bytes
    const at = this.#following
    this.position = at
    const left = this.#until - at
    if (left < PREFIX_BYTES) {
      this.sizeBytes = 0
      return this.#stop(left === 0 ? 'end' : 'cut')
    }
    const size = readInt32(bytes, at + SIZE_AT) + PREFIX_BYTES
    this.sizeBytes = size
    if (size < HEADER_BYTES || size > this.#maxBatchBytes) return this.#noBatch(size)
    if (left > MAGIC_AT && readInt8(bytes, at + MAGIC_AT) !== MAGIC) {
      return this.#corrupt(`magic ${readInt8(bytes, at + MAGIC_AT)} is not a batch of format 2`)
    }
    if (left < HEADER_BYTES) return this.#stop('cut')
    const fault = this.#readHeader(bytes, at)
    if (fault !== null) return this.#corrupt(fault)
    if (left < size) return this.#stop('cut')
    if (this.#crc32c !== undefined) {
      const crc = this.#crc32c(bytes, 0, at + ATTRIBUTES_AT, at + size)
      if (crc !== readInt32(bytes, at + CRC_AT) >>> 0) return this.#corrupt('the CRC does not match')
    }
    this.#following = at + size
    return true
  }

  #readHeader(bytes: Uint8Array, at: number): string | null {
    const base = readInt64(bytes, at)
    const lastDelta = readInt32(bytes, at + LAST_DELTA_AT)
    this.base = base
    this.last = base + lastDelta
    this.count = readInt32(bytes, at + COUNT_AT)
    this.leaderEpoch = readInt32(bytes, at + EPOCH_AT)
    this.baseTimestamp = readInt64(bytes, at + BASE_TIMESTAMP_AT)
    this.maxTimestamp = readInt64(bytes, at + MAX_TIMESTAMP_AT)
    this.producerId = readInt64(bytes, at + PRODUCER_ID_AT)
    this.producerEpoch = readInt16(bytes, at + PRODUCER_EPOCH_AT)
    this.baseSequence = readInt32(bytes, at + SEQUENCE_AT)
    this.attributes = readInt16(bytes, at + ATTRIBUTES_AT)
    return contradiction(base, lastDelta, this.count, this.producerId)
  }

  /** A length that no batch has: the zeros of room that was never written, or damage. */
  #noBatch(sizeBytes: number): false {
    if (sizeBytes === PREFIX_BYTES && allZero(this.#bytes, this.position, this.#until))
      return this.#stop('zeros')
    return this.#corrupt(`a batch cannot have ${sizeBytes} bytes`)
  }

  #corrupt(fault: string): false {
    this.fault = fault
    return this.#stop('corrupt')
  }

  #stop(end: ScanEnd): false {
    this.end = end
    return false
  }
}

/** Eight bytes at a time: room for a segment may be many megabytes. */
function allZero(bytes: Uint8Array, from: number, until: number): boolean {
  let at = from
  for (; at + 8 <= until; at += 8) {
    if ((readInt32(bytes, at) | readInt32(bytes, at + 4)) !== 0) return false
  }
  for (; at < until; at++) if (bytes[at] !== 0) return false
  return true
}
