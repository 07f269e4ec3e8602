/** What belongs together is asked of the engine in one moment: after a crash all of it is there, or nothing. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ByteEngine } from '../support/byte-engine.ts'
import { byteDisk } from '../support/disks.ts'
import { Machine, type Process } from '../support/durable.ts'
import { codeOf, Hands, upTo, watch } from '../support/world.ts'

const engineOf = (process: Process): ByteEngine => process.engine as ByteEngine

/** A process whose reader "r" of "in" has its records 0 … n − 1 in hand, and that may write to "out" and "log". */
async function copying(n: number, machine = new Machine(byteDisk())) {
  const process = await machine.boot()
  for (const name of ['in', 'out', 'log']) await process.broker.createTopic(name)
  for (const value of upTo(n)) await process.broker.publish('in', value)
  const hands = new Hands()
  await process.broker.subscribe('in', hands.take, {
    id: 'r',
    from: 'earliest',
    ack: 'manual',
    order: 'none',
    concurrency: n,
    ackTimeoutMs: 3_600_000,
  })
  await process.settle()
  await process.clock.advance(100)
  return { machine, process, hands, engine: engineOf(process) }
}

const valuesOf = async ({ broker }: Process, topic: string): Promise<unknown[]> =>
  (await broker.read(topic)).map(({ value }) => value)

/** What "r" is handed after a restart. */
async function redelivered(process: Process): Promise<unknown[]> {
  const hands = new Hands()
  await process.broker.subscribe('in', hands.take, { id: 'r', ack: 'manual', order: 'none', concurrency: 99 })
  await process.settle()
  return hands.values
}

