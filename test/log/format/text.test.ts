import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readUtf8, textOrBytes, utf8Length, writeUtf8 } from '../../../src/log/format/text.ts'
import { bytesOf } from './helpers.ts'

/** Short and long, ASCII and not, lone surrogates included. */
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
  fc.array(fc.nat(0xffff), { maxLength: 20 }).map((units) => String.fromCharCode(...units)),
)

describe('UTF-8 by hand', () => {
  it('writes what TextEncoder writes, into as many bytes as it foretold', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const expected = new TextEncoder().encode(text)
        expect(utf8Length(text)).toBe(expected.length)
        const out = new Uint8Array(expected.length + 2)
        expect(writeUtf8(out, 1, text)).toBe(expected.length + 1)
        expect(out.subarray(1, -1)).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })

  it('reads back well-formed text, and bytes that are no text as they are', () => {
    fc.assert(
      fc.property(texts, fc.nat(3), (text, skip) => {
        const bytes = new Uint8Array([...new Uint8Array(skip), ...new TextEncoder().encode(text), 0])
        expect(textOrBytes(bytes, skip, bytes.length - 1)).toBe(text.toWellFormed())
        expect(readUtf8(bytes, skip, bytes.length - 1)).toBe(text.toWellFormed())
      }),
    )
  })

  it.each([
    ['a continuation without a start', '80'],
    ['a cut sequence', 'e282'],
    ['an overlong form', 'c080'],
    ['a surrogate', 'eda080'],
    ['a long run that ends badly', `${'61'.repeat(40)}ff`],
  ])('keeps %s as bytes, and reads it as text with U+FFFD where it must be text', (_, hex) => {
    const bytes = bytesOf(hex)
    expect(textOrBytes(bytes, 0, bytes.length)).toEqual(bytes)
    expect(readUtf8(bytes, 0, bytes.length)).toContain('\ufffd')
  })

  it('keeps a byte order mark, which is a part of a key like any other', () => {
    const bytes = bytesOf('efbbbf61')
    expect(textOrBytes(bytes, 0, 4)).toBe('\ufeffa')
    expect(readUtf8(bytes, 0, 4)).toBe('\ufeffa')
  })
})
