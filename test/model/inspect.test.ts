import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { World } from '../support/world.ts'

it('a console shows what a broker, a topic and a subscription are', async () => {
  const { broker } = new World()
  const topic = await broker.createTopic('orders', { partitions: 3 })
  await broker.createTopic('payments')
  const alice = await topic.subscribe(() => {}, { id: 'alice' })
  const member = await broker.subscribe('*', () => {}, { id: 'first', group: 'billing' })
  const scheme = /^Broker [a-z]+: /
  expect(inspect(broker)).toMatch(scheme)
  expect(inspect(broker).replace(scheme, '')).toBe('{ topics: 2, readers: 2, open }')
  expect(inspect(topic)).toBe(`TopicHandle "orders" { partitions: 3, id: ${topic.id} }`)
  expect(inspect({ alice })).toBe('{ alice: Subscription "alice" { topics: [orders], open } }')
  expect(inspect(member)).toBe('Subscription "first" of group "billing" { topics: [orders, payments], open }')
  member.pause()
  expect(inspect(member)).toContain('paused')
  await member.close()
  expect(inspect(member)).toContain('ended')
  await broker.close()
  expect(inspect(broker)).toContain('closed')
})
