import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { TopicConfigs } from '../../src/server/topic-configs.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { byteDisk, fileDisk } from '../support/disks.ts'
import { changedEngine } from '../support/engines.ts'
import { KafkaWorld } from '../support/kafka.ts'
import { bootKafka } from '../support/kafka-disk.ts'
import { codeOf } from '../support/world.ts'

const ENDLESS = Number.POSITIVE_INFINITY

function inMemory(): KafkaWorld {
  return new KafkaWorld({ engine: memoryEngine({ clock: new ManualClock() }) })
}

function setOf({ kafka }: KafkaWorld, name: string) {
  return kafka.configs.setOf(kafka.parts.topics.require(name))
}

function set(configs: TopicConfigs, name: string, changes: Record<string, string>, validateOnly = false) {
  return configs.alter(name, (before) => ({ ...before, ...changes }), validateOnly)
}

describe('the configs of a topic', () => {
  it('are typed for appends, with those that were set before the defaults', async () => {
    const { kafka } = inMemory()
    const plain = await kafka.configs.create('plain', 1)
    const defaults = {
      maxMessageBytes: 1_048_588,
      timestampType: 'CreateTime',
      timestampBeforeMaxMs: Number(2n ** 63n - 1n),
      timestampAfterMaxMs: 3_600_000,
      compressionType: 'producer',
    }
    expect(kafka.configs.of(plain.id)).toEqual(defaults)
    const changes = {
      'max.message.bytes': '10',
      'message.timestamp.type': 'LogAppendTime',
      'message.timestamp.before.max.ms': '1',
      'message.timestamp.after.max.ms': '2',
      'compression.type': 'zstd',
    }
    const topic = await kafka.configs.create('set', 1, changes)
    const typed = kafka.configs.of(topic.id)
    expect(typed).toEqual({
      maxMessageBytes: 10,
      timestampType: 'LogAppendTime',
      timestampBeforeMaxMs: 1,
      timestampAfterMaxMs: 2,
      compressionType: 'zstd',
    })
    // For every batch the same object, until they are changed.
    expect(kafka.configs.of(topic.id)).toBe(typed)
    await set(kafka.configs, 'set', { 'max.message.bytes': '20' })
    expect(kafka.configs.of(topic.id).maxMessageBytes).toBe(20)
    await kafka.configs.alter('set', () => ({}))
    expect(kafka.configs.of(topic.id)).toEqual(defaults)
  })

  it('are kept as texts in one form: without blanks, signs and capitals that mean nothing', async () => {
    const world = inMemory()
    await world.kafka.configs.create('t', 1, {
      'retention.ms': ' +060000 ',
      preallocate: 'TRUE',
      'min.cleanable.dirty.ratio': '1',
      'leader.replication.throttled.replicas': '0:1, 1:2',
    })
    expect(setOf(world, 't')).toEqual({
      'retention.ms': '60000',
      preallocate: 'true',
      'min.cleanable.dirty.ratio': '1.0',
      'leader.replication.throttled.replicas': '0:1,1:2',
    })
  })

  it.each([
    ['segment.bytes', '1048575', 'from 1048576 on'],
    ['segment.bytes', '2147483648', 'from 1048576 on'],
    ['flush.ms', '9223372036854775808', 'from 0 on'],
    ['flush.ms', '1e3', 'whole number'],
    ['flush.ms', '', 'whole number'],
    ['compression.lz4.level', '18', 'from 1 to 17'],
    ['compression.gzip.level', '0', 'from 1 to 9'],
    ['compression.type', 'brotli', 'one of uncompressed'],
    ['message.timestamp.type', 'createtime', 'one of CreateTime'],
    ['preallocate', 'yes', 'true or false'],
    ['min.cleanable.dirty.ratio', '1.1', 'from 0 to 1'],
    ['min.cleanable.dirty.ratio', '', 'from 0 to 1'],
    ['cleanup.policy', 'delete,delete', 'twice'],
    ['cleanup.policy', 'truncate', 'not of "truncate"'],
    ['remote.storage.enable', 'true', 'false'],
    ['leader.replication.throttled.replicas', '0', '"0"'],
    ['retention.ms', 'x'.repeat(100), '…'],
    ['retention.ms', '1'.repeat(40_000), 'at most 32767 characters'],
  ])('refuse %s = %s', (name, text, reason) => {
    const { kafka } = inMemory()
    expect(() => kafka.configs.checked({ [name]: text })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(reason) }),
    )
    expect(() => kafka.configs.checked({ [name]: text })).toThrow(name)
  })

  it('take the largest and the smallest values', () => {
    const { kafka } = inMemory()
    const texts = {
      'flush.ms': '9223372036854775807',
      'compression.zstd.level': '-131072',
      'compression.gzip.level': '-1',
      'retention.ms': '-1',
    }
    expect(kafka.configs.checked(texts)).toEqual(texts)
  })

  it('that clean a log take effect at once, and programs see them', async () => {
    const world = inMemory()
    const { kafka, broker } = world
    await kafka.configs.create('t', 1)
    for (let i = 0; i < 10; i++) await broker.publish('t', i)
    await set(kafka.configs, 't', { 'odradek.retention.records': '3' })
    expect(broker.describe('t').retention.records).toBe(3)
    await broker.publish('t', 10)
    expect(broker.describe('t').partitions[0]).toMatchObject({ start: 8, end: 11 })
    await set(kafka.configs, 't', { 'retention.ms': '0' })
    await world.clock.advance(100)
    expect(broker.describe('t').partitions[0]).toMatchObject({ start: 11, end: 11 })
    expect(setOf(world, 't')).toEqual({ 'odradek.retention.records': '3', 'retention.ms': '0' })
  })

  it('follow what programs change', async () => {
    const world = inMemory()
    const { kafka, broker } = world
    await kafka.configs.create('t', 1, { 'retention.ms': '1000', 'max.message.bytes': '5' })
    await broker.alterTopic('t', { retention: { ageMs: 2_000 } })
    expect(setOf(world, 't')).toEqual({ 'retention.ms': '2000', 'max.message.bytes': '5' })
    await broker.alterTopic('t', { retention: { ageMs: 604_800_000 } })
    expect(setOf(world, 't')).toEqual({ 'max.message.bytes': '5' })
  })

  it('of a topic that was made in process are what it really does', async () => {
    const world = inMemory()
    await world.broker.createTopic('t', { retention: { records: 5, ageMs: 1.5 } })
    expect(setOf(world, 't')).toEqual({ 'retention.ms': '2', 'odradek.retention.records': '5' })
    await world.broker.createTopic('plain')
    expect(setOf(world, 'plain')).toEqual({ 'retention.ms': '-1' })
    // What is set beside them leaves them as they were.
    await set(world.kafka.configs, 'plain', { 'max.message.bytes': '5' })
    expect(world.broker.describe('plain').retention.ageMs).toBe(ENDLESS)
    expect(setOf(world, 'plain')).toEqual({ 'retention.ms': '-1', 'max.message.bytes': '5' })
  })

  it('of a compacted topic that was made in process say whether retention holds too', async () => {
    const { world } = await bootKafka(fileDisk())
    await world.broker.createTopic('keys', { cleanup: 'compact', deleteRetentionMs: ENDLESS })
    await world.broker.createTopic('both', { cleanup: 'compact', retention: { bytes: 1_000_000 } })
    expect(setOf(world, 'keys')).toEqual({
      'cleanup.policy': 'compact',
      'delete.retention.ms': '9223372036854775807',
    })
    expect(setOf(world, 'both')).toEqual({
      'cleanup.policy': 'compact,delete',
      'retention.bytes': '1000000',
      'retention.ms': '-1',
    })
    await set(world.kafka.configs, 'keys', { 'max.message.bytes': '5' })
    expect(world.kafka.parts.topics.require('keys').settings).toMatchObject({
      cleanup: 'compact',
      deleteRetentionMs: ENDLESS,
    })
  })

  it('change the policy of a topic with records, and back', async () => {
    const disk = fileDisk()
    const { world, crash } = await bootKafka(disk)
    const { kafka, broker } = world
    await kafka.configs.create('t', 2)
    await broker.publish('t', 'no key', { partition: 0 })
    await set(kafka.configs, 't', { 'cleanup.policy': 'compact', 'delete.retention.ms': '5' })
    expect(await codeOf(broker.publish('t', 'no key'))).toBe('INVALID_ARGUMENT')
    await broker.publish('t', 'a key', { key: 'k', partition: 0 })
    expect(broker.describe('t').retention.ageMs).toBe(ENDLESS)
    expect(world.specs.slice(-2)).toMatchObject([
      { partition: 0, cleanup: 'compact', deleteRetentionMs: 5 },
      { partition: 1, cleanup: 'compact', deleteRetentionMs: 5 },
    ])
    crash()
    const { world: next } = await bootKafka(disk)
    const topic = next.kafka.parts.topics.require('t')
    expect(topic.settings).toMatchObject({ cleanup: 'compact', deleteRetentionMs: 5 })
    expect((await next.broker.read('t')).map(({ value }) => value)).toEqual(['no key', 'a key'])
    await next.kafka.configs.alter('t', () => ({}))
    expect(topic.settings).toMatchObject({ cleanup: 'delete', deleteRetentionMs: 86_400_000 })
    await next.broker.publish('t', 'no key')
  })

  it('are not changed by what is only checked, nor by what is refused', async () => {
    const world = inMemory()
    const { kafka } = world
    await kafka.configs.create('t', 1, { 'retention.ms': '1000' })
    await set(kafka.configs, 't', { 'retention.ms': '5' }, true)
    const refused = set(kafka.configs, 't', { 'retention.ms': '5', 'max.message.bytes': '-1' })
    expect(await codeOf(refused)).toBe('INVALID_ARGUMENT')
    expect(await codeOf(set(kafka.configs, 't', { 'cleanup.policy': 'compact' }, true))).toBe('UNSUPPORTED')
    expect(setOf(world, 't')).toEqual({ 'retention.ms': '1000' })
    expect(world.broker.describe('t').retention.ageMs).toBe(1_000)
  })

  it('refuse to compact dead letters', async () => {
    const { world } = await bootKafka(fileDisk())
    await world.kafka.configs.create('dlq.t', 1)
    expect(await codeOf(set(world.kafka.configs, 'dlq.t', { 'cleanup.policy': 'compact' }))).toBe(
      'INVALID_ARGUMENT',
    )
  })

  it('are changed one after the other: nothing that is set at the same time is lost', async () => {
    const world = inMemory()
    const { kafka } = world
    await kafka.configs.create('t', 1)
    await Promise.all([
      set(kafka.configs, 't', { 'retention.ms': '1' }),
      set(kafka.configs, 't', { 'max.message.bytes': '2' }),
      set(kafka.configs, 't', { 'segment.ms': '3' }),
    ])
    expect(setOf(world, 't')).toEqual({ 'retention.ms': '1', 'max.message.bytes': '2', 'segment.ms': '3' })
  })

  it.each([
    ['files', fileDisk],
    ['bytes', byteDisk],
  ])('survive a crash as they were acknowledged, on an engine of %s', async (_, diskOf) => {
    const disk = diskOf()
    const { world, crash } = await bootKafka(disk)
    const { kafka } = world
    const { id } = await kafka.configs.create('t', 1, { 'max.message.bytes': '7' })
    await set(kafka.configs, 't', { 'retention.ms': '5000' })
    crash()
    const { world: next } = await bootKafka(disk)
    expect(next.kafka.configs.of(id).maxMessageBytes).toBe(7)
    expect(setOf(next, 't')).toEqual({ 'max.message.bytes': '7', 'retention.ms': '5000' })
    expect(next.broker.describe('t').retention.ageMs).toBe(5_000)
  })

  it('are put with their topic in one change, when it is created and when they change', async () => {
    const engine = memoryEngine({ clock: new ManualClock() })
    const puts: string[][] = []
    const meta = {
      get: (key: string) => engine.meta.get(key),
      scan: (prefix: string) => engine.meta.scan(prefix),
      put: (changes: readonly (readonly [string, unknown])[]) => {
        puts.push(changes.map(([key, value]) => `${value === null ? '-' : '+'}${key}`))
        return engine.meta.put(changes)
      },
    }
    const { kafka } = new KafkaWorld({ engine: changedEngine(engine, { meta }) })
    const { id } = await kafka.configs.create('t', 1, { 'max.message.bytes': '7' })
    await kafka.configs.alter('t', () => ({}))
    await kafka.parts.topics.delete('t')
    expect(puts.filter((keys) => keys.length > 0)).toEqual([
      [`+topic/${id}`, `+kafka/config/${id}`],
      [`+topic/${id}`, `-kafka/config/${id}`],
      [`-topic/${id}`, `-kafka/config/${id}`],
    ])
  })

  it('do not bring a topic back that is deleted while they change', async () => {
    const disk = fileDisk()
    const { world, crash } = await bootKafka(disk)
    const { kafka } = world
    await kafka.configs.create('t', 1)
    const changing = codeOf(set(kafka.configs, 't', { 'retention.ms': '5' }))
    await Promise.resolve()
    await kafka.parts.topics.delete('t')
    expect(await changing).toBe('UNKNOWN_TOPIC')
    crash()
    const { world: next } = await bootKafka(disk)
    expect(next.broker.listTopics()).toEqual([])
    expect([...next.kafka.parts.engine.meta.scan('')].map(([key]) => key)).toEqual([])
  })

  it('of a topic that there is not cannot be changed', async () => {
    expect(await codeOf(set(inMemory().kafka.configs, 't', {}))).toBe('UNKNOWN_TOPIC')
  })
})
