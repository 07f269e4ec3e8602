import { describe, expect, it } from 'vitest'
import { encodeMarker } from '../../../src/log/format/control.ts'
import { KAFKA_ERRORS } from '../../../src/wire/errors.ts'
import { fetch } from '../../../src/wire/messages/01-fetch.ts'
import { NO_UUID } from '../../../src/wire/uuid.ts'
import { DataWorld, type FetchedPartition, type FetchParts } from '../../support/kafka-data.ts'
import { batchOf, by, positionsOf, recordsOf, START_MS } from '../../support/record-batches.ts'
import { watch } from '../../support/world.ts'

async function worldOf(partitions = 1): Promise<DataWorld> {
  const world = new DataWorld()
  await world.broker.createTopic('orders', { partitions })
  return world
}

function textsOf({ records }: FetchedPartition): (string | null)[] {
  return recordsOf(records as Uint8Array).map(({ value }) => value)
}

const batchBytes = batchOf({ values: ['a', 'b', 'c'] }).length

/** Ends the transaction of producer 1, as its coordinator does. */
function end(world: DataWorld, commit: boolean): void {
  const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
  const options = { baseOffset: 0, leaderEpoch: 0, producerId: 1, producerEpoch: 0, timestamp: START_MS }
  const bytes = encodeMarker({ commit, coordinatorEpoch: 0 }, options)
  log.tryAppend({ count: 1, sizeBytes: bytes.length, columns: null, bytes, producer: null })
}

/** Without the check of who may: that is the coordinator's. */
function produceIn(world: DataWorld, values: readonly string[], sequence: number, id = 1): void {
  const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
  const bytes = batchOf({ values, producer: by(id, sequence, 0, true) })
  log.tryAppend({ count: values.length, sizeBytes: bytes.length, columns: null, bytes, producer: null })
}

