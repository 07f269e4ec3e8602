import { describe, expect, it } from 'vitest'
import { writeInt16, writeInt32, writeInt64 } from '../../../src/log/format/integers.ts'
import {
  ATTRIBUTES_AT,
  BASE_TIMESTAMP_AT,
  COUNT_AT,
  CRC_AT,
  EPOCH_AT,
  IN_PROCESS,
  LAST_DELTA_AT,
  LOG_APPEND_TIME,
  MAGIC_AT,
  MAX_TIMESTAMP_AT,
  PRODUCER_EPOCH_AT,
  SEQUENCE_AT,
  SIZE_AT,
  TRANSACTIONAL,
} from '../../../src/log/format/layout.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import { Disconnect } from '../../../src/server/handler.ts'
import { produceTo } from '../../../src/server/producing.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { produce } from '../../../src/wire/messages/00-produce.ts'
import { createTopics } from '../../../src/wire/messages/19-create-topics.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { DataWorld } from '../../support/kafka-data.ts'
import { batchOf, by, changed, recordsOf, START_MS } from '../../support/record-batches.ts'
import { Hands, watch } from '../../support/world.ts'

const OK = { errorCode: KAFKA_ERRORS.NONE, errorMessage: null }

async function worldOf(options: ConstructorParameters<typeof DataWorld>[0] = {}): Promise<DataWorld> {
  const world = new DataWorld(options)
  await world.broker.createTopic('orders')
  return world
}

describe('Produce', () => {
  it('appends in every version, and what was produced is fetched', async () => {
    const world = await worldOf()
    for (let version = 3; version <= 13; version++) {
      const produced = await world.produce({ values: [`v${version}`] }, { version })
      expect(produced).toMatchObject({ ...OK, baseOffset: version - 3, logAppendTimeMs: -1 })
      expect(produced.logStartOffset).toBe(version < 5 ? -1 : 0)
    }
    expect(await world.values({ offset: 9 })).toEqual(['v12', 'v13'])
  })

  it('tells who speaks of message sets that this version is not supported', async () => {
    const world = await worldOf()
    expect(await world.produce({}, { version: 2 })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNSUPPORTED_VERSION,
    })
  })

  it('answers each partition for itself, in the order of the request', async () => {
    const world = await worldOf()
    await world.broker.createTopic('payments', { partitions: 2 })
    const records = batchOf()
    const { responses } = await world.send(produce, 9, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 1_000,
      topicData: [
        {
          name: 'payments',
          partitionData: [
            { index: 1, records },
            { index: 7, records },
            { index: 0, records: null },
          ],
        },
        { name: 'missing', partitionData: [{ index: 0, records }] },
        { name: 'orders', partitionData: [{ index: 0, records }] },
      ],
    })
    expect(
      responses.map(({ name, partitionResponses }) => [
        name,
        ...partitionResponses.map(({ index, errorCode }) => [index, errorCode]),
      ]),
    ).toEqual([
      [
        'payments',
        [1, KAFKA_ERRORS.NONE],
        [7, KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION],
        [0, KAFKA_ERRORS.INVALID_RECORD],
      ],
      ['missing', [0, KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION]],
      ['orders', [0, KAFKA_ERRORS.NONE]],
    ])
  })

  it('finds topics by their ids from version 13 on, and knows no others', async () => {
    const world = await worldOf()
    const { responses } = await world.send(produce, 13, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 1_000,
      topicData: [
        { topicId: NO_UUID, partitionData: [{ index: 0, records: batchOf() }] },
        { topicId: world.topicId(), partitionData: [{ index: 0, records: batchOf() }] },
      ],
    })
    expect(responses.map((topic) => topic.partitionResponses[0]?.errorCode)).toEqual([
      KAFKA_ERRORS.UNKNOWN_TOPIC_ID,
      KAFKA_ERRORS.NONE,
    ])
  })

  it('sends who asks the wrong node to the leader', async () => {
    const world = await worldOf({ nodes: 2 })
    const leader = world.kafka.cluster.leaderOf(world.topicId(), 0).id
    const sender = { node: 1 - leader }
    const response = await world.send(produce, 10, world.produceBody({}, { version: 10 }), sender)
    expect(response.responses[0]?.partitionResponses[0]).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER,
      currentLeader: { leaderId: leader, leaderEpoch: 0 },
    })
    expect(response.nodeEndpoints).toMatchObject([{ nodeId: leader, port: 9092 + leader }])
    const older = await world.send(produce, 9, world.produceBody({}, {}), sender)
    expect(older.responses[0]?.partitionResponses[0]).toMatchObject({
      errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER,
      currentLeader: { leaderId: -1 },
    })
    expect(await world.produce({}, { sender: { node: leader } })).toMatchObject(OK)
  })

  it('counts its records as published, and hands them to readers in process', async () => {
    const world = await worldOf()
    const got: unknown[] = []
    await world.broker.subscribe('orders', (delivery) => got.push(delivery.value))
    await world.produce({ values: ['a', 'b'] })
    await world.settle()
    expect(got).toEqual([new TextEncoder().encode('a'), new TextEncoder().encode('b')])
    const [topic] = world.broker.metrics().topics
    expect(topic).toMatchObject({ published: 2, publishedBytes: batchOf({ values: ['a', 'b'] }).length })
  })
})

