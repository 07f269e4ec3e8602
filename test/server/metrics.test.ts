/** What a server says of itself to Prometheus, and to those that ask whether it is well. */
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { createBroker } from '../../src/memory.ts'
import { Exposition } from '../../src/server/exposition.ts'
import { exposition, unready } from '../../src/server/metrics.ts'
import { eachError } from '../../src/server/response-errors.ts'
import { type KafkaServer, serve } from '../../src/server/server.ts'
import type { ServeOptions } from '../../src/server/server-options.ts'
import { BUCKETS_S, Traffic } from '../../src/server/traffic.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { offsetCommit } from '../../src/wire/messages/08-offset-commit.ts'
import { type KafkaOptions, KafkaWorld } from '../support/kafka.ts'
import { SimFs } from '../support/sim-fs.ts'
import { echo, Kit } from './kit.ts'
import { requestOf, WireClient } from './wire-client.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function served(options: ServeOptions = {}) {
  const broker = createBroker()
  const server = await serve(broker, { port: 0, metrics: { port: 0 }, ...options })
  ends.push(
    () => broker.close(),
    () => server.close({ drainMs: 0 }),
  )
  return { broker, server }
}

function kafkaWorld(options?: KafkaOptions): KafkaWorld {
  const world = new KafkaWorld(options)
  // One whose disk has failed says so at its end.
  ends.push(() => world.broker.close({ drainMs: 0 }).catch(() => {}))
  return world
}

interface Got {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly text: string
}

function get(
  server: KafkaServer,
  path: string,
  options: { method?: string; headers?: object } = {},
): Promise<Got> {
  const { host, port } = server.metricsAddress as { host: string; port: number }
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, agent: false, ...options } as object, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => {
        resolve({ status: response.statusCode, type: response.headers['content-type'], text })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

function valuesOf(page: string): Map<string, number> {
  return new Map(
    page
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const at = line.lastIndexOf(' ')
        return [line.slice(0, at), Number(line.slice(at + 1))]
      }),
  )
}

const page = (world: KafkaWorld, traffic = new Traffic(), to?: Exposition): Map<string, number> =>
  valuesOf(exposition(world.kafka, traffic, { connections: 3, bufferedBytes: 5 }, to))

