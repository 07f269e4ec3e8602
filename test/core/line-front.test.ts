/** A handler that waits for room stands in front of the line, not in its way. */
import { expect, it } from 'vitest'
import { Hands, World, watch } from '../support/world.ts'

it('lets in a publisher that fits where a transaction of a handler does not yet', async () => {
  const { broker, settle } = new World()
  await broker.createTopic('in')
  await broker.createTopic('out', { retention: { records: 2 } })
  const slow = new Hands()
  await broker.subscribe('out', slow.take, { id: 'slow', ack: 'manual', concurrency: 9 })
  const hands = new Hands()
  await broker.subscribe('in', hands.take, { id: 'worker', ack: 'manual' })
  await broker.publish('out', 0)
  await broker.publish('in', 'work')
  await settle()
  const transaction = watch(
    broker.transaction((tx) => {
      for (const value of [2, 3]) tx.publish('out', value)
      tx.ack(hands.last)
    }),
  )
  await settle()
  expect(transaction.state).toBe('waiting')
  const published = watch(broker.publish('out', 1))
  await settle()
  expect(published.state).toBe('resolved')
  for (const delivery of slow.deliveries) delivery.ack()
  await settle()
  expect(transaction.state).toBe('resolved')
  expect(slow.values).toEqual([0, 1, 2, 3])
})
