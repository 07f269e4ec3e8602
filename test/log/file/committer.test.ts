import { describe, expect, it } from 'vitest'
import { LOG_POISONED, LOG_STORAGE_FULL, NO_ROOM, type PartitionLog } from '../../../src/log/contract.ts'
import { readCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { ENCODED_OVERHEAD_BYTES } from '../../../src/model/limits.ts'
import { batchOf, readRows, settled, valuesFrom, valuesOf } from '../../../src/testing/conformance/kit.ts'
import { filled, KiB, Machine, MiB, push, put, turns, watched } from './engine-kit.ts'

describe('group commit', () => {
  it('writes and syncs once for everything of one turn, whoever has asked for it', async () => {
    const machine = await Machine.open()
    const logs = await Promise.all(['a', 'b', 'c'].map((name) => machine.log(name)))
    machine.operations.length = 0
    for (let i = 0; i < 300; i++) put(logs[i % 3] as PartitionLog, i)
    const stored = machine.engine.meta.put([['k', 1]])
    await Promise.all([...logs.map(settled), stored])
    expect(machine.operations.filter((each) => each.includes('journal/'))).toEqual([
      'write journal/a',
      'sync journal/a',
    ])
    expect(logs.map((log) => log.marks.high)).toEqual([100, 100, 100])
  })

  it('gathers what comes during a sync into one next group', async () => {
    const machine = await Machine.open({}, { timed: true })
    const log = await machine.log()
    machine.fail((operation) => (operation === 'sync' ? { delayMs: 10 } : undefined))
    put(log, 'first')
    await machine.clock.settle()
    machine.operations.length = 0
    for (let i = 0; i < 50; i++) {
      put(log, i)
      await turns(1)
    }
    expect([log.marks.high, log.marks.end, machine.operations.length]).toEqual([0, 51, 0])
    await machine.clock.advance(10)
    expect(log.marks.high).toBe(1)
    await machine.clock.advance(10)
    expect([log.marks.high, machine.count('write journal'), machine.count('sync journal')]).toEqual([
      51, 1, 1,
    ])
    machine.mend()
    await machine.engine.close()
  })

  it('resolves what waits in the order in which it was accepted, once high has passed it', async () => {
    const machine = await Machine.open({}, { timed: true, turns: 3 })
    const log = await machine.log()
    const seen: number[] = []
    const waits: Promise<void>[] = []
    for (let i = 0; i < 60; i++) {
      const offset = put(log, i)
      waits.push(
        log.durable(offset).then(() => {
          expect(log.marks.high).toBeGreaterThan(offset)
          seen.push(offset)
        }),
      )
      if (i % 7 === 0) await turns(1)
    }
    await Promise.all(waits)
    expect(seen).toEqual(valuesFrom(0, 60))
  })

  it('ends a flush while others go on publishing', async () => {
    const machine = await Machine.open({}, { timed: true })
    const log = await machine.log()
    let going = true
    const publishing = (async () => {
      while (going) {
        put(log, 'more')
        await turns(1)
      }
    })()
    for (let i = 0; i < 20; i++) {
      const { end } = log.marks
      await log.flush()
      expect(log.marks.high).toBeGreaterThanOrEqual(end)
    }
    going = false
    await publishing
  })

  it('flushes at once where there is nothing, and what is on its way where that is all', async () => {
    const machine = await Machine.open({}, { timed: true })
    const log = await machine.log()
    await log.flush()
    machine.fail((operation) => (operation === 'sync' ? { delayMs: 5 } : undefined))
    put(log, 1)
    await machine.clock.settle()
    const [flushed] = watched([log.flush()])
    await machine.clock.settle()
    expect([flushed, log.marks.high]).toEqual([flushed, 0])
    await machine.clock.advance(5)
    expect(log.marks.high).toBe(1)
    await log.flush()
  })

  it('answers a put of nothing, with nothing or something on its way', async () => {
    const machine = await Machine.open({}, { timed: true })
    const { meta } = machine.engine
    await meta.put([])
    const put = meta.put([['k', 1]])
    await Promise.all([meta.put([]), put])
    expect(meta.get('k')).toBe(1)
    machine.fail((operation) => (operation === 'sync' ? { delayMs: 5 } : undefined))
    const later = watched([meta.put([['k', 2]])])
    await machine.clock.settle()
    const empty = watched([meta.put([])])
    await machine.clock.settle()
    expect([later, empty]).toEqual([['waiting'], ['waiting']])
    await machine.clock.advance(5)
    expect([later, empty]).toEqual([['resolved'], ['resolved']])
  })

  it('answers a trim that another one made already, on its way or done', async () => {
    const machine = await Machine.open({}, { timed: true })
    const log = await machine.log()
    for (const value of valuesFrom(0, 5)) put(log, value)
    await settled(log)
    machine.fail((operation) => (operation === 'sync' ? { delayMs: 5 } : undefined))
    const first = watched([log.trim(3)])
    await machine.clock.settle()
    const others = watched([log.trim(3), log.trim(1)])
    await machine.clock.settle()
    expect([...first, ...others]).toEqual(['waiting', 'waiting', 'waiting'])
    await machine.clock.advance(5)
    expect([...first, ...others]).toEqual(['resolved', 'resolved', 'resolved'])
    await log.trim(3)
  })
})

describe('the store', () => {
  it('shows what is read back after a restart, whatever becomes of what was given', async () => {
    const machine = await Machine.open()
    const { meta } = machine.engine
    const value = { list: [1, 2], left: undefined, date: new Date(0) }
    const stored = meta.put([['k', value]])
    value.list.push(3)
    await stored
    expect(meta.get('k')).toEqual({ list: [1, 2], date: '1970-01-01T00:00:00.000Z' })
    const next = await Machine.on(machine.fs.crash({ seed: 1 }))
    expect([...next.engine.meta.scan('')]).toEqual([...meta.scan('')])
  })

  it('refuses what is no JSON, and nothing else suffers', async () => {
    const machine = await Machine.open()
    const { meta } = machine.engine
    await expect(meta.put([['k', 1n]])).rejects.toThrow(TypeError)
    await meta.put([['l', 1]])
    expect([...meta.scan('')]).toEqual([['l', 1]])
  })
})

describe('durability "os"', () => {
  it('accepts what is written, and syncs it after a while, again and again, as long as there is something', async () => {
    const machine = await Machine.open({ durability: 'os', flushMs: 100 })
    const log = await machine.log()
    machine.operations.length = 0
    put(log, 1)
    await settled(log)
    expect(machine.operations).toEqual(['write journal/a'])
    await machine.clock.advance(60)
    put(log, 2)
    await settled(log)
    expect(machine.count('sync')).toBe(0)
    await machine.clock.advance(40)
    expect(machine.count('sync journal/a')).toBe(1)
    await machine.clock.advance(1000)
    expect(machine.count('sync')).toBe(1)
    put(log, 3)
    await settled(log)
    await machine.clock.advance(100)
    expect(machine.count('sync')).toBe(2)
    expect(machine.clock.pending).toBe(0)
  })

  it('syncs again for what came during a sync', async () => {
    const machine = await Machine.open({ durability: 'os', flushMs: 100 }, { timed: true })
    const log = await machine.log()
    machine.fail((operation) => (operation === 'sync' ? { delayMs: 50 } : undefined))
    put(log, 1)
    await settled(log)
    machine.operations.length = 0
    await machine.clock.advance(100)
    put(log, 2)
    await settled(log)
    await machine.clock.advance(50)
    expect(machine.count('sync journal/a')).toBe(1)
    await machine.clock.advance(100)
    expect(machine.count('sync journal/a')).toBe(2)
  })

  it('syncs at once where somebody flushes', async () => {
    const machine = await Machine.open({ durability: 'os' })
    const log = await machine.log()
    put(log, 1)
    machine.operations.length = 0
    await log.flush()
    expect(machine.operations).toEqual(['write journal/a', 'sync journal/a'])
  })

  it('is poisoned by a sync that fails later, and what was accepted since is unknown', async () => {
    const machine = await Machine.open({ durability: 'os', flushMs: 100 })
    const log = await machine.log()
    put(log, 1)
    await settled(log)
    machine.fail((operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined))
    await machine.clock.advance(100)
    expect(put(log, 2)).toBe(LOG_POISONED)
    await expect(log.flush()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(await valuesOf(log, 0)).toEqual([1])
  })
})

describe('a journal that fails', () => {
  it.each([
    ['sync', 'EIO'],
    ['sync', 'ENOSPC'],
    ['write', 'EIO'],
    ['write', 'ENOSPC'],
  ])(
    'at a %s with %s: what was under way is unknown, and nothing is acked any more',
    async (operation, fail) => {
      const machine = await Machine.open()
      const log = await machine.log()
      const other = await machine.log('other')
      put(log, 'safe')
      await settled(log)
      let wakes = 0
      other.onAdvance(() => wakes++)
      machine.fail((each, path) => (each === operation && path.startsWith('journal') ? { fail } : undefined))
      const offset = put(log, 'lost')
      const waits = watched([
        log.durable(offset),
        machine.engine.meta.put([['k', 1]]),
        log.append(batchOf([{ value: 'batch' }])),
        log.trim(1),
        machine.engine.deleteLog('other', 0),
        log.flush(),
      ])
      await machine.clock.settle()
      expect(waits).toEqual(waits.map(() => 'OUTCOME_UNKNOWN'))
      expect(wakes).toBe(0)

      // Also when the disk works again: a sync that succeeds now lies.
      machine.mend()
      machine.operations.length = 0
      expect(put(log, 'more')).toBe(LOG_POISONED)
      expect([log.tryAppend(batchOf([{ value: 'more' }])), log.hasRoom(1, 1)]).toEqual(['POISONED', true])
      expect(machine.engine.refusal([log], 10)).toBe('POISONED')
      const later = watched([
        log.durable(offset),
        machine.engine.meta.put([['k', 2]]),
        log.append(batchOf([{ value: 'batch' }])),
        log.flush(),
        machine.engine.deleteLog('a', 0),
      ])
      await machine.clock.advance(10_000)
      expect(later).toEqual(later.map(() => 'OUTCOME_UNKNOWN'))
      expect(machine.operations).toEqual([])
      expect([log.marks.high, machine.engine.meta.get('k')]).toEqual([1, 1])
      expect(machine.reports.map(({ code }) => code)).toEqual(['OUTCOME_UNKNOWN'])
    },
  )

  it('goes on to be read, and says so to a log that is opened afterwards', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    put(log, 'safe')
    await settled(log)
    machine.fail((operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined))
    put(log, 'lost')
    await machine.clock.settle()
    machine.mend()
    expect(await valuesOf(log, 0)).toEqual(['safe'])
    const late = await machine.log('late')
    expect([put(late, 1), late.tryAppend(batchOf([{ value: 1 }]))]).toEqual([LOG_POISONED, 'POISONED'])
    expect(late.marks.end).toBe(0)
  })

  it('wakes everybody, since who waits for room waits for nothing', async () => {
    const machine = await Machine.open()
    const log = await machine.log('a', { records: 1 })
    put(log, 1)
    await settled(log)
    log.gate(0)
    expect(put(log, 2)).toBe(NO_ROOM)
    const seen: number[] = []
    log.onAdvance(() => seen.push(put(log, 2)))
    machine.fail((operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined))
    const failed = machine.engine.meta.put([['k', 1]])
    await expect(failed).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect(seen).toEqual([LOG_POISONED])
  })

  it('closes, says that not all is on the disk, and lets go of the directory', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    put(log, 'safe')
    await settled(log)
    machine.fail((operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined))
    put(log, 'lost')
    await machine.clock.settle()
    machine.mend()
    await expect(machine.engine.close()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    expect([machine.released, machine.fs.openFiles]).toEqual([1, 0])
    const next = await Machine.on(machine.fs.kill())
    expect((await valuesOf(await next.log(), 0)).slice(0, 1)).toEqual(['safe'])
  })
})

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

describe('the journal in turn', () => {
  it('goes on in the other file behind a checkpoint, as long as there is something to write', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB, segmentBytes: 32 * KiB })
    const logs = await Promise.all(['a', 'b'].map((name) => machine.log(name)))
    for (let i = 0; i < 600; i++) {
      put(logs[i % 2] as PartitionLog, filled(700, i))
      if (i % 5 === 0) await settled(logs[0] as PartitionLog)
      if (i === 300) await machine.engine.meta.put([['half', true]])
    }
    await Promise.all(logs.map(settled))
    expect(machine.count('rename checkpoint.new')).toBeGreaterThan(8)
    expect([machine.count('write journal/a'), machine.count('write journal/b')].every((n) => n > 20)).toBe(
      true,
    )
    expect(machine.fs.bytesOf('journal/a').length).toBeLessThanOrEqual(64 * KiB)
    const next = await Machine.on(machine.fs.crash({ seed: 5 }))
    for (const name of ['a', 'b']) {
      const { rows } = await readRows(await next.log(name), 0)
      expect(rows.map(({ value }) => value)).toEqual(
        valuesFrom(0, 300).map((i) => filled(700, name === 'a' ? 2 * i : 2 * i + 1)),
      )
    }
    expect(next.engine.meta.get('half')).toBe(true)
  })

  it('takes changes of the store that are larger than a group, and than the file', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const log = await machine.log()
    const { meta } = machine.engine
    for (const [i, size] of [30, 100, 10, 300, 20].entries()) {
      await meta.put([[`k${i}`, 'x'.repeat(size * KiB)]])
      expect(await push(machine, log, i)).toBe(i)
    }
    await settled(log)
    const next = await Machine.on(machine.fs.crash({ seed: 7 }))
    expect(
      [...next.engine.meta.scan('')].map(([key, value]) => [key, (value as string).length / KiB]),
    ).toEqual([
      ['k0', 30],
      ['k1', 100],
      ['k2', 10],
      ['k3', 300],
      ['k4', 20],
    ])
    expect(await valuesOf(await next.log(), 0)).toEqual([0, 1, 2, 3, 4])
  })

  it('never runs out of room for good where one such change has used the file up', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const log = await machine.log()
    // Before anything else, so that it is not the last group of the file.
    await machine.engine.meta.put([['k', 'x'.repeat(200 * KiB)]])
    await machine.clock.settle()
    for (let i = 0; i < 20; i++) {
      expect(put(log, filled(5 * KiB, i))).toBe(i)
      await settled(log)
    }
  })

  it('refuses at once what no group can hold, and says so before anybody waits', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const log = await machine.log()
    const answers = new Set<unknown>()
    for (let size = 15 * KiB; size <= 17 * KiB; size += 7) {
      // Encoded, it is larger by what every record costs.
      const refusal = machine.engine.refusal([log], size + ENCODED_OVERHEAD_BYTES)
      const answer = log.tryAppend(batchOf([{ value: filled(size) }]))
      expect([size, answer]).toEqual([
        size,
        refusal ?? { base: log.marks.high, last: log.marks.high, duplicate: false },
      ])
      answers.add(refusal)
      await machine.clock.settle()
    }
    expect(answers).toEqual(new Set([undefined, 'TOO_LARGE']))
  })

  it('says of batches for several logs whether they fit together', async () => {
    const machine = await Machine.open({ journalBytes: 64 * KiB })
    const logs = await Promise.all(['a', 'b', 'c'].map((name) => machine.log(name)))
    const { engine } = machine
    expect([engine.refusal(logs, 15 * KiB), engine.refusal(logs, 16 * KiB)]).toEqual([undefined, 'TOO_LARGE'])
    expect(engine.refusal([], 1 * MiB)).toBeUndefined()
    for (const log of logs) put(log, filled(4 * KiB))
    let told = 0
    logs[0]?.onAdvance(() => told++)
    expect(engine.refusal(logs, 6 * KiB)).toBe('NO_ROOM')
    await machine.clock.settle()
    expect([told > 0, engine.refusal(logs, 6 * KiB)]).toEqual([true, undefined])
  })
})

