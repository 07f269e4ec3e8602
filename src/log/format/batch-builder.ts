/**
 * Makes one RecordBatch, record by record: `open`, `add` each, `finish`, and again. Whoever encodes records
 * does it here, so that all batches of ours are alike. Records are written once, behind room for the header,
 * into a buffer; `finish` fills in the header and gives the buffer away where it is nearly full, else a copy, and
 * the next batch takes it over.
 *
 *   buffer   │ header: 61 bytes │ record │ record │ record │ free ...
 *                                                sizeBytes ↑
 *
 * Between `finish` and `open` a builder holds no buffer, so a log may keep one for good. One whose `add` threw
 * is opened anew, or dropped.
 */
import type { ProducerInfo } from '../../model/batch.ts'
import { assert } from '../../model/errors.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import type { CompressionPort } from './compression.ts'
import { type Crc32c, crc32c } from './crc32c.ts'
import { writeInt16, writeInt32, writeInt64 } from './integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  CONTROL,
  COUNT_AT,
  CRC_AT,
  DELETE_HORIZON,
  EPOCH_AT,
  HEADER_BYTES,
  IN_PROCESS,
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
import { type Memory, RecordWriter } from './record-writer.ts'

/** Codec number, 0 for none, and who has the codecs. */
export interface BatchCompression {
  readonly type: number
  readonly port: CompressionPort
}

export interface FinishOptions {
  readonly leaderEpoch: number
  readonly producer?: ProducerInfo | null
  /** A control batch (see control.ts); transactional as its producer says. */
  readonly control?: boolean
  /** The timestamp given to `open` is the delete horizon of a compacted batch. */
  readonly deleteHorizon?: boolean
  /** Its records were published in process, where values are validated. */
  readonly inProcess?: boolean
  readonly compression?: BatchCompression
  readonly crc32c?: Crc32c
  /** For a batch that is copied and not compressed. */
  readonly memory?: Memory
}

const NOBODY: ProducerInfo = { id: -1, epoch: -1, sequence: -1, transactional: false }
/** The last delta of a batch that is not open: none is greater. */
const CLOSED = Number.POSITIVE_INFINITY

export class BatchBuilder {
  readonly #records = new RecordWriter()
  #baseOffset = 0
  #baseTimestamp = 0
  #maxTimestamp = 0
  #lastDelta = CLOSED
  #count = 0

  /** Records added since `open`. */
  get count(): number {
    return this.#count
  }

  /** Bytes of the batch as it is, header included, before compression. */
  get sizeBytes(): number {
    return this.#records.sizeBytes
  }

  /**
   * Begins a batch; `timestamp` is what those of its records are told from, best that of the first one. `roomBytes` is
   * what the batch may come to, where that is known.
   */
  open(baseOffset: number, timestamp: number, roomBytes?: number): void {
    this.#records.open(HEADER_BYTES, roomBytes)
    this.#baseOffset = baseOffset
    this.#baseTimestamp = timestamp
    this.#lastDelta = -1
    this.#count = 0
  }

  /**
   * Adds a record, whose bytes are copied. `contentType` is what the codec says of `value` (record-writer.ts);
   * without one, the headers are written as they are. `offsetDelta` leaves gaps where it leaves out numbers.
   */
  add(
    value: Uint8Array | null,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    contentType?: string | null,
    offsetDelta: number = this.#lastDelta + 1,
  ): void {
    assert(offsetDelta > this.#lastDelta, 'a batch is open, and its offsets grow')
    this.#records.write(value, key, headers, contentType, timestamp - this.#baseTimestamp, offsetDelta)
    if (this.#count === 0 || timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp
    this.#lastDelta = offsetDelta
    this.#count++
  }

  /**
   * The batch, in memory of its own.
   * @throws OdradekError UNSUPPORTED when the compression is not available; the batch is open still.
   */
  finish(options: FinishOptions): Uint8Array {
    assert(this.#count > 0, 'a batch has records')
    const bytes = this.#bytes(options)
    const producer = options.producer ?? NOBODY
    writeInt64(bytes, 0, this.#baseOffset)
    writeInt32(bytes, SIZE_AT, bytes.length - PREFIX_BYTES)
    writeInt32(bytes, EPOCH_AT, options.leaderEpoch)
    bytes[MAGIC_AT] = MAGIC
    writeInt16(bytes, ATTRIBUTES_AT, attributesOf(options))
    writeInt32(bytes, LAST_DELTA_AT, this.#lastDelta)
    writeInt64(bytes, BASE_TIMESTAMP_AT, this.#baseTimestamp)
    writeInt64(bytes, MAX_TIMESTAMP_AT, this.#maxTimestamp)
    writeInt64(bytes, PRODUCER_ID_AT, producer.id)
    writeInt16(bytes, PRODUCER_EPOCH_AT, producer.epoch)
    writeInt32(bytes, SEQUENCE_AT, producer.sequence)
    writeInt32(bytes, COUNT_AT, this.#count)
    writeInt32(bytes, CRC_AT, (options.crc32c ?? crc32c)(bytes.subarray(ATTRIBUTES_AT)))
    this.#lastDelta = CLOSED
    this.#count = 0
    return bytes
  }

  /** The records as the batch holds them, and room in front. */
  #bytes({ compression, memory }: FinishOptions): Uint8Array {
    if (compression === undefined || compression.type === 0) return this.#records.take(memory)
    const packed = compression.port.compress(compression.type, this.#records.written(HEADER_BYTES))
    const bytes = new Uint8Array(HEADER_BYTES + packed.length)
    bytes.set(packed, HEADER_BYTES)
    this.#records.close()
    return bytes
  }
}

function attributesOf(options: FinishOptions): number {
  let attributes = options.compression?.type ?? 0
  if (options.producer?.transactional) attributes |= TRANSACTIONAL
  if (options.control) attributes |= CONTROL
  if (options.deleteHorizon) attributes |= DELETE_HORIZON
  return options.inProcess ? attributes | IN_PROCESS : attributes
}
