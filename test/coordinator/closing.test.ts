/** What meets a close that is under way, and what a close that is refused leaves as it was. */
import { describe, expect, it } from 'vitest'
import { refusalError } from '../../src/log/contract.ts'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedEngine, changedLog, withLogs } from '../support/engines.ts'
import { SimFs } from '../support/sim-fs.ts'
import { codeOf, upTo, World } from '../support/world.ts'

describe('a subscribe that is overtaken by the close of its broker', () => {
  it.each(['orders.1', 'orders.*'])('is refused, and lets the event loop turn (%s)', async (target) => {
    const { broker } = new World()
    for (const i of upTo(9)) await broker.createTopic(`orders.${i}`)
    const subscribed = codeOf(broker.subscribe(target, () => {}, { from: new Date(0) }))
    await broker.close()
    expect(await subscribed).toBe('CLOSED')
  })

  it('hands out nothing while the others drain', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    await broker.subscribe('orders', () => {}, { id: 'slow', ack: 'manual' })
    await broker.publish('orders', 1)
    await settle()
    const late: unknown[] = []
    const subscribed = codeOf(broker.subscribe('orders', (d) => late.push(d.value), { from: 'earliest' }))
    const closing = broker.close()
    await settle()
    expect([await subscribed, late]).toEqual(['CLOSED', []])
    await broker.deleteTopic('orders')
    await closing
  })
})

describe('a close that is refused for its options', () => {
  it('leaves the subscription as it was', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const seen: unknown[] = []
    const subscription = await broker.subscribe('orders', (d) => void seen.push(d.value), { id: 'alice' })
    for (const drainMs of [-1, Number.NaN]) {
      expect(await codeOf(subscription.close({ drainMs }))).toBe('INVALID_ARGUMENT')
    }
    expect(subscription.ended).toBe(false)
    await broker.publish('orders', 1)
    await broker.idle()
    expect(seen).toEqual([1])
    await subscription.close()
    await broker.subscribe('orders', () => {}, { id: 'alice' })
  })

  it('leaves the broker as it was', async () => {
    const { broker } = new World()
    expect(await codeOf(broker.close({ drainMs: Number.NaN }))).toBe('INVALID_ARGUMENT')
    await broker.createTopic('orders')
    expect(await broker.close()).toEqual({ abandoned: 0 })
  })
})

it('a broker that is closed is idle', async () => {
  const { broker, settle } = new World()
  await broker.close()
  await settle()
  await broker.idle()
})

describe('an unsubscribe that meets a close under way, or done', () => {
  it.each(['under way', 'done'])('forgets the place all the same (%s)', async (when) => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const subscription = await broker.subscribe('orders', () => {}, { id: 'alice' })
    const closing = subscription.close()
    if (when === 'done') await closing
    await subscription.unsubscribe()
    await broker.publish('orders', 1)
    const seen: unknown[] = []
    await broker.subscribe('orders', (d) => seen.push(d.value), { id: 'alice' })
    await broker.idle()
    expect(seen).toEqual([])
  })

  it('leaves alone who took the name since', async () => {
    const { broker } = new World()
    await broker.createTopic('orders')
    const before = await broker.subscribe('orders', () => {}, { id: 'alice' })
    await before.close()
    const seen: unknown[] = []
    await broker.subscribe('orders', (d) => void seen.push(d.value), { id: 'alice' })
    await before.unsubscribe()
    await broker.publish('orders', 1)
    await broker.idle()
    expect(seen).toEqual([1])
  })
})

