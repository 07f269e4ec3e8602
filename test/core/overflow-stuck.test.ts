import { describe, expect, it } from 'vitest'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Overflow } from '../../src/model/options.ts'
import { usedBytes } from '../support/garbage.ts'
import { upTo, World, watch } from '../support/world.ts'

const FAST = 99
const RECORDS = 8
const MiB = 1024 * 1024

/** One stuck reader next to 99 fast ones on "t", and one more topic with a reader of its own. */
async function crowd(overflow: Overflow, retention: object = { records: RECORDS }) {
  const world = new World()
  const topic = await world.broker.createTopic('t', { retention })
  const other = await world.broker.createTopic('other', { retention: { records: 2 } })
  const held: Delivery[] = []
  const stuck = await topic.subscribe((d) => void held.push(d), {
    id: 'stuck',
    overflow,
    ack: 'manual',
    ackTimeoutMs: 3_600_000,
  })
  const seen = new Map<string, number[]>()
  for (const i of upTo(FAST)) {
    const id = `fast-${i}`
    const offsets: number[] = []
    seen.set(id, offsets)
    await topic.subscribe((d) => void offsets.push(d.offset), { id })
  }
  const otherSeen: number[] = []
  await other.subscribe((d) => void otherSeen.push(d.offset), { id: 'other' })
  return { world, topic, other, held, stuck, seen, otherSeen }
}

describe('one stuck reader next to 99 fast ones', () => {
  it('with drop-oldest holds nobody up, and its counter is exact', async () => {
    const { world, topic, stuck, seen, held } = await crowd('drop-oldest')
    for (const value of upTo(200)) await topic.publish(value)
    await world.settle()
    for (const offsets of seen.values()) expect(offsets).toEqual(upTo(200))
    expect(held).toHaveLength(1)
    expect(stuck.describe().counters).toMatchObject({ delivered: 1, dropped: 200 - 1 - RECORDS })
    for (const reader of topic.describe().readers) {
      if (reader.name !== 'stuck') expect(reader.counters).toMatchObject({ acked: 200, dropped: 0 })
    }
    expect(world.raised('stalled')).toEqual([])
    expect(world.raised('pressure')).toEqual([])
  })

  it('with drop-newest holds nobody up, and its counter is exact', async () => {
    const { world, topic, stuck, seen } = await crowd('drop-newest')
    for (const value of upTo(200)) await topic.publish(value)
    await world.settle()
    for (const offsets of seen.values()) expect(offsets).toEqual(upTo(200))
    expect(stuck.describe().counters).toMatchObject({ delivered: 1, dropped: 200 - RECORDS })
  })

  it('with wait makes publishers wait, is named, and leaves other topics alone; nobody loses anything', async () => {
    const { world, topic, other, held, seen, otherSeen } = await crowd('wait')
    for (const value of upTo(RECORDS)) await topic.publish(value)
    const waiting = upTo(20).map((value) => watch(topic.publish(RECORDS + value)))
    await world.clock.advance(5_000)
    expect(waiting.every((each) => each.state === 'waiting')).toBe(true)
    for (const offsets of seen.values()) expect(offsets).toEqual(upTo(RECORDS))
    expect(world.raised('stalled')).toEqual([
      { topic: 't', partition: 0, reader: 'stuck', reason: 'publishers-waiting' },
    ])
    for (const value of upTo(50)) await other.publish(value)
    await world.settle()
    expect(otherSeen).toEqual(upTo(50))
    for (let i = 0; i < RECORDS + 20; i++) {
      held.at(-1)?.ack()
      await world.settle()
    }
    expect(waiting.every((each) => each.state === 'resolved')).toBe(true)
    for (const offsets of seen.values()) expect(offsets).toEqual(upTo(RECORDS + 20))
    expect(held.map((delivery) => delivery.offset)).toEqual(upTo(RECORDS + 20))
    expect(world.raised('dropped')).toEqual([])
  })

  it('with reject refuses publishers, and nobody loses what was accepted', async () => {
    const { world, topic, seen, held } = await crowd('reject')
    const outcomes = await Promise.allSettled(upTo(20).map((value) => topic.publish(value)))
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...upTo(RECORDS).map(() => 'fulfilled'),
      ...upTo(20 - RECORDS).map(() => 'rejected'),
    ])
    await world.settle()
    for (const offsets of seen.values()) expect(offsets).toEqual(upTo(RECORDS))
    expect(held).toHaveLength(1)
  })

  it.each(['drop-oldest', 'drop-newest'] as const)(
    'with %s and records of 1 MB keeps the heap flat, whatever is published',
    async (overflow) => {
      const { world, topic } = await crowd(overflow, { bytes: 16 * MiB })
      const round = async (): Promise<number> => {
        for (const _ of upTo(40)) await topic.publish(new Uint8Array(MiB - 64))
        await world.settle()
        return usedBytes()
      }
      await round()
      const before = await round()
      const after = [await round(), await round()]
      for (const bytes of after) expect(Math.abs(bytes - before)).toBeLessThan(4 * MiB)
    },
    60_000,
  )

  it('with wait and records of 1 MB keeps the heap flat: what waits is bounded, what gave up is gone', async () => {
    const { world, topic } = await crowd('wait', { bytes: 4 * MiB })
    for (const _ of upTo(4)) await topic.publish(new Uint8Array(MiB - 64))
    const round = async (): Promise<number> => {
      const outcomes: Promise<string>[] = []
      for (const _ of upTo(80)) {
        outcomes.push(topic.publish(new Uint8Array(MiB - 64)).then(String, (error) => error.code))
      }
      await world.clock.advance(30_000)
      const codes = await Promise.all(outcomes)
      expect(codes.filter((code) => code === 'TIMEOUT')).toHaveLength(64)
      expect(codes.filter((code) => code === 'TOO_MANY_WAITING')).toHaveLength(16)
      return usedBytes()
    }
    const before = await round()
    const after = [await round(), await round()]
    for (const bytes of after) expect(Math.abs(bytes - before)).toBeLessThan(4 * MiB)
  }, 60_000)
})

describe('a slow subscriber', () => {
  it('stalls neither the topic, nor its partition, nor its own other partitions', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { partitions: 3 })
    const release: (() => void)[] = []
    const slow: string[] = []
    const fast: string[] = []
    const at = (d: Delivery): string => `${d.partition}/${d.offset}`
    const handler = (d: Delivery): unknown => {
      slow.push(at(d))
      return d.partition === 0 ? new Promise<void>((resolve) => release.push(resolve)) : undefined
    }
    await topic.subscribe(handler, { id: 'slow', order: 'partition', concurrency: 2 })
    await topic.subscribe((d) => void fast.push(at(d)), { id: 'fast' })
    for (const partition of upTo(3)) for (const value of upTo(3)) await topic.publish(value, { partition })
    await world.settle()
    expect(fast).toHaveLength(9)
    expect(slow.sort()).toEqual(['0/0', '1/0', '1/1', '1/2', '2/0', '2/1', '2/2'])
    for (let i = 0; i < 3; i++) {
      release.at(-1)?.()
      await world.settle()
    }
    expect(slow).toHaveLength(9)
  })

  it('of a round-robin group does not stall the group', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t')
    let slow = 0
    let fast = 0
    const group = { group: 'g', strategy: 'round-robin' } as const
    await topic.subscribe(() => new Promise<void>(() => slow++), group)
    await topic.subscribe(() => void fast++, group)
    for (const value of upTo(50)) await topic.publish(value)
    await world.settle()
    expect([slow, fast]).toEqual([1, 49])
  })
})
