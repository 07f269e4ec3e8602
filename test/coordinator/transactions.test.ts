import { describe, expect, it } from 'vitest'
import type { Transaction } from '../../src/coordinator/transactions.ts'
import type { Delivery, DeliveryBatch } from '../../src/model/delivery.ts'
import { codeOf, codeThrown, Hands, upTo, World, watch } from '../support/world.ts'

const OPEN = { ack: 'manual', ackTimeoutMs: 3_600_000 } as const

async function values(world: World, topic: string, partition = 0): Promise<unknown[]> {
  return (await world.broker.read(topic, partition)).map((record) => record.value)
}

/** Topics "a" and "b" of one record each, both full and held by a reader each. */
async function bothFull(records = 1) {
  const world = new World()
  const held: Record<string, Hands> = {}
  for (const name of ['a', 'b']) {
    const topic = await world.broker.createTopic(name, { retention: { records } })
    const hands = new Hands()
    held[name] = hands
    await topic.subscribe(hands.take, { ...OPEN, id: `slow ${name}` })
    for (const value of upTo(records)) await topic.publish(`old ${value}`)
  }
  await world.settle()
  const settle = async (name: string, n = 1): Promise<void> => {
    for (let i = 0; i < n; i++) {
      held[name]?.last.ack()
      await world.settle()
    }
  }
  const ends = () => ['a', 'b'].map((name) => world.broker.describe(name).partitions[0]?.end)
  return { world, broker: world.broker, settle, ends }
}

const toBoth =
  (value: unknown) =>
  (tx: Transaction): void => {
    tx.publish('a', value)
    tx.publish('b', value)
  }

