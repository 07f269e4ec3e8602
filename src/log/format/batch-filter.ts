/**
 * Makes of a batch one with some of its records, for compaction. What stays is what it was: offsets, timestamps, producer
 * and sequence, compression, and the bytes of every record. The base offset and the last offset stay too, so a batch
 * takes the same offsets as before, and a reader goes on behind it as before.
 *
 *   records   │ a₁ │ b₁ │ a₂ │ c₁ │      open, then next and keep in turn
 *   kept           ├────┴────┤           runs of what stays
 *   finish    │ header, as it was │ b₁ │ a₂ │
 *
 * A **delete horizon** is the moment from which tombstones and markers of a batch may go (KIP-534). It stands where the
 * base timestamp was, so timestamps of records, which are told from that, are written anew.
 */

import type { CompressionPort } from './compression.ts'
import { MAX_DECOMPRESSED_BYTES } from './compression.ts'
import type { Crc32c } from './crc32c.ts'
import { writeInt16, writeInt32, writeInt64 } from './integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COUNT_AT,
  CRC_AT,
  DELETE_HORIZON,
  HEADER_BYTES,
  LOG_APPEND_TIME,
  MAX_TIMESTAMP_AT,
  PREFIX_BYTES,
  SIZE_AT,
} from './layout.ts'
import { RecordScan } from './record-scan.ts'
import type { BatchScan } from './scan.ts'
import { varintSize, varlongSize, writeVarint, writeVarlong } from './varint.ts'

export class BatchFilter {
  readonly #compression: CompressionPort
  readonly #crc32c: Crc32c
  readonly #scan = new RecordScan()
  #batch: Uint8Array = new Uint8Array(0)
  #records: Uint8Array = this.#batch
  #codec = 0
  #attributes = 0
  #baseTimestamp = 0
  #all = 0
  /** Begin and end of each run. */
  #runs: number[] = []
  #oldest = 0
  #newest = 0
  /** Records that stay, and how many of them have no value. */
  count: number = 0
  tombstones: number = 0

  constructor(compression: CompressionPort, crc32c: Crc32c) {
    this.#compression = compression
    this.#crc32c = crc32c
  }

  /** The uncompressed records of the batch that is open, in which positions of its scan are. */
  get records(): Uint8Array {
    return this.#records
  }

  /**
   * Opens the batch that `batch` stands on in `bytes`, to be walked record by record.
   * @throws OdradekError UNSUPPORTED where its compression is not available, CORRUPT_LOG; so does the walk
   */
  open(bytes: Uint8Array, batch: BatchScan): RecordScan {
    this.#batch = bytes.subarray(batch.position, batch.position + batch.sizeBytes)
    this.#attributes = batch.attributes
    this.#baseTimestamp = batch.baseTimestamp
    this.#all = batch.count
    this.#codec = batch.compression
    this.#runs = []
    this.count = 0
    this.tombstones = 0
    const packed = this.#batch.subarray(HEADER_BYTES)
    this.#records =
      this.#codec === 0 ? packed : this.#compression.decompress(this.#codec, packed, MAX_DECOMPRESSED_BYTES)
    return this.again()
  }

  /** Walks the records of the batch that is open once more. */
  again(): RecordScan {
    return this.#scan.start(this.#records, 0, this.#records.length, this.#all)
  }

  /** The record that the walk is at stays. */
  keep(): void {
    const { position, end, timestampDelta, isTombstone } = this.#scan
    const runs = this.#runs
    if (runs.length > 0 && runs.at(-1) === position) runs[runs.length - 1] = end
    else runs.push(position, end)
    const timestamp = this.#baseTimestamp + timestampDelta
    this.#oldest = this.count === 0 ? timestamp : Math.min(this.#oldest, timestamp)
    this.#newest = this.count === 0 ? timestamp : Math.max(this.#newest, timestamp)
    this.count++
    if (isTombstone) this.tombstones++
  }

  /**
   * The batch of what stays, which is something: the very bytes where it is all. With a `horizon` (milliseconds since
   * the epoch) it says that too, unless its timestamps are beyond all bounds.
   */
  finish(horizon?: number): Uint8Array {
    if (horizon !== undefined && this.#canTell(horizon)) {
      return this.#made(this.#rebased(horizon), this.#attributes | DELETE_HORIZON, horizon)
    }
    if (this.count === this.#all) return this.#batch
    return this.#made(this.#copied(), this.#attributes, this.#baseTimestamp)
  }

  #canTell(horizon: number): boolean {
    return Number.isSafeInteger(this.#oldest - horizon) && Number.isSafeInteger(this.#newest - horizon)
  }

  /** What stays, end to end. */
  #copied(): Uint8Array {
    const runs = this.#runs
    let sizeBytes = 0
    for (let i = 0; i < runs.length; i += 2) sizeBytes += (runs[i + 1] as number) - (runs[i] as number)
    const section = new Uint8Array(sizeBytes)
    for (let i = 0, at = 0; i < runs.length; i += 2) {
      const run = this.#records.subarray(runs[i], runs[i + 1])
      section.set(run, at)
      at += run.length
    }
    return section
  }

  /** The same, with timestamps as they are told from `base`. */
  #rebased(base: number): Uint8Array {
    let sizeBytes = 0
    for (const record of this.#kept()) sizeBytes += this.#sizeFrom(record, base)
    const section = new Uint8Array(sizeBytes)
    let at = 0
    for (const record of this.#kept()) {
      const delta = this.#baseTimestamp + record.timestampDelta - base
      at = writeVarint(section, at, 1 + varlongSize(delta) + record.end - record.rest)
      section[at++] = record.attributes
      at = writeVarlong(section, at, delta)
      section.set(this.#records.subarray(record.rest, record.end), at)
      at += record.end - record.rest
    }
    return section
  }

  #sizeFrom({ timestampDelta, rest, end }: RecordScan, base: number): number {
    const size = 1 + varlongSize(this.#baseTimestamp + timestampDelta - base) + end - rest
    return varintSize(size) + size
  }

  *#kept(): Generator<RecordScan> {
    const runs = this.#runs
    const scan = this.again()
    for (let i = 0; i < runs.length && scan.next(); ) {
      while (i < runs.length && (runs[i + 1] as number) <= scan.position) i += 2
      if (i < runs.length && (runs[i] as number) <= scan.position) yield scan
    }
  }

  #made(section: Uint8Array, attributes: number, baseTimestamp: number): Uint8Array {
    const packed = this.#codec === 0 ? section : this.#compression.compress(this.#codec, section)
    const bytes = new Uint8Array(HEADER_BYTES + packed.length)
    bytes.set(this.#batch.subarray(0, HEADER_BYTES))
    bytes.set(packed, HEADER_BYTES)
    writeInt32(bytes, SIZE_AT, bytes.length - PREFIX_BYTES)
    writeInt16(bytes, ATTRIBUTES_AT, attributes)
    writeInt64(bytes, BASE_TIMESTAMP_AT, baseTimestamp)
    // The broker's time is that of all records, and stands nowhere else.
    if ((attributes & LOG_APPEND_TIME) === 0) writeInt64(bytes, MAX_TIMESTAMP_AT, this.#newest)
    writeInt32(bytes, COUNT_AT, this.count)
    writeInt32(bytes, CRC_AT, this.#crc32c(bytes.subarray(ATTRIBUTES_AT)))
    return bytes
  }
}
