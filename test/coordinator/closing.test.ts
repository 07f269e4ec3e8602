/** What meets a close that is under way, and what a close that is refused leaves as it was. */
import { describe, expect, it } from 'vitest'
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
