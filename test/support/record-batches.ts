/** RecordBatches as producers send them, and what is in those that a fetch brings. */

import { BatchBuilder } from '../../src/log/format/batch-builder.ts'
import type { CompressionPort } from '../../src/log/format/compression.ts'
import { noCompression } from '../../src/log/format/compression.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { writeInt32 } from '../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, CRC_AT } from '../../src/log/format/layout.ts'
import { decodeBatch, readHeader } from '../../src/log/format/record-batch.ts'
import { BatchScan } from '../../src/log/format/scan.ts'
import type { ProducerInfo } from '../../src/model/batch.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { defaultCodec } from '../../src/model/value-codec.ts'

export interface BatchParts {
  readonly values?: readonly (string | null)[]
  /** `null`: no record has one. Default: `k0`, `k1` … */
  readonly keys?: readonly (string | null)[] | null
  readonly headers?: Readonly<Record<string, string>>
  /** Of the first record; each other one is a millisecond later. Default: that of the manual clock's start. */
  readonly timestamp?: number
  readonly producer?: ProducerInfo
  readonly compression?: { readonly type: number; readonly port: CompressionPort }
  readonly control?: boolean
}

export const START_MS = 1_767_225_600_000
const encoder = new TextEncoder()

/** Values without types, as foreign clients send them. */
export function batchOf({
  values = ['a'],
  keys,
  headers,
  timestamp = START_MS,
  ...finish
}: BatchParts = {}): Uint8Array {
  const builder = new BatchBuilder()
  builder.open(0, timestamp)
  const all = headers === undefined ? null : RecordHeaders.from(headers)
  values.forEach((value, i) => {
    const key = keys === null ? null : keys === undefined ? `k${i}` : (keys[i] ?? null)
    builder.add(value === null ? null : encoder.encode(value), key, all, timestamp + i)
  })
  return builder.finish({ leaderEpoch: -1, ...finish })
}

/** The same batch after `change`, with a sum that fits. */
export function changed(batch: Uint8Array, change: (bytes: Uint8Array) => void): Uint8Array {
  const bytes = batch.slice()
  change(bytes)
  writeInt32(bytes, CRC_AT, crc32c(bytes.subarray(ATTRIBUTES_AT)))
  return bytes
}

/** A producer's batch number `sequence` of an id and epoch. */
export function by(id: number, sequence: number, epoch = 0, transactional = false): ProducerInfo {
  return { id, epoch, sequence, transactional }
}

export interface ReadRecord {
  readonly offset: number
  readonly value: string | null
  readonly timestamp: number
}

/** Every record of whole batches, markers excepted. */
export function recordsOf(bytes: Uint8Array, port: CompressionPort = noCompression): ReadRecord[] {
  const records: ReadRecord[] = []
  for (const at of positionsOf(bytes)) {
    if (readHeader(bytes, at).control) continue
    const rows = decodeBatch(bytes, at, defaultCodec, port)
    for (let row = 0; row < rows.count; row++) {
      const value = rows.values[row]
      const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : (value as string | null)
      records.push({ offset: rows.offsetAt(row), value: text, timestamp: rows.timestampAt(row) })
    }
  }
  return records
}

/** Where each batch begins. */
export function positionsOf(bytes: Uint8Array): number[] {
  const scan = new BatchScan({ crc32c }).start(bytes)
  const positions: number[] = []
  while (scan.next()) positions.push(scan.position)
  if (scan.end !== 'end') throw new Error(`no whole batches: ${scan.end} ${scan.fault}`)
  return positions
}
