/**
 * What a Kafka client is tried with. The other side of each trial is in this process: what a client produced is read
 * through the broker's own verbs, and what it is to consume was published by them, so a fault that client and server
 * share does not hide.
 */
import { expect } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import type { Driver } from './driver.ts'

/** One feature of one client, against a server of its own. */
export interface Trial {
  readonly broker: Broker
  /** Starts the client. It is ended with the trial. */
  run(verb: string, args: object): Driver
}

export interface Feature {
  readonly name: string
  readonly group: 'produce' | 'consume' | 'groups' | 'transactions' | 'admin'
  readonly run: (trial: Trial) => Promise<void>
}

const TOPIC = 'orders'
const COUNT = 100
const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

function produces(args: object): Feature['run'] {
  return async ({ broker, run }) => {
    await broker.createTopic(TOPIC, { partitions: 3 })
    await run('produce', { topic: TOPIC, count: COUNT, prefix: 'v', ...args }).done()
    await expectProduced(broker)
  }
}

/** Every record once, those of a key in one partition and in order. */
async function expectProduced(broker: Broker): Promise<void> {
  await arrived(broker, COUNT)
  const seen: number[] = []
  const partitionOf = new Map<string, number>()
  for (const { partition } of broker.describe(TOPIC).partitions) {
    const last = new Map<string, number>()
    for (const { key, value } of await broker.read(TOPIC, partition)) {
      const [name, i] = [text(key), Number(text(value).slice(1))]
      expect(partitionOf.get(name) ?? partition).toBe(partition)
      expect(last.get(name) ?? -1).toBeLessThan(i)
      partitionOf.set(name, partition)
      last.set(name, i)
      seen.push(i)
    }
  }
  expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: COUNT }, (_, i) => i))
}

/** What nobody acknowledges arrives a little later. */
async function arrived(broker: Broker, count: number): Promise<void> {
  const ended = (): number => broker.describe(TOPIC).partitions.reduce((sum, { high }) => sum + high, 0)
  for (let tries = 0; ended() < count && tries < 500; tries++) await pause(10)
  expect(ended()).toBe(count)
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs)
  })
}

function text(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)
}

/** Publishes records `from` to `to`, by key. */
async function publish(broker: Broker, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await broker.publish(TOPIC, `v${i}`, { key: `k${i % 10}` })
}

function valuesOf(drivers: readonly Driver[]): string[] {
  return drivers.flatMap(({ records }) => records.map(({ value }) => value ?? ''))
}

function all(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => `v${from + i}`)
}

function consumes(members: number): Feature['run'] {
  return async ({ broker, run }) => {
    await broker.createTopic(TOPIC, { partitions: 6 })
    await publish(broker, 0, COUNT)
    const drivers = Array.from({ length: members }, () => run('consume', { topic: TOPIC, group: 'shippers' }))
    await untilAllSeen(drivers, 0, COUNT)
    // Nobody sees what was before, and everything that comes is seen.
    await publish(broker, COUNT, 2 * COUNT)
    await untilAllSeen(drivers, 0, 2 * COUNT)
    const perPartition = new Map<number, number>()
    for (const { records } of drivers) {
      for (const { partition, offset } of records) {
        perPartition.set(partition, Math.max(perPartition.get(partition) ?? -1, offset))
      }
    }
    for (const { partition, high } of broker.describe(TOPIC).partitions) {
      if (high > 0) expect(perPartition.get(partition)).toBe(high - 1)
    }
  }
}

async function untilAllSeen(drivers: readonly Driver[], from: number, to: number): Promise<void> {
  const wanted = all(from, to)
  const [first] = drivers
  for (let tries = 0; ; tries++) {
    const seen = new Set(valuesOf(drivers))
    const missing = wanted.filter((value) => !seen.has(value))
    if (missing.length === 0) return
    if (tries === 600)
      throw new Error(`${missing.length} records were seen by nobody, among them ${missing[0]}`)
    await Promise.race([pause(100), first?.until(() => false, 'a record').catch(() => pause(100))])
  }
}

