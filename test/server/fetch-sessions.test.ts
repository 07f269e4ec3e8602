import { describe, expect, it } from 'vitest'
import { FetchSessions, type SessionRequest, type Wanted } from '../../src/server/fetch-sessions.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import type { ResponseOf } from '../../src/wire/api.ts'
import { MAX_INT32 } from '../../src/wire/constants.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { NO_UUID } from '../../src/wire/uuid.ts'
import { DataWorld } from '../support/kafka-data.ts'
import { positionsOf } from '../support/record-batches.ts'
import { watch } from '../support/world.ts'

type FetchResponse = ResponseOf<typeof fetch>

/** A client that fetches from partitions of one topic in a session. */
class Client {
  readonly world: DataWorld
  readonly version: number
  sessionId = 0
  epoch = 0

  constructor(world: DataWorld, version = 12) {
    this.world = world
    this.version = version
  }

  async fetch(
    offsets: Readonly<Record<number, number>>,
    forgotten: readonly number[] = [],
    rest: object = {},
  ): Promise<FetchResponse> {
    const { version } = this
    const ofNobody = Object.keys(offsets).length + forgotten.length === 0
    const named = version < 13 || ofNobody ? { topic: 'orders' } : { topicId: this.world.topicId() }
    const partitions = Object.entries(offsets).map(([partition, fetchOffset]) => {
      return { partition: Number(partition), fetchOffset, partitionMaxBytes: 1_000 }
    })
    const response = await this.world.send(fetch, version, {
      ...this.world.fetchBody({}),
      sessionId: this.sessionId,
      sessionEpoch: this.epoch,
      topics: partitions.length === 0 ? [] : [{ ...named, partitions }],
      forgottenTopicsData: forgotten.length === 0 ? [] : [{ ...named, partitions: forgotten }],
      ...rest,
    })
    if (response.errorCode === KAFKA_ERRORS.NONE) {
      this.sessionId = response.sessionId
      this.epoch++
    }
    return response
  }
}

/** Partition and number of batches of each partition in a response, in its order. */
function told(response: FetchResponse): number[][] {
  return response.responses.flatMap(({ partitions }) =>
    partitions.map(({ partitionIndex, records }) => [
      partitionIndex,
      positionsOf(records as Uint8Array).length,
    ]),
  )
}

async function worldOf(partitions = 3): Promise<DataWorld> {
  const world = new DataWorld()
  await world.broker.createTopic('orders', { partitions })
  return world
}

