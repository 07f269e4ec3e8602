import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { WasmZstd, ZstdLibrary } from '../../src/node/zstd.ts'
import { zstdCodec, zstdOfNode, zstdOfWasm } from '../../src/node/zstd.ts'
import { bytesOf, codeOf } from '../log/format/helpers.ts'
import { concat, contentOf, expectBytes, framesOf, text } from './codec-kit.ts'

const wasm = await zstdOfWasm((await import('@bokuweb/zstd-wasm')) as WasmZstd)
const node = zstdOfNode(zlib)
const libraries = [
  { by: 'the package', library: wasm },
  ...(node === null ? [] : [{ by: 'Node', library: node }]),
]

/** Notes what it is allowed, and answers as much as it should. */
function noting(): ZstdLibrary & { readonly allowed: number[] } {
  const allowed: number[] = []
  return {
    allowed,
    compress: wasm.compress,
    decompress(frame, atMostBytes) {
      allowed.push(atMostBytes)
      return wasm.decompress(frame, atMostBytes)
    },
  }
}

/** A frame in hexadecimal: its window of 1 KiB or more, no size, no checksum. */
const frame = (blocks: string, window = '00') => bytesOf(`28b52ffd00${window}${blocks}`)

describe.each(libraries)('zstd by $by', ({ library }) => {
  const codec = zstdCodec(library)

  it.each(framesOf('zstd'))('is read as others write it: $name', (each) => {
    expectBytes(codec.decompress(bytesOf(each.bytes), each.size), contentOf(each))
  })

  it.each(framesOf('zstd').filter(({ size }) => size > 0))(
    'is stopped where it grows too large: $name',
    (each) => {
      expect(() => codec.decompress(bytesOf(each.bytes), each.size - 1)).toThrow()
    },
  )

  it('repeats a byte as often as a block says', () => {
    expectBytes(codec.decompress(frame('23000041'), 4), bytesOf('41414141'))
  })

  it('is refused with another checksum', () => {
    const hex = framesOf('zstd').find(({ name }) => name === 'a checksum')?.bytes as string
    const bytes = bytesOf(hex)
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
    expect(() => codec.decompress(bytes, 150_000)).toThrow()
  })

  it('is the same by whoever wrote it', () => {
    for (const { library: other } of libraries) {
      expectBytes(codec.decompress(zstdCodec(other).compress(text(9000)), 9000), text(9000))
    }
  })
})

describe('zstd', () => {
  it('is not inflated where it declares more than is allowed', () => {
    for (const { bytes, size, name } of framesOf('zstd').filter(({ name }) => name.startsWith('size in'))) {
      const library = noting()
      expect(codeOf(() => zstdCodec(library).decompress(bytesOf(bytes), size - 1))).toBe('CORRUPT_LOG')
      zstdCodec(library).decompress(bytesOf(bytes), 1_000_000)
      expect([name, library.allowed]).toEqual([name, [size]])
    }
  })

  it('is given room for its blocks, where it declares nothing, and for no more than is allowed', () => {
    const { bytes, size } = framesOf('zstd').find(({ name }) => name === 'no size') as {
      bytes: string
      size: number
    }
    const library = noting()
    zstdCodec(library).decompress(bytesOf(bytes), 1_000_000)
    expect(library.allowed[0]).toBe(2 * 128 * 1024)
    zstdCodec(library).decompress(bytesOf(bytes), size)
    expect(library.allowed[1]).toBe(size)
  })

  it('is given what the frames before it left', () => {
    const two = concat(wasm.compress(text(100)), wasm.compress(text(50)))
    const library = noting()
    expectBytes(zstdCodec(library).decompress(two, 150), concat(text(100), text(50)))
    expect(library.allowed).toEqual([100, 50])
    expect(codeOf(() => zstdCodec(library).decompress(two, 149))).toBe('CORRUPT_LOG')
  })

  it.each([
    ['no frame', bytesOf('00'.repeat(20))],
    ['nothing', new Uint8Array(0)],
    ['a dictionary', bytesOf('28b52ffd01000001000000')],
    ['a reserved bit', bytesOf('28b52ffd0800010000')],
    ['a reserved kind of block', frame('070000')],
    ['a block longer than blocks may be', frame('0d0010')],
    ['half a block header', frame('0100')],
    ['a block longer than the frame', frame('29000041')],
    ['no last block', frame('000000')],
    ['half a checksum', bytesOf('28b52ffd04000100004141')],
    ['half a size', bytesOf('28b52ffdc0ff00')],
    ['a size of four bytes that is not there', bytesOf('28b52ffda0')],
    ['a larger size than its blocks can have', bytesOf('28b52ffda000000100010000')],
    ['a size beyond all memory', bytesOf('28b52ffde0ffffffffffffff7f010000')],
  ])('is refused before it is inflated: %s', (_, bytes) => {
    const library = noting()
    expect(codeOf(() => zstdCodec(library).decompress(bytes, 1_000_000))).toBe('CORRUPT_LOG')
    expect(library.allowed).toEqual([])
  })

  it('is refused with anything behind it but another frame', () => {
    const bytes = concat(wasm.compress(text(9)), bytesOf('00'))
    expect(codeOf(() => zstdCodec(wasm).decompress(bytes, 100))).toBe('CORRUPT_LOG')
  })

  it('that repeats one byte without end is given no more room than is allowed', () => {
    // A thousand blocks of four bytes, each 128 KiB.
    const bomb = frame('02001000', '50').slice(0, 6)
    const blocks = concat(
      ...Array.from({ length: 1000 }, (_, i) => bytesOf(`${i === 999 ? '03' : '02'}001000`)),
    )
    const library = noting()
    expect(() => zstdCodec(library).decompress(concat(bomb, blocks), 300_000)).toThrow()
    expect(library.allowed).toEqual([300_000])
  })

  it("is not Node's where Node has none", () => {
    expect(zstdOfNode({})).toBeNull()
    expect(zstdOfNode({ zstdCompressSync: () => new Uint8Array(0) })).toBeNull()
  })

  it("is Node's where Node has it, which is never asked for room of nothing", () => {
    const asked: number[] = []
    const library = zstdOfNode({
      zstdCompressSync: (bytes: Uint8Array) => bytes,
      zstdDecompressSync: (_: Uint8Array, { maxOutputLength }: { maxOutputLength: number }) => {
        asked.push(maxOutputLength)
        return new Uint8Array(0)
      },
    })
    library?.decompress(new Uint8Array(9), 0)
    library?.decompress(new Uint8Array(9), 7)
    expect(asked).toEqual([1, 7])
    expect(library?.compress(text(3))).toEqual(text(3))
  })
})
