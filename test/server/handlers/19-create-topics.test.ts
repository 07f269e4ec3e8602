import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import type { RequestInputOf } from '../../../src/wire/api.ts'
import { KAFKA_ERRORS, kafkaErrorName } from '../../../src/wire/errors.ts'
import { createTopics } from '../../../src/wire/messages/19-create-topics.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { fileDisk } from '../../support/disks.ts'
import { changedEngine } from '../../support/engines.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { bootKafka } from '../../support/kafka-disk.ts'

type Topic = RequestInputOf<typeof createTopics>['topics'][number]

function topic(name: string, more: Partial<Topic> = {}): Topic {
  return { name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [], ...more }
}

function assigned(...brokerIds: readonly (readonly number[])[]): Partial<Topic> {
  const assignments = brokerIds.map((ids, partitionIndex) => ({ partitionIndex, brokerIds: ids }))
  return { numPartitions: -1, replicationFactor: -1, assignments }
}

function configured(configs: Record<string, string | null>): Partial<Topic> {
  return { configs: Object.entries(configs).map(([name, value]) => ({ name, value })) }
}

async function create(world: KafkaWorld, topics: readonly Topic[], validateOnly = false, version = 7) {
  const response = await world.send(createTopics, version, { topics, validateOnly, timeoutMs: 1_000 })
  return response.topics
}

/** The names of the errors, in order. */
async function errorsOf(world: KafkaWorld, ...topics: readonly Topic[]): Promise<string[]> {
  return (await create(world, topics)).map(({ errorCode }) => kafkaErrorName(errorCode))
}

