import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ByteReader,
  varintSize,
  varlongSize,
  writeVarint,
  writeVarlong,
} from '../../../src/log/format/varint.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { bytesOf, codeOf } from './helpers.ts'

type Write = (out: Uint8Array, at: number, value: number) => number

function written(write: Write, value: number): Uint8Array {
  const out = new Uint8Array(12)
  return out.subarray(1, write(out, 1, value))
}

function reader(bytes: Uint8Array): ByteReader {
  return new ByteReader(bytes, 0, bytes.length)
}

/** Zigzag by the book, in 64 bits. */
function zigzag(value: number): number[] {
  const big = BigInt(value)
  let rest = BigInt.asUintN(64, (big << 1n) ^ (big >> 63n))
  const bytes: number[] = []
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return [...bytes, Number(rest)]
}

const int32 = fc.oneof(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.integer({ min: -300, max: 300 }))
const safe = fc.oneof(fc.maxSafeInteger(), int32, edges())

function edges(): fc.Arbitrary<number> {
  const powers = fc.integer({ min: 0, max: 53 }).map((bits) => 2 ** bits)
  return fc
    .tuple(powers, fc.integer({ min: -2, max: 2 }), fc.constantFrom(1, -1))
    .map(([power, off, sign]) => sign * Math.min(power + off, Number.MAX_SAFE_INTEGER) + 0)
}

describe('varints', () => {
  it.each([
    [0, '00'],
    [-1, '01'],
    [1, '02'],
    [63, '7e'],
    [64, '8001'],
    [-64, '7f'],
    [-65, '8101'],
    [2 ** 31 - 1, 'feffffff0f'],
    [-(2 ** 31), 'ffffffff0f'],
  ])('%d is %s', (value, hex) => {
    expect(written(writeVarint, value)).toEqual(bytesOf(hex))
    expect(written(writeVarlong, value)).toEqual(bytesOf(hex))
    expect(reader(bytesOf(hex)).varint()).toBe(value)
  })

  it('come back, take the size that was foretold, and are zigzag', () => {
    fc.assert(
      fc.property(int32, (value) => {
        const bytes = written(writeVarint, value)
        expect([...bytes]).toEqual(zigzag(value))
        expect(varintSize(value)).toBe(bytes.length)
        expect(reader(bytes).varint()).toBe(value)
      }),
    )
  })

  it('may be written longer than needed, as long as they have 32 bits', () => {
    expect(reader(bytesOf('8080808000')).varint()).toBe(0)
    expect(codeOf(() => reader(bytesOf('808080808000')).varint())).toBe('CORRUPT_LOG')
    expect(codeOf(() => reader(bytesOf('ffffffff1f')).varint())).toBe('CORRUPT_LOG')
  })
})

describe('varlongs', () => {
  it('come back for every safe integer, take the size that was foretold, and are zigzag', () => {
    fc.assert(
      fc.property(safe, (value) => {
        const bytes = written(writeVarlong, value)
        expect([...bytes]).toEqual(zigzag(value))
        expect(varlongSize(value)).toBe(bytes.length)
        expect(reader(bytes).varlong()).toBe(value)
      }),
      { numRuns: 500 },
    )
  })

  it('may be written longer than needed, as long as they have 64 bits', () => {
    expect(reader(bytesOf('80808080808080808000')).varlong()).toBe(0)
    expect(reader(bytesOf('81808080808080808000')).varlong()).toBe(-1)
    expect(codeOf(() => reader(bytesOf('8080808080808080808000')).varlong())).toBe('CORRUPT_LOG')
  })

  it.each([
    ['2^53', '8080808080808020'],
    ['the largest of 64 bits', 'feffffffffffffffff01'],
    ['the smallest of 64 bits', 'ffffffffffffffffff01'],
  ])('are refused where a number could not hold them: %s', (_, hex) => {
    expect(() => reader(bytesOf(hex)).varlong()).toThrow(/2\^53/)
  })
})

describe('a byte reader', () => {
  it('refuses to read beyond its end, wherever the bytes go on', () => {
    const bytes = bytesOf('ffffffff0f')
    for (let end = 0; end < bytes.length; end++) {
      expect(codeOf(() => new ByteReader(bytes, 0, end).varint())).toBe('CORRUPT_LOG')
      expect(codeOf(() => new ByteReader(bytes, 0, end).varlong())).toBe('CORRUPT_LOG')
      expect(codeOf(() => new ByteReader(bytes, 0, end).skip(end + 1))).toBe('CORRUPT_LOG')
    }
  })

  it('never answers but an integer or an OdradekError, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), fc.boolean(), (bytes, long) => {
        try {
          const value = long ? reader(bytes).varlong() : reader(bytes).varint()
          expect(Number.isInteger(value)).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(OdradekError)
        }
      }),
    )
  })

  it('skips to where the next field begins', () => {
    const input = reader(bytesOf('0102030405'))
    expect(input.skip(2)).toBe(0)
    expect(input.byte()).toBe(3)
    expect(input.skip(2)).toBe(3)
    expect(input.skip(0)).toBe(5)
  })
})