describe('a transaction', () => {
  it('publishes to several topics and partitions, with keys and headers, and answers what its function does', async () => {
    const world = new World()
    await world.broker.createTopic('a', { partitions: 2 })
    await world.broker.createTopic('b')
    const answer = await world.broker.transaction(async (tx) => {
      tx.publish('a', 1, { partition: 0 })
      await Promise.resolve()
      tx.publish('a', 2, { partition: 1, headers: { h: 'v' } })
      tx.publish('b', 3, { key: 'k' })
      tx.publish('a', 4, { partition: 0 })
      return 'done'
    })
    expect(answer).toBe('done')
    expect(await values(world, 'a', 0)).toEqual([1, 4])
    const [second] = await world.broker.read('a', 1)
    expect(second?.headers.get('h')).toBe('v')
    expect((await world.broker.read('b'))[0]?.key).toBe('k')
    expect(world.broker.metrics().topics.map(({ published }) => published)).toEqual([3, 1])
  })

  it('shows nothing until its function is done, and then all of it at once', async () => {
    const world = new World()
    await world.broker.createTopic('a')
    await world.broker.createTopic('b')
    const views: number[][] = []
    const view = (): void => {
      views.push(['a', 'b'].map((name) => world.broker.describe(name).partitions[0]?.end ?? 0))
    }
    await world.broker.subscribe('a', view, { id: 'r' })
    await world.broker.subscribe('b', view, { id: 'r' })
    await world.broker.transaction(async (tx) => {
      tx.publish('a', 1)
      tx.publish('a', 2)
      tx.publish('b', 3)
      await world.settle()
      expect(await values(world, 'a')).toEqual([])
      expect(views).toEqual([])
    })
    await world.broker.idle()
    expect(views).toEqual([
      [2, 1],
      [2, 1],
      [2, 1],
    ])
  })

  it('that throws, at once or later, discards everything', async () => {
    const world = new World()
    await world.broker.createTopic('a')
    const hands = new Hands()
    await world.broker.subscribe('a', hands.take, { ...OPEN, id: 'r' })
    await world.broker.publish('a', 'in')
    await world.settle()
    expect(await codeOf(world.broker.transaction(undefined as never))).toBe('INVALID_ARGUMENT')
    const fault = new Error('no')
    const early = world.broker.transaction((tx) => {
      tx.publish('a', 1)
      tx.ack(hands.last)
      throw fault
    })
    await expect(early).rejects.toBe(fault)
    const late = world.broker.transaction(async (tx) => {
      tx.publish('a', 1)
      await Promise.resolve()
      throw fault
    })
    await expect(late).rejects.toBe(fault)
    expect(await values(world, 'a')).toEqual(['in'])
    expect(hands.last.ack()).toBe(true)
  })

  it('of nothing is fine', async () => {
    const world = new World()
    expect(await world.broker.transaction(() => 7)).toBe(7)
  })

  it('checks what it is given at once', async () => {
    const world = new World()
    await world.broker.createTopic('a', { retention: { bytes: 1_000 } })
    const codes: string[] = []
    await world.broker.transaction((tx) => {
      codes.push(
        codeThrown(() => tx.publish('nowhere', 1)),
        codeThrown(() => tx.publish('a', undefined)),
        codeThrown(() => tx.publish('a', 1, { partition: 1 })),
        codeThrown(() => tx.publish('a', new Uint8Array(1_000))),
        codeThrown(() => tx.ack({} as Delivery)),
        codeThrown(() => tx.ack(null as unknown as Delivery)),
      )
    })
    expect(codes).toEqual([
      'UNKNOWN_TOPIC',
      'INVALID_VALUE',
      'INVALID_ARGUMENT',
      'TOO_LARGE',
      'INVALID_ARGUMENT',
      'INVALID_ARGUMENT',
    ])
    for (const timeoutMs of [0, -1, Number.NaN]) {
      expect(await codeOf(world.broker.transaction(() => {}, { timeoutMs }))).toBe('INVALID_ARGUMENT')
    }
  })

  it('is over when its function is: nothing can be added later', async () => {
    const world = new World()
    await world.broker.createTopic('a')
    let kept: Transaction | undefined
    await world.broker.transaction((tx) => {
      kept = tx
    })
    expect(codeThrown(() => kept?.publish('a', 1))).toBe('INVALID_ARGUMENT')
    expect(codeThrown(() => kept?.ack({} as Delivery))).toBe('INVALID_ARGUMENT')
    expect(await values(world, 'a')).toEqual([])
  })

  it('is told of a topic that goes, or a broker that closes, while its function runs', async () => {
    const world = new World()
    await world.broker.createTopic('a')
    const gone = world.broker.transaction(async (tx) => {
      tx.publish('a', 1)
      await world.broker.deleteTopic('a')
    })
    expect(await codeOf(gone)).toBe('UNKNOWN_TOPIC')
    await world.broker.createTopic('a')
    const closed = world.broker.transaction(async (tx) => {
      tx.publish('a', 1)
      await world.broker.close()
    })
    expect(await codeOf(closed)).toBe('CLOSED')
  })
})

