/**
 * Zstandard, by Node where it has it (22.15 and later), else by a library. A frame that was written as a
 * stream, as Java's are, does not say how large its content is, so each is walked first: block by block, by their
 * headers, which bound what comes out of each. Room is made for no more than that, nor for more than is
 * allowed, and no decoder writes beyond its room.
 *
 *   28 b5 2f fd | descriptor | [window] | [dictionary] | [content size] | block, block, ... | [checksum u32]
 *   block: 24 bits, little-endian: length, kind (2 bits), last (1 bit) | stored: so many bytes, repeated: one byte,
 *          compressed: so many bytes
 */
import { concat } from '../log/format/bytes.ts'
import type { Codec } from './codec.ts'
import { damaged, plain, readUint32, tooLarge } from './codec.ts'

/** Whoever does the work; what comes out of one frame is never more than `atMostBytes`, or it throws. */
export interface ZstdLibrary {
  compress(bytes: Uint8Array): Uint8Array
  decompress(frame: Uint8Array, atMostBytes: number): Uint8Array
}

/** What Node's zlib may have. */
interface NodeZstd {
  readonly zstdCompressSync?: (bytes: Uint8Array) => Uint8Array
  readonly zstdDecompressSync?: (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array
}

/** The part of the package `@bokuweb/zstd-wasm` that is used. */
export interface WasmZstd {
  init(): Promise<void>
  compress(bytes: Uint8Array): Uint8Array
  decompress(bytes: Uint8Array, options: { defaultHeapSize: number }): Uint8Array
}

const MAGIC = 0xfd2fb528
const SINGLE_SEGMENT = 1 << 5
const RESERVED = 1 << 3
const CHECKSUM = 1 << 2
const DICTIONARY_BITS = 0b11
const BLOCK_HEADER_BYTES = 3
const MAX_BLOCK_BYTES = 128 * 1024
const REPEATED = 1
const COMPRESSED = 2

export function zstdCodec(library: ZstdLibrary): Codec {
  return {
    compress: (bytes) => library.compress(bytes),
    decompress(bytes, maxBytes) {
      const parts: Uint8Array[] = []
      let left = maxBytes
      for (let at = 0; at === 0 || at < bytes.length; ) {
        const { end, atMostBytes } = frameAt(bytes, at, left, maxBytes)
        const part = library.decompress(bytes.subarray(at, end), atMostBytes)
        parts.push(part)
        left -= part.length
        at = end
      }
      return concat(parts)
    },
  }
}

/** By `node:zlib`, where that has it. */
export function zstdOfNode(zlib: object): ZstdLibrary | null {
  const { zstdCompressSync, zstdDecompressSync } = zlib as NodeZstd
  if (zstdCompressSync === undefined || zstdDecompressSync === undefined) return null
  return {
    compress: (bytes) => plain(zstdCompressSync(bytes)),
    // It takes no 0, and an empty frame needs none.
    decompress: (frame, atMostBytes) =>
      plain(zstdDecompressSync(frame, { maxOutputLength: Math.max(1, atMostBytes) })),
  }
}

export async function zstdOfWasm(library: WasmZstd): Promise<ZstdLibrary> {
  await library.init()
  return {
    compress: (bytes) => library.compress(bytes),
    // It makes room for the size that a frame declares, else for this much; the walk has seen both.
    decompress: (frame, atMostBytes) => library.decompress(frame, { defaultHeapSize: atMostBytes }),
  }
}

/** Where the frame at `start` ends, and what may come out of it. */
function frameAt(
  bytes: Uint8Array,
  start: number,
  left: number,
  maxBytes: number,
): { readonly end: number; readonly atMostBytes: number } {
  if (readUint32(bytes, start) !== MAGIC) throw damaged('it does not begin as a frame of Zstandard does')
  const descriptor = bytes[start + 4] ?? 0
  if ((descriptor & (RESERVED | DICTIONARY_BITS)) !== 0)
    throw damaged('a frame of Zstandard of an unknown kind')
  const single = (descriptor & SINGLE_SEGMENT) !== 0
  const sizeCode = descriptor >> 6
  const sizeFieldBytes = sizeCode === 0 ? Number(single) : 2 ** sizeCode
  let at = start + (single ? 5 : 6)
  const declared = sizeFieldBytes === 0 ? null : declaredBytes(bytes, at, sizeFieldBytes)
  const blockMax = Math.min(
    MAX_BLOCK_BYTES,
    single ? (declared as number) : windowBytes(bytes[start + 5] ?? 0),
  )
  at += sizeFieldBytes
  let most = 0
  for (let last = false; !last; ) {
    if (at + BLOCK_HEADER_BYTES > bytes.length) throw damaged('a frame is cut short')
    const header =
      (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16)
    last = (header & 1) === 1
    const kind = (header >> 1) & 3
    const length = header >> 3
    if (kind > COMPRESSED || length > MAX_BLOCK_BYTES) throw damaged('a block that cannot be')
    most += kind === COMPRESSED ? blockMax : length
    at += BLOCK_HEADER_BYTES + (kind === REPEATED ? 1 : length)
  }
  if (descriptor & CHECKSUM) at += 4
  if (at > bytes.length) throw damaged('a frame is cut short')
  if (declared !== null && declared > most) throw damaged(`blocks of ${most} bytes do not hold ${declared}`)
  if (declared !== null && declared > left) throw tooLarge(maxBytes)
  return { end: at, atMostBytes: Math.min(declared ?? most, left) }
}

function declaredBytes(bytes: Uint8Array, at: number, fieldBytes: number): number {
  if (at + fieldBytes > bytes.length) throw damaged('a frame is cut short')
  if (fieldBytes === 1) return bytes[at] as number
  if (fieldBytes === 2) return (bytes[at] as number) + (bytes[at + 1] as number) * 256 + 256
  return readUint32(bytes, at) + (fieldBytes === 8 ? readUint32(bytes, at + 4) * 2 ** 32 : 0)
}

/** What a frame may look back to: a power of two, and eighths of it. */
function windowBytes(code: number): number {
  return 2 ** (10 + (code >> 3)) * (1 + (code & 7) / 8)
}
