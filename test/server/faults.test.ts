/** Faults on demand: which requests they happen to, how often, and what is left of the work. */
import { afterEach, describe, expect, it } from 'vitest'
import type { FaultOptions, ObservedRequest } from '../../src/server/faults.ts'
import { mentions } from '../../src/server/request-topics.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { startTestServer, type TestServer, type TestServerOptions } from '../../src/testing/test-server.ts'
import { KAFKA_ERRORS, type KafkaErrorName } from '../../src/wire/errors.ts'
import { listOffsets } from '../../src/wire/messages/02-list-offsets.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { findCoordinator } from '../../src/wire/messages/10-find-coordinator.ts'
import { createTopics } from '../../src/wire/messages/19-create-topics.ts'
import { requestOf, WireClient } from './wire-client.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const kafka = await startTestServer(options)
  await kafka.broker.createTopic('orders', { partitions: 2 })
  ends.push(() => kafka.close())
  return kafka
}

async function connect({ server }: TestServer, node = 0): Promise<WireClient> {
  const { host, port } = server.addresses[node] as { host: string; port: number }
  const client = await WireClient.connect({ host, port })
  ends.push(async () => client.close())
  return client
}

const offsetsOf = (partitionIndex: number, name = 'orders') => ({
  replicaId: -1,
  topics: [{ name, partitions: [{ partitionIndex, timestamp: -1 }] }],
})

async function offsets(client: WireClient, partition = 0): Promise<number | undefined> {
  const { topics } = await client.ask(listOffsets, 1, offsetsOf(partition))
  return topics[0]?.partitions[0]?.errorCode
}

/** What a series of requests is answered. */
async function series(client: WireClient, count: number): Promise<string> {
  let text = ''
  for (let i = 0; i < count; i++) text += (await offsets(client)) === 0 ? '.' : 'x'
  return text
}

async function created(client: WireClient, name: string): Promise<number | undefined> {
  const topics = [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }]
  const answer = await client.ask(createTopics, 4, { topics, timeoutMs: 1_000, validateOnly: false })
  return answer.topics[0]?.errorCode
}

const NOT_LEADER = KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER

describe('an error', () => {
  it('is answered as often as it should, and then no more', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    const fault = kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { api: 'ListOffsets', times: 2 })
    expect(await offsets(client)).toBe(NOT_LEADER)
    expect(await series(client, 3)).toBe('x..')
    expect(fault.hits).toBe(2)
  })

  it('is answered from a request on', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { api: 2, skip: 2, times: 1 })
    expect(await series(client, 5)).toBe('..x..')
  })

  it('is answered until it is removed, or all are', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    const fault = kafka.faults.error('NOT_LEADER_OR_FOLLOWER')
    expect(await series(client, 3)).toBe('xxx')
    fault.remove()
    expect(await series(client, 1)).toBe('.')
    kafka.faults.error('NOT_LEADER_OR_FOLLOWER')
    kafka.faults.clear()
    expect(await series(client, 1)).toBe('.')
  })

  it('comes by chance, which is the same for a seed', async () => {
    const runs: string[] = []
    for (const seed of [1, 1, 2]) {
      const kafka = await start({ seed })
      kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { probability: 0.5 })
      expect(kafka.faults.seed).toBe(seed)
      runs.push(await series(await connect(kafka), 40))
    }
    expect(runs[0]).toBe(runs[1])
    expect(runs[0]).not.toBe(runs[2])
    expect(runs[0]?.replaceAll('.', '').length).toBeGreaterThan(5)
    expect(runs[0]?.replaceAll('x', '').length).toBeGreaterThan(5)
  })

  it.each<[string, FaultOptions, string]>([
    ['an API by name', { api: 'ListOffsets' }, 'xx'],
    ['another API', { api: 'Fetch' }, '..'],
    ['an API by key', { api: 2 }, 'xx'],
    ['a topic', { topic: 'orders' }, 'xx'],
    ['another topic', { topic: 'order' }, '..'],
    ['a partition', { topic: 'orders', partition: 1 }, '.x'],
    ['a client', { clientId: 'test' }, 'xx'],
    ['another client', { clientId: 'tester' }, '..'],
    ['a node', { node: 0 }, 'xx'],
    ['another node', { node: 1 }, '..'],
  ])('may be for %s alone', async (_, options, expected) => {
    const kafka = await start()
    const client = await connect(kafka)
    kafka.faults.error('NOT_LEADER_OR_FOLLOWER', options)
    const codes = [await offsets(client, 0), await offsets(client, 1)]
    expect(codes.map((code) => (code === 0 ? '.' : 'x')).join('')).toBe(expected)
  })

  it('comes before the work, or after it, of which nothing is undone', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    kafka.faults.error('REQUEST_TIMED_OUT', { api: 'CreateTopics', times: 1 })
    expect(await created(client, 'a')).toBe(KAFKA_ERRORS.REQUEST_TIMED_OUT)
    kafka.faults.error('REQUEST_TIMED_OUT', { api: 'CreateTopics', times: 1, when: 'after' })
    expect(await created(client, 'b')).toBe(KAFKA_ERRORS.REQUEST_TIMED_OUT)
    expect(kafka.broker.listTopics().sort()).toEqual(['b', 'orders'])
  })
})

