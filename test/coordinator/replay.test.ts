import { describe, expect, it } from 'vitest'
import { Broker } from '../../src/broker.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { ReaderRef, StartPosition } from '../../src/model/options.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedLog, withLogs } from '../support/engines.ts'
import { codeOf, Hands, upTo, World, watch } from '../support/world.ts'

const OPEN = { ack: 'manual', ackTimeoutMs: 3_600_000 } as const

/** A topic of `records` values 0, 1, …, an hour between them, that "r" has read to the end. */
async function readTo(records: number, partitions = 1) {
  const world = new World()
  const { broker } = world
  const topic = await broker.createTopic('t', { partitions })
  const startMs = world.clock.now()
  for (const value of upTo(records)) {
    for (const partition of upTo(partitions)) await topic.publish(value, { partition })
    await world.clock.advance(3_600_000)
  }
  const seen: string[] = []
  const reader = await topic.subscribe((d) => void seen.push(`${d.partition}/${d.offset}`), {
    id: 'r',
    from: 'earliest',
  })
  await broker.idle()
  seen.length = 0
  const reset = async (to: StartPosition, ref: ReaderRef = 'r'): Promise<void> => {
    await broker.resetOffset('t', ref, to)
    await broker.idle()
  }
  return { world, broker, topic, reader, seen, reset, startMs }
}

describe('resetOffset', () => {
  it('to "earliest" replays all that is kept', async () => {
    const { broker, seen, reset, reader } = await readTo(5)
    await broker.alterTopic('t', { retention: { records: 3 } })
    await reset('earliest')
    expect(seen).toEqual(['0/2', '0/3', '0/4'])
    expect(reader.describe().counters.dropped).toBe(0)
  })

  it('to "latest" skips what is left', async () => {
    const { broker, topic } = await readTo(2)
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { id: 'slow', credit: 'manual', from: 'earliest' })
    await broker.resetOffset('t', 'slow', 'latest')
    slow.request(9)
    await topic.publish('new')
    await broker.idle()
    expect(hands.values).toEqual(['new'])
    expect(slow.describe().counters.dropped).toBe(0)
  })

  it('to a date goes to the first record at or after it, else to the end; it never fails', async () => {
    const { broker, topic, seen, reset, startMs } = await readTo(3)
    const hourMs = 3_600_000
    await reset(new Date(startMs + hourMs))
    expect(seen).toEqual(['0/1', '0/2'])
    seen.length = 0
    await reset(new Date(startMs + hourMs + 1))
    expect(seen).toEqual(['0/2'])
    seen.length = 0
    await reset(new Date(startMs + 100 * hourMs))
    expect(seen).toEqual([])
    await reset(new Date(0))
    expect(seen).toEqual(['0/0', '0/1', '0/2'])
    const empty = await broker.createTopic('empty')
    await empty.subscribe(() => {}, { id: 'r' })
    await broker.resetOffset('empty', 'r', new Date(0))
    await topic.publish('after')
    await broker.idle()
    expect(seen.at(-1)).toBe('0/3')
  })

  it('to an offset goes there, where there is one partition; the end is one, too', async () => {
    const { seen, reset } = await readTo(5)
    await reset(3)
    expect(seen).toEqual(['0/3', '0/4'])
    seen.length = 0
    await reset(5)
    expect(seen).toEqual([])
  })

  it('to offsets by partition moves those and no others', async () => {
    const { seen, reset, reader } = await readTo(4, 3)
    await reset({ 0: 3, 2: 2 })
    expect(seen.sort()).toEqual(['0/3', '2/2', '2/3'])
    expect(reader.describe().cursors.map(({ committed }) => committed)).toEqual([4, 4, 4])
  })

  it.each<[string, StartPosition, string]>([
    ['below the start', 1, 'OFFSET_OUT_OF_RANGE'],
    ['beyond the end', 6, 'OFFSET_OUT_OF_RANGE'],
    ['below 0', -1, 'OFFSET_OUT_OF_RANGE'],
    ['that would wrap around', -4_294_967_294, 'OFFSET_OUT_OF_RANGE'],
    ['that is no whole number', 2.5, 'INVALID_ARGUMENT'],
    ['that is no number', Number.NaN, 'INVALID_ARGUMENT'],
    ['that is no date', new Date(Number.NaN), 'INVALID_ARGUMENT'],
    ['that is nothing known', 'newest' as 'latest', 'INVALID_ARGUMENT'],
    ['of a partition that does not exist', { 0: 3, 1: 0 }, 'INVALID_ARGUMENT'],
    ['of what is no partition', { x: 3 } as StartPosition, 'INVALID_ARGUMENT'],
    ['of no partition at all', {}, 'INVALID_ARGUMENT'],
    ['of a map', new Map([[0, 3]]) as unknown as StartPosition, 'INVALID_ARGUMENT'],
    ['null', null as unknown as StartPosition, 'INVALID_ARGUMENT'],
    ['undefined', undefined as unknown as StartPosition, 'INVALID_ARGUMENT'],
  ])('to an offset %s changes nothing', async (_, to, code) => {
    const { broker, topic, reader } = await readTo(5)
    await broker.alterTopic('t', { retention: { records: 3 } })
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { ...OPEN, id: 'slow', from: 'earliest' })
    await broker.idle
    const before = [reader, slow].map((each) => each.describe().cursors)
    expect(await codeOf(broker.resetOffset('t', 'slow', to))).toBe(code)
    expect([reader, slow].map((each) => each.describe().cursors)).toEqual(before)
    expect(hands.deliveries.every((delivery) => delivery.ack())).toBe(true)
  })

  it('moves all partitions or none', async () => {
    const { broker, seen, reader } = await readTo(3, 2)
    expect(await codeOf(broker.resetOffset('t', 'r', { 0: 0, 1: 9 }))).toBe('OFFSET_OUT_OF_RANGE')
    expect(await codeOf(broker.resetOffset('t', 'r', 0))).toBe('INVALID_ARGUMENT')
    await broker.idle()
    expect(seen).toEqual([])
    expect(reader.describe().cursors.map(({ committed }) => committed)).toEqual([3, 3])
  })

  it('moves nobody else', async () => {
    const { broker, topic, seen, reset } = await readTo(3)
    const others: string[] = []
    await topic.subscribe((d) => void others.push(`a ${d.offset}`), { id: 'a', from: 'earliest' })
    await topic.subscribe((d) => void others.push(`g ${d.offset}`), { group: 'g', from: 'earliest' })
    await topic.subscribe((d) => void others.push(`- ${d.offset}`))
    await broker.idle()
    const before = others.length
    await reset(0)
    expect(seen).toEqual(['0/0', '0/1', '0/2'])
    expect(others).toHaveLength(before)
  })
})

