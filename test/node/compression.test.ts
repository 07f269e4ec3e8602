import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { codecsReady, compressionName, noCompression } from '../../src/log/format/compression.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { HEADER_BYTES } from '../../src/log/format/layout.ts'
import { decodeBatch, encodeBatch, validateBatch } from '../../src/log/format/record-batch.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { defaultCodec } from '../../src/model/value-codec.ts'
import { compressionWith, lazyCompression } from '../../src/node/compression.ts'
import { loadPackage } from '../../src/node/packages.ts'
import { zstdOfNode } from '../../src/node/zstd.ts'
import { codeOf, columnsOf, rowsOf } from '../log/format/helpers.ts'
import { contents, expectBytes, noise, text, torment } from './codec-kit.ts'

const port = await compressionWith()
const MiB = 1024 * 1024
const types = [1, 2, 3, 4].map((type) => ({ type, name: compressionName(type) }))
const SHARED = { transactional: false, id: -1, epoch: -1, sequence: -1 }

describe.each(types)('$name', ({ type }) => {
  it('gives back what went in', () => {
    fc.assert(
      fc.property(contents, (bytes) => {
        expectBytes(port.decompress(type, port.compress(type, bytes), MiB), bytes)
      }),
    )
  })

  it.each([0, 1, 32_768, 32_769, 65_536, 200_000, 3 * MiB])(
    'gives back %d bytes that repeat, and that do not',
    (size) => {
      for (const bytes of [text(size), noise(size), new Uint8Array(size)]) {
        const back = port.decompress(type, port.compress(type, bytes), 4 * MiB)
        expect([back.length, crc32c(back)]).toEqual([size, crc32c(bytes)])
      }
    },
  )

  it('makes what repeats itself smaller', () => {
    expect(port.compress(type, text(50_000)).length).toBeLessThan(5_000)
  })

  it('gives plain bytes, in memory of their own, and of their size', () => {
    for (const bytes of [text(100), text(100_000), noise(40_000)]) {
      const packed = port.compress(type, bytes)
      const back = port.decompress(type, packed, MiB)
      for (const made of [packed, back]) {
        expect(Object.getPrototypeOf(made)).toBe(Uint8Array.prototype)
        expect(made.buffer.byteLength).toBeLessThanOrEqual(2 * made.length)
      }
      packed.fill(0)
      expectBytes(back, bytes)
    }
  })

  it('stops at the size that is allowed', () => {
    for (const bytes of [text(1000), noise(1000), text(100_000), noise(100_000)]) {
      const packed = port.compress(type, bytes)
      expect(port.decompress(type, packed, bytes.length).length).toBe(bytes.length)
      for (const less of [bytes.length - 1, bytes.length >> 1, 1]) {
        expect(codeOf(() => port.decompress(type, packed, less))).toBe('CORRUPT_LOG')
      }
    }
  })

  it('makes no room for what a small input would grow to', () => {
    const bomb = port.compress(type, new Uint8Array(64 * MiB))
    const before = process.memoryUsage()
    for (let i = 0; i < 20; i++) expect(codeOf(() => port.decompress(type, bomb, 1000))).toBe('CORRUPT_LOG')
    const after = process.memoryUsage()
    expect(after.arrayBuffers + after.external - before.arrayBuffers - before.external).toBeLessThan(16 * MiB)
  })

  it('survives whatever it is given, and refuses what is cut', () => {
    const decompress = (bytes: Uint8Array, maxBytes: number) => port.decompress(type, bytes, maxBytes)
    // A frame of snappy does not say how many blocks it has: none is as good.
    const wholeAt = type === 2 ? 16 : -1
    for (const bytes of [text(150), noise(40)]) torment(decompress, port.compress(type, bytes), wholeAt)
  })

  it('says which compression is broken', () => {
    expect(() => port.decompress(type, Uint8Array.of(1, 2, 3), 100)).toThrow(compressionName(type))
  })
})

