/** Conformance: offsets, marks, order, and what an append keeps of a record. */
import { LOG_CLOSED, NO_ROOM } from '../../log/contract.ts'
import { crc32c } from '../../log/format/crc32c.ts'
import { RecordHeaders } from '../../model/record.ts'
import type { LogCase } from './kit.ts'
import {
  accept,
  batchOf,
  check,
  checkMarks,
  marksOf,
  openLog,
  publish,
  readRows,
  rejects,
  SIZE,
  same,
  settled,
  stateOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatch,
  wireBatchOf,
} from './kit.ts'

const KEY_BYTES = new Uint8Array([255, 0, 1])

const RICH = [
  { value: { a: 1 }, key: 'k', headers: new RecordHeaders([['h', '1']]), timestamp: T0 },
  { value: 'text', timestamp: T0 + 5, sizeBytes: 200 },
  { value: null, key: KEY_BYTES, timestamp: T0 + 5 },
  {
    value: new Uint8Array([1, 2]),
    headers: new RecordHeaders([
      ['x', '1'],
      ['x', null],
    ]),
    timestamp: T0 + 9,
  },
]

const RICH_ROWS = RICH.map(({ value, key = null, headers, timestamp }, i) => ({
  offset: i,
  value,
  key,
  headers: [...(headers ?? [])],
  timestamp,
}))