describe('what is in flight at a replay', () => {
  it('is fenced: its signal aborts, settling it answers false, and its commit does not move the new place', async () => {
    const { broker, topic, world } = await readTo(4)
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { ...OPEN, id: 'slow', from: 2 })
    await world.settle()
    const old = hands.last
    const { signal } = old
    expect(old.offset).toBe(2)
    await broker.resetOffset('t', 'slow', 0)
    expect(signal.aborted).toBe(true)
    expect(old.signal.aborted).toBe(true)
    expect([old.ack(), old.nack(), old.reject(), old.extend(1)]).toEqual([false, false, false, false])
    await world.settle()
    expect(hands.last.offset).toBe(0)
    expect(slow.describe().cursors[0]).toMatchObject({ committed: 0, next: 1, inFlight: 1 })
    expect(slow.describe().counters).toMatchObject({ acked: 0, nacked: 0 })
  })

  it('is fenced for a handler that finishes only then, whose place is free again afterwards', async () => {
    const { broker, topic, world } = await readTo(3)
    const release: (() => void)[] = []
    const offsets: number[] = []
    const slow = await topic.subscribe(
      (d) => {
        offsets.push(d.offset)
        return new Promise<void>((resolve) => release.push(resolve))
      },
      { id: 'slow', from: 1 },
    )
    await world.settle()
    await broker.resetOffset('t', 'slow', 0)
    await world.settle()
    expect(offsets).toEqual([1])
    release[0]?.()
    await world.settle()
    expect(offsets).toEqual([1, 0])
    expect(slow.describe().counters.acked).toBe(0)
    for (const i of [1, 2, 3]) {
      release[i]?.()
      await world.settle()
    }
    expect(offsets).toEqual([1, 0, 1, 2])
    expect(slow.describe().counters).toMatchObject({ acked: 3, delivered: 4 })
  })

  it('counts no attempt: retries are cancelled, and attempts start at 1', async () => {
    const { broker, topic, world } = await readTo(2)
    const hands = new Hands()
    const options = { ...OPEN, id: 'slow', from: 0, retry: { attempts: 3, delayMs: 1_000 } } as const
    const slow = await topic.subscribe(hands.take, options)
    await world.settle()
    hands.last.nack()
    await world.clock.advance(1_000)
    expect([hands.last.offset, hands.last.attempt]).toEqual([0, 2])
    hands.last.nack()
    await world.settle()
    expect(slow.describe().cursors[0]?.retrying).toBe(1)
    await broker.resetOffset('t', 'slow', 0)
    await world.settle()
    expect([hands.last.offset, hands.last.attempt, hands.last.redelivered]).toEqual([0, 1, false])
    expect(slow.describe().cursors[0]).toMatchObject({ retrying: 0, inFlight: 1 })
    hands.last.ack()
    await world.settle()
    hands.last.ack()
    await world.clock.advance(60_000)
    await broker.idle()
    expect(hands.deliveries.map(({ offset }) => offset)).toEqual([0, 0, 0, 1])
  })

  it('is fenced record by record in a batch', async () => {
    const { broker, topic, world } = await readTo(4)
    const batches: number[][] = []
    const acked: number[] = []
    let release = (): void => {}
    const slow = await topic.subscribe(
      async (batch) => {
        batches.push([...batch].map(({ offset }) => offset))
        if (batches.length > 1) return
        await new Promise<void>((resolve) => {
          release = resolve
        })
        acked.push(batch.ack())
      },
      { id: 'slow', from: 'earliest', batch: 3 },
    )
    await world.settle()
    await broker.resetOffset('t', 'slow', 1)
    release()
    await broker.idle()
    expect(batches).toEqual([
      [0, 1, 2],
      [1, 2, 3],
    ])
    expect(acked).toEqual([0])
    expect(slow.describe().counters.acked).toBe(3)
  })

  it('of a record on its way to the dead letters is left to go there', async () => {
    const { broker, topic, world } = await readTo(1)
    const attempts: number[] = []
    let fail = true
    const handler = (d: { attempt: number }): void => {
      attempts.push(d.attempt)
      if (fail) throw new Error('bad')
    }
    await topic.subscribe(handler, { id: 'slow', from: 0, retry: { attempts: 1 } })
    const moved = broker.resetOffset('t', 'slow', 0)
    fail = false
    await moved
    await world.settle()
    await broker.idle()
    expect(attempts.at(-1)).toBe(1)
    expect(topic.describe().readers.find(({ name }) => name === 'slow')?.cursors[0]).toMatchObject({ lag: 0 })
  })

  it('moves what the log holds: a gating reader that goes back holds from there on', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 3 } })
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { id: 'slow', credit: 'manual' })
    slow.request(3)
    for (const value of upTo(3)) await topic.publish(value)
    await world.broker.idle()
    await world.broker.resetOffset('t', 'slow', 0)
    const waiting = watch(topic.publish(3))
    await world.settle()
    expect(waiting.state).toBe('waiting')
    await world.broker.resetOffset('t', 'slow', 'latest')
    await world.settle()
    expect(waiting.state).toBe('resolved')
  })
})

