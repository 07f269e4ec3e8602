/** Conformance: idempotent producers, transactions, and what isolation hides. */
import { noCompression } from '../../log/format/compression.ts'
import { decodeBatch, encodeBatch, readHeader } from '../../log/format/record-batch.ts'
import { defaultCodec } from '../../model/value-codec.ts'
import type { LogCase, Row } from './kit.ts'
import {
  accept,
  batchOf,
  check,
  checkMarks,
  columnsOf,
  markerOf,
  openLog,
  producerOf,
  publish,
  readRows,
  same,
  stateOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatch,
  wireBatchOf,
} from './kit.ts'

const PLENTY = 1_000_000
const open = (id: number, sequence: number) => producerOf(id, sequence, { transactional: true })

function wire(values: readonly unknown[], producer = producerOf(7, 0)) {
  return wireBatchOf(
    values.map((value) => ({ value })),
    producer,
  )
}

function controlOf(rows: readonly Row[]) {
  const options = { baseOffset: 0, leaderEpoch: 0, producer: open(7, 0), control: true }
  return wireBatch(encodeBatch(columnsOf(rows), 0, rows.length, defaultCodec, options), rows.length)
}

/** What a Kafka client delivers: everything but control batches. */
function recordsIn(bytes: Uint8Array): unknown[] {
  const values: unknown[] = []
  for (let at = 0; at < bytes.length; at += readHeader(bytes, at).sizeBytes) {
    if (readHeader(bytes, at).control) continue
    const rows = decodeBatch(bytes, at, defaultCodec, noCompression)
    values.push(...rows.values.slice(0, rows.count))
  }
  return values
}

