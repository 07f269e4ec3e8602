import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { noCompression } from '../../../src/log/format/compression.ts'
import { decodeMarker, encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { HEADER_BYTES } from '../../../src/log/format/layout.ts'
import { decodeBatch, encodeBatch, readHeader, validateBatch } from '../../../src/log/format/record-batch.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { bytesOf, codeOf, columnsOf } from './helpers.ts'

const NOW = 1_700_000_000_000

const good = encodeBatch(
  columnsOf([
    { offset: 0, timestamp: NOW, key: 'key', value: 'value', headers: [['h', 'x']] },
    { offset: 1, timestamp: NOW + 90, key: null, value: null, headers: [] },
    { offset: 2, timestamp: NOW, key: bytesOf('ff'), value: bytesOf('00'), headers: [['n', null]] },
  ]),
  0,
  3,
  defaultCodec,
  { baseOffset: 0, leaderEpoch: 5, producer: { id: 1, epoch: 2, sequence: 3, transactional: false } },
)

/** Base offset and leader epoch: what a broker sets without recomputing the CRC. */
const outsideOfCrc = (at: number) => at < 8 || (at >= 12 && at < 16)

function decode(bytes: Uint8Array): unknown {
  return decodeBatch(bytes, 0, defaultCodec, noCompression)
}

/** A sound header and CRC around any records. */
function batchOf(records: Uint8Array, count: number, lastOffsetDelta = count - 1): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + records.length)
  bytes.set(good.subarray(0, HEADER_BYTES))
  bytes.set(records, HEADER_BYTES)
  const view = new DataView(bytes.buffer)
  view.setInt32(8, bytes.length - 12)
  view.setInt32(23, lastOffsetDelta)
  view.setInt32(57, count)
  view.setUint32(17, crc32c(bytes.subarray(21)))
  return bytes
}

function withInt(at: number, bits: 16 | 32 | 64, value: number): Uint8Array {
  const bytes = good.slice()
  const view = new DataView(bytes.buffer)
  if (bits === 16) view.setInt16(at, value)
  else if (bits === 32) view.setInt32(at, value)
  else view.setBigInt64(at, BigInt(value))
  view.setUint32(17, crc32c(bytes.subarray(21)))
  return bytes
}

function withMagic(magic: number): Uint8Array {
  const bytes = good.slice()
  bytes[16] = magic
  return bytes
}

describe('a batch that did not arrive as it was sent', () => {
  it('is refused cut at every byte', () => {
    for (let length = 0; length < good.length; length++) {
      expect(codeOf(() => validateBatch(good.subarray(0, length), 0, crc32c))).toBe('CORRUPT_LOG')
      expect(codeOf(() => decode(good.subarray(0, length)))).toBe('CORRUPT_LOG')
    }
  })

  it('is refused where the bytes end, and behind them', () => {
    expect(codeOf(() => readHeader(good, good.length))).toBe('CORRUPT_LOG')
    expect(codeOf(() => readHeader(good, good.length + 100))).toBe('CORRUPT_LOG')
  })

  it('is refused with any one byte changed, but for those that a broker may set', () => {
    for (let at = 0; at < good.length; at++) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const bytes = good.slice()
        bytes[at] = (bytes[at] as number) ^ flip
        let refused = false
        try {
          validateBatch(bytes, 0, crc32c)
        } catch (error) {
          expect(error).toBeInstanceOf(OdradekError)
          refused = true
        }
        expect({ at, refused: refused || outsideOfCrc(at) }).toEqual({ at, refused: true })
        if (outsideOfCrc(at) && !refused) expect(readHeader(bytes, 0).crc).toBe(readHeader(good, 0).crc)
      }
    }
  })

  it('is refused, or at least decoded within its bounds, as noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.boolean(), (noise, headed) => {
        const bytes = headed ? Uint8Array.of(...good.subarray(0, HEADER_BYTES), ...noise) : noise
        try {
          decode(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(OdradekError)
        }
      }),
    )
  })
})

describe('a header that cannot be true', () => {
  it.each([
    ['of an older format', withMagic(1), /format 2/],
    ['of a negative count', withInt(57, 32, -1), /-1 records/],
    ['of more records than offsets', withInt(57, 32, 4), /offset delta 2/],
    ['shorter than itself', withInt(8, 32, 20), /shorter/],
    ['of negative length', withInt(8, 32, -1), /shorter/],
    ['longer than its bytes', withInt(8, 32, good.length), /cut short/],
    ['of a negative base offset', withInt(0, 64, -1), /base offset/],
    ['of a base offset that no number holds', withInt(0, 64, 2 ** 60), /base offset/],
    ['of offsets that no number holds', withInt(0, 64, Number.MAX_SAFE_INTEGER), /base offset/],
    ['of a negative producer', withInt(43, 64, -2), /producer id/],
    ['of a producer that no number holds', withInt(43, 64, 2 ** 60), /producer id/],
  ])('is refused: %s', (_, bytes, reason) => {
    expect(() => validateBatch(bytes, 0, crc32c)).toThrow(reason)
    expect(codeOf(() => readHeader(bytes, 0))).toBe('CORRUPT_LOG')
  })
})