describe('a transaction', () => {
  it('asks for its appends and for the places of its acks in one moment', async () => {
    const { process, hands, engine } = await copying(2)
    engine.groups.length = 0
    await process.broker.transaction((tx) => {
      tx.publish('out', 'a')
      tx.ack(hands.deliveries[0] as never)
      tx.publish('log', 'b')
      tx.ack(hands.deliveries[1] as never)
    })
    const [group] = engine.groups
    expect(group?.appends.map(({ log }) => log).sort()).toEqual(['log/0', 'out/0'])
    expect(group?.changes).toMatchObject([
      [expect.stringMatching(/^offset\/odradek\.reader\.r\//), { offset: 2 }],
    ])
  })

  it.each([
    ['before its moment is durable', false],
    ['after', true],
  ])('is there as a whole or not at all after a crash: %s', async (_, durable) => {
    const { machine, process, hands, engine } = await copying(3)
    engine.held = true
    const transaction = watch(
      process.broker.transaction((tx) => {
        tx.publish('out', 'copy of 1')
        tx.publish('log', '1 was copied')
        tx.ack(hands.deliveries[1] as never)
      }),
    )
    await process.settle()
    expect(transaction.state).toBe('waiting')
    if (durable) engine.commit()
    process.crash()
    const next = await machine.boot()
    expect(await valuesOf(next, 'out')).toEqual(durable ? ['copy of 1'] : [])
    expect(await valuesOf(next, 'log')).toEqual(durable ? ['1 was copied'] : [])
    expect(await redelivered(next)).toEqual(durable ? [0, 2] : [0, 1, 2])
  })

  it('copies every record once, whenever the process crashes', async () => {
    const crashes = fc.array(fc.record({ copies: fc.nat(4), commits: fc.nat(3) }), { maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(crashes, async (lives) => {
        const { machine, process: first } = await copying(6)
        first.crash()
        for (const { copies, commits } of [...lives, { copies: 99, commits: 99 }]) {
          const process = await machine.boot()
          const engine = engineOf(process)
          const hands = new Hands()
          await process.broker.subscribe('in', hands.take, {
            id: 'r',
            ack: 'manual',
            order: 'none',
            concurrency: 9,
            retry: { attempts: 99 },
          })
          await process.settle()
          engine.held = true
          for (const delivery of hands.deliveries.slice(0, copies)) {
            void process.broker.transaction((tx) => {
              tx.publish('out', delivery.value)
              tx.ack(delivery)
            })
            await process.settle()
            if (engine.groups.length % 4 < commits) engine.commit()
          }
          await process.settle()
          if (commits === 99)
            expect(await valuesOf(process, 'out').then((all) => all.sort())).toEqual(upTo(6))
          process.crash()
        }
      }),
      { numRuns: 40 },
    )
  })

  it('that is known to be lost takes its acks back: nothing is lost with it', async () => {
    const { machine, process, hands, engine } = await copying(3)
    engine.held = true
    const lost = codeOf(
      process.broker.transaction((tx) => {
        tx.publish('out', 'a')
        tx.ack(hands.deliveries[0] as never)
        tx.ack(hands.deliveries[1] as never)
      }),
    )
    await process.settle()
    engine.held = false
    engine.fail('STORAGE_FULL')
    engine.commit()
    expect(await lost).toBe('STORAGE_FULL')
    await process.settle()
    expect(hands.values).toEqual([0, 1, 2, 0, 1, 2])
    await process.clock.advance(2_000)
    process.crash()
    const next = await machine.boot()
    expect(await valuesOf(next, 'out')).toEqual([])
    expect(await redelivered(next)).toEqual([0, 1, 2])
  })

  it('of which nobody knows the outcome is told so, and the truth is on the disk', async () => {
    const { machine, process, hands, engine } = await copying(1)
    engine.held = true
    const unknown = codeOf(
      process.broker.transaction((tx) => {
        tx.publish('out', 'a')
        tx.ack(hands.last)
      }),
    )
    await process.settle()
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    expect(await unknown).toBe('OUTCOME_UNKNOWN')
    process.crash()
    const next = await machine.boot()
    expect(await valuesOf(next, 'out')).toEqual([])
    expect(await redelivered(next)).toEqual([0])
  })
})

describe('deleting a topic', () => {
  /** Readers with places, dead letters that were sent back: all that may stay behind. */
  async function used() {
    const machine = new Machine(byteDisk())
    const process = await machine.boot()
    const { broker } = process
    await broker.createTopic('dlq.t', { partitions: 3 })
    await broker.createTopic('t')
    let broken = true
    await broker.subscribe('t', () => (broken ? Promise.reject(new Error('no')) : undefined), {
      id: 'a',
      retry: { attempts: 1 },
    })
    await broker.subscribe('dlq.t', () => {}, { group: 'undertakers' })
    await broker.publish('t', 1)
    await broker.idle()
    broken = false
    await broker.redrive('dlq.t')
    await broker.idle()
    await process.clock.advance(100)
    return { machine, process, broker, engine: engineOf(process), id: broker.topic('dlq.t').id }
  }

  it('asks for all of it in one moment, and leaves nothing behind', async () => {
    const { broker, engine, id } = await used()
    const kinds = [...engine.meta.scan('')]
      .filter(([key]) => key.includes(id))
      .map(([key]) => key.split('/')[0])
    expect([...new Set(kinds)]).toEqual(['offset', 'redrive', 'topic'])
    engine.groups.length = 0
    await broker.deleteTopic('dlq.t')
    const [group] = engine.groups
    expect(group?.deleted).toEqual(['dlq.t/0', 'dlq.t/1', 'dlq.t/2'])
    expect(group?.changes).toContainEqual([`topic/${id}`, null])
    expect([...engine.meta.scan('')].filter(([key]) => key.includes(id))).toEqual([])
  })

  it.each([false, true])('is done as a whole or not at all after a crash (durable: %s)', async (durable) => {
    const { machine, process, broker, engine } = await used()
    engine.held = true
    void broker.deleteTopic('dlq.t')
    await process.settle()
    if (durable) engine.commit()
    process.crash()
    const next = await machine.boot()
    expect(next.broker.listTopics().sort()).toEqual(durable ? ['t'] : ['dlq.t', 't'])
    await next.broker.createTopic('dlq.t', { partitions: 3 })
    const letters = await Promise.all(upTo(3).map((partition) => next.broker.read('dlq.t', partition)))
    expect(letters.flat()).toHaveLength(durable ? 0 : 1)
    expect(await next.broker.redrive('dlq.t')).toEqual({ redriven: 0, kept: 0 })
  })

  it('lets those end who wait for its records to be durable', async () => {
    const { process, broker, engine } = await used()
    engine.held = true
    const published = watch(broker.publish('t', 2))
    const deleted = watch(broker.deleteTopic('t'))
    const idle = watch(broker.idle())
    await process.settle()
    engine.commit()
    await process.settle()
    expect([published.state, deleted.state, idle.state]).toEqual(['resolved', 'resolved', 'resolved'])
  })
})