describe('a delay', () => {
  it.each(['before', 'after'] as const)('goes by the clock of the broker: %s', async (when) => {
    const clock = new ManualClock()
    const kafka = await start({ broker: { clock } })
    const client = await connect(kafka)
    kafka.faults.delay(5_000, { api: 'CreateTopics', when })
    const answer = created(client, 'a')
    let done = false
    void answer.then(() => {
      done = true
    })
    const turns = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    }
    await turns()
    await clock.advance(4_999)
    await turns()
    expect(done).toBe(false)
    expect(kafka.broker.listTopics().includes('a')).toBe(when === 'after')
    await clock.advance(1)
    expect(await answer).toBe(0)
  })

  it('leaves nothing behind of a client that goes', async () => {
    const clock = new ManualClock()
    const kafka = await start({ broker: { clock } })
    const client = await connect(kafka)
    const fault = kafka.faults.delay(1_000_000_000)
    client.send(requestOf(listOffsets, 1, offsetsOf(0)))
    while (fault.hits === 0) await new Promise((resolve) => setImmediate(resolve))
    client.close()
    while (kafka.server.connections > 0) await new Promise((resolve) => setImmediate(resolve))
    await kafka.close()
    expect(clock.pending).toBe(0)
  })
})

describe('a connection that is dropped', () => {
  it('is so before the work, or after it', async () => {
    const kafka = await start()
    for (const [when, name] of [
      ['before', 'a'],
      ['after', 'b'],
    ] as const) {
      const client = await connect(kafka)
      kafka.faults.drop({ api: 'CreateTopics', times: 1, when })
      await expect(created(client, name)).rejects.toThrow('the server closed the connection')
    }
    expect(kafka.broker.listTopics().sort()).toEqual(['b', 'orders'])
  })
})

describe('several faults', () => {
  it('happen to one request, in the order in which they were asked for', async () => {
    const clock = new ManualClock()
    const kafka = await start({ broker: { clock } })
    const client = await connect(kafka)
    kafka.faults.delay(100, { times: 1 })
    const error = kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { times: 1 })
    const answer = offsets(client)
    while (error.hits === 0) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(100)
    expect(await answer).toBe(NOT_LEADER)
  })
})

describe('leaders and coordinators', () => {
  it('move to where they are told, and clients hear of it', async () => {
    const kafka = await start({ nodes: 3 })
    for (const node of [0, 1, 2]) {
      kafka.faults.moveLeader('orders', 0, node)
      kafka.faults.moveCoordinator('group', 'shippers', node)
      kafka.faults.moveCoordinator('transaction', 'till', node)
      const client = await connect(kafka, node)
      expect(await offsets(client)).toBe(0)
      expect(await offsets(await connect(kafka, (node + 1) % 3))).toBe(NOT_LEADER)
      const { topics } = await client.ask(metadata, 1, { topics: [{ name: 'orders' }] } as never)
      expect(topics[0]?.partitions.find(({ partitionIndex }) => partitionIndex === 0)?.leaderId).toBe(node)
      for (const [keyType, key] of [
        [0, 'shippers'],
        [1, 'till'],
      ] as const) {
        expect((await client.ask(findCoordinator, 1, { key, keyType } as never)).nodeId).toBe(node)
      }
    }
  })

  it('are spread anew', async () => {
    const kafka = await start({ nodes: 7 })
    const { cluster } = kafka.server.world
    const where = (): number[] =>
      Array.from({ length: 50 }, (_, i) => cluster.coordinatorOf('group', `g${i}`).id)
    kafka.faults.moveCoordinator('group', 'g0', 3)
    const before = where()
    kafka.faults.rehashCoordinators()
    const after = where()
    expect(after.filter((id, i) => id !== before[i]).length).toBeGreaterThan(30)
    expect(where()).toEqual(after)
  })

  it('do not move where there is nothing', async () => {
    const { faults } = await start({ nodes: 2 })
    expect(() => faults.moveLeader('orders', 0, 2)).toThrow('there is no node 2; there are 2')
    expect(() => faults.moveLeader('orders', 2, 0)).toThrow('orders has no partition 2')
    expect(() => faults.moveLeader('other', 0, 0)).toThrow('there is no topic')
    expect(() => faults.moveCoordinator('group', 'g', -1)).toThrow('there is no node -1')
  })
})

