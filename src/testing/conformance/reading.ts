/** Conformance: peek, load and read, the two views of a batch, and finding records by time. */
import { PoisonValue } from '../../log/contract.ts'
import { noCompression } from '../../log/format/compression.ts'
import { crc32c } from '../../log/format/crc32c.ts'
import { ATTRIBUTES_AT, CRC_AT, IN_PROCESS } from '../../log/format/layout.ts'
import { decodeBatch, encodeBatch, readHeader } from '../../log/format/record-batch.ts'
import { Slice } from '../../model/batch.ts'
import { RecordHeaders } from '../../model/record.ts'
import { defaultCodec, JSON_TYPE } from '../../model/value-codec.ts'
import type { LogCase, Row } from './kit.ts'
import {
  accept,
  batchOf,
  check,
  columnsOf,
  openLog,
  publish,
  readRows,
  rejects,
  rowsOf,
  same,
  specOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatch,
  wireBatchOf,
} from './kit.ts'

const PLENTY = 1_000_000

const MIXED: readonly Row[] = [
  { value: 'a', key: 'k', timestamp: T0 },
  { value: null, key: 'k', timestamp: T0 + 7 },
  {
    value: { deep: [1, { x: null }] },
    headers: new RecordHeaders([
      ['h', 'v'],
      ['h', null],
    ]),
    timestamp: T0 + 7,
  },
  { value: new Uint8Array([0, 255]), key: new Uint8Array([200, 1]), timestamp: T0 + 9 },
]

/** Offsets and sizes of the batches in a Fetch's bytes. */
function batchesIn(bytes: Uint8Array): { base: number; next: number }[] {
  const found: { base: number; next: number }[] = []
  for (let at = 0; at < bytes.length; ) {
    const { baseOffset, lastOffsetDelta, sizeBytes } = readHeader(bytes, at)
    found.push({ base: baseOffset, next: baseOffset + lastOffsetDelta + 1 })
    at += sizeBytes
  }
  return found
}

function valuesIn(bytes: Uint8Array): unknown[] {
  const values: unknown[] = []
  for (let at = 0; at < bytes.length; at += readHeader(bytes, at).sizeBytes) {
    const rows = decodeBatch(bytes, at, defaultCodec, noCompression)
    values.push(...rows.values.slice(0, rows.count))
  }
  return values
}

/** As somebody who read it sends it on: without the mark that says who checked its values. */
function sentOn(bytes: Uint8Array): Uint8Array {
  const { attributes } = readHeader(bytes, 0)
  if ((attributes & IN_PROCESS) === 0) return bytes
  const copy = bytes.slice()
  const view = new DataView(copy.buffer)
  view.setInt16(ATTRIBUTES_AT, attributes & ~IN_PROCESS)
  view.setUint32(CRC_AT, crc32c(copy.subarray(ATTRIBUTES_AT)))
  return copy
}

/** A batch whose header and CRC are sound and whose records are not. */
function brokenBatch(count: number): Uint8Array {
  const rows = columnsOf(valuesFrom(0, count).map((value) => ({ value })))
  const bytes = encodeBatch(rows, 0, count, defaultCodec, { baseOffset: 0, leaderEpoch: 0 })
  bytes.fill(0xff, 61)
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(17, crc32c(bytes.subarray(21)))
  return bytes
}

