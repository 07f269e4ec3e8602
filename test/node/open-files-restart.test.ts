/**
 * What a process leaves to the next one on a directory of the real disk: after a close, after the directory was copied
 * while its broker was at work, which is what a process that was killed leaves, and after a kill itself.
 */
import { spawnSync } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Broker, type OpenOptions, openBroker } from '../../src/index.ts'
import type { Delivery } from '../../src/model/delivery.ts'
import type { Logger } from '../../src/model/views.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { codeOf, Hands, upTo } from '../support/world.ts'
import { type Built, built } from '../torture/file/build.ts'

const nothing = (): void => {}
const QUIET: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
/** Of whoever looks whether something is stored. */
const PROBE = 'probe'

let root = ''
let copies = 0
const brokers: Broker[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'odradek-restart-'))
})

afterEach(async () => {
  await Promise.all(brokers.splice(0).map((broker) => broker.close({ drainMs: 0 })))
  await rm(root, { recursive: true })
})

async function open(directory = 'data', options: OpenOptions = {}): Promise<Broker> {
  const broker = await openBroker(`file:${join(root, directory)}`, {
    logger: QUIET,
    commitFlushMs: 0,
    ...options,
  })
  brokers.push(broker)
  return broker
}

/** What a kill would leave now, in a directory of its own. */
async function killed(directory = 'data'): Promise<string> {
  const copy = `copy-${copies++}`
  const filter = (source: string): boolean => !basename(source).startsWith('lock')
  await cp(join(root, directory), join(root, copy), { recursive: true, filter })
  return copy
}

/** Resolves when every settle so far is stored: commits go in order, and this one comes last. */
async function stored(broker: Broker): Promise<void> {
  await broker.createTopic(PROBE)
  const probe = await broker.subscribe(PROBE, nothing, { id: PROBE, from: 'latest' })
  await new Promise((resolve) => setTimeout(resolve, 20))
  await probe.close()
}

/** Resolves when so many records are in hand. */
async function has({ deliveries }: Hands, count: number): Promise<void> {
  while (deliveries.length < count) await new Promise((resolve) => setTimeout(resolve, 1))
}

function committed(broker: Broker, topic: string): number[] {
  return broker.describe(topic).readers.flatMap(({ cursors }) => cursors.map((cursor) => cursor.committed))
}

