import { describe, expect, it } from 'vitest'
import type { TopicOptions } from '../../src/model/options.ts'
import { collectGarbage } from '../support/garbage.ts'
import { codeOf, codeThrown, Hands, upTo, World, watch } from '../support/world.ts'

/** A full topic of `records`, held by the reader "slow", whose deliveries settle when `hands` say so. */
async function fullTopic(records: number, options: TopicOptions = {}) {
  const world = new World()
  const topic = await world.broker.createTopic('t', {
    ...options,
    retention: { records, ...options.retention },
  })
  const hands = new Hands()
  await topic.subscribe(hands.take, { id: 'slow', ack: 'manual', ackTimeoutMs: 3_600_000 })
  for (const value of upTo(records)) await topic.publish(value)
  await world.settle()
  /** Settles `n` records, one after the other. */
  const settle = async (n: number): Promise<void> => {
    for (let i = 0; i < n; i++) {
      hands.last.ack()
      await world.settle()
    }
  }
  const partition = () => topic.describe().partitions[0]
  return { world, broker: world.broker, topic, hands, settle, partition }
}

describe('publishers that wait for room', () => {
  it('are let in first come, first served, one for each record that settles', async () => {
    const { topic, settle, partition } = await fullTopic(2)
    const order: number[] = []
    for (const value of upTo(5)) void topic.publish(value).then(() => order.push(value))
    expect(partition()?.waiting).toBe(5)
    await settle(1)
    expect(order).toEqual([0])
    await settle(1)
    expect(order).toEqual([0, 1])
    await settle(3)
    expect(order).toEqual([0, 1, 2, 3, 4])
    expect(partition()).toMatchObject({ start: 5, end: 7, waiting: 0 })
  })

  it('are not overtaken: a small one stands behind a batch that does not fit yet', async () => {
    const { topic, settle } = await fullTopic(3)
    const batch = watch(topic.publishAll(upTo(3).map((value) => ({ value }))))
    const single = watch(topic.publish('small'))
    await settle(2)
    expect([batch.state, single.state]).toEqual(['waiting', 'waiting'])
    await settle(1)
    expect([batch.state, single.state]).toEqual(['resolved', 'waiting'])
    await settle(1)
    expect(single.value).toEqual({ partition: 0, offset: 6 })
  })

  it('are not overtaken by tryPublish, nor by a publish that comes later, though either would fit', async () => {
    const { topic, settle } = await fullTopic(2)
    const batch = watch(topic.publishAll([{ value: 'a' }, { value: 'b' }]))
    await settle(1)
    expect(topic.tryPublish('no')).toBeUndefined()
    const later = watch(topic.publish('later'))
    await settle(1)
    expect(batch.value?.map((each) => each.offset)).toEqual([2, 3])
    await settle(1)
    expect(later.value?.offset).toBe(4)
  })

  it('wait in one partition without holding up another, nor another topic', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 2, retention: { records: 1 } })
    const other = await world.broker.createTopic('other', { retention: { records: 1 } })
    await topic.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await topic.publish(0, { partition: 0 })
    const waiting = watch(topic.publish(1, { partition: 0 }))
    await world.settle()
    expect(await topic.publish(0, { partition: 1 })).toEqual({ partition: 1, offset: 0 })
    for (const value of upTo(3)) await other.publish(value)
    expect(waiting.state).toBe('waiting')
  })

  it('can be aborted, before and while they wait, with the reason as the cause; then nothing is appended', async () => {
    const { topic, settle, partition } = await fullTopic(2)
    const reason = new Error('changed my mind')
    const early = topic.publish('never', { signal: AbortSignal.abort(reason) })
    await expect(early).rejects.toMatchObject({ code: 'ABORTED', cause: reason, retriable: false })
    expect(await codeOf(topic.publishAll([{ value: 1 }], { signal: AbortSignal.abort() }))).toBe('ABORTED')
    const abort = new AbortController()
    const single = topic.publish('never', { signal: abort.signal })
    const batch = codeOf(topic.publishAll([{ value: 'never' }, { value: 'never' }], { signal: abort.signal }))
    const behind = watch(topic.publish('behind'))
    expect(partition()?.waiting).toBe(3)
    abort.abort(reason)
    await expect(single).rejects.toMatchObject({ code: 'ABORTED', cause: reason })
    expect(await batch).toBe('ABORTED')
    expect(partition()?.waiting).toBe(1)
    await settle(1)
    expect(behind.value).toEqual({ partition: 0, offset: 2 })
  })

  it('are not aborted once their record is in', async () => {
    const { topic, hands } = await fullTopic(1)
    const abort = new AbortController()
    const waiting = topic.publish('in', { signal: abort.signal })
    hands.last.ack()
    abort.abort()
    expect(await waiting).toEqual({ partition: 0, offset: 1 })
  })

  it('that give up at the head let in who stands behind and fits', async () => {
    const { topic, world, settle } = await fullTopic(2)
    const abort = new AbortController()
    const batch = codeOf(topic.publishAll([{ value: 1 }, { value: 2 }], { signal: abort.signal }))
    const single = watch(topic.publish('small'))
    await settle(1)
    expect(single.state).toBe('waiting')
    abort.abort()
    expect(await batch).toBe('ABORTED')
    await world.settle()
    expect(single.state).toBe('resolved')
  })

  it('give up with TIMEOUT after publishTimeoutMs, 30 s by default; then nothing is appended', async () => {
    const { topic, world, settle, partition } = await fullTopic(1)
    const waiting = topic.publish('late').catch((error: unknown) => error)
    await world.clock.advance(29_999)
    expect(partition()?.waiting).toBe(1)
    await world.clock.advance(1)
    expect(await waiting).toMatchObject({
      code: 'TIMEOUT',
      retriable: true,
      message: 'publish: no room within 30000 ms in "t" partition 0 (reader "slow" is too far behind)',
    })
    await settle(1)
    expect(partition()).toMatchObject({ end: 1, waiting: 0 })
  })

  it('give up after the time their topic says, each counted from its own start', async () => {
    const { topic, world } = await fullTopic(1, { publishTimeoutMs: 100 })
    const first = watch(topic.publish(1))
    await world.clock.advance(60)
    const second = watch(topic.publishAll([{ value: 2 }]))
    await world.clock.advance(40)
    expect([first.state, second.state]).toEqual(['rejected', 'waiting'])
    await world.clock.advance(60)
    expect(second.state).toBe('rejected')
  })

  it('are bounded in number per topic: beyond it TOO_MANY_WAITING, and room for more once some left', async () => {
    const { topic, settle } = await fullTopic(4, { maxWaiting: { records: 3 } })
    const waiting = watch(topic.publish(1))
    const two = watch(topic.publishAll([{ value: 2 }, { value: 3 }]))
    expect(await codeOf(topic.publish(4))).toBe('TOO_MANY_WAITING')
    await settle(1)
    expect(waiting.state).toBe('resolved')
    const third = watch(topic.publish(4))
    expect(await codeOf(topic.publish(5))).toBe('TOO_MANY_WAITING')
    await settle(3)
    expect([two.state, third.state]).toEqual(['resolved', 'resolved'])
  })

  it('are bounded in bytes per topic, 10,000 records and 64 MiB by default', async () => {
    const { topic } = await fullTopic(1, { maxWaiting: { bytes: 300 } })
    void topic.publish(new Uint8Array(100)).catch(() => undefined)
    expect(await codeOf(topic.publish(new Uint8Array(73)))).toBe('TOO_MANY_WAITING')
    expect(watch(topic.publish(new Uint8Array(72))).state).toBe('waiting')
    const usual = await fullTopic(1, { retention: { records: 1 } })
    for (const value of upTo(10_000)) void usual.topic.publish(value).catch(() => undefined)
    expect(await codeOf(usual.topic.publish(1))).toBe('TOO_MANY_WAITING')
    await usual.broker.close({ drainMs: 0 })
  })

  it('that come and abort leave nothing behind the stuck head of the line', async () => {
    const { broker, topic, partition } = await fullTopic(1)
    const head = codeOf(topic.publish('head'))
    const records: WeakRef<object>[] = []
    for (let i = 0; i < 500; i++) {
      const abort = new AbortController()
      const value = { i }
      records.push(new WeakRef(value))
      const given = codeOf(topic.publish(value, { signal: abort.signal }))
      abort.abort()
      expect(await given).toBe('ABORTED')
    }
    expect(partition()?.waiting).toBe(1)
    await collectGarbage()
    const alive = records.filter((each) => each.deref() !== undefined).length
    expect(alive).toBeLessThan(50)
    await broker.close({ drainMs: 0 })
    expect(await head).toBe('CLOSED')
  })

  it('are told when the broker closes', async () => {
    const { topic, broker } = await fullTopic(1)
    const waiting = codeOf(topic.publish(1))
    await broker.close({ drainMs: 0 })
    expect(await waiting).toBe('CLOSED')
  })

  it('keep idle() waiting', async () => {
    const { topic, broker, settle, hands, world } = await fullTopic(1)
    void topic.publish(1)
    const idle = watch(broker.idle())
    await world.settle()
    expect(idle.state).toBe('waiting')
    await settle(1)
    expect(idle.state).toBe('waiting')
    hands.last.ack()
    await world.settle()
    expect(idle.state).toBe('resolved')
  })
})

