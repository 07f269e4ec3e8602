import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../../src/log/contract.ts'
import { Writer, type WrittenBehind } from '../../../src/log/file/writer.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { readRows, settled, valuesFrom } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { filled, KiB, Machine, push, put, watched } from './engine-kit.ts'

/** A writer, and logs that note when they are written; what they wait for is `done`. */
class Desk {
  readonly clock = new ManualClock()
  readonly events: string[] = []
  readonly writer = new Writer(this.clock, 100, {
    failed: (error) => this.events.push(`failed ${String((error as Error).message)}`),
    recovered: () => this.events.push('recovered'),
  })

  log(name: string, write: () => Promise<void> = async () => {}): WrittenBehind {
    return {
      writeBehind: async () => {
        this.events.push(`begin ${name}`)
        await write()
        this.events.push(`end ${name}`)
      },
    }
  }
}

function failing(times: number): () => Promise<void> {
  let left = times
  return async () => {
    if (left-- > 0) throw new Error('EIO')
  }
}

describe('what is written behind', () => {
  it('waits until there is enough of it, over all logs', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    const [a, b] = [log('a'), log('b')]
    writer.add(a, 60)
    await clock.settle()
    expect(events).toEqual([])
    writer.add(b, 40)
    await clock.settle()
    expect(events).toEqual(['begin a', 'end a', 'begin b', 'end b'])
    writer.add(b, 60)
    await clock.settle()
    expect(events.length).toBe(4)
  })

  it('does not wait where somebody does', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    writer.hurry(log('a'))
    await clock.settle()
    expect(events).toEqual(['begin a', 'end a'])
  })

  it('is written one log after the other, and again what came meanwhile', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    let go: () => void = () => {}
    const a = log('a', () => new Promise((resolve) => (go = resolve)))
    const b = log('b')
    writer.hurry(a)
    await clock.settle()
    writer.hurry(b)
    writer.hurry(a)
    await clock.settle()
    expect(events).toEqual(['begin a'])
    go()
    await clock.settle()
    go()
    await clock.settle()
    expect(events).toEqual(['begin a', 'end a', 'begin b', 'end b', 'begin a', 'end a'])
  })

  it('is seen also by a log that comes as the last one ends', async () => {
    for (let microtasks = 0; microtasks < 12; microtasks++) {
      const { writer, log, events, clock } = bound(new Desk())
      writer.hurry(log('a'))
      for (let i = 0; i < microtasks; i++) await null
      writer.hurry(log('b'))
      await clock.settle()
      expect([microtasks, events]).toEqual([microtasks, ['begin a', 'end a', 'begin b', 'end b']])
    }
  })

  it('is tried again after a while where it failed, with the others first, and says when it has recovered', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    writer.hurry(log('a', failing(2)))
    writer.hurry(log('b'))
    await clock.settle()
    expect(events).toEqual(['begin a', 'failed EIO'])
    writer.hurry(log('c'))
    await clock.advance(999)
    expect(events.length).toBe(2)
    await clock.advance(1)
    expect(events.slice(2)).toEqual(['begin b', 'end b', 'begin a', 'failed EIO'])
    await clock.advance(1000)
    expect(events.slice(6)).toEqual(['begin c', 'end c', 'begin a', 'end a', 'recovered'])
    await clock.advance(5000)
    expect([events.length, clock.pending]).toEqual([11, 0])
  })

  it('is not begun for a log that is forgotten, and forgetting one waits for what was begun', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    let go: () => void = () => {}
    const a = log('a', () => new Promise((resolve) => (go = resolve)))
    const b = log('b')
    writer.hurry(a)
    writer.hurry(b)
    await clock.settle()
    const forgotten = watched([writer.forget(a), writer.forget(b)])
    await clock.settle()
    expect([events, forgotten]).toEqual([['begin a'], ['waiting', 'resolved']])
    go()
    await clock.settle()
    expect([events, forgotten]).toEqual([
      ['begin a', 'end a'],
      ['resolved', 'resolved'],
    ])
  })

  it('stops: what was begun ends, nothing else begins, also what would be tried again', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    writer.hurry(log('a', failing(9)))
    await clock.settle()
    await writer.stop()
    writer.hurry(log('b'))
    writer.add(log('c'), 1000)
    await clock.advance(5000)
    expect([events, clock.pending]).toEqual([['begin a', 'failed EIO'], 0])
  })

  it('stops while something is written, which is not tried again', async () => {
    const { writer, log, events, clock } = bound(new Desk())
    let fail: (error: Error) => void = () => {}
    const a = log('a', () => new Promise((_, reject) => (fail = reject)))
    writer.hurry(a)
    writer.hurry(log('b'))
    await clock.settle()
    const stopped = watched([writer.stop()])
    await clock.settle()
    expect(stopped).toEqual(['waiting'])
    fail(new OdradekError('STORAGE_ERROR', 'late'))
    await clock.settle()
    expect([stopped, events, clock.pending]).toEqual([['resolved'], ['begin a', 'failed late'], 0])
  })
})

