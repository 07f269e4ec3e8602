/** Batches without records, which Kafka's own compaction leaves: they take offsets, and are whole. */
import { describe, expect, it } from 'vitest'
import { writeCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { Segments } from '../../../src/log/file/segments.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { decodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readIncoming } from '../../../src/log/format/intake.ts'
import { writeInt16, writeInt32 } from '../../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, CONTROL, LAST_DELTA_AT } from '../../../src/log/format/layout.ts'
import { decodeBatch, readHeader, validateBatch } from '../../../src/log/format/record-batch.ts'
import { BatchScan } from '../../../src/log/format/scan.ts'
import { PartitionState } from '../../../src/log/state.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { valuesOf } from '../../../src/testing/conformance/kit.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { batchAt, emptied, joined, transactional } from './batches.ts'
import { Machine } from './engine-kit.ts'
import { append, optionsOf, verify } from './segments-kit.ts'

const producer = { id: 7, epoch: 0, sequence: 3, transactional: false }

describe('a batch without records', () => {
  it('is read by its header, and decoded to nothing', () => {
    const bytes = emptied(40, 5, producer)
    expect(validateBatch(bytes, 0, crc32c)).toMatchObject({ count: 0, lastOffsetDelta: 4, baseOffset: 40 })
    expect(decodeBatch(bytes, 0, defaultCodec, noCompression).count).toBe(0)
    const scan = new BatchScan({ crc32c }).start(joined([bytes, batchAt(45, { deltas: 1 })]))
    expect([scan.next(), scan.last, scan.count]).toEqual([true, 44, 0])
    expect([scan.next(), scan.base, scan.next(), scan.end]).toEqual([true, 45, false, 'end'])
  })

  it('that takes no offset either is none', () => {
    const bytes = emptied(40, 1, producer)
    writeInt32(bytes, LAST_DELTA_AT, -1)
    expect(() => readHeader(bytes, 0)).toThrow('0 records up to offset delta -1')
    expect(new BatchScan().start(bytes).next()).toBe(false)
  })

  it('is no marker, if it is a control batch', () => {
    const bytes = emptied(0, 1, transactional(7))
    writeInt16(bytes, ATTRIBUTES_AT, CONTROL)
    expect(decodeMarker(bytes, 0)).toBeNull()
  })

  it('with a record in it is decoded to an error', () => {
    const bytes = batchAt(0, { deltas: 1 })
    writeInt32(bytes, 57, 0)
    expect(() => decodeBatch(bytes, 0, defaultCodec, noCompression)).toThrow('bytes follow the last record')
  })

  it('is not taken from a producer', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    for (const span of [1, 3]) {
      const bytes = emptied(0, span, producer)
      const batch = { count: 0, sizeBytes: bytes.length, bytes, columns: null, producer }
      expect(readIncoming(batch, null, crc32c, 0)).toBe('INVALID')
      expect(log.tryAppend(batch)).toBe('INVALID')
    }
    expect(log.marks.end).toBe(0)
  })

  it.each([
    ['first', [emptied(0, 3, producer), batchAt(3, { deltas: 2 })], [3, 4]],
    [
      'between others',
      [batchAt(0, { deltas: 2 }), emptied(2, 3, producer), batchAt(5, { deltas: 1 })],
      [0, 1, 5],
    ],
    ['last', [batchAt(0, { deltas: 2 }), emptied(2, 4, producer)], [0, 1]],
    ['alone', [emptied(0, 2, producer), emptied(2, 1, transactional(8))], []],
  ] as const)('is passed by in a log on the disk where it is %s', async (_, batches, offsets) => {
    const fs = new SimFs()
    await stored(fs, batches)
    const end = readHeader(batches.at(-1) as Uint8Array, 0)
    const machine = await Machine.on(fs)
    const log = await machine.log('t')
    expect(log.marks).toMatchObject({ start: 0, high: end.baseOffset + end.lastOffsetDelta + 1 })
    for (let from = 0; from <= log.marks.high; from++) {
      expect(await valuesOf(log, from)).toEqual(offsets.filter((offset) => offset >= from))
    }
    // As it is, to a client that speaks the protocol.
    const { bytes } = await log.read(0, 1_000_000, 'committed')
    expect(bytes).toEqual(joined(batches))
    expect(machine.reports).toEqual([])
    await machine.engine.close()
    const next = await Machine.on(fs)
    expect(await valuesOf(await next.log('t'), 0)).toEqual(offsets)
  })
})

/** The log `t` of a directory that was closed, with these batches. */
async function stored(fs: SimFs, batches: readonly Uint8Array[]): Promise<void> {
  const segments = await Segments.restore(optionsOf(fs), [])
  await append(segments, ...batches)
  await segments.sync()
  expect(await verify(fs, segments.stored())).toEqual([])
  const state = new PartitionState()
  state.epochStarted(0, 0)
  const marks = { start: 0, end: segments.next, epoch: 0, stamped: 0 }
  const log = { topicId: 't', partition: 0, topic: 't', ...marks, segments: segments.stored() }
  await writeCheckpoint(
    fs,
    {
      format: 1,
      sequence: 0,
      clean: true,
      durability: 'fsync',
      seed: 1,
      logs: [{ ...log, state: state.toJSON() }],
      deleting: [],
      meta: [],
    },
    crc32c,
  )
}
