/** Records over Kafka's protocol where logs are files: what is answered before it is durable, after a crash, on a bad disk. */
import { describe, expect, it } from 'vitest'
import { type FileEngineOptions, fileEngine } from '../../src/log/file/file-engine.ts'
import type { CompressionPort } from '../../src/log/format/compression.ts'
import { writeInt16, writeInt32 } from '../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, COUNT_AT, LAST_DELTA_AT } from '../../src/log/format/layout.ts'
import { readHeader } from '../../src/log/format/record-batch.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { compressionWith } from '../../src/node/compression.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { listOffsets } from '../../src/wire/messages/02-list-offsets.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { createTopics } from '../../src/wire/messages/19-create-topics.ts'
import { deleteRecords } from '../../src/wire/messages/21-delete-records.ts'
import { SMALL } from '../log/file/compaction-kit.ts'
import { DataWorld } from '../support/kafka-data.ts'
import { batchOf, by, changed, recordsOf } from '../support/record-batches.ts'
import { SimFs } from '../support/sim-fs.ts'
import { watch } from '../support/world.ts'

const OK = { errorCode: KAFKA_ERRORS.NONE, errorMessage: null }
const KiB = 1024

interface Booted {
  readonly world: DataWorld
  readonly clock: ManualClock
}

async function boot(
  fs: SimFs,
  clock: ManualClock,
  options: FileEngineOptions = {},
  compression?: CompressionPort,
): Promise<Booted> {
  const engine = await fileEngine({ clock, fs, ...(compression && { compression }) }, options)
  const world = new DataWorld({ engine, clock })
  await world.broker.restore()
  return { world, clock }
}

async function booted(fs = new SimFs(), options: FileEngineOptions = {}): Promise<Booted> {
  return boot(fs, new ManualClock(), options)
}

/** A disk whose syncs take 100 ms from now on. */
function slow(clock: ManualClock): SimFs {
  const fs = new SimFs({ clock })
  fs.onOperation = (operation) => (operation === 'sync' ? { delayMs: 100 } : undefined)
  return fs
}

describe('a produce to a log on disk', () => {
  it('is acknowledged when its batch is durable, a repeated one too, and fetched no sooner', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    const booting = boot(fs, clock)
    await clock.settle()
    const { world } = await booting
    await world.broker.createTopic('orders')
    fs.onOperation = slow(clock).onOperation
    const batch = { values: ['a', 'b'], producer: by(4, 0) }
    const produced = watch(world.produce(batch))
    const leader = watch(world.produce({ values: ['c'] }, { acks: 1 }))
    const repeated = watch(world.produce(batch))
    const unacknowledged = watch(world.trySend(produce, 9, world.produceBody({ values: ['d'] }, { acks: 0 })))
    const fetched = watch(world.fetch({ maxWaitMs: 10_000 }))
    await clock.advance(50)
    expect([produced, leader, repeated, fetched].map(({ state }) => state)).toEqual(
      Array.from({ length: 4 }, () => 'waiting'),
    )
    expect(unacknowledged).toMatchObject({ state: 'resolved', value: null })
    await clock.advance(100)
    expect(produced.value).toMatchObject({ ...OK, baseOffset: 0 })
    expect(repeated.value).toMatchObject({ ...OK, baseOffset: 0 })
    expect(leader.value).toMatchObject({ ...OK, baseOffset: 2 })
    expect(fetched.value).toMatchObject({ errorCode: KAFKA_ERRORS.NONE, highWatermark: 4 })
  })

  it('outlives the process, with what is known of its producer', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs)
    await world.broker.createTopic('orders')
    const batch = { values: ['a', 'b'], producer: by(4, 0) }
    expect(await world.produce(batch)).toMatchObject({ ...OK, baseOffset: 0 })
    expect(await world.produce({ producer: by(4, 2) })).toMatchObject({ ...OK, baseOffset: 2 })

    const next = (await booted(fs.kill())).world
    expect(await next.produce(batch)).toMatchObject({ ...OK, baseOffset: 0 })
    expect(await next.produce({ producer: by(4, 9) })).toMatchObject({
      errorCode: KAFKA_ERRORS.OUT_OF_ORDER_SEQUENCE_NUMBER,
    })
    expect(await next.produce({ producer: by(4, 3) })).toMatchObject({ ...OK, baseOffset: 3 })
    expect(await next.values()).toEqual(['a', 'b', 'a', 'a'])
  })

  it('says after a sync that failed that the batch may be there, and then takes no more', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs)
    await world.broker.createTopic('orders')
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    expect(await world.produce()).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
      baseOffset: -1,
    })
    expect(await world.produce()).toMatchObject({ errorCode: KAFKA_ERRORS.KAFKA_STORAGE_ERROR })
  })

  it('raises an error event where nobody hears of a flush that failed', async () => {
    const clock = new ManualClock()
    const fs = new SimFs()
    const { world } = await boot(fs, clock)
    await world.broker.createTopic('orders')
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    expect(await world.trySend(produce, 9, world.produceBody({}, { acks: 0 }))).toBeNull()
    await clock.settle()
    expect(world.raised('error').length).toBeGreaterThan(0)
  })

  it('is refused while the disk is full', async () => {
    const fs = new SimFs({ capacityBytes: 240 * KiB })
    const { world } = await booted(fs, { journalBytes: 64 * KiB, segmentBytes: 64 * KiB })
    await world.broker.createTopic('orders')
    let last = KAFKA_ERRORS.NONE as number
    for (let i = 0; i < 100 && last === KAFKA_ERRORS.NONE; i++) {
      last = (await world.produce({ values: ['x'.repeat(8_000)] }, { timeoutMs: 10 })).errorCode
    }
    expect(last).toBe(KAFKA_ERRORS.KAFKA_STORAGE_ERROR)
  })

  it('waits in line for a disk that is behind', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    const booting = boot(fs, clock, { journalBytes: 64 * KiB })
    await clock.settle()
    const { world } = await booting
    await world.broker.createTopic('orders')
    fs.onOperation = slow(clock).onOperation
    const produced = Array.from({ length: 12 }, (_, i) =>
      watch(world.produce({ values: [`${i}${'x'.repeat(4_000)}`] }, { timeoutMs: 10_000 })),
    )
    await clock.settle()
    expect(world.broker.describe('orders').partitions[0]?.waiting).toBeGreaterThan(0)
    await clock.advance(5_000)
    expect(produced.map(({ value }) => value?.baseOffset)).toEqual(Array.from({ length: 12 }, (_, i) => i))
  })
})

