/**
 * Snappy in the two forms that Kafka's clients write. The Java client and those that follow it frame it:
 *
 *   82 "SNAPPY" 00 | version i32 = 1 | lowest version that can read it i32 = 1 | length i32, block | length i32, block ...
 *
 * librdkafka and KafkaJS write one bare block. Everybody reads both, and so do we; we write what Java does. No
 * bare block begins like a frame, because its first element would copy from before its beginning. A block begins
 * with the length of what comes out of it, a varint, so that is known before anything is inflated.
 */
import { concat } from '../log/format/bytes.ts'
import { readInt32, writeInt32 } from '../log/format/integers.ts'
import type { Codec } from './codec.ts'
import { damaged, plain, tooLarge } from './codec.ts'

/** The part of the package `snappy` that is used. */
export interface SnappyLibrary {
  compressSync(bytes: Uint8Array, options: { copyOutputData: true }): Uint8Array
  uncompressSync(bytes: Uint8Array, options: { asBuffer: true; copyOutputData: true }): Uint8Array | string
}

const MAGIC = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0)
const VERSION = 1
const FRAME_HEADER_BYTES = 16
const LENGTH_BYTES = 4
/** What a frame's blocks hold at most, as Java writes them. */
const BLOCK_BYTES = 32 * 1024
/** The densest element of a block: three bytes that copy 64. */
const MAX_EXPANSION = 64 / 3
const MAX_VARINT_BYTES = 5
/** A copy into memory of V8's own: buffers outside of it were measured to be five times as slow. */
const COPIED = { copyOutputData: true } as const
const COPIED_BYTES = { asBuffer: true, copyOutputData: true } as const

export function snappyCodec(library: SnappyLibrary): Codec {
  return {
    compress: (bytes) => compress(library, bytes),
    decompress: (bytes, maxBytes) => decompress(library, bytes, maxBytes),
  }
}

function compress(library: SnappyLibrary, bytes: Uint8Array): Uint8Array {
  const header = new Uint8Array(FRAME_HEADER_BYTES)
  header.set(MAGIC)
  writeInt32(header, MAGIC.length, VERSION)
  writeInt32(header, MAGIC.length + 4, VERSION)
  const parts: Uint8Array[] = [header]
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    const block = library.compressSync(bytes.subarray(at, at + BLOCK_BYTES), COPIED)
    const length = new Uint8Array(LENGTH_BYTES)
    writeInt32(length, 0, block.length)
    parts.push(length, block)
  }
  return concat(parts)
}

function decompress(library: SnappyLibrary, bytes: Uint8Array, maxBytes: number): Uint8Array {
  const blocks = blocksOf(bytes)
  let sizeBytes = 0
  for (const block of blocks) sizeBytes += inflatedBytes(block)
  if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
  return plain(concat(blocks.map((block) => library.uncompressSync(block, COPIED_BYTES) as Uint8Array)))
}

/** The blocks of a frame, or the one that stands alone. */
function blocksOf(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length < FRAME_HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) return [bytes]
  const blocks: Uint8Array[] = []
  let at = FRAME_HEADER_BYTES
  while (at < bytes.length) {
    const start = at + LENGTH_BYTES
    const length = start <= bytes.length ? readInt32(bytes, at) : -1
    if (length < 0 || length > bytes.length - start) throw damaged('a block reaches beyond its frame')
    at = start + length
    blocks.push(bytes.subarray(start, at))
  }
  return blocks
}

/** What a block says comes out of it, which cannot be more than its elements make. */
function inflatedBytes(block: Uint8Array): number {
  let size = 0
  for (let i = 0; i < MAX_VARINT_BYTES && i < block.length; i++) {
    const byte = block[i] as number
    size += (byte & 0x7f) * 2 ** (7 * i)
    if (byte >= 0x80) continue
    if (size > block.length * MAX_EXPANSION) throw damaged(`${block.length} bytes do not expand to ${size}`)
    return size
  }
  throw damaged('a block does not begin with its length')
}
