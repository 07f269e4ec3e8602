import { describe, expect, it } from 'vitest'
import { LOG_CLOSED, NO_ROOM, type PartitionLog } from '../../../src/log/contract.ts'
import { readRows, settled, specOf, valuesOf } from '../../../src/testing/conformance/kit.ts'
import { filled, KiB, Machine, put, stored, turns, watched } from './engine-kit.ts'

describe('giving disk space back', () => {
  it('removes whole segments below the start, once that is on the disk', async () => {
    const { machine, log } = await stored(100)
    const before = machine.fs.files().length
    await log.trim(90)
    await machine.clock.settle()
    expect(machine.fs.files().length).toBeLessThan(before / 2)
    expect((await readRows(log, 90)).rows.length).toBe(10)
  })

  it('waits for that where accepted means written: a start that comes back must find its records', async () => {
    const first = await Machine.open({ segmentBytes: 4 * KiB, durability: 'os', flushMs: 60_000 })
    const log = await first.log()
    for (let i = 0; i < 60; i++) put(log, filled(200, i))
    await log.flush()
    await first.engine.close()
    for (let seed = 0; seed < 10; seed++) {
      const machine = await Machine.on(first.fs.kill(), {
        segmentBytes: 4 * KiB,
        durability: 'os',
        flushMs: 60_000,
      })
      const again = await machine.log()
      await again.trim(50)
      await machine.clock.settle()
      const next = await Machine.on(machine.fs.crash({ seed }))
      const { start } = (await next.log()).marks
      expect([0, 50]).toContain(start)
      expect((await readRows(await next.log(), start)).rows.length).toBe(60 - start)
    }
  })
})

describe('opening and closing logs', () => {
  it('opens a closed log again with all that it has, for those who open it', async () => {
    const machine = await Machine.open({}, { timed: true })
    const log = await machine.log()
    let told = 0
    log.onAdvance(() => told++)
    const offset = put(log, 'before')
    const durable = log.durable(offset)
    void log.close()
    expect(put(log, 'closed')).toBe(LOG_CLOSED)
    const again = await machine.log('a', { records: 1 })
    await durable
    expect([await valuesOf(again, 0), told]).toEqual([['before'], 0])
    expect(put(again, 'after')).toBe(1)
    await settled(again)
    expect([again.marks.start, await valuesOf(again, 1)]).toEqual([1, ['after']])
  })

  it('holds nothing for those who had it before it was closed', async () => {
    const machine = await Machine.open()
    const log = await machine.log('a', { records: 2 })
    for (const value of [0, 1]) put(log, value)
    await settled(log)
    log.gate(0)
    await log.close()
    const again = await machine.log('a', { records: 2 })
    expect([put(again, 2), again.marks.start]).toEqual([2, 1])
  })

  it('opens it once for several who ask at a time', async () => {
    const machine = await Machine.open({}, { timed: true })
    const spec = specOf(undefined, 'a')
    const [one, two] = await Promise.all([machine.engine.openLog(spec), machine.engine.openLog(spec)])
    expect(one).toBe(two)
  })

  it('keeps a log that is opened while the engine closes', async () => {
    const { machine } = await stored(20)
    // Nobody opened this one before.
    const next = await Machine.on(machine.fs.kill(), machine.options)
    const opening = watched([next.log()])
    await next.engine.close()
    expect(opening).toEqual(['CLOSED'])
    const last = await Machine.on(next.fs.kill(), machine.options)
    expect((await last.log()).marks.end).toBe(20)
  })

  it('keeps a log that is opened while a checkpoint is taken', async () => {
    const { machine: first } = await stored(20)
    const machine = await Machine.on(
      first.fs.kill({ clock: first.clock, turns: 2 }),
      first.options,
      () => undefined,
      first.clock,
    )
    const busy = await machine.log('busy')
    const opened: PartitionLog[] = []
    for (let i = 0; i < 400; i++) {
      if (put(busy, filled(500, i)) === NO_ROOM) await machine.clock.settle()
      if (i % 3 === 0) await turns(1)
      if (i === 200) opened.push(await machine.log())
      if (i > 200 && i % 50 === 0) put(opened[0] as PartitionLog, i)
    }
    await machine.clock.settle()
    const log = opened[0] as PartitionLog
    const next = await Machine.on(machine.fs.crash({ seed: 9 }), machine.options)
    expect((await next.log()).marks.end).toBe(log.marks.end)
    expect((await next.log('busy')).marks.end).toBe(busy.marks.end)
  })
})

