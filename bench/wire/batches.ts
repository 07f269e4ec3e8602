/**
 * Batches as a producer sends them, made once before the clock runs: what is measured is what a broker does with bytes,
 * not what a client does to make them.
 *
 *   RecordBatch v2   │ base 0 │ size │ epoch │ 2 │ crc │ attributes, deltas, times, no producer │ count │ records │
 *   record           │ length │ 0 │ Δ time 0 │ Δ offset │ no key │ value │ no headers │
 */
import { crc32c } from './built.ts'

const HEADER_BYTES = 61
const CRC_FROM = 21
/** What a producer of librdkafka or of Java fills by default, about. */
export const BATCH_BYTES = 16_384

export interface Template {
  readonly bytes: Buffer
  readonly records: number
  readonly crc: number
}

/** As many records of that size as go into a batch of about 16 KiB. Values are all there is in them. */
export function template(valueBytes: number, now: number): Template {
  const records = Math.max(1, Math.floor((BATCH_BYTES - HEADER_BYTES) / (valueBytes + 9)))
  return batchOf(
    Array.from({ length: records }, (_, i) => Buffer.alloc(valueBytes, `record ${i} of the batch; `)),
    now,
  )
}

/** A batch of these values. */
export function batchOf(values: readonly Buffer[], now: number): Template {
  const pieces = [Buffer.alloc(HEADER_BYTES), ...values.map(record)]
  const bytes = Buffer.concat(pieces)
  bytes.writeInt32BE(bytes.length - 12, 8)
  bytes.writeInt32BE(-1, 12)
  bytes.writeInt8(2, 16)
  bytes.writeInt32BE(values.length - 1, 23)
  bytes.writeBigInt64BE(BigInt(now), 27)
  bytes.writeBigInt64BE(BigInt(now), 35)
  bytes.writeBigInt64BE(-1n, 43)
  bytes.writeInt16BE(-1, 51)
  bytes.writeInt32BE(-1, 53)
  bytes.writeInt32BE(values.length, 57)
  const crc = crc32c(bytes.subarray(CRC_FROM)) >>> 0
  bytes.writeUInt32BE(crc, 17)
  return { bytes, records: values.length, crc }
}

function record(value: Buffer, offsetDelta: number): Buffer {
  const body = Buffer.concat([
    Buffer.from([0]),
    varint(0),
    varint(offsetDelta),
    varint(-1),
    varint(value.length),
    value,
    varint(0),
  ])
  return Buffer.concat([varint(body.length), body])
}

/** Zigzag, seven bits a byte. */
function varint(value: number): Buffer {
  const out: number[] = []
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  for (; rest >= 0x80; rest >>>= 7) out.push((rest & 0x7f) | 0x80)
  out.push(rest)
  return Buffer.from(out)
}

/** What fetched bytes hold: whole batches of `expected`, one behind the other. */
export interface Walked {
  readonly next: number
  readonly records: number
}

/**
 * Walks fetched batches by their headers: each begins where the one before ended, counts what was sent, and carries its
 * sum. The first may begin before `from`. What is cut off at the end does not count. Throws where anything is amiss.
 */
export function walk(bytes: Uint8Array, from: number, { records, crc }: Template): Walked {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  let next = -1
  let count = 0
  while (bytes.length - at >= HEADER_BYTES) {
    const sizeBytes = view.getInt32(at + 8) + 12
    if (at + sizeBytes > bytes.length) break
    const base = Number(view.getBigInt64(at))
    const isNext = next < 0 ? base <= from : base === next
    if (!isNext || view.getInt32(at + 57) !== records || view.getUint32(at + 17) !== crc) {
      throw new Error(`a batch at offset ${base} is not what was sent, or not where it should be`)
    }
    next = base + records
    count += records
    at += sizeBytes
  }
  return { next: Math.max(next, from), records: count }
}
