import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine, PartitionLog, Refusal } from '../../src/log/contract.ts'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedEngine, changedLog } from '../support/engines.ts'
import { DataWorld } from '../support/kafka-data.ts'
import { KafkaMachine } from '../support/kafka-machine.ts'
import { committedValues, markersOf, TransactionalProducer } from '../support/kafka-transactions.ts'
import { batchOf, by } from '../support/record-batches.ts'
import { World } from '../support/world.ts'

const DAY_MS = 86_400_000

async function started(
  world: DataWorld,
  options: ConstructorParameters<typeof TransactionalProducer>[2] = {},
  id = 't',
): Promise<TransactionalProducer> {
  const producer = new TransactionalProducer(world, id, options)
  expect(await producer.init()).toBe('NONE')
  return producer
}

function phaseOf(world: DataWorld, id = 't'): string | undefined {
  return world.kafka.transactions.get(id)?.phase
}

describe.each(['v1', 'v2'] as const)('a transaction that takes too long, %s', (protocol) => {
  let world: DataWorld

  beforeEach(async () => {
    world = new DataWorld()
    await world.broker.createTopic('orders')
  })

  it('is aborted at its timeout, counted from its first partition, and its producer is fenced', async () => {
    const producer = await started(world, { protocol, timeoutMs: 10_000 })
    await world.clock.advance(9_000)
    await producer.send('orders', ['a'])
    await world.clock.advance(9_999)
    expect(await producer.send('orders', ['b'])).toBe('NONE')
    expect(phaseOf(world)).toBe('Ongoing')
    await world.clock.advance(1)
    expect(phaseOf(world)).toBe('CompleteAbort')
    expect(await markersOf(world, 'orders')).toEqual(['abort 1/1'])
    expect(await producer.produce('orders', ['c'])).toBe('INVALID_PRODUCER_EPOCH')
    for (const commit of [true, false]) expect(await producer.end(commit)).toBe('PRODUCER_FENCED')
    expect(await producer.init()).toBe('NONE')
    expect(producer.epoch).toBe(2)
    expect(await committedValues(world, 'orders')).toEqual([])
  })

  it('does not, when it ends in time; the next one has a time of its own', async () => {
    const producer = await started(world, { protocol, timeoutMs: 10_000 })
    for (const value of ['a', 'b', 'c']) {
      await producer.send('orders', [value])
      await world.clock.advance(9_000)
      expect(await producer.commit()).toBe('NONE')
    }
    await world.clock.advance(60_000)
    expect(await committedValues(world, 'orders')).toEqual(['a', 'b', 'c'])
  })

  it('is aborted also when all its epochs are used up, and then goes on with another id', async () => {
    const producer = await started(world, { protocol, timeoutMs: 1_000 })
    for (let epoch = 1; epoch <= 32_766; epoch++) await world.kafka.transactions.init('t', 1_000, null)
    Object.assign(producer, { epoch: 32_766 })
    expect(await producer.send('orders', ['a'])).toBe('NONE')
    await world.clock.advance(1_000)
    expect(await markersOf(world, 'orders')).toEqual(['abort 1/32767'])
    expect(await producer.init()).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 2, producerEpoch: 0 })
  })
})

describe('a transactional id', () => {
  it('is forgotten when nobody has used it for 7 days', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const producer = await started(world)
    await world.clock.advance(7 * DAY_MS - 1)
    await producer.send('orders', ['a'])
    await producer.commit()
    await world.clock.advance(7 * DAY_MS - 1)
    expect(phaseOf(world)).toBe('CompleteCommit')
    await world.clock.advance(1)
    expect(phaseOf(world)).toBeUndefined()
    expect(await producer.add('orders')).toBe('INVALID_PRODUCER_ID_MAPPING')
    expect(await producer.init()).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 2, producerEpoch: 0 })
  })

  it('is forgotten also by the next process', async () => {
    const machine = await KafkaMachine.open()
    await started(machine.world)
    await machine.clock.advance(6 * DAY_MS)
    await machine.kill()
    await machine.clock.advance(DAY_MS - 1)
    expect(phaseOf(machine.world)).toBe('Empty')
    await machine.clock.advance(1)
    expect(phaseOf(machine.world)).toBeUndefined()
    await machine.kill()
    expect(phaseOf(machine.world)).toBeUndefined()
  })
})

