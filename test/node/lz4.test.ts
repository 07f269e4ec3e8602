import { describe, expect, it } from 'vitest'
import { compressionWith } from '../../src/node/compression.ts'
import type { Lz4Library } from '../../src/node/lz4.ts'
import { lz4Codec } from '../../src/node/lz4.ts'
import { bytesOf, codeOf, hexOf } from '../log/format/helpers.ts'
import { concat, contentOf, expectBytes, framesOf, noise, text, torment } from './codec-kit.ts'

const library = (await import('lz4-napi')) as Lz4Library
const codec = lz4Codec(library)
const port = await compressionWith()
const decompress = (bytes: Uint8Array, maxBytes: number) => port.decompress(3, bytes, maxBytes)

const never: Lz4Library = {
  compressFrameSync: library.compressFrameSync,
  decompressFrameSync: () => {
    throw new Error('asked to inflate')
  },
}

/** Magic, flags, block maximum of 64 KiB and their checksum: independent blocks, nothing else. */
const HEADER = '04224d18604082'
const END = '00000000'

/** A frame of one block: its length and content in hexadecimal. */
function frameOf(block: string): Uint8Array {
  const length = new Uint8Array(4)
  new DataView(length.buffer).setUint32(0, block.length / 2, true)
  return bytesOf(HEADER + hexOf(length) + block + END)
}

describe('lz4', () => {
  it('is written as a frame of independent blocks, its header checksum right', () => {
    expect(hexOf(codec.compress(text(100)).subarray(0, 7))).toBe(HEADER)
    expect(hexOf(codec.compress(new Uint8Array(0)))).toBe(HEADER + END)
  })

  it.each(framesOf('lz4'))('is read as others write it: $name', (frame) => {
    expectBytes(decompress(bytesOf(frame.bytes), frame.size), contentOf(frame))
  })

  it.each(framesOf('lz4').filter(({ size }) => size > 0))(
    'is measured before it is inflated: $name',
    (frame) => {
      const bytes = bytesOf(frame.bytes)
      expect(() => lz4Codec(never).decompress(bytes, frame.size)).toThrow('asked to inflate')
      expect(codeOf(() => lz4Codec(never).decompress(bytes, frame.size - 1))).toBe('CORRUPT_LOG')
    },
  )

  it('is measured as its lengths say, however long', () => {
    // Literals of 15 and more, matches of 19 and more, each in one byte, in two, in three.
    for (const literals of [0, 14, 15, 16, 269, 270, 271, 524, 525]) {
      for (const repeats of [4, 18, 19, 20, 273, 274, 275, 600]) {
        const bytes = concat(noise(literals + 8), new Uint8Array(repeats), noise(literals + 13))
        const packed = codec.compress(bytes)
        expectBytes(codec.decompress(packed, bytes.length), bytes)
        expect(codeOf(() => lz4Codec(never).decompress(packed, bytes.length - 1))).toBe('CORRUPT_LOG')
      }
    }
  })

  it.each([
    ['no frame', '00'.repeat(20)],
    ['the older format', `02214c18${'00'.repeat(16)}`],
    ['another version', `04224d18a04082${END}`],
    ['a dictionary', `04224d1861400000000082${END}`],
    ['blocks of an unknown size', `04224d18603082${END}`],
    ['no end', HEADER],
    ['half an end', `${HEADER}0000`],
    ['something behind its end', `${HEADER}${END}00`],
    ['a block longer than the frame', `${HEADER}ff00000011${END}`],
    ['literals whose length is not there', `${HEADER}02000000f0ff`],
    ['a match whose length is not there', `${HEADER}040000001f610100`],
    ['a stored block longer than a block may be', `${HEADER}01000180${'00'.repeat(65_537)}${END}`],
  ])('is refused before it is inflated: %s', (_, hex) => {
    expect(codeOf(() => lz4Codec(never).decompress(bytesOf(hex), 1_000_000))).toBe('CORRUPT_LOG')
  })

  it.each([
    ['literals behind the end of the block', '50616263'],
    ['half an offset', '106101'],
    ['a length without end', 'f0ffffff'],
    ['a match length without end', '1f610100ffff'],
    ['more than a block may hold', `1f610100${'ff'.repeat(300)}00`],
  ])('is refused before it is inflated, as a block with %s', (_, block) => {
    expect(codeOf(() => lz4Codec(never).decompress(frameOf(block), 1_000_000))).toBe('CORRUPT_LOG')
  })

  it('is refused where less comes out than its sequences say', () => {
    const short: Lz4Library = { ...never, decompressFrameSync: () => new Uint8Array(3) }
    expect(codeOf(() => lz4Codec(short).decompress(codec.compress(text(9)), 100))).toBe('CORRUPT_LOG')
  })

  it('is refused with a wrong header checksum', () => {
    const bytes = codec.compress(text(100))
    bytes[6] = (bytes[6] as number) ^ 1
    expect(codeOf(() => decompress(bytes, 100))).toBe('CORRUPT_LOG')
  })

  it.each(framesOf('lz4').filter(({ bytes }) => bytes.length < 1000))(
    'survives whatever it is given: $name',
    ({ bytes }) => torment(decompress, bytesOf(bytes)),
  )
})
