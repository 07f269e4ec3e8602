/** Handlers, event listeners, delivery strategies and abort listeners may call every verb there is. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { codeOf, upTo, World, watch } from '../support/world.ts'

interface Scene {
  readonly world: World
  readonly sub: () => Subscription
}

/**
 * Each verb, called on a broker where 'in' is read by group 'g' (member 'm') and by nobody else, with topics 'out',
 * 'doomed' and 'dlq.in'. `ends`: afterwards the group reads no more.
 */
const VERBS: Readonly<Record<string, { call(scene: Scene): unknown; ends?: true }>> = {
  createTopic: { call: ({ world }) => world.broker.createTopic('new') },
  alterTopic: { call: ({ world }) => world.broker.alterTopic('in', { partitions: 3 }) },
  'deleteTopic of another': { call: ({ world }) => world.broker.deleteTopic('doomed') },
  'deleteTopic of its own': { call: ({ world }) => world.broker.deleteTopic('in'), ends: true },
  listTopics: { call: ({ world }) => world.broker.listTopics() },
  topic: { call: ({ world }) => world.broker.topic('out').pressure },
  publish: { call: ({ world }) => world.broker.publish('out', 1) },
  'publish to its own topic': { call: ({ world }) => world.broker.publish('in', 'more') },
  tryPublish: { call: ({ world }) => world.broker.tryPublish('out', 1) },
  publishAll: { call: ({ world }) => world.broker.publishAll('out', [{ value: 1 }, { value: 2 }]) },
  transaction: { call: ({ world }) => world.broker.transaction((tx) => tx.publish('out', 1)) },
  'subscribe as another reader': { call: ({ world }) => world.broker.subscribe('in', () => {}) },
  'subscribe as another member': {
    call: ({ world }) => world.broker.subscribe('in', () => {}, { group: 'g', id: 'late' }),
  },
  stream: { call: ({ world }) => world.broker.stream('in').return() },
  'unsubscribe by name': { call: ({ world }) => world.broker.unsubscribe('in', 'm'), ends: true },
  'deleteGroup, which is not empty': { call: ({ world }) => codeOf(world.broker.deleteGroup('g')) },
  'resetOffset of its own group': { call: ({ world }) => world.broker.resetOffset('in', 'g', 'latest') },
  redrive: { call: ({ world }) => world.broker.redrive('dlq.in') },
  read: { call: ({ world }) => world.broker.read('in') },
  describe: { call: ({ world }) => world.broker.describe('in') },
  describeGroup: { call: ({ world }) => world.broker.describeGroup('g') },
  listGroups: { call: ({ world }) => world.broker.listGroups() },
  metrics: { call: ({ world }) => world.broker.metrics() },
  'on, once and off': {
    call: ({ world }) => {
      const listener = (): void => {}
      world.broker.once('error', listener)
      world.broker.on('error', listener)()
      world.broker.off('error', listener)
    },
  },
  'pause and resume': {
    call: ({ sub }) => {
      sub().pause()
      sub().resume()
    },
  },
  'close of its own subscription': { call: ({ sub }) => sub().close(), ends: true },
  'unsubscribe of its own subscription': { call: ({ sub }) => sub().unsubscribe(), ends: true },
  'describe of its own subscription': { call: ({ sub }) => sub().describe() },
  'close of the broker': { call: ({ world }) => world.broker.close(), ends: true },
}