describe('acknowledgements of a produce', () => {
  it('may be -1, 0 or 1', async () => {
    const world = await worldOf()
    expect(await world.produce({}, { acks: 1 })).toMatchObject({ ...OK, baseOffset: 0 })
    expect(await world.produce({}, { acks: -1 })).toMatchObject({ ...OK, baseOffset: 1 })
    for (const acks of [2, -2]) {
      expect(await world.produce({}, { acks })).toMatchObject({
        errorCode: KAFKA_ERRORS.INVALID_REQUIRED_ACKS,
        baseOffset: -1,
      })
    }
    expect(await world.values()).toHaveLength(2)
  })

  it('that nobody wants are none', async () => {
    const world = await worldOf()
    expect(await world.trySend(produce, 9, world.produceBody({}, { acks: 0 }))).toBeNull()
    expect(await world.values()).toEqual(['a'])
  })

  it('that nobody wants close the connection where there is an error', async () => {
    const world = await worldOf()
    const unknown = world.produceBody({}, { acks: 0, topic: 'missing' })
    await expect(world.trySend(produce, 9, unknown)).rejects.toThrow(Disconnect)
    await expect(world.trySend(produce, 9, unknown)).rejects.toThrow('UNKNOWN_TOPIC_OR_PARTITION')
  })
})