describe('acks in a transaction', () => {
  it('take effect with what it publishes', async () => {
    const world = new World()
    await world.broker.createTopic('in')
    await world.broker.createTopic('out')
    const hands = new Hands()
    const reader = await world.broker.subscribe('in', hands.take, {
      ...OPEN,
      group: 'g',
      order: 'none',
      concurrency: 9,
    })
    await world.broker.publishAll(
      'in',
      upTo(3).map((value) => ({ value })),
    )
    await world.settle()
    await world.broker.transaction(async (tx) => {
      for (const delivery of hands.deliveries) {
        tx.publish('out', (delivery.value as number) * 10)
        tx.ack(delivery)
        tx.ack(delivery)
      }
      await world.settle()
      expect(reader.describe().cursors[0]?.committed).toBe(0)
    })
    expect(await values(world, 'out')).toEqual([0, 10, 20])
    expect(reader.describe().cursors[0]).toMatchObject({ committed: 3, inFlight: 0 })
    expect(reader.describe().counters).toMatchObject({ acked: 3 })
    expect(hands.last.ack()).toBe(false)
  })

  it('settle for a handler with automatic acks, whose return changes nothing then', async () => {
    const world = new World()
    const { broker } = world
    await broker.createTopic('in')
    await broker.createTopic('out')
    const reader = await broker.subscribe(
      'in',
      async (d: Delivery) => {
        await broker.transaction((tx) => {
          tx.publish('out', d.value)
          tx.ack(d)
        })
        if (d.value === 1) throw new Error('after the commit')
      },
      { id: 'r' },
    )
    for (const value of upTo(3)) await broker.publish('in', value)
    await broker.idle()
    expect(await values(world, 'out')).toEqual([0, 1, 2])
    expect(reader.describe().counters).toMatchObject({ acked: 3, nacked: 0 })
  })

  it('settle single records of a batch', async () => {
    const world = new World()
    const { broker } = world
    await broker.createTopic('in')
    const seen: unknown[] = []
    await broker.subscribe(
      'in',
      async (batch: DeliveryBatch) => {
        const [first] = batch.deliveries
        seen.push([...batch].map((each) => [each.value, each.attempt]))
        if (batch.length > 1) await broker.transaction((tx) => tx.ack(first as Delivery))
        if (batch.length > 1) throw new Error('the others failed')
      },
      { id: 'r', batch: 2, retry: { delayMs: 1 } },
    )
    await broker.publishAll(
      'in',
      upTo(2).map((value) => ({ value })),
    )
    await world.settle()
    await world.clock.advance(10)
    expect(seen).toEqual([
      [
        [0, 1],
        [1, 1],
      ],
      [[1, 2]],
    ])
  })

  it.each([
    ['was acked', (d: Delivery) => void d.ack()],
    ['was nacked', (d: Delivery) => void d.nack({ delayMs: 10 })],
    ['was rejected', (d: Delivery) => void d.reject()],
    ['expired', (_: Delivery, world: World) => world.clock.advance(1_000)],
    ['was fenced by a replay', (_: Delivery, { broker }: World) => broker.resetOffset('in', 'r', 'earliest')],
    ['ended with its subscription', (_: Delivery, { broker }: World) => broker.unsubscribe('in', 'r')],
    ['went with its topic', (_: Delivery, { broker }: World) => broker.deleteTopic('in')],
  ])('of a delivery that %s meanwhile make all of it FENCED, and nothing is appended', async (_, lose) => {
    const world = new World()
    const { broker } = world
    await broker.createTopic('in')
    await broker.createTopic('out')
    const hands = new Hands()
    await broker.subscribe('in', hands.take, {
      id: 'r',
      ack: 'manual',
      ackTimeoutMs: 1_000,
      order: 'none',
      concurrency: 2,
    })
    for (const value of upTo(2)) await broker.publish('in', value)
    await world.settle()
    const [lost, owned] = hands.deliveries as [Delivery, Delivery]
    const transaction = broker.transaction(async (tx) => {
      tx.publish('out', 'never')
      tx.ack(owned)
      tx.ack(lost)
      await lose(lost, world)
    })
    await expect(transaction).rejects.toMatchObject({ code: 'FENCED', retriable: false })
    expect(await values(world, 'out')).toEqual([])
    if (lost.signal.aborted === false) expect(owned.ack()).toBe(true)
  })

  it('of an at-most-once delivery are FENCED: it was committed before', async () => {
    const world = new World()
    await world.broker.createTopic('in')
    const codes: string[] = []
    await world.broker.subscribe(
      'in',
      async (d) => {
        codes.push(await codeOf(world.broker.transaction((tx) => tx.ack(d))))
      },
      { id: 'r', guarantee: 'at-most-once' },
    )
    await world.broker.publish('in', 1)
    await world.settle()
    expect(codes).toEqual(['FENCED'])
  })

  it('of a delivery of another broker are refused', async () => {
    const [one, other] = [new World(), new World()]
    await other.broker.createTopic('in')
    const hands = new Hands()
    await other.broker.subscribe('in', hands.take, OPEN)
    await other.broker.publish('in', 1)
    await other.settle()
    expect(await codeOf(one.broker.transaction((tx) => tx.ack(hands.last)))).toBe('INVALID_ARGUMENT')
  })
})

