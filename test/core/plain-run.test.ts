import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/coordinator/subscription.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import { upTo, World } from '../support/world.ts'

const ALL = Array.from({ length: 200 }, (_, offset) => offset)

/** A synchronous reader for which 200 records have come, and the offsets that it was called with. */
async function running(
  handler: (d: Delivery, world: World, reader: Subscription) => unknown,
  options: object = {},
) {
  const world = new World()
  const topic = await world.broker.createTopic('t', { retention: { records: 200 } })
  const handled: number[] = []
  const reader: Subscription = await topic.subscribe(
    (d) => {
      handled.push(d.offset)
      return handler(d, world, reader)
    },
    { id: 'reader', retry: { delayMs: 10, jitter: 0 }, ...options },
  )
  await world.settle()
  for (const value of upTo(200)) topic.tryPublish(value)
  await world.settle()
  const { cursors, counters } = reader.describe()
  return { world, topic, reader, handled, cursor: cursors[0], counters }
}

describe('a run of records that are acked by returning', () => {
  it('settles all of them, in order', async () => {
    const { handled, cursor, counters } = await running(() => undefined)
    expect(handled).toEqual(ALL)
    expect(cursor).toMatchObject({ committed: 200, next: 200, inFlight: 0 })
    expect(counters).toMatchObject({ delivered: 200, acked: 200, nacked: 0 })
  })

  it('looks right from within: the record at hand is in flight, what was before it is settled', async () => {
    const seen: object[] = []
    await running((d, _, reader) => {
      const { cursors, counters, member } = reader.describe()
      const { committed, next, inFlight } = cursors[0] ?? {}
      const { delivered, acked } = counters
      const expected = { committed: d.offset, next: d.offset + 1, inFlight: 1, delivered: d.offset + 1 }
      const found = { committed, next, inFlight, delivered }
      if (member.inFlight !== 1 || acked !== d.offset) seen.push({ member, acked })
      if (JSON.stringify(found) !== JSON.stringify(expected)) seen.push(found)
    })
    expect(seen).toEqual([])
  })

  it('measures one call in 64, and no more', async () => {
    const { world } = await running(() => undefined)
    const { handleLatency } = world.broker.metrics().readers.find((each) => each.name === 'reader') ?? {}
    expect(handleLatency?.count).toBe(3)
  })

  it('stops for a record whose handler throws, and hands it out again before the next one', async () => {
    let failed = false
    const { world, handled, cursor } = await running((d) => {
      if (d.offset !== 100 || failed) return
      failed = true
      throw new Error('once')
    })
    expect(handled).toEqual(ALL.slice(0, 101))
    expect(cursor).toMatchObject({ committed: 100, next: 101, retrying: 1 })
    await world.clock.advance(10)
    expect(handled).toEqual([...ALL.slice(0, 101), ...ALL.slice(100)])
  })

  it('stops for a record whose handler answers a promise, which expires like any other', async () => {
    const { world, handled, cursor, reader } = await running(
      (d) => (d.offset === 100 && d.attempt === 1 ? new Promise(() => {}) : undefined),
      { ackTimeoutMs: 1_000, concurrency: 2, order: 'partition' },
    )
    expect(handled).toEqual(ALL.slice(0, 101))
    expect(cursor).toMatchObject({ committed: 100, inFlight: 1 })
    await world.clock.advance(1_000)
    expect(handled).toEqual([...ALL.slice(0, 101), ...ALL.slice(100)])
    expect(reader.describe().counters).toMatchObject({ expired: 1, acked: 200 })
  })

  it('goes on after a handler that settles by itself, whichever way', async () => {
    const { handled, counters, cursor } = await running(
      (d) => {
        if (d.offset % 3 === 0) d.ack()
        else if (d.offset % 3 === 1) d.reject('not for us')
      },
      { deadLetter: false },
    )
    expect(handled).toEqual(ALL)
    expect(cursor).toMatchObject({ committed: 200, inFlight: 0 })
    expect(counters).toMatchObject({ delivered: 200, acked: 133, skipped: 67 })
  })

  it('starts over where its handler replays it', async () => {
    let replayed = false
    const { handled, cursor } = await running((d, world) => {
      if (d.offset !== 100 || replayed) return
      replayed = true
      void world.broker.resetOffset('t', 'reader', 50)
    })
    expect(handled.slice(0, 101)).toEqual(ALL.slice(0, 101))
    expect(handled.slice(-150)).toEqual(ALL.slice(50))
    expect(cursor).toMatchObject({ committed: 200, inFlight: 0 })
  })

  it('ends where its handler closes it, with what was in hand settled', async () => {
    const { world, topic, handled } = await running((d, _, reader) => {
      if (d.offset === 100) void reader.close()
    })
    expect(handled).toEqual(ALL.slice(0, 101))
    const again: number[] = []
    await topic.subscribe((d) => again.push(d.offset) && undefined, { id: 'reader' })
    await world.settle()
    expect(again).toEqual(ALL.slice(101))
  })

  it('pauses where its handler pauses it', async () => {
    const { world, handled, reader } = await running((d, _, own) => {
      if (d.offset === 100) own.pause()
    })
    expect(handled).toEqual(ALL.slice(0, 101))
    reader.resume()
    await world.settle()
    expect(handled).toEqual(ALL)
  })

  it('skips what its handler pushes out of the log, and counts it', async () => {
    const { handled, counters } = await running(
      (d) => {
        if (d.offset === 10) for (const value of upTo(100)) void d.publish('t', value)
      },
      { overflow: 'drop-oldest' },
    )
    expect(handled).toEqual([
      ...ALL.slice(0, 11),
      ...ALL.slice(100),
      ...ALL.slice(0, 100).map((i) => 200 + i),
    ])
    expect(counters).toMatchObject({ delivered: 211, acked: 211, dropped: 89 })
  })
})
