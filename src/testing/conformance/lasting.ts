/**
 * Conformance: what outlives the process, for engines that say so. Each case is there for every way in which a process
 * may end; what was accepted before it must be found after it, and what was done at once is found whole or not at all.
 */
import type { Engine, PartitionLog } from '../../log/contract.ts'
import { RecordHeaders } from '../../model/record.ts'
import type { LogCase, ProcessEnd, Restart } from './kit.ts'
import {
  accept,
  batchOf,
  check,
  keeping,
  markerOf,
  marksOf,
  openLog,
  producerOf,
  publish,
  readRows,
  rejects,
  SIZE,
  same,
  settled,
  specOf,
  T0,
  valuesFrom,
  valuesOf,
  wireBatchOf,
} from './kit.ts'

const PLENTY = 1_000_000
const ENDS: readonly ProcessEnd[] = ['close', 'kill', 'power loss']

interface LastingCase {
  readonly title: string
  readonly needs: LogCase['needs']
  run(engine: Engine, restart: () => Promise<Engine>, end: ProcessEnd): Promise<void>
}

function transactional(id: number, sequence: number) {
  return producerOf(id, sequence, { transactional: true })
}

function wire(values: readonly unknown[], producer = producerOf(7, 0)) {
  return wireBatchOf(
    values.map((value) => ({ value })),
    producer,
  )
}

/** Everything that can be asked of a log, but for its epoch, which may grow. */
async function contentOf(log: PartitionLog): Promise<unknown> {
  const { epoch: _, ...marks } = marksOf(log)
  return {
    marks,
    records: log.records,
    rows: await readRows(log, marks.start),
    all: await readRows(log, marks.start, 'uncommitted'),
    aborted: (await log.read(marks.start, PLENTY, 'committed')).aborted,
    newest: await log.newest(),
    producers: [...log.producers()].sort((a, b) => a.id - b.id),
  }
}

