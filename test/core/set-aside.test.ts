/** What a delivery strategy sets aside waits for room, and costs nothing while there is none. */
import { expect, it } from 'vitest'
import type { DeliveryStrategy } from '../../src/model/options.ts'
import { Hands, World } from '../support/world.ts'

it('is not asked about again while another partition of the group waits for room as well', async () => {
  const { broker, settle } = new World()
  const topic = await broker.createTopic('orders', { partitions: 2 })
  let asked = 0
  const strategy: DeliveryStrategy = {
    select(_record, _members, { all }) {
      asked++
      return all[0] ?? 'hold'
    },
  }
  const group = { group: 'g', order: 'none', strategy, ack: 'manual' } as const
  const first = new Hands()
  const second = new Hands()
  await broker.subscribe('orders', first.take, { ...group, id: 'first' })
  await broker.subscribe('orders', second.take, { ...group, id: 'second' })
  for (const partition of [0, 1, 0, 1]) await topic.publish(partition, { partition })
  await settle()
  expect(first.values).toEqual([0])
  const before = asked
  await settle()
  expect(asked).toBe(before)
  expect(asked).toBeLessThan(10)
  while (first.deliveries.some((delivery) => delivery.ack())) await settle()
  expect(first.values.toSorted()).toEqual([0, 0, 1, 1])
  expect(second.values).toEqual([])
})

it('waits like the others while the member it expired at is gone and nobody else has room', async () => {
  const { broker, clock, settle } = new World()
  await broker.createTopic('a.1')
  await broker.createTopic('a.2')
  const group = { group: 'g', order: 'none', ackTimeoutMs: 100, retry: { attempts: 9 } } as const
  await broker.subscribe('a.*', () => new Promise(() => {}), { ...group, id: 'stuck' })
  await broker.publish('a.1', 1)
  await settle()
  const busy = new Hands()
  await broker.subscribe('a.*', busy.take, { group: 'g', id: 'busy', ack: 'manual', ackTimeoutMs: 1_000 })
  await broker.publish('a.2', 2)
  await broker.publish('a.2', 3)
  await clock.advance(150)
  expect(busy.values).toEqual([2])
  while (busy.last.ack()) await settle()
  expect(busy.values.toSorted()).toEqual([1, 2, 3])
})
