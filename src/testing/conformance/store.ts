/** Conformance: the engine around its logs, and the store beside them. */
import type { LogCase } from './kit.ts'
import { openLog, publish, rejects, same, specOf, valuesOf } from './kit.ts'

export const STORE: readonly LogCase[] = [
  {
    title: 'logs are told apart by topic id and partition',
    needs: ['synchronous appends'],
    async run(engine) {
      const logs = await Promise.all([
        engine.openLog(specOf(undefined, 'a')),
        engine.openLog(specOf(undefined, 'b')),
        engine.openLog({ ...specOf(undefined, 'a'), partition: 1 }),
      ])
      for (const [i, log] of logs.entries()) await publish(log, Array(i + 1).fill(`log ${i}`))
      same(
        logs.map((log) => [log.topicId, log.partition, log.marks.end]),
        [
          ['a', 0, 1],
          ['b', 0, 2],
          ['a', 1, 3],
        ],
        'logs',
      )
      same(
        await Promise.all(logs.map((log) => valuesOf(log, log.marks.end - 1))),
        [['log 0'], ['log 1'], ['log 2']],
        'last values',
      )
    },
  },
  {
    title: 'opening an open log again finds the same records',
    needs: ['synchronous appends'],
    async run(engine) {
      await publish(await openLog(engine), ['a', 'b'])
      const again = await openLog(engine)
      same(await valuesOf(again, 0), ['a', 'b'], 'values')
      same(await publish(again, ['c']), [2], 'offsets go on')
    },
  },
  {
    title: 'a deleted log is closed, and its successor starts at 0',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['a'])
      await engine.deleteLog('topic-1', 0)
      await engine.deleteLog('topic-1', 0)
      await rejects(log.load(0, 1000, 'committed'), 'CLOSED', 'the deleted log')
      const successor = await openLog(engine)
      same([await publish(successor, ['b']), await valuesOf(successor, 0)], [[0], ['b']], 'the successor')
    },
  },
  {
    title: 'closing the engine closes its logs, and it opens no more',
    needs: ['synchronous appends'],
    async run(engine) {
      const log = await openLog(engine)
      await publish(log, ['a'])
      await engine.close()
      await engine.close()
      await rejects(log.load(0, 1000, 'committed'), 'CLOSED', 'its log')
      await rejects(openLog(engine), 'CLOSED', 'openLog')
    },
  },
  {
    title: 'the store keeps what was put last, and null deletes',
    needs: ['a store'],
    async run({ meta }) {
      same(meta.get('k'), undefined, 'an unknown key')
      await meta.put([['k', { a: [1] }]])
      same(meta.get('k'), { a: [1] }, 'a value')
      await meta.put([
        ['k', 'new'],
        ['l', 0],
        ['m', false],
      ])
      same([meta.get('k'), meta.get('l'), meta.get('m')], ['new', 0, false], 'values')
      await meta.put([
        ['k', null],
        ['unknown', null],
      ])
      same([meta.get('k'), meta.get('l')], [undefined, 0], 'after a delete')
      await meta.put([
        ['l', 1],
        ['l', 2],
      ])
      same(meta.get('l'), 2, 'the last of two changes wins')
    },
  },
  {
    title: 'a scan answers the entries under a prefix in the order of their keys',
    needs: ['a store'],
    async run({ meta }) {
      await meta.put([
        ['b/2', 2],
        ['a', 0],
        ['b/10', 10],
        ['b/1', 1],
        ['c', 3],
        ['b', 'b'],
        ['B/1', 'upper'],
      ])
      same(
        [...meta.scan('b/')],
        [
          ['b/1', 1],
          ['b/10', 10],
          ['b/2', 2],
        ],
        'under b/',
      )
      same(
        [...meta.scan('')].map(([key]) => key),
        ['B/1', 'a', 'b', 'b/1', 'b/10', 'b/2', 'c'],
        'all',
      )
      same([...meta.scan('x')], [], 'under nothing')
    },
  },
  {
    title: 'changes put together are seen together',
    needs: ['a store'],
    async run({ meta }) {
      await meta.put([
        ['x', 1],
        ['y', 1],
      ])
      const done = meta.put([
        ['x', 2],
        ['y', null],
        ['z', 2],
      ])
      const now = JSON.stringify([meta.get('x'), meta.get('y') ?? null, meta.get('z') ?? null])
      same(now === '[1,1,null]' || now === '[2,null,2]', true, `while it is put: ${now}`)
      await done
      same(
        [...meta.scan('')],
        [
          ['x', 2],
          ['z', 2],
        ],
        'afterwards',
      )
    },
  },
]