describe('after a restart', () => {
  it('a transaction goes on where it was, also to its end', async () => {
    const machine = await KafkaMachine.open()
    await machine.world.broker.createTopic('orders')
    const before = await started(machine.world, { protocol: 'v1' })
    await before.send('orders', ['a'])
    await before.sendOffset('g', 'orders', 1)
    await machine.kill()
    expect(await committedValues(machine.world, 'orders')).toEqual([])
    const after = new TransactionalProducer(machine.world, 't')
    Object.assign(after, { producerId: before.producerId, epoch: before.epoch })
    expect(await after.commit()).toBe('NONE')
    expect(await committedValues(machine.world, 'orders')).toEqual(['a'])
  })

  it('a transaction is aborted at its timeout, of which the time before counts', async () => {
    const machine = await KafkaMachine.open()
    await machine.world.broker.createTopic('orders')
    const producer = await started(machine.world, { timeoutMs: 10_000 })
    await producer.send('orders', ['a'])
    await machine.clock.advance(4_000)
    await machine.restart()
    await machine.clock.advance(5_999)
    expect(phaseOf(machine.world)).toBe('Ongoing')
    await machine.clock.advance(1)
    expect(phaseOf(machine.world)).toBe('CompleteAbort')
    expect(await markersOf(machine.world, 'orders')).toEqual(['abort 1/1'])
  })

  it('a transaction ends at its timeout also where nobody serves the protocol any more', async () => {
    const machine = await KafkaMachine.open()
    await machine.world.broker.createTopic('orders')
    const producer = await started(machine.world, { timeoutMs: 10_000 })
    await producer.send('orders', ['a'])
    const clock = new ManualClock({ startMs: machine.clock.now() })
    const engine = await fileEngine({ clock, fs: machine.fs.kill() })
    const { broker } = new World({}, engine, clock)
    await broker.restore()
    const seen: unknown[] = []
    await broker.subscribe('orders', ({ value }) => void seen.push(value))
    await broker.publish('orders', 'b')
    await clock.advance(9_999)
    expect(seen).toEqual([])
    await clock.advance(1)
    expect(seen).toEqual(['b'])
  })

  it('no producer id comes again', async () => {
    const machine = await KafkaMachine.open()
    const ids = new Set<number>()
    for (let life = 0; life < 3; life++) {
      const producer = await started(machine.world, {}, `t${life}`)
      ids.add(producer.producerId)
      await machine.kill()
    }
    expect(ids.size).toBe(3)
  })
})

/** An engine whose logs refuse markers as they are told to. */
class Refusing {
  /** By `topic/partition`. */
  readonly refusals = new Map<string, Refusal>()
  readonly modes: string[] = []
  readonly #logs: PartitionLog[] = []
  readonly #wakes = new Set<() => void>()
  readonly engine: Engine

  constructor(clock: ManualClock) {
    const inner = memoryEngine({ clock })
    this.engine = changedEngine(inner, {
      openLog: async (spec) => {
        const log = await inner.openLog(spec)
        this.#logs.push(log)
        return changedLog(log, {
          tryAppend: (batch, mode) => {
            if (batch.producer?.sequence !== -1) return log.tryAppend(batch, mode)
            this.modes.push(mode ?? 'gated')
            return this.refusals.get(`${spec.topic}/${spec.partition}`) ?? log.tryAppend(batch, mode)
          },
          onAdvance: (wake) => {
            this.#wakes.add(wake)
            return log.onAdvance(wake)
          },
        })
      },
    })
  }

