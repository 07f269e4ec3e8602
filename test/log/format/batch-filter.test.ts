import { describe, expect, it } from 'vitest'
import { BatchBuilder, type FinishOptions } from '../../../src/log/format/batch-builder.ts'
import { BatchFilter } from '../../../src/log/format/batch-filter.ts'
import { type CompressionPort, noCompression } from '../../../src/log/format/compression.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { writeInt32 } from '../../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, COUNT_AT, CRC_AT } from '../../../src/log/format/layout.ts'
import { decodeBatch, readHeader, validateBatch } from '../../../src/log/format/record-batch.ts'
import { BatchScan } from '../../../src/log/format/scan.ts'
import { type Key, RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { codeThrown } from '../../support/world.ts'
import { Dice } from '../../torture/dice.ts'

const T0 = 1_767_225_600_000

const reversed: CompressionPort = {
  compress: (_, bytes) => bytes.slice().reverse(),
  decompress: (_, bytes) => bytes.slice().reverse(),
}

interface Said {
  readonly key: Key | null
  readonly value: Uint8Array | null
  readonly headers: RecordHeaders | null
  readonly timestamp: number
  readonly delta: number
}

function recordsBy(dice: Dice): Said[] {
  let delta = -1
  return Array.from({ length: 1 + dice.below(30) }, () => {
    delta += dice.chance(0.2) ? 1 + dice.below(300) : 1
    return {
      key: dice.chance(0.1)
        ? null
        : dice.chance(0.5)
          ? `key ${dice.below(9)}`
          : new Uint8Array([0xff, dice.below(9)]),
      value: dice.chance(0.3) ? null : new Uint8Array(dice.below(300)).fill(dice.below(256)),
      headers: dice.chance(0.3) ? new RecordHeaders([['h', 'x'.repeat(dice.below(200))]]) : null,
      timestamp: T0 + (dice.chance(0.5) ? dice.below(100) : dice.below(2 ** 40) - 2 ** 39),
      delta,
    }
  })
}

function batchOf(said: readonly Said[], options: Partial<FinishOptions> = {}): Uint8Array {
  const builder = new BatchBuilder()
  builder.open(1000, said[0]?.timestamp ?? T0)
  for (const { key, value, headers, timestamp, delta } of said) {
    builder.add(value, key, headers, timestamp, undefined, delta)
  }
  return builder.finish({ leaderEpoch: 7, ...options })
}

function rowsOf(batch: Uint8Array): unknown[] {
  const rows = decodeBatch(batch, 0, { ...defaultCodec, decode: (bytes) => bytes }, reversed)
  return Array.from({ length: rows.count }, (_, row) => [
    rows.offsetAt(row),
    rows.keyAt(row),
    rows.values[row],
    [...(rows.headersAt(row) ?? [])],
    rows.timestampAt(row),
  ])
}

function scanned(batch: Uint8Array): BatchScan {
  const scan = new BatchScan({ crc32c }).start(batch)
  expect(scan.next()).toBe(true)
  return scan
}

describe('a batch that is filtered', () => {
  it.each([
    ['plain', 0],
    ['compressed', 2],
  ])('%s: has what was kept, and nothing of it has changed', (_, type) => {
    for (let seed = 0; seed < 300; seed++) {
      const dice = new Dice(seed)
      const said = recordsBy(dice)
      const producer = { id: 5, epoch: 1, sequence: 77, transactional: true }
      const batch = batchOf(said, { compression: { type, port: reversed }, producer, inProcess: true })
      const filter = new BatchFilter(reversed, crc32c)
      const kept: number[] = []
      const share = dice.share()
      let row = 0
      for (const records = filter.open(batch, scanned(batch)); records.next(); row++) {
        const { key, value, delta } = said[row] as Said
        expect([records.offsetDelta, records.keyEnd < 0, records.isTombstone]).toEqual([
          delta,
          key === null,
          value === null,
        ])
        if (!dice.chance(share)) continue
        filter.keep()
        kept.push(row)
      }
      expect([seed, row, filter.count]).toEqual([seed, said.length, kept.length])
      if (kept.length === 0) continue
      const horizon = dice.chance(0.5) ? T0 + dice.below(2 ** 41) : undefined
      const left = filter.finish(horizon)
      expect([seed, rowsOf(left)]).toEqual([seed, rowsOf(batch).filter((__, i) => kept.includes(i))])
      const [was, is] = [readHeader(batch, 0), validateBatch(left, 0, crc32c)]
      expect(is).toEqual({
        ...was,
        count: kept.length,
        sizeBytes: left.length,
        crc: is.crc,
        maxTimestamp: Math.max(...kept.map((i) => (said[i] as Said).timestamp)),
        ...(horizon === undefined
          ? {}
          : { deleteHorizon: true, baseTimestamp: horizon, attributes: was.attributes | 64 }),
      })
      if (kept.length === said.length && horizon === undefined) expect(left.buffer).toBe(batch.buffer)
    }
  })

  describe('and is not what it claims', () => {
    const one = [{ key: 'k', value: null, headers: null, timestamp: T0, delta: 0 }]
    const two = [...one, { key: 'k', value: null, headers: null, timestamp: T0, delta: 1 }]

    function walk(batch: Uint8Array): void {
      const filter = new BatchFilter(noCompression, crc32c)
      for (const records = filter.open(batch, scanned(batch)); records.next(); );
    }

    /** With another byte at `at` of its records. */
    function changed(said: readonly Said[], at: number, byte: number): Uint8Array {
      const batch = batchOf(said)
      batch[61 + at] = byte
      writeInt32(batch, CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)))
      return batch
    }

    // A record of these: size, attributes, time, offset, size of the key, key, size of the value, headers.
    it.each([
      ['a record beyond the batch', changed(one, 0, 0x40)],
      ['a negative size', changed(one, 0, 0x01)],
      ['a key beyond its record', changed(one, 4, 0x40)],
      ['a value beyond its record', changed(one, 6, 0x40)],
      ['bytes behind the last record', changed(one, 0, 0x0c)],
      ['offsets that do not grow', changed(two, 8 + 3, 0x00)],
    ])('is refused: %s', (_, batch) => {
      expect(codeThrown(() => walk(batch))).toBe('CORRUPT_LOG')
    })

    it('is refused: more records than there can be', () => {
      const batch = batchOf(one)
      writeInt32(batch, COUNT_AT, 9)
      const scan = new BatchScan().start(batch)
      scan.next()
      scan.count = 9
      expect(codeThrown(() => new BatchFilter(noCompression, crc32c).open(batch, scan))).toBe('CORRUPT_LOG')
    })

    it('is refused: a codec that is not here', () => {
      expect(codeThrown(() => walk(batchOf(one, { compression: { type: 1, port: reversed } })))).toBe(
        'UNSUPPORTED',
      )
    })

    it('is taken as it is otherwise', () => walk(batchOf(two)))
  })
})