describe('a batch that must not be sent', () => {
  const cases: readonly [string, Uint8Array | null, keyof typeof KAFKA_ERRORS][] = [
    ['is none', null, 'INVALID_RECORD'],
    ['is empty', new Uint8Array(0), 'INVALID_RECORD'],
    ['is shorter than a header', batchOf().subarray(0, 40), 'INVALID_RECORD'],
    ['is two', new Uint8Array([...batchOf(), ...batchOf()]), 'INVALID_RECORD'],
    ['is cut short', batchOf().subarray(0, 65), 'INVALID_RECORD'],
    [
      'says it is shorter than a header',
      changed(batchOf(), (bytes) => writeInt32(bytes, SIZE_AT, 20)),
      'CORRUPT_MESSAGE',
    ],
    [
      'has the magic of a message set',
      changed(batchOf(), (bytes) => bytes.fill(1, MAGIC_AT, MAGIC_AT + 1)),
      'INVALID_RECORD',
    ],
    ['has a sum that is wrong', batchOf().fill(9, CRC_AT, CRC_AT + 1), 'CORRUPT_MESSAGE'],
    ['has a base offset', changed(batchOf(), (bytes) => writeInt64(bytes, 0, 5)), 'INVALID_RECORD'],
    ['has no records', changed(batchOf(), (bytes) => writeInt32(bytes, COUNT_AT, 0)), 'INVALID_RECORD'],
    [
      'leaves out offsets',
      changed(batchOf(), (bytes) => writeInt32(bytes, LAST_DELTA_AT, 3)),
      'INVALID_RECORD',
    ],
    [
      'says more records than it has room for',
      changed(batchOf(), (bytes) => {
        writeInt32(bytes, COUNT_AT, 1_000)
        writeInt32(bytes, LAST_DELTA_AT, 999)
      }),
      'INVALID_RECORD',
    ],
    ['is a control batch', batchOf({ producer: by(1, 0, 0, true), control: true }), 'INVALID_RECORD'],
    [
      'claims to come from this process',
      changed(batchOf(), (bytes) => writeInt16(bytes, ATTRIBUTES_AT, IN_PROCESS)),
      'INVALID_RECORD',
    ],
    [
      'is of a transaction and of no producer',
      changed(batchOf(), (bytes) => writeInt16(bytes, ATTRIBUTES_AT, TRANSACTIONAL)),
      'INVALID_RECORD',
    ],
    [
      'has a producer and no sequence',
      changed(batchOf({ producer: by(1, 0) }), (bytes) => writeInt32(bytes, SEQUENCE_AT, -1)),
      'INVALID_RECORD',
    ],
    [
      'has a producer and no epoch',
      changed(batchOf({ producer: by(1, 0) }), (bytes) => writeInt16(bytes, PRODUCER_EPOCH_AT, -1)),
      'INVALID_RECORD',
    ],
    [
      'has a compression that nobody knows',
      changed(batchOf(), (bytes) => writeInt16(bytes, ATTRIBUTES_AT, 5)),
      'UNSUPPORTED_COMPRESSION_TYPE',
    ],
    ['has a time that is far ahead', batchOf({ timestamp: START_MS + 7_200_000 }), 'INVALID_TIMESTAMP'],
  ]

  it.each(cases)('because it %s is refused, and nothing of it appended', async (_, batch, error) => {
    const world = await worldOf()
    const produced = await world.produce(batch)
    expect(produced).toMatchObject({ errorCode: KAFKA_ERRORS[error], baseOffset: -1, logAppendTimeMs: -1 })
    expect(produced.errorMessage).toEqual(expect.any(String))
    expect(await world.values()).toEqual([])
  })

  it('because it is larger than max.message.bytes is too large', async () => {
    const world = await worldOf()
    const value = 'x'.repeat(1_048_588)
    expect(await world.produce({ values: [value] })).toMatchObject({
      errorCode: KAFKA_ERRORS.MESSAGE_TOO_LARGE,
    })
    const exact = 1_048_588 - (batchOf({ values: [value] }).length - value.length)
    expect(await world.produce({ values: [value.slice(0, exact)] })).toMatchObject(OK)
  })

  it('because it is more than the topic retains is too large', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { retention: { records: 2 } })
    expect(await world.produce({ values: ['a', 'b', 'c'] })).toMatchObject({
      errorCode: KAFKA_ERRORS.MESSAGE_TOO_LARGE,
    })
  })

  it('because its client is too old for zstd is refused, and a newer client is not', async () => {
    const world = await worldOf()
    const zstd = changed(batchOf(), (bytes) => writeInt16(bytes, ATTRIBUTES_AT, 4))
    const refused = { errorCode: KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE }
    expect(await world.produce(zstd, { version: 6 })).toMatchObject(refused)
    expect(await world.produce(zstd, { version: 7 })).toMatchObject(OK)
  })
})

describe('a batch on its way into the log', () => {
  it('is stored as it came but for its offset and epoch, whatever compresses it', async () => {
    const world = await worldOf()
    const plain = batchOf({ values: ['a', 'b', 'c'], headers: { trace: '1' } })
    const sent = [0, 1, 2, 3, 4].map((type) =>
      changed(plain, (bytes) => writeInt16(bytes, ATTRIBUTES_AT, type)),
    )
    for (const batch of sent) expect(await world.produce(batch)).toMatchObject(OK)
    for (const [i, batch] of sent.entries()) {
      const { records } = await world.fetch({ offset: 3 * i, partitionMaxBytes: 1 })
      const expected = batch.slice()
      writeInt64(expected, 0, 3 * i)
      writeInt32(expected, EPOCH_AT, 0)
      expect(records).toEqual(expected)
    }
  })

  it('gets the epoch of the log, whatever it says', async () => {
    const world = await worldOf()
    const batch = batchOf()
    writeInt32(batch, EPOCH_AT, 77)
    expect(await world.produce(batch)).toMatchObject(OK)
    const { records } = await world.fetch()
    expect(readHeader(records as Uint8Array, 0).leaderEpoch).toBe(0)
  })

  it('keeps its own times, and a claim to have the time of the broker is taken back', async () => {
    const world = await worldOf()
    const batch = changed(batchOf({ values: ['a', 'b'], timestamp: 7 }), (bytes) =>
      writeInt16(bytes, ATTRIBUTES_AT, LOG_APPEND_TIME),
    )
    expect(await world.produce(batch)).toMatchObject({ ...OK, logAppendTimeMs: -1 })
    const { records } = await world.fetch()
    expect(recordsOf(records as Uint8Array).map(({ timestamp }) => timestamp)).toEqual([7, 8])
  })
})