  /** As a log does that has room again. */
  wake(): void {
    for (const wake of this.#wakes) wake()
  }
}

describe('a log that takes no marker now', () => {
  let refusing: Refusing
  let world: DataWorld

  beforeEach(async () => {
    const clock = new ManualClock()
    refusing = new Refusing(clock)
    world = new DataWorld({ engine: refusing.engine, clock })
    await world.broker.createTopic('orders', { partitions: 2 })
  })

  const filled = async (options: ConstructorParameters<typeof TransactionalProducer>[2] = {}) => {
    const producer = await started(world, options)
    await producer.send('orders', ['a'])
    await producer.send('orders', ['b'], 1)
    await producer.sendOffset('g', 'orders', 1)
    return producer
  }

  it.each(['v1', 'v2'] as const)(
    'leaves the transaction prepared: the decision stands, and the id is busy (%s)',
    async (protocol) => {
      const producer = await filled({ protocol })
      refusing.refusals.set('orders/1', 'NO_ROOM')
      const { claim } = producer
      expect(await producer.commit()).toBe('NONE')
      expect(phaseOf(world)).toBe('PrepareCommit')
      expect(await producer.end(true, claim)).toBe('CONCURRENT_TRANSACTIONS')
      expect(await producer.end(false, claim)).toBe('INVALID_TXN_STATE')
      expect(await producer.add('orders')).toBe('CONCURRENT_TRANSACTIONS')
      expect(await producer.addOffsets('g')).toBe('CONCURRENT_TRANSACTIONS')
      expect(await producer.commitOffset('g', 'orders', 2)).toBe('COORDINATOR_LOAD_IN_PROGRESS')
      expect(await producer.init()).toBe('CONCURRENT_TRANSACTIONS')
      const busy = protocol === 'v1' ? 'NOT_ENOUGH_REPLICAS' : 'CONCURRENT_TRANSACTIONS'
      expect(await producer.produce('orders', ['c'])).toBe(busy)
      if (protocol === 'v2') expect(await producer.commit()).toBe('PRODUCER_FENCED')
      const old = new TransactionalProducer(world, 't', { versions: { commitOffsets: 1 } })
      Object.assign(old, { producerId: producer.producerId, epoch: producer.epoch })
      expect(await old.commitOffset('g', 'orders', 2)).toBe('COORDINATOR_NOT_AVAILABLE')
      expect(await committedValues(world, 'orders')).toEqual(['a'])
      expect(await committedValues(world, 'orders', 1)).toEqual([])
    },
  )

  it('gets it when there is room, and the transaction is complete, without a wait', async () => {
    const producer = await filled()
    refusing.refusals.set('orders/1', 'NO_ROOM')
    await producer.commit()
    refusing.wake()
    await world.settle()
    expect(phaseOf(world)).toBe('PrepareCommit')
    refusing.refusals.clear()
    refusing.wake()
    await world.settle()
    expect(phaseOf(world)).toBe('CompleteCommit')
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/0'])
    expect(await markersOf(world, 'orders', 1)).toEqual(['commit 1/0'])
    expect(await committedValues(world, 'orders', 1)).toEqual(['b'])
  })

  it('is asked again after a second where it does not say when', async () => {
    const producer = await filled()
    refusing.refusals.set('orders/1', 'STORAGE_FULL')
    await producer.abort()
    await world.clock.advance(5_000)
    expect(phaseOf(world)).toBe('PrepareAbort')
    refusing.refusals.clear()
    await world.clock.advance(1_000)
    expect(phaseOf(world)).toBe('CompleteAbort')
  })

  it('is waited for by who takes the transactional id over, and by nobody after that', async () => {
    await filled()
    refusing.refusals.set('orders/0', 'NO_ROOM')
    const newer = new TransactionalProducer(world, 't')
    expect(await newer.init()).toBe('CONCURRENT_TRANSACTIONS')
    expect(phaseOf(world)).toBe('PrepareAbort')
    refusing.refusals.clear()
    await world.clock.advance(1_000)
    expect(await newer.init()).toBe('NONE')
    expect(await newer.send('orders', ['c'])).toBe('NONE')
    expect(await newer.commit()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['c'])
  })

  it('lets its producer go on by another id when its epochs are used up, once all is written', async () => {
    const producer = await started(world, { protocol: 'v2' })
    for (let epoch = 1; epoch <= 32_766; epoch++) await world.kafka.transactions.init('t', 60_000, null)
    Object.assign(producer, { epoch: 32_766 })
    await producer.send('orders', ['a'])
    refusing.refusals.set('orders/0', 'NO_ROOM')
    expect(await producer.commit()).toBe('NONE')
    expect(producer.claim).toEqual({ producerId: 2, producerEpoch: 0 })
    refusing.refusals.clear()
    await world.clock.advance(1_000)
    expect(await producer.send('orders', ['b'])).toBe('NONE')
    expect(await producer.commit()).toBe('NONE')
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/32767', 'commit 2/1'])
  })

  it('is left out once its topic is deleted', async () => {
    await world.broker.createTopic('audit')
    const producer = await filled()
    await producer.send('audit', ['c'])
    refusing.refusals.set('audit/0', 'NO_ROOM')
    await producer.commit()
    expect(phaseOf(world)).toBe('PrepareCommit')
    await world.broker.deleteTopic('audit')
    await world.settle()
    expect(phaseOf(world)).toBe('CompleteCommit')
  })

  it('is not left out when its broker closes: the next process writes what is missing', async () => {
    const producer = await filled()
    refusing.refusals.set('orders/1', 'NO_ROOM')
    await producer.commit()
    await world.broker.close()
    await world.clock.advance(10_000)
    expect(phaseOf(world)).toBe('PrepareCommit')
  })

  it('is left out where it never will, and that is logged', async () => {
    const producer = await filled()
    refusing.refusals.set('orders/1', 'TOO_LARGE')
    await producer.commit()
    expect(phaseOf(world)).toBe('CompleteCommit')
    expect(world.logged.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ details: { topic: 'orders', partition: 1, refusal: 'TOO_LARGE' } }),
    ])
  })

  it('takes it beyond its retention, and evicts only where even that is used up', async () => {
    const producer = await filled()
    await producer.commit()
    expect(refusing.modes).toEqual(['exempt', 'exempt'])
    await producer.send('orders', ['c'])
    refusing.refusals.set('orders/0', 'NO_ROOM')
    await producer.commit()
    expect(refusing.modes.slice(2)).toEqual(['exempt', 'force'])
  })
})