describe('what a reader has settled', () => {
  it('stays settled from process to process, is never more than there is, and grows', async () => {
    const first = await open()
    await first.createTopic('t')
    let before = 0
    let broker = first
    let directory = 'data'
    for (const round of upTo(6)) {
      for (const i of upTo(5)) await broker.publish('t', round * 5 + i)
      const hands = new Hands()
      await broker.subscribe('t', hands.take, {
        id: 'reader',
        from: 'earliest',
        ack: 'manual',
        concurrency: 10,
        order: 'none',
      })
      await has(hands, 5)
      expect(hands.values).toEqual(upTo(5).map((i) => before + i))
      for (const delivery of hands.deliveries.slice(0, 5)) delivery.ack()
      await stored(broker)
      const [now] = committed(broker, 't')
      expect(now).toBe(before + 5)
      before += 5
      if (round % 2 === 0) {
        directory = await killed(directory)
      } else await broker.close()
      broker = await open(directory)
      expect(broker.describe('t').partitions[0]?.end).toBe(before)
    }
  })

  it('stays settled beyond what is not, and what is not comes again with another attempt', async () => {
    const broker = await open()
    const topic = await broker.createTopic('t')
    for (const i of upTo(6)) await topic.publish(i)
    const options = { group: 'g', from: 'earliest', ack: 'manual', concurrency: 10, order: 'none' } as const
    const hands = new Hands()
    await topic.subscribe(hands.take, options)
    await has(hands, 6)
    for (const i of [1, 3, 4]) hands.deliveries[i]?.ack()
    await stored(broker)
    const again = new Hands()
    const next = await open(await killed())
    await next.subscribe('t', again.take, options)
    await has(again, 3)
    expect(again.deliveries.map(({ value, attempt, redelivered }) => [value, attempt, redelivered])).toEqual([
      [0, 2, true],
      [2, 2, true],
      [5, 2, true],
    ])
  })

  it('is forgotten when its reader is, and moved when it is replayed', async () => {
    const broker = await open()
    const topic = await broker.createTopic('t')
    for (const i of upTo(4)) await topic.publish(i)
    for (const id of ['gone', 'moved', 'kept']) {
      const reader = await topic.subscribe(nothing, { id, from: 'earliest' })
      await reader.drained()
      await reader.close()
    }
    await broker.unsubscribe('t', 'gone')
    await broker.resetOffset('t', 'moved', 1)
    const next = await open(await killed())
    const seen = new Map<string, unknown[]>()
    for (const id of ['gone', 'moved', 'kept']) {
      const values: unknown[] = []
      seen.set(id, values)
      const take = ({ value }: Delivery): number => values.push(value)
      await (await next.subscribe('t', take, { id, from: 'earliest' })).drained()
    }
    expect([...seen]).toEqual([
      ['gone', [0, 1, 2, 3]],
      ['moved', [1, 2, 3]],
      ['kept', []],
    ])
  })

  it('is a group’s whatever its members were, and a group may come back as another kind', async () => {
    const broker = await open()
    const topic = await broker.createTopic('t', { partitions: 2 })
    for (const i of upTo(6)) await topic.publish(i, { partition: i % 2 })
    const first = await topic.subscribe(nothing, {
      group: 'g',
      id: 'a',
      assignment: 'range',
      from: 'earliest',
    })
    await first.drained()
    await broker.close()
    const next = await open()
    const values: unknown[] = []
    const take = ({ value }: Delivery): number => values.push(value)
    const second = await next.subscribe('t', take, { group: 'g', id: 'b', from: 'earliest', concurrency: 4 })
    await next.publish('t', 'new', { partition: 1 })
    await second.drained()
    expect(values).toEqual(['new'])
    expect(next.describeGroup('g')).toMatchObject({ kind: 'share', name: 'g' })
  })
})

describe('publish ids', () => {
  it('are known to the next process, for as long as their window says', async () => {
    const clock = new ManualClock()
    const broker = await open('data', { clock })
    const topic = await broker.createTopic('t', { dedupe: { windowMs: 60_000 } })
    const position = await topic.publish('a', { id: 'x' })
    const copy = await killed()
    const later = new ManualClock({ startMs: clock.now() + 50_000 })
    const next = await open(copy, { clock: later })
    expect(await next.publish('t', 'a', { id: 'x' })).toEqual({ ...position, duplicate: true })
    await later.advance(20_000)
    expect(await next.publish('t', 'a', { id: 'x' })).toEqual({ partition: 0, offset: 1 })
  })
})

describe('transactions', () => {
  it('that were committed are there as a whole, acks too; others are not there at all', async () => {
    const broker = await open()
    for (const name of ['in', 'out', 'log']) await broker.createTopic(name)
    for (const i of upTo(3)) await broker.publish('in', i)
    const options = { group: 'g', from: 'earliest', ack: 'manual', order: 'partition' } as const
    let third: Promise<unknown> | undefined
    let handled = 0
    const stop = new Promise<void>((resolve) => {
      void broker.subscribe(
        'in',
        async (delivery: Delivery) => {
          const transaction = broker.transaction(async (tx) => {
            tx.publish('out', `out ${delivery.value}`)
            tx.publish('log', `log ${delivery.value}`)
            tx.ack(delivery)
            // The third one is under way when the process ends.
            if (++handled === 3) await new Promise(nothing)
          })
          if (handled === 3) {
            third = transaction
            resolve()
          }
          await transaction
        },
        options,
      )
    })
    await stop
    expect(third).toBeDefined()
    const next = await open(await killed())
    expect((await next.read('out')).map(({ value }) => value)).toEqual(['out 0', 'out 1'])
    expect((await next.read('log')).map(({ value }) => value)).toEqual(['log 0', 'log 1'])
    const hands = new Hands()
    await next.subscribe('in', hands.take, options)
    await has(hands, 1)
    expect(hands.deliveries.map(({ value, attempt }) => [value, attempt])).toEqual([[2, 2]])
  })
})

