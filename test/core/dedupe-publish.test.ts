import { describe, expect, it } from 'vitest'
import type { DedupeOptions } from '../../src/model/options.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

async function deduping(dedupe: DedupeOptions | boolean = true, records = 100) {
  const world = new World()
  const topic = await world.broker.createTopic('t', { dedupe, partitions: 2, retention: { records } })
  const end = () => topic.describe().partitions.reduce((sum, { end: each }) => sum + each, 0)
  const duplicates = () => world.broker.metrics().topics[0]?.duplicates
  return { world, broker: world.broker, topic, end, duplicates }
}

/** The same with a full partition 0, held by a reader that has its oldest record in hand. */
async function full(records = 1) {
  const made = await deduping(true, records)
  const hands = new Hands()
  await made.topic.subscribe(hands.take, { id: 'slow', ack: 'manual', ackTimeoutMs: 3_600_000 })
  for (const value of upTo(records)) await made.topic.publish(value, { partition: 0 })
  await made.world.settle()
  const settle = async (n = 1): Promise<void> => {
    for (let i = 0; i < n; i++) {
      hands.last.ack()
      await made.world.settle()
    }
  }
  return { ...made, hands, settle }
}

const IN_0 = { partition: 0 } as const

describe('an id seen within the window', () => {
  it('answers the first position with duplicate: true, and appends nothing', async () => {
    const { topic, end, duplicates } = await deduping()
    const first = await topic.publish('a', { id: 'x', partition: 1 })
    expect(first).toEqual({ partition: 1, offset: 0 })
    const again = { partition: 1, offset: 0, duplicate: true }
    expect(await topic.publish('b', { id: 'x' })).toEqual(again)
    expect(await topic.publish('c', { id: 'x', partition: 0, key: 'k' })).toEqual(again)
    expect(topic.tryPublish('d', { id: 'x' })).toEqual(again)
    expect(await topic.publishAll([{ value: 'e', id: 'x' }, { value: 'f' }])).toEqual([
      again,
      expect.anything(),
    ])
    expect([end(), duplicates()]).toEqual([2, 4])
  })

  it('is no concern of topics without dedupe, where it only names the record', async () => {
    const { broker } = new World()
    const topic = await broker.createTopic('t', { dedupe: false })
    for (const offset of upTo(2))
      expect(await topic.publish(1, { id: 'x' })).toEqual({ partition: 0, offset })
    await topic.publishAll([
      { value: 1, id: 'x' },
      { value: 1, id: 'x' },
    ])
    await broker.transaction((tx) => {
      for (const value of upTo(2)) tx.publish('t', value, { id: 'x' })
    })
    expect((await broker.read('t')).map((record) => record.id)).toEqual(upTo(6).map(() => 'x'))
  })

  it('is one of its own topic', async () => {
    const { broker, topic } = await deduping()
    const other = await broker.createTopic('other', { dedupe: true })
    await topic.publish(1, { id: 'x' })
    expect(await other.publish(1, { id: 'x' })).toEqual({ partition: 0, offset: 0 })
    await broker.deleteTopic('t')
    const again = await broker.createTopic('t', { dedupe: true })
    expect(await again.publish(1, { id: 'x' })).toEqual({ partition: 0, offset: 0 })
  })

  it('is still one when its record is gone', async () => {
    const { topic } = await deduping(true, 1)
    await topic.publish(1, { id: 'x', ...IN_0 })
    await topic.publish(2, IN_0)
    expect(await topic.publish(3, { id: 'x' })).toEqual({ partition: 0, offset: 0, duplicate: true })
  })
})