describe('offsets and epochs of a log on disk', () => {
  it('are the same after a restart, and an epoch never falls', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs)
    await world.broker.createTopic('orders')
    for (const timestamp of [10, 30, 20]) await world.produce({ timestamp })
    const epochs = async (each: DataWorld): Promise<unknown[]> => {
      const { topics } = await each.send(metadata, 12, { topics: null })
      const body = (timestamp: number) => ({
        replicaId: -1,
        topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, timestamp }] }],
      })
      const found = await each.send(listOffsets, 7, body(11))
      const newest = await each.send(listOffsets, 7, body(-3))
      return [
        topics[0]?.partitions[0]?.leaderEpoch,
        found.topics[0]?.partitions[0],
        newest.topics[0]?.partitions[0],
      ]
    }
    const before = await epochs(world)
    expect(before).toMatchObject([
      before[0],
      { offset: 1, timestamp: 30, leaderEpoch: before[0] },
      { offset: 1, timestamp: 30 },
    ])
    await world.broker.close()
    const next = (await booted(fs.kill())).world
    const after = await epochs(next)
    expect(after[0]).toBeGreaterThanOrEqual(before[0] as number)
    expect(after.slice(1)).toEqual(before.slice(1))
  })

  it('have a start that stays where records were deleted', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs)
    await world.broker.createTopic('orders')
    for (let i = 0; i < 3; i++) await world.produce({ values: [`${i}`] })
    const { topics } = await world.send(deleteRecords, 2, {
      timeoutMs: 1_000,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, offset: 2 }] }],
    })
    expect(topics[0]?.partitions[0]).toMatchObject({ lowWatermark: 2, errorCode: KAFKA_ERRORS.NONE })
    const next = (await booted(fs.kill())).world
    expect(await next.fetch({ offset: 1 })).toMatchObject({
      errorCode: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE,
      logStartOffset: 2,
    })
    expect(await next.values({ offset: 2 })).toEqual(['2'])
  })
})

async function compactedTopic(
  world: DataWorld,
  configs: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { topics } = await world.send(createTopics, 7, {
    timeoutMs: 1_000,
    validateOnly: false,
    topics: [
      {
        name: 'orders',
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries({ 'cleanup.policy': 'compact', ...configs }).map(([name, value]) => ({
          name,
          value,
        })),
      },
    ],
  })
  expect(topics[0]?.errorMessage).toBeNull()
}