describe('a transaction without room', () => {
  it('waits until all of its partitions have room, and appends nothing before', async () => {
    const { world, broker, settle, ends } = await bothFull()
    const transaction = watch(broker.transaction(toBoth('new')))
    await settle('a')
    expect([transaction.state, ends()]).toEqual(['waiting', [1, 1]])
    await settle('b')
    expect([transaction.state, ends()]).toEqual(['resolved', [2, 2]])
    expect(await values(world, 'a')).toEqual(['new'])
  })

  it('does not deadlock with another one over the same partitions, whatever their order', async () => {
    const { world, broker, settle, ends } = await bothFull()
    const one = watch(broker.transaction(toBoth('one')))
    const two = watch(
      broker.transaction((tx) => {
        tx.publish('b', 'two')
        tx.publish('a', 'two')
      }),
    )
    await settle('b')
    await settle('a')
    expect([one.state, two.state, ends()]).toEqual(['resolved', 'waiting', [2, 2]])
    await settle('a')
    await settle('b')
    expect([two.state, ends()]).toEqual(['resolved', [3, 3]])
    expect([await values(world, 'a'), await values(world, 'b')]).toEqual([['two'], ['two']])
  })

  it('keeps its place in every line: who comes later to one of them waits behind it', async () => {
    const { world, broker, settle, ends } = await bothFull()
    const transaction = watch(broker.transaction(toBoth('tx')))
    await world.settle()
    const later = watch(broker.publish('a', 'later'))
    await settle('a')
    expect([later.state, ends()]).toEqual(['waiting', [1, 1]])
    expect(broker.tryPublish('a', 'no')).toBeUndefined()
    await settle('b')
    expect([transaction.state, later.state]).toEqual(['resolved', 'waiting'])
    await settle('a')
    expect(later.value).toEqual({ partition: 0, offset: 2 })
  })

  it('waits behind those who came before it', async () => {
    const { broker, settle, ends, world } = await bothFull(2)
    const batch = watch(broker.publishAll('a', [{ value: 1 }, { value: 2 }]))
    const transaction = watch(broker.transaction((tx) => tx.publish('a', 'tx')))
    await world.settle()
    await settle('a')
    expect([batch.state, transaction.state]).toEqual(['waiting', 'waiting'])
    await settle('a')
    expect([batch.state, transaction.state]).toEqual(['resolved', 'waiting'])
    await settle('a')
    expect([transaction.state, ends()]).toEqual(['resolved', [5, 2]])
  })

  it('gives up with TIMEOUT after timeoutMs, 30 s by default, and leaves all lines', async () => {
    const { world, broker, settle, ends } = await bothFull()
    const usual = codeOf(broker.transaction(toBoth(1)))
    const short = codeOf(broker.transaction(toBoth(2), { timeoutMs: 100 }))
    await world.clock.advance(100)
    expect(await short).toBe('TIMEOUT')
    await world.clock.advance(29_900)
    expect(await usual).toBe('TIMEOUT')
    expect(ends()).toEqual([1, 1])
    expect(['a', 'b'].map((name) => broker.describe(name).partitions[0]?.waiting)).toEqual([0, 0])
    await settle('a')
    expect(await broker.publish('a', 'room')).toEqual({ partition: 0, offset: 1 })
  })

  it('can be aborted, before its function runs, while it runs and while it waits', async () => {
    const { world, broker, ends } = await bothFull()
    let ran = false
    const body = (): void => {
      ran = true
    }
    expect(await codeOf(broker.transaction(body, { signal: AbortSignal.abort() }))).toBe('ABORTED')
    expect(ran).toBe(false)
    const during = new AbortController()
    const early = broker.transaction(
      (tx) => {
        tx.publish('a', 1)
        during.abort()
      },
      { signal: during.signal },
    )
    expect(await codeOf(early)).toBe('ABORTED')
    const waiting = new AbortController()
    const late = broker.transaction(toBoth(1), { signal: waiting.signal })
    const outcome = codeOf(late)
    await world.settle()
    waiting.abort('enough')
    await expect(late).rejects.toMatchObject({ code: 'ABORTED', cause: 'enough' })
    expect([await outcome, ends()]).toEqual(['ABORTED', [1, 1]])
  })

  it('loses its deliveries when they expire while it waits: FENCED, nothing appended', async () => {
    const { world, broker, settle, ends } = await bothFull()
    await broker.createTopic('in')
    const hands = new Hands()
    await broker.subscribe('in', hands.take, { id: 'r', ack: 'manual', ackTimeoutMs: 500 })
    await broker.publish('in', 1)
    await world.settle()
    const transaction = codeOf(
      broker.transaction((tx) => {
        toBoth(1)(tx)
        tx.ack(hands.last)
      }),
    )
    await world.clock.advance(500)
    await settle('a')
    await settle('b')
    expect([await transaction, ends()]).toEqual(['FENCED', [1, 1]])
    expect(hands.deliveries).toHaveLength(2)
  })

  it('is not held up by the reader whose delivery it acks, and goes before the line that waits for that', async () => {
    const world = new World()
    const { broker } = world
    const topic = await broker.createTopic('loop', { retention: { records: 2 } })
    const hands = new Hands()
    await topic.subscribe(hands.take, { ...OPEN, id: 'r' })
    for (const value of upTo(2)) await topic.publish(value)
    const outside = watch(topic.publish('outside'))
    await world.settle()
    const transaction = watch(
      broker.transaction((tx) => {
        tx.publish('loop', 'next')
        tx.ack(hands.last)
      }),
    )
    await world.settle()
    expect([transaction.state, outside.state]).toEqual(['resolved', 'waiting'])
    hands.last.ack()
    await world.settle()
    expect(outside.state).toBe('resolved')
    for (let i = 0; i < 3; i++) {
      hands.last.ack()
      await world.settle()
    }
    expect(hands.values).toEqual([0, 1, 'next', 'outside'])
  })

  it('is TOO_LARGE where it could never fit, and TOO_MANY_WAITING beyond what may wait', async () => {
    const { world, broker } = await bothFull()
    const two = (tx: Transaction): void => {
      for (const value of upTo(2)) tx.publish('a', value)
    }
    expect(await codeOf(broker.transaction(two))).toBe('TOO_LARGE')
    const narrow = await broker.createTopic('narrow', {
      retention: { records: 1 },
      maxWaiting: { records: 1 },
    })
    await narrow.subscribe(() => {}, { id: 'slow', credit: 'manual' })
    await narrow.publish(0)
    const both = (tx: Transaction): void => {
      tx.publish('a', 1)
      tx.publish('narrow', 1)
    }
    const first = watch(broker.transaction(both))
    await world.settle()
    expect(first.state).toBe('waiting')
    expect(await codeOf(broker.transaction(both))).toBe('TOO_MANY_WAITING')
    expect(broker.describe('a').partitions[0]?.waiting).toBe(1)
    await broker.close({ drainMs: 0 })
    expect(first.state).toBe('rejected')
  })
})

describe('many transactions at once', () => {
  it('are each seen whole or not at all, in one order everywhere', async () => {
    const world = new World()
    const { broker } = world
    const log: Record<string, number[]> = { a: [], b: [], c: [] }
    for (const name of Object.keys(log)) {
      const topic = await broker.createTopic<number>(name, { retention: { records: 3 } })
      await topic.subscribe((d) => void log[name]?.push(d.value), { id: 'r' })
    }
    const pairs = [
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'a'],
    ] as const
    await Promise.all(
      upTo(60).map((i) =>
        broker.transaction(async (tx) => {
          const [first, second] = pairs[i % 3] as readonly [string, string]
          tx.publish(first, i)
          if (i % 2 === 0) await Promise.resolve()
          tx.publish(second, i)
        }),
      ),
    )
    await broker.idle()
    const all = Object.values(log).flat()
    for (const i of upTo(60)) expect(all.filter((each) => each === i)).toHaveLength(2)
    for (const [x, y] of pairs) {
      const shared = (name: string, other: string) => log[name]?.filter((i) => log[other]?.includes(i))
      expect(shared(x, y)).toEqual(shared(y, x))
    }
  })
})