describe('what can never fit', () => {
  it('is TOO_LARGE at once, also while others wait', async () => {
    const { topic, broker } = await fullTopic(2)
    const three = upTo(3).map((value) => ({ value }))
    expect(await codeOf(topic.publishAll(three))).toBe('TOO_LARGE')
    void topic.publish('waits').catch(() => undefined)
    expect(await codeOf(topic.publishAll(three))).toBe('TOO_LARGE')
    expect(await codeOf(topic.publish('x'.repeat(200 * 1024 * 1024)))).toBe('TOO_LARGE')
    await expect(topic.publishAll(three)).rejects.toThrow(
      /^"t" partition 0: 3 records of 960 bytes at once; its `retention` keeps 2 records$/,
    )
    await broker.close({ drainMs: 0 })
  })

  it('because retention shrank while it waited is told so', async () => {
    const { topic, broker, world } = await fullTopic(3)
    const batch = codeOf(topic.publishAll(upTo(3).map((value) => ({ value }))))
    const transaction = codeOf(
      broker.transaction((tx) => {
        for (const value of upTo(3)) tx.publish('t', value)
      }),
    )
    await world.settle()
    await broker.alterTopic('t', { retention: { records: 2 } })
    expect(await batch).toBe('TOO_LARGE')
    expect(await transaction).toBe('TOO_LARGE')
  })
})

