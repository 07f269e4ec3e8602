import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { describeLogDirs } from '../../../src/wire/messages/35-describe-log-dirs.ts'
import { fileDisk } from '../../support/disks.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { bootKafka } from '../../support/kafka-disk.ts'

type Asked = readonly { readonly topic: string; readonly partitions: readonly number[] }[] | null

async function dirOf({ send }: KafkaWorld, topics: Asked, { node = 0, version = 4 } = {}) {
  const { errorCode, results } = await send(describeLogDirs, version, { topics }, { node })
  expect(errorCode).toBe(0)
  expect(results).toHaveLength(1)
  return results[0] as (typeof results)[number]
}

async function worldWithTopics(options: object = {}): Promise<KafkaWorld> {
  const world = new KafkaWorld({ engine: memoryEngine({ clock: new ManualClock() }), ...options })
  await world.broker.createTopic('a', { partitions: 2 })
  await world.broker.createTopic('b')
  return world
}

describe('DescribeLogDirs', () => {
  it('answers one directory with the bytes of every partition, in every version', async () => {
    const world = await worldWithTopics()
    await world.broker.publish('a', 'x', { partition: 1 })
    const { sizeBytes } = world.broker.describe('a').partitions[1] as { sizeBytes: number }
    expect(sizeBytes).toBeGreaterThan(0)
    for (let version = 1; version <= 4; version++) {
      const same = { offsetLag: 0, isFutureKey: false }
      expect(await dirOf(world, null, { version })).toMatchObject({
        errorCode: 0,
        logDir: 'memory:',
        topics: [
          {
            name: 'a',
            partitions: [
              { partitionIndex: 0, partitionSize: 0, ...same },
              { partitionIndex: 1, partitionSize: sizeBytes, ...same },
            ],
          },
          { name: 'b', partitions: [{ partitionIndex: 0, partitionSize: 0, ...same }] },
        ],
        totalBytes: -1,
        usableBytes: -1,
      })
    }
  })

  it('answers the partitions that are asked for, and leaves out those that there are not', async () => {
    const world = await worldWithTopics()
    const asked = [
      { topic: 'a', partitions: [1, 7] },
      { topic: 'missing', partitions: [0] },
      { topic: 'b', partitions: [] },
      { topic: 'a', partitions: [7] },
    ]
    const { topics } = await dirOf(world, asked)
    expect(topics).toMatchObject([{ name: 'a', partitions: [{ partitionIndex: 1 }] }])
    expect((await dirOf(world, [])).topics).toEqual([])
  })

  it('answers on each node what it leads, all of it once', async () => {
    const world = await worldWithTopics({ nodes: 2 })
    await world.broker.createTopic('many', { partitions: 20 })
    const [first, second] = await Promise.all(
      [0, 1].map(async (node) => {
        const { topics } = await dirOf(world, null, { node })
        const found = topics.find(({ name }) => name === 'many')
        return found?.partitions.map(({ partitionIndex }) => partitionIndex) ?? []
      }),
    )
    expect(first?.length).toBeGreaterThan(0)
    expect(second?.length).toBeGreaterThan(0)
    const all = [...(first ?? []), ...(second ?? [])].sort((a, b) => a - b)
    expect(all).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  it('answers bytes on the disk there', async () => {
    const { world } = await bootKafka(fileDisk())
    await world.broker.createTopic('t')
    await world.broker.publish('t', 'x')
    const { logDir, topics } = await dirOf(world, null)
    expect(logDir).toBe('file:')
    expect(topics[0]?.partitions[0]?.partitionSize).toBe(world.broker.describe('t').partitions[0]?.sizeBytes)
  })
})
