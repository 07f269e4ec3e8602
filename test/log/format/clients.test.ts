import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { noCompression } from '../../../src/log/format/compression.ts'
import { decodeMarker, encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import type { BatchHeader } from '../../../src/log/format/record-batch.ts'
import {
  decodeBatch,
  encodeBatch,
  patchBatch,
  producerOf,
  validateBatch,
  validateProduced,
} from '../../../src/log/format/record-batch.ts'
import { keyBytes, RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { bytesOf, codeOf, columnsOf, hexOf, rowsOf } from './helpers.ts'

interface Fixture {
  readonly name: string
  readonly header?: Partial<BatchHeader>
  readonly records: readonly {
    readonly offset: number
    readonly timestamp: number
    readonly sizeBytes?: number
    readonly key: string | null
    readonly value: string | null
    readonly headers: readonly (readonly [string, string | null])[]
  }[]
  readonly bytes: string
}

function fixtures(client: string): Fixture[] {
  const path = join(import.meta.dirname, '../../fixtures/record-batch', `${client}.json`)
  return JSON.parse(readFileSync(path, 'utf8')) as Fixture[]
}

const gzip = {
  compress: noCompression.compress,
  decompress: (_: number, bytes: Uint8Array, maxBytes: number) =>
    new Uint8Array(gunzipSync(bytes, { maxOutputLength: maxBytes })),
}

const orNull = (hex: string | null): Uint8Array | null => (hex === null ? null : bytesOf(hex))

/** A fixture's records as a subscriber would have published them. */
function given(fixture: Fixture) {
  return fixture.records.map(({ offset, timestamp, key, value, headers }) => ({
    offset,
    timestamp,
    key: orNull(key),
    value: orNull(value),
    headers: headers.map(([name, each]) => [new TextDecoder().decode(bytesOf(name)), orNull(each)] as const),
  }))
}

/** The same in the terms of the fixture: whatever form keys and headers have, their bytes. */
function found(bytes: Uint8Array): Fixture['records'] {
  return rowsOf(decodeBatch(bytes, 0, defaultCodec, gzip)).map(
    ({ offset, timestamp, key, value, headers }) => {
      const multi = new RecordHeaders(headers)
      return {
        offset,
        timestamp,
        key: key === null ? null : hexOf(keyBytes(key)),
        value: value === null ? null : hexOf(value as Uint8Array),
        headers: [...multi].map(([name, each]) => [
          hexOf(new TextEncoder().encode(name)),
          each === null ? null : hexOf(typeof each === 'string' ? new TextEncoder().encode(each) : each),
        ]),
      }
    },
  ) as Fixture['records']
}

const java = fixtures('java')
const others = [...fixtures('kafkajs'), ...fixtures('kafka-python')]

describe.each([
  ['the Java client', java],
  ['KafkaJS', fixtures('kafkajs')],
  ['kafka-python', fixtures('kafka-python')],
])('batches of %s', (_, batches) => {
  it.each(batches)('are valid and give the records that went in: $name', ({ bytes, records }) => {
    validateBatch(bytesOf(bytes), 0, crc32c)
    expect(found(bytesOf(bytes))).toEqual(records.map(({ sizeBytes, ...record }) => record))
  })
})

describe('batches of the Java client', () => {
  it.each(java)('have the header that it reads: $name', ({ header, bytes }) => {
    expect(validateBatch(bytesOf(bytes), 0, crc32c)).toMatchObject(header as object)
  })

  it.each(java.filter(({ header }) => header?.compression === 0))(
    'have records of the size that it measures: $name',
    ({ records, bytes }) => {
      const rows = decodeBatch(bytesOf(bytes), 0, defaultCodec, noCompression)
      expect(records.map((_, row) => rows.sizeAt(row))).toEqual(records.map(({ sizeBytes }) => sizeBytes))
    },
  )

  const canonical = java.filter(
    ({ header, name }) =>
      header?.compression === 0 && !header.control && !header.logAppendTime && name !== 'compacted',
  )
  it.each(canonical)('are, byte for byte, what we write for the same records: $name', (fixture) => {
    const rows = columnsOf(given(fixture))
    const header = validateBatch(bytesOf(fixture.bytes), 0, crc32c)
    const written = encodeBatch(rows, 0, rows.count, defaultCodec, {
      baseOffset: header.baseOffset,
      leaderEpoch: header.leaderEpoch,
      producer: producerOf(header),
    })
    expect(hexOf(written)).toBe(fixture.bytes)
  })

  it.each([true, false])('end transactions with the markers that we write: commit %s', (commit) => {
    const fixture = java.find(({ name }) => name === (commit ? 'commit marker' : 'abort marker')) as Fixture
    const written = encodeMarker(
      { commit, coordinatorEpoch: 42 },
      {
        baseOffset: 77,
        leaderEpoch: 3,
        producerId: 4_000_000_001,
        producerEpoch: 12,
        timestamp: 1_700_000_000_000,
      },
    )
    expect(hexOf(written)).toBe(fixture.bytes)
    expect(decodeMarker(bytesOf(fixture.bytes), 0)).toEqual({ commit, coordinatorEpoch: 42 })
  })

  it('are refused by name where their compression is missing', () => {
    const { bytes } = java.find(({ name }) => name === 'gzip') as Fixture
    expect(codeOf(() => decodeBatch(bytesOf(bytes), 0, defaultCodec, noCompression))).toBe('UNSUPPORTED')
  })
})

describe('batches of other clients', () => {
  it.each(others)('may be produced: $name', ({ bytes, records }) => {
    expect(validateProduced(bytesOf(bytes), crc32c).count).toBe(records.length)
  })

  it.each(others)(
    'keep their CRC when the broker sets offset and leader epoch: $name',
    ({ bytes, records }) => {
      const batch = bytesOf(`ffff${bytes}`)
      patchBatch(batch, 2, 5_000_000_000, 8)
      const { baseOffset, leaderEpoch } = validateBatch(batch, 2, crc32c)
      expect({ baseOffset, leaderEpoch }).toEqual({ baseOffset: 5_000_000_000, leaderEpoch: 8 })
      const rows = decodeBatch(batch, 2, defaultCodec, noCompression)
      expect(rows.offsetAt(records.length - 1)).toBe(5_000_000_000 + records.length - 1)
    },
  )

  it.each(fixtures('kafka-python'))('are what we write, too: $name', (fixture) => {
    const rows = columnsOf(given(fixture))
    const producer = producerOf(validateBatch(bytesOf(fixture.bytes), 0, crc32c))
    const written = encodeBatch(rows, 0, rows.count, defaultCodec, {
      baseOffset: 0,
      leaderEpoch: -1,
      producer,
    })
    const python = bytesOf(fixture.bytes)
    patchBatch(python, 0, 0, -1)
    expect(hexOf(written)).toBe(hexOf(python))
  })
})
