/**
 * What a Kafka client is tried with. The other side of each trial is in this process: what a client produced is read
 * through the broker's own verbs, and what it is to consume was published by them, so a fault that client and server
 * share does not hide.
 */
import { expect } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import type { Driver } from './driver.ts'
import { LASTING } from './features-lasting.ts'
import type { Trial, TrialOptions } from './trial.ts'
import { all, ended, publish, TOPIC, text, untilAllSeen, untilProduced, valuesOf } from './values.ts'

export interface Feature {
  readonly name: string
  readonly group: 'produce' | 'consume' | 'groups' | 'transactions' | 'admin' | 'lasting'
  /** Of its server. */
  readonly server?: TrialOptions
  readonly run: (trial: Trial) => Promise<void>
}

const COUNT = 100
const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

function produces(args: object): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC, { partitions: 3 })
    await trial.did('produce', { topic: TOPIC, count: COUNT, prefix: 'v', ...args })
    // What nobody acknowledges arrives a little later.
    await untilProduced(trial, COUNT)
    await expectProduced(trial.broker)
  }
}

/** Every record once, those of a key in one partition and in order. */
async function expectProduced(broker: Broker): Promise<void> {
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

function consumes(members: number): Feature['run'] {
  return async (trial) => {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const drivers = await groupOf(trial, members)
    await untilAllSeen(trial, drivers, 0, COUNT)
    // Everything that comes is seen, each partition to its end.
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers, 0, 2 * COUNT)
    const last = new Map<number, number>()
    for (const { partition, offset } of drivers.flatMap(({ records }) => records)) {
      last.set(partition, Math.max(last.get(partition) ?? -1, offset))
    }
    for (const { partition, high } of trial.broker.describe(TOPIC).partitions) {
      if (high > 0) expect(last.get(partition)).toBe(high - 1)
    }
  }
}

/** Members of a group, each with partitions of its own: six in all. */
async function groupOf(trial: Trial, members: number, args: object = {}): Promise<Driver[]> {
  const drivers = Array.from({ length: members }, () =>
    trial.run('consume', { topic: TOPIC, group: 'shippers', ...args }),
  )
  await trial.drivers.until('six partitions among all members', () => {
    const assigned = drivers.map((driver) => driver.assigned)
    const partitions = assigned.flat().sort((a, b) => a - b)
    return assigned.every(({ length }) => length > 0) && partitions.join() === '0,1,2,3,4,5'
  })
  return drivers
}

/** Reads a partition without a group, to `count` records. */
async function reads(trial: Trial, from: object, count: number): Promise<Driver> {
  return trial.did('read', { topic: TOPIC, partition: 0, count, ...from })
}

async function steps(trial: Trial, ...names: string[]): Promise<Map<unknown, unknown>> {
  const { events } = await trial.did('admin', { topic: TOPIC, steps: names })
  return new Map(events.map(({ step, result }) => [step, result]))
}

const PRODUCING: readonly Feature[] = [
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
  { name: 'produce to three nodes', group: 'produce', server: { nodes: 3 }, run: produces({}) },
  {
    name: 'headers, both ways',
    group: 'produce',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await trial.did('produce', { topic: TOPIC, count: 3, prefix: 'v', headers: true })
      const records = await trial.broker.read(TOPIC)
      expect(records.map(({ headers }) => text(headers.get('trace')))).toEqual(['0', '1', '2'])
      const { records: read } = await reads(trial, { offset: 0 }, 3)
      expect(read.map(({ headers }) => headers?.trace)).toEqual(['0', '1', '2'])
    },
  },
  {
    name: 'topic made by producing',
    group: 'produce',
    async run(trial) {
      await trial.did('produce', { topic: TOPIC, count: 10, prefix: 'v' })
      expect(ended(trial.broker)).toBe(10)
    },
  },
]

