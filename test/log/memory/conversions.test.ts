/** The second view of a segment: made once, counted, given up first, and never at a record's cost. */
import { describe, expect, it } from 'vitest'
import { PoisonValue, type RetentionLimits } from '../../../src/log/contract.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { decodeBatch, encodeBatch, readHeader } from '../../../src/log/format/record-batch.ts'
import { MemoryLog } from '../../../src/log/memory/memory-log.ts'
import { Slice } from '../../../src/model/batch.ts'
import { RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec, UNENCODABLE_HEADER } from '../../../src/model/value-codec.ts'
import {
  accept,
  columnsOf,
  keeping,
  readRows,
  specOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatch,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const PLENTY = 1_000_000

/** A log, and how often a value was converted. */
function countingLog(limits: Partial<RetentionLimits> = {}) {
  const counts = { encoded: 0, decoded: 0 }
  const codec = {
    encode(value: unknown) {
      counts.encoded++
      return defaultCodec.encode(value)
    },
    decode(bytes: Uint8Array | null, contentType: string | undefined) {
      counts.decoded++
      return defaultCodec.decode(bytes, contentType)
    },
  }
  const log = new MemoryLog({ ...specOf(keeping(limits)), codec }, { clock: new ManualClock() })
  return { log, counts }
}

function fill(log: MemoryLog, count: number, value: unknown = 'v', sizeBytes = 100): void {
  for (let i = 0; i < count; i++) log.tryAppendOne(value, null, null, T0, sizeBytes)
}

async function readAll(log: MemoryLog, from = log.marks.start): Promise<Uint8Array[]> {
  const batches: Uint8Array[] = []
  for (let next = from; next < log.marks.end; ) {
    const slice = await log.read(next, PLENTY, 'committed')
    batches.push(slice.bytes)
    next = slice.next
  }
  return batches
}

describe('columns to bytes', () => {
  it('happens once, however often they are read', async () => {
    const { log, counts } = countingLog()
    fill(log, 100)
    await readAll(log)
    await readAll(log, 50)
    expect(counts.encoded).toBe(100)
    fill(log, 10)
    await readAll(log)
    await log.read(105, 1, 'committed')
    expect(counts.encoded).toBe(110)
  })

  it('goes no further than a reader asks', async () => {
    const { log, counts } = countingLog()
    fill(log, 5000)
    const { next } = await log.read(0, 1, 'committed')
    expect(counts.encoded).toBe(next)
    expect(next).toBeLessThan(1000)
  })

  it('does not happen between readers in the process', async () => {
    const { log, counts } = countingLog()
    const value = { not: new Map() }
    fill(log, 10, value)
    const { rows } = await readRows(log, 0)
    expect(rows[3]?.value).toBe(value)
    expect(counts).toEqual({ encoded: 0, decoded: 0 })
  })

  it('shows a value that no codec takes as a null that says why, and its neighbours as they are', async () => {
    const { log } = countingLog()
    fill(log, 1, 'before')
    log.tryAppendOne(() => 0, 'k', new RecordHeaders([['h', 'kept']]), T0, 100)
    log.tryAppendOne(new Map(), null, null, T0, 100)
    fill(log, 1, 'after')
    const { bytes, next } = await log.read(0, PLENTY, 'committed')
    const rows = decodeBatch(bytes, 0, defaultCodec, noCompression)
    expect([next, rows.count]).toEqual([4, 4])
    expect(rows.values.slice(0, 4)).toEqual(['before', null, null, 'after'])
    expect([rows.keyAt(1), rows.headersAt(1)?.get('h')]).toEqual(['k', 'kept'])
    expect(rows.headersAt(1)?.get(UNENCODABLE_HEADER)).toContain('a value of type function')
    expect(rows.headersAt(2)?.get(UNENCODABLE_HEADER)).toContain('an instance of Map')
    expect(rows.headersAt(3)?.get(UNENCODABLE_HEADER)).toBeUndefined()
  })

  it('lets a fault in a codec be seen', async () => {
    const spec = {
      ...specOf(),
      codec: {
        ...defaultCodec,
        encode: () => {
          throw new RangeError('a bug')
        },
      },
    }
    const log = new MemoryLog(spec, { clock: new ManualClock() })
    fill(log, 1)
    await expect(log.read(0, PLENTY, 'committed')).rejects.toThrow('a bug')
    const sent = { count: 1, sizeBytes: 1, bytes: null, columns: columnsOf([{ value: 1 }]) }
    const producer = { id: 1, epoch: 0, sequence: 0, transactional: false }
    expect(() => log.tryAppend({ ...sent, producer })).toThrow('a bug')
  })

  it('uses the CRC that the composition root has', async () => {
    let used = 0
    const native = (bytes: Uint8Array): number => {
      used++
      return crc32c(bytes)
    }
    const log = new MemoryLog(specOf(), { clock: new ManualClock(), crc32c: native })
    fill(log, 1)
    await log.read(0, PLENTY, 'committed')
    expect(used).toBe(1)
    await accept(log, wireBatchOf([{ value: 1 }]))
    expect(used).toBe(2)
  })
})

describe('bytes to columns', () => {
  const batch = wireBatchOf(valuesFrom(0, 10).map((value) => ({ value })))

  it('happens once, however often they are read', async () => {
    const { log, counts } = countingLog()
    await accept(log, batch)
    await readRows(log, 0, 'committed', 1)
    await readRows(log, 3)
    expect(counts.decoded).toBe(10)
    await accept(log, batch)
    await readRows(log, 0)
    expect(counts.decoded).toBe(20)
  })

  it('does not happen between a producer and a consumer on the wire', async () => {
    const { log, counts } = countingLog()
    await accept(log, batch)
    await readAll(log)
    expect(counts).toEqual({ encoded: 0, decoded: 0 })
  })

  it('is a miss until it was loaded, and goes no further than a reader asks', async () => {
    const { log, counts } = countingLog()
    for (let i = 0; i < 50; i++) await accept(log, batch)
    const slice = new Slice()
    expect(log.peek(25, 5, 'committed', slice)).toBe('miss')
    expect((await log.load(25, 1, 'committed')).count).toBe(1)
    expect(counts.decoded).toBe(30)
    expect([log.peek(25, 9, 'committed', slice), slice.count]).toEqual(['hit', 5])
    expect(log.peek(30, 9, 'committed', slice)).toBe('miss')
  })

  it('says that its rows came from foreign bytes', async () => {
    const { log } = countingLog()
    fill(log, 1)
    await accept(log, batch)
    const slice = new Slice()
    log.peek(0, 1, 'committed', slice)
    expect(slice.columns.foreign).toBe(false)
    expect((await log.load(1, 1, 'committed')).columns.foreign).toBe(true)
  })

  it('asks the composition root for compression', async () => {
    const compressed = gzipLike(batch.bytes as Uint8Array)
    const without = new MemoryLog(specOf(), { clock: new ManualClock() })
    await accept(without, wireBatch(compressed, 10))
    expect(await valuesOf(without, 0)).toEqual([expect.any(PoisonValue)])
    const records = (batch.bytes as Uint8Array).slice(61)
    const compression = { compress: () => records, decompress: () => records }
    const log = new MemoryLog(specOf(), { clock: new ManualClock(), compression })
    await accept(log, wireBatch(compressed, 10))
    expect(await valuesOf(log, 0)).toEqual(valuesFrom(0, 10))
  })

  it('takes records that do not match their header for poison', async () => {
    const rows = columnsOf(valuesFrom(0, 2).map((value) => ({ value })))
    rows.offsets = new Float64Array([0, 5])
    const gap = encodeBatch(rows, 0, 2, defaultCodec, { baseOffset: 0, leaderEpoch: 0 })
    const view = new DataView(gap.buffer, gap.byteOffset)
    view.setInt32(23, 1)
    view.setUint32(17, crc32c(gap.subarray(21)))
    const { log } = countingLog()
    await accept(log, wireBatch(gap, 2))
    expect(await valuesOf(log, 0)).toEqual([expect.any(PoisonValue)])
    expect(log.marks.end).toBe(2)
  })
})

describe('conversions', () => {
  it('are counted until their segment is evicted', async () => {
    const { log } = countingLog()
    fill(log, 10)
    expect(log.cachedBytes).toBe(0)
    const [bytes] = await readAll(log)
    expect(log.cachedBytes).toBe(bytes?.length)
    await accept(log, wireBatchOf([{ value: 'decode me' }]))
    const encoded = log.cachedBytes
    await readRows(log, 0)
    expect(log.cachedBytes).toBeGreaterThan(encoded)
    await log.trim(10)
    expect(log.cachedBytes).toBeGreaterThan(0)
    await log.trim(11)
    expect(log.cachedBytes).toBe(0)
  })

  it('hold an eighth of retention, the newest of them, and no record has to go for them', async () => {
    const { log, counts } = countingLog({ records: 16_000, bytes: 2_000_000 })
    fill(log, 16_000, 'x'.repeat(100))
    await readAll(log)
    expect(counts.encoded).toBe(16_000)
    expect([log.records, log.sizeBytes]).toEqual([16_000, 1_600_000])
    expect(log.cachedBytes).toBeLessThanOrEqual(250_000)
    expect(log.cachedBytes).toBeGreaterThan(100_000)
    await log.read(15_900, PLENTY, 'committed')
    expect(counts.encoded).toBe(16_000)
    await log.read(0, 1, 'committed')
    expect(counts.encoded).toBeGreaterThan(16_000)
  })

  it('keep the newest one even when it is larger than that', async () => {
    const { log, counts } = countingLog({ bytes: 5000 })
    await accept(log, wireBatchOf([{ value: 'x'.repeat(2000) }, { value: 'y' }]))
    await accept(log, wireBatchOf([{ value: 'x'.repeat(2000) }, { value: 'y' }]))
    await readRows(log, 0, 'committed', 1)
    expect(counts.decoded).toBe(4)
    expect(log.cachedBytes).toBeGreaterThan(2000)
  })

  it('that are continued count as new', async () => {
    const { log, counts } = countingLog({ bytes: 80_000 })
    const batch = wireBatchOf([{ value: 'x'.repeat(2300) }])
    for (let i = 0; i < 6; i++) await accept(log, batch)
    for (const offset of [0, 3, 4, 1]) await log.load(offset, 1, 'committed')
    expect(counts.decoded).toBe(5)
    const slice = new Slice()
    const results = [0, 1, 2, 3, 4, 5].map((offset) => log.peek(offset, 9, 'committed', slice))
    expect(results).toEqual(['hit', 'hit', 'miss', 'miss', 'hit', 'miss'])
  })

  it('are given up when retention shrinks', async () => {
    const { log } = countingLog()
    fill(log, 3000)
    await readAll(log)
    const before = log.cachedBytes
    log.configure(keeping({ bytes: 300_000 }))
    expect(log.records).toBe(3000)
    expect(log.cachedBytes).toBeLessThanOrEqual(300_000 / 8)
    expect(log.cachedBytes).toBeLessThan(before)
  })

  it('are made again in the same way after they were given up', async () => {
    const { log } = countingLog({ bytes: 400_000 })
    const batch = wireBatchOf([{ value: 'x'.repeat(20_000) }, { value: 1 }])
    for (let i = 0; i < 10; i++) await accept(log, batch)
    const first = await readRows(log, 0)
    expect(await readRows(log, 0)).toEqual(first)
    expect(first.rows).toHaveLength(20)
  })
})

/** The batch with its compression bits set to gzip, its records as they are. */
function gzipLike(batch: Uint8Array): Uint8Array {
  const bytes = batch.slice()
  bytes[22] = 1
  new DataView(bytes.buffer).setUint32(17, crc32c(bytes.subarray(21)))
  expect(readHeader(bytes, 0).compression).toBe(1)
  return bytes
}