describe('a compacted topic', () => {
  it('takes no record without a key, and says which one it was', async () => {
    const { world } = await booted()
    await compactedTopic(world)
    expect(await world.produce({ values: ['a', 'b'], keys: ['k', null] })).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_RECORD,
      recordErrors: [{ batchIndex: 1, batchIndexErrorMessage: expect.any(String) }],
    })
    expect(await world.produce({ values: ['a', null], keys: ['k', 'l'] })).toMatchObject(OK)
  })

  it('looks into compressed batches for that, and refuses what it cannot open', async () => {
    const compression = await compressionWith()
    const { world } = await boot(new SimFs(), new ManualClock(), {}, compression)
    await compactedTopic(world)
    const gzip = { type: 1, port: compression }
    expect(await world.produce({ keys: null, compression: gzip })).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_RECORD,
      recordErrors: [{ batchIndex: 0 }],
    })
    expect(await world.produce({ compression: gzip })).toMatchObject(OK)
    const broken = changed(batchOf({ compression: gzip }), (bytes) => bytes.fill(0, 70))
    expect(await world.produce(broken)).toMatchObject({ errorCode: KAFKA_ERRORS.CORRUPT_MESSAGE })
    const short = changed(batchOf({ compression: gzip }), (bytes) => {
      writeInt32(bytes, COUNT_AT, 4)
      writeInt32(bytes, LAST_DELTA_AT, 3)
    })
    expect(await world.produce(short)).toMatchObject({ errorCode: KAFKA_ERRORS.CORRUPT_MESSAGE })
    const without = (await booted()).world
    await compactedTopic(without)
    expect(await without.produce({ compression: gzip })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE,
    })
  })

  it('brings the next batch to who asks for an offset that was compacted away', async () => {
    const { world, clock } = await booted(new SimFs(), SMALL)
    await compactedTopic(world)
    for (let round = 0; round < 300; round++) {
      await world.produce({ values: [`${round}`], keys: ['k'] })
    }
    await clock.settle()
    const fetched = await world.fetch({ offset: 1 })
    const [first] = recordsOf(fetched.records as Uint8Array)
    expect(fetched).toMatchObject({ errorCode: KAFKA_ERRORS.NONE, logStartOffset: 0, highWatermark: 300 })
    expect(first?.offset).toBeGreaterThan(100)
    expect(first?.value).toBe(`${first?.offset}`)
  })

  it('keeps its records from DeleteRecords', async () => {
    const { world } = await booted()
    await compactedTopic(world)
    await world.produce()
    const { topics } = await world.send(deleteRecords, 2, {
      timeoutMs: 1_000,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, offset: 1 }] }],
    })
    expect(topics[0]?.partitions[0]).toMatchObject({ errorCode: KAFKA_ERRORS.POLICY_VIOLATION })
  })
})

