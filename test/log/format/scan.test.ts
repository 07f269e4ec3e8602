import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import { encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import type { ScanOptions } from '../../../src/log/format/scan.ts'
import { BatchScan } from '../../../src/log/format/scan.ts'

const NOW = 1_700_000_000_000
const producer = { id: 2 ** 40, epoch: 7, sequence: 11, transactional: true }

/** Three batches: plain of two records, of a producer in a transaction, a marker. */
const parts = [batch(0, 2), batch(2, 3, producer), marker(5)]
const run = joined(parts)
const boundaries = [0, ...parts.map((_, i) => joined(parts.slice(0, i + 1)).length)]

function batch(base: number, count: number, by: typeof producer | null = null): Uint8Array {
  const builder = new BatchBuilder()
  builder.open(base, NOW)
  for (let i = 0; i < count; i++) builder.add(Uint8Array.of(i, base), 'k', null, NOW + i)
  return builder.finish({ leaderEpoch: 4, producer: by })
}

function marker(base: number): Uint8Array {
  const options = { baseOffset: base, leaderEpoch: 4, producerId: 2 ** 40, producerEpoch: 7, timestamp: NOW }
  return encodeMarker({ commit: true, coordinatorEpoch: 0 }, options)
}

function joined(all: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(all.flatMap((bytes) => [...bytes]))
}

/** Positions of the batches found, and how it ended where. */
function scanned(bytes: Uint8Array, options: ScanOptions = { crc32c }) {
  const scan = new BatchScan(options).start(bytes)
  const found: number[] = []
  while (scan.next()) found.push(scan.position)
  return { found, end: scan.end, position: scan.position, sizeBytes: scan.sizeBytes, fault: scan.fault }
}

describe('a scan', () => {
  it('tells of each batch what its header says', () => {
    const scan = new BatchScan({ crc32c }).start(run)
    for (let at = 0; at < run.length; at += scan.sizeBytes) {
      expect(scan.next()).toBe(true)
      const header = readHeader(run, at)
      expect(scan).toMatchObject({
        position: at,
        sizeBytes: header.sizeBytes,
        base: header.baseOffset,
        last: header.baseOffset + header.lastOffsetDelta,
        count: header.count,
        leaderEpoch: 4,
        baseTimestamp: header.baseTimestamp,
        maxTimestamp: header.maxTimestamp,
        producerId: header.producerId,
        producerEpoch: header.producerEpoch,
        baseSequence: header.baseSequence,
        compression: 0,
        transactional: header.transactional,
        control: header.control,
        deleteHorizon: false,
        end: null,
      })
    }
    expect(scan.next()).toBe(false)
    expect(scan).toMatchObject({ end: 'end', position: run.length })
  })

  it('sees compression and a delete horizon in the attributes', () => {
    const bytes = batch(0, 1)
    bytes[22] = 64 | 4
    const scan = new BatchScan().start(bytes)
    expect(scan.next()).toBe(true)
    expect(scan).toMatchObject({ compression: 4, deleteHorizon: true, control: false })
  })

  it('of nothing ends at once, and stays there', () => {
    const scan = new BatchScan().start(new Uint8Array(0))
    expect([scan.next(), scan.next(), scan.end, scan.position]).toEqual([false, false, 'end', 0])
  })

  it('looks only at the part that it is given, and may start anew', () => {
    const scan = new BatchScan({ crc32c })
    const among = joined([Uint8Array.of(9, 9, 9), run, Uint8Array.of(9)])
    scan.start(among, 3, among.length - 1)
    const found: number[] = []
    while (scan.next()) found.push(scan.position - 3)
    expect(found).toEqual(boundaries.slice(0, -1))
    expect(scan.end).toBe('end')
    scan.start(among, 0)
    expect([scan.next(), scan.end]).toEqual([false, 'corrupt'])
    scan.start(run)
    expect([scan.next(), scan.end, scan.fault]).toEqual([true, null, ''])
  })

  it('checks no CRC where it has none', () => {
    const bytes = run.slice()
    bytes[70] = (bytes[70] as number) ^ 1
    expect(scanned(bytes, {}).end).toBe('end')
    expect(scanned(bytes)).toMatchObject({ found: [], end: 'corrupt', fault: expect.stringMatching(/CRC/) })
  })
})

describe('a scan stops', () => {
  it('before the batch that is cut, wherever that is', () => {
    for (let length = 0; length <= run.length; length++) {
      const whole = boundaries.filter((at) => at <= length)
      const last = whole.at(-1) as number
      expect(scanned(run.subarray(0, length))).toMatchObject({
        found: whole.slice(0, -1),
        end: length === last ? 'end' : 'cut',
        position: last,
      })
    }
  })

  it('saying how large the batch is that is cut, once that is known', () => {
    expect(scanned(run.subarray(0, 11))).toMatchObject({ end: 'cut', sizeBytes: 0 })
    expect(scanned(run.subarray(0, 12))).toMatchObject({ end: 'cut', sizeBytes: boundaries[1] })
  })

  it.each([12, 13, 19, 20, 4096, 100_001])('at zeros: %d of them', (count) => {
    expect(scanned(joined([run, new Uint8Array(count)]))).toMatchObject({
      found: boundaries.slice(0, -1),
      end: 'zeros',
      position: run.length,
    })
  })

  it('at zeros so few that a base offset may begin with them, as at a cut', () => {
    for (let count = 1; count < 12; count++) {
      expect(scanned(joined([run, new Uint8Array(count)]))).toMatchObject({
        end: 'cut',
        position: run.length,
      })
    }
  })

  it('at zeros with anything else behind them, wherever it is', () => {
    for (let at = 12; at < 45; at++) {
      const tail = new Uint8Array(45)
      tail[at] = 1
      expect(scanned(joined([run, tail]))).toMatchObject({ end: 'corrupt', position: run.length })
    }
  })

  it('where one bit is not what it was, but for those that a broker may set', () => {
    for (let at = 0; at < run.length; at++) {
      const bytes = run.slice()
      bytes[at] = (bytes[at] as number) ^ (1 << (at % 8))
      const index = boundaries.findLastIndex((boundary) => boundary <= at)
      const inside = at - (boundaries[index] as number)
      const result = scanned(bytes)
      if (inside < 8 || (inside >= 12 && inside < 16)) {
        expect(result.found.length).toBeGreaterThanOrEqual(index)
        continue
      }
      expect(result).toMatchObject({ found: boundaries.slice(0, index), position: boundaries[index] })
      expect(['corrupt', 'cut']).toContain(result.end)
    }
  })

  it.each([
    ['of another format', 16, [1], /magic 1/],
    ['of a negative count', 57, [255, 255, 255, 255], /-1 records/],
    ['of more records than offsets', 57, [0, 0, 0, 9], /9 records/],
    ['of a negative offset', 0, [255], /base offset/],
    ['of a producer that no number holds', 43, [127], /producer id/],
    ['shorter than its header', 8, [0, 0, 0, 48], /60 bytes/],
    ['of negative length', 8, [255], /cannot have -/],
  ])('at a header that cannot be true: %s', (_, at, values, fault) => {
    const bytes = run.slice()
    bytes.set(values, at)
    expect(scanned(bytes)).toMatchObject({
      found: [],
      end: 'corrupt',
      fault: expect.stringMatching(fault),
    })
    // As soon as it can be seen, also where the rest of the batch is missing.
    expect(scanned(bytes.subarray(0, 61)).end).toBe('corrupt')
  })

  it('at a batch larger than batches may be, without waiting for the rest of it', () => {
    const options = { crc32c, maxBatchBytes: parts[0]?.length as number }
    expect(scanned(run, options)).toMatchObject({ found: [0], end: 'corrupt', position: boundaries[1] })
    const huge = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xf0)
    expect(scanned(huge, options).end).toBe('corrupt')
    expect(scanned(huge).end).toBe('cut')
  })

  it('somewhere within the bytes, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(run.length), (noise, keep) => {
        const bytes = joined([run.subarray(0, keep), noise])
        const { found, end, position } = scanned(bytes)
        expect(position).toBeLessThanOrEqual(bytes.length)
        expect(end === 'end').toBe(position === bytes.length)
        expect(found).toEqual(boundaries.slice(0, found.length))
      }),
    )
  })
})

describe('a scan of a file in parts', () => {
  it('finds what a scan of the whole finds, however it is parted', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 120 }),
        fc.integer({ min: 0, max: 30 }),
        (counts, partBytes, zeros) => {
          let offset = 0
          const all = counts.map((count) => {
            offset += count
            return batch(offset - count, count)
          })
          const file = joined([...all, new Uint8Array(zeros)])
          const scan = new BatchScan({ crc32c })
          const found: number[] = []
          let from = 0
          let until = 0
          do {
            until = Math.min(file.length, Math.max(until, from) + partBytes)
            scan.start(file.subarray(from, until))
            while (scan.next()) found.push(from + scan.position)
            from += scan.position
          } while (until < file.length && (scan.end === 'cut' || scan.end === 'end'))
          expect({ found, from }).toEqual({
            found: scanned(file).found,
            from: scanned(file).position,
          })
        },
      ),
    )
  })
})