describe('the window', () => {
  it('forgets an id after windowMs, two minutes by default', async () => {
    const { world, topic } = await deduping()
    await topic.publish(1, { id: 'x', ...IN_0 })
    await world.clock.advance(119_999)
    expect(await topic.publish(1, { id: 'x', ...IN_0 })).toMatchObject({ duplicate: true })
    await world.clock.advance(1)
    expect(await topic.publish(1, { id: 'x', ...IN_0 })).toEqual({ partition: 0, offset: 1 })
    const short = await world.broker.createTopic('short', { dedupe: { windowMs: 10 } })
    await short.publish(1, { id: 'x' })
    await world.clock.advance(10)
    expect(await short.publish(1, { id: 'x' })).toEqual({ partition: 0, offset: 1 })
  })

  it('forgets the oldest ids beyond records', async () => {
    const { topic } = await deduping({ records: 2 })
    for (const id of ['a', 'b', 'c']) await topic.publish(1, { id, ...IN_0 })
    expect(await topic.publish(1, { id: 'b' })).toMatchObject({ offset: 1, duplicate: true })
    expect(await topic.publish(1, { id: 'a', ...IN_0 })).toEqual({ partition: 0, offset: 3 })
  })

  it('copes with one batch of more ids than it remembers, repeats within it included', async () => {
    const { topic, end } = await deduping({ records: 1 })
    await topic.publish(0, { id: 'old', ...IN_0 })
    const ids = ['a', 'b', 'a', 'c', 'old', 'b']
    const published = await topic.publishAll(ids.map((id) => ({ value: id, id, ...IN_0 })))
    const offsets = published.map(({ offset, duplicate }) => [offset, duplicate === true])
    expect(offsets).toEqual([
      [1, false],
      [2, false],
      [1, true],
      [3, false],
      [0, true],
      [2, true],
    ])
    expect(end()).toBe(4)
  })
})

describe('a repeat while the first still waits', () => {
  it('shares its outcome when it is let in', async () => {
    const { topic, world, settle, end } = await full()
    const first = watch(topic.publish('first', { id: 'x', ...IN_0 }))
    const again = [
      watch(topic.publish('again', { id: 'x', ...IN_0 })),
      watch(topic.publish('again', { id: 'x', partition: 1 })),
    ]
    const inBatch = watch(
      topic.publishAll([
        { value: 'again', id: 'x' },
        { value: 'new', partition: 1 },
      ]),
    )
    expect(topic.tryPublish('again', { id: 'x', partition: 1 })).toBeUndefined()
    await world.settle()
    expect([first, ...again, inBatch].map(({ state }) => state)).toEqual(upTo(4).map(() => 'waiting'))
    expect(topic.describe().partitions[0]?.waiting).toBe(1)
    await settle()
    const position = { partition: 0, offset: 1 }
    expect(first.value).toEqual(position)
    for (const each of again) expect(each.value).toEqual({ ...position, duplicate: true })
    expect(inBatch.value).toEqual([
      { ...position, duplicate: true },
      { partition: 1, offset: 0 },
    ])
    expect(end()).toBe(3)
  })

  it.each([
    ['times out', 'TIMEOUT'],
    ['is aborted', 'ABORTED'],
    ['loses its topic', 'UNKNOWN_TOPIC'],
  ])('shares its outcome when it %s; the id is free then', async (_, code) => {
    const { topic, broker, world } = await full()
    const abort = new AbortController()
    const first = codeOf(topic.publish('first', { id: 'x', ...IN_0, signal: abort.signal }))
    const again = codeOf(topic.publish('again', { id: 'x', ...IN_0 }))
    if (code === 'TIMEOUT') await world.clock.advance(30_000)
    else if (code === 'ABORTED') abort.abort()
    else await broker.deleteTopic('t')
    expect([await first, await again]).toEqual([code, code])
    if (code === 'UNKNOWN_TOPIC') return
    expect(await topic.publish('again', { id: 'x', partition: 1 })).toEqual({ partition: 1, offset: 0 })
  })

  it('shares the outcome of a batch, and so does a repeat within the batch', async () => {
    const { topic, settle } = await full(2)
    const batch = watch(
      topic.publishAll([
        { value: 1, id: 'x', ...IN_0 },
        { value: 2, id: 'y', ...IN_0 },
        { value: 3, id: 'x', ...IN_0 },
      ]),
    )
    const again = watch(topic.publish(4, { id: 'y', ...IN_0 }))
    const next = watch(topic.publishAll([{ value: 5, id: 'x', ...IN_0 }]))
    expect(batch.state).toBe('waiting')
    await settle(2)
    expect(batch.value).toEqual([
      { partition: 0, offset: 2 },
      { partition: 0, offset: 3 },
      { partition: 0, offset: 2, duplicate: true },
    ])
    expect(again.value).toEqual({ partition: 0, offset: 3, duplicate: true })
    expect(next.value).toEqual([{ partition: 0, offset: 2, duplicate: true }])
  })

  it('of which there are many settles each of them, and no rejection is left unhandled', async () => {
    const { topic, broker } = await full()
    const outcomes = upTo(20).map(() => codeOf(topic.publish(1, { id: 'x', ...IN_0 })))
    const refused = codeOf(
      topic.publishAll([{ value: 1, id: 'x' }, ...upTo(2).map((value) => ({ value, ...IN_0 }))]),
    )
    expect(await refused).toBe('TOO_LARGE')
    await broker.close({ drainMs: 0 })
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['CLOSED']))
  })
})

