/** Producing: every compression, every way to be acknowledged, whatever a record may consist of. */
import { expect } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import type { Feature } from './feature.ts'
import { ended, reads, TOPIC, text, untilProduced } from './values.ts'

const COUNT = 100
/** With its key and the batch around it, below a megabyte, where librdkafka and brokers begin to refuse. */
const LARGE_BYTES = 900_000
export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

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

export const PRODUCING: readonly Feature[] = [
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
    name: 'tombstones on a compacted topic, both ways',
    group: 'produce',
    server: { durable: true },
    async run(trial) {
      await trial.broker.createTopic(TOPIC, { cleanup: 'compact' })
      await trial.did('produce', { topic: TOPIC, count: 4, prefix: 'v', tombstones: true })
      const records = await trial.broker.read(TOPIC)
      expect(records.map(({ value }) => value === null)).toEqual([false, true, false, true])
      await trial.broker.publish(TOPIC, null, { key: 'k0' })
      const { records: read } = await reads(trial, { offset: 0 }, 5)
      expect(read.map(({ key }) => key)).toEqual(['k0', 'k1', 'k2', 'k3', 'k0'])
      expect(read.map(({ value }) => value)).toEqual(['v0', null, 'v2', null, null])
    },
  },
  {
    name: 'a message of 900 kB, both ways',
    group: 'produce',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      await trial.did('produce', { topic: TOPIC, count: 1, prefix: 'v', sizeBytes: LARGE_BYTES })
      const records = await trial.broker.read(TOPIC)
      expect(records.map(({ value }) => (value as Uint8Array).length)).toEqual([LARGE_BYTES])
      const { records: read } = await reads(trial, { offset: 0 }, 1)
      expect(read.map(({ value }) => text(value))).toEqual(['v0'])
    },
  },
  {
    name: 'refused: a message that is too large',
    group: 'produce',
    async run(trial) {
      await trial.broker.createTopic(TOPIC)
      const args = { topic: TOPIC, count: 1, prefix: 'v', sizeBytes: 2 * 1024 * 1024 }
      expect(await trial.refused('produce', args)).toMatch(/too.?large|larger than/i)
      expect(ended(trial.broker)).toBe(0)
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