describe('a fetch session', () => {
  it('tells all partitions at first, and then only those with news', async () => {
    const world = await worldOf()
    await world.produce({}, { partition: 1 })
    const client = new Client(world)
    expect(told(await client.fetch({ 0: 0, 1: 0, 2: 0 }))).toEqual([
      [0, 0],
      [1, 1],
      [2, 0],
    ])
    expect(client.sessionId).toBeGreaterThan(0)
    expect(told(await client.fetch({ 1: 1 }))).toEqual([])
    await world.produce({}, { partition: 2 })
    expect(told(await client.fetch({}))).toEqual([[2, 1]])
    expect(told(await client.fetch({ 2: 1 }))).toEqual([])
  })

  it('takes a log that was trimmed, and a high watermark that grew behind the bytes, for news', async () => {
    const world = await worldOf()
    const client = new Client(world)
    await world.produce({}, { partition: 0 })
    await client.fetch({ 0: 1, 1: 0 })
    await world.kafka.parts.topics.require('orders').partitionAt(0).trim(1)
    expect(told(await client.fetch({}))).toEqual([[0, 0]])
    await world.produce({ values: ['x'.repeat(2_000)] }, { partition: 0 })
    await world.produce({}, { partition: 1 })
    const rest = { maxBytes: 100 }
    expect(told(await client.fetch({}, [], rest))).toEqual([
      [0, 1],
      [1, 0],
    ])
  })

  it('tells an error as long as it lasts, and that it is over', async () => {
    const world = await worldOf()
    const client = new Client(world)
    await client.fetch({ 0: 0, 1: 5 })
    const codes = async (offsets = {}): Promise<unknown[]> =>
      (await client.fetch(offsets)).responses.flatMap(({ partitions }) =>
        partitions.map(({ partitionIndex, errorCode }) => [partitionIndex, errorCode]),
      )
    expect(await codes()).toEqual([[1, KAFKA_ERRORS.OFFSET_OUT_OF_RANGE]])
    expect(await codes()).toEqual([[1, KAFKA_ERRORS.OFFSET_OUT_OF_RANGE]])
    expect(await codes({ 1: 0 })).toEqual([[1, KAFKA_ERRORS.NONE]])
    expect(await codes()).toEqual([])
  })

  it('adds partitions and forgets them', async () => {
    const world = await worldOf()
    for (const partition of [0, 1, 2]) await world.produce({}, { partition })
    const client = new Client(world)
    await client.fetch({ 0: 0, 1: 0 })
    expect(told(await client.fetch({ 2: 0 }, [0]))).toEqual([
      [1, 1],
      [2, 1],
    ])
    expect(world.kafka.fetchSessions.size).toBe(1)
    expect((await client.fetch({}, [1, 2])).sessionId).toBe(0)
    expect(world.kafka.fetchSessions.size).toBe(0)
  })

  it('lets no partition starve: who was told records is asked last the next time', async () => {
    const world = await worldOf()
    for (const partition of [0, 1, 2]) {
      for (let i = 0; i < 3; i++) await world.produce({}, { partition })
    }
    const client = new Client(world)
    const rest = { maxBytes: 1 }
    expect(told(await client.fetch({ 0: 0, 1: 0, 2: 0 }, [], rest))).toEqual([
      [0, 1],
      [1, 0],
      [2, 0],
    ])
    const next = [await client.fetch({ 0: 1 }, [], rest), await client.fetch({}, [], rest)]
    const third = await client.fetch({}, [], rest)
    expect([...next, third].map((response) => told(response).filter(([, batches]) => batches !== 0))).toEqual(
      [[[0, 1]], [[1, 1]], [[2, 1]]],
    )
  })

  it('refuses what it does not expect, and stays as it is', async () => {
    const world = await worldOf()
    const client = new Client(world)
    await client.fetch({ 0: 0 })
    const codes = async (sessionId: number, sessionEpoch: number, version = 12): Promise<number> => {
      const body = { ...world.fetchBody({ version }), topics: [], sessionId, sessionEpoch }
      return (await world.send(fetch, version, body)).errorCode
    }
    const { sessionId } = client
    expect(await codes(sessionId + 1, 1)).toBe(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    expect(await codes(sessionId, 2)).toBe(KAFKA_ERRORS.INVALID_FETCH_SESSION_EPOCH)
    expect(await codes(sessionId, 1, 13)).toBe(KAFKA_ERRORS.FETCH_SESSION_TOPIC_ID_ERROR)
    expect((await client.fetch({})).errorCode).toBe(KAFKA_ERRORS.NONE)
  })

  it('ends at epoch -1, and is replaced at epoch 0', async () => {
    const world = await worldOf()
    const client = new Client(world)
    await client.fetch({ 0: 0 })
    client.epoch = 0
    const before = client.sessionId
    await client.fetch({ 0: 0, 1: 0 })
    expect(world.kafka.fetchSessions.size).toBe(1)
    expect(client.sessionId).toBe(before)
    client.epoch = -1
    expect((await client.fetch({ 0: 0 })).sessionId).toBe(0)
    expect(world.kafka.fetchSessions.size).toBe(0)
  })

  it('notices that another request went on with it while this one waited', async () => {
    const world = await worldOf()
    const client = new Client(world)
    await client.fetch({ 0: 0 })
    const waiting = watch(client.fetch({}, [], { maxWaitMs: 1_000 }))
    await world.settle()
    client.epoch = 2
    await client.fetch({})
    await world.clock.advance(1_000)
    expect(waiting.value).toMatchObject({
      errorCode: KAFKA_ERRORS.INVALID_FETCH_SESSION_EPOCH,
      responses: [],
    })
  })

  it('by ids says when a topic has given its name to another one', async () => {
    const world = await worldOf(1)
    const client = new Client(world, 13)
    await client.fetch({ 0: 0 })
    await world.broker.deleteTopic('orders')
    const code = async (): Promise<number | undefined> =>
      (await client.fetch({})).responses[0]?.partitions[0]?.errorCode
    expect(await code()).toBe(KAFKA_ERRORS.UNKNOWN_TOPIC_ID)
    await world.broker.createTopic('orders')
    expect(await code()).toBe(KAFKA_ERRORS.INCONSISTENT_TOPIC_ID)
  })

  it('by name goes on with the topic that has the name now', async () => {
    const world = await worldOf(1)
    const client = new Client(world)
    await client.fetch({ 0: 0 })
    await world.broker.deleteTopic('orders')
    await world.broker.createTopic('orders')
    await world.produce()
    expect(told(await client.fetch({}))).toEqual([[0, 1]])
  })

  it('is none before version 7, and where nobody wants one', async () => {
    const world = await worldOf()
    for (const version of [4, 6]) {
      const response = await world.send(fetch, version, world.fetchBody({ version }))
      expect(response).toMatchObject({ sessionId: 0, errorCode: KAFKA_ERRORS.NONE })
    }
    expect(world.kafka.fetchSessions.size).toBe(0)
  })
})

describe('the sessions of a server', () => {
  function sessions(): { clock: ManualClock; all: FetchSessions; open: (partitions: number) => number } {
    const clock = new ManualClock()
    let calls = 0
    const all = new FetchSessions(clock, () => calls++ / 2 ** 20)
    const open = (partitions: number): number => {
      const begun = all.begin(request(partitions), 12)
      const response = { errorCode: 0, highWatermark: 0, logStartOffset: 0, records: new Uint8Array(0) }
      return all.end(
        begun,
        begun.wanted.map((wanted) => ({ wanted, response })),
      ).sessionId
    }
    return { clock, all, open }
  }

  function request(partitions: number, sessionId = 0, sessionEpoch = 0): SessionRequest {
    const wanted = Array.from({ length: partitions }, (_, partition) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: 0,
      lastFetchedEpoch: -1,
      partitionMaxBytes: 1,
    }))
    const topics = [{ topic: 'orders', topicId: NO_UUID, partitions: wanted }]
    return { sessionId, sessionEpoch, topics, forgottenTopicsData: [] }
  }

  it('are of 250,000 partitions in all: who wants more has none, and fetches as before', () => {
    const { all, open } = sessions()
    const ids = Array.from({ length: 5 }, () => open(49_000))
    expect(open(5_001)).toBe(0)
    expect(open(5_000)).toBeGreaterThan(0)
    // One that is replaced makes room.
    all.begin(request(1, ids[0]), 12)
    expect(open(49_000)).toBeGreaterThan(0)
    expect(open(1)).toBe(0)
  })

  it('that grow beyond that end, and their clients begin again', () => {
    const { all, open } = sessions()
    for (let i = 0; i < 2; i++) open(100_000)
    const grows = open(1)
    expect(all.begin(request(60_000, grows, 1), 12).errorCode).toBe(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    expect(all.size).toBe(2)
    expect(open(50_000)).toBeGreaterThan(0)
  })

  it('are at most 1,000', () => {
    const { all, open } = sessions()
    const ids = Array.from({ length: 1_000 }, () => open(1))
    expect(ids).not.toContain(0)
    expect(open(5)).toBe(0)
    expect(all.size).toBe(1_000)
  })

  it('make room for a new one when the longest unused was not used for two minutes', async () => {
    const { clock, all, open } = sessions()
    const ids = Array.from({ length: 1_000 }, () => open(2))
    await clock.advance(120_001)
    for (const id of ids.slice(1)) {
      expect(all.begin({ ...request(0, id, 1), topics: [] }, 12).errorCode).toBe(0)
    }
    expect(open(1)).toBeGreaterThan(0)
    expect(all.begin(request(0, ids[0], 1), 12).errorCode).toBe(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    expect(open(1)).toBe(0)
    expect(open(2)).toBe(0)
  })

  it('make room for a larger one by the smallest that is two minutes old', async () => {
    const { clock, all, open } = sessions()
    const small = open(1)
    const ids = Array.from({ length: 999 }, () => open(2))
    await clock.advance(120_001)
    for (const id of [small, ...ids]) all.begin({ ...request(0, id, 1), topics: [] }, 12)
    expect(open(3)).toBeGreaterThan(0)
    expect(all.begin(request(0, small, 2), 12).errorCode).toBe(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    expect(open(2)).toBe(0)
  })

  it('have ids of their own, whatever chance says', () => {
    const all = new FetchSessions(new ManualClock(), () => 1 - 2 ** -53)
    const response = { errorCode: 0, highWatermark: 0, logStartOffset: 0, records: new Uint8Array(0) }
    const ids = [1, 2, 3].map(() => {
      const begun = all.begin(request(1), 12)
      return all.end(begun, [{ wanted: begun.wanted[0] as Wanted, response }]).sessionId
    })
    expect(ids).toEqual([MAX_INT32 - 1, MAX_INT32, 1])
  })

  it('count their epochs from 1 again after the largest number there is', () => {
    const { all, open } = sessions()
    const sessionId = open(1)
    const { session } = all.begin({ ...request(0, sessionId, 1), topics: [] }, 12)
    if (session !== null) session.epoch = MAX_INT32
    expect(all.begin({ ...request(0, sessionId, MAX_INT32), topics: [] }, 12).epoch).toBe(1)
  })
})

describe('a request', () => {
  it('that names a partition again means it once, as it was said last', async () => {
    const world = await worldOf()
    const partition = (index: number, fetchOffset: number): object => ({
      partition: index,
      fetchOffset,
      partitionMaxBytes: 1_000,
    })
    const partitions = [partition(0, 9), partition(1, 0), partition(0, 0)]
    const topics = [
      { topic: 'orders', partitions },
      { topic: 'orders', partitions: [partition(1, 7)] },
    ]
    const { responses } = await world.send(fetch, 12, { ...world.fetchBody({}), topics } as never)
    expect(responses).toHaveLength(1)
    expect(
      responses[0]?.partitions.map(({ partitionIndex, errorCode }) => [partitionIndex, errorCode]),
    ).toEqual([
      [0, KAFKA_ERRORS.NONE],
      [1, KAFKA_ERRORS.OFFSET_OUT_OF_RANGE],
    ])
  })
})
