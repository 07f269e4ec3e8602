import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { decodeMarker, encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { HEADER_BYTES } from '../../../src/log/format/layout.ts'
import type { BatchHeader } from '../../../src/log/format/record-batch.ts'
import {
  decodeBatch,
  encodeBatch,
  patchBatch,
  producerOf,
  readHeader,
  validateBatch,
  validateProduced,
} from '../../../src/log/format/record-batch.ts'
import { keyBytes, RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { compressionWith } from '../../../src/node/compression.ts'
import { bytesOf, codeOf, columnsOf, hexOf, rowsOf } from './helpers.ts'

interface Fixture {
  readonly name: string
  readonly header?: Partial<BatchHeader>
  readonly records: readonly {
    readonly offset: number
    readonly timestamp: number
    readonly sizeBytes?: number
    readonly key: string | null
    /** Repeated as often as `times` says. */
    readonly value: string | null
    readonly times?: number
    readonly headers: readonly (readonly [string, string | null])[]
  }[]
  readonly bytes: string
}

function fixtures(client: string): Fixture[] {
  const path = join(import.meta.dirname, '../../fixtures/record-batch', `${client}.json`)
  return JSON.parse(readFileSync(path, 'utf8')) as Fixture[]
}

const codecs = await compressionWith()

const orNull = (hex: string | null): Uint8Array | null => (hex === null ? null : bytesOf(hex))

/** A fixture's records as a subscriber would have published them. */
function given(fixture: Fixture) {
  return fixture.records.map(({ offset, timestamp, key, value, times = 1, headers }) => ({
    offset,
    timestamp,
    key: orNull(key),
    value: orNull(value?.repeat(times) ?? null),
    headers: headers.map(([name, each]) => [new TextDecoder().decode(bytesOf(name)), orNull(each)] as const),
  }))
}

/** The same in the terms of the fixture: whatever form keys and headers have, their bytes. */
function found(bytes: Uint8Array): Fixture['records'] {
  return rowsOf(decodeBatch(bytes, 0, defaultCodec, codecs)).map(
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

/** What `found` finds in the fixture's batch. */
function expected({ records }: Fixture): Fixture['records'] {
  return records.map(({ sizeBytes, times = 1, ...record }) => ({
    ...record,
    value: record.value?.repeat(times) ?? null,
  }))
}

const java = fixtures('java')
const compressed = fixtures('java-compressed')
const others = [...fixtures('kafkajs'), ...fixtures('kafka-python')]

describe.each([
  ['the Java client', java],
  ['the Java client, compressed', compressed],
  ['KafkaJS', fixtures('kafkajs')],
  ['kafka-python', fixtures('kafka-python')],
])('batches of %s', (_, batches) => {
  it.each(batches)('are valid and give the records that went in: $name', (fixture) => {
    validateBatch(bytesOf(fixture.bytes), 0, crc32c)
    expect(found(bytesOf(fixture.bytes))).toEqual(expected(fixture))
  })
})

describe('batches of the Java client', () => {
  it.each([...java, ...compressed])('have the header that it reads: $name', ({ header, bytes }) => {
    expect(validateBatch(bytesOf(bytes), 0, crc32c)).toMatchObject(header as object)
  })

  it.each([...java, ...compressed])(
    'have records of the size that it measures: $name',
    ({ records, bytes }) => {
      const rows = decodeBatch(bytesOf(bytes), 0, defaultCodec, codecs)
      expect(records.map((_, row) => rows.sizeAt(row))).toEqual(records.map(({ sizeBytes }) => sizeBytes))
    },
  )

  const canonical = java.filter(
    ({ header, name }) =>
      !header?.control && !header?.logAppendTime && !header?.deleteHorizon && name !== 'compacted',
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

  it('tell timestamps from the delete horizon where they have one, as ours do', () => {
    const fixture = java.find(({ name }) => name === 'delete horizon') as Fixture
    const { baseTimestamp = 0 } = fixture.header ?? {}
    const builder = new BatchBuilder()
    builder.open(60, baseTimestamp)
    for (const { offset, timestamp, key, value } of given(fixture)) {
      builder.add(value, key, null, timestamp, null, offset - 60)
    }
    expect(hexOf(builder.finish({ leaderEpoch: 3, deleteHorizon: true }))).toBe(fixture.bytes)
  })
})

describe('compressed batches of the Java client', () => {
  it.each(compressed)('come back from our own compression as well: $name', (fixture) => {
    const header = validateBatch(bytesOf(fixture.bytes), 0, crc32c)
    const rows = columnsOf(given(fixture))
    const options = {
      baseOffset: header.baseOffset,
      leaderEpoch: header.leaderEpoch,
      producer: producerOf(header),
      control: header.control,
    }
    const compression = { type: header.compression, port: codecs }
    const ours = encodeBatch(rows, 0, rows.count, defaultCodec, { ...options, compression })
    const { crc, sizeBytes, ...rest } = validateBatch(ours, 0, crc32c)
    expect(header).toMatchObject(rest)
    expect(found(ours)).toEqual(expected(fixture))
    // What is inside is Java's to the byte: only the compressors differ.
    const inside = (batch: Uint8Array) =>
      hexOf(codecs.decompress(header.compression, batch.subarray(HEADER_BYTES), 200_000))
    expect(inside(ours)).toBe(inside(bytesOf(fixture.bytes)))
  })

  it.each(compressed.filter(({ header }) => header?.control))('end transactions: $name', ({ bytes }) => {
    expect(decodeMarker(bytesOf(bytes), 0, codecs)).toEqual({ commit: true, coordinatorEpoch: 42 })
  })

  it.each(compressed)('are refused by name where their compression is missing: $name', ({ bytes }) => {
    expect(codeOf(() => decodeBatch(bytesOf(bytes), 0, defaultCodec, noCompression))).toBe('UNSUPPORTED')
  })

  it('frame snappy in blocks as ours do', () => {
    const blocks = (batch: Uint8Array) => {
      const view = new DataView(batch.buffer, batch.byteOffset + HEADER_BYTES)
      const sizes: number[] = []
      for (let at = 16; at < view.byteLength; at += 4 + view.getInt32(at)) sizes.push(view.getUint8(at + 4))
      return { head: hexOf(batch.subarray(HEADER_BYTES, HEADER_BYTES + 16)), count: sizes.length }
    }
    const fixture = compressed.find(({ name }) => name === 'snappy, several blocks') as Fixture
    const rows = columnsOf(given(fixture))
    const compression = { type: 2, port: codecs }
    const ours = encodeBatch(rows, 0, 2, defaultCodec, { baseOffset: 0, leaderEpoch: 3, compression })
    expect(blocks(ours)).toEqual(blocks(bytesOf(fixture.bytes)))
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
      const rows = decodeBatch(batch, 2, defaultCodec, codecs)
      expect(rows.offsetAt(records.length - 1)).toBe(5_000_000_000 + records.length - 1)
    },
  )

  const plain = fixtures('kafka-python').filter(
    ({ bytes }) => readHeader(bytesOf(bytes), 0).compression === 0,
  )
  it.each(plain)('are what we write, too: $name', (fixture) => {
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