describe('what is prepared when the process ends', () => {
  it('is completed by the next one', async () => {
    const machine = await KafkaMachine.open(0, { journalBytes: 64 * 1024 })
    await machine.world.broker.createTopic('orders', { partitions: 2 })
    const producer = await started(machine.world)
    await producer.send('orders', ['a'])
    await producer.sendOffset('g', 'orders', 1)
    const { transactions } = machine
    const stored = transactions.get('t')
    // As it is stored when a log refuses a marker.
    await machine.world.kafka.parts.engine.meta.put([
      ['transaction/t', { ...stored, phase: 'PrepareCommit' }],
    ])
    await machine.kill()
    expect(phaseOf(machine.world)).toBe('CompleteCommit')
    expect(await committedValues(machine.world, 'orders')).toEqual(['a'])
    expect(await markersOf(machine.world, 'orders')).toEqual(['commit 1/0'])
  })
})

describe('a marker of an epoch that a partition is ahead of', () => {
  it('is written with that epoch, so that nothing stays open', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    const producer = await started(world)
    await producer.send('orders', ['a'])
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    // No coordinator has given that epoch: it comes of a client that makes up its own.
    const batch = batchOf({ values: ['b'], producer: by(producer.producerId, 0, 5, true) })
    const answer = log.tryAppend({
      count: 1,
      sizeBytes: batch.length,
      columns: null,
      bytes: batch,
      producer: null,
    })
    expect(answer).toMatchObject({ base: 1 })
    expect(await producer.commit()).toBe('NONE')
    expect(await markersOf(world, 'orders')).toEqual(['commit 1/5'])
    expect(log.marks.stable).toBe(log.marks.end)
  })
})

describe('a store that fails', () => {
  it('is told as a coordinator that is not there, in every answer', async () => {
    const clock = new ManualClock()
    const inner = memoryEngine({ clock })
    let fails = false
    const engine = changedEngine(inner, {
      meta: {
        get: (key) => inner.meta.get(key),
        scan: (prefix) => inner.meta.scan(prefix),
        put: async (changes) => {
          if (fails) throw new Error('no')
          await inner.meta.put(changes)
        },
      },
    })
    const world = new DataWorld({ engine, clock })
    await world.broker.createTopic('orders')
    const producer = await started(world, { timeoutMs: 1_000 })
    const v2 = await started(world, { protocol: 'v2', timeoutMs: 1_000 }, 'v2')
    fails = true
    expect(await producer.add('orders')).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(await producer.addOffsets('g')).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(await producer.commit()).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(await producer.init()).toBe('COORDINATOR_NOT_AVAILABLE')
    expect(await v2.produce('orders', ['a'])).toBe('NONE')
    await clock.advance(1_000)
    await clock.advance(7 * DAY_MS)
    expect(world.raised('error').length).toBeGreaterThan(5)
    fails = false
    expect(await producer.init()).toBe('NONE')
    expect(await producer.send('orders', ['b'])).toBe('NONE')
    expect(await producer.commit()).toBe('NONE')
    expect(await committedValues(world, 'orders')).toEqual(['b'])
  })
})