async function configured(configs: Readonly<Record<string, string>>): Promise<DataWorld> {
  const world = new DataWorld()
  const { topics } = await world.send(createTopics, 7, {
    timeoutMs: 1_000,
    validateOnly: false,
    topics: [
      {
        name: 'orders',
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
      },
    ],
  })
  expect(topics[0]?.errorMessage).toBeNull()
  return world
}

describe('a topic whose records have the time of the broker', () => {
  it('gives all records of a batch the time of their append, and tells it', async () => {
    const world = await configured({ 'message.timestamp.type': 'LogAppendTime' })
    await world.clock.advance(5)
    expect(await world.produce({ values: ['a', 'b'], timestamp: 7 })).toMatchObject({
      ...OK,
      logAppendTimeMs: START_MS + 5,
    })
    const { records } = await world.fetch()
    expect(recordsOf(records as Uint8Array)).toMatchObject([
      { value: 'a', timestamp: START_MS + 5 },
      { value: 'b', timestamp: START_MS + 5 },
    ])
  })

  it('does not mend a sum that was wrong', async () => {
    const world = await configured({ 'message.timestamp.type': 'LogAppendTime' })
    expect(await world.produce(batchOf().fill(9, CRC_AT, CRC_AT + 1))).toMatchObject({
      errorCode: KAFKA_ERRORS.CORRUPT_MESSAGE,
    })
  })

  it('takes any time that a batch says', async () => {
    const world = await configured({ 'message.timestamp.type': 'LogAppendTime' })
    expect(await world.produce({ timestamp: START_MS * 2 })).toMatchObject(OK)
  })
})

describe('the bounds of timestamps', () => {
  it('are as far as the topic says', async () => {
    const world = await configured({
      'message.timestamp.before.max.ms': '1000',
      'message.timestamp.after.max.ms': '1000',
    })
    const refused = { errorCode: KAFKA_ERRORS.INVALID_TIMESTAMP }
    expect(await world.produce({ timestamp: START_MS + 1_001 })).toMatchObject(refused)
    expect(await world.produce({ timestamp: START_MS + 1_000 })).toMatchObject(OK)
    expect(await world.produce({ timestamp: START_MS - 1_000 })).toMatchObject(OK)
    expect(await world.produce({ timestamp: START_MS - 1_001 })).toMatchObject(refused)
  })

  it('are none for records without a time', async () => {
    const world = await configured({ 'message.timestamp.before.max.ms': '1000' })
    const timeless = changed(batchOf(), (bytes) => {
      writeInt64(bytes, BASE_TIMESTAMP_AT, -1)
      writeInt64(bytes, MAX_TIMESTAMP_AT, -1)
    })
    expect(await world.produce(timeless)).toMatchObject(OK)
  })
})

