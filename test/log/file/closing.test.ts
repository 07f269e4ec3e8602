import { describe, expect, it } from 'vitest'
import { readCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { batchOf, settled, valuesOf } from '../../../src/testing/conformance/kit.ts'
import { filled, KiB, Machine, put, watched } from './engine-kit.ts'

describe('closing', () => {
  it('commits what was accepted before, refuses what comes after, and leaves nothing to replay', async () => {
    const machine = await Machine.open({}, { timed: true, turns: 2 })
    const log = await machine.log()
    const waits = watched([log.durable(put(log, 'last')), machine.engine.meta.put([['k', 1]])])
    const closing = machine.engine.close()
    expect(machine.engine.close()).toBe(closing)
    const late = watched([
      machine.engine.meta.put([['late', 1]]),
      machine.engine.deleteLog('a', 0),
      machine.log('b'),
      log.append(batchOf([{ value: 'late' }])),
    ])
    await closing
    expect(waits).toEqual(['resolved', 'resolved'])
    expect(late).toEqual(late.map(() => 'CLOSED'))
    expect(machine.engine.meta.get('late')).toBeUndefined()
    expect([machine.released, machine.fs.openFiles, machine.clock.pending]).toEqual([1, 0, 0])
    expect(await readCheckpoint(machine.fs, crc32c)).toMatchObject({ clean: true })
    const next = await Machine.on(machine.fs.crash({ seed: 1 }))
    expect([await valuesOf(await next.log(), 0), next.engine.meta.get('k')]).toEqual([['last'], 1])
  })

  it('does not wait for a checkpoint that is under way and cannot be written', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const log = await machine.log()
    machine.fail((operation, path) =>
      operation === 'write' && path.startsWith('logs') ? { fail: 'EIO' } : undefined,
    )
    let count = 0
    while (put(log, filled(700, count)) >= 0) {
      count++
      if (count % 5 === 0) await machine.clock.settle()
    }
    expect(count).toBeGreaterThan(80)
    const closing = watched([machine.engine.close()])
    await machine.clock.settle()
    expect(closing).toEqual(['resolved'])
    expect((await (await Machine.on(machine.fs.crash({ seed: 2 }))).log()).marks.end).toBe(count)
  })

  it('rejects where what was accepted last could not be written, once and for all', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    put(log, 1)
    machine.fail((operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined))
    const first = machine.engine.close()
    await expect(first).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await expect(machine.engine.close()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect([machine.released, machine.fs.openFiles]).toEqual([1, 0])
  })

  it('leaves a checkpoint away that cannot be written, and the journal as it is', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    put(log, 1)
    await settled(log)
    machine.fail((operation, path) =>
      path === 'checkpoint.new' && operation === 'write' ? { fail: 'EIO' } : undefined,
    )
    await machine.engine.close()
    expect(machine.reports.at(-1)?.what).toContain('writing a checkpoint at the end')
    const next = await Machine.on(machine.fs.crash({ seed: 4 }))
    expect(await valuesOf(await next.log(), 0)).toEqual([1])
  })

  it('lets go of the directory also where a handle cannot be closed', async () => {
    const machine = await Machine.open()
    machine.fail((operation, path) =>
      operation === 'close' && path.startsWith('journal') ? { fail: 'EIO' } : undefined,
    )
    await settled(await machine.log())
    await expect(machine.engine.close()).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
    expect([machine.released, machine.fs.openFiles]).toEqual([1, 0])
  })

  it('gives back its handles when the directory cannot be opened', async () => {
    for (const failing of ['write checkpoint.new', 'sync journal/a', 'open journal/b', 'read journal/a']) {
      const fs = (await Machine.open()).fs.kill()
      const fault = (operation: string, path: string) =>
        `${operation} ${path}` === failing ? { fail: 'EIO' } : undefined
      await expect(Machine.on(fs, {}, fault)).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
      expect([failing, fs.openFiles]).toEqual([failing, 0])
    }
  })
})