export const APPENDING: readonly LogCase[] = [
  {
    title: 'a new log is empty and starts at offset 0',
    needs: [],
    async run(engine) {
      const log = await openLog(engine)
      same(marksOf(log), { start: 0, stable: 0, high: 0, end: 0, epoch: log.marks.epoch }, 'marks')
      same([log.records, log.sizeBytes], [0, 0], 'records and bytes')
      same(await readRows(log, 0), { rows: [], next: 0 }, 'rows')
    },
  },
  {
    title: 'offsets follow the order of appends, whatever their form',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      same(await publish(log, ['a', 'b']), [0, 1], 'single records')
      same(await accept(log, batchOf([{ value: 'c' }, { value: 'd' }])), 2, 'a batch of columns')
      same(await accept(log, wireBatchOf([{ value: 'e' }, { value: 'f' }])), 4, 'a batch of bytes')
      same(await publish(log, ['g']), [6], 'a single record after bytes')
      same(await valuesOf(log, 0), ['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'values')
      same(await valuesOf(log, 3), ['d', 'e', 'f', 'g'], 'values from the middle')
    },
  },
  {
    title: 'marks keep their order and their object, and never go back',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine, { records: 5 })
      const { marks } = log
      for (let i = 0; i < 12; i++) {
        const before = marksOf(log)
        await publish(log, [i])
        checkMarks(marks)
        check(log.marks === marks, 'marks is the same object for the life of the log')
        check(marks.start >= before.start && marks.stable >= before.stable, 'start and stable never go back')
        same([marks.high, marks.end], [i + 1, i + 1], 'high and end after a durable append')
      }
      same([marks.start, log.records], [7, 5], 'start and records of a full log')
    },
  },
  {
    title: 'durable resolves when high has passed the record, in the order of offsets',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      const seen: number[] = []
      const waits = valuesFrom(0, 40).map(async (value) => {
        if (value % 10 === 0) await log.flush()
        const offset = log.tryAppendOne(value, null, null, T0, SIZE)
        await log.durable(offset)
        check(log.marks.high > offset, `high ${log.marks.high} has passed ${offset}`)
        seen.push(offset)
      })
      await Promise.all(waits)
      same(seen, valuesFrom(0, 40), 'the order')
      await log.durable(0)
      await log.flush()
      same(log.marks.high, 40, 'high')
    },
  },
  {
    title: 'a wake follows every move of a mark, until it is stopped',
    needs: ['synchronous appends', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine)
      const seen: string[] = []
      const stop = log.onAdvance(() => seen.push(`${log.marks.start}-${log.marks.high}`))
      let others = 0
      log.onAdvance(() => others++)
      await publish(log, ['a'])
      same(seen.at(-1), '0-1', 'after an append the marks have moved')
      await publish(log, ['b', 'c'])
      await log.trim(1)
      same(seen.at(-1), '1-3', 'after a trim')
      log.configure({ records: 1, bytes: 10_000, ageMs: Number.POSITIVE_INFINITY })
      same(seen.at(-1), '2-3', 'after retention shrank')
      const count = others
      stop()
      const last = seen.length
      await publish(log, ['d'])
      same(seen.length, last, 'a stopped wake')
      check(others > count, 'another wake goes on')
    },
  },
  {
    title: 'a record comes back with its key, headers, timestamp and value',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      for (const { value, key = null, headers = null, timestamp, sizeBytes = SIZE } of RICH) {
        log.tryAppendOne(value, key, headers, timestamp, sizeBytes)
      }
      await settled(log)
      same((await readRows(log, 0)).rows, RICH_ROWS, 'rows')
      same((await readRows(log, 0, 'committed', 1)).rows, RICH_ROWS, 'rows, one by one')
    },
  },
  {
    title: 'a batch of columns keeps what its rows have and share',
    needs: [],
    async run(engine) {
      const log = await openLog(engine)
      const { base, last, duplicate } = await log.append(batchOf(RICH))
      same([base, last, duplicate], [0, 3, false], 'answer')
      await log.durable(last)
      same((await readRows(log, 0)).rows, RICH_ROWS, 'rows')
    },
  },
  {
    title: 'what is appended to columns afterwards does not show in the log',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      const batch = batchOf([{ value: 'a' }])
      await accept(log, batch)
      batch.columns?.push('later', null, null, T0, SIZE)
      await publish(log, ['b'])
      same(await valuesOf(log, 0), ['a', 'b'], 'values')
    },
  },
  {
    title: 'an engine that encodes keeps nothing of the bytes and the key that it was given',
    needs: ['synchronous appends'],
    async run(engine) {
      if (!engine.encodes) return
      const log = await openLog(engine)
      const [value, key] = [new Uint8Array([1, 2]), new Uint8Array([255, 7])]
      log.tryAppendOne(value, key, null, T0, SIZE)
      const wire = wireBatchOf([{ value, key }])
      const answer = log.tryAppend(wire)
      for (const bytes of [value, key, wire.bytes as Uint8Array]) bytes.fill(9)
      same(answer, { base: 1, last: 1, duplicate: false }, 'the batch')
      await settled(log)
      const given = [new Uint8Array([1, 2]), new Uint8Array([255, 7])]
      same(
        (await readRows(log, 0)).rows.map((row) => [row.value, row.key]),
        [given, given],
        'values and keys',
      )
    },
  },
  {
    title: 'timestamps of the process never go back, those of wire batches are kept and bind nobody',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      log.tryAppendOne('a', null, null, T0 + 10, SIZE)
      log.tryAppendOne('b', null, null, T0 + 3, SIZE)
      await accept(
        log,
        wireBatchOf([
          { value: 'c', timestamp: T0 + 9e12 },
          { value: 'd', timestamp: T0 - 50 },
        ]),
      )
      await accept(
        log,
        batchOf([
          { value: 'e', timestamp: T0 + 4 },
          { value: 'f', timestamp: T0 + 12 },
        ]),
      )
      log.tryAppendOne('g', null, null, T0 + 11, SIZE)
      await settled(log)
      const timestamps = (await readRows(log, 0)).rows.map((row) => row.timestamp - T0)
      same(timestamps, [10, 10, 9e12, -50, 10, 12, 12], 'timestamps')
    },
  },
  {
    title: 'a wire batch is numbered in the log and left alone in the hands of its sender',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const batch = wireBatchOf([{ value: 'a' }, { value: 'b' }])
      const before = [...(batch.bytes ?? [])]
      same([await accept(log, batch), await accept(log, batch)], [0, 2], 'first offsets')
      same([...(batch.bytes ?? [])], before, 'the bytes that were given')
      same(
        (await readRows(log, 0)).rows.map((row) => row.offset),
        [0, 1, 2, 3],
        'offsets',
      )
    },
  },
  {
    title: 'bytes that are no sound batch are INVALID and change nothing',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine)
      const good = wireBatchOf([{ value: 'abc' }, { value: 'def' }]).bytes as Uint8Array
      const flipped = good.slice()
      flipped[good.length - 1] = (flipped[good.length - 1] as number) ^ 1
      const counted = good.slice()
      const view = new DataView(counted.buffer)
      view.setInt32(23, 999)
      view.setInt32(57, 1000)
      view.setUint32(17, crc32c(counted.subarray(21)))
      const two = new Uint8Array([...good, ...good])
      const before = stateOf(log)
      for (const bytes of [flipped, counted, two, good.slice(0, -1), new Uint8Array(10)]) {
        same(log.tryAppend(wireBatch(bytes, 2)), 'INVALID', `${bytes.length} bytes`)
      }
      same(stateOf(log), before, 'the log')
    },
  },
  {
    title: 'what is larger than retention is TOO_LARGE and evicts nothing',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine) {
      const log = await openLog(engine, { records: 3, bytes: 1000 })
      const large = { value: 'x'.repeat(1001), sizeBytes: 1001 }
      same(log.tryAppendOne(large.value, null, null, T0, 1001), NO_ROOM, 'one record in an empty log')
      await publish(log, ['a', 'b', 'c'])
      const before = stateOf(log)
      same(log.tryAppend(batchOf(valuesFrom(0, 4).map((value) => ({ value })))), 'TOO_LARGE', 'by records')
      same(log.tryAppend(batchOf([large]), 'force'), 'TOO_LARGE', 'by bytes')
      same(log.tryAppend(wireBatchOf([large]), 'exempt'), 'TOO_LARGE', 'on the wire')
      same(log.tryAppendOne(large.value, null, null, T0, 1001), NO_ROOM, 'one record')
      same(
        [log.hasRoom(4, 0), log.hasRoom(1, 1001), log.hasRoom(1, 1001, 'force')],
        [false, false, false],
        'room',
      )
      same(stateOf(log), before, 'the log')
      await rejects(log.append(batchOf([large])), 'TOO_LARGE', 'append')
    },
  },
  {
    title: 'append rejects with an error where tryAppend answers a refusal',
    needs: ['synchronous appends', 'a gate'],
    async run(engine) {
      const log = await openLog(engine, { records: 1 })
      await publish(log, ['a'])
      log.gate(0)
      await rejects(log.append(batchOf([{ value: 'b' }])), 'FULL', 'no room')
      await rejects(
        log.append(batchOf([{ value: 'b' }]), AbortSignal.abort()),
        'ABORTED',
        'an aborted signal',
      )
      same(log.marks.end, 1, 'end')
    },
  },
  {
    title: 'a closed log accepts nothing, shows nothing and stays closed',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['a', 'b'])
      await log.flush()
      let woken = 0
      log.onAdvance(() => woken++)
      await log.close()
      await log.close()
      same(log.tryAppendOne('c', null, null, T0, SIZE), LOG_CLOSED, 'tryAppendOne')
      same(log.tryAppend(batchOf([{ value: 'c' }])), 'CLOSED', 'tryAppend')
      same([log.hasRoom(1, 1), log.hasRoom(1, 1, 'force')], [false, false], 'hasRoom')
      same((await readRows(log, 0)).rows, [], 'peek answers end')
      await rejects(log.append(batchOf([{ value: 'c' }])), 'CLOSED', 'append')
      await rejects(log.load(0, 1000, 'committed'), 'CLOSED', 'load')
      await rejects(log.read(0, 1000, 'committed'), 'CLOSED', 'read')
      log.gate(0)
      log.expire(T0 + 1e12)
      log.configure({ records: 1, bytes: 1, ageMs: 1 })
      await log.trim(1)
      same([log.tryAppendOne('d', null, null, T0, 1), woken], [LOG_CLOSED, 0], 'after all that')
    },
  },
]