describe('what the close of a broker cuts off', () => {
  const errorsOf = (world: World): unknown[] => [
    ...world.raised('error'),
    ...world.logged.filter(({ level }) => level === 'error'),
  ]

  it('is no error: readers that page in from the disk', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock, turns: 4 })
    let begun = 0
    let cut = 0
    const open = async (): Promise<World> => {
      const files = await fileEngine({ clock, fs }, { cacheBytes: 4_096 })
      const engine = withLogs(files, async (spec) => {
        const log = await files.openLog(spec)
        const load: typeof log.load = (...given) => {
          begun++
          const loading = log.load(...given)
          loading.catch(() => cut++)
          return loading
        }
        return changedLog(log, { load })
      })
      const world = new World({}, engine, clock)
      await world.broker.restore()
      return world
    }
    const before = await open()
    const topic = await before.broker.createTopic('orders', { partitions: 3 })
    for (const i of upTo(60)) await topic.publish(new Uint8Array(4_000), { partition: i % 3 })
    await before.broker.close()
    const world = await open()
    for (const i of upTo(20)) {
      const end = i % 2 === 0 ? { id: `reader-${i}` } : { group: `group-${i}` }
      await world.broker.subscribe('orders', () => {}, { ...end, from: 'earliest' })
    }
    while (begun < 5) await new Promise((resolve) => setImmediate(resolve))
    await world.broker.close({ drainMs: 0 })
    await world.settle()
    expect(cut).toBeGreaterThan(0)
    expect(errorsOf(world)).toEqual([])
  })

  it('is no error: a dead letter whose topic is still being made', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    let refuse: () => void = () => {}
    const engine = withLogs(memory, (spec) =>
      spec.topic === 'orders'
        ? memory.openLog(spec)
        : new Promise((_, reject) => {
            refuse = () => reject(new OdradekError('CLOSED', 'the engine is closed'))
          }),
    )
    const world = new World({}, engine, clock)
    const topic = await world.broker.createTopic('orders')
    const options = { id: 'billing', deadLetter: 'orders.failed', retry: { attempts: 1 } }
    await topic.subscribe(() => Promise.reject(new Error('no')), options)
    await topic.publish(1)
    await world.settle()
    expect(await world.broker.close({ drainMs: 0 })).toMatchObject({ abandoned: 0 })
    refuse()
    await world.settle()
    expect(errorsOf(world)).toEqual([])
  })

  it('is no error: logs that are flushed, and offsets that are stored', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    const closed = (): Promise<never> => Promise.reject(refusalError('CLOSED', 'orders/0'))
    let closing = false
    const logs = withLogs(memory, async (spec) =>
      changedLog(await memory.openLog(spec), { flush: () => closed() }),
    )
    const { meta } = memory
    const engine = changedEngine(logs, {
      durable: true,
      meta: {
        get: (key) => meta.get(key),
        scan: (prefix) => meta.scan(prefix),
        put: (changes) => (closing ? closed() : meta.put(changes)),
      },
    })
    const world = new World({}, engine, clock)
    const topic = await world.broker.createTopic('orders')
    await topic.subscribe(() => {}, { id: 'alice' })
    await topic.publish(1)
    await world.settle()
    closing = true
    await world.broker.close()
    expect(errorsOf(world)).toEqual([])
  })

  it('is one where it is anything else that fails', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    const lost = new OdradekError('OUTCOME_UNKNOWN', 'the disk is gone')
    const engine = withLogs(memory, async (spec) =>
      changedLog(await memory.openLog(spec), { flush: () => Promise.reject(lost) }),
    )
    const world = new World({}, engine, clock)
    await world.broker.createTopic('orders')
    await world.broker.close()
    expect(world.raised('error')).toEqual([{ error: lost, context: 'flushing a log' }])
  })
})

describe('a broker whose engine does not close', () => {
  it('says so to whoever closes it, each time, and is closed all the same', async () => {
    const clock = new ManualClock()
    const failure = new OdradekError('STORAGE_ERROR', 'the disk is gone')
    const engine = changedEngine(memoryEngine({ clock }), { close: () => Promise.reject(failure) })
    const world = new World({}, engine, clock)
    const topic = await world.broker.createTopic('orders', { retention: { ageMs: 1_000 } })
    await topic.subscribe(() => {}, { id: 'alice', retry: { delayMs: 1_000 } })
    await topic.publish(1)
    const heard: string[] = []
    world.broker.on('topicCreated', ({ topic: name }) => heard.push(name))
    await expect(world.broker.close()).rejects.toBe(failure)
    await expect(world.broker.close()).rejects.toBe(failure)
    await world.broker.idle()
    expect([world.clock.pending, heard]).toEqual([0, []])
  })

  it('closes the engine when a log does not close', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    const failure = new OdradekError('STORAGE_ERROR', 'the log is gone')
    let closed = 0
    const logs = withLogs(memory, async (spec) =>
      changedLog(await memory.openLog(spec), { close: () => Promise.reject(failure) }),
    )
    const engine = changedEngine(logs, {
      close: () => {
        closed++
        return memory.close()
      },
    })
    const world = new World({}, engine, clock)
    await world.broker.createTopic('orders')
    await expect(world.broker.close()).rejects.toBe(failure)
    expect([closed, world.clock.pending]).toEqual([1, 0])
  })
})
