/** Where the tail is while records are on their way to the disk: behind all that was published before. */
import { describe, expect, it } from 'vitest'
import type { StartPosition } from '../../src/model/options.ts'
import { ByteWorld } from '../support/byte-world.ts'
import { codeOf, watch } from '../support/world.ts'

/** A topic with record 0 durable and record 1 on its way. */
async function underway() {
  const world = new ByteWorld()
  const topic = await world.broker.createTopic<unknown>('t')
  await topic.publish(0)
  await world.clock.advance(1_000)
  world.engine.held = true
  const published = watch(topic.publish(1))
  await world.settle()
  const go = async (): Promise<void> => {
    world.engine.held = false
    world.engine.commit()
    await world.settle()
  }
  return { world, topic, broker: world.broker, engine: world.engine, published, go }
}

describe('a reader that starts at the tail', () => {
  it.each<[string, StartPosition | undefined]>([
    ['by default', undefined],
    ['latest', 'latest'],
    ['a date to come', new Date(8_000_000_000_000)],
    ['the end as an offset', 2],
  ])(
    'sees what is accepted after subscribe resolved, and nothing that was published before: %s',
    async (_, from) => {
      const { world, topic, published, go } = await underway()
      const seen: unknown[] = []
      const subscribed = watch(
        topic.subscribe((d) => void seen.push(d.value), { id: 'a', ...(from === undefined ? {} : { from }) }),
      )
      await world.settle()
      // Else a record whose publish resolves after this would be one that was accepted, and is not seen.
      expect([subscribed.state, published.state]).toEqual(['waiting', 'waiting'])
      const meanwhile = topic.publish(2)
      await go()
      expect([subscribed.state, published.state]).toEqual(['resolved', 'resolved'])
      await meanwhile
      await topic.publish(3)
      await world.broker.idle()
      expect(seen).toEqual([2, 3])
      expect(topic.describe().readers[0]?.cursors[0]).toMatchObject({ committed: 4, lag: 0 })
    },
  )

  it('starts where the log ends when what was on its way failed', async () => {
    const { world, topic, engine } = await underway()
    const subscribed = watch(topic.subscribe(() => {}, { id: 'a' }))
    await world.settle()
    engine.fail('OUTCOME_UNKNOWN')
    engine.commit()
    await world.settle()
    expect(subscribed.state).toBe('resolved')
    expect(topic.describe().readers[0]?.cursors[0]).toMatchObject({ committed: 1, next: 1, lag: 0 })
  })
})

describe('a reader that starts elsewhere', () => {
  it('at the earliest record waits for nothing', async () => {
    const { topic } = await underway()
    expect(watch(topic.subscribe(() => {}, { from: 'earliest' })).state).toBe('waiting')
    await topic.subscribe(() => {}, { from: 'earliest' })
  })

  it('at a date finds a record that is on its way', async () => {
    const { world, topic, go } = await underway()
    const seen: unknown[] = []
    const from = new Date(world.clock.now())
    void topic.subscribe((d) => void seen.push(d.value), { id: 'a', from })
    await go()
    await world.broker.idle()
    expect(seen).toEqual([1])
  })
})

describe('a replay while records are on their way', () => {
  it.each<[string, StartPosition, unknown[]]>([
    ['latest', 'latest', [2]],
    ['earliest', 'earliest', [0, 1, 2]],
    ['the end', 2, [2]],
    ['what is on its way', 1, [1, 2]],
  ])('goes there: %s', async (_, to, expected) => {
    const { world, topic, broker, engine } = await underway()
    engine.held = false
    engine.commit()
    const seen: unknown[] = []
    await topic.subscribe((d) => void seen.push(d.value), { id: 'a' })
    await topic.subscribe(() => {}, { id: 'b' })
    engine.held = true
    const moved = watch(broker.resetOffset('t', 'a', to))
    await world.settle()
    void topic.publish(2)
    engine.held = false
    engine.commit()
    await world.settle()
    expect(moved.state).toBe('resolved')
    await broker.idle()
    expect(seen).toEqual(expected)
  })

  it('is out of range beyond them', async () => {
    const { topic, broker, go } = await underway()
    await topic.subscribe(() => {}, { id: 'a', from: 'earliest' })
    const moved = codeOf(broker.resetOffset('t', 'a', 3))
    await go()
    expect(await moved).toBe('OFFSET_OUT_OF_RANGE')
  })
})

describe('read', () => {
  it('shows what is durable, also to whom names an offset beyond it', async () => {
    const { broker, go } = await underway()
    expect((await broker.read('t')).map(({ value }) => value)).toEqual([0])
    expect(await broker.read('t', 0, 1)).toEqual([])
    expect(await broker.read('t', 0, 2)).toEqual([])
    await go()
    expect((await broker.read('t', 0, 1)).map(({ value }) => value)).toEqual([1])
  })
})