const CONSUMING: readonly Feature[] = [
  ...COMPRESSIONS.map(
    (compression): Feature => ({
      name: `consume, ${compression === 'none' ? 'uncompressed' : compression}`,
      group: 'consume',
      async run(trial) {
        await trial.broker.createTopic(TOPIC)
        await trial.did('produce', { topic: TOPIC, count: COUNT, prefix: 'v', compression })
        const reader = await reads(trial, { offset: 0 }, COUNT)
        expect(valuesOf([reader])).toEqual(all(0, COUNT))
        expect(reader.records.map(({ offset }) => offset)).toEqual([...Array(COUNT).keys()])
      },
    }),
  ),
  {
    name: 'consume what was published in process',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      const reader = await reads(trial, { offset: 0 }, COUNT)
      expect(valuesOf([reader])).toEqual(all(0, COUNT))
      expect(reader.records[13]?.key).toBe('k3')
    },
  },
  {
    name: 'seek to an offset',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      expect(valuesOf([await reads(trial, { offset: 40 }, 20)])).toEqual(all(40, 60))
    },
  },
  {
    name: 'seek to a time',
    group: 'consume',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 50)
      const before = Date.now()
      await trial.drivers.until('a later millisecond', () => Date.now() > before + 1)
      const timestamp = Date.now()
      await publish(trial.broker, 50, COUNT)
      expect(valuesOf([await reads(trial, { timestamp }, 10)])).toEqual(all(50, 60))
    },
  },
]

const GROUPS: readonly Feature[] = [
  ...[1, 3, 5].map(
    (members): Feature => ({
      name: members === 1 ? 'group of one' : `group of ${members}`,
      group: 'groups',
      run: consumes(members),
    }),
  ),
  { name: 'group of 3 on three nodes', group: 'groups', server: { nodes: 3 }, run: consumes(3) },
  {
    name: 'commit and resume',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, COUNT)
      await trial.did('consume', { topic: TOPIC, group: 'shippers', count: COUNT })
      await publish(trial.broker, COUNT, COUNT + 20)
      const second = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 20 })
      expect(valuesOf([second])).toEqual(all(COUNT, COUNT + 20))
    },
  },
  {
    name: 'offsets pass to another client, and to a group in process',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 40)
      await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 40 })
      await publish(trial.broker, 40, 60)
      if (trial.hasOther) {
        const other = await trial.otherDid('consume', { topic: TOPIC, group: 'shippers', count: 20 })
        expect(valuesOf([other])).toEqual(all(40, 60))
        await publish(trial.broker, 60, 80)
      }
      const seen: string[] = []
      const note = { onRecord: (record: { value: unknown }) => void seen.push(text(record.value)) }
      await trial.broker.subscribe(TOPIC, ({ value }: { value: unknown }) => void note.onRecord({ value }), {
        id: 'one',
        group: 'shippers',
      })
      const wanted = trial.hasOther ? all(60, 80) : all(40, 60)
      await trial.drivers.until('records in process', () => seen.length >= wanted.length)
      expect(seen).toEqual(wanted)
    },
  },
  {
    name: 'a member joins',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      await publish(trial.broker, 0, COUNT)
      const first = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await untilAllSeen(trial, [first], 0, COUNT)
      const second = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await trial.drivers.until('partitions for both', () => {
        return first.assigned.length === 3 && second.assigned.length === 3
      })
      await publish(trial.broker, COUNT, 2 * COUNT)
      await untilAllSeen(trial, [first, second], COUNT, 2 * COUNT)
      expect(second.records.length).toBeGreaterThan(0)
    },
  },
  {
    name: 'a member is killed',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      await publish(trial.broker, 0, COUNT)
      const drivers = await groupOf(trial, 3, { sessionMs: 3_000 })
      await untilAllSeen(trial, drivers, 0, COUNT)
      await drivers[0]?.kill('SIGKILL')
      await publish(trial.broker, COUNT, 2 * COUNT)
      await untilAllSeen(trial, drivers.slice(1), COUNT, 2 * COUNT)
    },
  },
  {
    name: 'a member leaves',
    group: 'groups',
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { partitions: 6 })
      await publish(trial.broker, 0, COUNT)
      // Longer than is waited for: who leaves must say so.
      const drivers = await groupOf(trial, 2, { sessionMs: 90_000 })
      await untilAllSeen(trial, drivers, 0, COUNT)
      await drivers[0]?.kill('SIGTERM')
      await publish(trial.broker, COUNT, 2 * COUNT)
      await untilAllSeen(trial, drivers.slice(1), COUNT, 2 * COUNT)
    },
  },
]