describe.each(types)('a batch compressed with $name', ({ type }) => {
  const compression = { type, port }

  it('holds the records of one that is not', () => {
    const record = fc.record({
      value: fc.oneof(fc.constant(null), fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'grapheme' })),
      key: fc.oneof(fc.constant(null), fc.string({ unit: 'grapheme' })),
      timestamp: fc.integer({ min: 0, max: 2 ** 42 }),
      headers: fc.array(fc.tuple(fc.string(), fc.oneof(fc.constant(null), fc.string())), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(
        fc.array(record, { minLength: 1, maxLength: 20 }),
        fc.boolean(),
        (records, transactional) => {
          const rows = columnsOf(records.map((each, i) => ({ ...each, offset: 50 + i })))
          const producer = { id: 7, epoch: 1, sequence: 3, transactional }
          const options = { baseOffset: 50, leaderEpoch: 2, producer }
          const batch = encodeBatch(rows, 0, rows.count, defaultCodec, { ...options, compression })
          const plain = encodeBatch(rows, 0, rows.count, defaultCodec, options)
          const { crc, sizeBytes, ...header } = validateBatch(plain, 0, crc32c)
          const attributes = header.attributes | type
          expect(validateBatch(batch, 0, crc32c)).toMatchObject({ ...header, attributes, compression: type })
          expect(rowsOf(decodeBatch(batch, 0, defaultCodec, port))).toEqual(
            rowsOf(decodeBatch(plain, 0, defaultCodec, port)),
          )
        },
      ),
    )
  })

  it('is rows or an OdradekError with any byte of its records changed, though its CRC holds', () => {
    const rows = columnsOf([
      { offset: 0, timestamp: 5, key: 'key', value: 'value', headers: [['h', 'x']] },
      { offset: 1, timestamp: 9, key: null, value: text(60), headers: [] },
    ])
    const options = { baseOffset: 0, leaderEpoch: 0, producer: SHARED, compression }
    const good = encodeBatch(rows, 0, 2, defaultCodec, options)
    for (let at = HEADER_BYTES; at < good.length; at++) {
      for (const flip of [1, 0x10, 0x80, 0xff]) {
        const bytes = good.slice()
        bytes[at] = (bytes[at] as number) ^ flip
        try {
          expect(decodeBatch(bytes, 0, defaultCodec, port, () => 'bad').count).toBe(2)
        } catch (error) {
          if (!(error instanceof OdradekError)) throw error
        }
      }
    }
  })
})

describe('the codecs', () => {
  it('are looked for when somebody waits for them, and once', async () => {
    const lazy = lazyCompression()
    expect(lazyCompression()).toBe(lazy)
    const packed = port.compress(2, text(10))
    expect(codeOf(() => lazy.decompress(2, packed, 100))).toBe('UNSUPPORTED')
    const looking = lazy.ready?.(2)
    expect(looking).toBeInstanceOf(Promise)
    expect(lazy.ready?.(2)).toBe(looking)
    await looking
    expect(lazy.ready?.(2)).toBeUndefined()
    expectBytes(lazy.decompress(2, packed, 100), text(10))
    expect(() => lazy.compress(3, text(10))).toThrow('not loaded yet')
  })

  it('that are part of Node, or unknown, are ready at once', () => {
    const lazy = lazyCompression()
    expect([lazy.ready?.(1), lazy.ready?.(5)]).toEqual([undefined, undefined])
    expectBytes(lazy.decompress(1, lazy.compress(1, text(10)), 100), text(10))
  })

  it('of several batches are waited for together', async () => {
    const asked: number[] = []
    const wait = Promise.resolve()
    const ready = (type: number): Promise<void> | undefined => {
      asked.push(type)
      return type === 3 ? undefined : wait
    }
    const lazy = { ...noCompression, ready }
    expect(codecsReady(lazy, 0)).toBeUndefined()
    expect(codecsReady(lazy, 1)).toBeUndefined()
    expect(codecsReady(lazy, 0b1001)).toBeUndefined()
    expect(codecsReady(noCompression, 0b11111)).toBeUndefined()
    expect(asked).toEqual([3])
    await codecsReady(lazy, 0b11101)
    expect(asked).toEqual([3, 2, 3, 4])
  })

  it('that Kafka does not have are refused', () => {
    expect(codeOf(() => port.compress(5, new Uint8Array(1)))).toBe('UNSUPPORTED')
    expect(codeOf(() => port.decompress(7, new Uint8Array(1), 10))).toBe('UNSUPPORTED')
  })

  it('whose package is missing are refused by its name, and the others work', async () => {
    const cause = new Error('not found')
    const bare = await compressionWith(() => Promise.reject(cause))
    const needed = [
      [2, 'npm install snappy'],
      [3, 'npm install lz4-napi'],
      ...(zstdOfNode(await import('node:zlib')) === null
        ? [[4, 'npm install @bokuweb/zstd-wasm'] as const]
        : []),
    ] as const
    for (const [type, advice] of needed) {
      const packed = port.compress(type, text(10))
      for (const call of [() => bare.compress(type, text(10)), () => bare.decompress(type, packed, 100)]) {
        expect(call).toThrow(advice)
        expect(call).toThrow(expect.objectContaining({ code: 'UNSUPPORTED', cause }))
      }
    }
    expectBytes(bare.decompress(1, bare.compress(1, text(10)), 100), text(10))
  })

  it('are loaded with the packages they name and no others', async () => {
    const asked: string[] = []
    await compressionWith((name) => {
      asked.push(name)
      return loadPackage(name)
    })
    const zstd = zstdOfNode(await import('node:zlib')) === null ? ['@bokuweb/zstd-wasm'] : []
    expect(asked.sort()).toEqual([...zstd, 'lz4-napi', 'snappy'])
  })
})
