import { describe, expect, it } from 'vitest'
import { Slice } from '../../../src/model/batch.ts'
import {
  accept,
  batchOf,
  keeping,
  markerOf,
  producerOf,
  readRows,
  settled,
  T0,
  valuesFrom,
  valuesOf,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { filled, KiB, Machine, stored, watched } from './engine-kit.ts'

const PLENTY = 10_000_000

describe('reading what is on the disk', () => {
  it('answers miss, then hit, and the same rows however it is asked', async () => {
    const { log } = await stored(100, { cacheBytes: 100 * KiB })
    const into = new Slice()
    expect(log.peek(10, 5, 'committed', into)).toBe('miss')
    const loaded = await log.load(10, PLENTY, 'committed')
    expect([log.peek(10, 5, 'committed', into), into.count, into.columns === loaded.columns]).toEqual([
      'hit',
      5,
      true,
    ])
    const rows = (await readRows(log, 0)).rows
    expect(rows.map(({ value }) => value)).toEqual(valuesFrom(0, 100).map((i) => filled(200, i)))
    for (const max of [1, 7]) expect((await readRows(log, 30, 'committed', max)).rows).toEqual(rows.slice(30))
  })

  it('loads what somebody else makes leave at once', async () => {
    const { machine, log } = await stored(50)
    // Pages of two kinds, each of which makes the other leave.
    await accept(log, wireBatchOf([{ value: 'wire' }]))
    const other = await machine.log('b')
    await accept(other, wireBatchOf([{ value: 'other' }]))
    const loads = Array.from({ length: 40 }, (_, i) => log.load(i, 1, 'committed'))
    for (const [i, slice] of (await Promise.all(loads)).entries()) {
      expect([slice.count, slice.columns.values[slice.row]]).toEqual([1, filled(200, i)])
    }
  })

  it('is CLOSED where the log closes meanwhile', async () => {
    const { machine, log } = await stored(30, { timed: true })
    const reads = watched([log.load(0, PLENTY, 'committed'), log.read(0, PLENTY, 'committed')])
    void log.close()
    await machine.clock.settle()
    expect(reads).toEqual(['CLOSED', 'CLOSED'])
  })

  it('is CLOSED where the log, or the engine, goes meanwhile', async () => {
    for (const end of ['delete', 'close'] as const) {
      const { machine, log } = await stored(30, { timed: true })
      const reads = watched([log.load(0, PLENTY, 'committed'), log.read(20, PLENTY, 'committed')])
      if (end === 'delete') await machine.engine.deleteLog('a', 0)
      else await machine.engine.close()
      await machine.clock.settle()
      expect([end, ...reads]).toEqual([end, 'CLOSED', 'CLOSED'])
    }
  })

  it('is OFFSET_OUT_OF_RANGE where the log is trimmed meanwhile', async () => {
    const { machine, log } = await stored(60, { timed: true })
    const reads = watched([
      log.load(0, PLENTY, 'committed'),
      log.read(5, PLENTY, 'committed'),
      log.load(50, 1, 'committed'),
    ])
    await log.trim(40)
    await machine.clock.settle()
    expect(reads).toEqual(['OFFSET_OUT_OF_RANGE', 'OFFSET_OUT_OF_RANGE', 'resolved'])
  })

  it('is ABORTED where its signal says so meanwhile', async () => {
    const { machine, log } = await stored(30, { timed: true })
    const controller = new AbortController()
    const reads = watched([
      log.load(0, PLENTY, 'committed', controller.signal),
      log.read(0, PLENTY, 'committed', controller.signal),
    ])
    controller.abort()
    await machine.clock.settle()
    expect(reads).toEqual(['ABORTED', 'ABORTED'])
  })

  it('tells of damage by file and position, also who reads it again, and goes on beside it', async () => {
    const { machine, log } = await stored(60)
    const [path] = machine.fs.files().filter((each) => each.endsWith('.log'))
    machine.fs.flipBit(path as string, 100)
    for (let i = 0; i < 2; i++) {
      await expect(log.load(0, PLENTY, 'committed')).rejects.toMatchObject({
        code: 'CORRUPT_LOG',
        message: expect.stringContaining(path as string),
      })
    }
    expect((await readRows(log, 40)).rows.length).toBe(20)
  })
})

describe('finding records by time', () => {
  it('finds them in segments, in memory, and in between', async () => {
    const { log } = await stored(100)
    for (let i = 100; i < 120; i++) log.tryAppendOne(filled(200, i), null, null, T0 + i, 0)
    await settled(log)
    for (let i = 0; i < 120; i += 7)
      expect(await log.offsetAt(T0 + i)).toEqual({ offset: i, timestamp: T0 + i })
    expect(await log.offsetAt(T0 + 120)).toBeUndefined()
    expect(await log.newest()).toEqual({ offset: 119, timestamp: T0 + 119 })
  })

  it('finds the newest where it is not the last, by segments as far as they are kept whole', async () => {
    const { log } = await stored(60)
    await accept(log, wireBatchOf([{ value: 'late', timestamp: T0 + 9000 }]))
    await accept(log, wireBatchOf([{ value: 'early', timestamp: T0 + 1 }]))
    expect(await log.newest()).toEqual({ offset: 60, timestamp: T0 + 9000 })
    await log.trim(61)
    expect(await log.newest()).toEqual({ offset: 61, timestamp: T0 + 1 })
    await log.trim(62)
    expect(await log.newest()).toBeUndefined()
  })

  it('goes on from the new start where the log is trimmed while it looks', async () => {
    const { machine, log } = await stored(100, { timed: true })
    const looks = [log.offsetAt(T0), log.offsetAt(T0 + 30), log.newest(), log.offsetAt(T0 + 95)]
    await log.trim(90)
    await machine.clock.settle()
    expect(await Promise.all(looks)).toEqual([
      { offset: 90, timestamp: T0 + 90 },
      { offset: 90, timestamp: T0 + 90 },
      { offset: 99, timestamp: T0 + 99 },
      { offset: 95, timestamp: T0 + 95 },
    ])
  })

  it('goes on from there also where the segment that it looked into is gone', async () => {
    const { machine, log } = await stored(100, { timed: true })
    machine.fail((operation, path) =>
      operation === 'open' && path.endsWith('.index') ? { delayMs: 100 } : undefined,
    )
    const looks = [log.offsetAt(T0), log.offsetAt(T0 + 30)]
    await machine.clock.settle()
    await log.trim(90)
    await machine.clock.settle()
    expect(machine.count('remove logs')).toBeGreaterThan(5)
    await machine.clock.advance(1000)
    expect((await Promise.all(looks)).map((at) => at?.offset)).toEqual([90, 90])
  })

  it('tells of what keeps it from looking', async () => {
    const { machine, log } = await stored(60)
    machine.fail((operation, path) =>
      operation === 'read' && path.endsWith('.log') ? { fail: 'EIO' } : undefined,
    )
    await expect(log.offsetAt(T0)).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
  })
})

describe('age', () => {
  it('goes by segments where records are on the disk only, and by batches where they are in memory', async () => {
    const { log } = await stored(100)
    log.configure(keeping({ ageMs: 100 }))
    log.expire(T0 + 130)
    const { start } = log.marks
    expect(start).toBeGreaterThan(0)
    expect(start).toBeLessThanOrEqual(30)
    await readRows(log, start)
    log.expire(T0 + 150)
    expect(log.marks.start).toBeGreaterThan(start)
    expect(log.marks.start).toBeLessThanOrEqual(50)
    log.expire(T0 + 1000)
    expect([log.marks.start, log.sizeBytes]).toEqual([100, 0])
  })

  it('keeps what has no timestamp', async () => {
    const machine = await Machine.open({ segmentBytes: 4 * KiB })
    const log = await machine.log()
    for (let i = 0; i < 30; i++) await accept(log, wireBatchOf([{ value: filled(300, i), timestamp: -1 }]))
    await machine.engine.close()
    const next = await Machine.on(machine.fs.kill(), machine.options)
    const again = await next.log('a', { ageMs: 1 })
    again.expire(T0 + 1e9)
    expect(again.marks.start).toBe(0)
  })

  it('moves the start on the disk too', async () => {
    const { machine, log } = await stored(100)
    log.configure(keeping({ ageMs: 100 }))
    log.expire(T0 + 130)
    const { start } = log.marks
    await log.flush()
    const next = await Machine.on(machine.fs.crash({ seed: 1 }), machine.options)
    expect((await next.log()).marks.start).toBe(start)
  })
})

describe('a wire batch', () => {
  it('ends a transaction of columns that came before it, also in memory that was read already', async () => {
    const machine = await Machine.open()
    const log = await machine.log()
    const producer = producerOf(7, 0, { transactional: true })
    await accept(log, batchOf([{ value: 'bad', key: 'k' }], producer))
    await accept(log, batchOf([{ value: 'good' }]))
    expect(await valuesOf(log, 0, 'uncommitted')).toEqual(['bad', 'good'])
    await accept(log, markerOf(producer, false))
    expect(await valuesOf(log, 0)).toEqual(['good'])
  })
})