/** Where the verb is called from, once; whatever it answers is handed to `answer`. */
const PLACES: Readonly<Record<string, (scene: Scene, call: () => unknown) => Promise<Subscription>>> = {
  'a handler': ({ world }, call) => world.broker.subscribe('in', once(call), { group: 'g', id: 'm' }),
  'a handler that waits for it': ({ world }, call) =>
    world.broker.subscribe('in', once(call), { group: 'g', id: 'm' }),
  'a handler of several at once': ({ world }, call) =>
    world.broker.subscribe('in', once(call), { group: 'g', id: 'm', concurrency: 3 }),
  'a batch handler': ({ world }, call) =>
    world.broker.subscribe('in', once(call), { group: 'g', id: 'm', batch: 2 }),
  'a handler with manual acks': ({ world }, call) => {
    const first = once(call)
    return world.broker.subscribe(
      'in',
      (d) => {
        d.ack()
        return first()
      },
      { group: 'g', id: 'm', ack: 'manual' },
    )
  },
  'an event listener': async ({ world }, call) => {
    const first = once(call)
    world.broker.on('deadLetter', () => void first())
    return world.broker.subscribe(
      'in',
      (d) => {
        if (d.value === 0) d.reject('on purpose')
      },
      { group: 'g', id: 'm' },
    )
  },
  'a delivery strategy': ({ world }, call) => {
    const first = once(call)
    const strategy = {
      select: (_: unknown, members: readonly { readonly id: string }[]) => {
        void first()
        return (members.find((member) => member.id === 'm') ?? members[0]) as never
      },
    }
    const options = { group: 'g', strategy }
    return world.broker
      .subscribe('in', () => {}, { ...options, id: 'other' })
      .then(() => world.broker.subscribe('in', () => {}, { ...options, id: 'm' }))
  },
  'a listener of a signal': ({ world }, call) => {
    const first = once(call)
    return world.broker.subscribe(
      'in',
      (d) => {
        if (d.value !== 0 || d.attempt > 1) return undefined
        d.signal.addEventListener('abort', () => void first())
        return new Promise<void>((resolve) => d.signal.addEventListener('abort', () => resolve()))
      },
      { group: 'g', id: 'm', ackTimeoutMs: 1_000, concurrency: 2 },
    )
  },
}

function once(call: () => unknown): () => unknown {
  let called = false
  return () => {
    if (called) return undefined
    called = true
    return call()
  }
}

describe('every verb may be called from', () => {
  for (const [place, from] of Object.entries(PLACES)) {
    for (const [verb, { call, ends }] of Object.entries(VERBS)) {
      it(`${place}: ${verb}`, async () => {
        const world = new World()
        const { broker } = world
        for (const name of ['in', 'out', 'doomed', 'dlq.in']) await broker.createTopic(name)
        let sub: Subscription | undefined
        const scene = { world, sub: () => sub as Subscription }
        let answer: { state: string } | undefined
        sub = await from(scene, () => {
          const outcome = Promise.resolve(call(scene))
          answer = watch(outcome)
          return place.includes('waits') ? outcome : undefined
        })
        for (const value of upTo(5)) broker.tryPublish('in', value)
        await world.settle()
        if (place === 'a listener of a signal') await world.clock.advance(1_000)
        expect(answer).toMatchObject({ state: 'resolved' })

        if (ends === true) return
        const end = world.broker.describe('in').partitions[0]?.end
        expect(broker.describeGroup('g').cursors[0]).toMatchObject({ committed: end, inFlight: 0 })
        const { member } = sub.describe()
        expect(member).toMatchObject({ inFlight: 0, zombies: 0 })
        await broker.idle()
        expect(world.raised('error')).toEqual([])
        expect(await broker.close()).toEqual({ abandoned: 0 })
      })
    }
  }
})