describe('who is replayed', () => {
  it('is an id, a group, or the group of a member', async () => {
    const { broker, topic, world } = await readTo(2)
    const seen: string[] = []
    await topic.subscribe((d) => void seen.push(`id ${d.offset}`), { id: 'one', from: 'earliest' })
    const group = { group: 'team', from: 'earliest' } as const
    await topic.subscribe((d) => void seen.push(`team ${d.offset}`), { ...group, id: 'member-a' })
    await topic.subscribe((d) => void seen.push(`team ${d.offset}`), { ...group, id: 'member-b' })
    await broker.idle()
    for (const [ref, expected] of [
      ['one', ['id 0', 'id 1']],
      [{ id: 'one' }, ['id 0', 'id 1']],
      ['team', ['team 0', 'team 1']],
      [{ group: 'team' }, ['team 0', 'team 1']],
      ['member-b', ['team 0', 'team 1']],
      [{ id: 'member-a' }, ['team 0', 'team 1']],
    ] as const) {
      seen.length = 0
      await broker.resetOffset('t', ref, 'earliest')
      await world.settle()
      expect(seen.sort()).toEqual(expected)
    }
  })

  it('may be away: it starts there when it comes back', async () => {
    const { broker, topic, reader, seen } = await readTo(4)
    await reader.close()
    await broker.resetOffset('t', 'r', 2)
    expect(topic.describe().readers[0]?.cursors[0]).toMatchObject({ committed: 2, lag: 2 })
    await topic.subscribe((d) => void seen.push(`${d.partition}/${d.offset}`), { id: 'r' })
    await broker.idle()
    expect(seen).toEqual(['0/2', '0/3'])
  })

  it('must be known: UNKNOWN_CONSUMER for a stranger, also one that reads another topic', async () => {
    const { broker } = await readTo(1)
    const other = await broker.createTopic('other')
    await other.subscribe(() => {}, { id: 'elsewhere' })
    await other.subscribe(() => {}, { group: 'g', id: 'm' })
    for (const ref of ['nobody', 'elsewhere', 'g', 'm', { id: 'nobody' }, { group: 'r' }, { id: 't' }]) {
      expect(await codeOf(broker.resetOffset('t', ref, 'earliest'))).toBe('UNKNOWN_CONSUMER')
    }
    expect(await codeOf(broker.resetOffset('nowhere', 'r', 'earliest'))).toBe('UNKNOWN_TOPIC')
    for (const ref of [null, 7, {}, { id: 1 }, undefined]) {
      const code = await codeOf(broker.resetOffset('t', ref as unknown as ReaderRef, 'earliest'))
      expect(code).toBe('INVALID_ARGUMENT')
    }
  })

  it('must be one: a name that several have is refused until it says which', async () => {
    const { broker, topic, seen } = await readTo(1)
    await topic.subscribe(() => {}, { group: 'r' })
    await topic.subscribe(() => {}, { group: 'x', id: 'twin' })
    await topic.subscribe(() => {}, { group: 'y', id: 'twin' })
    expect(await codeOf(broker.resetOffset('t', 'r', 0))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(broker.resetOffset('t', { id: 'twin' }, 0))).toBe('INVALID_ARGUMENT')
    await broker.resetOffset('t', { group: 'r' }, 0)
    await broker.idle()
    expect(seen).toEqual([])
    await broker.resetOffset('t', { id: 'r' }, 0)
    await broker.idle()
    expect(seen).toEqual(['0/0'])
  })

  it('may be reset by its own handler, which does not corrupt it', async () => {
    const { broker, topic, world } = await readTo(3)
    const offsets: number[] = []
    await topic.subscribe(
      async (d) => {
        offsets.push(d.offset)
        if (offsets.length === 3) await broker.resetOffset('t', 'loop', 1)
      },
      { id: 'loop', from: 'earliest' },
    )
    await world.settle()
    await broker.idle()
    expect(offsets).toEqual([0, 1, 2, 1, 2])
  })

  it('is still the one that was meant when a date takes time to look up', async () => {
    const clock = new ManualClock()
    const memory = memoryEngine({ clock })
    const lookups: (() => void)[] = []
    const engine = withLogs(memory, async (spec) => {
      const log = await memory.openLog(spec)
      return changedLog(log, {
        offsetAt: async (timestamp) => {
          await new Promise<void>((resolve) => lookups.push(resolve))
          return log.offsetAt(timestamp)
        },
      })
    })
    const broker = new Broker(engine, { clock })
    const topic = await broker.createTopic('t')
    await topic.publish(1)
    const seen: number[] = []
    await topic.subscribe((d) => void seen.push(d.offset), { id: 'r' })
    const moved = broker.resetOffset('t', 'r', new Date(0))
    const lost = codeOf(broker.resetOffset('t', 'r', new Date(0)))
    await clock.settle()
    lookups[0]?.()
    await moved
    await broker.idle()
    expect(seen).toEqual([0])
    await broker.unsubscribe('t', 'r')
    lookups[1]?.()
    expect(await lost).toBe('UNKNOWN_CONSUMER')
  })
})

