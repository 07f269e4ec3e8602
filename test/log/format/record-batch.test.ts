import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { noCompression } from '../../../src/log/format/compression.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { HEADER_BYTES } from '../../../src/log/format/layout.ts'
import type { EncodeOptions } from '../../../src/log/format/record-batch.ts'
import {
  decodeBatch,
  encodeBatch,
  producerOf,
  readHeader,
  validateBatch,
  validateProduced,
} from '../../../src/log/format/record-batch.ts'
import type { HeaderValue, Key } from '../../../src/model/record.ts'
import type { ValueCodec } from '../../../src/model/value-codec.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import type { Row } from './helpers.ts'
import { bytesOf, codeOf, columnsOf, rowsOf } from './helpers.ts'

const NOW = 1_700_000_000_000
const AT_ZERO: EncodeOptions = { baseOffset: 0, leaderEpoch: 0 }

function row(value: unknown, more: Partial<Row> = {}): Row {
  return { offset: 0, timestamp: NOW, key: null, value, headers: [], ...more }
}

function encode(rows: readonly Row[], options: EncodeOptions = AT_ZERO, codec = defaultCodec): Uint8Array {
  return encodeBatch(columnsOf(rows), 0, rows.length, codec, options)
}

function decode(bytes: Uint8Array, codec = defaultCodec): Row[] {
  return rowsOf(decodeBatch(bytes, 0, codec, noCompression))
}

/** What comes back of a value, a key and headers. */
function again(value: unknown, headers: Row['headers'] = [], key: Key | null = null): Row {
  return decode(encode([row(value, { headers, key })]))[0] as Row
}

/** What JSON can say: it has no −0. */
const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)))
const values = fc.oneof(fc.uint8Array(), fc.string({ unit: 'binary' }), json)
const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.constant('content-type'))
const keys: fc.Arbitrary<Key | null> = fc.oneof(fc.constant(null), text, notText())
const headerValues: fc.Arbitrary<HeaderValue> = fc.oneof(fc.constant(null), text, notText())

/** Bytes that are no UTF-8. */
function notText(): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ maxLength: 40 }).map((bytes) => Uint8Array.of(...bytes, 0xff))
}