describe('a topic with a compression of its own', () => {
  async function worldOf(compressionType: string): Promise<{ world: DataWorld; port: CompressionPort }> {
    const port = await compressionWith()
    const { world } = await boot(new SimFs(), new ManualClock(), {}, port)
    await compactedTopic(world, { 'cleanup.policy': 'delete', 'compression.type': compressionType })
    return { world, port }
  }

  it('stores batches with it, whatever they come with', async () => {
    const { world, port } = await worldOf('gzip')
    const values = ['x'.repeat(2_000), 'y'.repeat(2_000)]
    expect(await world.produce({ values, producer: by(4, 0) })).toMatchObject(OK)
    const { records } = await world.fetch()
    const header = readHeader(records as Uint8Array, 0)
    expect(header).toMatchObject({ compression: 1, producerId: 4, baseSequence: 0, count: 2 })
    expect(header.sizeBytes).toBeLessThan(1_000)
    expect(recordsOf(records as Uint8Array, port).map(({ value }) => value)).toEqual(values)
    expect(await world.produce({ values, producer: by(4, 0) })).toMatchObject({ ...OK, baseOffset: 0 })
  })

  it('or without any', async () => {
    const { world, port } = await worldOf('uncompressed')
    const gzip = { type: 1, port }
    expect(await world.produce({ values: ['a', 'b'], compression: gzip })).toMatchObject(OK)
    const { records } = await world.fetch()
    expect(readHeader(records as Uint8Array, 0).compression).toBe(0)
    expect(recordsOf(records as Uint8Array).map(({ value }) => value)).toEqual(['a', 'b'])
  })

  it('does not open a batch whose sum is wrong', async () => {
    const { world } = await worldOf('gzip')
    const batch = batchOf()
    writeInt16(batch, ATTRIBUTES_AT, 0x2000)
    expect(await world.produce(batch)).toMatchObject({ errorCode: KAFKA_ERRORS.CORRUPT_MESSAGE })
  })

  it('tells clients that are too old for zstd that they are', async () => {
    const { world } = await worldOf('zstd')
    const refused = { errorCode: KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE }
    expect(await world.fetch({ version: 9, maxWaitMs: 1_000 })).toMatchObject(refused)
    expect(await world.fetch({ version: 10 })).toMatchObject({ errorCode: KAFKA_ERRORS.NONE })
  })

  it('waits for a codec that has to be loaded first, and keeps the order of what comes meanwhile', async () => {
    const port = await compressionWith()
    let loaded: () => void = () => undefined
    const loading = new Promise<void>((resolve) => {
      loaded = resolve
    })
    let isReady = false
    const late: CompressionPort = {
      compress: (type, bytes) => port.compress(type, bytes),
      decompress: (type, bytes, max) => port.decompress(type, bytes, max),
      ready: (type) => (type === 1 && !isReady ? loading : undefined),
    }
    const { world, clock } = await boot(new SimFs(), new ManualClock(), {}, late)
    await compactedTopic(world, { 'cleanup.policy': 'delete', 'compression.type': 'gzip' })
    const first = watch(world.produce({ values: ['a'] }))
    const second = watch(world.produce({ values: ['b'] }))
    await clock.settle()
    expect([first.state, second.state]).toEqual(['waiting', 'waiting'])
    isReady = true
    loaded()
    await clock.settle()
    expect([first.value?.baseOffset, second.value?.baseOffset]).toEqual([0, 1])
  })
})

describe('a fetch from a log on disk', () => {
  it('that is damaged says so', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs, SMALL)
    await world.broker.createTopic('orders')
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    const read = log.read.bind(log)
    await world.produce()
    for (const [code, version, errorCode] of [
      ['CORRUPT_LOG', 12, KAFKA_ERRORS.CORRUPT_MESSAGE],
      ['STORAGE_ERROR', 12, KAFKA_ERRORS.KAFKA_STORAGE_ERROR],
      ['STORAGE_ERROR', 5, KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER],
      ['OFFSET_OUT_OF_RANGE', 12, KAFKA_ERRORS.OFFSET_OUT_OF_RANGE],
      ['CLOSED', 12, KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER],
    ] as const) {
      log.read = () => Promise.reject(new OdradekError(code, 'a disk that fails'))
      expect(await world.fetch({ version })).toMatchObject({ errorCode })
    }
    log.read = () => Promise.reject(new Error('a fault of ours'))
    await expect(world.fetch()).rejects.toThrow('a fault of ours')
    log.read = read
    expect(await world.values()).toEqual(['a'])
  })

  it('that is deleted while it is read says that', async () => {
    const { world } = await booted()
    await world.broker.createTopic('orders')
    await world.produce()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    const read = log.read.bind(log)
    log.read = async (...args) => {
      await world.broker.deleteTopic('orders')
      return read(...args)
    }
    expect(await world.fetch()).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION })
  })

  it('brings what another process left, and what this one adds, in one response', async () => {
    const fs = new SimFs()
    const { world } = await booted(fs, SMALL)
    await world.broker.createTopic('orders')
    for (let i = 0; i < 20; i++) await world.produce({ values: [`${i}${'x'.repeat(300)}`] })
    await world.broker.close()
    const next = (await booted(fs.kill(), SMALL)).world
    await next.broker.publish('orders', 'new')
    const values = await next.values()
    expect(values).toHaveLength(21)
    expect(values.at(-1)).toBe('new')
    const { responses } = await next.send(fetch, 12, next.fetchBody({ offset: 5, maxBytes: 1_000 }))
    const { records } = responses[0]?.partitions[0] ?? {}
    expect(recordsOf(records as Uint8Array)[0]?.offset).toBe(5)
    expect(recordsOf(records as Uint8Array).length).toBeLessThan(4)
  })
})