describe('tryPublish', () => {
  it('appends when there is room and answers undefined when there is none', async () => {
    const { topic, settle, partition } = await fullTopic(2)
    expect(topic.tryPublish('no')).toBeUndefined()
    expect(topic.tryPublish('no', { key: 'k' })).toBeUndefined()
    expect(partition()).toMatchObject({ end: 2, waiting: 0 })
    await settle(1)
    expect(topic.tryPublish('yes', { key: 'k', headers: { h: '1' } })).toEqual({ partition: 0, offset: 2 })
    expect(topic.tryPublish('no')).toBeUndefined()
    expect(codeThrown(() => topic.tryPublish(undefined))).toBe('INVALID_VALUE')
  })

  it('has room again as soon as those who waited gave up', async () => {
    const { topic, hands } = await fullTopic(2)
    const abort = new AbortController()
    const batch = codeOf(topic.publishAll([{ value: 1 }, { value: 2 }], { signal: abort.signal }))
    hands.last.ack()
    expect(topic.tryPublish('no')).toBeUndefined()
    abort.abort()
    expect(topic.tryPublish('yes')).toEqual({ partition: 0, offset: 2 })
    expect(await batch).toBe('ABORTED')
  })
})

it('what waited for room is stored whole, in order: values, keys, headers and sizes', async () => {
  const { broker, settle } = new World()
  await broker.createTopic('orders', { retention: { records: 3 } })
  const subscription = await broker.subscribe('orders', () => {}, { id: 'alice', from: 'earliest' })
  subscription.pause()
  for (const value of [0, 1, 2]) await broker.publish('orders', value)
  const alone = broker.publish('orders', 'one', { key: 'k1', headers: { h: '1' } })
  const together = broker.publishAll('orders', [
    { value: 'two', key: 'k2', headers: { h: '2' } },
    { value: new Uint8Array(100), id: 'three' },
  ])
  subscription.resume()
  await settle()
  expect([await alone, await together]).toEqual([
    { partition: 0, offset: 3 },
    [
      { partition: 0, offset: 4 },
      { partition: 0, offset: 5 },
    ],
  ])
  const records = await broker.read('orders')
  expect(records.map(({ value, key, headers }) => [value, key, headers.get('h')])).toEqual([
    ['one', 'k1', '1'],
    ['two', 'k2', '2'],
    [new Uint8Array(100), null, undefined],
  ])
  expect(records[2]?.id).toBe('three')
  expect(broker.describe('orders').partitions[0]?.sizeBytes).toBe(3 * 64 + 6 + 6 + 100)
})
