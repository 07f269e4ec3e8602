/** Marks are stored ahead of what is handed out, so that nobody waits for the disk. */
import { describe, expect, it } from 'vitest'
import type { MetaChange } from '../../src/log/contract.ts'
import { Machine, type Process } from '../support/durable.ts'
import { upTo } from '../support/world.ts'

const marksIn = (puts: readonly MetaChange[]): number[] =>
  puts.filter(([key]) => key.startsWith('offset/')).map(([, state]) => (state as { handed: number }).handed)

interface Reading {
  readonly process: Process
  readonly values: unknown[]
  /** Publishes the next `n`, one after the other has been handled as far as it will be. */
  publish(n: number): Promise<void>
}

async function reading(machine: Machine, guarantee?: 'at-most-once'): Promise<Reading> {
  // Progress is not flushed in between: what is put is marks.
  const process = await machine.boot({ commitFlushMs: 1_000_000 })
  const topic = await process.broker.createTopic<number>('orders')
  const values: unknown[] = []
  const options = guarantee === undefined ? {} : { guarantee }
  await process.broker.subscribe('orders', (d) => void values.push(d.value), { id: 'reader', ...options })
  let next = 0
  const publish = async (n: number): Promise<void> => {
    for (const end = next + n; next < end; next++) {
      await topic.publish(next)
      await process.settle()
    }
  }
  return { process, values, publish }
}

describe('a reader that is behind', () => {
  it('and faster than the disk has larger blocks, up to a bound', async () => {
    const machine = new Machine()
    const process = await machine.boot({ commitFlushMs: 1_000_000 })
    const topic = await process.broker.createTopic<number>('orders')
    await topic.publishAll(upTo(20_000).map((value) => ({ value })))
    machine.beforePut = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    const values: unknown[] = []
    const before = machine.puts.length
    await process.broker.subscribe('orders', (d) => void values.push(d.value), {
      id: 'reader',
      from: 'earliest',
    })
    for (let turns = 0; values.length < 20_000 && turns < 100; turns++) await process.settle()
    expect(values).toEqual(upTo(20_000))
    const marks = marksIn(machine.puts.slice(before))
    expect(marks.length).toBeLessThan(30)
    const steps = marks.map((mark, i) => mark - (marks[i - 1] ?? 0))
    expect(Math.max(...steps)).toBeGreaterThan(1_024)
    expect(Math.max(...steps)).toBeLessThanOrEqual(2_048)
  })
})

describe('a reader at the tail', () => {
  it('waits for no mark but the first', async () => {
    const machine = new Machine()
    const { values, publish } = await reading(machine)
    await publish(1)
    const before = machine.puts.length
    machine.beforePut = () => new Promise(() => {})
    await publish(255)
    expect(values).toEqual(upTo(256))
    expect(machine.puts.length).toBe(before)
  })

  it('has the next block before this one is used up, and stores one mark for many records', async () => {
    const machine = new Machine()
    const { values, publish } = await reading(machine)
    await publish(1_000)
    expect(values).toEqual(upTo(1_000))
    const marks = marksIn(machine.puts)
    expect(marks.length).toBeLessThanOrEqual(9)
    for (const [i, mark] of marks.entries()) if (i > 0) expect(mark).toBeGreaterThan(marks[i - 1] as number)
  })

  it('is handed nothing beyond what is stored, and tells why', async () => {
    const machine = new Machine()
    const { process, values, publish } = await reading(machine)
    const told: string[] = []
    process.broker.on('error', ({ context }) => told.push(context))
    await publish(1)
    machine.beforePut = () => Promise.reject(new Error('full'))
    await publish(300)
    expect(values).toEqual(upTo(256))
    // The one ahead was tried in silence, once; the one that is needed is told of.
    expect(told).toContain('storing a delivery mark')
    machine.beforePut = () => {}
    await process.clock.advance(1_000)
    expect(values).toEqual(upTo(301))
  })

  it('under at-most-once has committed nothing that is not there', async () => {
    const machine = new Machine()
    const { values, publish } = await reading(machine, 'at-most-once')
    await publish(20)
    expect(values).toEqual(upTo(20))
    expect(machine.stored().map(([, { offset }]) => offset)).toEqual([20])
  })

  it('knows after a crash which records may have been started, and no more than a block of them', async () => {
    const machine = new Machine()
    const { process, publish } = await reading(machine)
    await publish(400)
    process.crash()
    const handed = machine.stored()[0]?.[1].handed
    expect(handed).toBeGreaterThanOrEqual(400)
    expect(handed).toBeLessThanOrEqual(400 + 256)
    const next = await machine.boot()
    const attempts: number[] = []
    await next.broker.subscribe('orders', (d) => void attempts.push(d.attempt), { id: 'reader' })
    for (let i = 0; i < 3; i++) await next.broker.publish('orders', 'new')
    for (let i = 0; i < 600; i++) await next.settle()
    expect(attempts.slice(-3)).toEqual([1, 1, 1])
    expect(attempts.slice(0, -3).every((attempt) => attempt === 2)).toBe(true)
  })
})
