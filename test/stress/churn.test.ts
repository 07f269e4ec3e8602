/** Subscriptions that come and go by the thousand, from inside handlers too: nothing of them stays behind. */
import { expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import { usedBytes } from '../support/garbage.ts'
import { World } from '../support/world.ts'

const ROUNDS = 10_000
const DURABLE = { id: 'durable' }
/** In turn. The group is left with a record un-acked each time; it must not hold the publishers. */
const KINDS = [{}, DURABLE, { group: 'group', overflow: 'drop-oldest' }] as const

it('10,000 subscribers, each of which subscribes the next and leaves from its own handler, leave nothing behind', async () => {
  const world = new World()
  const topic = await world.broker.createTopic<number>('orders', { retention: { records: 100 } })
  let rounds = 0
  let current: Subscription | undefined
  const next = async (): Promise<void> => {
    const kind = KINDS[rounds % KINDS.length] as (typeof KINDS)[number]
    const mine = await topic.subscribe(async () => {
      rounds++
      if (kind === DURABLE) await mine.unsubscribe()
      else await mine.close()
      if (rounds < ROUNDS) await next()
    }, kind)
    current = mine
    await topic.publish(rounds)
  }
  const half = async (until: number): Promise<void> => {
    while (rounds < until) await world.settle()
  }
  await next()
  await half(ROUNDS / 10)
  const before = await usedBytes()
  await half(ROUNDS)
  await current?.closed
  await world.settle()
  const grownKiB = ((await usedBytes()) - before) / 1024
  expect(rounds).toBe(ROUNDS)
  // The group keeps its place, as a group does; everybody else is gone.
  expect(world.broker.metrics().readers.map(({ name, members }) => [name, members.length])).toEqual([
    ['group', 0],
  ])
  expect(world.clock.held).toBe(false)
  // The timers left: the group's grace and its being forgotten.
  expect(world.clock.pending).toBeLessThanOrEqual(1)
  // 9,000 subscriptions later: less than 60 bytes each would not even be a listener.
  expect(grownKiB).toBeLessThan(512)
  await world.broker.close()
  expect(world.clock.pending).toBe(0)
}, 60_000)
