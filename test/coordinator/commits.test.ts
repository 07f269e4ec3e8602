/** What a durable engine knows of readers after a crash, and after a close. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CursorState } from '../../src/core/restored.ts'
import type { SubscribeOptions } from '../../src/model/options.ts'
import { Machine, type Process } from '../support/durable.ts'
import { Hands, upTo, watch } from '../support/world.ts'

const READER = { id: 'reader', from: 'earliest' } as const

/** A machine with a topic of records 0 … n − 1. */
async function machineWith(records: number): Promise<{ machine: Machine; topicId: string }> {
  const machine = new Machine()
  const first = await machine.boot()
  const topic = await first.broker.createTopic<number>('orders')
  for (const value of upTo(records)) await topic.publish(value)
  await first.broker.close()
  return { machine, topicId: topic.id }
}

/** Boots and reads by hand, nothing acked yet. */
async function reading(machine: Machine, options: SubscribeOptions = {}): Promise<[Process, Hands]> {
  const process = await machine.boot()
  const hands = new Hands()
  await process.broker.subscribe('orders', hands.take, { ...READER, ack: 'manual', ...options })
  await process.settle()
  return [process, hands]
}

const told = (hands: Hands): [unknown, number, boolean][] =>
  hands.deliveries.map((d) => [d.value, d.attempt, d.redelivered])

const WIDE = { order: 'none', concurrency: 100 } as const

describe('after a crash', () => {
  it('only settles that were not flushed come again', async () => {
    const { machine } = await machineWith(4)
    const [process, hands] = await reading(machine)
    hands.last.ack()
    await process.settle()
    hands.last.ack()
    await process.clock.advance(50)
    expect(hands.values).toEqual([0, 1, 2])
    hands.last.ack()
    await process.settle()
    process.crash()

    const [, again] = await reading(machine)
    expect(told(again)).toEqual([[2, 2, true]])
  })

  it('what was acked beyond the watermark does not come again', async () => {
    const { machine } = await machineWith(6)
    const [process, hands] = await reading(machine, WIDE)
    for (const d of hands.deliveries) if (d.offset === 1 || d.offset > 3) d.ack()
    await process.clock.advance(50)
    process.crash()

    const [next, again] = await reading(machine, WIDE)
    expect(told(again)).toEqual([
      [0, 2, true],
      [2, 2, true],
      [3, 2, true],
    ])
    for (const d of again.deliveries) d.ack()
    expect(next.broker.describe('orders').readers[0]?.cursors[0]?.committed).toBe(6)
  })

  it('an attempt is counted only for records that may have been handed out', async () => {
    const { machine } = await machineWith(300)
    const [process] = await reading(machine)
    process.crash()
    const [next, again] = await reading(machine)
    for (const _ of upTo(300)) {
      again.last.ack()
      await next.settle()
    }
    const attempts = again.deliveries.map((d) => d.attempt)
    expect(attempts.slice(0, 256)).toEqual(upTo(256).map(() => 2))
    expect(attempts.slice(256)).toEqual(upTo(44).map(() => 1))
  })

  it('attempts go on from where they were', async () => {
    const { machine } = await machineWith(2)
    const retry = { attempts: 9, delayMs: 1_000, maxDelayMs: 1_000 }
    const [process, hands] = await reading(machine, { retry })
    for (const _ of upTo(2)) {
      hands.last.nack()
      await process.clock.advance(1_000)
    }
    hands.last.nack()
    // Nothing else made progress: the nack alone is reason enough to store.
    await process.clock.advance(50)
    process.crash()

    const [next, again] = await reading(machine, { retry })
    expect(told(again)).toEqual([[0, 4, true]])
    await next.clock.advance(50)
    next.crash()
    expect(told((await reading(machine, { retry }))[1])).toEqual([[0, 5, true]])
  })

  it('what waited behind its key, and was never handed out, has all its attempts', async () => {
    const machine = new Machine()
    const first = await machine.boot()
    const topic = await first.broker.createTopic('orders')
    for (const value of upTo(3)) await topic.publish(value, { key: 'k' })
    await topic.publish('free')
    const options = { order: 'key', concurrency: 9 } as const
    const handler = (d: { value: unknown }): unknown =>
      d.value === 'free' ? undefined : new Promise(() => {})
    await first.broker.subscribe('orders', handler, { ...READER, ...options })
    await first.clock.advance(50)
    first.crash()

    const [next, again] = await reading(machine, options)
    for (const _ of upTo(3)) {
      again.last.ack()
      await next.settle()
    }
    expect(told(again)).toEqual([
      [0, 2, true],
      [1, 1, false],
      [2, 1, false],
    ])
  })

  it('a replay is not forgotten, nor that attempts start at 1 with it', async () => {
    const { machine } = await machineWith(3)
    const process = await machine.boot()
    const options = { ...READER, ...WIDE, credit: 'manual' } as const
    const sub = await process.broker.subscribe('orders', () => {}, options)
    sub.request(3)
    await process.clock.advance(50)
    expect(machine.stored()[0]?.[1].offset).toBe(3)
    await process.broker.resetOffset('orders', 'reader', 1)
    process.crash()
    expect(told((await reading(machine, WIDE))[1])).toEqual([
      [1, 1, false],
      [2, 1, false],
    ])
  })

  it('at-most-once delivers nothing twice, not even what was not flushed', async () => {
    const { machine } = await machineWith(3)
    const once = { guarantee: 'at-most-once' } as const
    const process = await machine.boot()
    const seen: unknown[] = []
    await process.broker.subscribe('orders', (d) => void seen.push(d.value), { ...READER, ...once })
    await process.settle()
    process.crash()
    const next = await machine.boot()
    await next.broker.subscribe('orders', (d) => void seen.push(d.value), { ...READER, ...once })
    await next.broker.publish('orders', 3)
    await next.settle()
    expect(seen).toEqual([0, 1, 2, 3])
  })

  it('a log that lost what was committed gives its readers every new record', async () => {
    const { machine, topicId } = await machineWith(6)
    const [process, hands] = await reading(machine, WIDE)
    for (const d of hands.deliveries) if (d.offset !== 3) d.ack()
    await process.clock.advance(50)
    process.crash()
    await machine.loseLog(topicId, 0)

    const next = await machine.boot()
    const again = new Hands()
    await next.broker.subscribe('orders', again.take, { ...READER, ...WIDE, ack: 'manual' })
    for (const value of upTo(6)) await next.broker.publish('orders', `new ${value}`)
    await next.settle()
    expect(told(again)).toEqual(upTo(6).map((value) => [`new ${value}`, 1, false]))
  })
})

