import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import {
  accept,
  keeping,
  openLog,
  producerOf,
  publish,
  SIZE,
  T0,
  valuesFrom,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const DAY_MS = 86_400_000

function newEngine(startMs = T0) {
  return memoryEngine({ clock: new ManualClock({ startMs }) })
}

describe('the memory engine', () => {
  it('outlives nothing', () => {
    expect([newEngine().scheme, newEngine().durable]).toEqual(['memory', false])
  })

  it('hands out values by reference', async () => {
    const log = await openLog(newEngine())
    const value = { any: () => 'thing' }
    await publish(log, [value])
    expect((await log.load(0, 1, 'committed')).columns.values[0]).toBe(value)
  })

  it('puts an open log under the retention that it is opened with again', async () => {
    const engine = newEngine()
    const log = await openLog(engine)
    await publish(log, valuesFrom(0, 9))
    expect(await openLog(engine, { records: 4 })).toBe(log)
    expect(log.records).toBe(4)
  })

  it('opens an empty log in place of one that was closed', async () => {
    const engine = newEngine()
    const log = await openLog(engine)
    await publish(log, [1])
    await log.close()
    const next = await openLog(engine)
    expect(next).not.toBe(log)
    expect(next.marks.end).toBe(0)
  })
})

describe('a memory log', () => {
  it('expires what is too old as soon as it has an age', async () => {
    const log = await openLog(newEngine(T0 + 1000))
    for (const ms of [0, 500, 900]) log.tryAppendOne(ms, null, null, T0 + ms, SIZE)
    log.configure(keeping({ ageMs: 600 }))
    expect(log.marks.start).toBe(1)
  })

  it('forgets producers that appended nothing for a day', async () => {
    const log = await openLog(newEngine())
    await accept(log, wireBatchOf([{ value: 1, timestamp: T0 }], producerOf(1, 0)))
    await accept(log, wireBatchOf([{ value: 2, timestamp: T0 + 5 }], producerOf(2, 0)))
    log.expire(T0 + DAY_MS + 1)
    expect([...log.producers()].map(({ id }) => id)).toEqual([2])
  })

  it('lets a wake append, and keeps the order', async () => {
    const log = await openLog(newEngine())
    let left = 3
    log.onAdvance(() => {
      if (left-- > 0) log.tryAppendOne(`echo ${left}`, null, null, T0, SIZE)
    })
    expect(log.tryAppendOne('first', null, null, T0, SIZE)).toBe(0)
    const { columns, count } = await log.load(0, 1000, 'committed')
    expect(columns.values.slice(0, count)).toEqual(['first', 'echo 2', 'echo 1', 'echo 0'])
  })

  it('lets a wake stop another wake, which is called a last time', async () => {
    const log = await openLog(newEngine())
    let calls = 0
    const stops = [log.onAdvance(() => stops[1]?.()), log.onAdvance(() => calls++)]
    await publish(log, [1, 2])
    expect(calls).toBe(1)
  })

  it('waits for nothing but what was appended', async () => {
    const log = await openLog(newEngine())
    await expect(log.durable(0)).rejects.toThrow('only what was appended')
  })
})