/** KIP-848: members are given partitions, and give them up, one by one, while the others read on. */
const NEW_GROUPS: Feature = {
  name: 'groups, new protocol (KIP-848)',
  group: 'groups',
  async run(trial) {
    await trial.broker.createTopic(TOPIC, { partitions: 6 })
    await publish(trial.broker, 0, COUNT)
    const protocol = 'consumer'
    const drivers = await groupOf(trial, 3, { protocol })
    expect(trial.broker.describeGroup('shippers')).toMatchObject({ kind: 'consumer' })
    await untilAllSeen(trial, drivers, 0, COUNT)
    await drivers[0]?.kill('SIGTERM')
    await publish(trial.broker, COUNT, 2 * COUNT)
    await untilAllSeen(trial, drivers.slice(1), COUNT, 2 * COUNT)
    await drivers[1]?.kill('SIGKILL')
    await publish(trial.broker, 2 * COUNT, 3 * COUNT)
    await untilAllSeen(trial, drivers.slice(2), 2 * COUNT, 3 * COUNT)
    await drivers[2]?.kill('SIGTERM')
    await trial.drivers.until('nobody in the group', () => {
      return trial.broker.describeGroup('shippers').members.length === 0
    })
    // What they committed is where others go on, also of the older protocol.
    await publish(trial.broker, 3 * COUNT, 3 * COUNT + 20)
    const next = await trial.did('consume', { topic: TOPIC, group: 'shippers', count: 20 })
    expect(valuesOf([next]).sort()).toEqual(all(3 * COUNT, 3 * COUNT + 20).sort())
  },
}

const TRANSACTIONS: readonly Feature[] = [
  {
    name: 'transactions, read committed',
    group: 'transactions',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      const args = { topic: TOPIC, count: 10, transactionalId: 'till' }
      await trial.did('transact', { ...args, prefix: 'a', abort: false })
      await trial.did('transact', { ...args, prefix: 'b', abort: true })
      await trial.did('transact', { ...args, prefix: 'c', abort: false })
      expect(ended(trial.broker)).toBeGreaterThan(20)
      const wanted = ['a', 'c'].flatMap((prefix) => Array.from({ length: 10 }, (_, i) => `${prefix}${i}`))
      expect(valuesOf([await reads(trial, { offset: 0 }, 20)])).toEqual(wanted)
      expect((await trial.broker.read(TOPIC)).map(({ value }) => text(value))).toEqual(wanted)
    },
  },
  {
    name: 'offsets in a transaction',
    group: 'transactions',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await trial.broker.createTopic('input')
      for (let i = 0; i < 20; i++) await trial.broker.publish('input', `v${i}`, { key: 'k' })
      const args = {
        topic: TOPIC,
        count: 5,
        prefix: 'a',
        transactionalId: 'till',
        group: 'tellers',
        input: 'input',
      }
      await trial.did('transact', { ...args, offset: 12, abort: false })
      await trial.did('transact', { ...args, offset: 17, abort: true })
      const next = await trial.did('consume', { topic: 'input', group: 'tellers', count: 8 })
      expect(valuesOf([next])).toEqual(all(12, 20))
    },
  },
]

const ADMIN: readonly Feature[] = [
  {
    name: 'topics: list, ends of partitions',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      const results = await steps(trial, 'list', 'offsets')
      expect(results.get('list')).toContain(TOPIC)
      expect(results.get('offsets')).toEqual([7])
    },
  },
  {
    name: 'topics: create, grow, delete',
    group: 'admin',
    async run(trial) {
      const results = await steps(trial, 'create', 'partitions')
      expect(results.get('partitions')).toBe(5)
      expect(trial.broker.describe(TOPIC).partitions).toHaveLength(5)
      await steps(trial, 'deleteTopic')
      expect(() => trial.broker.describe(TOPIC)).toThrow()
    },
  },
  {
    name: 'topics: describe and alter configs',
    group: 'admin',
    async run(trial) {
      const results = await steps(trial, 'create', 'describeConfig', 'alterConfig')
      expect(results.get('describeConfig')).toBe('3600000')
      expect(results.get('alterConfig')).toBe('7200000')
    },
  },
  {
    name: 'topics: delete records',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      await steps(trial, 'deleteRecords')
      expect(trial.broker.describe(TOPIC).partitions[0]).toMatchObject({ start: 4, high: 7 })
    },
  },
  {
    name: 'groups: list',
    group: 'admin',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await publish(trial.broker, 0, 7)
      const member = trial.run('consume', { topic: TOPIC, group: 'shippers' })
      await untilAllSeen(trial, [member], 0, 7)
      expect((await steps(trial, 'groups')).get('groups')).toContain('shippers')
    },
  },
]

export const FEATURES: readonly Feature[] = [
  ...PRODUCING,
  ...CONSUMING,
  ...GROUPS,
  NEW_GROUPS,
  ...TRANSACTIONS,
  ...ADMIN,
  ...LASTING,
]