describe('a handler that ends its own subscription', () => {
  it('and returns has its record acked, and the others in flight are waited for', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<string>('in')
    let letGo: () => void = () => {}
    let closed: { state: string } | undefined
    const sub: Subscription = await topic.subscribe(
      (d) => {
        if (d.value === 'slow') return new Promise<void>((resolve) => (letGo = resolve))
        closed = watch(sub.close())
        return undefined
      },
      { id: 'reader', concurrency: 2 },
    )
    await topic.publish('slow')
    await topic.publish('stop')
    await topic.publish('never')
    await world.settle()
    expect(closed?.state).toBe('waiting')
    letGo()
    await world.settle()
    expect(closed?.state).toBe('resolved')
    expect(sub.describe().counters).toMatchObject({ delivered: 2, acked: 2 })
    expect(sub.describe().cursors[0]?.committed).toBe(2)
  })

  it('and waits for that gives its own record back, the attempt not counted, after the others have settled', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<string>('in')
    let letGo: () => void = () => {}
    const order: string[] = []
    const sub: Subscription = await topic.subscribe(
      async (d) => {
        if (d.value === 'stop') await sub.close()
        else await new Promise<void>((resolve) => (letGo = resolve))
        order.push(String(d.value))
      },
      { id: 'reader', concurrency: 2 },
    )
    await topic.publish('slow')
    await topic.publish('stop')
    await world.settle()
    expect(order).toEqual([])
    letGo()
    await world.settle()
    expect(order).toEqual(['slow', 'stop'])
    const again: Delivery[] = []
    await topic.subscribe((d) => void again.push(d), { id: 'reader', concurrency: 2 })
    await world.broker.idle()
    expect(again.map((d) => [d.value, d.attempt, d.redelivered])).toEqual([['stop', 1, true]])
  })

  it('in a batch gives back what it has not settled', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('in')
    const sub: Subscription = await topic.subscribe(
      async (batch) => {
        batch.deliveries[0]?.ack()
        await sub.close()
      },
      { id: 'reader', batch: 3 },
    )
    await topic.publishAll(upTo(3).map((value) => ({ value })))
    await sub.closed
    expect(sub.describe().cursors[0]).toMatchObject({ committed: 1, inFlight: 0 })
  })
})

describe('a handler that leaves its consumer group', () => {
  it('has its record acked, and its partition goes to the next owner, in order', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('in', { partitions: 2 })
    const seen: string[] = []
    const options = { group: 'g', assignment: 'range' } as const
    const leaving: Subscription = await topic.subscribe(
      (d) => {
        seen.push(`leaving ${d.value}`)
        void leaving.unsubscribe()
      },
      { ...options, id: 'a' },
    )
    await topic.subscribe((d) => void seen.push(`staying ${d.value}`), { ...options, id: 'b' })
    for (const value of upTo(3)) await topic.publish(value, { partition: 0 })
    await world.broker.idle()
    expect(seen).toEqual(['leaving 0', 'staying 1', 'staying 2'])
    const { cursors, counters } = world.broker.describeGroup('g')
    expect(cursors.map((cursor) => [cursor.owner, cursor.committed])).toEqual([
      ['b', 3],
      ['b', 0],
    ])
    expect(counters).toMatchObject({ delivered: 3, acked: 3, redelivered: 0 })
  })
})

describe('the broker, closed by a handler', () => {
  it('waits for what the same member has in hand besides', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<string>('in')
    let letGo: () => void = () => {}
    let closing: { state: string; value?: unknown } | undefined
    await topic.subscribe(
      (d) => {
        if (d.value === 'slow') return new Promise<void>((resolve) => (letGo = resolve))
        closing = watch(world.broker.close())
        return undefined
      },
      { id: 'reader', concurrency: 2 },
    )
    await topic.publish('slow')
    await topic.publish('stop')
    await world.settle()
    expect(closing?.state).toBe('waiting')
    letGo()
    await world.settle()
    expect(closing).toEqual({ state: 'resolved', value: { abandoned: 0 } })
  })
})

describe('looking at a reader from its own handler', () => {
  it('judges overflow, and what it drops is not handed out after all', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('in')
    for (const value of upTo(5)) await topic.publish(value)
    const seen: number[] = []
    const sub = await topic.subscribe(
      (d) => {
        seen.push(d.value)
        if (seen.length > 1) return
        for (const value of upTo(10)) topic.tryPublish(5 + value)
        world.broker.describe('in')
      },
      { from: 'earliest', overflow: 'drop-oldest', maxLag: { records: 5 } },
    )
    await world.broker.idle()
    expect(seen).toEqual([0, 10, 11, 12, 13, 14])
    expect(sub.describe().counters).toMatchObject({ delivered: 6, dropped: 9 })
  })
})