describe('CreateTopics', () => {
  it('creates a topic in every version, which programs in process see', async () => {
    const world = new KafkaWorld()
    for (let version = 2; version <= 7; version++) {
      const [created] = await create(world, [topic(`v${version}`, { numPartitions: 3 })], false, version)
      expect(created).toMatchObject({ name: `v${version}`, errorCode: 0, errorMessage: null })
      expect(world.broker.describe(`v${version}`).partitions).toHaveLength(3)
    }
  })

  it('answers the id that the topic has', async () => {
    const world = new KafkaWorld()
    const [created] = await create(world, [topic('orders')])
    expect(created?.topicId).toBe(world.broker.describe('orders').id)
  })

  it('answers partitions, the one replica and every config from version 5 on', async () => {
    const world = new KafkaWorld()
    const [created] = await create(world, [topic('t', configured({ 'retention.ms': '1000' }))], false, 5)
    expect(created).toMatchObject({ numPartitions: 1, replicationFactor: 1, topicConfigErrorCode: 0 })
    expect(created?.configs).toContainEqual({
      name: 'retention.ms',
      value: '1000',
      readOnly: false,
      configSource: 1,
      isSensitive: false,
    })
    expect(created?.configs).toContainEqual({
      name: 'max.message.bytes',
      value: '1048588',
      readOnly: false,
      configSource: 5,
      isSensitive: false,
    })
    const names = created?.configs?.map(({ name }) => name) ?? []
    expect(names).toEqual([...names].sort())
  })

  it('takes -1 for the number of partitions that the broker gives, and for its replicas', async () => {
    const world = new KafkaWorld({ defaultPartitions: 4 })
    const [created] = await create(world, [topic('t', { numPartitions: -1, replicationFactor: -1 })])
    expect(created).toMatchObject({ errorCode: 0, numPartitions: 4, replicationFactor: 1 })
    expect(world.broker.describe('t').partitions).toHaveLength(4)
  })

  it('makes retention as the configs say, as programs see it', async () => {
    const world = new KafkaWorld()
    const configs = {
      'retention.ms': '60000',
      'retention.bytes': '5000000',
      'odradek.retention.records': '10',
    }
    await create(world, [topic('t', configured(configs))])
    expect(world.broker.describe('t').retention).toEqual({ ageMs: 60_000, bytes: 5_000_000, records: 10 })
  })

  it("bounds a topic that says nothing by Kafka's week, and in memory by the engine's bounds as well", async () => {
    const memory = new KafkaWorld({ engine: memoryEngine({ clock: new ManualClock() }) })
    await create(memory, [topic('t')])
    const { records, bytes } = memory.kafka.parts.engine.retention
    expect(memory.broker.describe('t').retention).toEqual({ ageMs: 604_800_000, bytes, records })
    const { world: file } = await bootKafka(fileDisk())
    await create(file, [topic('t')])
    const endless = Number.POSITIVE_INFINITY
    expect(file.broker.describe('t').retention).toEqual({
      ageMs: 604_800_000,
      bytes: endless,
      records: endless,
    })
  })

  it('creates nothing where it is only to be checked, and says what would come of it', async () => {
    const world = new KafkaWorld()
    const [checked] = await create(world, [topic('t', { numPartitions: 2 })], true)
    expect(checked).toMatchObject({ errorCode: 0, topicId: NO_UUID, numPartitions: 2, replicationFactor: 1 })
    expect(checked?.configs?.length).toBeGreaterThan(0)
    expect(world.broker.listTopics()).toEqual([])
    const [bad] = await create(world, [topic('t', configured({ 'retention.ms': 'x' }))], true)
    expect(bad?.errorCode).toBe(KAFKA_ERRORS.INVALID_CONFIG)
    await create(world, [topic('t')])
    const [again] = await create(world, [topic('t')], true)
    expect(again?.errorCode).toBe(KAFKA_ERRORS.TOPIC_ALREADY_EXISTS)
  })

  it('refuses a topic that exists, be it made in process and the same', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('made')
    await create(world, [topic('sent')])
    expect(await errorsOf(world, topic('made'), topic('sent'), topic('made-too'))).toEqual([
      'TOPIC_ALREADY_EXISTS',
      'TOPIC_ALREADY_EXISTS',
      'NONE',
    ])
  })

  it('creates a topic once that two ask for at the same time', async () => {
    const world = new KafkaWorld()
    const answers = await Promise.all([1, 2, 3].map(() => errorsOf(world, topic('t'))))
    expect(answers.flat().sort()).toEqual(['NONE', 'TOPIC_ALREADY_EXISTS', 'TOPIC_ALREADY_EXISTS'])
  })

  it('refuses both of two topics of one name in a request, with one answer, and creates the others', async () => {
    const world = new KafkaWorld()
    const answers = await create(world, [topic('twice'), topic('once'), topic('twice')])
    expect(answers.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['once', 0],
      ['twice', KAFKA_ERRORS.INVALID_REQUEST],
    ])
    expect(world.broker.listTopics()).toEqual(['once'])
  })

  it.each([
    ['an empty name', ''],
    ['two dots', '..'],
    ['a blank', 'a b'],
    ['a pattern', 'orders.*'],
    ['more characters than leave room for `dlq.`', 'x'.repeat(246)],
  ])('refuses %s as a name, with the reason', async (_, name) => {
    const [refused] = await create(new KafkaWorld(), [topic(name)])
    expect(refused).toMatchObject({ name, errorCode: KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION, topicId: NO_UUID })
    expect(refused?.errorMessage).toMatch(/name|allowed|pattern|taken/)
  })

  it('refuses a name that differs from another in . and _ only, and the log of a cluster', async () => {
    const world = new KafkaWorld()
    await create(world, [topic('a.b')])
    expect(await errorsOf(world, topic('a_b'), topic('__cluster_metadata'))).toEqual([
      'INVALID_TOPIC_EXCEPTION',
      'INVALID_REQUEST',
    ])
  })

  it.each([
    ['no partitions', { numPartitions: 0 }, 'INVALID_PARTITIONS'],
    ['fewer than none', { numPartitions: -2 }, 'INVALID_PARTITIONS'],
    ['no replicas', { replicationFactor: 0 }, 'INVALID_REPLICATION_FACTOR'],
    ['fewer than no replicas', { replicationFactor: -2 }, 'INVALID_REPLICATION_FACTOR'],
    ['more replicas than nodes', { replicationFactor: 3 }, 'INVALID_REPLICATION_FACTOR'],
    ['assignments beside partitions', { ...assigned([0]), numPartitions: 1 }, 'INVALID_REQUEST'],
    ['assignments beside replicas', { ...assigned([0]), replicationFactor: 1 }, 'INVALID_REQUEST'],
    ['an assignment to a stranger', assigned([7]), 'INVALID_REPLICA_ASSIGNMENT'],
    ['an assignment to nobody', assigned([]), 'INVALID_REPLICA_ASSIGNMENT'],
    ['an assignment to one broker twice', assigned([1, 1]), 'INVALID_REPLICA_ASSIGNMENT'],
    ['assignments of different sizes', assigned([0], [0, 1]), 'INVALID_REPLICA_ASSIGNMENT'],
    [
      'assignments with a gap',
      { ...assigned(), assignments: [{ partitionIndex: 1, brokerIds: [0] }] },
      'INVALID_REPLICA_ASSIGNMENT',
    ],
    [
      'one partition assigned twice',
      { ...assigned(), assignments: [0, 0].map((partitionIndex) => ({ partitionIndex, brokerIds: [0] })) },
      'INVALID_REPLICA_ASSIGNMENT',
    ],
  ] as const)('refuses %s', async (_, more, error) => {
    const world = new KafkaWorld({ nodes: 2 })
    expect(await errorsOf(world, topic('t', more))).toEqual([error])
    expect(world.broker.listTopics()).toEqual([])
  })

  it('takes a replication factor and assignments up to the number of nodes', async () => {
    const world = new KafkaWorld({ nodes: 2 })
    expect(
      await errorsOf(world, topic('a', { replicationFactor: 2 }), topic('b', assigned([0, 1], [1, 0]))),
    ).toEqual(['NONE', 'NONE'])
    expect(world.broker.describe('b').partitions).toHaveLength(2)
  })

  it('refuses more partitions than one request may create, for all of it', async () => {
    const world = new KafkaWorld()
    const topics = [topic('a', { numPartitions: 10_000 }), topic('b')]
    expect(await errorsOf(world, ...topics)).toEqual(['POLICY_VIOLATION', 'POLICY_VIOLATION'])
    expect(world.broker.listTopics()).toEqual([])
  })

  it.each([
    ['a config that there is not', { 'retention.mss': '1' }, 'retention.mss'],
    ['a config of that is no own property', { constructor: '1' }, 'constructor'],
    ['a config without a value', { 'retention.ms': null }, 'retention.ms'],
    ['a value of another type', { 'retention.ms': 'a week' }, 'whole number'],
    ['a value out of range', { 'retention.ms': '-2' }, 'from -1 on'],
    ['a log that may keep no bytes', { 'retention.bytes': '0' }, 'retention.bytes'],
    [
      'a log without a bound in memory',
      { 'retention.bytes': '-1', 'odradek.retention.records': '-1' },
      'memory',
    ],
    ['a compacted log in memory', { 'cleanup.policy': 'compact' }, 'compacted'],
    ['no policy at all', { 'cleanup.policy': '' }, 'cleanup.policy'],
  ])('refuses %s, with the reason', async (_, configs, reason) => {
    const world = new KafkaWorld({ engine: memoryEngine({ clock: new ManualClock() }) })
    const [refused] = await create(world, [topic('t', configured(configs))])
    expect(kafkaErrorName(refused?.errorCode ?? 0)).toBe('INVALID_CONFIG')
    expect(refused?.errorMessage).toContain(reason)
    expect(world.broker.listTopics()).toEqual([])
  })

  it('compacts on disk', async () => {
    const { world } = await bootKafka(fileDisk())
    const policies = ['compact', 'compact,delete', 'delete, compact'] as const
    const topics = policies.map((policy, i) => topic(`t${i}`, configured({ 'cleanup.policy': policy })))
    expect(
      await errorsOf(world, ...topics, topic('dlq.t', configured({ 'cleanup.policy': 'compact' }))),
    ).toEqual(['NONE', 'NONE', 'NONE', 'INVALID_CONFIG'])
    const { topics: all } = world.kafka.parts
    expect(all.list().map(({ settings }) => settings.cleanup)).toEqual(['compact', 'compact', 'compact'])
    expect(all.list().map(({ settings }) => settings.retention.ageMs)).toEqual([
      Number.POSITIVE_INFINITY,
      604_800_000,
      604_800_000,
    ])
  })

  it('says that it is late where the disk is, and creates the topic all the same', async () => {
    const engine = memoryEngine({ clock: new ManualClock() })
    let open = (): void => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    const slow = changedEngine(engine, { openLog: (spec) => opened.then(() => engine.openLog(spec)) })
    const world = new KafkaWorld({ engine: slow })
    const answered = errorsOf(world, topic('t'))
    await world.clock.advance(999)
    expect(world.broker.listTopics()).toEqual([])
    await world.clock.advance(1)
    expect(await answered).toEqual(['REQUEST_TIMED_OUT'])
    open()
    await world.settle()
    expect(world.broker.listTopics()).toEqual(['t'])
    expect(world.clock.pending).toBe(1)
  })
})
