/** Conformance: retention, the gate, the modes of an append, age and trim. */
import { NO_ROOM } from '../../log/contract.ts'
import type { LogCase } from './kit.ts'
import {
  accept,
  batchOf,
  check,
  keeping,
  openLog,
  publish,
  SIZE,
  same,
  settled,
  stateOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatchOf,
} from './kit.ts'

const THREE = batchOf(['x', 'y', 'z'].map((value) => ({ value })))

export const ROOM: readonly LogCase[] = [
  {
    title: 'a full log evicts exactly the oldest records that must go, by number',
    needs: ['synchronous appends', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 4 })
      await publish(log, valuesFrom(0, 4))
      check(log.hasRoom(1, SIZE), 'a log without a gate always has room')
      same(await publish(log, [4]), [4], 'one more')
      same(await valuesOf(log, log.marks.start), [1, 2, 3, 4], 'after one more')
      await accept(log, THREE)
      same(await valuesOf(log, log.marks.start), [4, 'x', 'y', 'z'], 'after a batch')
      same(log.records, 4, 'records')
    },
  },
  {
    title: 'a full log evicts exactly the oldest records that must go, by bytes',
    needs: ['synchronous appends', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { bytes: 1000 })
      for (const size of [300, 100, 200, 400]) log.tryAppendOne(size, null, null, T0, size)
      await settled(log)
      same([log.marks.start, log.sizeBytes], [0, 1000], 'full to the byte')
      log.tryAppendOne('next', null, null, T0, 301)
      await settled(log)
      same([log.marks.start, log.sizeBytes], [2, 901], 'two had to go')
      same(await valuesOf(log, 2), [200, 400, 'next'], 'values')
      log.tryAppendOne('all', null, null, T0, 1000)
      await settled(log)
      same([log.marks.start, log.sizeBytes, log.records], [5, 1000, 1], 'one that needs it all')
    },
  },
  {
    title: 'bytes of a log are the sum of what is kept, in whatever form it came',
    needs: ['synchronous appends', 'wire batches', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { records: 7 })
      await publish(log, valuesFrom(0, 4))
      await accept(log, THREE)
      same(log.sizeBytes, 7 * SIZE, 'of columns')
      await log.trim(2)
      same(log.sizeBytes, 5 * SIZE, 'after a trim')
      await log.trim(7)
      const batch = wireBatchOf(valuesFrom(0, 5).map((value) => ({ value })))
      for (let i = 0; i < 6; i++) {
        await accept(log, batch)
        log.tryAppendOne(i, null, null, T0, i * 10)
      }
      await settled(log)
      same([log.records, log.marks.start], [7, 36], 'records and start')
      await log.trim(log.marks.end)
      same([log.records, log.sizeBytes], [0, 0], 'after a trim to the end')
    },
  },
  {
    title: 'bytes from an offset on are those of the records kept from there on',
    needs: ['synchronous appends', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { records: 100 })
      for (let i = 0; i < 150; i++) log.tryAppendOne(i, null, null, T0, i % 7)
      await settled(log)
      let bytes = 0
      for (let at = 150; at >= 50; at--) {
        same(log.bytesFrom(at), bytes, `from ${at}`)
        bytes += (at - 1) % 7
      }
      same(
        [log.bytesFrom(0), log.bytesFrom(50), log.bytesFrom(151)],
        [log.sizeBytes, log.sizeBytes, 0],
        'outside',
      )
    },
  },
  {
    title: 'a gate refuses what would evict past it, and a refusal changes nothing',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 4 })
      await publish(log, valuesFrom(0, 4))
      log.gate(2)
      const before = stateOf(log)
      same([log.hasRoom(3, 3 * SIZE), log.tryAppend(THREE)], [false, 'NO_ROOM'], 'three')
      same(stateOf(log), before, 'the log after a refusal')
      check(log.hasRoom(2, 2 * SIZE), 'room for two')
      same(await publish(log, [4, 5]), [4, 5], 'two')
      same([log.hasRoom(1, SIZE), log.tryAppendOne(6, null, null, T0, SIZE)], [false, NO_ROOM], 'one more')
      same([log.marks.start, log.marks.end], [2, 6], 'marks')
      log.gate(3)
      same(await publish(log, [6, 7]), [6, NO_ROOM], 'after the gate moved by one')
      log.gate(Number.POSITIVE_INFINITY)
      same(await publish(log, [7]), [7], 'after the gate was lifted')
    },
  },
  {
    title: 'a large log evicts, and holds, to the record',
    needs: ['synchronous appends', 'immediate durability', 'a gate', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { records: 2000, bytes: 100_000 })
      for (let i = 0; i < 5000; i++) {
        log.gate(i < 3500 ? Number.POSITIVE_INFINITY : 2500)
        const room = log.hasRoom(1, i % 50)
        const offset = log.tryAppendOne(i, null, null, T0, i % 50)
        same([offset, room], i < 4500 ? [i, true] : [NO_ROOM, false], `record ${i}`)
        same(log.marks.start, Math.max(0, Math.min(i, 4499) - 1999), `start after record ${i}`)
      }
      await settled(log)
      same(await valuesOf(log, 2500), valuesFrom(2500, 2000), 'values')
      same(log.sizeBytes, 2000 * 24.5, 'bytes')
    },
  },
  {
    title: 'a gate holds bytes as it holds records',
    needs: ['synchronous appends', 'a gate', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { bytes: 1000 })
      for (const size of [300, 300, 300]) log.tryAppendOne(size, null, null, T0, size)
      await settled(log)
      log.gate(1)
      same([log.hasRoom(1, 400), log.hasRoom(1, 401)], [true, false], 'room')
      same(log.tryAppendOne('no', null, null, T0, 401), NO_ROOM, 'a byte too many')
      same([log.marks.start, log.sizeBytes], [0, 900], 'nothing went')
      same(log.tryAppendOne('yes', null, null, T0, 400), 3, 'what fits')
      same([log.marks.start, log.sizeBytes], [1, 1000], 'one went')
    },
  },
  {
    title: 'a gate at the end lets everything go, a gate below start lets nothing go',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 2 })
      await publish(log, [0, 1])
      log.gate(2)
      await accept(log, batchOf([{ value: 2 }, { value: 3 }]))
      same(log.marks.start, 2, 'start')
      log.gate(1)
      same([log.hasRoom(1, SIZE), log.tryAppendOne(4, null, null, T0, SIZE)], [false, NO_ROOM], 'below start')
      await log.trim(4)
      same(log.marks.start, 2, 'start after a trim')
    },
  },
  {
    title: 'an exempt append grows a gated log to twice its retention and no further',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 3 })
      await publish(log, [0, 1, 2])
      log.gate(1)
      same(log.tryAppendOne(3, null, null, T0, SIZE, 'exempt'), 3, 'the first evicts what it may')
      same([log.marks.start, log.records], [1, 3], 'start and records')
      same(log.hasRoom(3, 3 * SIZE, 'exempt'), true, 'room up to twice')
      same(log.hasRoom(4, 4 * SIZE, 'exempt'), false, 'room beyond twice')
      check(typeof log.tryAppend(THREE, 'exempt') === 'object', 'three more are accepted')
      same([log.marks.start, log.records], [1, 6], 'start and records at twice')
      same(log.tryAppendOne('no', null, null, T0, SIZE, 'exempt'), NO_ROOM, 'one more')
      same(log.hasRoom(1, SIZE), false, 'room for others')
      await settled(log)
      log.gate(3)
      same([log.marks.start, log.records], [3, 4], 'records once the gate moved')
      log.gate(7)
      same([log.marks.start, log.records], [4, 3], 'back within retention')
    },
  },
  {
    title: 'an exempt append by bytes is bounded too, and evicts like any other where there is no gate',
    needs: ['synchronous appends', 'immediate durability', 'a gate', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine, { bytes: 1000 })
      log.tryAppendOne('a', null, null, T0, 600)
      log.gate(0)
      same(log.tryAppendOne('b', null, null, T0, 900, 'exempt'), 1, 'within twice')
      same(log.tryAppendOne('c', null, null, T0, 501, 'exempt'), NO_ROOM, 'beyond twice')
      log.gate(Number.POSITIVE_INFINITY)
      same([log.marks.start, log.sizeBytes], [1, 900], 'back within retention')
      same(log.tryAppendOne('c', null, null, T0, 501, 'exempt'), 2, 'without a gate')
      same([log.marks.start, log.sizeBytes], [2, 501], 'evicted')
    },
  },
  {
    title: 'a forced append evicts through the gate',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 3 })
      await publish(log, [0, 1, 2])
      log.gate(0)
      check(log.hasRoom(1, SIZE, 'force'), 'room by force')
      same(log.tryAppendOne(3, null, null, T0, SIZE, 'force'), 3, 'one record')
      await settled(log)
      check(typeof log.tryAppend(THREE, 'force') === 'object', 'a batch')
      same([log.marks.start, log.records], [4, 3], 'start and records')
      same(log.tryAppendOne('no', null, null, T0, SIZE), NO_ROOM, 'others are still refused')
    },
  },
  {
    title: 'smaller retention evicts, as far as the gate allows; larger retention makes room',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { records: 6 })
      await publish(log, valuesFrom(0, 6))
      log.gate(2)
      log.configure(keeping({ records: 2 }))
      same([log.marks.start, log.records], [2, 4], 'up to the gate')
      log.gate(3)
      same(log.marks.start, 3, 'start follows the gate while there is too much')
      same(log.hasRoom(1, SIZE), false, 'no room while there is too much')
      log.configure(keeping({ records: 5 }))
      same(await publish(log, [6, 7]), [6, 7], 'room again')
      same(log.tryAppendOne(8, null, null, T0, SIZE), NO_ROOM, 'up to the new limit')
    },
  },
  {
    title: 'smaller retention evicts by bytes',
    needs: ['synchronous appends', 'exact retention', 'exact bytes'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, valuesFrom(0, 8))
      log.configure(keeping({ bytes: 250 }))
      same([log.marks.start, log.sizeBytes], [6, 200], 'start and bytes')
    },
  },
  {
    title:
      'retention by bytes bounds a log, and what is kept from an offset on is never more than from a lower one',
    needs: ['synchronous appends'],
    async run(engine) {
      const bytes = 50_000
      const log = await openLog(engine, { bytes })
      const value = 'x'.repeat(1000)
      for (let i = 0; i < 30; i++) {
        for (let each = 0; each < 10; each++) log.tryAppendOne(value, null, null, T0, value.length)
        await settled(log)
        check(log.sizeBytes <= 1.1 * bytes, `${log.sizeBytes} bytes of ${bytes}`)
      }
      const { start, end } = log.marks
      check(end - start >= 35 && end - start <= 55, `${end - start} records of 1,000 bytes`)
      same(
        [log.bytesFrom(0), log.bytesFrom(start), log.bytesFrom(end)],
        [log.sizeBytes, log.sizeBytes, 0],
        'ends',
      )
      for (let at = start; at < end; at++) {
        check(log.bytesFrom(at) >= log.bytesFrom(at + 1), `from ${at} and from the next one`)
      }
    },
  },
  {
    title: 'there is room below a gate exactly where its bytes say so',
    needs: ['synchronous appends', 'a gate'],
    async run(engine) {
      const bytes = 20_000
      const log = await openLog(engine, { bytes })
      for (let i = 0; i < 15; i++) {
        const value = 'x'.repeat(100 + 113 * (i % 9))
        log.tryAppendOne(value, null, null, T0, value.length)
        await settled(log)
      }
      for (let gate = log.marks.start; gate <= log.marks.end; gate++) {
        log.gate(gate)
        for (let size = 0; size <= bytes; size += 97) {
          same(log.hasRoom(1, size), log.bytesFrom(gate) + size <= bytes, `${size} bytes, gate at ${gate}`)
        }
      }
    },
  },
  {
    title: 'age evicts what is older, no more, and never past the gate',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine, { ageMs: 100 })
      for (let i = 0; i < 5; i++) {
        log.tryAppendOne(i, null, null, T0 + i * 10, SIZE)
        await settled(log)
      }
      log.expire(T0 + 100)
      same(log.marks.start, 0, 'at exactly its age a record is kept')
      log.expire(T0 + 111)
      same(log.marks.start, 2, 'two are older')
      log.gate(3)
      log.expire(T0 + 1000)
      same(log.marks.start, 3, 'the gate holds')
      log.gate(Number.POSITIVE_INFINITY)
      log.expire(T0 + 1000)
      same([log.marks.start, log.records, log.sizeBytes], [5, 0, 0], 'all are older')
      same(await publish(log, ['after']), [5], 'offsets go on')
      same(await valuesOf(log, 5), ['after'], 'values')
    },
  },
  {
    title: 'without an age nothing expires',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, [0, 1])
      log.expire(T0 + 1e13)
      same(log.marks.start, 0, 'start')
    },
  },
  {
    title: 'wire batches expire whole, when their newest record is too old',
    needs: ['wire batches'],
    async run(engine) {
      const log = await openLog(engine, { ageMs: 100 })
      await accept(
        log,
        wireBatchOf([
          { value: 0, timestamp: T0 },
          { value: 1, timestamp: T0 + 20 },
        ]),
      )
      await accept(log, wireBatchOf([{ value: 2, timestamp: T0 + 50 }]))
      log.expire(T0 + 120)
      same(log.marks.start, 0, 'kept while one record is young enough')
      log.expire(T0 + 121)
      same(log.marks.start, 2, 'evicted together')
      await accept(log, wireBatchOf([{ value: 'no time', timestamp: -1 }]))
      log.expire(T0 + 1000)
      same(log.marks.start, 3, 'a batch without timestamps does not age')
    },
  },
  {
    title: 'a trim moves start to any offset up to high, never back, never past the gate',
    needs: ['synchronous appends', 'a gate', 'exact retention'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, valuesFrom(0, 6))
      await log.trim(2)
      await log.trim(2)
      await log.trim(1)
      same([log.marks.start, log.records], [2, 4], 'after trims')
      same(await valuesOf(log, 2), [2, 3, 4, 5], 'values')
      log.gate(3)
      await log.trim(5)
      same(log.marks.start, 3, 'the gate holds')
      log.gate(Number.POSITIVE_INFINITY)
      await log.trim(100)
      same([log.marks.start, log.marks.end, log.records], [6, 6, 0], 'beyond the end')
      same(await publish(log, [6]), [6], 'offsets go on')
    },
  },
]