const CASES: readonly LastingCase[] = [
  {
    title: 'records are found again, and offsets and timestamps go on',
    needs: ['synchronous appends', 'wire batches'],
    async run(engine, restart) {
      const log = await openLog(engine)
      const headers = new RecordHeaders([['h', '1']])
      log.tryAppendOne({ a: 1 }, 'k', headers, T0 + 90, SIZE)
      await publish(log, ['text', null, new Uint8Array([1, 2])])
      await accept(log, wireBatchOf([{ value: 'wire', key: new Uint8Array([255]) }, { value: 'second' }]))
      const before = await contentOf(log)
      for (let i = 0; i < 2; i++) {
        const again = await openLog(await restart())
        check(again !== log, 'the log is another object')
        same(await contentOf(again), before, 'the log')
      }
      const again = await openLog(await restart())
      same(await publish(again, ['later']), [6], 'the next offset')
      const last = (await readRows(again, 6)).rows[0]
      same(
        [last?.value, last?.timestamp],
        ['later', T0 + 90],
        'its value, and its timestamp, which does not go back',
      )
      check(again.marks.epoch >= log.marks.epoch, 'the epoch does not go back')
      const { epoch } = again.marks
      same(again.epochEnd(epoch), { epoch, endOffset: 7 }, 'the end of its epoch')
    },
  },
  {
    title: 'many records in many logs are found again',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      const names = ['a', 'b', 'c']
      const logs = await Promise.all(names.map((name) => engine.openLog(specOf(undefined, name))))
      for (let i = 0; i < 60; i++) {
        for (const log of logs)
          log.tryAppendOne({ i, text: 'x'.repeat(i * 20) }, `k${i % 7}`, null, T0 + i, SIZE)
        await settled(logs[i % 3] as PartitionLog)
      }
      await Promise.all(logs.map(settled))
      const before = await Promise.all(logs.map(contentOf))
      const next = await restart()
      for (const [i, name] of names.entries()) {
        same(await contentOf(await next.openLog(specOf(undefined, name))), before[i], `log ${name}`)
      }
    },
  },
  {
    title: 'a trim is not taken back',
    needs: ['synchronous appends', 'exact retention'],
    async run(engine, restart) {
      const log = await openLog(engine)
      await publish(log, valuesFrom(0, 10))
      await log.trim(4)
      await Promise.all([log.trim(6), log.trim(6), log.trim(2)])
      const again = await openLog(await restart())
      same([again.marks.start, again.records], [6, 4], 'start and records')
      same(await valuesOf(again, 6), [6, 7, 8, 9], 'values')
      await rejects(again.load(5, PLENTY, 'committed'), 'OFFSET_OUT_OF_RANGE', 'what was trimmed')
    },
  },
  {
    title: 'what retention evicted stays away',
    needs: ['synchronous appends', 'exact retention'],
    async run(engine, restart) {
      await publish(await openLog(engine, { records: 5 }), valuesFrom(0, 20))
      const again = await openLog(await restart())
      same([again.marks.start, await valuesOf(again, 15)], [15, valuesFrom(15, 5)], 'start and values')
      const smaller = await openLog(await restart(), { records: 2 })
      same(smaller.marks.start, 18, 'start under a smaller retention')
    },
  },
  {
    title: 'an empty log remembers where it ends',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      const log = await openLog(engine)
      await publish(log, valuesFrom(0, 3))
      await log.trim(3)
      const again = await openLog(await restart())
      same([again.marks.start, again.marks.end, again.sizeBytes], [3, 3, 0], 'start, end and bytes')
      same(await publish(again, ['next']), [3], 'the next offset')
      same(await valuesOf(await openLog(await restart()), 3), ['next'], 'after another end')
    },
  },
  {
    title: 'a deleted log stays away, and its successor is its own',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      await publish(await openLog(engine), ['a', 'b'])
      await engine.deleteLog('topic-1', 0)
      const next = await restart()
      const successor = await openLog(next)
      same([successor.marks.end, await valuesOf(successor, 0)], [0, []], 'the log that is opened then')
      await publish(successor, ['c'])
      await next.deleteLog('topic-1', 0)
      await publish(await openLog(next), ['d'])
      same(await valuesOf(await openLog(await restart()), 0), ['d'], 'the newest of that name')
    },
  },
  {
    title: 'a log that nobody opened goes on, and can be deleted',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      const other = () => specOf(undefined, 'other')
      await publish(await engine.openLog(other()), ['a', 'b'])
      await publish(await openLog(await restart()), ['c'])
      const third = await restart()
      same(await valuesOf(await third.openLog(other()), 0), ['a', 'b'], 'values')
      const fourth = await restart()
      await fourth.deleteLog('other', 0)
      same(
        (await (await restart()).openLog(other())).marks.end,
        0,
        'the end of a log that was deleted unopened',
      )
    },
  },
  {
    title: 'a closed log comes back with what it has',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      const log = await openLog(engine)
      await publish(log, ['a', 'b'])
      await log.close()
      const reopened = await openLog(engine)
      same([await valuesOf(reopened, 0), await publish(reopened, ['c'])], [['a', 'b'], [2]], 'opened again')
      await reopened.close()
      same(await valuesOf(await openLog(await restart()), 0), ['a', 'b', 'c'], 'in the next process')
    },
  },
  {
    title: 'the store is found again, all of it',
    needs: ['a store'],
    async run(engine, restart) {
      await engine.meta.put([
        ['a', { deep: [1, null, 'x'] }],
        ['b', 1],
        ['c', 2],
      ])
      await engine.meta.put([
        ['b', null],
        ['c', 3],
      ])
      const next = await restart()
      same(
        [...next.meta.scan('')],
        [
          ['a', { deep: [1, null, 'x'] }],
          ['c', 3],
        ],
        'entries',
      )
      await next.meta.put([['a', null]])
      same([...(await restart()).meta.scan('')], [['c', 3]], 'after another put')
    },
  },
  {
    title: 'what was done in one run to completion is found whole, or nothing of it',
    needs: ['synchronous appends', 'a store'],
    async run(engine, restart, end) {
      const [one, two] = [await openLog(engine), await engine.openLog(specOf(undefined, 'two'))]
      const gone = await engine.openLog(specOf(undefined, 'gone'))
      await publish(gone, ['g'])
      await engine.meta.put([['state', 'before']])
      one.tryAppendOne('a', null, null, T0, SIZE)
      const put = engine.meta.put([['state', 'after']])
      const deleted = engine.deleteLog('gone', 0)
      two.tryAppendOne('b', null, null, T0, SIZE)
      // A process that ends before may leave them open, or reject them.
      for (const each of [put, deleted]) each.catch(() => undefined)
      const next = await restart()
      const after = next.meta.get('state') === 'after'
      check(after || end !== 'close', 'a close leaves nothing out')
      const ends = await Promise.all(
        ['topic-1', 'two', 'gone'].map(
          async (name) => (await next.openLog(specOf(undefined, name))).marks.end,
        ),
      )
      same(ends, after ? [1, 1, 0] : [0, 0, 1], `ends of the logs ${after ? 'after' : 'before'} it`)
    },
  },
  {
    title: 'producers are known again: duplicates, sequences and epochs',
    needs: ['wire batches'],
    async run(engine, restart) {
      const log = await openLog(engine)
      await accept(log, wire(['a', 'b']))
      await accept(log, wire(['c'], producerOf(9, 0, { epoch: 2 })))
      const again = await openLog(await restart())
      same(again.tryAppend(wire(['a', 'b'])), { base: 0, last: 1, duplicate: true }, 'a repeated batch')
      same(again.tryAppend(wire(['x'], producerOf(7, 5))), 'OUT_OF_ORDER', 'a gap')
      same(again.tryAppend(wire(['x'], producerOf(9, 1, { epoch: 1 }))), 'FENCED', 'an older epoch')
      same(await accept(again, wire(['d'], producerOf(7, 2))), 3, 'what follows')
    },
  },
  {
    title: 'an open transaction stays open, an aborted one hidden, a committed one shown',
    needs: ['synchronous appends', 'transactions'],
    async run(engine, restart) {
      const log = await openLog(engine)
      await accept(log, wire(['committed'], transactional(1, 0)))
      await accept(log, markerOf(transactional(1, 0), true))
      await accept(log, wire(['aborted'], transactional(2, 0)))
      await publish(log, ['between'])
      await accept(log, markerOf(transactional(2, 0), false))
      await accept(log, wire(['open'], transactional(3, 0)))
      await publish(log, ['behind'])
      const before = await contentOf(log)
      const again = await openLog(await restart())
      same(await contentOf(again), before, 'the log')
      same(await valuesOf(again, 0), ['committed', 'between'], 'committed values')
      await accept(again, markerOf(transactional(3, 0), false))
      const third = await openLog(await restart())
      same(await valuesOf(third, 0), ['committed', 'between', 'behind'], 'once it was aborted')
      const { aborted } = await third.read(0, PLENTY, 'committed')
      same(
        aborted.map(({ producerId }) => producerId),
        [2, 3],
        'the aborted transactions',
      )
    },
  },
  {
    title: 'a batch is found whole, with what was accepted before it',
    needs: ['synchronous appends'],
    async run(engine, restart) {
      const log = await engine.openLog(specOf(keeping({})))
      await publish(log, ['a'])
      const rows = valuesFrom(0, 40).map((value) => ({ value: `${value} ${'x'.repeat(500)}` }))
      await accept(log, batchOf(rows))
      const again = await openLog(await restart())
      same(
        await valuesOf(again, 1),
        rows.map(({ value }) => value),
        'values',
      )
    },
  },
]

/** For engines that last. */
export const LASTING: readonly LogCase[] = CASES.flatMap(({ title, needs, run }) =>
  ENDS.map((end) => ({
    title: `${title} (${end})`,
    needs,
    run: (engine: Engine, restart: Restart) => run(engine, () => restart(end), end),
  })),
)

/** For all of them. */
export const HONEST: LogCase = {
  title: 'an engine that says it lasts is looked at again after its process has ended',
  needs: [],
  async run(engine) {
    check(!engine.durable, 'the options of this suite have a `restart`, since the engine is durable')
  },
}