export const READING: readonly LogCase[] = [
  {
    title: 'peek answers hit, end or range, and never more than it was asked for',
    needs: ['synchronous appends', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 5 })
      const slice = new Slice()
      same(log.peek(0, 10, 'committed', slice), 'end', 'an empty log')
      await publish(log, valuesFrom(0, 8))
      for (const offset of [0, 2, 9, -1])
        same(log.peek(offset, 10, 'committed', slice), 'range', `at ${offset}`)
      same(log.peek(8, 10, 'committed', slice), 'end', 'at the end')
      const roomy = await engine.openLog(specOf(undefined, 'topic-2'))
      await publish(roomy, valuesFrom(0, 8))
      await roomy.load(0, PLENTY, 'committed')
      const result = roomy.peek(3, 2, 'committed', slice)
      check(result === 'hit' || result === 'miss', 'what is kept is a hit or a miss')
      if (result === 'hit') check(slice.count >= 1 && slice.count <= 2, 'at most two rows')
    },
  },
  {
    title: 'load answers what peek would, at least a row, and no more bytes than it was asked for',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, valuesFrom(0, 50))
      const all = await log.load(10, PLENTY, 'committed')
      check(all.count > 1, 'more than one row')
      same(rowsOf(all)[0]?.offset, 10, 'the first row')
      const one = await log.load(10, 1, 'committed')
      same([one.count, one.next, rowsOf(one)[0]?.value], [1, 11, 10], 'a row that is larger than asked for')
      const none = await log.load(50, PLENTY, 'committed')
      same([none.count, none.next], [0, 50], 'at the end')
    },
  },
  {
    title: 'reads outside of the log are OFFSET_OUT_OF_RANGE, aborted ones are ABORTED',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, [0, 1, 2])
      await log.trim(2)
      for (const offset of [log.marks.start - 1, 4]) {
        await rejects(log.load(offset, PLENTY, 'committed'), 'OFFSET_OUT_OF_RANGE', `load at ${offset}`)
        await rejects(log.read(offset, PLENTY, 'committed'), 'OFFSET_OUT_OF_RANGE', `read at ${offset}`)
      }
      const aborted = AbortSignal.abort()
      await rejects(log.load(2, PLENTY, 'committed', aborted), 'ABORTED', 'load')
      await rejects(log.read(2, PLENTY, 'committed', aborted), 'ABORTED', 'read')
    },
  },
  {
    title: 'columns read as bytes and appended elsewhere are the same records',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const copy = await engine.openLog(specOf(undefined, 'topic-2'))
      await accept(log, batchOf(MIXED))
      const { bytes, next, aborted } = await log.read(0, PLENTY, 'uncommitted')
      same([next, aborted], [MIXED.length, []], 'next and aborted transactions')
      await accept(copy, wireBatch(sentOn(bytes), MIXED.length))
      same(await readRows(copy, 0), await readRows(log, 0), 'rows')
      same((await readRows(copy, 0, 'committed', 1)).rows, (await readRows(log, 0)).rows, 'rows, one by one')
    },
  },
  {
    title: 'a wire batch is read back byte for byte, but for its offset and epoch, also after it was decoded',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['before'])
      const sent = wireBatchOf(MIXED).bytes as Uint8Array
      await accept(log, wireBatch(sent, MIXED.length))
      await readRows(log, 0)
      const { bytes, next } = await log.read(1, PLENTY, 'committed')
      same(next, 1 + MIXED.length, 'next')
      same(bytes.subarray(16), sent.subarray(16), 'bytes from the magic on')
      const header = readHeader(bytes, 0)
      same([header.baseOffset, header.leaderEpoch], [1, log.marks.epoch], 'offset and epoch')
      same(crc32c(bytes.subarray(21)), header.crc, 'CRC')
    },
  },
  {
    title: 'read answers whole batches in order, at least one, within the bytes asked for',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['a', 'b'])
      const wire = wireBatchOf([{ value: 'c' }, { value: 'd' }, { value: 'e' }])
      await accept(log, wire)
      await accept(log, wire)
      await publish(log, ['f'])
      const all = await log.read(0, PLENTY, 'committed')
      same([valuesIn(all.bytes), all.next], [['a', 'b', 'c', 'd', 'e', 'c', 'd', 'e', 'f'], 9], 'all of it')
      const inside = await log.read(3, PLENTY, 'committed')
      same(batchesIn(inside.bytes)[0], { base: 2, next: 5 }, 'the batch that holds the offset')
      same(inside.next, 9, 'next')
      const one = await log.read(3, 1, 'committed')
      same([batchesIn(one.bytes), one.next], [[{ base: 2, next: 5 }], 5], 'a batch larger than asked for')
      const two = await log.read(2, 2 * wire.sizeBytes, 'committed')
      same([batchesIn(two.bytes).map((batch) => batch.next), two.next], [[5, 8], 8], 'two that fit')
      const end = await log.read(9, PLENTY, 'committed')
      same([end.bytes.length, end.next], [0, 9], 'at the end')
    },
  },
  {
    title: 'reading as bytes again and again shows every record once, also while the log grows',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const seen: unknown[] = []
      let next = 0
      for (let i = 0; i < 40; i++) {
        await publish(log, i % 7 === 0 ? [] : [i])
        if (i % 5 === 0) await accept(log, wireBatchOf([{ value: 'wire' }]))
        const slice = await log.read(next, 300, 'committed')
        seen.push(...valuesIn(slice.bytes))
        next = slice.next
      }
      while (next < log.marks.end) {
        const slice = await log.read(next, 300, 'committed')
        seen.push(...valuesIn(slice.bytes))
        next = slice.next
      }
      same(seen, await valuesOf(log, 0), 'values')
    },
  },
  {
    title: 'an undecodable batch is one row of poison, wherever it is entered, and the next batch follows',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const broken = brokenBatch(3)
      await accept(log, wireBatchOf([{ value: 'before' }]))
      await accept(log, wireBatch(broken, 3))
      await accept(log, wireBatchOf([{ value: 'after' }]))
      for (const [from, offsets] of [
        [0, [0, 1, 4]],
        [3, [3, 4]],
      ] as const) {
        const { rows, next } = await readRows(log, from)
        same([rows.map((row) => row.offset), next], [offsets, 5], `offsets from ${from}`)
        const poison = rows.at(-2)?.value
        check(poison instanceof PoisonValue, 'the value is poison')
        same(poison.bytes.length, broken.length, 'its bytes are the batch')
        same(rows.at(-1)?.value, 'after', 'the next batch')
      }
      same((await log.read(1, PLENTY, 'committed')).next, 5, 'as bytes it is like any other')
    },
  },
  {
    title: 'a value that does not decode is poison by itself',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const claimsJson = (value: unknown) => ({ bytes: value as Uint8Array, contentType: JSON_TYPE })
      const rows = columnsOf(['1', '{', '3'].map((text) => ({ value: new TextEncoder().encode(text) })))
      const codec = { ...defaultCodec, encode: claimsJson }
      const bytes = encodeBatch(rows, 0, 3, codec, { baseOffset: 0, leaderEpoch: 0 })
      await accept(log, wireBatch(bytes, 3))
      const [first, second, third] = await valuesOf(log, 0)
      check(second instanceof PoisonValue, 'the value that is no JSON is poison')
      same([first, second.bytes, third], [1, new Uint8Array([123]), 3], 'its bytes and its neighbours')
    },
  },
  {
    title: 'offsetAt finds the first kept record at or after a time',
    needs: ['synchronous appends', 'wire batches', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine)
      same(await log.offsetAt(0), undefined, 'in an empty log')
      same(await log.newest(), undefined, 'the newest of an empty log')
      for (const ms of [0, 10, 10, 20]) log.tryAppendOne(ms, null, null, T0 + ms, 100)
      await accept(log, wireBatchOf([30, 15, 40].map((ms) => ({ value: ms, timestamp: T0 + ms }))))
      for (const [ms, offset] of [
        [-5, 0],
        [0, 0],
        [1, 1],
        [10, 1],
        [15, 3],
        [21, 4],
        [31, 6],
      ] as const) {
        same((await log.offsetAt(T0 + ms))?.offset, offset, `at ${ms} ms`)
      }
      same(await log.offsetAt(T0 + 41), undefined, 'after the newest')
      same(await log.offsetAt(T0 + 12), { offset: 3, timestamp: T0 + 20 }, 'with its own timestamp')
      same(await log.newest(), { offset: 6, timestamp: T0 + 40 }, 'the newest')
      await log.trim(2)
      same((await log.offsetAt(T0))?.offset, 2, 'evicted records are not found')
      await log.trim(5)
      same((await log.offsetAt(T0))?.offset, 5, 'inside a wire batch')
      await log.trim(7)
      same([await log.offsetAt(T0), await log.newest()], [undefined, undefined], 'when nothing is kept')
    },
  },
  {
    title: 'the newest timestamp is that of a kept record, the first that has it',
    needs: ['wire batches', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wireBatchOf([90, 20, 30].map((ms) => ({ value: ms, timestamp: T0 + ms }))))
      await accept(log, wireBatchOf([30, 30].map((ms) => ({ value: ms, timestamp: T0 + ms }))))
      same(await log.newest(), { offset: 0, timestamp: T0 + 90 }, 'at first')
      await log.trim(1)
      same(await log.newest(), { offset: 2, timestamp: T0 + 30 }, 'once the newest is evicted')
    },
  },
  {
    title: 'the current epoch ends at the end, unknown ones have no end',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, [0, 1])
      const { epoch } = log.marks
      same(log.epochEnd(epoch), { epoch, endOffset: 2 }, 'the current epoch')
      same(log.epochEnd(epoch + 1), undefined, 'a later one')
    },
  },
]
