/** Batches as bytes on their way into a log: at once, or in line with publishers. */
import { describe, expect, it } from 'vitest'
import { appendBytes, type BytesWait } from '../../src/core/append-bytes.ts'
import type { Partition } from '../../src/core/partition.ts'
import type { ProducerInfo } from '../../src/model/batch.ts'
import type { TopicOptions } from '../../src/model/options.ts'
import { batchOf, by } from '../support/record-batches.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

interface Site {
  readonly world: World
  readonly partition: Partition
  readonly append: (
    values: readonly string[],
    wait?: Partial<BytesWait> & { readonly producer?: ProducerInfo },
  ) => ReturnType<typeof appendBytes>
}

async function site(options: TopicOptions = {}): Promise<Site> {
  const world = new World()
  await world.broker.createTopic('orders', options)
  const { ctx, topics } = world.broker.parts
  const partition = topics.require('orders').partitionAt(0)
  const append: Site['append'] = (values, { producer, ...wait } = {}) => {
    const bytes = batchOf({ values, ...(producer && { producer }) })
    const batch = {
      count: values.length,
      sizeBytes: bytes.length,
      columns: null,
      bytes,
      producer: producer ?? null,
    }
    const { signal } = new AbortController()
    return appendBytes(ctx, partition, batch, {
      timeoutMs: 1_000,
      signal,
      awaited: true,
      before: () => 0,
      ...wait,
    })
  }
  return { world, partition, append }
}

/** Two records are retained, and both are held by a reader that is slow. */
async function full(): Promise<Site & { readonly hands: Hands }> {
  const made = await site({ retention: { records: 2 } })
  const hands = new Hands()
  await made.world.broker.subscribe('orders', hands.take, { id: 'slow', ack: 'manual' })
  void made.append(['a', 'b'])
  await made.world.settle()
  return { ...made, hands }
}

describe('a batch of bytes', () => {
  it('is appended at once where there is room, and counts as published', async () => {
    const { world, append } = await site()
    expect(append(['a', 'b'])).toEqual({ base: 0, last: 1, duplicate: false })
    expect(append(['c'])).toEqual({ base: 2, last: 2, duplicate: false })
    await world.settle()
    expect(world.broker.metrics().topics[0]).toMatchObject({ published: 3, duplicates: 0 })
  })

  it('that repeats another one counts as that, and is not published again', async () => {
    const { world, append } = await site()
    void append(['a', 'b'], { producer: by(1, 0) })
    expect(append(['a', 'b'], { producer: by(1, 0) })).toEqual({ base: 0, last: 1, duplicate: true })
    await world.settle()
    expect(world.broker.metrics().topics[0]).toMatchObject({ published: 2, duplicates: 2 })
  })

  it('is refused where it must be, and answers what it is told to', async () => {
    const { append, partition } = await site({ retention: { records: 2 } })
    expect(append(['a', 'b', 'c'])).toBe('TOO_LARGE')
    void append(['a'], { producer: by(1, 5) })
    expect(append(['b'], { producer: by(1, 7) })).toBe('OUT_OF_ORDER')
    expect(append(['b'], { before: () => 42 })).toBe(42)
    expect(partition.log.marks.end).toBe(1)
  })

  it('finds room that nobody has looked for yet', async () => {
    const { world, append, hands } = await full()
    hands.deliveries[0]?.ack()
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(append(['c', 'd'])).toMatchObject({ base: 2 })
  })

  it('that waits is in line with publishers, and the broker is not idle', async () => {
    const { world, append, hands } = await full()
    const first = watch(world.broker.publish('orders', 'c'))
    const second = watch(Promise.resolve(append(['d'])))
    const third = watch(world.broker.publish('orders', 'e'))
    const idle = watch(world.broker.idle())
    for (const _ of upTo(3)) {
      await world.settle()
      hands.last.ack()
    }
    await world.settle()
    expect([first.value?.offset, second.value, third.value?.offset]).toMatchObject([2, { base: 3 }, 4])
    expect(idle.state).toBe('waiting')
  })

  it('that waits is asked about right before it is appended', async () => {
    const { world, append, hands } = await full()
    const asked: number[] = []
    const waiting = append(['c'], {
      before: () => {
        asked.push(world.clock.now())
        return asked.length < 2 ? 0 : 7
      },
    })
    const since = world.clock.now()
    await world.clock.advance(100)
    hands.last.ack()
    expect(await waiting).toBe(7)
    expect(asked).toEqual([since, since + 100])
    await world.settle()
    expect(world.broker.describe('orders').partitions).toMatchObject([{ end: 2, waiting: 0 }])
  })

  it('does not wait for who is gone already', async () => {
    const { append } = await full()
    const signal = AbortSignal.abort()
    expect(await codeOf(Promise.resolve(append(['c'], { signal })))).toBe('ABORTED')
  })
})

describe('batches of one producer in line', () => {
  it('give up together from the first one that does, and nobody else with them', async () => {
    const { world, append, hands } = await full()
    const before = watch(Promise.resolve(append(['c'], { producer: by(1, 0), timeoutMs: 9_000 })))
    const first = codeOf(Promise.resolve(append(['d'], { producer: by(1, 1), timeoutMs: 100 })))
    const stranger = watch(Promise.resolve(append(['x'], { producer: by(2, 0), timeoutMs: 9_000 })))
    const nobody = watch(Promise.resolve(append(['y'], { timeoutMs: 9_000 })))
    const behind = [2, 3].map((sequence) =>
      codeOf(Promise.resolve(append(['e'], { producer: by(1, sequence), timeoutMs: 9_000 }))),
    )
    await world.clock.advance(100)
    expect(await Promise.all([first, ...behind])).toEqual(['TIMEOUT', 'TIMEOUT', 'TIMEOUT'])
    expect([before, stranger, nobody].map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting'])
    const again = watch(Promise.resolve(append(['d'], { producer: by(1, 1), timeoutMs: 9_000 })))
    for (const _ of upTo(4)) {
      hands.last.ack()
      await world.settle()
    }
    expect([before, stranger, nobody, again].map(({ value }) => value)).toMatchObject(
      [2, 3, 4, 5].map((base) => ({ base })),
    )
  })

  it('are let in one after the other where none gives up', async () => {
    const { world, append, hands } = await full()
    const waiting = upTo(3).map((sequence) =>
      watch(Promise.resolve(append(['c'], { producer: by(1, sequence) }))),
    )
    for (const _ of upTo(3)) {
      await world.settle()
      hands.last.ack()
    }
    await world.settle()
    expect(waiting.map(({ value }) => value)).toMatchObject([2, 3, 4].map((base) => ({ base })))
  })
})

describe('who watches a partition', () => {
  it('hears once of many appends, of a trim, and of the end', async () => {
    const { world, partition, append } = await site()
    let heard = 0
    partition.watchers.add(() => heard++)
    await world.settle()
    const before = heard
    void append(['a'])
    void append(['b'])
    await world.settle()
    const perFlush = heard - before
    expect(perFlush).toBe(1)
    await partition.trim(1)
    await world.settle()
    expect(heard).toBe(before + perFlush + 1)
    await world.broker.deleteTopic('orders')
    expect(heard).toBeGreaterThan(before + perFlush + 1)
  })
})