describe('records that are unsound inside of a sound batch', () => {
  // length 7: attributes, timestamp delta 0, offset delta 0, key null, value 'a', no headers
  const record = '0e00000001026100'

  it('are read when they are sound', () => {
    expect(decode(batchOf(bytesOf(record), 1))).toMatchObject({ count: 1, base: 0 })
  })

  it.each([
    ['a record longer than the batch', '1000000001026100'],
    ['a record of negative length', '01'],
    ['a record longer than its fields', '100000000102610000'],
    ['a record shorter than its fields', '0c00000001026100'],
    ['a key longer than its record', '0e00000010026100'],
    ['a key longer than memory', '1c000000feffffff0f02610000000000'],
    ['a value longer than its record', '0e00000001fe6100'],
    ['a value longer than memory', '1a00000001feffffff0f00000000'],
    ['a negative count of headers', '0e00000001026101'],
    ['more headers than bytes', '0e0000000102617e'],
    ['headers without end', '16000000010261feffffff0f'],
    ['a header without a name', '12000000010261020101'],
    ['a header that ends in its name', '100000000102610204'],
    ['an offset beyond the batch', '0e00000201026100'],
    ['an offset below the base', '0e00000101026100'],
    ['a timestamp longer than 64 bits', '2600808080808080808080800000010261000000'],
    ['nothing', ''],
    ['bytes after the last record', `${record}00`],
  ])('are refused: %s', (_, hex) => {
    expect(codeOf(() => decode(batchOf(bytesOf(hex), 1)))).toBe('CORRUPT_LOG')
  })

  it('are refused before room is made for more of them than there can be', () => {
    expect(() => decode(batchOf(bytesOf(record), 2 ** 31 - 1))).toThrow(/do not fit/)
  })

  it('are refused when offsets do not grow', () => {
    const twice = bytesOf(record + record)
    expect(() => decode(batchOf(twice, 2))).toThrow(/offset delta 0 follows 0/)
  })

  it('give rows or an OdradekError with any one byte changed', () => {
    const records = good.subarray(HEADER_BYTES)
    for (let at = 0; at < records.length; at++) {
      for (let byte = 0; byte < 256; byte++) {
        const changed = records.slice()
        changed[at] = byte
        try {
          const rows = decodeBatch(batchOf(changed, 3), 0, defaultCodec, noCompression, () => 'bad')
          expect(rows.count).toBe(3)
        } catch (error) {
          if (!(error instanceof OdradekError)) throw error
        }
      }
    }
  })

  it('that decompress to something else are refused just so', () => {
    const bytes = withInt(21, 16, 1)
    const gzip = { compress: noCompression.compress, decompress: () => bytesOf('0e') }
    expect(codeOf(() => decodeBatch(bytes, 0, defaultCodec, gzip))).toBe('CORRUPT_LOG')
  })
})

describe('a control batch', () => {
  const options = { baseOffset: 9, leaderEpoch: 1, producerId: 5, producerEpoch: 2, timestamp: NOW }

  function control(key: Uint8Array | null, value: Uint8Array | null): Uint8Array {
    const rows = columnsOf([{ offset: 0, timestamp: NOW, key, value, headers: [] }])
    return encodeBatch(rows, 0, 1, defaultCodec, { baseOffset: 0, leaderEpoch: 0, control: true })
  }

  it.each([true, false])('says how its transaction ended: commit %s', (commit) => {
    const bytes = encodeMarker({ commit, coordinatorEpoch: 7 }, options)
    expect(validateBatch(bytes, 0, crc32c)).toMatchObject({
      baseOffset: 9,
      control: true,
      transactional: true,
      producerId: 5,
      producerEpoch: 2,
      baseSequence: -1,
      maxTimestamp: NOW,
    })
    expect(decodeMarker(bytes, 0)).toEqual({ commit, coordinatorEpoch: 7 })
  })

  it('of another kind is no marker', () => {
    expect(decodeMarker(control(bytesOf('00000002'), null), 0)).toBeNull()
  })

  it.each([
    ['no key', null, bytesOf('000000000000')],
    ['a short key', bytesOf('0000'), bytesOf('000000000000')],
    ['no value', bytesOf('00000001'), null],
    ['a short value', bytesOf('00000001'), bytesOf('0000')],
  ])('with %s is refused', (_, key, value) => {
    expect(codeOf(() => decodeMarker(control(key, value), 0))).toBe('CORRUPT_LOG')
  })

  it('is not shown to the codec of its topic', () => {
    const codec = {
      ...defaultCodec,
      decode: () => {
        throw new Error('asked')
      },
    }
    const bytes = encodeMarker({ commit: true, coordinatorEpoch: 0 }, options)
    expect(decodeBatch(bytes, 0, codec, noCompression).count).toBe(1)
  })
})
