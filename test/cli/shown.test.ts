/** What describe and consume show where there is more than one of everything, and little to go by. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KafkaCluster } from '../../src/client/cluster.ts'
import { commitOffsets } from '../../src/client/group-offsets.ts'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import { consumerGroupHeartbeat } from '../../src/wire/messages/68-consumer-group-heartbeat.ts'
import { addressOf, CONNECTION } from '../client/kit.ts'
import { WireClient } from '../server/wire-client.ts'
import { odradekWith, type Ran } from './kit.ts'

let kafka: TestServer
let cluster: KafkaCluster

beforeAll(async () => {
  kafka = await startTestServer()
  cluster = new KafkaCluster([addressOf(kafka.bootstrap)], CONNECTION)
  for (const topic of ['b', 'a', 'c']) await kafka.broker.createTopic(topic, { partitions: 2 })
  for (const value of ['0', '1', '2']) await kafka.broker.publish('b', value, { partition: 1 })
})
afterAll(async () => {
  await cluster.close()
  await kafka.close()
})

const odradek = (...args: string[]): Promise<Ran> =>
  odradekWith({ env: { ODRADEK_BROKERS: kafka.bootstrap } }, ...args)

/** A member of a group whose broker assigns. */
async function heartbeat(client: WireClient, memberId: string, groupId: string): Promise<void> {
  const { errorCode } = await client.ask(consumerGroupHeartbeat, 1, {
    groupId,
    memberId,
    memberEpoch: 0,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: 60_000,
    subscribedTopicNames: ['a'],
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: [],
  })
  expect(errorCode).toBe(0)
}

describe('odradek group describe', () => {
  it('shows partitions by topic and number, groups with a line between', async () => {
    const at = (topic: string, partition: number, offset: number) => ({ topic, partition, offset })
    expect(
      await commitOffsets(cluster, 'one', [at('b', 1, 1), at('c', 0, 0), at('a', 1, 0), at('b', 0, 0)]),
    ).toBe(0)
    expect(await commitOffsets(cluster, 'two', [at('b', 1, 3)])).toBe(0)
    const { code, stdout } = await odradek('group', 'describe', 'one', 'two')
    expect(code).toBe(0)
    expect(stdout).toMatch(/lag +2 offsets\n\nTOPIC.*\na +1 .*\nb +0 .*\nb +1 +1 +3 +2 .*\nc +0 .*\n\ntwo\n/)
    expect(stdout).toMatch(/lag +0 offsets\n\nTOPIC.*\nb +1 +3 +3 +0 .*\n$/)
  })

  it('shows members that have nothing, and counts from the start what nobody has committed', async () => {
    using client = await WireClient.connect(addressOf(kafka.bootstrap))
    const members = ['AAAAAAAAAAAAAAAAAAAAAQ', 'AAAAAAAAAAAAAAAAAAAAAg', 'AAAAAAAAAAAAAAAAAAAAAw']
    for (const member of members) await heartbeat(client, member, 'crowd')
    const { stdout } = await odradek('group', 'describe', 'crowd')
    expect(stdout).toMatch(/\nmembers +3 members\n/)
    // Two partitions are for two of them; the third has none, and is to have none.
    expect(stdout.match(/\nA+[Qgw] +- +test +\d+ +\S.*? +-(?=\n)/g)).toHaveLength(1)
    const json = JSON.parse((await odradek('group', 'describe', 'crowd', '--json')).stdout)
    expect(
      json.partitions.map(({ committed, lag }: { committed: null; lag: number }) => [committed, lag]),
    ).toEqual(json.partitions.map(() => [null, 0]))
  })
})