export const FEATURES: readonly Feature[] = [
  ...COMPRESSIONS.map(
    (compression): Feature => ({
      name: `produce, ${compression === 'none' ? 'uncompressed' : compression}`,
      group: 'produce',
      run: produces({ compression }),
    }),
  ),
  { name: 'produce, acks 0', group: 'produce', run: produces({ acks: 0 }) },
  { name: 'produce, acks 1', group: 'produce', run: produces({ acks: 1 }) },
  { name: 'produce, idempotent', group: 'produce', run: produces({ idempotent: true }) },
  {
    name: 'headers, both ways',
    group: 'produce',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await run('produce', { topic: TOPIC, count: 3, prefix: 'v', headers: true }).done()
      const records = await broker.read(TOPIC)
      expect(records.map(({ headers }) => text(headers.get('trace')))).toEqual(['0', '1', '2'])
      const reader = run('read', { topic: TOPIC, partition: 0, offset: 0, count: 3 })
      await reader.done()
      expect(reader.records.map(({ headers }) => headers?.trace)).toEqual(['0', '1', '2'])
    },
  },
  {
    name: 'topic made by producing',
    group: 'produce',
    async run({ broker, run }) {
      await run('produce', { topic: TOPIC, count: 10, prefix: 'v' }).done()
      await arrived(broker, 10)
    },
  },
  ...COMPRESSIONS.map(
    (compression): Feature => ({
      name: `consume, ${compression === 'none' ? 'uncompressed' : compression}`,
      group: 'consume',
      async run({ broker, run }) {
        await broker.createTopic(TOPIC)
        await run('produce', { topic: TOPIC, count: COUNT, prefix: 'v', compression }).done()
        await arrived(broker, COUNT)
        const reader = run('read', { topic: TOPIC, partition: 0, offset: 0, count: COUNT })
        await reader.done()
        expect(valuesOf([reader])).toEqual(all(0, COUNT))
        expect(reader.records.map(({ offset }) => offset)).toEqual([...Array(COUNT).keys()])
      },
    }),
  ),
  {
    name: 'consume what was published in process',
    group: 'consume',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await publish(broker, 0, COUNT)
      const reader = run('read', { topic: TOPIC, partition: 0, offset: 0, count: COUNT })
      await reader.done()
      expect(valuesOf([reader])).toEqual(all(0, COUNT))
      expect(reader.records[13]?.key).toBe('k3')
    },
  },
  {
    name: 'seek to an offset',
    group: 'consume',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await publish(broker, 0, COUNT)
      const reader = run('read', { topic: TOPIC, partition: 0, offset: 40, count: 20 })
      await reader.done()
      expect(valuesOf([reader])).toEqual(all(40, 60))
    },
  },
  {
    name: 'seek to a time',
    group: 'consume',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await publish(broker, 0, 50)
      await pause(20)
      const timestamp = Date.now()
      await pause(20)
      await publish(broker, 50, COUNT)
      const reader = run('read', { topic: TOPIC, partition: 0, timestamp, count: 10 })
      await reader.done()
      expect(valuesOf([reader])).toEqual(all(50, 60))
    },
  },
  ...[1, 3, 5].map(
    (members): Feature => ({
      name: members === 1 ? 'group of one' : `group of ${members}`,
      group: 'groups',
      run: consumes(members),
    }),
  ),
  {
    name: 'commit and resume',
    group: 'groups',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await publish(broker, 0, COUNT)
      const first = run('consume', { topic: TOPIC, group: 'shippers', count: COUNT })
      await first.done()
      await publish(broker, COUNT, COUNT + 20)
      const second = run('consume', { topic: TOPIC, group: 'shippers', count: 20 })
      await second.done()
      expect(valuesOf([second])).toEqual(all(COUNT, COUNT + 20))
    },
  },
  {
    name: 'a member joins',
    group: 'groups',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC, { partitions: 6 })
      const drivers = [run('consume', { topic: TOPIC, group: 'shippers' })]
      await publish(broker, 0, COUNT)
      await untilAllSeen(drivers, 0, COUNT)
      const second = run('consume', { topic: TOPIC, group: 'shippers' })
      drivers.push(second)
      for (let i = COUNT; second.records.length === 0 && i < 100 * COUNT; i += 20) {
        await publish(broker, i, i + 20)
        await pause(100)
      }
      expect(second.records.length).toBeGreaterThan(0)
    },
  },
  {
    name: 'a member is killed',
    group: 'groups',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC, { partitions: 6 })
      await publish(broker, 0, COUNT)
      const drivers = [1, 2, 3].map(() => run('consume', { topic: TOPIC, group: 'shippers' }))
      await untilAllSeen(drivers, 0, COUNT)
      await drivers[0]?.kill('SIGKILL')
      await publish(broker, COUNT, 2 * COUNT)
      await untilAllSeen(drivers.slice(1), COUNT, 2 * COUNT)
    },
  },
  {
    name: 'a member leaves',
    group: 'groups',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC, { partitions: 6 })
      await publish(broker, 0, COUNT)
      const drivers = [1, 2].map(() => run('consume', { topic: TOPIC, group: 'shippers' }))
      await untilAllSeen(drivers, 0, COUNT)
      await drivers[0]?.kill('SIGTERM')
      await publish(broker, COUNT, 2 * COUNT)
      await untilAllSeen(drivers.slice(1), COUNT, 2 * COUNT)
    },
  },
  {
    name: 'transactions, read committed',
    group: 'transactions',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      const produce = { topic: TOPIC, count: 10, transactionalId: 'till' }
      await run('transact', { ...produce, prefix: 'a', abort: false }).done()
      await run('transact', { ...produce, prefix: 'b', abort: true }).done()
      await run('transact', { ...produce, prefix: 'c', abort: false }).done()
      const reader = run('read', { topic: TOPIC, partition: 0, offset: 0, count: 20 })
      await reader.done()
      const wanted = ['a', 'c'].flatMap((prefix) => Array.from({ length: 10 }, (_, i) => `${prefix}${i}`))
      expect(valuesOf([reader])).toEqual(wanted)
      expect((await broker.read(TOPIC)).map(({ value }) => text(value))).toEqual(wanted)
    },
  },
  {
    name: 'offsets in a transaction',
    group: 'transactions',
    async run({ broker, run }) {
      await broker.createTopic(TOPIC)
      await broker.createTopic('input')
      for (let i = 0; i < 20; i++) await broker.publish('input', `v${i}`, { key: 'k' })
      const args = { topic: TOPIC, count: 5, prefix: 'a', transactionalId: 'till', abort: false }
      await run('transact', { ...args, group: 'tellers', input: 'input', offset: 12 }).done()
      const next = run('consume', { topic: 'input', group: 'tellers', count: 8 })
      await next.done()
      expect(valuesOf([next])).toEqual(all(12, 20))
    },
  },
  {
    name: 'topics, configs, offsets, groups',
    group: 'admin',
    async run({ run }) {
      const events = await run('admin', { topic: TOPIC }).done()
      const results = new Map(events.map(({ step, result }) => [step, result]))
      expect(results.get('list')).toContain(TOPIC)
      expect(results.get('partitions')).toBe(5)
      expect(results.get('describeConfig')).toBe('3600000')
      expect(results.get('alterConfig')).toBe('7200000')
      expect(results.get('offsets')).toBe(5)
      expect(results.get('deleteRecords')).toBe(true)
      expect(results.get('deleteTopic')).toBe(true)
    },
  },
]