describe('a slow disk', () => {
  it('bounds what is in memory, and lets those in who waited when it has caught up', async () => {
    const machine = await Machine.open({ journalBytes: 4 * MiB }, { timed: true })
    const logs = await Promise.all(['a', 'b'].map((name) => machine.log(name)))
    machine.fail((operation, path) =>
      operation === 'sync' && path.startsWith('journal') ? { delayMs: 5000 } : undefined,
    )
    const accepted = [0, 0]
    const waiting = new Set<number>()
    const publish = (i: number): void => {
      const log = logs[i] as PartitionLog
      while (!waiting.has(i)) {
        if (put(log, filled(10 * KiB)) === NO_ROOM) waiting.add(i)
        else accepted[i] = (accepted[i] as number) + 1
        if ((accepted[i] as number) >= 2000) return
      }
    }
    for (const [i, log] of logs.entries()) {
      log.onAdvance(() => {
        if (!waiting.delete(i)) return
        publish(i)
      })
      publish(i)
    }
    await machine.clock.settle()
    let most = 0
    for (let seconds = 0; seconds < 1000 && accepted.some((count) => count < 2000); seconds += 5) {
      most = Math.max(most, ...logs.map(({ marks }) => (marks.end - marks.high) * 10 * KiB))
      await machine.clock.advance(5000)
    }
    expect(accepted).toEqual([2000, 2000])
    // Two groups, of a quarter of the journal each, at most.
    expect(most).toBeLessThanOrEqual(2 * MiB)
    machine.mend()
    await machine.clock.advance(5000)
    await Promise.all(logs.map(settled))
    await machine.clock.advance(10_000)
    expect(logs.map(({ marks }) => marks.high)).toEqual([2000, 2000])
  })
})

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
    await expect(machine.engine.close()).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
    expect(machine.released).toBe(1)
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