describe('deleting logs', () => {
  it('keeps the files until the deletion is on the disk, and brings all of the log back if it never is', async () => {
    const { machine, log } = await stored(40)
    machine.fail((operation, path) =>
      operation === 'sync' && path.startsWith('journal') ? { halt: 'before' } : undefined,
    )
    const deleted = watched([machine.engine.deleteLog('a', 0)])
    await machine.clock.settle()
    expect([deleted, put(log, 1)]).toEqual([['waiting'], LOG_CLOSED])
    const next = await Machine.on(machine.fs.crash({ seed: 1, share: 0 }), machine.options)
    expect((await readRows(await next.log(), 0)).rows.length).toBe(40)
  })

  it('is on the disk before its files go, also where accepted means written', async () => {
    const { machine: first } = await stored(40)
    for (let seed = 0; seed < 6; seed++) {
      const machine = await Machine.on(first.fs.kill(), {
        ...first.options,
        durability: 'os',
        flushMs: 60_000,
      })
      const busy = await machine.log('busy')
      put(busy, 1)
      await machine.engine.deleteLog('a', 0)
      const next = await Machine.on(machine.fs.crash({ seed, share: 0 }), first.options)
      expect((await next.log()).marks.end).toBe(0)
    }
  })

  it('deletes together with what is put in the same moment, also where a checkpoint is under way', async () => {
    const { machine } = await stored(1)
    for (let seed = 0; seed < 30; seed++) {
      const one = await Machine.on(
        machine.fs.kill({ clock: machine.clock, turns: 4, seed }),
        machine.options,
        () => undefined,
        machine.clock,
      )
      const [doomed, busy] = [await one.log('doomed'), await one.log('busy')]
      put(doomed, filled(500))
      await one.engine.meta.put([['doomed', true]])
      // As much as it takes to have a checkpoint under way.
      for (let i = 0; i < 75; i++) {
        put(busy, filled(500, i))
        await turns(1)
      }
      await turns(seed)
      void one.engine.meta.put([['doomed', null]]).catch(() => undefined)
      void one.engine.deleteLog('doomed', 0).catch(() => undefined)
      await turns(seed % 7)
      const next = await Machine.on(one.fs.crash({ seed }), machine.options)
      const isThere = next.engine.meta.get('doomed') === true
      expect((await next.log('doomed')).marks.end).toBe(isThere ? 1 : 0)
    }
  })

  it('does not keep a checkpoint from being written, which it does not need any more', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const machine = await Machine.open(
        { journalBytes: 64 * KiB, segmentBytes: 8 * KiB },
        { timed: true, turns: 5, seed },
      )
      const logs = await Promise.all(['a', 'b', 'c', 'd'].map((name) => machine.log(name)))
      for (let i = 0; i < 300; i++) {
        const log = logs[i % logs.length] as PartitionLog
        if (put(log, filled(400, i)) === NO_ROOM) await machine.clock.settle()
        if (i % 20 === 19 && logs.length > 1) {
          const gone = logs.pop() as PartitionLog
          await Promise.all([machine.engine.deleteLog(gone.topicId, 0), turns(seed)])
          logs.unshift(await machine.log(`${gone.topicId}+`))
        }
        if (i % 4 === 0) await turns(1)
      }
      await machine.clock.settle()
      expect(machine.reports).toEqual([])
      await machine.engine.close()
      expect(machine.reports).toEqual([])
    }
  })

  it('tells of files that cannot be removed, and tries again when it is opened, or the log is', async () => {
    const { machine } = await stored(20)
    machine.fail((operation, path) =>
      operation === 'remove' && path.startsWith('logs') ? { fail: 'EACCES' } : undefined,
    )
    await machine.engine.deleteLog('a', 0)
    expect(machine.reports.at(-1)?.what).toContain('removing the files of a deleted log')
    await expect(machine.log()).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
    machine.mend()
    const successor = await machine.log()
    expect(successor.marks.end).toBe(0)
    put(successor, 'new')
    await settled(successor)
    const next = await Machine.on(machine.fs.crash({ seed: 3 }), machine.options)
    expect(await valuesOf(await next.log(), 0)).toEqual(['new'])
  })

  it('removes when it is opened what was left', async () => {
    const { machine } = await stored(20)
    machine.fail((operation, path) =>
      operation === 'remove' && path.startsWith('logs') ? { fail: 'EACCES' } : undefined,
    )
    await machine.engine.deleteLog('a', 0)
    await machine.engine.close()
    const next = await Machine.on(machine.fs.kill(), machine.options)
    expect(next.fs.files().filter((path) => path.startsWith('logs'))).toEqual([])
  })

  it('leaves the files of one whose deletion is not known to be on the disk, also to whoever opens it again', async () => {
    const { machine } = await stored(20)
    machine.fail((operation, path) =>
      operation === 'sync' && path.startsWith('journal') ? { fail: 'EIO' } : undefined,
    )
    await expect(machine.engine.deleteLog('a', 0)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    machine.mend()
    await expect(machine.log()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    const next = await Machine.on(machine.fs.crash({ seed: 1, share: 0 }), machine.options)
    expect((await readRows(await next.log(), 0)).rows.length).toBe(20)
  })

  it('answers a second deletion when the first is done, and one of a stranger at once', async () => {
    const { machine } = await stored(5)
    await machine.engine.deleteLog('nobody', 0)
    await Promise.all([machine.engine.deleteLog('a', 0), machine.engine.deleteLog('a', 0)])
    expect(machine.fs.files().filter((path) => path.startsWith('logs'))).toEqual([])
  })

  it('keeps nothing in memory of a log that is gone', async () => {
    const machine = await Machine.open({ journalBytes: 256 * KiB, cacheBytes: 64 * KiB })
    // What is pinned for ever would keep the journal from being written behind, and fill it up.
    for (let i = 0; i < 40; i++) {
      const log = await machine.log(`t${i}`)
      put(log, filled(20 * KiB, i))
      if (i % 2 === 0) await settled(log)
      await machine.engine.deleteLog(`t${i}`, 0)
    }
    const log = await machine.log('last')
    expect(await valuesOf(log, 0)).toEqual([])
    expect(put(log, 1)).toBe(0)
    await settled(log)
  })
})
