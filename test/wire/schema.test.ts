import { describe, expect, it } from 'vitest'
import { array, bytes, int8, int16, int32, string, struct } from '../../src/wire/schema.ts'
import { InVersion, refusal } from './kit.ts'

describe('a field', () => {
  const fields = { always: int8, late: int8.since(2), early: int8.until(1).or(-1) }

  it('is there in its versions, and is its fallback in others, in which it is not written', () => {
    const first = new InVersion(fields, { version: 1 })
    expect(first.write({ always: 1, late: 2, early: 3 })).toBe('0103')
    expect(first.read('0103')).toEqual({ always: 1, late: 0, early: 3 })
    const second = new InVersion(fields, { version: 2 })
    expect(second.write({ always: 1, late: 2, early: 3 })).toBe('0102')
    expect(second.read('0102')).toEqual({ always: 1, late: 2, early: -1 })
  })

  it('has the same place in what is read, whatever the version', () => {
    const names = (version: number, hex: string): string[] =>
      Object.keys(new InVersion(fields, { version }).read(hex))
    expect(names(1, '0103')).toEqual(names(2, '0102'))
  })

  it('is written as its fallback where nothing is given', () => {
    expect(new InVersion({ n: int16.or(7), s: string.nullable(), t: string.or('x') }).write({})).toBe(
      '0007ffff000178',
    )
  })

  it('may be null from a version on; before, what is empty is written where nothing is given', () => {
    const nullable = { s: string.nullable(3), a: array(int8).nullable(3) }
    expect(new InVersion(nullable, { version: 3 }).write({})).toBe('ffffffffffff')
    expect(new InVersion(nullable, { version: 2 }).write({})).toBe('000000000000')
    expect(() => new InVersion(nullable, { version: 2 }).write({ s: null, a: [] })).toThrow(
      'null is not allowed',
    )
    expect(refusal(() => new InVersion(nullable, { version: 2 }).read('ffff'))).toContain('null where')
  })
})

describe('tagged fields', () => {
  const fields = {
    n: int8,
    second: int32.or(-1).tagged(1, 2),
    first: string.nullable().tagged(0, 1),
    leader: struct({ id: int32.or(-1), epoch: int32.or(-1) }).tagged(2, 2),
    list: array(int8).tagged(3, 2),
    raw: bytes.tagged(4, 2),
  }
  const fallbacks = {
    second: -1,
    first: null,
    leader: { id: -1, epoch: -1 },
    list: [],
    raw: new Uint8Array(0),
  }
  const each = new InVersion(fields, { version: 2, flexible: true })

  it('are written in order of their tags, each with its length', () => {
    expect(each.write({ n: 1, second: 5, first: 'ab' })).toBe(
      '01 02 0003036162 010400000005'.replaceAll(' ', ''),
    )
    expect(each.read('010200030361620104 00000005')).toEqual({ n: 1, ...fallbacks, second: 5, first: 'ab' })
  })

  it('are not written where they are what would be read without them', () => {
    expect(each.write({ n: 1, ...fallbacks })).toBe('0100')
    expect(each.write({ n: 1, leader: { id: -1 } })).toBe('0100')
    expect(each.write({ n: 1, leader: { id: -1, epoch: 3 } })).toBe('01010209ffffffff0000000300')
    expect(each.write({ n: 1, list: [9], raw: new Uint8Array(1) })).toBe(
      '010203020209040202 00'.replace(' ', ''),
    )
  })

  it('are not there before their version, nor where a version is not flexible', () => {
    const before = new InVersion(fields, { version: 1, flexible: true })
    expect(before.write({ n: 1, second: 5 })).toBe('0100')
    expect(new InVersion(fields, { version: 0 }).write({ n: 1, first: 'ab' })).toBe('01')
    expect(new InVersion(fields, { version: 0 }).read('01')).toEqual({ n: 1, ...fallbacks })
  })

  it('that nobody knows are skipped, wherever they stand', () => {
    // 0: first, 9: unknown, 5 bytes; 200: unknown, none.
    expect(each.read('01 03 00020261 09050102030405 c80100')).toEqual({ n: 1, ...fallbacks, first: 'a' })
    const inArray = new InVersion({ a: array({ n: int8 }) }, { flexible: true })
    expect(inArray.read('03 01 01 7701ff 02 00 00')).toEqual({ a: [{ n: 1 }, { n: 2 }] })
  })

  it.each([
    ['one tag twice', '01 02 0900 0900', 'tag 9 follows tag 9'],
    ['tags out of order', '01 02 0900 0800', 'tag 8 follows tag 9'],
    ['a known one that is shorter than it says', '01 01 010500000005 00', 'another length'],
    ['a known one that is longer than it says', '01 01 010300000005', 'another length'],
    ['one that is longer than the frame', '01 01 0905 01', 'no room for 5 bytes of tag 9'],
    ['more of them than could follow', '01 03 0900 0a', 'no room for 3 tagged fields'],
    ['2^32 − 1 of them', '01 ffffffff0f 0900', 'no room for 4294967295 tagged fields'],
    ['none, not even their number', '01', 'should follow'],
  ])('are refused: %s', (_, hex, why) => {
    expect(refusal(() => each.read(hex))).toContain(why)
  })
})

describe('a struct', () => {
  it('is what is empty of each field where nothing is given', () => {
    const each = new InVersion({ s: struct({ n: int32.or(9), t: string }) })
    expect(each.write({})).toBe('000000090000')
  })
})
