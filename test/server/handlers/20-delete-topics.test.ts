import { describe, expect, it } from 'vitest'
import { memoryEngine } from '../../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { KAFKA_ERRORS, kafkaErrorName } from '../../../src/wire/errors.ts'
import { offsetCommit } from '../../../src/wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../../../src/wire/messages/09-offset-fetch.ts'
import { createTopics } from '../../../src/wire/messages/19-create-topics.ts'
import { deleteTopics } from '../../../src/wire/messages/20-delete-topics.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { fileDisk } from '../../support/disks.ts'
import { changedEngine } from '../../support/engines.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { bootKafka } from '../../support/kafka-disk.ts'
import { by } from '../../support/record-batches.ts'

async function remove(world: KafkaWorld, names: readonly string[], version = 6) {
  const topics = names.map((name) => ({ name, topicId: NO_UUID }))
  const { responses } = await world.send(deleteTopics, version, {
    topics,
    topicNames: names,
    timeoutMs: 1_000,
  })
  return responses
}

async function removeIds(world: KafkaWorld, ...ids: readonly string[]) {
  const topics = ids.map((topicId) => ({ name: null, topicId }))
  const { responses } = await world.send(deleteTopics, 6, { topics, timeoutMs: 1_000 })
  return responses
}

describe('DeleteTopics', () => {
  it('deletes topics by name in every version, each on its own', async () => {
    const world = new KafkaWorld()
    for (let version = 1; version <= 6; version++) {
      await world.broker.createTopic('a')
      await world.broker.createTopic('b')
      const answers = await remove(world, ['a', 'missing', 'b'], version)
      expect(answers.map(({ name, errorCode }) => [name, kafkaErrorName(errorCode)])).toEqual([
        ['a', 'NONE'],
        ['missing', 'UNKNOWN_TOPIC_OR_PARTITION'],
        ['b', 'NONE'],
      ])
      expect(world.broker.listTopics()).toEqual([])
    }
  })

  it('deletes by id, and answers the name', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    const { id } = world.broker.describe('a')
    expect(await removeIds(world, id)).toMatchObject([{ name: 'a', topicId: id, errorCode: 0 }])
    expect(await removeIds(world, id)).toMatchObject([
      { name: null, topicId: id, errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID },
    ])
  })

  it('refuses a topic named twice with one answer, by name, by id, or by both', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    const { id } = world.broker.describe('a')
    const invalid = { errorCode: KAFKA_ERRORS.INVALID_REQUEST }
    expect(await remove(world, ['a', 'a'])).toMatchObject([{ name: 'a', ...invalid }])
    expect(await removeIds(world, id, id)).toMatchObject([{ topicId: id, ...invalid }])
    const topics = [
      { name: 'a', topicId: NO_UUID },
      { name: null, topicId: id },
    ]
    const { responses } = await world.send(deleteTopics, 6, { topics, timeoutMs: 1_000 })
    expect(responses).toMatchObject([invalid, invalid])
    expect(world.broker.listTopics()).toEqual(['a'])
  })

  it('refuses what names nothing, and what names a topic both ways at once', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    const { id } = world.broker.describe('a')
    const topics = [
      { name: null, topicId: NO_UUID },
      { name: 'a', topicId: id },
    ]
    const { responses } = await world.send(deleteTopics, 6, { topics, timeoutMs: 1_000 })
    const invalid = { errorCode: KAFKA_ERRORS.INVALID_REQUEST }
    expect(responses).toMatchObject([invalid, invalid])
    expect(world.broker.listTopics()).toEqual(['a'])
  })

  it('makes room for a topic that is another one: its id is new, its offsets and configs start anew', async () => {
    const world = new KafkaWorld()
    const topics = [
      {
        name: 'a',
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [{ name: 'max.message.bytes', value: '7' }],
      },
    ]
    const [first] = (await world.send(createTopics, 7, { topics, validateOnly: false })).topics
    await world.broker.publish('a', 'x')
    expect(world.kafka.configs.of(first?.topicId ?? '').maxMessageBytes).toBe(7)
    await remove(world, ['a'])
    expect(world.kafka.configs.of(first?.topicId ?? '').maxMessageBytes).toBe(1_048_588)
    const again = topics.map((topic) => ({ ...topic, configs: [] }))
    const [second] = (await world.send(createTopics, 7, { topics: again, validateOnly: false })).topics
    expect(second?.topicId).not.toBe(first?.topicId)
    expect(world.broker.describe('a').partitions[0]).toMatchObject({ start: 0, end: 0 })
    expect(world.kafka.configs.of(second?.topicId ?? '').maxMessageBytes).toBe(1_048_588)
  })

  it('makes room for a topic that knows neither the producers nor the groups of the one before', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders')
    for (const sequence of [0, 1]) await world.produce({ producer: by(5, sequence) })
    const topics = [
      { name: 'orders', partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: '' }] },
    ]
    const group = { groupId: 'g', generationIdOrMemberEpoch: -1, memberId: '' }
    await world.send(offsetCommit, 9, { ...group, topics })
    const committed = async () => {
      const asked = {
        groupId: 'g',
        topics: [{ name: 'orders', partitionIndexes: [0] }],
        requireStable: false,
      }
      const { topics: found } = await world.send(offsetFetch, 7, asked)
      return found[0]?.partitions[0]?.committedOffset
    }
    expect(await committed()).toBe(2)
    await remove(world, ['orders'])
    await world.broker.createTopic('orders')
    expect(await committed()).toBe(-1)
    // Were the producer known, its first batch would be a duplicate, and answered with an offset without an append.
    expect(await world.produce({ producer: by(5, 0) })).toMatchObject({ errorCode: 0, baseOffset: 0 })
    expect(world.broker.describe('orders').partitions[0]).toMatchObject({ end: 1 })
  })

  it('deletes for good: a crash brings neither the topic back nor its configs', async () => {
    const disk = fileDisk()
    const { world, crash } = await bootKafka(disk)
    await world.kafka.configs.create('a', 1, { 'max.message.bytes': '7' })
    await remove(world, ['a'])
    crash()
    const { world: next } = await bootKafka(disk)
    expect(next.broker.listTopics()).toEqual([])
    expect([...next.kafka.parts.engine.meta.scan('kafka/config/')]).toEqual([])
  })

  it('forgets the configs also of a topic that is deleted in process', async () => {
    const world = new KafkaWorld()
    await world.kafka.configs.create('a', 1, { 'max.message.bytes': '7' })
    await world.broker.deleteTopic('a')
    expect([...world.kafka.parts.engine.meta.scan('kafka/config/')]).toEqual([])
  })

  it('says that it is late where the disk is', async () => {
    const engine = memoryEngine({ clock: new ManualClock() })
    const slow = changedEngine(engine, { deleteLog: () => new Promise(() => {}) })
    const world = new KafkaWorld({ engine: slow })
    await world.broker.createTopic('a')
    const answered = remove(world, ['a'])
    await world.clock.advance(1_000)
    expect(await answered).toMatchObject([{ name: 'a', errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT }])
  })

  it('waits for as long as it takes where a client gives no time', async () => {
    const world = new KafkaWorld()
    await world.broker.createTopic('a')
    const topics = [{ name: 'a', topicId: NO_UUID }]
    const { responses } = await world.send(deleteTopics, 6, { topics, timeoutMs: 0 })
    expect(responses).toMatchObject([{ errorCode: 0 }])
  })
})
