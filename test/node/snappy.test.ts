import { describe, expect, it } from 'vitest'
import { compressionWith } from '../../src/node/compression.ts'
import type { SnappyLibrary } from '../../src/node/snappy.ts'
import { snappyCodec } from '../../src/node/snappy.ts'
import { codeOf, hexOf } from '../log/format/helpers.ts'
import { concat, expectBytes, noise, text, torment } from './codec-kit.ts'

const library = (await import('snappy')) as SnappyLibrary
const codec = snappyCodec(library)
const raw = (bytes: Uint8Array) => new Uint8Array(library.compressSync(bytes, { copyOutputData: true }))
const MAGIC = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1)

/** A frame of blocks, each behind its length. */
function frame(...blocks: readonly Uint8Array[]): Uint8Array {
  return concat(MAGIC, ...blocks.flatMap((block) => [length(block.length), block]))
}

function length(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setInt32(0, value)
  return bytes
}

/** Would inflate; the test is that nobody asks. */
const never: SnappyLibrary = {
  compressSync: library.compressSync,
  uncompressSync: () => {
    throw new Error('asked to inflate')
  },
}

describe('snappy', () => {
  it('is written as the Java client frames it, in blocks of 32 KiB', () => {
    const packed = codec.compress(noise(70_000))
    expect(hexOf(packed.subarray(0, 16))).toBe(hexOf(MAGIC))
    expect(packed).toEqual(
      frame(...[0, 32_768, 65_536].map((at) => raw(noise(70_000).subarray(at, at + 32_768)))),
    )
    expect(hexOf(codec.compress(new Uint8Array(0)))).toBe(hexOf(MAGIC))
  })

  it('is read framed, in blocks of any size', () => {
    const bytes = text(5000)
    const parts = [0, 1, 17, 2000, 4999, 5000].map((at, i, all) =>
      raw(bytes.subarray(at, all[i + 1] ?? 5000)),
    )
    expectBytes(codec.decompress(frame(...parts), 5000), bytes)
    expectBytes(codec.decompress(frame(raw(bytes)), 5000), bytes)
    expect(codec.decompress(frame(), 0)).toEqual(new Uint8Array(0))
  })

  it('is read bare, as librdkafka and KafkaJS write it', () => {
    for (const size of [0, 1, 15, 16, 100_000]) {
      expectBytes(codec.decompress(raw(text(size)), 100_000), text(size))
    }
  })

  it.each([
    ['bare', (block: Uint8Array) => block],
    ['framed', (block: Uint8Array) => frame(raw(text(10)), block)],
  ])('is not inflated where it says that it is too large: %s', (_, make) => {
    const honest = make(raw(text(1000)))
    expect(() => snappyCodec(never).decompress(honest, 1010)).toThrow('asked to inflate')
    expect(codeOf(() => snappyCodec(never).decompress(honest, 999))).toBe('CORRUPT_LOG')
  })

  it.each([
    ['more than so few bytes can make', Uint8Array.of(0x80, 0x80, 0x80, 0x40, 0, 0)],
    ['more than 32 bits', Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0)],
    ['a length without end', Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff)],
    ['half a length', Uint8Array.of(0xff)],
    ['nothing', new Uint8Array(0)],
  ])('is not inflated where it says %s', (_, block) => {
    expect(codeOf(() => snappyCodec(never).decompress(block, 2 ** 40))).toBe('CORRUPT_LOG')
    expect(codeOf(() => snappyCodec(never).decompress(frame(block), 2 ** 40))).toBe('CORRUPT_LOG')
  })

  it('expands by copies as far as its elements can, and that passes', () => {
    const bytes = new Uint8Array(1_000_000)
    expectBytes(codec.decompress(raw(bytes), bytes.length), bytes)
  })

  it.each([
    ['a block that ends behind it', concat(MAGIC, length(100), raw(text(10)))],
    ['a block of negative length', concat(MAGIC, length(-1))],
    ['half a length', concat(MAGIC, Uint8Array.of(0, 0))],
  ])('is refused as a frame with %s', (_, bytes) => {
    expect(codeOf(() => codec.decompress(bytes, 1000))).toBe('CORRUPT_LOG')
  })

  it('survives whatever it is given, bare too', async () => {
    const port = await compressionWith()
    torment((bytes, maxBytes) => port.decompress(2, bytes, maxBytes), raw(text(100)))
  })
})