describe('odradek consume --offset', () => {
  it.each([
    ['+1', '12'],
    ['+9', ''],
    ['-2', '12'],
    ['-9', '012'],
    ['end', ''],
    ['2', '2'],
    ['99', ''],
    ['@2100-01-01', ''],
    ['@0', '012'],
  ])('%s begins within what is there', async (offset, printed) => {
    const ran = await odradek('consume', 'b', '-e', '-o', offset, '-f', '%s')
    expect(ran).toEqual({ code: 0, stdout: printed, stderr: '' })
  })

  it('says how much was gone before it was read', async () => {
    const retention = { records: 2 }
    await kafka.broker.createTopic('short', { retention })
    // It knows where the partition begins, and a moment later it begins elsewhere.
    const unlisten = kafka.faults.onRequest(({ api }) => {
      if (api !== 'ListOffsets') return
      unlisten()
      for (const value of ['x', 'y', 'z']) void kafka.broker.publish('short', value)
    })
    const ran = await odradek('consume', 'short', '-o', '0', '-n', '1', '-f', '%o')
    expect(ran).toEqual({
      code: 0,
      stdout: '1',
      stderr: 'odradek: short/0: 1 offsets were gone before they were read\n',
    })
  })
})

describe('odradek topic describe', () => {
  it('shows several with a line between, each with what is set', async () => {
    const { stdout } = await odradek('topic', 'describe', 'b', 'c')
    expect(stdout).toMatch(/^b\nid +\S{22}\npartitions +2 partitions, 3 offsets\n[\s\S]*\n\nc\nid /)
  })
})

describe('odradek group reset', () => {
  it('moves partitions of several topics, in the order of topics and numbers', async () => {
    const ran = await odradek(
      'group',
      'reset',
      'mover',
      '--to',
      '1',
      '--topic',
      'b',
      '--topic',
      'a',
      '--json',
      '--execute',
    )
    expect(ran.code).toBe(0)
    const moves = ran.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(moves.map(({ topic, partition, to }) => `${topic}/${partition}=${to}`)).toEqual([
      'b/0=0',
      'b/1=1',
      'a/0=0',
      'a/1=0',
    ])
  })

  it.each([
    ['UNKNOWN_MEMBER_ID', 'REFUSED: group "late": UNKNOWN_MEMBER_ID'],
    ['NON_EMPTY_GROUP', 'GROUP_NOT_EMPTY: group "late": it has members: end them first'],
  ] as const)('says so where somebody has come meanwhile: %s', async (error, message) => {
    const fault = kafka.faults.error(error, { api: 'OffsetCommit', times: 1 })
    const ran = await odradek('group', 'reset', 'late', '--to', '1', '--topic', 'b', '--execute')
    expect(ran).toMatchObject({ code: 1, stderr: `odradek: ${message}\n` })
    expect(fault.hits).toBe(1)
  })
})

describe('odradek group list, odradek topic list', () => {
  it('show nothing where there is nothing', async () => {
    await using empty = await startTestServer()
    const io = { env: { ODRADEK_BROKERS: empty.bootstrap } }
    expect(await odradekWith(io, 'group', 'list')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await odradekWith(io, 'topic', 'list')).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

describe('odradek produce', () => {
  it('names all the lines that a refusal is about', async () => {
    const fault = kafka.faults.error('TOPIC_AUTHORIZATION_FAILED', { api: 'Produce', times: 1 })
    const stdin = async function* () {
      yield new TextEncoder().encode('x\ny\nz\n')
    }
    const io = { env: { ODRADEK_BROKERS: kafka.bootstrap }, stdin }
    const ran = await odradekWith(io, 'produce', 'b', '-p', '0')
    expect(ran).toMatchObject({
      code: 1,
      stderr: 'odradek: lines 1 to 3: REFUSED: b/0: TOPIC_AUTHORIZATION_FAILED\n0 records produced\n',
    })
    expect(fault.hits).toBe(1)
  })

  it('chooses partitions by the keys with --partition auto, whatever a line says', async () => {
    const line = (partition: number) => `{"topic":"c","partition":${partition},"key":"k","value":"x"}\n`
    const stdin = async function* () {
      yield new TextEncoder().encode(line(0) + line(1))
    }
    const io = { env: { ODRADEK_BROKERS: kafka.bootstrap }, stdin }
    expect((await odradekWith(io, 'produce', '--json', '-p', 'auto')).code).toBe(0)
    const { stdout } = await odradek('consume', 'c', '-e', '-f', '%p')
    expect(['00', '11']).toContain(stdout)
  })
})