describe('Fetch', () => {
  it('brings what was produced and what was published, in every version', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b'] })
    await world.broker.publish('orders', 'c')
    for (let version = 4; version <= 18; version++) {
      const fetched = await world.fetch({ version })
      expect(textsOf(fetched)).toEqual(['a', 'b', 'c'])
      expect(fetched).toMatchObject({
        partitionIndex: 0,
        errorCode: KAFKA_ERRORS.NONE,
        highWatermark: 3,
        lastStableOffset: 3,
        logStartOffset: version < 5 ? -1 : 0,
        abortedTransactions: null,
        preferredReadReplica: -1,
      })
    }
  })

  it('brings no bytes, and never null, where there is nothing', async () => {
    const world = await worldOf()
    for (const version of [4, 12, 18]) {
      const { records } = await world.fetch({ version })
      expect(records).toEqual(new Uint8Array(0))
    }
    const failed = await world.fetch({ topic: 'missing' })
    expect(failed.records).toEqual(new Uint8Array(0))
  })

  it('brings the whole batch in which the offset lies', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b', 'c'] })
    await world.produce({ values: ['d'] })
    expect(textsOf(await world.fetch({ offset: 1 }))).toEqual(['a', 'b', 'c', 'd'])
  })

  it('brings whole batches up to the bytes of a partition, and the first one whatever its size', async () => {
    const world = await worldOf()
    for (let i = 0; i < 3; i++) await world.produce({ values: ['a', 'b', 'c'] })
    const sizes = async (partitionMaxBytes: number): Promise<number> =>
      positionsOf((await world.fetch({ partitionMaxBytes })).records as Uint8Array).length
    expect(await sizes(0)).toBe(1)
    expect(await sizes(2 * batchBytes - 1)).toBe(1)
    expect(await sizes(2 * batchBytes)).toBe(2)
    expect(await sizes(10 * batchBytes)).toBe(3)
  })

  it('fills a response up to its bytes, in the order that is asked for', async () => {
    const world = await worldOf(3)
    for (const partition of [0, 1, 2]) await world.produce({ values: ['a', 'b', 'c'] }, { partition })
    const wanted = [2, 0, 1].map((partition) => ({
      partition,
      fetchOffset: 0,
      partitionMaxBytes: 1_000,
    }))
    const counts = async (maxBytes: number): Promise<number[][]> => {
      const body = { ...world.fetchBody({}), maxBytes, topics: [{ topic: 'orders', partitions: wanted }] }
      const { responses } = await world.send(fetch, 12, body)
      return (responses[0]?.partitions ?? []).map(({ partitionIndex, records }) => [
        partitionIndex,
        positionsOf(records as Uint8Array).length,
      ])
    }
    expect(await counts(1)).toEqual([
      [2, 1],
      [0, 0],
      [1, 0],
    ])
    expect(await counts(2 * batchBytes - 1)).toEqual([
      [2, 1],
      [0, 0],
      [1, 0],
    ])
    expect(await counts(2 * batchBytes)).toEqual([
      [2, 1],
      [0, 1],
      [1, 0],
    ])
    expect(await counts(1_000)).toEqual([
      [2, 1],
      [0, 1],
      [1, 1],
    ])
  })

  it('says where the log begins and ends to who asks outside of it', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b'] })
    await world.produce({ values: ['c'] })
    await world.kafka.parts.topics.require('orders').partitionAt(0).trim(2)
    const outside = {
      errorCode: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE,
      highWatermark: 3,
      logStartOffset: 2,
      records: new Uint8Array(0),
    }
    expect(await world.fetch({ offset: 1 })).toMatchObject(outside)
    expect(await world.fetch({ offset: 4 })).toMatchObject(outside)
    expect(await world.fetch({ offset: 3 })).toMatchObject({ errorCode: KAFKA_ERRORS.NONE })
  })

  it('knows topics by name up to version 12, and by id from then on', async () => {
    const world = await worldOf()
    await world.produce()
    expect(await world.fetch({ topic: 'missing' })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
    })
    expect(await world.fetch({ partition: 1 })).toMatchObject({
      errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
    })
    const body = world.fetchBody({ version: 13 })
    const partitions = body.topics[0]?.partitions ?? []
    const { responses } = await world.send(fetch, 13, { ...body, topics: [{ topicId: NO_UUID, partitions }] })
    expect(responses).toMatchObject([
      { topicId: NO_UUID, partitions: [{ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID }] },
    ])
  })

  it('checks the leader epoch of the client', async () => {
    const world = await worldOf()
    await world.produce()
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    ;(log.marks as { epoch: number }).epoch = 3
    const code = async (currentLeaderEpoch: number): Promise<number> =>
      (await world.fetch({ currentLeaderEpoch })).errorCode
    expect(await code(-1)).toBe(KAFKA_ERRORS.NONE)
    expect(await code(2)).toBe(KAFKA_ERRORS.FENCED_LEADER_EPOCH)
    expect(await code(3)).toBe(KAFKA_ERRORS.NONE)
    expect(await code(4)).toBe(KAFKA_ERRORS.UNKNOWN_LEADER_EPOCH)
    const hinted = await world.send(fetch, 16, world.fetchBody({ version: 16, currentLeaderEpoch: 2 }))
    expect(hinted.responses[0]?.partitions[0]?.currentLeader).toEqual({ leaderId: 0, leaderEpoch: 3 })
    expect(hinted.nodeEndpoints).toMatchObject([{ nodeId: 0, host: 'localhost', port: 9092 }])
  })

  it('sends who asks the wrong node to the leader', async () => {
    const world = new DataWorld({ nodes: 2 })
    await world.broker.createTopic('orders')
    const leader = world.kafka.cluster.leaderOf(world.topicId(), 0).id
    const sender = { node: 1 - leader }
    const refused = { errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER }
    expect(await world.fetch({ sender, maxWaitMs: 1_000 })).toMatchObject(refused)
    const { responses, nodeEndpoints } = await world.send(fetch, 16, world.fetchBody({ version: 16 }), sender)
    expect(responses[0]?.partitions[0]).toMatchObject({
      ...refused,
      currentLeader: { leaderId: leader, leaderEpoch: 0 },
    })
    expect(nodeEndpoints).toMatchObject([{ nodeId: leader, port: 9092 + leader }])
  })
})

