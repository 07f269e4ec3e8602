/** What the codecs share: their shape, and what they answer. */
import { OdradekError } from '../model/errors.ts'

/** One way to compress. Whatever `decompress` throws, its input is to blame. */
export interface Codec {
  compress(bytes: Uint8Array): Uint8Array
  /** Makes nothing larger than `maxBytes`: what would be is known before room is made for it. */
  decompress(bytes: Uint8Array, maxBytes: number): Uint8Array
}

export function damaged(what: string): OdradekError {
  return new OdradekError('CORRUPT_LOG', what)
}

export function tooLarge(maxBytes: number): OdradekError {
  return damaged(`more comes out of it than the ${maxBytes} bytes that may`)
}

/**
 * A library's buffer as plain bytes. Records keep views of them, so they are copied out of a buffer that is
 * more than twice as large.
 */
export function plain(bytes: Uint8Array): Uint8Array {
  const { buffer, byteOffset, length } = bytes
  const view = new Uint8Array(buffer, byteOffset, length)
  return buffer.byteLength > 2 * length ? view.slice() : view
}

/** Little-endian, as in the frames of LZ4 and Zstandard. */
export function readUint32(bytes: Uint8Array, at: number): number {
  if (at + 4 > bytes.length) throw damaged('it is cut short')
  const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
  return (low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)) >>> 0
}
