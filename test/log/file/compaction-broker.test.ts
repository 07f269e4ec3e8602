/** A compacted topic through the broker: what publishers, subscribers and the next process have of it. */
import { describe, expect, it } from 'vitest'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import type { Delivery } from '../../../src/model/delivery.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf, World } from '../../support/world.ts'
import { DAY_MS, SMALL } from './compaction-kit.ts'

interface Stock {
  readonly product: string
  readonly count: number
}

const PRODUCTS = ['bolt', 'nut', 'washer', 'screw', 'nail']

async function open(fs: SimFs): Promise<World> {
  const clock = new ManualClock()
  const engine = await fileEngine({ clock, fs }, SMALL)
  const world = new World({}, engine, clock)
  await world.broker.restore()
  return world
}

/** Counts of each product, again and again; answers the last ones. */
async function stocktaking({ broker }: World, rounds: number): Promise<Map<string, number>> {
  const last = new Map<string, number>()
  const topic = broker.topic('stock')
  for (let round = 0; round < rounds; round++) {
    for (const product of PRODUCTS) {
      const count = round * 10 + product.length
      await topic.publish({ product, count } satisfies Stock, { key: product })
      last.set(product, count)
    }
  }
  return last
}

async function countsIn({ broker }: World): Promise<{ counts: Map<string, number>; records: number }> {
  const records = await broker.read('stock')
  const counts = new Map<string, number>()
  for (const { value, key } of records) {
    if (value === null) counts.delete(key as string)
    else counts.set(key as string, (value as Stock).count)
  }
  return { counts, records: records.length }
}

describe('a compacted topic', () => {
  it('has of each key the newest value, in this process and in the next', async () => {
    const fs = new SimFs()
    const first = await open(fs)
    await first.broker.createTopic<Stock>('stock', { cleanup: 'compact' })
    const last = await stocktaking(first, 200)
    await first.settle()
    const before = await countsIn(first)
    expect(before.counts).toEqual(last)
    expect(before.records).toBeLessThan(100)
    expect(first.broker.describe('stock').partitions[0]).toMatchObject({ start: 0, high: 1000, end: 1000 })
    await first.broker.close()

    const second = await open(fs.kill())
    await second.settle()
    expect((await countsIn(second)).counts).toEqual(last)
    // Asked for again, it is the same topic.
    await second.broker.createTopic('stock', { cleanup: 'compact' })
    expect(await codeOf(second.broker.createTopic('stock'))).toBe('TOPIC_EXISTS')
    expect(await codeOf(second.broker.topic('stock').publish({ product: 'x', count: 1 }))).toBe(
      'INVALID_ARGUMENT',
    )
    await second.broker.topic('stock').publish(null, { key: 'nail' })
    last.delete('nail')
    expect((await countsIn(second)).counts).toEqual(last)
    expect([first.raised('error'), second.raised('error')]).toEqual([[], []])
    await second.broker.close()
  })

  it('forgets a key that was deleted, some time after it was compacted', async () => {
    const fs = new SimFs()
    const first = await open(fs)
    await first.broker.createTopic('stock', { cleanup: 'compact', deleteRetentionMs: DAY_MS })
    await stocktaking(first, 40)
    await first.broker.topic('stock').publish(null, { key: 'nut' })
    const topic = first.broker.topic('stock')
    for (let i = 0; i < 200; i++) await topic.publish({ product: 'bolt', count: i }, { key: 'bolt' })
    await first.settle()
    const keys = async (): Promise<unknown[]> => {
      return (await first.broker.read('stock')).map(({ key }) => key)
    }
    expect(await keys()).toContain('nut')
    await first.clock.advance(2 * DAY_MS)
    await first.settle()
    expect(await keys()).not.toContain('nut')
    await first.broker.close()
  })

  it('is read by a subscriber that was away as by one that comes new: survivors in order, up to the end', async () => {
    const fs = new SimFs()
    const first = await open(fs)
    const topic = await first.broker.createTopic<Stock>('stock', { cleanup: 'compact' })
    const seen: Delivery<Stock>[] = []
    const away = await topic.subscribe((d) => void seen.push(d), { id: 'away' })
    await stocktaking(first, 1)
    await first.broker.idle()
    await away.close()
    const last = await stocktaking(first, 200)
    await first.broker.close()

    const second = await open(fs.kill())
    await second.settle()
    const again: Delivery<Stock>[] = []
    const fresh: Delivery<Stock>[] = []
    const stock = second.broker.topic('stock')
    const back = await stock.subscribe((d) => void again.push(d as Delivery<Stock>), { id: 'away' })
    await stock.subscribe((d) => void fresh.push(d as Delivery<Stock>), { from: 'earliest' })
    await second.broker.idle()
    const offsets = again.map(({ offset }) => offset)
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b))
    expect([(offsets[0] as number) >= 5, offsets.at(-1)]).toEqual([true, 1004])
    expect(fresh.map(({ offset }) => offset)).toEqual(offsets)
    for (const [product, count] of last) {
      expect(again.findLast(({ key }) => key === product)?.value.count).toBe(count)
    }
    const { cursors } = second.broker
      .describe('stock')
      .readers.find(({ name }) => name === 'away') as never as {
      cursors: { committed: number; lag: number }[]
    }
    expect(cursors).toMatchObject([{ committed: 1005, lag: 0 }])
    // A replay to where there is nothing any more goes on behind it.
    again.length = 0
    await second.broker.resetOffset('stock', 'away', 3)
    await second.broker.idle()
    expect(again.map(({ offset }) => offset)).toEqual(offsets)
    await back.close()
    expect(second.raised('error')).toEqual([])
    await second.broker.close()
  })

  it('goes on where it was when its process is killed with records unsettled that are compacted then', async () => {
    const fs = new SimFs()
    const first = await open(fs)
    const topic = await first.broker.createTopic<Stock>('stock', { cleanup: 'compact' })
    const held: Delivery<Stock>[] = []
    await topic.subscribe((d) => void held.push(d), {
      id: 'slow',
      ack: 'manual',
      concurrency: 3,
      order: 'none',
    })
    await stocktaking(first, 2)
    await first.settle()
    expect(held).toHaveLength(3)
    held[2]?.ack()
    await first.clock.advance(1000)
    const last = await stocktaking(first, 200)
    await first.settle()
    const second = await open(fs.kill())
    await second.settle()
    const seen: Delivery<Stock>[] = []
    const stock = second.broker.topic('stock')
    await stock.subscribe((d) => void seen.push(d as Delivery<Stock>), {
      id: 'slow',
      concurrency: 3,
      order: 'none',
    })
    await second.broker.idle()
    for (const [product, count] of last) {
      expect(seen.findLast(({ key }) => key === product)?.value.count).toBe(count)
    }
    const reader = second.broker.describe('stock').readers.find(({ name }) => name === 'slow')
    expect(reader).toMatchObject({ cursors: [{ committed: 1010, lag: 0 }] })
    expect(second.raised('error')).toEqual([])
    await second.broker.close()
  })
})
