/**
 * End-transaction markers: control batches of one record, written by the broker where a transaction ends in
 * a partition. They take an offset and are shown to no reader.
 *
 *   key    version i16 = 0 | type i16: 0 abort, 1 commit (others belong to Kafka's own metadata log)
 *   value  version i16 = 0 | coordinator epoch i32
 */
import { Columns } from '../../model/batch.ts'
import { keyBytes } from '../../model/record.ts'
import { defaultCodec } from '../../model/value-codec.ts'
import { type CompressionPort, noCompression } from './compression.ts'
import { readInt16, readInt32, writeInt16, writeInt32 } from './integers.ts'
import type { Crc32c } from './record-batch.ts'
import { decodeBatch, encodeBatch } from './record-batch.ts'
import { corrupt } from './varint.ts'

const ABORT = 0
const COMMIT = 1
const KEY_BYTES = 4
const VALUE_BYTES = 6

export interface Marker {
  readonly commit: boolean
  readonly coordinatorEpoch: number
}

export interface MarkerOptions {
  readonly baseOffset: number
  readonly leaderEpoch: number
  readonly producerId: number
  readonly producerEpoch: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
  readonly crc32c?: Crc32c
}

/** The control batch of one marker. */
export function encodeMarker(marker: Marker, options: MarkerOptions): Uint8Array {
  const key = new Uint8Array(KEY_BYTES)
  writeInt16(key, 2, marker.commit ? COMMIT : ABORT)
  const value = new Uint8Array(VALUE_BYTES)
  writeInt32(value, 2, marker.coordinatorEpoch)
  const rows = new Columns(options.baseOffset, 1)
  rows.push(value, key, null, options.timestamp, 0)
  const { producerId: id, producerEpoch: epoch } = options
  const producer = { id, epoch, sequence: -1, transactional: true }
  return encodeBatch(rows, 0, 1, defaultCodec, { ...options, producer, control: true })
}

/**
 * The marker in the control batch at `at`; `null` for a control record that ends no transaction.
 * @throws OdradekError CORRUPT_LOG, or UNSUPPORTED when the compression is not available (nobody is known to
 * compress markers).
 */
export function decodeMarker(
  bytes: Uint8Array,
  at: number,
  compression: CompressionPort = noCompression,
): Marker | null {
  const rows = decodeBatch(bytes, at, defaultCodec, compression)
  if (rows.count === 0) return null
  const key = keyBytes(rows.keyAt(0) ?? '')
  if (key.length < KEY_BYTES) throw corrupt('a control record without a type')
  const type = readInt16(key, 2)
  if (type !== ABORT && type !== COMMIT) return null
  const value = rows.values[0]
  if (!(value instanceof Uint8Array) || value.length < VALUE_BYTES) {
    throw corrupt('an end-transaction marker without a coordinator epoch')
  }
  return { commit: type === COMMIT, coordinatorEpoch: readInt32(value, 2) }
}
