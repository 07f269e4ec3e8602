import { describe, expect, it } from 'vitest'
import { createBroker } from '../../src/memory.ts'
import type { Clock } from '../../src/model/clock.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { upTo, World, watch } from '../support/world.ts'

/** A clock on which calling a handler takes the time that `work` says, and turns pass when told to. */
class BusyClock implements Clock {
  nowMs = 0
  turns: (() => void)[] = []
  readonly #manual = new ManualClock()

  now(): number {
    return this.nowMs
  }

  monotonic(): number {
    return this.nowMs
  }

  setTimer(callback: () => void, delayMs: number) {
    return this.#manual.setTimer(callback, delayMs)
  }

  nextTurn(callback: () => void): void {
    this.turns.push(callback)
  }

  hold(): void {}

  /** Lets microtasks run, then one turn of the event loop pass. */
  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    for (const callback of this.turns.splice(0)) callback()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function busy(handleMs: number, options: object = {}) {
  const clock = new BusyClock()
  const broker = createBroker({ clock })
  const topic = await broker.createTopic('t', { partitions: 2 })
  const handled: string[] = []
  const handler = (d: Delivery): void => {
    handled.push(`${d.topic} ${d.partition}/${d.offset}`)
    clock.nowMs += handleMs
  }
  await topic.subscribe(handler, { id: 'r', ...options })
  await clock.turn()
  return { clock, broker, topic, handled, handler }
}

describe('a drain', () => {
  it('spends about 5 ms of one turn on handlers, then lets the event loop turn', async () => {
    const { clock, topic, handled } = await busy(1)
    for (const value of upTo(100)) topic.tryPublish(value, { partition: 0 })
    await new Promise((resolve) => setImmediate(resolve))
    const first = handled.length
    expect(first).toBeGreaterThanOrEqual(5)
    expect(first).toBeLessThanOrEqual(13)
    await clock.turn()
    expect(handled.length - first).toBeGreaterThanOrEqual(5)
    expect(handled.length - first).toBeLessThanOrEqual(7)
    for (let i = 0; i < 30; i++) await clock.turn()
    expect(handled).toHaveLength(100)
  })

  it('spends it once per turn, however often it is woken in it', async () => {
    const { clock, topic, handled } = await busy(1)
    for (const value of upTo(30)) {
      topic.tryPublish(value, { partition: 0 })
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(handled.length).toBeLessThanOrEqual(13)
    await clock.turn()
    expect(handled.length).toBeLessThanOrEqual(20)
  })

  it('adapts to how long handlers take: when they become slow, it looks at the clock more often', async () => {
    const { clock, topic, handled } = await busy(3)
    for (const value of upTo(50)) topic.tryPublish(value, { partition: 0 })
    for (let i = 0; i < 3; i++) await clock.turn()
    const before = handled.length
    await clock.turn()
    expect(handled.length - before).toBeLessThanOrEqual(2)
  })

  it('takes readers and partitions in turn, so that a long queue of one does not keep the others waiting', async () => {
    const { clock, broker, topic, handled, handler } = await busy(0.1)
    const other = await broker.createTopic('other')
    await other.subscribe(handler, { id: 'r' })
    for (const value of upTo(500)) topic.tryPublish(value, { partition: 0 })
    topic.tryPublish('late', { partition: 1 })
    other.tryPublish('late')
    for (let i = 0; i < 2; i++) await clock.turn()
    expect(handled).toContain('t 1/0')
    expect(handled).toContain('other 0/0')
    expect(handled.length).toBeLessThan(500)
  })

  it('never nests: a handler that publishes is not called by its own publish', async () => {
    const { clock, topic, handled } = await busy(0)
    let depth = 0
    let deepest = 0
    await topic.subscribe((d) => {
      depth++
      deepest = Math.max(deepest, depth)
      if (d.offset < 50) topic.tryPublish(d.offset, { partition: 0 })
      depth--
    })
    topic.tryPublish(0, { partition: 0 })
    for (let i = 0; i < 5; i++) await clock.turn()
    expect(deepest).toBe(1)
    expect(handled).toHaveLength(51)
  })

  it('polls nothing: a broker at rest asks for no turn and no timer', async () => {
    const { clock, topic, handled } = await busy(0)
    topic.tryPublish(1)
    for (let i = 0; i < 5; i++) await clock.turn()
    expect(handled).toHaveLength(1)
    expect(clock.turns).toHaveLength(0)
    const world = new World()
    const rest = await world.broker.createTopic('t')
    await rest.subscribe(() => {}, { id: 'a' })
    await rest.publish(1)
    await world.broker.idle()
    expect(world.clock.pending).toBe(0)
  })
})

describe('idle()', () => {
  it('resolves at once when there is nothing to do', async () => {
    const { broker } = new World()
    await broker.idle()
  })

  it('waits for what is deliverable, in flight, or due again', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    let fail = true
    const release: (() => void)[] = []
    await topic.subscribe(
      async () => {
        if (fail) throw new Error('once')
        await new Promise<void>((resolve) => release.push(resolve))
      },
      { id: 'a', retry: { delayMs: 100 } },
    )
    await topic.publish(1)
    const idle = watch(world.broker.idle())
    await world.settle()
    fail = false
    expect(idle.state).toBe('waiting')
    await world.clock.advance(100)
    expect([idle.state, release.length]).toEqual(['waiting', 1])
    release[0]?.()
    await world.settle()
    expect(idle.state).toBe('resolved')
  })

  it('resolves for all who wait when the broker closes', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    await topic.subscribe(() => new Promise(() => {}), { id: 'a' })
    await topic.publish(1)
    const idle = [watch(world.broker.idle()), watch(world.broker.idle())]
    await world.settle()
    await world.broker.close({ drainMs: 0 })
    await world.settle()
    expect(idle.map(({ state }) => state)).toEqual(['resolved', 'resolved'])
  })
})
