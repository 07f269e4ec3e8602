/** Batches for the tests of chunks and segments: small, of every shape that a log may hold. */
import { RowDecoder } from '../../../src/log/file/row-decoder.ts'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { writeInt32, writeInt64 } from '../../../src/log/format/integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COUNT_AT,
  CRC_AT,
  HEADER_BYTES,
  LAST_DELTA_AT,
  PREFIX_BYTES,
  SIZE_AT,
} from '../../../src/log/format/layout.ts'
import type { ProducerInfo } from '../../../src/model/batch.ts'
import { RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'

export const T0 = 1_767_225_600_000

export const decoder: RowDecoder = new RowDecoder(defaultCodec, noCompression)

export interface BatchSpec {
  /** How many records, or the offset deltas of each. */
  readonly deltas: readonly number[] | number
  /** Offsets that it takes, where they go beyond its last record. */
  readonly span?: number
  readonly inProcess?: boolean
  readonly producer?: ProducerInfo | null
  /** Of the first record; the others follow by a millisecond each. */
  readonly timestamp?: number
  readonly epoch?: number
  /** By offset; the offset itself if nothing is said. */
  readonly value?: (offset: number) => unknown
}

/** Of equal length, so that batches are. */
function keyAt(offset: number): string {
  return `k${String(offset).padStart(5, '0')}`
}

/** A batch at `base`. Keys are `k` and five digits of the offset; the second record has a header. */
export function batchAt(base: number, spec: BatchSpec): Uint8Array {
  const { span, inProcess = false, producer = null, timestamp = T0, epoch = 0 } = spec
  const { value = (offset) => offset } = spec
  const deltas =
    typeof spec.deltas === 'number' ? Array.from({ length: spec.deltas }, (_, i) => i) : spec.deltas
  const builder = new BatchBuilder()
  builder.open(base, timestamp)
  for (const [i, delta] of deltas.entries()) {
    const { bytes, contentType } = defaultCodec.encode(value(base + delta))
    builder.add(bytes, keyAt(base + delta), i === 1 ? SECOND : null, timestamp + i, contentType, delta)
  }
  const bytes = builder.finish({ leaderEpoch: epoch, producer, inProcess })
  return span === undefined ? bytes : changed(bytes, (batch) => writeInt32(batch, LAST_DELTA_AT, span - 1))
}

const SECOND = new RecordHeaders([['h', 'second']])

/** What Kafka's compaction leaves of a producer's last batch: its header, which takes `span` offsets. */
export function emptied(base: number, span: number, producer: ProducerInfo, epoch: number = 0): Uint8Array {
  const header = batchAt(base, { deltas: span, producer, epoch }).slice(0, HEADER_BYTES)
  return changed(header, (batch) => {
    writeInt32(batch, SIZE_AT, HEADER_BYTES - PREFIX_BYTES)
    writeInt64(batch, BASE_TIMESTAMP_AT, -1)
    writeInt32(batch, COUNT_AT, 0)
  })
}

/** A batch whose checksum is right, and whose records are none. */
export function undecodable(base: number, span: number, options: Partial<BatchSpec> = {}): Uint8Array {
  return changed(batchAt(base, { ...options, deltas: span }), (batch) => batch.fill(0xff, 61))
}

/** A batch of one record whose value is not what its content type says. */
export function badValue(base: number, options: Partial<BatchSpec> = {}): Uint8Array {
  const spoil = (batch: Uint8Array): void => {
    const at = Buffer.from(batch.buffer, batch.byteOffset).lastIndexOf('{"":')
    batch[at] = 0x21
  }
  return changed(batchAt(base, { ...options, deltas: 1, value: () => ({ '': 1 }) }), spoil)
}

export function markerAt(base: number, producerId: number, commit: boolean, epoch: number = 0): Uint8Array {
  return encodeMarker(
    { commit, coordinatorEpoch: 0 },
    { baseOffset: base, leaderEpoch: epoch, producerId, producerEpoch: 0, timestamp: T0 },
  )
}

export function transactional(id: number): ProducerInfo {
  return { id, epoch: 0, sequence: 0, transactional: true }
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces))
}

/** With its checksum made right. */
function changed(batch: Uint8Array, change: (batch: Uint8Array) => void): Uint8Array {
  change(batch)
  writeInt32(batch, CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)))
  return batch
}