const rows: fc.Arbitrary<Row[]> = fc
  .array(
    fc.record({
      offset: fc.integer({ min: 1, max: 400 }),
      timestamp: fc.oneof(fc.integer({ min: NOW - 50, max: NOW + 5000 }), fc.maxSafeNat()),
      key: keys,
      value: values,
      headers: fc.array(fc.tuple(text, headerValues), { maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((all) => {
    let offset = 2 ** 40
    return all.map((each) => {
      offset += each.offset > 200 ? each.offset : 1
      return { ...each, offset }
    })
  })

describe('a batch', () => {
  it('gives back the records it was made of: values, keys, headers, timestamps and offsets with gaps', () => {
    fc.assert(
      fc.property(rows, (all) => {
        const bytes = encode(all, { baseOffset: (all[0] as Row).offset, leaderEpoch: 4 })
        expect(decode(bytes)).toEqual(all)
      }),
      { numRuns: 300 },
    )
  })

  it('is numbered by its base offset, wherever its rows came from', () => {
    const bytes = encode([row('a', { offset: 7 }), row('b', { offset: 9 })], {
      baseOffset: 1000,
      leaderEpoch: 0,
    })
    expect(decode(bytes).map(({ offset }) => offset)).toEqual([1000, 1002])
  })

  it('takes a run out of the middle of its rows', () => {
    const all = columnsOf(
      ['a', 'b', 'c', 'd'].map((value, i) => row(value, { offset: 10 + i, timestamp: NOW + i })),
    )
    const bytes = encodeBatch(all, 1, 2, defaultCodec, { baseOffset: 11, leaderEpoch: 0 })
    expect(decode(bytes)).toMatchObject([
      { value: 'b', offset: 11, timestamp: NOW + 1 },
      { value: 'c', offset: 12, timestamp: NOW + 2 },
    ])
    expect(() => encodeBatch(all, 3, 2, defaultCodec, AT_ZERO)).toThrow(/invariant/)
    expect(() => encodeBatch(all, 0, 0, defaultCodec, AT_ZERO)).toThrow(/invariant/)
  })

  it('says in its header what it holds and who wrote it', () => {
    const producer = { id: 2 ** 40, epoch: 6, sequence: 2 ** 31 - 1, transactional: true }
    const bytes = encode(
      [
        row('a', { timestamp: NOW + 5 }),
        row('b', { timestamp: NOW + 9, offset: 1 }),
        row('c', { offset: 2 }),
      ],
      { baseOffset: 2 ** 45, leaderEpoch: 3, producer },
    )
    const header = validateBatch(bytes, 0, crc32c)
    expect(header).toMatchObject({
      baseOffset: 2 ** 45,
      sizeBytes: bytes.length,
      leaderEpoch: 3,
      magic: 2,
      compression: 0,
      transactional: true,
      control: false,
      logAppendTime: false,
      lastOffsetDelta: 2,
      baseTimestamp: NOW + 5,
      maxTimestamp: NOW + 9,
      count: 3,
    })
    expect(producerOf(header)).toEqual(producer)
    expect(producerOf(readHeader(encode([row('a')]), 0))).toBeNull()
  })

  it('is checked by the CRC that is injected', () => {
    const bytes = encode([row('a')], { ...AT_ZERO, crc32c: (covered) => covered.length })
    expect(readHeader(bytes, 0).crc).toBe(bytes.length - 21)
    expect(validateBatch(bytes, 0, (covered) => covered.length).count).toBe(1)
    expect(codeOf(() => validateBatch(bytes, 0, crc32c))).toBe('CORRUPT_LOG')
  })

  it('is found among other bytes', () => {
    const bytes = Uint8Array.of(1, 2, 3, ...encode([row('a')]), 4, 5)
    expect(validateBatch(bytes, 3, crc32c).sizeBytes).toBe(bytes.length - 5)
    expect(rowsOf(decodeBatch(bytes, 3, defaultCodec, noCompression))).toMatchObject([{ value: 'a' }])
  })

  it('shares no memory with the records that came out of it', () => {
    const bytes = encode([row(bytesOf('c0c1'), { key: bytesOf('ff01') })])
    const [record] = decode(bytes) as [Row]
    bytes.fill(0)
    expect(record).toMatchObject({ value: bytesOf('c0c1'), key: bytesOf('ff01') })
    ;(record.value as Uint8Array).fill(9)
    expect(bytes.includes(9)).toBe(false)
  })

  it('keeps a timestamp beyond what a number holds only roughly, and the record whole', () => {
    const nanoseconds = 1_700_000_000_123_456_789n
    const bytes = encode([row('nanoseconds', { timestamp: 0 })])
    new DataView(bytes.buffer).setBigInt64(27, nanoseconds)
    expect(decode(bytes)).toMatchObject([{ value: 'nanoseconds', timestamp: Number(nanoseconds) }])
  })

  it('gives its own time to all records under LogAppendTime', () => {
    const bytes = encode([row('a'), row('b', { offset: 1, timestamp: NOW + 7 })])
    new DataView(bytes.buffer).setInt16(21, 1 << 3)
    expect(decode(bytes).map(({ timestamp }) => timestamp)).toEqual([NOW + 7, NOW + 7])
  })

  it('may be encoded from inside a codec that is encoding another', () => {
    const nested: ValueCodec = {
      encode: (value) => ({ bytes: encode([row(value)]), contentType: null }),
      decode: (bytes) => (decode(bytes as Uint8Array)[0] as Row).value,
    }
    const all = [row('a'), row('b'.repeat(5000), { offset: 1 }), row('c', { offset: 2 })]
    expect(decode(encode(all, AT_ZERO, nested), nested).map(({ value }) => value)).toEqual(
      all.map(({ value }) => value),
    )
  })

  it('larger than any before comes back whole, and the ones after it', () => {
    for (const size of [10, 3_000_000, 10, 2_000_000]) {
      const value = new Uint8Array(size).fill(size % 251)
      const found = (decode(encode([row(value)]))[0] as Row).value as Uint8Array
      expect([found.length, crc32c(found)]).toEqual([size, crc32c(value)])
    }
  })

  it('is not made of a value that its codec refuses, and the next one is fine', () => {
    expect(codeOf(() => encode([row('a'), row(undefined, { offset: 1 })]))).toBe('INVALID_VALUE')
    expect(again('b').value).toBe('b')
  })
})

describe('a value', () => {
  it.each([
    ['text', 'hello', 'text/plain; charset=utf-8'],
    ['JSON', { a: [1, null, 'x'] }, 'application/json'],
    ['a boolean', false, 'application/json'],
    ['an empty text', '', 'text/plain; charset=utf-8'],
  ])('of %s is plain bytes to a foreign client, with a content-type', (_, value, type) => {
    const asBytes: ValueCodec = { ...defaultCodec, decode: (bytes) => bytes }
    const [foreign] = decode(encode([row(value, { headers: [['mine', '1']] })]), asBytes) as [Row]
    expect(foreign.headers).toEqual([
      ['mine', '1'],
      ['content-type', type],
    ])
    expect(again(value, [['mine', '1']])).toMatchObject({ value, headers: [['mine', '1']] })
  })

  it.each([
    ['bytes', bytesOf('00ff'), 'image/png'],
    ['bytes that only look like JSON', bytesOf('7b'), 'application/json'],
    ['bytes that would be JSON', new TextEncoder().encode('{"a":1}'), 'application/json'],
    ['bytes that are no text', bytesOf('ff'), 'text/plain; charset=utf-8'],
    ['text', 'a', 'text/html'],
    ['an object', { a: 1 }, 'application/json'],
    ['null', null, 'application/json'],
  ])('of %s keeps its form and a content-type of its publisher: %s as %s', (_, value, type) => {
    const headers = [
      ['content-type', type],
      ['after', null],
    ] as const
    expect(again(value, headers)).toMatchObject({ value, headers })
  })

  it('comes back the same however often it passes through', () => {
    const first = again({ a: 1 }, [['content-type', 'x/y']])
    expect(again(first.value, first.headers)).toEqual(first)
    const bytes = again(bytesOf('01'), [['content-type', 'x/y']])
    expect(again(bytes.value, bytes.headers)).toEqual(bytes)
  })

  it.each([
    ['null', null],
    ['bytes that are no text', bytesOf('ff')],
  ])('under a content-type of %s is bytes', (_, type) => {
    const plain: ValueCodec = {
      ...defaultCodec,
      encode: (value) => ({ bytes: value as Uint8Array, contentType: null }),
    }
    const bytes = encode([row(bytesOf('31'), { headers: [['content-type', type]] })], AT_ZERO, plain)
    expect(decode(bytes)).toMatchObject([{ value: bytesOf('31'), headers: [['content-type', type]] }])
  })

  it('of a foreign client is decoded by its content-type, the last of several', () => {
    const foreign: ValueCodec = {
      ...defaultCodec,
      encode: (value) => ({ bytes: value as Uint8Array, contentType: 'application/json' }),
    }
    const bytes = encode(
      [row(bytesOf('5b315d'), { headers: [['content-type', 'text/plain']] })],
      AT_ZERO,
      foreign,
    )
    expect(decode(bytes)).toMatchObject([{ value: [1], headers: [['content-type', 'text/plain']] }])
  })

  it('leaves values as bytes and headers as they were where there is no codec', () => {
    const headers: Row['headers'] = [['content-type', 'text/plain']]
    const bytes = encode([row('text'), row(Uint8Array.of(1), { headers, offset: 1 })])
    const read = rowsOf(decodeBatch(bytes, 0, null, noCompression))
    expect(read.map(({ value }) => value)).toEqual([new TextEncoder().encode('text'), Uint8Array.of(1)])
    expect(read.map((each) => each.headers)).toEqual([
      [['content-type', 'text/plain; charset=utf-8']],
      [
        ['content-type', 'text/plain'],
        ['__odradek.untyped', null],
      ],
    ])
  })

  it('that the codec cannot decode is an error, or what the caller puts in its place', () => {
    const bytes = encode([
      row('good'),
      row(bytesOf('7b'), { offset: 1 }),
      row({ good: true }, { offset: 2, headers: [['h', '1']] }),
    ])
    const broken: ValueCodec = {
      ...defaultCodec,
      decode(value, type) {
        if (type === undefined) throw new SyntaxError('not ours')
        return defaultCodec.decode(value, type)
      },
    }
    expect(() => decode(bytes, broken)).toThrow(SyntaxError)
    const standIn = (cause: unknown, value: Uint8Array | null) => ({ cause: String(cause), value })
    const all = decodeBatch(bytes, 0, broken, noCompression, standIn)
    expect(rowsOf(all)).toMatchObject([
      { value: 'good', headers: [] },
      { value: { cause: 'SyntaxError: not ours', value: bytesOf('7b') } },
      { value: { good: true }, headers: [['h', '1']] },
    ])
  })

  it('that was replaced keeps the header that says what its bytes are', () => {
    const broken: ValueCodec = {
      encode: () => ({ bytes: bytesOf('7b'), contentType: 'application/json' }),
      decode: defaultCodec.decode,
    }
    const bytes = encode([row('any')], AT_ZERO, broken)
    const all = decodeBatch(bytes, 0, defaultCodec, noCompression, () => 'replaced')
    expect(rowsOf(all)).toMatchObject([
      { value: 'replaced', headers: [['content-type', 'application/json']] },
    ])
  })
})

describe('keys and headers', () => {
  it.each([
    ['a string', 'order-1', 'order-1'],
    ['the bytes of a string', new TextEncoder().encode('order-1'), 'order-1'],
    ['a string beyond ASCII', 'Grüße 👋', 'Grüße 👋'],
    ['a lone surrogate, which has no UTF-8', 'a\ud800', 'a\ufffd'],
    ['an empty string', '', ''],
    ['bytes that are no text', bytesOf('ff00'), bytesOf('ff00')],
    ['none', null, null],
  ])('a key that is %s comes back as text where its bytes are text', (_, key, expected) => {
    expect(again('v', [], key).key).toEqual(expected)
    expect(again(bytesOf('00'), [], key).key).toEqual(expected)
  })

  it('keep order, duplicates, nulls and empty values', () => {
    const headers = [
      ['b', '1'],
      ['a', null],
      ['b', '2'],
      ['', ''],
      ['ü', bytesOf('ff')],
    ] as const
    expect(again('v', headers).headers).toEqual(headers)
  })

  it('of one record are not taken for those of the record before', () => {
    const all = ['aa', 'ab', 'ab', 'b', null].map((value, offset) =>
      row(offset, { offset, headers: [['n'.repeat((offset % 2) + 1), value]] }),
    )
    expect(decode(encode(all))).toEqual(all)
  })

  it('of more than a few places come back, too', () => {
    const headers = Array.from({ length: 40 }, (_, i) => [`h${i % 3}`, `${i}`] as const)
    const all = [row('a', { headers }), row('b', { offset: 1, headers })]
    expect(decode(encode(all))).toEqual(all)
  })
})

describe('columns of a batch', () => {
  it('leave out what its rows have in common', () => {
    const all = decodeBatch(encode([row('a'), row('b', { offset: 1 })]), 0, defaultCodec, noCompression)
    expect(all).toMatchObject({ keys: null, headers: null, offsets: null, timestamps: null, sizes: null })
    expect(all.timestamp).toBe(NOW)
  })

  it('count the bytes of each record', () => {
    const all = decodeBatch(encode([row('a'), row('bcd', { offset: 1 })]), 0, defaultCodec, noCompression)
    expect(all.sizeAt(1) - all.sizeAt(0)).toBe(2)
    expect(all.sizeAt(0) + all.sizeAt(1)).toBe(
      encode([row('a'), row('bcd', { offset: 1 })]).length - HEADER_BYTES,
    )
  })
})

describe('a batch from a producer', () => {
  const good = (options: Partial<EncodeOptions> = {}) =>
    encode([row('a'), row('b', { offset: 1 })], { ...AT_ZERO, ...options })
  const producer = { id: 5, epoch: 0, sequence: 0, transactional: false }
  /** A batch of two small records that says it has `count`. */
  const claiming = (count: number, compression: number) => {
    const bytes = good()
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    view.setInt16(21, compression)
    view.setInt32(23, count - 1)
    view.setInt32(57, count)
    view.setUint32(17, crc32c(bytes.subarray(21)))
    return bytes
  }

  it('is accepted alone, from 0, without gaps', () => {
    expect(validateProduced(good(), crc32c).count).toBe(2)
    expect(validateProduced(good({ producer }), crc32c).producerId).toBe(5)
    expect(
      validateProduced(good({ producer: { ...producer, transactional: true } }), crc32c).transactional,
    ).toBe(true)
  })

  it.each([
    ['with bytes behind it', Uint8Array.of(...good(), 0)],
    ['with another behind it', Uint8Array.of(...good(), ...good())],
    ['with a base offset of its own', good({ baseOffset: 1 })],
    ['with gaps', encode([row('a'), row('b', { offset: 2 })])],
    ['of control records', good({ control: true })],
    ['that claims to be from this process', good({ inProcess: true })],
    ['with a producer but no sequence', good({ producer: { ...producer, sequence: -1 } })],
    ['with a producer but no epoch', good({ producer: { ...producer, epoch: -1 } })],
    ['in a transaction of nobody', good({ producer: { ...producer, id: -1, transactional: true } })],
    ['with more records than its bytes can hold', claiming(50, 0)],
    ['with more compressed records than it may expand to', claiming(20_000_000, 1)],
  ])('%s is not allowed', (_, bytes) => {
    expect(codeOf(() => validateProduced(bytes, crc32c))).toBe('INVALID_VALUE')
  })
})
