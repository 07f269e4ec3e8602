/**
 * What stands behind the batches of a sealed segment, so that the file says by itself what it holds, and every byte of
 * it is under a checksum: those of batches leave out base offsets and leader epochs. 64 bytes, big-endian:
 *
 *   0 magic u32 "ODSG" | 4 format u16 | 6 flags u16: 1 compacted | 8 base u64 | 16 next u64 | 24 size of batches u64 |
 *   32 newest timestamp i64 | 40 CRC-32C of batches u32 | 44 zeros | 60 CRC-32C of bytes 0-59 u32
 */
import type { Crc32c } from '../format/crc32c.ts'
import { readInt16, readInt32, readInt64, writeInt16, writeInt32, writeInt64 } from '../format/integers.ts'

export interface SegmentFooter {
  readonly base: number
  /** Offset after its last batch, or higher in a compacted one. */
  readonly next: number
  /** Of its batches. */
  readonly sizeBytes: number
  /** Newest timestamp of a record, −1 for none. */
  readonly maxTimestamp: number
  /** CRC-32C of its batches. */
  readonly crc: number
  /** Offsets may be missing. */
  readonly compacted: boolean
}

export const FOOTER_BYTES = 64
const MAGIC = 0x4f445347
const FORMAT = 1
const COMPACTED = 1
const CRC_AT = 60

export function encodeFooter(footer: SegmentFooter, crc32c: Crc32c): Uint8Array {
  const bytes = new Uint8Array(FOOTER_BYTES)
  writeInt32(bytes, 0, MAGIC)
  writeInt16(bytes, 4, FORMAT)
  writeInt16(bytes, 6, footer.compacted ? COMPACTED : 0)
  writeInt64(bytes, 8, footer.base)
  writeInt64(bytes, 16, footer.next)
  writeInt64(bytes, 24, footer.sizeBytes)
  writeInt64(bytes, 32, footer.maxTimestamp)
  writeInt32(bytes, 40, footer.crc)
  writeInt32(bytes, CRC_AT, crc32c(bytes.subarray(0, CRC_AT)))
  return bytes
}

/** The footer that `bytes` are; `undefined` where they are none, or one of a later version. */
export function decodeFooter(bytes: Uint8Array, crc32c: Crc32c): SegmentFooter | undefined {
  if (bytes.length !== FOOTER_BYTES || readInt32(bytes, 0) !== MAGIC || readInt16(bytes, 4) !== FORMAT)
    return undefined
  if (crc32c(bytes.subarray(0, CRC_AT)) !== readInt32(bytes, CRC_AT) >>> 0) return undefined
  return {
    base: readInt64(bytes, 8),
    next: readInt64(bytes, 16),
    sizeBytes: readInt64(bytes, 24),
    maxTimestamp: readInt64(bytes, 32),
    crc: readInt32(bytes, 40) >>> 0,
    compacted: (readInt16(bytes, 6) & COMPACTED) !== 0,
  }
}
