import { describe, expect, it } from 'vitest'
import { WireReader } from '../../src/wire/reader.ts'
import {
  array,
  boolean,
  bytes,
  float64,
  int8,
  int32,
  int64,
  string,
  struct,
  uint16,
  uint32,
} from '../../src/wire/schema.ts'
import { ArrayType, STRING } from '../../src/wire/types.ts'
import { bytesOf, InVersion, refusal } from './kit.ts'

const FLEXIBLE = { flexible: true }

describe('a string', () => {
  const plain = new InVersion({ s: string })
  const compact = new InVersion({ s: string }, FLEXIBLE)

  it.each(['', 'topic', 'straße', '名前', '𐍈', 'a name that is longer than what is read by hand'])(
    'is "%s" in both forms',
    (s) => {
      expect(plain.read(plain.write({ s }))).toEqual({ s })
      expect(compact.read(compact.write({ s }))).toEqual({ s })
    },
  )

  it('has its length in bytes, not in characters', () => {
    expect(plain.write({ s: 'é𐍈' })).toBe('0006c3a9f0908d88')
    expect(compact.write({ s: 'é𐍈' })).toBe('07c3a9f0908d8800')
  })

  it('is U+FFFD where a surrogate stands alone', () => {
    expect(plain.read(plain.write({ s: 'a\u{d800}b' }))).toEqual({ s: 'a\u{fffd}b' })
  })

  it('has at most 32,767 bytes, in both forms', () => {
    const longest = 'x'.repeat(32_767)
    expect(plain.read(plain.write({ s: longest }))).toEqual({ s: longest })
    expect(compact.read(compact.write({ s: longest }))).toEqual({ s: longest })
    expect(() => plain.write({ s: `${longest}x` })).toThrow('at most 32,767')
    expect(() => compact.write({ s: `${longest}x` })).toThrow('at most 32,767')
    expect(refusal(() => compact.read(`818002${'78'.repeat(32_768)}00`))).toContain('a string of 32768 bytes')
  })
})

describe('null', () => {
  const fields = { s: string.nullable(), b: bytes.nullable(), a: array(int8).nullable() }
  const nothing = { s: null, b: null, a: null }

  it('is −1 before, and 0 in flexible versions', () => {
    expect(new InVersion(fields).write(nothing)).toBe('ffffffffffffffffffff')
    expect(new InVersion(fields, FLEXIBLE).write(nothing)).toBe('00000000')
  })

  it('is told from what is empty', () => {
    const empty = { s: '', b: new Uint8Array(0), a: [] }
    for (const each of [new InVersion(fields), new InVersion(fields, FLEXIBLE)]) {
      expect(each.read(each.write(nothing))).toEqual(nothing)
      expect(each.read(each.write(empty))).toEqual(empty)
    }
  })

  it.each([
    ['string', { f: string }, 'ffff', '00'],
    ['bytes', { f: bytes }, 'ffffffff', '00'],
    ['array', { f: array(int8) }, 'ffffffff', '00'],
  ])('is refused in a %s that must not be null, and not written', (_, of, before, compact) => {
    expect(refusal(() => new InVersion(of).read(before))).toContain('null where it must not be')
    expect(refusal(() => new InVersion(of, FLEXIBLE).read(`${compact}00`))).toContain(
      'null where it must not be',
    )
    expect(() => new InVersion(of).write({ f: null })).toThrow('null is not allowed')
  })

  it('is the one negative length', () => {
    expect(refusal(() => new InVersion(fields).read('fffe'))).toContain('a length of -2')
    expect(refusal(() => new InVersion({ b: bytes.nullable() }).read('80000000'))).toContain(
      'a length of -2147483648',
    )
    expect(refusal(() => new InVersion({ a: array(int8).nullable() }).read('fffffffe'))).toContain(
      'a length of -2',
    )
  })

  it('is a byte in front of a struct, and 1 where there is one', () => {
    const each = new InVersion({ s: struct({ n: int8 }).nullable() }, FLEXIBLE)
    expect(each.write({ s: null })).toBe('ff00')
    expect(each.write({ s: { n: 5 } })).toBe('01050000')
    expect(each.read('ff00')).toEqual({ s: null })
    expect(each.read('01050000')).toEqual({ s: { n: 5 } })
  })
})

describe('bytes', () => {
  it('of no length are empty, never null: the records of a Fetch without any', () => {
    const before = new InVersion({ records: bytes.nullable() })
    const compact = new InVersion({ records: bytes.nullable() }, FLEXIBLE)
    const records = new Uint8Array(0)
    expect(before.write({ records })).toBe('00000000')
    expect(compact.write({ records })).toBe('0100')
    expect(compact.read('0100').records).toEqual(records)
  })

  it('are views of the frame', () => {
    const frame = bytesOf('00000002 0102')
    const { b } = new InVersion({ b: bytes }).readFrom(new WireReader(frame))
    expect(b.buffer).toBe(frame.buffer)
  })
})

describe('an array', () => {
  it('is refused where there is no room for so many of the smallest items, before one is read', () => {
    const each = new InVersion({ a: array({ x: int32, y: string }) })
    const from = new WireReader(bytesOf(`00000004${'00'.repeat(23)}`))
    expect(refusal(() => each.readFrom(from))).toContain('no room for 4 items in 23 bytes')
    expect(from.at).toBe(4)
    expect(each.read(`00000004${'00'.repeat(24)}`).a).toHaveLength(4)
  })

  it('of 2^31 − 1 items is refused at once, in both forms', () => {
    const fields = { a: array(int8) }
    expect(refusal(() => new InVersion(fields).read('7fffffff00'))).toContain('no room')
    expect(refusal(() => new InVersion(fields, FLEXIBLE).read('ffffffff0f00'))).toContain('no room')
  })

  it('cannot have items that take no room', () => {
    const item = { empty: 0, codec: () => ({ minBytes: 0, read: () => 0, write: () => {} }) }
    expect(() => new ArrayType(item).codec({ version: 0, flexible: false, nullable: false })).toThrow(
      'an item takes room',
    )
  })

  it('counts what the smallest item takes in the version that is read', () => {
    const fields = { a: array({ old: int64.until(0), s: string, t: int8.since(1) }) }
    expect(new InVersion(fields, { version: 0 }).read(`00000001${'00'.repeat(10)}`).a).toHaveLength(1)
    expect(new InVersion(fields, { version: 1 }).read('00000001000000').a).toHaveLength(1)
    expect(new InVersion(fields, { version: 1, flexible: true }).read('0201000000').a).toHaveLength(1)
  })
})

it('numbers without a sign and floats go both ways', () => {
  const each = new InVersion({ a: uint16, b: uint32, c: float64, d: boolean })
  const value = { a: 65_535, b: 2 ** 32 - 1, c: -0.1, d: true }
  expect(each.read(each.write(value))).toEqual(value)
})

it('a codec of a type has the smallest size in its form', () => {
  expect(STRING.codec({ version: 0, flexible: false, nullable: false }).minBytes).toBe(2)
  expect(STRING.codec({ version: 0, flexible: true, nullable: false }).minBytes).toBe(1)
})