describe('who looks on', () => {
  it('sees every request with its answer, until it stops', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    const seen: ObservedRequest[] = []
    const stop = kafka.faults.onRequest((each) => seen.push(each))
    await offsets(client)
    kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { times: 1 })
    await offsets(client, 1)
    stop()
    await offsets(client)
    expect(seen).toMatchObject([
      {
        api: 'ListOffsets',
        version: 1,
        clientId: 'test',
        node: 0,
        body: { topics: [{ name: 'orders' }] },
        response: { topics: [{ partitions: [{ errorCode: 0, offset: 0 }] }] },
        error: undefined,
      },
      { response: { topics: [{ partitions: [{ errorCode: NOT_LEADER }] }] } },
    ])
    expect(seen.every(({ durationMs }) => durationMs >= 0)).toBe(true)
  })

  it('sees those whose connection is closed, at once or later', async () => {
    const kafka = await start()
    const seen: ObservedRequest[] = []
    kafka.faults.onRequest((each) => seen.push(each))
    for (const when of ['before', 'after'] as const) {
      kafka.faults.drop({ api: 'CreateTopics', times: 1, when })
      await created(await connect(kafka), 'a').catch(() => {})
    }
    expect(seen.map(({ api, response, error }) => [api, response, (error as Error).message])).toEqual([
      ['CreateTopics', null, 'a test drops the connection'],
      ['CreateTopics', null, 'a test drops the connection'],
    ])
  })
})

describe('what cannot be', () => {
  it.each<[string, (faults: TestServer['faults']) => unknown]>([
    ['an error that nobody knows', (faults) => faults.error('OOPS' as KafkaErrorName)],
    ['a delay that is negative', (faults) => faults.delay(-1)],
    ['a delay without an end', (faults) => faults.delay(Number.POSITIVE_INFINITY)],
    ['a probability above 1', (faults) => faults.drop({ probability: 2 })],
    ['no time', (faults) => faults.drop({ times: 0 })],
    ['a negative skip', (faults) => faults.drop({ skip: -1 })],
    ['a partition of no topic', (faults) => faults.drop({ partition: 1 })],
  ])('is refused: %s', async (_, call) => {
    const { faults } = await start()
    expect(() => call(faults)).toThrow(RangeError)
  })
})

describe('a request names a topic', () => {
  const ref = { name: 'a', id: 'AAAAAAAAAAAAAAAAAAAAAQ' }
  const partitions = [{ partition: 1 }]

  it.each<[string, object, boolean]>([
    ['by name', { topics: [{ name: 'a', partitions: [{ partitionIndex: 1 }] }] }, true],
    ['by another field', { topics: [{ topic: 'a', partitions }] }, true],
    ['by id', { topics: [{ topicId: ref.id, partitions }] }, true],
    ['in numbers', { topics: [{ name: 'a', partitionIndexes: [0, 1] }] }, true],
    ['in a group', { groups: [{ groupId: 'g', topics: [{ name: 'a', partitionIndexes: [1] }] }] }, true],
    ['in another partition', { topics: [{ name: 'a', partitions: [{ index: 2 }] }] }, false],
    ['as something else', { protocols: [{ name: 'a', partitions }] }, false],
    ['not at all', { topics: null, names: ['a'], topicData: [null] }, false],
  ])('%s', (_, body, expected) => {
    expect(mentions(body, ref, 1)).toBe(expected)
  })

  it('as text alone, where no partition is meant', () => {
    expect(mentions({ topicNames: ['a'] }, ref, undefined)).toBe(true)
    expect(mentions({ topicNames: ['a'] }, ref, 0)).toBe(false)
    expect(mentions({ topics: [{ topicId: ref.id }] }, { name: 'a', id: undefined }, undefined)).toBe(false)
  })
})
