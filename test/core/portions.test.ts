/** What a place, or room, that becomes free is good for at once, and what waits for a turn of the event loop. */
import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import { World, watch } from '../support/world.ts'

/** Lets promises react, without a turn of the event loop. */
async function react(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve()
}

async function full(records: number) {
  const world = new World()
  const topic = await world.broker.createTopic<number>('t', { retention: { records } })
  const held: Delivery<number>[] = []
  await topic.subscribe((d) => void held.push(d as Delivery<number>), {
    id: 'reader',
    ack: 'manual',
    concurrency: records,
    order: 'none',
  })
  for (let i = 0; i < records; i++) await topic.publish(i)
  await world.settle()
  const ack = (count: number): void => {
    for (const each of held.splice(0, count)) each.ack()
  }
  return { world, topic, ack }
}

describe('room in a full log', () => {
  it('is given out at once when an eighth of what is held has come together', async () => {
    const { topic, ack } = await full(64)
    const waiter = watch(topic.publish(64))
    await react()
    ack(7)
    await react()
    expect(waiter.state).toBe('waiting')
    ack(1)
    await react()
    expect(waiter).toEqual({ state: 'resolved', value: { partition: 0, offset: 64 } })
  })

  it('is given out in the next turn of the event loop, however little it is', async () => {
    const { world, topic, ack } = await full(64)
    const waiters = [watch(topic.publish(64)), watch(topic.publish(65))]
    await react()
    ack(1)
    await react()
    expect(waiters.map(({ state }) => state)).toEqual(['waiting', 'waiting'])
    await world.settle()
    expect(waiters.map(({ state }) => state)).toEqual(['resolved', 'waiting'])
  })

  it('is given out at once where few records are held', async () => {
    const { topic, ack } = await full(4)
    const waiter = watch(topic.publish(4))
    await react()
    ack(1)
    await react()
    expect(waiter.state).toBe('resolved')
  })

  it('is given out at once by a reader that is at the end', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('t', { retention: { records: 64 } })
    let release: () => void = () => {}
    const subscription = await topic.subscribe(
      (d) => (d.value === 0 ? new Promise<void>((resolve) => (release = resolve)) : undefined),
      { id: 'reader' },
    )
    for (let i = 0; i < 64; i++) await topic.publish(i)
    const waiter = watch(topic.publish(64))
    await react()
    expect(waiter.state).toBe('waiting')
    release()
    await react()
    expect(waiter.state).toBe('resolved')
    await subscription.close()
  })
})

describe('a place whose handler resolved', () => {
  it.each([1, 3])('is taken by the next record, in order, concurrency %i', async (concurrency) => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('t')
    const seen: number[] = []
    let inHand = 0
    let most = 0
    await topic.subscribe(
      async (d) => {
        most = Math.max(most, ++inHand)
        seen.push(d.value as number)
        await Promise.resolve()
        inHand--
      },
      { id: 'reader', concurrency },
    )
    for (let i = 0; i < 200; i++) topic.tryPublish(i)
    await world.settle()
    expect(seen).toEqual(Array.from({ length: 200 }, (_, i) => i))
    expect([most, inHand]).toEqual([concurrency, 0])
    expect(topic.describe().partitions[0]?.records).toBe(200)
  })

  it.each(['at-least-once', 'at-most-once'] as const)(
    'goes to another partition that waits for it, in turn, %s',
    async (guarantee) => {
      const world = new World()
      const topic = await world.broker.createTopic<number>('t', { partitions: 2 })
      const from: number[] = []
      for (let i = 0; i < 10; i++) await topic.publish(i, { partition: i % 2 })
      await topic.subscribe(async (d) => void from.push(d.partition), {
        id: 'reader',
        from: 'earliest',
        guarantee,
      })
      await world.settle()
      expect(from).toEqual([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    },
  )

  it('stays empty once its subscription is paused or its reader moved', async () => {
    const world = new World()
    const topic = await world.broker.createTopic<number>('t')
    const seen: number[] = []
    const subscription = await topic.subscribe(
      async (d) => {
        seen.push(d.value as number)
        if (seen.length === 3) subscription.pause()
        if (seen.length === 5) await world.broker.resetOffset('t', 'reader', 'earliest')
      },
      { id: 'reader' },
    )
    for (let i = 0; i < 8; i++) await topic.publish(i)
    await world.settle()
    expect(seen).toEqual([0, 1, 2])
    subscription.resume()
    await world.settle()
    expect(seen).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7])
  })
})
