/** Publish ids after a restart: read back from the records that carry them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DedupeOptions, Position, TopicOptions } from '../../src/model/options.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { byteDisk, type Disk, type DiskEngine } from '../support/disks.ts'
import { Machine, type Process } from '../support/durable.ts'
import { changedEngine, changedLog } from '../support/engines.ts'
import { upTo } from '../support/world.ts'

async function machineWith(
  dedupe: DedupeOptions | boolean,
  options: TopicOptions = {},
  machine = new Machine(),
) {
  const process = await machine.boot()
  const topic = await process.broker.createTopic<unknown>('t', { dedupe, partitions: 2, ...options })
  return { machine, process, topic }
}

/** A new process, whose wall clock shows what the other one's did, and `awayMs` more. */
function reboot(machine: Machine, before: Process, awayMs = 0): Promise<Process> {
  before.crash()
  return machine.boot({}, new ManualClock({ startMs: before.clock.now() + awayMs }))
}

describe('an id that was published before a restart', () => {
  it('answers the first position, before anybody creates the topic again, and after', async () => {
    const { machine, process, topic } = await machineWith(true)
    await topic.publish('a', { id: 'x', partition: 1 })
    await topic.publishAll([{ value: 'b', id: 'y', partition: 0 }, { value: 'c' }])
    await process.broker.transaction((tx) => tx.publish('t', 'd', { id: 'z', partition: 0 }))
    const next = await reboot(machine, process)
    const again = next.broker.topic('t')
    const answer = async (id: string) => again.publish('e', { id })
    expect(await answer('x')).toEqual({ partition: 1, offset: 0, duplicate: true })
    expect(await answer('y')).toEqual({ partition: 0, offset: 0, duplicate: true })
    await next.broker.createTopic('t', { dedupe: true, partitions: 2 })
    expect(await answer('z')).toMatchObject({ partition: 0, duplicate: true })
    expect((await answer('new')).duplicate).toBeUndefined()
  })

  it('is remembered though others fill more than is read back at once', async () => {
    const { machine, process, topic } = await machineWith(true)
    await topic.publishAll(upTo(5_000).map((i) => ({ value: i, id: `id-${i}`, partition: 0 })))
    const next = await reboot(machine, process)
    const again = next.broker.topic('t')
    for (const i of [0, 903, 904, 905, 4_095, 4_096, 4_999]) {
      const position = { partition: 0, offset: i, duplicate: true }
      expect(await again.publish('again', { id: `id-${i}` })).toEqual(position)
    }
    expect(again.describe().partitions[0]?.end).toBe(5_000)
  })

  it('is remembered for what is left of its time', async () => {
    const { machine, process, topic } = await machineWith({ windowMs: 1_000 })
    await topic.publish('a', { id: 'old' })
    await process.clock.advance(400)
    await topic.publish('a', { id: 'young' })
    const next = await reboot(machine, process, 500)
    const again = next.broker.topic('t')
    expect((await again.publish('b', { id: 'old' })).duplicate).toBe(true)
    await next.clock.advance(100)
    expect((await again.publish('b', { id: 'old' })).duplicate).toBeUndefined()
    expect((await again.publish('b', { id: 'young' })).duplicate).toBe(true)
    await next.clock.advance(400)
    expect((await again.publish('b', { id: 'young' })).duplicate).toBeUndefined()
  })

  it('is remembered though the wall clock was put back', async () => {
    const { machine, process, topic } = await machineWith({ windowMs: 1_000 })
    await topic.publish('a', { id: 'x' })
    const next = await reboot(machine, process, -500_000)
    const again = next.broker.topic('t')
    await next.clock.advance(999)
    expect((await again.publish('b', { id: 'x' })).duplicate).toBe(true)
    await next.clock.advance(1)
    expect((await again.publish('b', { id: 'x' })).duplicate).toBeUndefined()
  })

  it('is not that of a copy, or of a dead letter, which carry the id of their original', async () => {
    const { machine, process, topic } = await machineWith(true, { partitions: 1 })
    await process.broker.createTopic('dlq.t', { dedupe: true })
    let broken = true
    await topic.subscribe(() => (broken ? Promise.reject(new Error('no')) : undefined), {
      id: 'a',
      retry: { attempts: 1 },
    })
    await topic.publish('a', { id: 'x' })
    await process.broker.idle()
    broken = false
    await process.broker.redrive('dlq.t')
    await process.broker.idle()
    expect(await process.broker.read('t')).toHaveLength(2)
    const next = await reboot(machine, process)
    expect(await next.broker.publish('t', 'b', { id: 'x' })).toEqual({
      partition: 0,
      offset: 0,
      duplicate: true,
    })
    expect((await next.broker.publish('dlq.t', 'b', { id: 'x' })).duplicate).toBeUndefined()
  })

  it('is no concern of a topic without dedupe', async () => {
    const { machine, process, topic } = await machineWith(false)
    await topic.publish('a', { id: 'x' })
    const next = await reboot(machine, process)
    expect((await next.broker.publish('t', 'b', { id: 'x' })).duplicate).toBeUndefined()
  })

  it('stays known as far as a window goes that is asked for then', async () => {
    const { machine, process, topic } = await machineWith({ records: 10 }, { partitions: 1 })
    for (const i of upTo(5)) await topic.publish(i, { id: `${i}` })
    const next = await reboot(machine, process)
    const smaller = await next.broker.createTopic('t', { dedupe: { records: 2 } })
    for (const [i, known] of [undefined, undefined, undefined, true, true].entries()) {
      if (known) expect((await smaller.publish(i, { id: `${i}` })).duplicate).toBe(true)
    }
    expect((await smaller.publish(0, { id: '0' })).duplicate).toBeUndefined()
    const last = await reboot(machine, next)
    const off = await last.broker.createTopic('t')
    expect((await off.publish(0, { id: '0' })).duplicate).toBeUndefined()
  })
})