function bound(desk: Desk): Pick<Desk, 'writer' | 'events' | 'clock'> & { readonly log: Desk['log'] } {
  const { writer, events, clock } = desk
  return { writer, events, clock, log: (name, write) => desk.log(name, write) }
}

describe('segments that cannot be written', () => {
  const OPTIONS = { journalBytes: 64 * KiB, segmentBytes: 8 * KiB, cacheBytes: 1 }

  async function fill(machine: Machine, log: PartitionLog, count: number): Promise<void> {
    const { end } = log.marks
    for (let i = end; i < end + count; i++) {
      expect(await push(machine, log, filled(500, i))).toBe(i)
      await settled(log)
    }
  }

  it.each([
    ['write', 'EIO'],
    ['write', 'ENOSPC'],
    ['open', 'EMFILE'],
    ['open', 'EACCES'],
  ])(
    'for a failing %s with %s stay in memory and in the journal, are read from there, and are made up for',
    async (operation, fail) => {
      const machine = await Machine.open(OPTIONS)
      const log = await machine.log()
      await fill(machine, log, 10)
      machine.fail((each, path) => (each === operation && path.startsWith('logs') ? { fail } : undefined))
      await fill(machine, log, 75)
      expect((await readRows(log, 0)).rows.map(({ value }) => value)).toEqual(
        valuesFrom(0, 85).map((i) => filled(500, i)),
      )
      const checkpoints = machine.count('rename checkpoint.new')
      await machine.clock.advance(5000)
      // The checkpoint that is due waits.
      expect(machine.count('rename checkpoint.new')).toBe(checkpoints)
      expect(machine.reports.length).toBeGreaterThan(0)
      machine.mend()
      await machine.clock.advance(2000)
      await fill(machine, log, 200)
      expect(machine.count('rename checkpoint.new')).toBeGreaterThan(checkpoints)
      const next = await Machine.on(machine.fs.crash({ seed: 1 }), OPTIONS)
      expect((await readRows(await next.log(), 0)).rows.length).toBe(285)
    },
  )

  it('lose nothing where a write was short, or left a part', async () => {
    const machine = await Machine.open(OPTIONS)
    const log = await machine.log()
    let nth = 0
    machine.fail((operation, path) => {
      if (operation !== 'write' || !path.startsWith('logs')) return undefined
      nth++
      return nth % 3 === 0 ? { shortBytes: 100 } : nth % 7 === 0 ? { fail: 'ENOSPC' } : undefined
    })
    for (let i = 0; i < 40; i++) {
      await fill(machine, log, 10)
      await machine.clock.advance(1000)
    }
    machine.mend()
    await machine.clock.advance(5000)
    await fill(machine, log, 1)
    const next = await Machine.on(machine.fs.crash({ seed: 2 }), OPTIONS)
    expect((await readRows(await next.log(), 0)).rows.map(({ value }) => value)).toEqual(
      valuesFrom(0, 401).map((i) => filled(500, i)),
    )
  })

  it.each(['EIO', 'ENOSPC'])(
    'for the last time where their sync has failed with %s: the journal has them',
    async (fail) => {
      const machine = await Machine.open(OPTIONS)
      const log = await machine.log()
      await fill(machine, log, 10)
      machine.fail((operation, path) =>
        operation === 'sync' && path.startsWith('logs') ? { fail } : undefined,
      )
      let end = 10
      while (put(log, filled(500, end)) >= 0) {
        end++
        await machine.clock.settle()
      }
      machine.mend()
      await machine.clock.advance(10_000)
      expect(put(log, 1)).toBeLessThan(0)
      await expect(log.flush()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      await expect(machine.engine.close()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      const next = await Machine.on(machine.fs.crash({ seed: 1, share: 0 }), OPTIONS)
      const { rows } = await readRows(await next.log(), 0)
      expect(rows.map(({ value }) => value)).toEqual(valuesFrom(0, end).map((i) => filled(500, i)))
    },
  )

  it('keep the journal from being used again, so that publishers wait, and no longer', async () => {
    const machine = await Machine.open(OPTIONS)
    const log = await machine.log()
    machine.fail((operation, path) =>
      operation === 'write' && path.startsWith('logs') ? { fail: 'EIO' } : undefined,
    )
    let end = 0
    for (let offset = 0; offset >= 0; offset = put(log, filled(500, end))) {
      end = log.marks.end
      await machine.clock.settle()
    }
    let told = 0
    log.onAdvance(() => told++)
    await machine.clock.advance(3000)
    expect([told, machine.fs.bytesOf('journal/a').length, machine.fs.bytesOf('journal/b').length]).toEqual([
      0,
      64 * KiB,
      64 * KiB,
    ])
    machine.mend()
    await machine.clock.advance(1000)
    expect(told).toBeGreaterThan(0)
    await fill(machine, log, 5)
  })
})
