/**
 * Where batches of a segment begin: about every 32 KiB, and wherever the leader epoch changes or offsets are missing. So
 * it is possible to read from any offset or time without what lies before, and it is known exactly which offset and
 * epoch the batches there must have: between two entries offsets follow each other, in one epoch.
 *
 *   position   0          33 KiB     66 KiB  70 KiB        size
 *   batches    │ a b c d e│ f g h i  │ j k   │ l m n ...   │
 *   entries    ● a        ● f        ● j     ● l             l: a new epoch
 *
 * In a file beside the segment it is only ever a cache. It says which bytes it was made of (how many, and their CRC), so
 * one that is old, or of other bytes, is found out; where it is usable it may still cover only the beginning. Big-endian:
 *
 *   0 magic u32 "ODSI" | 4 format u32 | 8 base u64 | 16 next u64 | 24 size u64 | 32 newest timestamp i64 |
 *   40 CRC-32C of so many bytes of the segment u32 | 44 count u32 | 48 CRC-32C of all but this field u32 | 52 entries
 *   entry   0 offset u64 | 8 position u64 | 16 newest timestamp before it i64 | 24 epoch i32
 */
import type { Crc32c } from '../format/crc32c.ts'
import { readInt32, readInt64, writeInt32, writeInt64 } from '../format/integers.ts'

const KiB = 1024
const INDEX_SPACING_BYTES: number = 32 * KiB

const MAGIC = 0x4f445349
const FORMAT = 1
const CRC_AT = 48
const HEADER_BYTES = 52
const ENTRY_BYTES = 28

/** A beginning of a segment: where it ends, in bytes and offsets, and what it amounts to. */
export interface Extract {
  /** Offset after it. */
  readonly next: number
  readonly sizeBytes: number
  /** Newest timestamp of a record, −1 for none. */
  readonly maxTimestamp: number
  /** CRC-32C of its bytes. */
  readonly crc: number
}

export class SegmentIndex {
  readonly offsets: number[] = []
  readonly positions: number[] = []
  /** Newest timestamp of a record in front of the entry. */
  readonly newest: number[] = []
  readonly epochs: number[] = []

  get length(): number {
    return this.offsets.length
  }

  /** Whether a batch at `position`, behind missing offsets (`gap`) or not, deserves an entry. `before`: entries in front. */
  isDue(position: number, epoch: number, gap: boolean, before: SegmentIndex = this): boolean {
    const of = this.length > 0 ? this : before
    const last = of.length - 1
    if (gap || last < 0 || epoch !== of.epochs[last]) return true
    return position - (of.positions[last] as number) >= INDEX_SPACING_BYTES
  }

  add(offset: number, position: number, newest: number, epoch: number): void {
    this.offsets.push(offset)
    this.positions.push(position)
    this.newest.push(newest)
    this.epochs.push(epoch)
  }

  addAll(entries: SegmentIndex, from: number = 0): void {
    for (let i = from; i < entries.length; i++) {
      this.add(
        entries.offsets[i] as number,
        entries.positions[i] as number,
        entries.newest[i] as number,
        entries.epochs[i] as number,
      )
    }
  }

  /** The last entry at or below `offset`; the first one where all are above. */
  at(offset: number): number {
    return lastNotAbove(this.offsets, offset)
  }

  /** The last entry in front of which all is older than `timestamp`. */
  before(timestamp: number): number {
    // Whole numbers: not above what is a little less.
    return lastNotAbove(this.newest, timestamp - 0.5)
  }
}

/** Place of the last of these ascending numbers that is not above `value`, or 0. */
function lastNotAbove(numbers: readonly number[], value: number): number {
  let low = 0
  let high = numbers.length
  while (high - low > 1) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] as number) <= value) low = middle
    else high = middle
  }
  return low
}

/** The file of an index of the beginning `of` of the segment at `base`. */
export function encodeIndex(index: SegmentIndex, base: number, of: Extract, crc32c: Crc32c): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + index.length * ENTRY_BYTES)
  writeInt32(bytes, 0, MAGIC)
  writeInt32(bytes, 4, FORMAT)
  writeInt64(bytes, 8, base)
  writeInt64(bytes, 16, of.next)
  writeInt64(bytes, 24, of.sizeBytes)
  writeInt64(bytes, 32, of.maxTimestamp)
  writeInt32(bytes, 40, of.crc)
  writeInt32(bytes, 44, index.length)
  for (let i = 0, at = HEADER_BYTES; i < index.length; i++, at += ENTRY_BYTES) {
    writeInt64(bytes, at, index.offsets[i] as number)
    writeInt64(bytes, at + 8, index.positions[i] as number)
    writeInt64(bytes, at + 16, index.newest[i] as number)
    writeInt32(bytes, at + 24, index.epochs[i] as number)
  }
  writeInt32(bytes, CRC_AT, checksum(bytes, crc32c))
  return bytes
}

/** An index, and what it was made of. */
export interface SavedIndex {
  readonly index: SegmentIndex
  readonly of: Extract
}

/** The index that `bytes` are, if it is one of a segment at `base`. */
export function decodeIndex(bytes: Uint8Array, base: number, crc32c: Crc32c): SavedIndex | undefined {
  if (bytes.length < HEADER_BYTES || readInt32(bytes, 0) !== MAGIC || readInt32(bytes, 4) !== FORMAT)
    return undefined
  const count = readInt32(bytes, 44)
  if (bytes.length !== HEADER_BYTES + count * ENTRY_BYTES || readInt64(bytes, 8) !== base) return undefined
  if (checksum(bytes, crc32c) !== readInt32(bytes, CRC_AT) >>> 0) return undefined
  const index = new SegmentIndex()
  for (let at = HEADER_BYTES; at < bytes.length; at += ENTRY_BYTES) {
    const [offset, position, newest] = [
      readInt64(bytes, at),
      readInt64(bytes, at + 8),
      readInt64(bytes, at + 16),
    ]
    index.add(offset, position, newest, readInt32(bytes, at + 24))
  }
  const of = {
    next: readInt64(bytes, 16),
    sizeBytes: readInt64(bytes, 24),
    maxTimestamp: readInt64(bytes, 32),
    crc: readInt32(bytes, 40) >>> 0,
  }
  return { index, of }
}

function checksum(bytes: Uint8Array, crc32c: Crc32c): number {
  return crc32c(bytes.subarray(HEADER_BYTES), crc32c(bytes.subarray(0, CRC_AT)))
}