describe('waitFor', () => {
  it('resolves when the record at a position is settled for the reader, not before', async () => {
    const { broker, topic, world } = await readTo(0)
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { ...OPEN, id: 'slow', order: 'none', concurrency: 3 })
    const positions = await topic.publishAll(upTo(3).map((value) => ({ value })))
    const waits = positions.map((position) => watch(slow.waitFor(position)))
    await world.settle()
    hands.deliveries[1]?.ack()
    await world.settle()
    expect(waits.map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting'])
    hands.deliveries[0]?.ack()
    await world.settle()
    expect(waits.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'waiting'])
    hands.deliveries[2]?.nack()
    await world.settle()
    expect(waits[2]?.state).toBe('waiting')
    await broker.resetOffset('t', 'slow', 'latest')
    await world.settle()
    expect(waits[2]?.state).toBe('resolved')
    await slow.waitFor(positions[0] as { partition: number; offset: number })
  })

  it('counts what is dropped and what went to the dead letters as settled', async () => {
    const world = new World()
    const topic = await world.broker.createTopic('t', { retention: { records: 2 } })
    const dropping = await topic.subscribe(() => {}, { id: 'd', overflow: 'drop-oldest', credit: 'manual' })
    const failing = await topic.subscribe(
      () => {
        throw new Error('bad')
      },
      { id: 'f', retry: { attempts: 1 } },
    )
    const first = await topic.publish(0)
    const dropped = watch(dropping.waitFor(first))
    await failing.waitFor(first)
    await topic.publish(1)
    await world.settle()
    expect(dropped.state).toBe('waiting')
    await topic.publish(2)
    await world.settle()
    expect(dropped.state).toBe('resolved')
    expect((await world.broker.read('dlq.t')).length).toBe(3)
  })

  it('can be aborted, before and while it waits, and leaves no listener behind', async () => {
    const { topic, world } = await readTo(0)
    const hands = new Hands()
    const slow = await topic.subscribe(hands.take, { ...OPEN, id: 'slow' })
    const position = await topic.publish(1)
    expect(await codeOf(slow.waitFor(position, { signal: AbortSignal.abort() }))).toBe('ABORTED')
    const abort = new AbortController()
    let listeners = 0
    const { signal } = abort
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)]
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }
    const served = slow.waitFor(position, { signal })
    await world.settle()
    hands.last.ack()
    await served
    expect(listeners).toBe(0)
    const next = codeOf(slow.waitFor({ partition: 0, offset: 7 }, { signal }))
    abort.abort()
    expect(await next).toBe('ABORTED')
  })

  it('needs the topic where the reader has several, and ends with what it waits on', async () => {
    const world = new World()
    const { broker } = world
    for (const name of ['a.x', 'a.y']) await broker.createTopic(name)
    const reader = await broker.subscribe('a.*', new Hands().take, { ...OPEN, id: 'r' })
    expect(await codeOf(reader.waitFor({ partition: 0, offset: 0 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(reader.waitFor({ topic: 'b', partition: 0, offset: 0 }))).toBe('INVALID_ARGUMENT')
    expect(await codeOf(reader.waitFor({ topic: 'a.x', partition: 1, offset: 0 }))).toBe('INVALID_ARGUMENT')
    const ends = codeOf(reader.waitFor({ topic: 'a.x', partition: 0, offset: 0 }))
    await broker.deleteTopic('a.x')
    expect(await ends).toBe('UNKNOWN_TOPIC')
  })
})