describe('a topic', () => {
  it('that was deleted stays so, and another one of its name has nothing of it', async () => {
    const broker = await open()
    const topic = await broker.createTopic('t')
    await topic.publish('old', { id: 'x' })
    await (await topic.subscribe(nothing, { id: 'reader', from: 'earliest' })).drained()
    await broker.deleteTopic('t')
    const copy = await killed()
    const next = await open(copy)
    expect(next.listTopics()).toEqual([])
    expect(await codeOf(next.publish('t', 'new'))).toBe('UNKNOWN_TOPIC')
    const again = await next.createTopic('t', { dedupe: true })
    expect(again.id).not.toBe(topic.id)
    expect(await again.publish('new', { id: 'x' })).toEqual({ partition: 0, offset: 0 })
    const values: unknown[] = []
    const reader = await again.subscribe(({ value }) => values.push(value), {
      id: 'reader',
      from: 'earliest',
    })
    await reader.drained()
    expect(values).toEqual(['new'])
    const last = await open(await killed(copy))
    expect((await last.read('t')).map(({ value }) => value)).toEqual(['new'])
  })

  it('behaves as it was made, before anybody makes it again', async () => {
    const broker = await open()
    await broker.createTopic('t', { partitions: 2, retention: { records: 5 }, dedupe: true })
    await broker.alterTopic('t', { partitions: 3 })
    for (const i of upTo(12)) await broker.publish('t', i, { partition: 0, id: `id-${i}` })
    const next = await open(await killed())
    expect(next.describe('t').partitions.map(({ start, end }) => [start, end])).toEqual([
      [7, 12],
      [0, 0],
      [0, 0],
    ])
    expect(await next.publish('t', 12, { partition: 0 })).toEqual({ partition: 0, offset: 12 })
    expect(next.describe('t').partitions[0]?.start).toBe(8)
    expect(await next.publish('t', 11, { id: 'id-11' })).toMatchObject({ offset: 11, duplicate: true })
  })
})

describe('a record that kills the process', () => {
  let script: Built

  beforeAll(async () => {
    script = await built(fileURLToPath(new URL('poisoned.ts', import.meta.url)))
  })

  afterAll(() => script.remove())

  function run(): { readonly signal: string | null; readonly lines: string[] } {
    const { signal, stdout, stderr } = spawnSync(process.execPath, [script.path, join(root, 'data')], {
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    return { signal, lines: stdout.trimEnd().split('\n') }
  }

  it('is in the dead letters after its attempts, and its neighbours are delivered', async () => {
    const broker = await open()
    const topic = await broker.createTopic('jobs')
    for (const value of ['before', 'kill', 'after']) await topic.publish(value)
    await broker.close()
    const runs = upTo(4).map(run)
    expect(runs.map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL', 'SIGKILL', null])
    const kills = runs.flatMap(({ lines }) => lines.filter((line) => line.startsWith('kill')))
    expect(kills).toEqual(['kill 1', 'kill 2', 'kill 3'])
    // A mark stands for a block of records: it may have been in somebody's hands at the first of those deaths.
    expect(runs[3]?.lines).toEqual(['after 2'])
    const next = await open()
    const letters = await next.read('dlq.jobs')
    expect(letters.map(({ value }) => value)).toEqual(['kill'])
    expect(letters[0]?.headers.get('__dlq.errors.delivery.count')).toBe('3')
    expect(letters[0]?.headers.get('__dlq.errors.group')).toBe('workers')
  })
})