describe('an idempotent producer', () => {
  it('may start at any sequence, and goes on from there', async () => {
    const world = await worldOf()
    expect(await world.produce({ values: ['a', 'b'], producer: by(4, 100) })).toMatchObject(OK)
    expect(await world.produce({ producer: by(4, 102) })).toMatchObject({ ...OK, baseOffset: 2 })
  })

  it('is told of a gap, and nothing is appended', async () => {
    const world = await worldOf()
    await world.produce({ producer: by(4, 0) })
    const gap = { errorCode: KAFKA_ERRORS.OUT_OF_ORDER_SEQUENCE_NUMBER, baseOffset: -1 }
    expect(await world.produce({ producer: by(4, 2) })).toMatchObject(gap)
    expect(await world.produce({ producer: by(4, 1, 1) })).toMatchObject(gap)
    expect(await world.values()).toEqual(['a'])
  })

  it('is answered the first offset again for each of its last five batches, and not for older ones', async () => {
    const world = await worldOf()
    for (let i = 0; i < 6; i++) await world.produce({ values: [`${i}`], producer: by(4, i) })
    for (let i = 1; i < 6; i++) {
      const repeated = await world.produce({ values: [`${i}`], producer: by(4, i) })
      expect(repeated).toMatchObject({ ...OK, baseOffset: i })
    }
    expect(await world.produce({ values: ['0'], producer: by(4, 0) })).toMatchObject({
      errorCode: KAFKA_ERRORS.OUT_OF_ORDER_SEQUENCE_NUMBER,
    })
    expect(await world.values()).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(world.broker.metrics().topics[0]).toMatchObject({ published: 6, duplicates: 5 })
  })

  it('of an older epoch is told so, and a newer one begins at 0', async () => {
    const world = await worldOf()
    await world.produce({ producer: by(4, 9, 3) })
    expect(await world.produce({ producer: by(4, 0, 4) })).toMatchObject(OK)
    expect(await world.produce({ producer: by(4, 10, 3) })).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_PRODUCER_EPOCH,
    })
  })

  it('begins anew in a topic that was deleted and made again', async () => {
    const world = await worldOf()
    await world.produce({ producer: by(4, 0) })
    await world.broker.deleteTopic('orders')
    await world.broker.createTopic('orders')
    expect(await world.produce({ producer: by(4, 0) })).toMatchObject({ ...OK, baseOffset: 0 })
  })
})

describe('a batch of a transaction', () => {
  it('needs a transactional id', async () => {
    const world = await worldOf()
    expect(await world.produce({ producer: by(4, 0, 0, true) })).toMatchObject({
      errorCode: KAFKA_ERRORS.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    })
  })

  it('is what its producer may send while one is open, and nothing else', async () => {
    const world = await worldOf()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    const bytes = batchOf({ producer: by(4, 0, 0, true) })
    log.tryAppend({ count: 1, sizeBytes: bytes.length, columns: null, bytes, producer: null })
    expect(await world.produce({ producer: by(4, 1) })).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_TXN_STATE,
    })
    expect(await world.produce({ producer: by(5, 1) })).toMatchObject(OK)
  })

  it('is not taken for a partition that is not in the transaction', async () => {
    const world = await worldOf()
    const produced = await world.produce({ producer: by(4, 0, 0, true) }, { transactionalId: 'tx' })
    expect(produced.errorCode).not.toBe(KAFKA_ERRORS.NONE)
    expect(await world.values()).toEqual([])
  })
})

