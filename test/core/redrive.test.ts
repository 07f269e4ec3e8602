/** Dead letters on their way back: which, to whom, how fast, and what is remembered of them. */
import { describe, expect, it } from 'vitest'
import type { MetaChange } from '../../src/log/contract.ts'
import type { LogRecord } from '../../src/model/record.ts'
import { Machine } from '../support/durable.ts'
import { codeOf, upTo, World, watch } from '../support/world.ts'

const ONCE = { retry: { attempts: 1 } } as const

/** Records 0 … n − 1, all of them dead letters of 'picky', who takes everything from now on. */
async function buried(n: number, world = new World()) {
  const topic = await world.broker.createTopic('orders')
  let picky = true
  const seen: LogRecord[] = []
  await topic.subscribe(
    (d) => {
      if (picky) throw new Error('not today')
      seen.push(d)
    },
    { ...ONCE, id: 'picky' },
  )
  for (const value of upTo(n)) await topic.publish(value, { key: `k${value}`, headers: { own: 'yes' } })
  await world.broker.idle()
  picky = false
  const values = (): unknown[] => seen.map((d) => d.value)
  const fail = (): void => {
    picky = true
  }
  return { world, topic, seen, values, fail }
}

describe('redrive', () => {
  it('sends every letter back to where it came from, oldest first, and each once', async () => {
    const { world, values } = await buried(3)
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 3, kept: 0 })
    await world.broker.idle()
    expect(values()).toEqual([0, 1, 2])
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 0, kept: 0 })
    expect(await world.broker.read('dlq.orders')).toHaveLength(3)
  })

  it('sends copies: key, value, id and own headers as they were, marked for the reader and counted', async () => {
    const { world, seen } = await buried(1)
    const [original] = await world.broker.read('orders')
    await world.broker.redrive('dlq.orders')
    await world.broker.idle()
    const [copy] = seen
    expect([copy?.offset, copy?.key, copy?.value, copy?.id]).toEqual([1, 'k0', 0, original?.id])
    expect([...(copy?.headers ?? [])].filter(([name]) => name !== '__odradek.id')).toEqual([
      ['own', 'yes'],
      ['__redrive.count', '1'],
      ['__redrive.reader', 'odradek.reader.picky'],
    ])
  })

  it('counts how often a record was sent back, over every new failure', async () => {
    const { world, fail, seen } = await buried(1)
    fail()
    for (const times of ['1', '2', '3']) {
      await world.broker.redrive('dlq.orders')
      await world.broker.idle()
      const letters = await world.broker.read('dlq.orders')
      expect(letters).toHaveLength(Number(times) + 1)
      expect(letters.at(-1)?.headers.getAll('__redrive.count')).toEqual([times])
      expect(letters.at(-1)?.headers.has('__redrive.reader')).toBe(false)
      expect(letters.at(-1)?.headers.getAll('__dlq.errors.offset')).toEqual([times])
    }
    expect(seen).toEqual([])
  })

  it('hands the copy to the reader that failed and to nobody else, groups told from readers of that name', async () => {
    const { world, topic, values } = await buried(1)
    const others: string[] = []
    await topic.subscribe(() => void others.push('reader'), { id: 'other' })
    await topic.subscribe(() => void others.push('group'), { group: 'picky' })
    await topic.subscribe(() => void others.push('anonymous'))
    await world.broker.redrive('dlq.orders')
    await world.broker.idle()
    expect(values()).toEqual([0])
    expect(others).toEqual([])
    const lags = world.broker.describe('orders').readers.map((reader) => reader.cursors[0]?.lag)
    expect(lags).toEqual([0, 0, 0, 0])
  })

  it('hands the copy to the group that failed', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('orders')
    const seen: string[] = []
    for (const group of ['a', 'b']) {
      await topic.subscribe(
        (d) => {
          seen.push(`${group}${d.offset}`)
          if (d.offset === 0 && group === 'a') throw new Error('not today')
        },
        { ...ONCE, group },
      )
    }
    await topic.publish('x')
    await world.broker.idle()
    await world.broker.redrive('dlq.orders')
    await world.broker.idle()
    expect(seen).toEqual(['a0', 'b0', 'a1'])
  })

  it('with toAll hands the copy to every reader of the topic', async () => {
    const { world, topic, values } = await buried(1)
    const others: unknown[] = []
    await topic.subscribe((d) => void others.push(d.value), { id: 'other' })
    await world.broker.redrive('dlq.orders', { toAll: true })
    await world.broker.idle()
    expect([values(), others]).toEqual([[0], [0]])
  })

  it('sends no more than limit, and goes on with the rest the next time', async () => {
    const { world, values } = await buried(5)
    for (const [limit, sent] of [
      [2, 2],
      [2, 2],
      [2, 1],
      [2, 0],
    ]) {
      expect(await world.broker.redrive('dlq.orders', { limit: limit as number })).toEqual({
        redriven: sent,
        kept: 0,
      })
    }
    await world.broker.idle()
    expect(values()).toEqual(upTo(5))
  })

  it('sends what the filter picks, and keeps the rest for later', async () => {
    const { world, values } = await buried(6)
    const even = (letter: LogRecord): boolean => (letter.value as number) % 2 === 0
    expect(await world.broker.redrive('dlq.orders', { filter: even })).toEqual({ redriven: 3, kept: 3 })
    await world.broker.idle()
    expect(values()).toEqual([0, 2, 4])
    expect(await world.broker.redrive('dlq.orders', { limit: 1 })).toEqual({ redriven: 1, kept: 0 })
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 2, kept: 0 })
    await world.broker.idle()
    expect(values()).toEqual([0, 2, 4, 1, 3, 5])
  })

  it('passes on what a filter throws, and remembers what was sent before', async () => {
    const { world, values } = await buried(3)
    const filter = (letter: LogRecord): boolean => {
      if (letter.value === 1) throw new Error('cannot say')
      return true
    }
    await expect(world.broker.redrive('dlq.orders', { filter })).rejects.toThrow('cannot say')
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 2, kept: 0 })
    await world.broker.idle()
    expect(values()).toEqual([0, 1, 2])
  })

  it('keeps to its rate, and does not wait after the last one', async () => {
    const { world, values } = await buried(3)
    const redriven = watch(world.broker.redrive('dlq.orders', { rate: 2, limit: 3 }))
    await world.settle()
    expect(values()).toEqual([0])
    await world.clock.advance(499)
    expect(values()).toEqual([0])
    await world.clock.advance(1)
    expect(values()).toEqual([0, 1])
    expect(redriven.state).toBe('waiting')
    await world.clock.advance(500)
    expect(values()).toEqual([0, 1, 2])
    expect(redriven.value).toEqual({ redriven: 3, kept: 0 })
  })

  it('stops at an aborted signal, also in the middle of a pause', async () => {
    const { world, values } = await buried(3)
    const stop = new AbortController()
    const redriven = codeOf(world.broker.redrive('dlq.orders', { rate: 1, signal: stop.signal }))
    await world.settle()
    stop.abort()
    expect(await redriven).toBe('ABORTED')
    await world.broker.idle()
    expect(values()).toEqual([0])
  })

  it('that paces itself ends when the broker closes', async () => {
    const { world } = await buried(3)
    const redriven = codeOf(world.broker.redrive('dlq.orders', { rate: 1 }))
    await world.settle()
    await world.broker.close()
    expect(await redriven).toBe('CLOSED')
  })

  it('waits for room like any publisher', async () => {
    const { world, values } = await buried(2)
    const orders = world.broker.topic('orders')
    await world.broker.alterTopic('orders', { retention: { records: 1 } })
    await orders.subscribe(() => new Promise(() => {}), { id: 'slow' })
    await orders.publish('x')
    const redriven = watch(world.broker.redrive('dlq.orders'))
    await world.settle()
    expect(redriven.state).toBe('waiting')
    await world.broker.unsubscribe('orders', 'slow')
    await world.settle()
    expect(redriven.value).toEqual({ redriven: 2, kept: 0 })
    expect(values()).toEqual(['x', 0, 1])
  })

  it('keeps what was never a letter: nobody can say where it came from', async () => {
    const { world, values } = await buried(1)
    await world.broker.publish('dlq.orders', 'by hand')
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 1, kept: 1 })
    await world.broker.idle()
    expect(values()).toEqual([0])
  })

  it('forgets its marks of letters that retention took', async () => {
    const { world, fail, values } = await buried(4)
    await world.broker.redrive('dlq.orders', { filter: (letter) => letter.value === 2 })
    await world.broker.idle()
    await world.broker.alterTopic('dlq.orders', { retention: { records: 1 } })
    expect(world.raised('dropped')).toMatchObject([{ from: 0, to: 3, count: 2 }])
    fail()
    await world.broker.redrive('dlq.orders')
    await world.broker.idle()
    expect(values()).toEqual([2])
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 1, kept: 0 })
  })

  it('keeps letters of a topic that is gone', async () => {
    const { world } = await buried(2)
    await world.broker.deleteTopic('orders')
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 0, kept: 2 })
    expect(world.logged.filter((line) => line.level === 'warn')).toHaveLength(2)
  })

  it('of a topic that is no dead-letter topic, or runs already, is refused', async () => {
    const { world } = await buried(2)
    expect(await codeOf(world.broker.redrive('orders'))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(world.broker.redrive('nowhere'))).toBe('UNKNOWN_TOPIC')
    for (const options of [{ limit: 0 }, { limit: 1.5 }, { rate: 0 }, { rate: -1 }]) {
      expect(await codeOf(world.broker.redrive('dlq.orders', options))).toBe('INVALID_ARGUMENT')
    }
    const first = world.broker.redrive('dlq.orders')
    expect(await codeOf(world.broker.redrive('dlq.orders'))).toBe('INVALID_ARGUMENT')
    expect(await first).toEqual({ redriven: 2, kept: 0 })
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 0, kept: 0 })
  })

  it('reads every partition of the dead letters, new ones too', async () => {
    const world = new World()
    await world.broker.createTopic('dlq.orders', { partitions: 2 })
    const { values } = await buried(20, world)
    const { partitions } = world.broker.describe('dlq.orders')
    expect(partitions.every((partition) => partition.records > 0)).toBe(true)
    await world.broker.alterTopic('dlq.orders', { partitions: 3 })
    expect(await world.broker.redrive('dlq.orders', { limit: 15 })).toEqual({ redriven: 15, kept: 0 })
    expect(await world.broker.redrive('dlq.orders')).toEqual({ redriven: 5, kept: 0 })
    await world.broker.idle()
    expect((values() as number[]).sort((a, b) => a - b)).toEqual(upTo(20))
  })

  it('is remembered after a restart: what was sent back is not sent again', async () => {
    const machine = new Machine()
    const { world } = await buried(4, await machine.boot())
    const odd = (letter: LogRecord): boolean => (letter.value as number) % 2 === 1
    await world.broker.redrive('dlq.orders', { filter: odd })
    await world.broker.close()
    const next = await machine.boot()
    expect(await next.broker.redrive('dlq.orders')).toEqual({ redriven: 2, kept: 0 })
  })

  it('marks a letter after its copy was accepted, so that a crash loses none', async () => {
    const machine = new Machine()
    const process = await machine.boot()
    await buried(1, process)
    const marked = new Promise<void>((resolve) => {
      machine.beforePut = (changes: readonly MetaChange[]) => {
        if (!changes.some(([key]) => key.startsWith('redrive/'))) return undefined
        resolve()
        return new Promise(() => {})
      }
    })
    void process.broker.redrive('dlq.orders')
    await marked
    expect(await process.broker.read('orders')).toHaveLength(2)
    process.crash()
    machine.beforePut = () => {}
    const next = await machine.boot()
    expect(await next.broker.redrive('dlq.orders')).toEqual({ redriven: 1, kept: 0 })
  })
})