describe('a fetch that tells the epoch of its last record', () => {
  async function diverged(): Promise<DataWorld> {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b', 'c'] })
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    // As a log that lost its third record, and went on in epoch 2.
    log.epochEnd = (epoch) =>
      epoch > 2 ? undefined : epoch === 2 ? { epoch, endOffset: 3 } : { epoch: 0, endOffset: 2 }
    return world
  }

  it('is told where that epoch ended, if it has read beyond', async () => {
    const world = await diverged()
    expect(await world.fetch({ offset: 3, lastFetchedEpoch: 0, maxWaitMs: 1_000 })).toMatchObject({
      errorCode: KAFKA_ERRORS.NONE,
      divergingEpoch: { epoch: 0, endOffset: 2 },
      highWatermark: 3,
      records: new Uint8Array(0),
    })
    expect(await world.fetch({ offset: 2, lastFetchedEpoch: 1 })).toMatchObject({
      divergingEpoch: { epoch: 0, endOffset: 2 },
    })
  })

  it('reads on where it has read nothing else', async () => {
    const world = await diverged()
    for (const wanted of [
      { offset: 2, lastFetchedEpoch: 0 },
      { offset: 2, lastFetchedEpoch: 2 },
    ]) {
      const fetched = await world.fetch(wanted)
      expect(fetched.divergingEpoch).toEqual({ epoch: -1, endOffset: -1 })
      expect(textsOf(fetched)).toEqual(['a', 'b', 'c'])
    }
  })

  it('is out of range with an epoch that nobody knows', async () => {
    const world = await diverged()
    expect(await world.fetch({ offset: 2, lastFetchedEpoch: 5 })).toMatchObject({
      errorCode: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE,
    })
  })
})

describe('a fetch with read_committed', () => {
  const committed = { isolationLevel: 1 }

  it('stops before an open transaction, and one without it does not', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a'] })
    produceIn(world, ['b'], 0)
    await world.produce({ values: ['c'] })
    const fetched = await world.fetch(committed)
    expect(textsOf(fetched)).toEqual(['a'])
    expect(fetched).toMatchObject({ highWatermark: 3, lastStableOffset: 1, abortedTransactions: [] })
    expect(textsOf(await world.fetch({}))).toEqual(['a', 'b', 'c'])
    end(world, true)
    expect(textsOf(await world.fetch(committed))).toEqual(['a', 'b', 'c'])
  })

  it('names aborted transactions in the order of their first offsets, also from their middle', async () => {
    const world = await worldOf()
    produceIn(world, ['a'], 0, 2)
    produceIn(world, ['b'], 0, 1)
    produceIn(world, ['c'], 1, 2)
    produceIn(world, ['d'], 1, 1)
    end(world, false)
    const { log } = world.kafka.parts.topics.require('orders').partitionAt(0)
    const options = { baseOffset: 0, leaderEpoch: 0, producerId: 2, producerEpoch: 0, timestamp: START_MS }
    const bytes = encodeMarker({ commit: false, coordinatorEpoch: 0 }, options)
    log.tryAppend({ count: 1, sizeBytes: bytes.length, columns: null, bytes, producer: null })
    const both = [
      { producerId: 2, firstOffset: 0 },
      { producerId: 1, firstOffset: 1 },
    ]
    expect((await world.fetch(committed)).abortedTransactions).toEqual(both)
    expect((await world.fetch({ ...committed, offset: 2 })).abortedTransactions).toEqual(both)
    expect((await world.fetch({})).abortedTransactions).toBeNull()
  })

  it('does not count what is not committed when it waits', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch({ ...committed, maxWaitMs: 1_000 }))
    await world.settle()
    produceIn(world, ['a'], 0)
    await world.settle()
    expect(fetched.state).toBe('waiting')
    end(world, true)
    await world.settle()
    expect(textsOf(fetched.value as FetchedPartition)).toEqual(['a'])
  })
})