describe('a produce to a full log', () => {
  async function full(): Promise<{ world: DataWorld; hands: Hands }> {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { retention: { records: 2 } })
    const hands = new Hands()
    await world.broker.subscribe('orders', hands.take, { id: 'slow', ack: 'manual' })
    await world.produce({ values: ['a', 'b'] })
    await world.settle()
    return { world, hands }
  }

  it('waits for room, and is appended as soon as there is some', async () => {
    const { world, hands } = await full()
    const produced = watch(world.produce({ values: ['c'] }))
    await world.clock.advance(999)
    expect(produced.state).toBe('waiting')
    hands.last.ack()
    await world.settle()
    expect(produced.value).toMatchObject({ ...OK, baseOffset: 2 })
    expect(await world.values({ offset: 1 })).toEqual(['b', 'c'])
  })

  it('times out with nothing appended', async () => {
    const { world, hands } = await full()
    const produced = watch(world.produce({ values: ['c'] }))
    await world.clock.advance(1_000)
    expect(produced.value).toMatchObject({ errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT, baseOffset: -1 })
    hands.last.ack()
    await world.settle()
    expect(world.broker.describe('orders').partitions).toMatchObject([{ end: 2, waiting: 0 }])
  })

  it('times out at once where there is no time', async () => {
    const { world } = await full()
    const produced = watch(world.produce({ values: ['c'] }, { timeoutMs: -1 }))
    await world.clock.advance(0)
    expect(produced.value).toMatchObject({ errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT })
  })

  it('stands in one line with publishers in process', async () => {
    const { world, hands } = await full()
    const produced = watch(world.produce({ values: ['c'] }))
    await world.settle()
    const published = watch(world.broker.publish('orders', 'd'))
    const again = watch(world.produce({ values: ['e'] }))
    for (let i = 0; i < 3; i++) {
      await world.settle()
      hands.last.ack()
    }
    await world.settle()
    expect(produced.value).toMatchObject({ baseOffset: 2 })
    expect(published.value).toMatchObject({ offset: 3 })
    expect(again.value).toMatchObject({ baseOffset: 4 })
  })

  it('holds its bytes itself while it waits', async () => {
    const { world, hands } = await full()
    const batch = batchOf({ values: ['c'] })
    const partition = world.kafka.parts.topics.require('orders').partitionAt(0)
    const call = { version: 9, acks: -1, timeoutMs: 1_000, transactionalId: null }
    const produced = produceTo(world.kafka, partition, batch, {
      ...call,
      signal: new AbortController().signal,
    })
    batch.fill(0)
    hands.last.ack()
    await world.settle()
    expect(await produced).toMatchObject({ ...OK, baseOffset: 2 })
    expect(await world.values({ offset: 2 })).toEqual(['c'])
  })

  it('ends with its connection, and leaves no listener and no timer', async () => {
    const { world, hands } = await full()
    const gone = new AbortController()
    const produced = watch(world.produce({ values: ['c'] }, { sender: { client: { signal: gone.signal } } }))
    await world.settle()
    gone.abort()
    await world.settle()
    expect(produced.value).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER })
    hands.last.ack()
    await world.settle()
    expect(world.broker.describe('orders').partitions).toMatchObject([{ end: 2, waiting: 0 }])
    const late = await world.produce({ values: ['c', 'd'] }, { sender: { client: { signal: gone.signal } } })
    expect(late).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER })
  })

  it('ends when its topic is deleted, and when the broker closes', async () => {
    const { world } = await full()
    const produced = watch(world.produce({ values: ['c'] }))
    await world.settle()
    await world.broker.deleteTopic('orders')
    await world.settle()
    expect(produced.value).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION })

    const other = await full()
    const closing = watch(other.world.produce({ values: ['c'] }))
    await other.world.settle()
    const closed = other.world.broker.close({ drainMs: 0 })
    await other.world.settle()
    await closed
    expect(closing.value).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER })
  })

  it('without an acknowledgement waits too, and closes the connection when it was in vain', async () => {
    const { world } = await full()
    const body = world.produceBody({ values: ['c'] }, { acks: 0 })
    const sent = world.trySend(produce, 9, body)
    const outcome = watch(sent)
    sent.catch(() => undefined)
    await world.clock.advance(999)
    expect(outcome.state).toBe('waiting')
    await world.clock.advance(1)
    await expect(sent).rejects.toThrow(Disconnect)
  })

  it('is told at once that there is no room where a reader wants it so', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { retention: { records: 2 } })
    const options = { id: 'strict', ack: 'manual', overflow: 'reject' } as const
    await world.broker.subscribe('orders', () => undefined, options)
    await world.produce({ values: ['a', 'b'] })
    await world.settle()
    expect(await world.produce({ values: ['c'] })).toMatchObject({
      errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT,
    })
  })

  it('answers a repeated batch without waiting, since that needs no room', async () => {
    const world = new DataWorld()
    await world.broker.createTopic('orders', { retention: { records: 2 } })
    await world.broker.subscribe('orders', () => undefined, { id: 'slow', ack: 'manual' })
    const batch = { values: ['a', 'b'], producer: by(4, 0) }
    await world.produce(batch)
    await world.settle()
    expect(await world.produce(batch)).toMatchObject({ ...OK, baseOffset: 0 })
  })

  it('takes no later batch of a producer before one that gave up', async () => {
    const { world, hands } = await full()
    const first = watch(world.produce({ values: ['c'], producer: by(4, 0) }, { timeoutMs: 500 }))
    const other = watch(world.produce({ values: ['x'], producer: by(5, 0) }, { timeoutMs: 5_000 }))
    const second = watch(world.produce({ values: ['d'], producer: by(4, 1) }, { timeoutMs: 5_000 }))
    await world.clock.advance(500)
    expect(first.value).toMatchObject({ errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT })
    expect(second.value).toMatchObject({ errorCode: KAFKA_ERRORS.REQUEST_TIMED_OUT })
    expect(other.state).toBe('waiting')
    hands.last.ack()
    await world.settle()
    expect(other.value).toMatchObject(OK)
    const retried = watch(world.produce({ values: ['c'], producer: by(4, 0) }))
    await world.settle()
    hands.last.ack()
    await world.settle()
    expect(retried.value).toMatchObject({ ...OK, baseOffset: 3 })
  })
})
