import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../src/model/errors.ts'
import type { HeadersInit, Key } from '../../src/model/record.ts'
import { keyBytes, keyIdentity, NO_HEADERS, RecordHeaders } from '../../src/model/record.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('headers', () => {
  const headers = RecordHeaders.from([
    ['a', '1'],
    ['b', bytes('ü')],
    ['a', null],
    ['c', new Uint8Array([0xff])],
    ['a', '3'],
  ])

  it('are an ordered multi-map: the last of a name, or all of them', () => {
    expect(headers.size).toBe(5)
    expect(headers.get('a')).toBe('3')
    expect(headers.getAll('a')).toEqual(['1', null, '3'])
    expect(headers.getAll('nothing')).toEqual([])
    expect([...headers].map(([name]) => name)).toEqual(['a', 'b', 'a', 'c', 'a'])
  })

  it('answer text or bytes, whichever is asked for', () => {
    expect(headers.get('b')).toBe('ü')
    expect(headers.getBytes('b')).toEqual(bytes('ü'))
    expect(headers.getBytes('a')).toEqual(bytes('3'))
    expect(headers.get('c')).toBe('\ufffd')
  })

  it("tell Kafka's null from a header that is not there", () => {
    const one = RecordHeaders.from({ nothing: null })
    expect([one.get('nothing'), one.getBytes('nothing'), one.has('nothing')]).toEqual([null, null, true])
    expect([one.get('other'), one.getBytes('other'), one.has('other')]).toEqual([undefined, undefined, false])
  })

  it('are made of an object, of pairs, or of other headers', () => {
    const pairs = [
      ['x', '1'],
      ['y', '2'],
      ['y', '3'],
    ] as const
    expect(RecordHeaders.from({ x: '1', gone: undefined, y: ['2', '3'] }).toJSON()).toEqual(pairs)
    expect(RecordHeaders.from(new Map([['x', '1']])).toJSON()).toEqual([['x', '1']])
    expect(RecordHeaders.from(pairs).toJSON()).toEqual(pairs)
    expect(RecordHeaders.from(headers)).toBe(headers)
  })

  it('do not follow what they were made of', () => {
    const init: [string, string][] = [['a', '1']]
    const made = RecordHeaders.from(init)
    init[0] = ['a', '2']
    init.push(['b', '3'])
    expect(made.toJSON()).toEqual([['a', '1']])
    made.toJSON().push(['c', '4'])
    expect(made.size).toBe(1)
  })

  it('change only in a copy', () => {
    const changed = headers.with('a', 'new')
    expect(changed.getAll('a')).toEqual(['new'])
    expect([...changed].at(-1)).toEqual(['a', 'new'])
    expect(headers.without((name) => name === 'a').toJSON()).toHaveLength(2)
    expect(headers.getAll('a')).toEqual(['1', null, '3'])
    expect(NO_HEADERS.with('a', '1').size).toBe(1)
    expect(NO_HEADERS.size).toBe(0)
  })

  it('are shown as pairs', () => {
    expect(JSON.stringify(RecordHeaders.from({ a: '1', b: null }))).toBe('[["a","1"],["b",null]]')
  })

  it.each([
    ['a number as value', { a: 1 }, /header "a" must be .* got number/],
    ['a list with undefined', { a: ['1', undefined] }, /header "a" must be .* got undefined/],
    ['an object as value', { a: {} }, /header "a"/],
    ['null', null, /headers are .* got null/],
    ['a text', 'a=1', /headers are .* got a=1/],
    ['a list of texts', ['a'], /pairs .* got string/],
    ['a pair with a number as name', [[1, '1']], /pairs/],
    ['a pair without a value', [['a']], /header "a" must be .* got undefined/],
  ])('refuse %s', (_, init, reason) => {
    const make = () => RecordHeaders.from(init as unknown as HeadersInit)
    expect(make).toThrow(OdradekError)
    expect(make).toThrow(reason)
  })
})

describe('keys', () => {
  const keys: fc.Arbitrary<Key> = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 3 }),
    fc.array(fc.constantFrom('a', '\ud800', '\udc00', '\ufffd'), { maxLength: 3 }).map((all) => all.join('')),
    fc
      .array(fc.constantFrom(0x61, 0xff, 0xed, 0xa0, 0x80, 0xef, 0xbf, 0xbd), { maxLength: 4 })
      .map((all) => new Uint8Array(all)),
  )

  it('are the same exactly when their UTF-8 bytes are', () => {
    const sameBytes = (a: Key, b: Key) => Buffer.compare(keyBytes(a), keyBytes(b)) === 0
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        expect(keyIdentity(a) === keyIdentity(b)).toBe(sameBytes(a, b))
        expect(keyIdentity(a)).toBe(keyIdentity(keyBytes(a)))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['a text', 'ü', 'c3bc'],
    ['bytes', new Uint8Array([0xff]), 'ff'],
    ['a lone surrogate', '\ud800', 'efbfbd'],
    ['a byte order mark', '\ufeff', 'efbbbf'],
  ])('have bytes: %s', (_, key, hex) => {
    expect(Buffer.from(keyBytes(key)).toString('hex')).toBe(hex)
  })
})