describe('a fetch that waits', () => {
  const patient: FetchParts = { maxWaitMs: 1_000 }

  it('is answered as soon as there is something, produced or published', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch(patient))
    await world.clock.advance(500)
    expect(fetched.state).toBe('waiting')
    await world.produce({ values: ['a'] })
    await world.settle()
    expect(textsOf(fetched.value as FetchedPartition)).toEqual(['a'])
    const again = watch(world.fetch({ ...patient, offset: 1 }))
    await world.settle()
    await world.broker.publish('orders', 'b')
    await world.settle()
    expect(textsOf(again.value as FetchedPartition)).toEqual(['b'])
  })

  it('is answered without anything when its time is up', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch(patient))
    await world.clock.advance(1_000)
    expect(fetched.value).toMatchObject({ errorCode: KAFKA_ERRORS.NONE, records: new Uint8Array(0) })
  })

  it('waits until there are as many bytes as it wants, of all its partitions together', async () => {
    const world = await worldOf(2)
    const partitions = [0, 1].map((partition) => ({ partition, fetchOffset: 0, partitionMaxBytes: 1_000 }))
    const body = {
      ...world.fetchBody({ ...patient, minBytes: 3 * batchBytes }),
      topics: [{ topic: 'orders', partitions }],
    }
    const fetched = watch(world.send(fetch, 12, body))
    for (const partition of [0, 1]) {
      await world.produce({ values: ['a', 'b', 'c'] }, { partition })
      await world.settle()
      expect(fetched.state).toBe('waiting')
    }
    await world.produce({ values: ['a', 'b', 'c'] })
    await world.settle()
    expect(fetched.value?.responses[0]?.partitions.map(({ records }) => records?.length)).toEqual([
      2 * batchBytes,
      batchBytes,
    ])
  })

  it('waits for no more bytes than a partition, or a response, may have', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b', 'c'] })
    await world.produce({ values: ['a', 'b', 'c'] })
    const full = watch(world.fetch({ ...patient, minBytes: 1_000, maxBytes: batchBytes }))
    await world.settle()
    expect((full.value as FetchedPartition).records).toHaveLength(batchBytes)
  })

  it('does not wait where one of its partitions has an error to tell', async () => {
    const world = await worldOf()
    const body = world.fetchBody(patient)
    const partitions = [
      ...(body.topics[0]?.partitions ?? []),
      { partition: 5, fetchOffset: 0, partitionMaxBytes: 1 },
    ]
    const fetched = watch(world.send(fetch, 12, { ...body, topics: [{ topic: 'orders', partitions }] }))
    await world.settle()
    expect(fetched.value?.responses[0]?.partitions.map(({ errorCode }) => errorCode)).toEqual([
      KAFKA_ERRORS.NONE,
      KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION,
    ])
  })

  it('does not wait where nothing is wanted', async () => {
    const world = await worldOf()
    const fetched = watch(world.send(fetch, 12, { ...world.fetchBody(patient), topics: [] }))
    await world.settle()
    expect(fetched.value).toMatchObject({ responses: [] })
  })

  it('is told when what it waits for is evicted', async () => {
    const world = await worldOf()
    await world.produce({ values: ['a', 'b', 'c'] })
    const fetched = watch(world.fetch({ ...patient, minBytes: 1_000 }))
    await world.settle()
    await world.kafka.parts.topics.require('orders').partitionAt(0).trim(3)
    await world.settle()
    expect(fetched.value).toMatchObject({ errorCode: KAFKA_ERRORS.OFFSET_OUT_OF_RANGE, logStartOffset: 3 })
  })

  it('is told when its topic is deleted, by name and by id', async () => {
    const world = await worldOf()
    const byName = watch(world.fetch(patient))
    const byId = watch(world.fetch({ ...patient, version: 13 }))
    await world.settle()
    await world.broker.deleteTopic('orders')
    await world.settle()
    expect(byName.value).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION })
    expect(byId.value).toMatchObject({ errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_ID })
  })

  it('is told when the broker closes, and keeps it from nothing', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch(patient))
    await world.settle()
    await world.broker.close()
    expect(fetched.value).toMatchObject({ errorCode: KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER })
  })

  it('ends with its connection, reads nothing more, and leaves nothing behind', async () => {
    const world = await worldOf()
    const gone = new AbortController()
    const sender = { client: { signal: gone.signal } }
    const fetched = watch(world.fetch({ ...patient, sender }))
    await world.settle()
    const { watchers } = world.kafka.parts.topics.require('orders').partitionAt(0)
    expect(watchers.size).toBe(1)
    expect(world.kafka.parts.ctx.due.size).toBe(1)
    gone.abort()
    await world.settle()
    const nothing = { errorCode: KAFKA_ERRORS.NONE, records: new Uint8Array(0) }
    expect(fetched.value).toMatchObject(nothing)
    expect(watchers.size).toBe(0)
    expect(world.kafka.parts.ctx.due.size).toBe(0)
    const late = watch(world.fetch({ ...patient, sender }))
    await world.settle()
    expect(late.value).toMatchObject(nothing)
    await world.produce()
    expect(await world.fetch({ sender })).toMatchObject(nothing)
  })

  it('keeps the broker from nothing: it is idle', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch(patient))
    const idle = watch(world.broker.idle())
    await world.settle()
    expect([fetched.state, idle.state]).toEqual(['waiting', 'resolved'])
  })

  it('is woken once for what is published in one go', async () => {
    const world = await worldOf()
    const fetched = watch(world.fetch(patient))
    await world.settle()
    await world.broker.topic('orders').publishAll(['a', 'b', 'c'].map((value) => ({ value })))
    await world.settle()
    expect(textsOf(fetched.value as FetchedPartition)).toEqual(['a', 'b', 'c'])
  })
})