describe('what is read back', () => {
  it('is what the window held, over all partitions, whatever lies between', async () => {
    const publishes = fc.array(
      fc.record({
        partition: fc.nat(1),
        id: fc.option(fc.nat(30)),
        waitMs: fc.integer({ min: 1, max: 4 }),
        plain: fc.nat(40),
      }),
      { maxLength: 40 },
    )
    const windows = fc.record({
      records: fc.integer({ min: 1, max: 12 }),
      windowMs: fc.integer({ min: 5, max: 90 }),
    })
    await fc.assert(
      fc.asyncProperty(publishes, windows, async (all, window) => {
        const { machine, process, topic } = await machineWith(window)
        let known: { id: string; position: Position; at: number }[] = []
        for (const { partition, id, waitMs, plain } of all) {
          const at = process.clock.now()
          known = known.filter((each) => at - each.at < window.windowMs)
          const { duplicate, ...position } = await topic.publish('a', {
            partition,
            ...(id === null ? {} : { id: `${id}` }),
          })
          expect(duplicate === true).toBe(known.some((each) => each.id === `${id}`))
          if (id !== null && !duplicate)
            known = [...known, { id: `${id}`, position, at }].slice(-window.records)
          for (const value of upTo(plain)) void topic.publish(value, { partition })
          await process.clock.advance(waitMs)
        }
        known = known.filter((each) => process.clock.now() - each.at < window.windowMs)
        const next = await reboot(machine, process)
        for (const { id, position } of known) {
          expect(await next.broker.publish('t', 'b', { id })).toEqual({ ...position, duplicate: true })
        }
        const others = upTo(31).filter((id) => !known.some((each) => each.id === `${id}`))
        for (const id of others) {
          expect((await next.broker.publish('t', 'b', { id: `${id}` })).duplicate).toBeUndefined()
        }
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('takes pages until there are enough, and no more', async () => {
    const { machine, process, topic } = await machineWith(
      { records: 3 },
      { partitions: 1, retention: { records: 20_000 } },
    )
    for (const i of upTo(20)) {
      await topic.publishAll(upTo(999).map((value) => ({ value })))
      await topic.publish(i, { id: `${i}` })
    }
    const next = await reboot(machine, process)
    for (const i of [17, 18, 19])
      expect((await next.broker.publish('t', 'b', { id: `${i}` })).duplicate).toBe(true)
    expect((await next.broker.publish('t', 'b', { id: '16' })).duplicate).toBeUndefined()
  })

  it('is what can be read: a log that cannot be is raised, and the topic opens', async () => {
    const disk = byteDisk()
    let broken = false
    const holed: Disk = {
      ...disk,
      open: async (clock) => {
        const engine = await disk.open(clock)
        const load = (): Promise<never> => Promise.reject(new Error('a hole in the disk'))
        return changedEngine(engine, {
          openLog: async (spec) => {
            const log = await engine.openLog(spec)
            return broken && spec.partition === 0 ? changedLog(log, { load }) : log
          },
        }) as DiskEngine
      },
    }
    const { machine, process, topic } = await machineWith(true, {}, new Machine(holed))
    await topic.publish('a', { id: 'x', partition: 0 })
    await topic.publish('a', { id: 'y', partition: 1 })
    broken = true
    const next = await reboot(machine, process)
    await next.settle()
    expect(next.raised('error')).toMatchObject([{ context: expect.stringContaining('"t" partition 0') }])
    expect((await next.broker.publish('t', 'b', { id: 'x' })).duplicate).toBeUndefined()
    expect((await next.broker.publish('t', 'b', { id: 'y' })).duplicate).toBe(true)
  })
})
