/**
 * LZ4 in its frame format, as batches of format 2 hold it (older formats had a wrong header checksum). A frame
 * rarely says how large its content is, so it is walked first: block by block, sequence by sequence, counting and
 * copying nothing. Only then a library inflates it, which would take what it is given.
 *
 *   04 22 4d 18 | flags | block maximum | [content size u64] | [dictionary u32] | header checksum
 *   | length u32, block, [checksum u32] | ... | 0 u32 | [content checksum u32]
 *
 * A block's highest length bit says that it is stored as it is. A sequence inside of one that is not:
 *
 *   token: literals, match (4 bits each) | [more literals] | literals | offset u16 | [more match]
 */
import type { Codec } from './codec.ts'
import { damaged, plain, readUint32, tooLarge } from './codec.ts'

/** The part of the package `lz4-napi` that is used. */
export interface Lz4Library {
  compressFrameSync(bytes: Buffer): Uint8Array
  decompressFrameSync(bytes: Buffer): Uint8Array
}

const MAGIC = 0x184d2204
const VERSION_BITS = 0b1100_0000
const VERSION = 0b0100_0000
const BLOCK_CHECKSUM = 1 << 4
const CONTENT_SIZE = 1 << 3
const CONTENT_CHECKSUM = 1 << 2
const DICTIONARY = 1 << 0
const STORED = 2 ** 31
/** Codes 4 to 7 are 64 KiB to 4 MiB. */
const BLOCK_MAX_CODES = [4, 5, 6, 7]
const MIN_MATCH = 4
const LONG = 15

export function lz4Codec(library: Lz4Library): Codec {
  return {
    compress: (bytes) => plain(library.compressFrameSync(asBuffer(bytes))),
    decompress(bytes, maxBytes) {
      const sizeBytes = contentBytes(bytes, maxBytes)
      const content = library.decompressFrameSync(asBuffer(bytes))
      if (content.length !== sizeBytes)
        throw damaged(`${content.length} bytes came out instead of ${sizeBytes}`)
      return plain(content)
    },
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** What comes out of the one frame that `bytes` are. */
function contentBytes(bytes: Uint8Array, maxBytes: number): number {
  if (readUint32(bytes, 0) !== MAGIC) throw damaged('it does not begin as a frame of LZ4 does')
  const flags = bytes[4] ?? 0
  const code = (bytes[5] ?? 0) >> 4
  if ((flags & VERSION_BITS) !== VERSION || (flags & DICTIONARY) !== 0 || !BLOCK_MAX_CODES.includes(code)) {
    throw damaged('a frame of LZ4 of an unknown kind')
  }
  const blockMax = 2 ** (8 + 2 * code)
  const checksumBytes = flags & BLOCK_CHECKSUM ? 4 : 0
  let at = flags & CONTENT_SIZE ? 15 : 7
  let size = 0
  for (;;) {
    const length = readUint32(bytes, at)
    at += 4
    if (length === 0) break
    const end = at + (length % STORED)
    if (end > bytes.length) throw damaged('a block reaches beyond its frame')
    const inflated = length >= STORED ? length - STORED : blockBytes(bytes, at, end)
    if (inflated > blockMax) throw damaged(`a block of more than ${blockMax} bytes`)
    size += inflated
    if (size > maxBytes) throw tooLarge(maxBytes)
    at = end + checksumBytes
  }
  if (flags & CONTENT_CHECKSUM) at += 4
  if (at !== bytes.length) throw damaged('its frame ends elsewhere')
  return size
}

/** What comes out of the block from `start` to `end`. */
function blockBytes(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  let size = 0
  while (at < end) {
    const token = bytes[at++] as number
    let literals = token >> 4
    if (literals === LONG) {
      const more = at
      while (bytes[at] === 255 && at < end) at++
      literals += 255 * (at - more) + (bytes[at++] ?? 0)
    }
    at += literals
    size += literals
    // The last sequence has no match.
    if (at >= end) break
    at += 2
    let match = (token & LONG) + MIN_MATCH
    if (match === LONG + MIN_MATCH) {
      const more = at
      while (bytes[at] === 255 && at < end) at++
      match += 255 * (at - more) + (bytes[at++] ?? 0)
    }
    size += match
  }
  if (at !== end) throw damaged('a sequence reaches beyond its block')
  return size
}