export const TRANSACTIONS: readonly LogCase[] = [
  {
    title: 'a repeated batch of a producer answers its first offsets and is stored once',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wire(['a', 'b']))
      await accept(log, wire(['c'], producerOf(7, 2)))
      same(log.tryAppend(wire(['a', 'b'])), { base: 0, last: 1, duplicate: true }, 'the first again')
      same(
        log.tryAppend(wire(['c'], producerOf(7, 2))),
        { base: 2, last: 2, duplicate: true },
        'the second again',
      )
      same(
        log.tryAppend(wire(['a', 'b'], producerOf(8, 0))),
        { base: 3, last: 4, duplicate: false },
        'a stranger',
      )
      same(log.marks.end, 5, 'end')
    },
  },
  {
    title: 'a duplicate needs no room',
    needs: ['wire batches', 'a gate'],
    async run(engine) {
      const log = await openLog(engine, { records: 2 })
      await accept(log, wire(['a', 'b']))
      log.gate(0)
      same(log.tryAppend(wire(['c'], producerOf(7, 2))), 'NO_ROOM', 'something new')
      same(log.tryAppend(wire(['a', 'b'])), { base: 0, last: 1, duplicate: true }, 'a duplicate')
    },
  },
  {
    title: 'a refused batch leaves the sequence of its producer where it was',
    needs: ['wire batches', 'a gate'],
    async run(engine) {
      const log = await openLog(engine, { records: 2 })
      await accept(log, wire(['a', 'b']))
      log.gate(0)
      same(log.tryAppend(wire(['c'], producerOf(7, 2))), 'NO_ROOM', 'while it is full')
      log.gate(Number.POSITIVE_INFINITY)
      same(
        log.tryAppend(wire(['c'], producerOf(7, 2))),
        { base: 2, last: 2, duplicate: false },
        'tried again',
      )
    },
  },
  {
    title: 'a gap in the sequence is OUT_OF_ORDER, an older epoch is FENCED, and nothing changes',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wire(['a']))
      await accept(log, wire(['b'], producerOf(9, 0, { epoch: 2 })))
      const before = stateOf(log)
      same(log.tryAppend(wire(['c'], producerOf(7, 5))), 'OUT_OF_ORDER', 'a gap')
      same(log.tryAppend(wire(['c'], producerOf(9, 1, { epoch: 1 }))), 'FENCED', 'an older epoch')
      same(
        log.tryAppend(markerOf(producerOf(9, 0, { epoch: 1 }), true)),
        'FENCED',
        'a marker of an older epoch',
      )
      same(stateOf(log), before, 'the log')
      same(log.tryAppend(wire(['c'], producerOf(7, 1))), { base: 2, last: 2, duplicate: false }, 'in order')
    },
  },
  {
    title: 'columns with a producer are known again like bytes',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['before'])
      const rows = [
        { value: 'a', key: 'k', timestamp: T0 - 5 },
        { value: 'b', timestamp: T0 + 5 },
      ]
      const batch = batchOf(rows, producerOf(7, 0))
      same(await accept(log, batch), 1, 'first offset')
      same(log.tryAppend(batch), { base: 1, last: 2, duplicate: true }, 'again')
      same(log.tryAppend(wire(['a', 'b'])), { base: 1, last: 2, duplicate: true }, 'again, as bytes')
      await publish(log, ['after'])
      const read = (await readRows(log, 1)).rows
      same(
        read.map(({ value }) => value),
        ['a', 'b', 'after'],
        'values',
      )
      same(
        read.map(({ key }) => key),
        ['k', null, null],
        'keys',
      )
      same(
        read.map(({ timestamp }) => timestamp - T0),
        [0, 5, 5],
        'timestamps, which never go back',
      )
    },
  },
  {
    title: 'an open transaction holds committed readers, also from what others append behind it',
    needs: ['synchronous appends', 'transactions'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['before'])
      await accept(log, wire(['t1'], open(7, 0)))
      await publish(log, ['behind'])
      same([log.marks.stable, log.marks.high], [1, 3], 'stable and high')
      same(await valuesOf(log, 0), ['before'], 'committed')
      same(await valuesOf(log, 0, 'uncommitted'), ['before', 't1', 'behind'], 'uncommitted')
      same((await log.read(0, PLENTY, 'committed')).next, 1, 'committed bytes')
      same((await log.read(0, PLENTY, 'uncommitted')).next, 3, 'uncommitted bytes')
      same(await accept(log, markerOf(open(7, 0), true)), 3, 'the marker takes an offset')
      same([log.marks.stable, log.marks.high], [4, 4], 'stable and high after the commit')
      same(
        await readRows(log, 0).then(({ rows, next }) => [rows.map((row) => row.value), next]),
        [['before', 't1', 'behind'], 4],
        'committed after the commit: the marker is passed and not shown',
      )
    },
  },
  {
    title: 'aborted records are hidden from committed readers, and named to readers of bytes',
    needs: ['synchronous appends', 'transactions'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['a'])
      await accept(log, wire(['bad1', 'bad2'], open(7, 0)))
      await publish(log, ['b'])
      await accept(log, wire(['bad3'], open(7, 2)))
      await accept(log, markerOf(open(7, 0), false))
      await accept(log, wire(['good'], open(7, 3)))
      await accept(log, markerOf(open(7, 0), true))
      await publish(log, ['c'])
      for (const max of [100, 1]) {
        const { rows, next } = await readRows(log, 0, 'committed', max)
        same(
          [rows.map((row) => [row.offset, row.value]), next],
          [
            [
              [0, 'a'],
              [3, 'b'],
              [6, 'good'],
              [8, 'c'],
            ],
            9,
          ],
          'rows',
        )
      }
      same(
        await valuesOf(log, 0, 'uncommitted'),
        ['a', 'bad1', 'bad2', 'b', 'bad3', 'good', 'c'],
        'uncommitted',
      )
      same(await valuesOf(log, 2), ['b', 'good', 'c'], 'from inside of what is hidden')
      const { bytes, next, aborted } = await log.read(0, PLENTY, 'committed')
      same([next, aborted], [9, [{ producerId: 7, firstOffset: 1 }]], 'the aborted transaction')
      same(recordsIn(bytes), ['a', 'bad1', 'bad2', 'b', 'bad3', 'good', 'c'], 'bytes hold everything')
      same((await log.read(0, PLENTY, 'uncommitted')).aborted, [], 'uncommitted readers are told nothing')
      same((await log.read(6, PLENTY, 'committed')).aborted, [], 'nor is who reads beyond it')
    },
  },
  {
    title: 'records that were seen before their transaction was aborted are hidden afterwards',
    needs: ['transactions'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wire(['x', 'y'], open(7, 0)))
      await accept(log, wire(['z'], producerOf(8, 0)))
      same(await valuesOf(log, 0, 'uncommitted'), ['x', 'y', 'z'], 'uncommitted, before')
      await accept(log, markerOf(open(7, 0), false))
      same(await valuesOf(log, 0), ['z'], 'committed, after')
      same(await valuesOf(log, 0, 'uncommitted'), ['x', 'y', 'z'], 'uncommitted, after')
    },
  },
  {
    title: 'stable is below the oldest of several open transactions',
    needs: ['transactions'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wire(['p'], open(1, 0)))
      await accept(log, wire(['q'], open(2, 0)))
      await accept(log, markerOf(open(2, 0), true))
      same(log.marks.stable, 0, 'the older one is open')
      await accept(log, wire(['q2'], open(2, 1)))
      await accept(log, markerOf(open(1, 0), true))
      same(log.marks.stable, 3, 'the newer one is open')
      same(await valuesOf(log, 0), ['p', 'q'], 'committed')
      await accept(log, markerOf(open(2, 0), false))
      same(log.marks.stable, log.marks.high, 'none is open')
      same(await valuesOf(log, 0), ['p', 'q'], 'committed, at the end')
      same((await readRows(log, 0)).next, log.marks.end, 'and the reader is at the end')
    },
  },
  {
    title:
      'producers are listed with their last sequence, their newest timestamp and where their transaction began',
    needs: ['transactions'],
    async run(engine) {
      const log = await openLog(engine)
      await accept(log, wire(['a', 'b'], producerOf(5, 0, { epoch: 3 })))
      await accept(log, wire(['c'], open(6, 0)))
      const listed = [...log.producers()].sort((a, b) => a.id - b.id)
      same(
        listed,
        [
          { id: 5, epoch: 3, lastSequence: 1, timestamp: T0, openSince: -1 },
          { id: 6, epoch: 0, lastSequence: 0, timestamp: T0, openSince: 2 },
        ],
        'producers',
      )
    },
  },
  {
    title: 'retention passes an open transaction without showing any of it',
    needs: ['synchronous appends', 'transactions', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 100 })
      await publish(log, valuesFrom(0, 50))
      await accept(log, wire(['t1', 't2'], open(7, 0)))
      for (let i = 0; i < 250; i++) {
        await publish(log, [i])
        checkMarks(log.marks)
        same(log.marks.stable, Math.max(50, log.marks.start), 'stable stays, or goes with start')
        if (i > 150) same(await valuesOf(log, log.marks.start), [], 'committed')
      }
      await accept(log, markerOf(open(7, 0), true))
      check(log.marks.stable === log.marks.high, 'the commit releases')
      same(await valuesOf(log, log.marks.start), valuesFrom(151, 99), 'what is left')
    },
  },
  {
    title: 'a control batch that ends no transaction is INVALID',
    needs: ['transactions'],
    async run(engine) {
      const log = await openLog(engine)
      same(log.tryAppend(markerOf(producerOf(-1, 0), true)), 'INVALID', 'a marker of nobody')
      const commit = { value: new Uint8Array(6), key: new Uint8Array([0, 0, 0, 1]) }
      const other = { value: new Uint8Array(6), key: new Uint8Array([0, 0, 0, 2]) }
      same(log.tryAppend(controlOf([commit, commit])), 'INVALID', 'two markers at once')
      same(log.tryAppend(controlOf([other])), 'INVALID', 'a control record of another kind')
      same(log.marks.end, 0, 'end')
    },
  },
]
