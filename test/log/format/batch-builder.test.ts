import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import type { CompressionPort } from '../../../src/log/format/compression.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { HEADER_BYTES, IN_PROCESS } from '../../../src/log/format/layout.ts'
import { decodeBatch, encodeBatch, producerOf, validateBatch } from '../../../src/log/format/record-batch.ts'
import { RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { bytesOf, codeOf, columnsOf, rowsOf } from './helpers.ts'

const NOW = 1_700_000_000_000
const PLAIN = { leaderEpoch: 0 }

/** Turns every byte around: a codec whose output is easy to tell from its input. */
const inverting: CompressionPort = {
  compress: (_, bytes) => bytes.map((byte) => byte ^ 0xff),
  decompress: (_, bytes) => bytes.map((byte) => byte ^ 0xff),
}

function decode(bytes: Uint8Array, compression = noCompression) {
  validateBatch(bytes, 0, crc32c)
  return rowsOf(decodeBatch(bytes, 0, defaultCodec, compression))
}

describe('a batch builder', () => {
  it('counts records and the bytes of the batch so far', () => {
    const builder = new BatchBuilder()
    builder.open(9, NOW)
    expect([builder.count, builder.sizeBytes]).toEqual([0, HEADER_BYTES])
    builder.add(bytesOf('00'), null, null, NOW)
    expect([builder.count, builder.sizeBytes]).toEqual([1, HEADER_BYTES + 8])
    builder.add(null, 'k', null, NOW + 1)
    expect(builder.count).toBe(2)
    const { sizeBytes } = builder
    const bytes = builder.finish(PLAIN)
    expect(bytes.length).toBe(sizeBytes)
    expect(builder.count).toBe(0)
    expect(decode(bytes)).toEqual([
      { offset: 9, timestamp: NOW, key: null, value: bytesOf('00'), headers: [] },
      { offset: 10, timestamp: NOW + 1, key: 'k', value: null, headers: [] },
    ])
  })

  it('makes, record by record, what encodeBatch makes of columns', () => {
    const record = fc.record({
      value: fc.oneof(fc.constant(null), fc.uint8Array(), fc.string({ unit: 'grapheme' }), fc.nat()),
      key: fc.oneof(fc.constant(null), fc.string({ unit: 'grapheme' }), fc.uint8Array()),
      timestamp: fc.integer({ min: NOW - 10_000, max: NOW + 10_000 }),
      gap: fc.constantFrom(0, 0, 1, 70_000),
      headers: fc.array(
        fc.tuple(fc.constantFrom('a', 'content-type'), fc.constantFrom('x', null, bytesOf('ff'))),
        { maxLength: 3 },
      ),
    })
    const builder = new BatchBuilder()
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 8 }), (all) => {
        let offset = 1000
        const rows = columnsOf(
          all.map(({ gap, ...each }, i) => {
            offset += i === 0 ? 0 : gap + 1
            return { ...each, offset }
          }),
        )
        builder.open(1000, all[0]?.timestamp as number)
        for (let row = 0; row < rows.count; row++) {
          const { bytes, contentType } = defaultCodec.encode(rows.values[row])
          const delta = rows.offsetAt(row) - 1000
          const headers = rows.headersAt(row)
          builder.add(bytes, rows.keyAt(row), headers, rows.timestampAt(row), contentType, delta)
        }
        const options = { leaderEpoch: 3, producer: { id: 4, epoch: 5, sequence: 6, transactional: true } }
        expect(builder.finish(options)).toEqual(
          encodeBatch(rows, 0, rows.count, defaultCodec, { ...options, baseOffset: 1000 }),
        )
      }),
    )
  })

  it('writes headers as they are where it is told no type, so that records can be copied', () => {
    const headers = [['content-type', 'application/json']] as const
    const builder = new BatchBuilder()
    builder.open(0, NOW)
    builder.add(bytesOf('5b315d'), null, new RecordHeaders(headers), NOW)
    builder.add(bytesOf('5b325d'), null, new RecordHeaders(headers), NOW, null)
    expect(decode(builder.finish(PLAIN))).toMatchObject([
      { value: [1], headers: [] },
      { value: bytesOf('5b325d'), headers },
    ])
  })

  it('tells timestamps from the one it was opened with, and knows the largest', () => {
    const builder = new BatchBuilder()
    builder.open(0, NOW)
    builder.add(null, 'a', null, NOW - 5)
    builder.add(null, 'b', null, NOW - 2)
    builder.add(null, 'c', null, NOW - 9)
    const bytes = builder.finish({ leaderEpoch: 0, deleteHorizon: true })
    expect(validateBatch(bytes, 0, crc32c)).toMatchObject({
      deleteHorizon: true,
      baseTimestamp: NOW,
      maxTimestamp: NOW - 2,
    })
    expect(decode(bytes).map(({ timestamp }) => timestamp)).toEqual([NOW - 5, NOW - 2, NOW - 9])
  })

  it('says which of its batches were published in process', () => {
    const builder = new BatchBuilder()
    const attributes = [true, false].map((inProcess) => {
      builder.open(0, NOW)
      builder.add(null, null, null, NOW)
      return validateBatch(builder.finish({ leaderEpoch: 0, inProcess }), 0, crc32c).attributes
    })
    expect(attributes).toEqual([IN_PROCESS, 0])
  })

  it('compresses the records, not the header', () => {
    const builder = new BatchBuilder()
    const make = (compression?: { type: number; port: CompressionPort }) => {
      builder.open(5, NOW)
      builder.add(bytesOf('0102'), 'k', null, NOW)
      return builder.finish({ leaderEpoch: 1, producer: null, ...(compression && { compression }) })
    }
    const plain = make()
    const packed = make({ type: 3, port: inverting })
    expect(packed.subarray(HEADER_BYTES)).toEqual(plain.subarray(HEADER_BYTES).map((byte) => byte ^ 0xff))
    expect(validateBatch(packed, 0, crc32c)).toMatchObject({ compression: 3, baseOffset: 5, count: 1 })
    expect(producerOf(validateBatch(packed, 0, crc32c))).toBeNull()
    expect(decode(packed, inverting)).toEqual(decode(plain))
    expect(make({ type: 0, port: noCompression })).toEqual(plain)
  })

  it('has its records still when the compression is missing', () => {
    const builder = new BatchBuilder()
    builder.open(0, NOW)
    builder.add(bytesOf('01'), null, null, NOW)
    const compression = { type: 4, port: noCompression }
    expect(codeOf(() => builder.finish({ leaderEpoch: 0, compression }))).toBe('UNSUPPORTED')
    expect(decode(builder.finish(PLAIN))).toMatchObject([{ value: bytesOf('01') }])
  })

  it('gives each batch memory of its own, however many are open at once', () => {
    const builders = Array.from({ length: 12 }, () => new BatchBuilder())
    const batches: Uint8Array[] = []
    for (let round = 0; round < 3; round++) {
      for (const [i, builder] of builders.entries()) builder.open(i, NOW)
      for (const [i, builder] of builders.entries()) {
        builder.add(new Uint8Array(3000 * (i + 1)).fill(i), null, null, NOW)
      }
      for (const builder of builders) batches.push(builder.finish(PLAIN))
    }
    for (const [i, bytes] of batches.entries()) {
      const index = i % builders.length
      const [record] = decode(bytes)
      const value = new Uint8Array(3000 * (index + 1)).fill(index)
      expect([record?.offset, crc32c(record?.value as Uint8Array)]).toEqual([index, crc32c(value)])
    }
  })

  it('gives its buffer away where it is nearly full, and keeps none of it', () => {
    const builder = new BatchBuilder()
    const value = new Uint8Array(1_200_000).fill(7)
    builder.open(0, NOW, 1_300_000)
    builder.add(value, null, null, NOW)
    const first = builder.finish(PLAIN)
    expect(first.buffer.byteLength).toBe(1_300_000)
    const before = crc32c(first)
    builder.open(1, NOW, 1_300_000)
    builder.add(new Uint8Array(1_200_000).fill(9), null, null, NOW)
    const second = builder.finish(PLAIN)
    expect(second.buffer).not.toBe(first.buffer)
    expect(crc32c(first)).toBe(before)
    expect(decode(first).map((row) => crc32c(row.value as Uint8Array))).toEqual([crc32c(value)])
  })

  it('puts what it copies where it is told to, and nothing else', () => {
    const builder = new BatchBuilder()
    const room = new Uint8Array(200).fill(255)
    let asked = 0
    const memory = (sizeBytes: number): Uint8Array => {
      asked = sizeBytes
      return room.subarray(10, 10 + sizeBytes)
    }
    builder.open(0, NOW)
    builder.add(bytesOf('0102'), null, null, NOW)
    const bytes = builder.finish({ ...PLAIN, memory })
    expect([bytes.buffer, bytes.byteOffset, bytes.length]).toEqual([room.buffer, 10, asked])
    expect(room.subarray(10 + asked).every((byte) => byte === 255)).toBe(true)
    expect(decode(bytes.slice()).map((row) => row.value)).toEqual([bytesOf('0102')])
  })

  it('forgets what it held when it is opened again', () => {
    const builder = new BatchBuilder()
    builder.open(0, NOW)
    builder.add(bytesOf('01'), null, null, NOW + 100)
    builder.open(7, NOW)
    builder.add(bytesOf('02'), null, null, NOW)
    const bytes = builder.finish(PLAIN)
    expect(validateBatch(bytes, 0, crc32c)).toMatchObject({ baseOffset: 7, count: 1, maxTimestamp: NOW })
    expect(decode(bytes)).toMatchObject([{ offset: 7, value: bytesOf('02') }])
  })

  it('refuses to be used closed, empty or backwards', () => {
    const builder = new BatchBuilder()
    expect(() => builder.add(null, null, null, NOW)).toThrow(/invariant/)
    builder.open(0, NOW)
    expect(() => builder.finish(PLAIN)).toThrow(/invariant/)
    builder.add(null, null, null, NOW, null, 4)
    expect(() => builder.add(null, null, null, NOW, null, 4)).toThrow(/invariant/)
    builder.finish(PLAIN)
    expect(() => builder.add(null, null, null, NOW)).toThrow(/invariant/)
  })
})
