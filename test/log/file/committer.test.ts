import { describe, expect, it } from 'vitest'
import { LOG_POISONED, NO_ROOM, type PartitionLog } from '../../../src/log/contract.ts'
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

  it('at growing fails too, and nothing that was accepted is lost', async () => {
    const machine = await Machine.open({ journalBytes: 4 * MiB })
    const log = await machine.log()
    for (let i = 0; i < 40; i++) put(log, filled(10 * KiB, i))
    machine.fail((operation, path) => {
      const grows = machine.fs.bytesOf('journal/a').length <= 1 * MiB && machine.count('write journal/a') > 1
      return operation === 'write' && path === 'journal/a' && grows ? { fail: 'EIO' } : undefined
    })
    machine.operations.length = 0
    await settled(log)
    const { high } = log.marks
    for (let answer = 0; answer !== LOG_POISONED; answer = put(log, filled(100 * KiB)))
      await machine.clock.settle()
    expect([high, machine.reports.at(-1)]).toEqual([
      40,
      { what: 'the journal failed, and accepts nothing more', code: 'OUTCOME_UNKNOWN' },
    ])
    machine.mend()
    const next = await Machine.on(machine.fs.crash({ seed: 1 }))
    expect((await next.log()).marks.end).toBeGreaterThanOrEqual(40)
  })

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