describe('/metrics', () => {
  it('has topics and partitions by the names of kafka_exporter', async () => {
    const world = kafkaWorld({ nodes: 3 })
    await world.broker.createTopic('orders', { partitions: 2, retention: { records: 2 } })
    for (let i = 0; i < 5; i++) await world.broker.publish('orders', i, { partition: 1 })
    const values = page(world)
    const of = (what: string, partition: number): number | undefined =>
      values.get(`kafka_topic_partition_${what}{topic="orders",partition="${partition}"}`)
    expect(values.get('kafka_brokers')).toBe(3)
    expect(values.get('kafka_topic_partitions{topic="orders"}')).toBe(2)
    expect([of('current_offset', 0), of('current_offset', 1)]).toEqual([0, 5])
    expect([of('oldest_offset', 0), of('oldest_offset', 1)]).toEqual([0, 3])
    const topic = world.kafka.parts.topics.require('orders')
    expect(of('leader', 0)).toBe(world.kafka.cluster.leaderOf(topic.id, 0).id)
    expect([of('replicas', 0), of('in_sync_replica', 0), of('leader_is_preferred', 1)]).toEqual([1, 1, 1])
    expect(of('under_replicated_partition', 0)).toBe(0)
  })

  it('has groups of both kinds, and offsets that nobody is left of', async () => {
    const world = kafkaWorld()
    const orders = await world.broker.createTopic('orders', { partitions: 2 })
    for (let i = 0; i < 6; i++) await orders.publish(i, { partition: i % 2 })
    await orders.subscribe(() => {}, { group: 'shippers', from: 'earliest' })
    await orders.subscribe(() => {}, { id: 'alone' })
    await world.settle()
    const partition = { partitionIndex: 1, committedOffset: 1, committedMetadata: '' }
    await world.send(offsetCommit, 2, {
      groupId: 'old',
      generationIdOrMemberEpoch: -1,
      memberId: '',
      topics: [{ name: 'orders', partitions: [partition] }],
    })
    const values = page(world)
    const of = (name: string, group: string, rest = ''): number | undefined =>
      values.get(`kafka_consumergroup_${name}{consumergroup="${group}"${rest}}`)
    expect([of('members', 'shippers'), of('members', 'old'), of('members', 'alone')]).toEqual([
      1,
      0,
      undefined,
    ])
    const at = ',topic="orders",partition="1"'
    expect([of('current_offset', 'shippers', at), of('lag', 'shippers', at)]).toEqual([3, 0])
    expect([of('current_offset', 'old', at), of('lag', 'old', at)]).toEqual([1, 2])
    const sum = ',topic="orders"'
    expect([of('current_offset_sum', 'shippers', sum), of('lag_sum', 'shippers', sum)]).toEqual([6, 0])
    expect([of('current_offset_sum', 'old', sum), of('lag_sum', 'old', sum)]).toEqual([1, 2])
  })

  it('says of each family what it is', async () => {
    const world = kafkaWorld()
    const text = exposition(world.kafka, new Traffic(), { connections: 0, bufferedBytes: 0 })
    const types = [...text.matchAll(/^# TYPE (\S+) (gauge|counter|histogram)$/gm)].map(([, name]) => name)
    const helps = [...text.matchAll(/^# HELP (\S+) \S.*$/gm)].map(([, name]) => name)
    expect(types).toEqual(helps)
    expect(new Set(types).size).toBe(types.length)
    expect(text.endsWith('\n')).toBe(true)
  })

  it('ends where there would be too many samples, and says how many are left off', async () => {
    const world = kafkaWorld()
    await world.broker.createTopic('orders', { partitions: 10 })
    const full = page(world)
    const cut = page(world, new Traffic(), new Exposition(20))
    expect(cut.size).toBe(20)
    const to = new Exposition(20)
    page(world, new Traffic(), to)
    expect(to.leftOff).toBe(full.size - 20)
  })

  it('has what went through the server', async () => {
    const { server } = await served()
    const { port } = server.addresses[0] as { port: number }
    const client = await WireClient.connect({ host: '127.0.0.1', port })
    const asked = requestOf(metadata, 1, { topics: [{ name: 'bad name' }] } as never)
    client.send(asked)
    const frame = await client.frame()
    const values = valuesOf((await get(server, '/metrics')).text)
    expect(values.get('odradek_connections')).toBe(1)
    expect(values.get('odradek_requests_total{api="Metadata"}')).toBe(1)
    expect(values.get('odradek_failed_requests_total{api="Metadata"}')).toBe(0)
    expect(values.get('odradek_errors_total{api="Metadata",error="INVALID_TOPIC_EXCEPTION"}')).toBe(1)
    expect(values.get('odradek_request_seconds_count{api="Metadata"}')).toBe(1)
    expect(values.get('odradek_request_seconds_bucket{api="Metadata",le="+Inf"}')).toBe(1)
    expect(values.get('odradek_received_bytes_total')).toBe(asked.length)
    expect(values.get('odradek_sent_bytes_total')).toBe(4 + (frame as Buffer).length)
    expect(values.get('odradek_buffered_bytes')).toBe(0)
    client.close()
  })
})

describe('labels', () => {
  it('are escaped', () => {
    const to = new Exposition()
    to.sample('a', { group: 'say "hi"\n\\' }, 1)
    expect(String(to)).toBe('a{group="say \\"hi\\"\\n\\\\"} 1\n')
  })

  it('are none where there are none, and infinity has a name', () => {
    const to = new Exposition()
    to.sample('a', {}, Number.POSITIVE_INFINITY)
    expect(String(to)).toBe('a +Inf\n')
  })
})

describe('requests', () => {
  it('are counted by how long they took and how they ended', async () => {
    const traffic = new Traffic()
    const clock = new ManualClock()
    let finish: (answer: null) => void = () => {}
    const answers = [
      () => ({ name: 'a', data: new Uint8Array(0) }),
      () => null,
      () =>
        new Promise<null>((resolve) => {
          finish = resolve
        }),
      () => Promise.reject(new Error('later')),
      () => {
        throw new Error('at once')
      },
    ]
    await using kit = await Kit.open()
    const session = kit.session()
    const count = traffic.interceptor(clock)
    const ended: unknown[] = []
    for (const answer of answers) {
      const call = {
        version: 1,
        clientId: '',
        client: session,
        session,
        node: session.door.node,
        listener: '',
      }
      const routed = { handler: { api: echo, advertised: [1, 3] as const, answer }, body: {}, call, session }
      try {
        const got = count(routed, answer)
        ended.push(got instanceof Promise ? got.catch((e: Error) => e.message) : got)
      } catch (error) {
        ended.push((error as Error).message)
      }
    }
    await clock.advance(40_000)
    finish(null)
    await Promise.all(ended)
    const [api] = [...traffic.apis()]
    expect(api).toMatchObject({ name: 'Echo', requests: 5, failed: 2, secondsSum: 40 })
    expect(api?.buckets).toEqual([4, ...BUCKETS_S.slice(1).map(() => 0), 1])
  })

  it('have the errors of their partitions, one by one', () => {
    const codes: number[] = []
    const partition = (errorCode: number) => ({ index: 0, errorCode, baseOffset: 0 })
    const responses = [
      { name: 'a', partitionResponses: [partition(0), partition(6)] },
      { name: 'b', partitionResponses: [partition(6), partition(3)] },
    ]
    eachError(produce, { responses }, (code) => codes.push(code))
    expect(codes).toEqual([6, 6, 3])
    codes.length = 0
    eachError(produce, { responses: null }, (code) => codes.push(code))
    expect(codes).toEqual([])
  })
})

describe('the HTTP port', () => {
  it('has three pages', async () => {
    const { server } = await served()
    const metrics = await get(server, '/metrics?x=1')
    expect(metrics).toMatchObject({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' })
    expect(await get(server, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await get(server, '/readyz')).toMatchObject({ status: 200, text: 'ok\n' })
    expect(await get(server, '/healthz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })
  })

  it.each(['/', '/metrics/', '/../metrics', '/etc'])('has no other: %s', async (path) => {
    const { server } = await served()
    expect((await get(server, path)).status).toBe(404)
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('does not take %s', async (method) => {
    const { server } = await served()
    expect((await get(server, '/metrics', { method })).status).toBe(405)
  })

  it('answers nobody who calls it by a name of its own', async () => {
    const { server } = await served()
    expect((await get(server, '/metrics', { headers: { host: 'evil.example:80' } })).status).toBe(421)
    for (const host of ['localhost', '127.0.0.1:80', '[::1]:9308']) {
      expect((await get(server, '/metrics', { headers: { host } })).status).toBe(200)
    }
  })

  it('is closed with the server, whoever is connected', async () => {
    const { server } = await served()
    const idle = connect(server.metricsAddress as { host: string; port: number })
    idle.on('error', () => {})
    await new Promise<void>((resolve) => idle.once('connect', () => resolve()))
    const closed = new Promise<void>((resolve) => idle.once('close', () => resolve()))
    await server.close()
    await closed
  })

  it('is not there where nobody asked for it', async () => {
    const { server } = await served({ metrics: undefined } as never)
    expect(server.metricsAddress).toBeUndefined()
  })

  it('that cannot be had closes what was opened', async () => {
    const { server } = await served()
    const broker = createBroker()
    const taken = { port: server.metricsAddress?.port as number }
    await expect(serve(broker, { port: 0, metrics: taken })).rejects.toMatchObject({ code: 'LISTEN_ERROR' })
    await (await serve(broker, { port: 0 })).close()
    await broker.close()
  })

  it.each([{ host: '0.0.0.0' }, { port: -1 }, { prot: 1 }, { host: '::', insecure: false }])(
    'is refused where others could read it, or nobody knows where: %j',
    async (metrics) => {
      const error = await serve(createBroker(), { port: 0, metrics } as ServeOptions).catch((e: unknown) => e)
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' })
    },
  )

  it('serves others where that is said to be meant, by any name', async () => {
    const { server } = await served({ metrics: { host: '0.0.0.0', port: 0, insecure: true } })
    expect((await get(server, '/healthz', { headers: { host: 'broker.example' } })).status).toBe(200)
  })
})

describe('/readyz', () => {
  it('says that the server is closing', async () => {
    const { server } = await served()
    const { port } = server.addresses[0] as { port: number }
    // A client that waits keeps the server from closing at once.
    const client = await WireClient.connect({ host: '127.0.0.1', port })
    client.send(requestOf(metadata, 1, { topics: [] } as never))
    await client.frame()
    client.socket.pause()
    const closing = server.close()
    const got = await get(server, '/readyz').catch(() => undefined)
    if (got !== undefined) expect(got).toMatchObject({ status: 503, text: 'the server is closing\n' })
    client.close()
    await closing
  })

  it('says that a flush has failed', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    const world = kafkaWorld({ engine: await fileEngine({ clock, fs }, {}), clock })
    await world.broker.restore()
    await world.broker.createTopic('orders')
    expect(unready(world.kafka)).toBeUndefined()
    fs.onOperation = (operation) => (operation === 'sync' ? { fail: 'EIO' } : undefined)
    const published = world.broker.publish('orders', 'x').catch((error: { code: string }) => error.code)
    await clock.settle()
    expect(await published).toBe('OUTCOME_UNKNOWN')
    expect(unready(world.kafka)).toBe(
      'records cannot be stored: a flush has failed, and the log accepts nothing more',
    )
  })
})