describe('a record that takes the process down with it', () => {
  /** Boots until nobody crashes any more, at most `most` times; what was delivered, by process. */
  async function bootUntilCalm(
    machine: Machine,
    options: SubscribeOptions,
    most: number,
  ): Promise<unknown[][]> {
    const processes: unknown[][] = []
    for (let crashed = true; crashed && processes.length < most; ) {
      crashed = false
      const process = await machine.boot()
      const seen: unknown[] = []
      processes.push(seen)
      const handler = (d: { value: unknown; attempt: number }): void => {
        if (crashed) return
        seen.push([d.value, d.attempt])
        if (d.value !== 'bomb') return
        crashed = true
        process.crash()
      }
      await process.broker.subscribe('orders', handler, { ...READER, ...options })
      await process.settle()
      if (!crashed) await process.broker.close()
    }
    return processes
  }

  async function mined(): Promise<Machine> {
    const machine = new Machine()
    const first = await machine.boot()
    const topic = await first.broker.createTopic<string>('orders')
    for (const value of ['a', 'bomb', 'b', 'c']) await topic.publish(value)
    await first.broker.close()
    return machine
  }

  it('ends in the dead letters when its attempts are used up, and its neighbours lose none of theirs', async () => {
    const machine = await mined()
    const processes = await bootUntilCalm(machine, { retry: { attempts: 3 } }, 9)
    expect(processes).toEqual([
      [
        ['a', 1],
        ['bomb', 1],
      ],
      [
        ['a', 2],
        ['bomb', 2],
      ],
      [['bomb', 3]],
      [
        ['b', 2],
        ['c', 2],
      ],
    ])
    const process = await machine.boot()
    const letters = await process.broker.read('dlq.orders')
    expect(letters.map((letter) => letter.value)).toEqual(['bomb'])
    expect(letters[0]?.headers.get('__dlq.errors.delivery.count')).toBe('3')
    expect(letters[0]?.headers.get('__dlq.errors.message')).toMatch(/process ended/)
  })

  it('with a single attempt does not take those along that were only about to be handed out', async () => {
    const machine = await mined()
    const processes = await bootUntilCalm(machine, { retry: { attempts: 1 } }, 9)
    expect(processes.flat().filter((each) => (each as string[])[0] === 'bomb').length).toBeLessThanOrEqual(2)
    expect(processes.at(-1)).toEqual([
      ['b', 1],
      ['c', 1],
    ])
    const process = await machine.boot()
    expect((await process.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['bomb'])
  })

  it('among several in flight is found out too', async () => {
    const machine = await mined()
    const options = { order: 'none', concurrency: 4, retry: { attempts: 3 } } as const
    const processes = await bootUntilCalm(machine, options, 9)
    expect(processes.length).toBe(4)
    const process = await machine.boot()
    expect((await process.broker.read('dlq.orders')).map((letter) => letter.value)).toEqual(['bomb'])
    expect(processes.flat()).toContainEqual(['c', 2])
  })
})

describe('after a close', () => {
  it('nothing comes again, and what was not handed out has all its attempts', async () => {
    const { machine } = await machineWith(3)
    const [process, hands] = await reading(machine)
    hands.last.ack()
    await process.settle()
    hands.last.ack()
    await process.broker.close({ drainMs: 0 })
    const [next, again] = await reading(machine)
    again.last.ack()
    await next.settle()
    expect(told(again)).toEqual([[2, 1, false]])
  })

  it('a delivery that was abandoned has lost no attempt', async () => {
    const { machine } = await machineWith(2)
    const [process, hands] = await reading(machine, { ...WIDE, retry: { attempts: 9, delayMs: 0 } })
    hands.deliveries[1]?.nack()
    await process.settle()
    expect(await process.broker.close({ drainMs: 0 })).toEqual({ abandoned: 2 })
    const [, again] = await reading(machine, WIDE)
    expect(again.deliveries.map((d) => [d.value, d.attempt])).toEqual([
      [0, 1],
      [1, 2],
    ])
  })

  it('of its subscription alone, it is the same', async () => {
    const { machine } = await machineWith(3)
    const process = await machine.boot()
    const hands = new Hands()
    const sub = await process.broker.subscribe('orders', hands.take, { ...READER, ack: 'manual' })
    await process.settle()
    hands.last.ack()
    await sub.close({ drainMs: 0 })
    process.crash()
    expect(told((await reading(machine))[1])).toEqual([[1, 1, false]])
  })

  it('at-most-once has lost nothing', async () => {
    const { machine } = await machineWith(3)
    const once = { guarantee: 'at-most-once', credit: 'manual' } as const
    const seen: unknown[] = []
    for (const _ of upTo(3)) {
      const process = await machine.boot()
      const sub = await process.broker.subscribe('orders', (d) => void seen.push(d.value), {
        ...READER,
        ...once,
      })
      sub.request(1)
      await process.settle()
      await process.broker.close()
    }
    expect(seen).toEqual([0, 1, 2])
  })
})

describe('what is stored', () => {
  it('is stored in groups, however many settles there were', async () => {
    const { machine } = await machineWith(100)
    const [process, hands] = await reading(machine, WIDE)
    const before = machine.puts.length
    for (const d of hands.deliveries) d.ack()
    await process.clock.advance(49)
    expect(machine.puts.length).toBe(before)
    await process.clock.advance(1)
    expect(machine.puts.length).toBe(before + 1)
    expect(machine.stored().map(([, state]) => state.offset)).toEqual([100])
    await process.clock.advance(1_000)
    expect(machine.puts.length).toBe(before + 1)
  })

  it('waits as long as commitFlushMs says', async () => {
    const { machine } = await machineWith(1)
    const process = await machine.boot({ commitFlushMs: 500 })
    await process.broker.subscribe('orders', () => {}, READER)
    await process.clock.advance(499)
    expect(machine.stored()[0]?.[1].offset).toBe(0)
    await process.clock.advance(1)
    expect(machine.stored()[0]?.[1].offset).toBe(1)
  })

  it('comes first: nothing is handed out before its mark is safe', async () => {
    const { machine } = await machineWith(1)
    let letGo: () => void = () => {}
    machine.beforePut = () => new Promise((resolve) => (letGo = resolve))
    const [process, hands] = await reading(machine)
    expect(hands.values).toEqual([])
    const idle = watch(process.broker.idle())
    await process.settle()
    expect(idle.state).toBe('waiting')
    letGo()
    await process.settle()
    expect(hands.values).toEqual([0])
  })

  it('is no leave for what a replay has left behind', async () => {
    const { machine } = await machineWith(3)
    const waiting: (() => void)[] = []
    machine.beforePut = () => new Promise((resolve) => waiting.push(resolve))
    const [process, hands] = await reading(machine)
    const reset = process.broker.resetOffset('orders', 'reader', 2)
    await process.settle()
    waiting[0]?.()
    await process.settle()
    expect(hands.values).toEqual([])
    for (const letGo of waiting.splice(0)) letGo()
    await process.settle()
    for (const letGo of waiting.splice(0)) letGo()
    await reset
    await process.settle()
    expect(hands.values).toEqual([2])
  })

  it('is tried again when it failed, and what depends on it waits', async () => {
    const { machine } = await machineWith(2)
    machine.beforePut = () => {
      throw new Error('disk full')
    }
    const [process, hands] = await reading(machine)
    expect(hands.values).toEqual([])
    expect(process.raised('error').map(({ error, context }) => [error.message, context])).toEqual([
      ['disk full', 'storing a delivery mark'],
    ])
    machine.beforePut = () => {}
    await process.clock.advance(1_000)
    expect(hands.values).toEqual([0])

    machine.beforePut = () => {
      throw new Error('disk full again')
    }
    hands.last.ack()
    await process.clock.advance(50)
    expect(process.raised('error').at(-1)?.context).toBe('storing committed offsets')
    expect(machine.stored()[0]?.[1].offset).toBe(0)
    machine.beforePut = () => {}
    await process.clock.advance(1_000)
    expect(machine.stored()[0]?.[1].offset).toBe(1)
  })

  it('does not keep a broker from closing when it cannot be stored', async () => {
    const { machine } = await machineWith(1)
    const [process, hands] = await reading(machine)
    hands.last.ack()
    machine.beforePut = () => {
      throw new Error('disk full')
    }
    expect(await process.broker.close()).toEqual({ abandoned: 0 })
    expect(process.raised('error').map(({ context }) => context)).toEqual(['storing committed offsets'])
  })

  it('is nothing for readers without a name, nor for those that nobody reads for', async () => {
    const { machine } = await machineWith(2)
    const process = await machine.boot()
    await process.broker.subscribe('orders', () => {}, { from: 'earliest' })
    await process.clock.advance(1_000)
    expect(machine.stored()).toEqual([])

    const sub = await process.broker.subscribe('orders', () => {}, READER)
    await process.settle()
    await sub.close()
    const before = machine.puts.length
    await process.broker.publish('orders', 'more')
    await process.clock.advance(1_000)
    expect(machine.puts.length).toBe(before)
  })

  it('is forgotten with the reader, and with the topic', async () => {
    const { machine } = await machineWith(1)
    const process = await machine.boot()
    const sub = await process.broker.subscribe('orders', () => {}, READER)
    await process.broker.subscribe('orders', () => {}, { group: 'g', from: 'earliest' })
    await process.clock.advance(50)
    expect(machine.stored()).toHaveLength(2)
    await sub.unsubscribe()
    expect(machine.stored().map(([key]) => key.split('/')[1])).toEqual(['g'])
    await process.broker.deleteTopic('orders')
    await process.clock.advance(50)
    expect(machine.stored()).toEqual([])
  })

  it('never goes back, and never lets a record go that was not settled', async () => {
    const action = fc.record({
      what: fc.constantFrom('ack', 'ack', 'ack', 'nack', 'flush', 'crash', 'close', 'publish'),
      pick: fc.nat(),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 40 }),
        fc.constantFrom('none', 'partition'),
        async (actions, order) => {
          const { machine } = await machineWith(8)
          const options = { order, concurrency: 5, retry: { attempts: 1_000, delayMs: 0 } } as const
          let [process, hands] = await reading(machine, options)
          let published = 8
          const settled = new Set<number>()
          for (const { what, pick } of actions) {
            const open = hands.deliveries.filter((d) => !d.signal.aborted)
            const chosen = open[pick % Math.max(1, open.length)]
            if (what === 'publish') await process.broker.publish('orders', published++)
            else if (what === 'flush') await process.clock.advance(50)
            else if (what === 'ack' && chosen?.ack() === true) settled.add(chosen.offset)
            else if (what === 'nack') chosen?.nack()
            else if (what === 'crash' || what === 'close') {
              if (what === 'crash') process.crash()
              else await process.broker.close({ drainMs: 0 })
              ;[process, hands] = await reading(machine, options)
            }
            await process.settle()
          }
          const history = machine.puts.filter(([key]) => key.startsWith('offset/'))
          let last = 0
          for (const [, value] of history) {
            const { offset, settled: runs } = value as CursorState
            expect(offset).toBeGreaterThanOrEqual(last)
            last = offset
            for (const at of upTo(offset)) expect(settled).toContain(at)
            for (const [from, to] of runs) for (let at = from; at < to; at++) expect(settled).toContain(at)
          }
          const rest = new Hands()
          process.crash()
          const final = await machine.boot()
          await final.broker.subscribe('orders', rest.take, { ...READER, ...options, ack: 'auto' })
          await final.settle()
          for (const d of rest.deliveries) settled.add(d.offset)
          expect([...settled].sort((a, b) => a - b)).toEqual(upTo(published))
        },
      ),
      { numRuns: 60 },
    )
  })
})
