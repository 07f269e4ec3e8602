import { describe, expect, it } from 'vitest'
import { LOG_STORAGE_FULL, type PartitionLog } from '../../../src/log/contract.ts'
import { batchOf, readRows, settled, valuesOf } from '../../../src/testing/conformance/kit.ts'
import { filled, KiB, Machine, MiB, put, watched } from './engine-kit.ts'

describe('a full disk', () => {
  const CAPACITY = 8 * MiB

  /** A machine whose journal has no more than its first 1 MiB. */
  async function fullMachine(leftBytes = 0): Promise<{ machine: Machine; log: PartitionLog }> {
    const machine = await Machine.open({ journalBytes: 4 * MiB }, { capacityBytes: CAPACITY })
    const log = await machine.log()
    put(log, 'first')
    await settled(log)
    machine.fill(CAPACITY, leftBytes)
    return { machine, log }
  }

  /** Publishes until it is refused for good; answers how many. */
  async function publishUntilRefused(log: PartitionLog, clock: Machine['clock']): Promise<number> {
    for (let count = 0; ; ) {
      const answer = put(log, filled(10 * KiB))
      if (answer === LOG_STORAGE_FULL) return count
      if (answer >= 0) count++
      await clock.settle()
    }
  }

  it('refuses with STORAGE_FULL what the journal has no room for, acks all else, and goes on to be read', async () => {
    const { machine, log } = await fullMachine()
    const count = await publishUntilRefused(log, machine.clock)
    expect(count).toBeGreaterThan(50)
    await settled(log)
    expect(log.tryAppend(batchOf([{ value: filled(10 * KiB) }]))).toBe('STORAGE_FULL')
    await expect(log.append(batchOf([{ value: filled(10 * KiB) }]))).rejects.toMatchObject({
      code: 'STORAGE_FULL',
    })
    expect(machine.engine.refusal([log], 10 * KiB)).toBe('STORAGE_FULL')
    expect(log.hasRoom(1, 10 * KiB)).toBe(true)
    expect((await readRows(log, 0)).rows.length).toBe(count + 1)
    expect(machine.reports.filter(({ code }) => code === 'STORAGE_FULL').length).toBeGreaterThan(0)
  })

  it('works again when space is freed, without a reopen', async () => {
    const { machine, log } = await fullMachine()
    await publishUntilRefused(log, machine.clock)
    machine.free()
    expect(put(log, filled(10 * KiB))).toBe(LOG_STORAGE_FULL)
    await machine.clock.settle()
    for (let i = 0; i < 200; i++) {
      expect(put(log, filled(10 * KiB))).toBeGreaterThan(0)
      await settled(log)
    }
    await machine.engine.close()
    const next = await Machine.on(machine.fs.crash({ seed: 1, capacityBytes: 4 * CAPACITY }))
    expect((await next.log()).marks.end).toBe(log.marks.end)
  })

  it('loses nothing that was acked, when it is opened with room again, and refuses to open cleanly before', async () => {
    const { machine, log } = await fullMachine()
    await publishUntilRefused(log, machine.clock)
    const { end } = log.marks
    const survivor = machine.fs.crash({ seed: 3, capacityBytes: CAPACITY })
    await expect(Machine.on(survivor)).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    expect(survivor.openFiles).toBe(0)
    survivor.erase('filler')
    const next = await Machine.on(survivor)
    expect((await readRows(await next.log(), 0)).rows.length).toBe(end)
  })

  it('keeps a change of the store waiting that the journal must grow for, and takes it when there is space', async () => {
    const { machine } = await fullMachine()
    const waits = watched([machine.engine.meta.put([['big', 'x'.repeat(2 * MiB)]])])
    await machine.clock.advance(5000)
    expect(waits).toEqual(['waiting'])
    machine.free()
    await machine.clock.advance(1000)
    expect(waits).toEqual(['resolved'])
  })

  it('does not keep the engine from being closed: what is not in is told to be not in', async () => {
    const { machine, log } = await fullMachine()
    const waits = watched([machine.engine.meta.put([['big', 'x'.repeat(2 * MiB)]])])
    await machine.clock.advance(1500)
    const closing = watched([machine.engine.close()])
    await machine.clock.advance(1000)
    expect([waits, closing, machine.released]).toEqual([['STORAGE_FULL'], ['STORAGE_FULL'], 1])
    expect(log.marks.high).toBe(1)
    const survivor = machine.fs.kill()
    survivor.erase('filler')
    const next = await Machine.on(survivor)
    expect([next.engine.meta.get('big'), await valuesOf(await next.log(), 0)]).toEqual([undefined, ['first']])
  })

  it('lets nobody in who could only wait for a checkpoint that it holds up', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const log = await machine.log()
    machine.fail((operation, path) =>
      operation === 'write' && path.startsWith('logs') ? { fail: 'ENOSPC' } : undefined,
    )
    for (let i = 0; ; i++) {
      if (put(log, filled(700, i)) === LOG_STORAGE_FULL) break
      await machine.clock.settle()
    }
    expect([log.marks.high, log.marks.end > 80]).toEqual([log.marks.end, true])
    machine.mend()
    await machine.clock.advance(2000)
    expect(put(log, 'again')).toBe(log.marks.end - 1)
    await settled(log)
  })

  it('that is met behind the journal holds up the next checkpoint, not the close', async () => {
    const { machine, log } = await fullMachine(200 * KiB)
    machine.fail((operation, path) =>
      operation === 'write' && path.startsWith('logs') ? { fail: 'ENOSPC' } : undefined,
    )
    await publishUntilRefused(log, machine.clock)
    // Nobody was let in who could only wait for that.
    expect(log.marks.high).toBe(log.marks.end)
    const closing = watched([machine.engine.close()])
    await machine.clock.advance(1000)
    expect(closing).toEqual(['resolved'])
    expect(machine.reports.at(-1)?.what).toContain('the next open reads the journal instead')
    const survivor = machine.fs.kill()
    survivor.erase('filler')
    expect((await (await Machine.on(survivor)).log()).marks.end).toBe(log.marks.end)
  })
})