describe('in a transaction', () => {
  it('an id that was accepted is not published again, the rest is', async () => {
    const { topic, broker, end } = await deduping()
    await topic.publish('first', { id: 'x', ...IN_0 })
    await broker.transaction((tx) => {
      tx.publish('t', 'again', { id: 'x', ...IN_0 })
      tx.publish('t', 'new', { id: 'y', ...IN_0 })
      tx.publish('t', 'new again', { id: 'y', ...IN_0 })
    })
    expect((await broker.read('t')).map((record) => record.value)).toEqual(['first', 'new'])
    expect(await topic.publish('late', { id: 'y' })).toEqual({ partition: 0, offset: 1, duplicate: true })
    expect(end()).toBe(2)
  })

  it('that waits, an id counts as on its way: repeats share its outcome', async () => {
    const { topic, broker, world, settle, end } = await full()
    const transaction = watch(broker.transaction((tx) => tx.publish('t', 'first', { id: 'x', ...IN_0 })))
    await world.settle()
    const again = watch(topic.publish('again', { id: 'x', partition: 1 }))
    const second = watch(broker.transaction((tx) => tx.publish('t', 'again', { id: 'x', partition: 1 })))
    await settle(1)
    expect(again.value).toEqual({ partition: 0, offset: 1, duplicate: true })
    expect([transaction.state, second.state]).toEqual(['resolved', 'resolved'])
    expect(end()).toBe(2)
  })

  it('an id on its way elsewhere is waited for, and published here if that came to nothing', async () => {
    const { topic, broker, world, end } = await full(2)
    const abort = new AbortController()
    const first = codeOf(topic.publish('first', { id: 'x', ...IN_0, signal: abort.signal }))
    const transaction = watch(
      broker.transaction((tx) => {
        tx.publish('t', 'mine', { id: 'x', partition: 1 })
        tx.publish('t', 'with it', { partition: 1 })
      }),
    )
    await world.settle()
    expect([transaction.state, end()]).toEqual(['waiting', 2])
    abort.abort()
    expect(await first).toBe('ABORTED')
    await world.settle()
    expect(transaction.state).toBe('resolved')
    expect((await broker.read('t', 1)).map((record) => record.value)).toEqual(['mine', 'with it'])
  })

  it('two that have the same ids in different order publish each once, and do not wait for each other', async () => {
    const { broker, settle, world, end } = await full(2)
    const run = (ids: string[]) =>
      watch(
        broker.transaction((tx) => {
          for (const id of ids) tx.publish('t', id, { id, ...IN_0 })
        }),
      )
    const both = [run(['x', 'y']), run(['y', 'x'])]
    await world.settle()
    await settle(2)
    expect(both.map(({ state }) => state)).toEqual(['resolved', 'resolved'])
    expect(end()).toBe(4)
  })

  it('that is fenced or fails leaves its ids free', async () => {
    const { topic, broker, hands, world } = await full()
    hands.last.nack({ delayMs: 10 })
    const failed = broker.transaction((tx) => {
      tx.publish('t', 1, { id: 'x', partition: 1 })
      tx.ack(hands.last)
    })
    expect(await codeOf(failed)).toBe('FENCED')
    await world.settle()
    expect(await topic.publish(1, { id: 'x', partition: 1 })).toEqual({ partition: 1, offset: 0 })
  })
})
