import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OdradekError } from '../../src/model/errors.ts'
import { defaultCodec, JSON_TYPE, TEXT_TYPE } from '../../src/model/value-codec.ts'

function encode(value: unknown) {
  return defaultCodec.encode(value)
}

function again(value: unknown): unknown {
  const { bytes, contentType } = encode(value)
  return defaultCodec.decode(bytes?.slice() ?? null, contentType ?? undefined)
}

function refusalOf(value: unknown): string {
  try {
    encode(value)
  } catch (error) {
    if (error instanceof OdradekError && error.code === 'INVALID_VALUE') return error.message
    throw error
  }
  return 'accepted'
}

class Money {
  readonly cents = 5
}

describe('the default codec', () => {
  it('gives every JSON value, text and run of bytes back equal', () => {
    const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)))
    fc.assert(
      fc.property(fc.oneof(json, fc.string({ unit: 'binary' }), fc.uint8Array()), (value) => {
        expect(again(value)).toStrictEqual(value)
      }),
      { numRuns: 300 },
    )
  })

  it('says what the bytes are', () => {
    expect(encode('a').contentType).toBe(TEXT_TYPE)
    expect(encode({ a: 1 }).contentType).toBe(JSON_TYPE)
    expect(encode(new Uint8Array(1)).contentType).toBeNull()
    expect(encode(null)).toEqual({ bytes: null, contentType: null })
  })

  it('hands bytes through without a copy, also those of a Buffer', () => {
    const bytes = Buffer.from('abc')
    expect(encode(bytes).bytes).toBe(bytes)
  })

  it('keeps what two places of a value share', () => {
    const shared = { a: 1 }
    expect(again([shared, shared, { shared }])).toEqual([shared, shared, { shared }])
  })

  it('keeps names that mean something to JavaScript', () => {
    const value: unknown = JSON.parse('{"__proto__":1,"constructor":2,"toJSON":3}')
    expect(Object.entries(again(value) as object)).toEqual(Object.entries(value as object))
  })

  it.each([
    ['undefined', undefined, /^\$ is a value of type undefined/],
    ['a function', () => {}, /type function/],
    ['a symbol', Symbol('s'), /type symbol/],
    ['a bigint', { total: 5n }, /^\$\.total is a value of type bigint/],
    ['NaN', [1, Number.NaN], /^\$\[1\] is NaN/],
    ['an infinity', { a: [{ b: -Infinity }] }, /^\$\.a\[0\]\.b is -Infinity/],
    ['−0', -0, /^\$ is -0/],
    ['a missing member', { a: undefined }, /^\$\.a is a value of type undefined/],
    ['a lone surrogate', '\ud800', /lone surrogate/],
    ['a lone surrogate inside', ['\udc00'], /^\$\[0\] is a string with a lone surrogate/],
    ['a lone surrogate in a name', { '\ud800': 1 }, /name with a lone surrogate/],
    ['a date', { at: new Date(0) }, /^\$\.at is an instance of Date/],
    ['a map', new Map(), /instance of Map/],
    ['an instance of a class', new Money(), /instance of Money/],
    ['an instance of no named class', Object.create(Object.create(null)), /instance of a class/],
    ['other typed arrays', new Float64Array(1), /instance of Float64Array/],
    ['an array of a class of its own', new (class List extends Array {})(), /instance of List/],
    ['a sparse array', Object.assign(new Array(3), { 0: 1, 2: 3 }), /sparse/],
    ['an array that is all hole', new Array(2), /sparse/],
    ['a decorated array', 'ab'.match(/b/), /decorated array/],
    ['an array with a symbol', Object.assign([1], { [Symbol('s')]: 1 }), /decorated array/],
    [
      'a hole that a decoration makes up for',
      Object.assign(new Array(2), { 1: 1, x: 1 }),
      /^\$\[0\] is a value of type undefined/,
    ],
    ['symbol keys', { [Symbol('s')]: 1 }, /symbol keys/],
    ['a hidden property', Object.defineProperty({}, 'a', { value: 1 }), /^\$\.a is an accessor or hidden/],
    [
      'an accessor',
      {
        get a() {
          return 1
        },
      },
      /^\$\.a is an accessor or hidden/,
    ],
    ['a toJSON method', { toJSON: () => 1 }, /^\$\.toJSON is a toJSON method/],
  ])('refuses what JSON would change silently, and says where: %s', (_, value, reason) => {
    expect(refusalOf(value)).toMatch(reason)
  })

  it('refuses a circle, and names where it closes', () => {
    const circle: Record<string, unknown> = { list: [] }
    ;(circle.list as unknown[]).push(circle)
    expect(refusalOf(circle)).toMatch(/^\$\.list\[0\] is a circular reference/)
  })

  it('accepts 500 levels and refuses more, whatever the stack would bear', () => {
    const nested = (levels: number): unknown => {
      let value: unknown = []
      for (let level = 1; level < levels; level++) value = [value]
      return value
    }
    expect(again(nested(500))).toEqual(nested(500))
    expect(refusalOf(nested(501))).toMatch(/more than 500 levels/)
    expect(refusalOf(nested(100_000))).toMatch(/more than 500 levels/)
  })

  it('takes an object without a prototype for a plain one', () => {
    expect(again(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 })
  })
})

describe('bytes of others', () => {
  const bytes = new TextEncoder().encode('{"a":1}')

  it('are bytes without a content-type, or with one that it does not know', () => {
    expect(defaultCodec.decode(bytes, undefined)).toBe(bytes)
    expect(defaultCodec.decode(bytes, 'image/png')).toBe(bytes)
    expect(defaultCodec.decode(null, JSON_TYPE)).toBeNull()
  })

  it('are decoded by a content-type that it knows', () => {
    expect(defaultCodec.decode(bytes, JSON_TYPE)).toEqual({ a: 1 })
    expect(defaultCodec.decode(bytes, TEXT_TYPE)).toBe('{"a":1}')
    expect(defaultCodec.decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]), TEXT_TYPE)).toBe('\ufeffa')
  })

  it('that are not what they claim are an error', () => {
    expect(() => defaultCodec.decode(bytes.subarray(1), JSON_TYPE)).toThrow(SyntaxError)
    expect(() => defaultCodec.decode(new Uint8Array([0xff]), JSON_TYPE)).toThrow(TypeError)
    expect(() => defaultCodec.decode(new Uint8Array([0xff]), TEXT_TYPE)).toThrow(TypeError)
  })
})
