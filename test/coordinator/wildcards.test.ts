/** Pattern subscriptions: one handler, a cursor per topic, topics that come later included. */
import { describe, expect, it } from 'vitest'
import { codeOf, upTo, World } from '../support/world.ts'

async function listening(pattern: string, options = {}) {
  const world = new World()
  for (const name of ['orders.eu', 'orders.us.east', 'payments']) await world.broker.createTopic(name)
  const seen: string[] = []
  const subscription = await world.broker.subscribe(
    pattern,
    (d) => void seen.push(`${d.topic}:${String(d.value)}`),
    options,
  )
  return { ...world, broker: world.broker, seen, subscription }
}

describe('a pattern', () => {
  it('* takes one level, # the rest', async () => {
    const star = await listening('orders.*')
    const rest = await listening('orders.#')
    for (const { broker, settle } of [star, rest]) {
      for (const name of ['orders.eu', 'orders.us.east', 'payments']) await broker.publish(name, 1)
      await settle()
    }
    expect(star.seen).toEqual(['orders.eu:1'])
    expect(rest.seen).toEqual(['orders.eu:1', 'orders.us.east:1'])
  })

  it('reads topics that are created later from their first record', async () => {
    const { broker, seen, settle } = await listening('orders.*', { id: 'audit' })
    const topic = await broker.createTopic('orders.asia')
    await topic.publish(1)
    await settle()
    expect(seen).toEqual(['orders.asia:1'])
    expect(broker.describe('orders.asia').readers.map(({ name }) => name)).toEqual(['audit'])
  })

  it('shares one concurrency over all its topics', async () => {
    const world = new World()
    for (const name of ['a.x', 'a.y']) await world.broker.createTopic(name)
    const waiting: string[] = []
    await world.broker.subscribe('a.*', (d) => new Promise(() => waiting.push(d.topic)), { concurrency: 1 })
    await world.broker.publish('a.x', 1)
    await world.broker.publish('a.y', 1)
    await world.settle()
    expect(waiting).toEqual(['a.x'])
  })

  it('leaves dead letters and internal topics alone unless they are named literally', async () => {
    const { broker, seen, settle } = await listening('#')
    for (const name of ['dlq.orders', '__offsets', 'plain']) {
      await broker.createTopic(name)
      await broker.publish(name, 1)
    }
    await settle()
    expect(seen).toEqual(['plain:1'])
    const letters: unknown[] = []
    await broker.subscribe('dlq.*', (d) => void letters.push(d.topic), { from: 'earliest' })
    await settle()
    expect(letters).toEqual(['dlq.orders'])
  })

  it('that cannot match is refused', async () => {
    const { broker } = new World()
    for (const pattern of ['a.#.b', 'a*b', 'a..*']) {
      expect(await codeOf(broker.subscribe(pattern, () => {})), pattern).toBe('INVALID_TOPIC')
    }
  })

  it('may match nothing yet, and outlives the topics it matches', async () => {
    const world = new World()
    const seen: unknown[] = []
    const subscription = await world.broker.subscribe('late.*', (d) => void seen.push(d.value), {
      id: 'audit',
    })
    for (const value of upTo(2)) {
      const topic = await world.broker.createTopic('late.one')
      await topic.publish(value)
      await world.settle()
      await world.broker.deleteTopic('late.one')
    }
    expect([seen, subscription.ended]).toEqual([[0, 1], false])
  })

  it('with a name resumes where it was, and at the first record of topics that came meanwhile', async () => {
    const { broker, seen, settle, subscription } = await listening('orders.*', { id: 'audit' })
    await broker.publish('orders.eu', 1)
    await settle()
    await subscription.close()
    await broker.publish('orders.eu', 2)
    await (await broker.createTopic('orders.new')).publish(3)
    await broker.subscribe('orders.*', (d) => void seen.push(`${d.topic}:${String(d.value)}`), {
      id: 'audit',
    })
    await settle()
    expect(seen.sort()).toEqual(['orders.eu:1', 'orders.eu:2', 'orders.new:3'])
  })

  it('of an id that reads one of its topics is refused', async () => {
    const { broker } = await listening('orders.*', { id: 'audit' })
    expect(await codeOf(broker.subscribe('orders.eu', () => {}, { id: 'audit' }))).toBe('CONSUMER_EXISTS')
    expect(await codeOf(broker.subscribe('payments.*', () => {}, { id: 'audit' }))).toBe('CONSUMER_EXISTS')
    await broker.subscribe('payments', () => {}, { id: 'audit' })
    expect(await codeOf(broker.subscribe('#', () => {}, { id: 'audit' }))).toBe('CONSUMER_EXISTS')
  })

  it('of a consumer group assigns the partitions of all its topics, later ones too', async () => {
    const world = new World()
    await world.broker.createTopic('a.x', { partitions: 2 })
    for (const id of ['m1', 'm2']) {
      await world.broker.subscribe('a.*', () => {}, { id, group: 'g', assignment: 'round-robin' })
    }
    await world.broker.createTopic('a.y', { partitions: 2 })
    const owners = world.broker
      .describeGroup('g')
      .cursors.map(({ topic, partition, owner }) => `${topic}/${partition} ${owner}`)
    expect(owners).toEqual(['a.x/0 m1', 'a.x/1 m2', 'a.y/0 m1', 'a.y/1 m2'])
  })

  it('ends when it closes: topics that come later are not read', async () => {
    const { broker, seen, settle, subscription } = await listening('orders.*')
    await subscription.close()
    await (await broker.createTopic('orders.asia')).publish(1)
    await settle()
    expect(seen).toEqual([])
  })
})
