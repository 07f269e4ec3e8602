/** Faults by HTTP, as a test suite of another language orders them: real requests, and a client that meets the faults. */
import { request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { RequestLog } from '../../src/server/request-log.ts'
import { startTestServer, type TestServer, type TestServerOptions } from '../../src/testing/test-server.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { listOffsets } from '../../src/wire/messages/02-list-offsets.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { saslAuthenticate } from '../../src/wire/messages/36-sasl-authenticate.ts'
import { requestOf, WireClient } from './wire-client.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const kafka = await startTestServer({ faultsPort: 0, ...options })
  await kafka.broker.createTopic('orders', { partitions: 2 })
  ends.push(() => kafka.close())
  return kafka
}

async function connect({ server }: TestServer, node = 0): Promise<WireClient> {
  const client = await WireClient.connect(server.addresses[node] as { host: string; port: number })
  ends.push(async () => client.close())
  return client
}

async function offsets(client: WireClient): Promise<number | undefined> {
  const partitions = [{ partitionIndex: 0, timestamp: -1 }]
  const body = { replicaId: -1, topics: [{ name: 'orders', partitions }] }
  const { topics } = await client.ask(listOffsets, 1, body)
  return topics[0]?.partitions[0]?.errorCode
}

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  // biome-ignore lint/suspicious/noExplicitAny: what came is what is tested
  readonly body: any
}

interface Asked {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Text is sent as it is, anything else as JSON. */
function ask({ faultsUrl }: TestServer, method: string, path: string, asked: Asked = {}): Promise<Got> {
  const { body, headers } = asked
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const options = { method, agent: false, headers: { ...json, ...headers } } as const
    const sent = request(new URL(path, faultsUrl), options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => {
        const { statusCode = 0, headers: got } = response
        resolve({
          status: statusCode,
          headers: got as Got['headers'],
          body: text === '' ? null : JSON.parse(text),
        })
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body))
  })
}

const post = (kafka: TestServer, path: string, body: unknown): Promise<Got> =>
  ask(kafka, 'POST', path, { body })

const NOT_LEADER = KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER

describe('a fault that is ordered by HTTP', () => {
  it('happens to a client, is listed with how often, and goes when it is deleted', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    const order = { error: 'NOT_LEADER_OR_FOLLOWER', api: 'ListOffsets', topic: 'orders', times: 2, skip: 1 }
    const made = await post(kafka, '/faults', order)
    expect(made).toMatchObject({ status: 201, body: { id: 1, hits: 0, active: true, ...order } })
    expect([await offsets(client), await offsets(client)]).toEqual([0, NOT_LEADER])
    expect((await ask(kafka, 'GET', '/faults')).body).toEqual({
      faults: [{ id: 1, hits: 1, active: true, ...order }],
    })
    expect([await offsets(client), await offsets(client)]).toEqual([NOT_LEADER, 0])
    expect((await ask(kafka, 'GET', '/faults/1')).body).toMatchObject({ hits: 2, active: false })
    expect((await ask(kafka, 'DELETE', '/faults/1')).body).toMatchObject({ id: 1, hits: 2 })
    expect((await ask(kafka, 'GET', '/faults/1')).status).toBe(404)
    expect((await ask(kafka, 'DELETE', '/faults/1')).body).toEqual({
      code: 'NOT_FOUND',
      message: 'there is no fault 1',
    })
  })

  it('may be an error by its number, a lost connection, a delay', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    await post(kafka, '/faults', { error: NOT_LEADER, api: 2, times: 1 })
    expect(await offsets(client)).toBe(NOT_LEADER)
    await post(kafka, '/faults', { delayMs: 1, api: 2, times: 1 })
    expect(await offsets(client)).toBe(0)
    await post(kafka, '/faults', { drop: true, clientId: 'test', when: 'after', times: 1 })
    await expect(offsets(client)).rejects.toThrow('the server closed the connection')
    const { faults } = (await ask(kafka, 'GET', '/faults')).body
    expect(faults.map(({ hits, active }: { hits: number; active: boolean }) => [hits, active])).toEqual([
      [1, false],
      [1, false],
      [1, false],
    ])
  })

  it('goes with all others that came by HTTP, and leaves those of the program', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    kafka.faults.error('NOT_LEADER_OR_FOLLOWER', { skip: 1 })
    await post(kafka, '/faults', { error: 'UNKNOWN_SERVER_ERROR' })
    await post(kafka, '/faults', { drop: true, skip: 10 })
    expect(await offsets(client)).toBe(KAFKA_ERRORS.UNKNOWN_SERVER_ERROR)
    const { body } = await ask(kafka, 'DELETE', '/faults')
    expect(body.faults).toMatchObject([
      { id: 1, active: false },
      { id: 2, active: false },
    ])
    expect((await ask(kafka, 'GET', '/faults')).body).toEqual({ faults: [] })
    expect(await offsets(client)).toBe(NOT_LEADER)
  })

  it('comes by a chance of its own, where it has a seed', async () => {
    const runs: string[] = []
    for (const seed of [5, 5, 6]) {
      const kafka = await start({ seed: runs.length })
      const client = await connect(kafka)
      await post(kafka, '/faults', { error: NOT_LEADER, probability: 0.5, seed })
      let run = ''
      for (let i = 0; i < 40; i++) run += (await offsets(client)) === 0 ? '.' : 'x'
      runs.push(run)
    }
    expect(runs[0]).toBe(runs[1])
    expect(runs[0]).not.toBe(runs[2])
  })

  it('is one of a thousand at most', async () => {
    const kafka = await start()
    for (let i = 0; i < 1_000; i++) await post(kafka, '/faults', { drop: true, skip: 1 })
    expect(await post(kafka, '/faults', { drop: true })).toMatchObject({
      status: 409,
      body: { code: 'TOO_MANY' },
    })
  })

  it.each<[unknown, string]>([
    [{}, 'a fault is one of'],
    [{ api: 'Fetch' }, 'a fault is one of'],
    [{ drop: true, delayMs: 1 }, 'a fault is one of'],
    [{ drop: false }, 'a fault is one of'],
    [{ error: 'OOPS' }, 'there is no error of Kafka'],
    [{ error: 9_999 }, 'there is no error of Kafka'],
    [{ drop: true, api: 'Produec' }, 'there is no API Produec'],
    [{ drop: true, api: 999 }, 'there is no API 999'],
    [{ drop: true, tims: 1 }, 'there is no "tims"; there are error, delayMs'],
    [{ drop: true, constructor: 1 }, 'there is no "constructor"'],
    [{ drop: true, times: '1' }, '"times" is a number; got "1"'],
    [{ drop: true, times: null }, '"times" is a number; got null'],
    [{ drop: true, times: 0 }, 'times 1 or more'],
    [{ drop: true, partition: 0 }, 'a partition is one of a topic'],
    [{ drop: true, when: 'soon' }, 'when is before or after'],
    [{ delayMs: -1 }, 'a delay is so many milliseconds'],
    [[], 'send an object'],
    ['null', 'send an object'],
    ['{', 'that is no JSON'],
  ])('is refused where it is none: %j', async (body, message) => {
    const kafka = await start()
    const got = await post(kafka, '/faults', body)
    expect(got).toMatchObject({ status: 400, body: { code: 'INVALID_ARGUMENT' } })
    expect(got.body.message).toContain(message)
    expect((await ask(kafka, 'GET', '/faults')).body).toEqual({ faults: [] })
  })
})

describe('what moves by HTTP', () => {
  it('are leaders and coordinators', async () => {
    const kafka = await start({ nodes: 3 })
    const { cluster } = kafka.server.world
    const { id } = kafka.broker.parts.topics.require('orders')
    for (const node of [0, 1, 2]) {
      const leader = { topic: 'orders', partition: 0, node }
      expect(await post(kafka, '/leaders', leader)).toMatchObject({ status: 200, body: leader })
      expect(cluster.leaderOf(id, 0).id).toBe(node)
      await post(kafka, '/coordinators', { group: 'shippers', node })
      await post(kafka, '/coordinators', { transaction: 'till', node: 2 - node })
      expect(cluster.coordinatorOf('group', 'shippers').id).toBe(node)
      expect(cluster.coordinatorOf('transaction', 'till').id).toBe(2 - node)
    }
    const where = (): number[] =>
      Array.from({ length: 50 }, (_, i) => cluster.coordinatorOf('group', `g${i}`).id)
    const before = where()
    expect((await post(kafka, '/coordinators', { rehash: true })).status).toBe(200)
    expect(where()).not.toEqual(before)
  })

  it('is the release that the server pretends to be; clients are asked to come again', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    await offsets(client)
    const software = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }
    const maxOf = async (key: number): Promise<number | undefined> => {
      const { apiKeys } = await (await connect(kafka)).ask(apiVersions, 3, software)
      return apiKeys.find(({ apiKey }) => apiKey === key)?.maxVersion
    }
    const newest = await maxOf(3)
    expect(await post(kafka, '/release', { as: '2.8' })).toMatchObject({ status: 200 })
    await client.closed
    expect(await maxOf(3)).toBe(11)
    await post(kafka, '/release', { as: null })
    expect(await maxOf(3)).toBe(newest)
  })

  it.each<[string, unknown, number, string]>([
    ['/leaders', { topic: 'orders', node: 0 }, 400, 'say "partition" too'],
    ['/leaders', { topic: 'orders', partition: 2, node: 0 }, 400, 'orders has no partition 2'],
    ['/leaders', { topic: 'orders', partition: 0, node: 1 }, 400, 'there is no node 1; there are 1'],
    ['/leaders', { topic: 'other', partition: 0, node: 0 }, 404, 'there is no topic'],
    ['/coordinators', {}, 400, 'a move is {"group"'],
    ['/coordinators', { group: 'a', transaction: 'b', node: 0 }, 400, 'a move is {"group"'],
    ['/coordinators', { rehash: true, node: 0 }, 400, 'a move is {"group"'],
    ['/coordinators', { group: 'a', node: 7 }, 400, 'there is no node 7'],
    ['/release', { as: '2.7' }, 400, '"as" is one of 0.11, '],
    ['/release', {}, 400, 'say "as" too'],
    ['/release', { as: {} }, 400, '"as" is one of 0.11, '],
  ])('is not moved where there is nothing: %s %j', async (path, body, status, message) => {
    const kafka = await start()
    const got = await post(kafka, path, body)
    expect(got.status).toBe(status)
    expect(got.body.message).toContain(message)
  })
})

describe('/requests', () => {
  it('has what the server was asked, after a number, until it forgets', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    await offsets(client)
    await post(kafka, '/faults', { error: NOT_LEADER, times: 1 })
    await offsets(client)
    const { body } = await ask(kafka, 'GET', '/requests')
    expect(body).toMatchObject({
      last: 2,
      missed: 0,
      requests: [
        {
          number: 1,
          api: 'ListOffsets',
          version: 1,
          clientId: 'test',
          node: 0,
          request: { topics: [{ name: 'orders', partitions: [{ partitionIndex: 0 }] }] },
          response: { topics: [{ partitions: [{ errorCode: 0 }] }] },
          leftOff: false,
          closed: null,
        },
        { number: 2, response: { topics: [{ partitions: [{ errorCode: NOT_LEADER }] }] } },
      ],
    })
    expect(body.requests[0].durationMs).toBeGreaterThanOrEqual(0)
    expect((await ask(kafka, 'GET', '/requests?after=1')).body.requests).toMatchObject([{ number: 2 }])
    expect((await ask(kafka, 'GET', '/requests?after=9')).body).toEqual({ last: 2, missed: 0, requests: [] })
    await ask(kafka, 'DELETE', '/requests')
    expect((await ask(kafka, 'GET', '/requests')).body).toEqual({ last: 2, missed: 2, requests: [] })
    await offsets(client)
    expect((await ask(kafka, 'GET', '/requests?after=2')).body.requests).toMatchObject([{ number: 3 }])
    expect((await ask(kafka, 'GET', '/requests?after=x')).status).toBe(400)
  })

  it('says whose connection was closed, and shows no password', async () => {
    const kafka = await start({ sasl: { users: { alice: 'secret' } } })
    const client = await connect(kafka)
    client.send(
      requestOf(saslAuthenticate, 0, { authBytes: new TextEncoder().encode('n,,n=alice,r=secret') }),
    )
    await client.closed
    const { requests } = (await ask(kafka, 'GET', '/requests')).body
    expect(requests).toMatchObject([{ api: 'SaslAuthenticate', request: { authBytes: { sizeBytes: 19 } } }])
    expect(JSON.stringify(requests)).not.toContain('secret')
  })

  it('goes on line by line, until who reads goes, or the server', async () => {
    const kafka = await start()
    const client = await connect(kafka)
    await offsets(client)
    const stop = new AbortController()
    const response = await fetch(`${kafka.faultsUrl}/requests?follow`, { signal: stop.signal })
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader()
    const next = async (): Promise<unknown> => JSON.parse((await reader.read()).value ?? '')
    expect(await next()).toMatchObject({ number: 1, api: 'ListOffsets' })
    await offsets(client)
    expect(await next()).toMatchObject({ number: 2, api: 'ListOffsets' })
    stop.abort()
    await expect(reader.read()).rejects.toThrow()

    const other = await fetch(`${kafka.faultsUrl}/requests?follow&after=2`)
    const end = (other.body as ReadableStream).getReader().read()
    const ended = expect(end).rejects.toThrow()
    await kafka.close()
    await ended
  })
})

describe('the log of requests', () => {
  const observed = (body: unknown = {}) => ({
    api: 'Fetch',
    version: 4,
    clientId: 'c',
    node: 0,
    body,
    response: null,
    error: undefined,
    durationMs: 1,
  })

  it('forgets the oldest beyond a thousand, and says how many', () => {
    const log = new RequestLog()
    for (let i = 0; i < 1_500; i++) log.add(observed())
    const { lines, last, missed } = log.after(0)
    expect([lines.length, last, missed]).toEqual([1_000, 1_500, 500])
    expect(JSON.parse(lines[0] as string).number).toBe(501)
    expect(log.after(700).missed).toBe(0)
  })

  it('holds four mebibytes at most', () => {
    const log = new RequestLog()
    for (let i = 0; i < 100; i++) log.add(observed({ text: 'x'.repeat(100_000) }))
    const { lines, missed } = log.after(0)
    expect(lines.join('').length).toBeLessThanOrEqual(4 * 1024 * 1024)
    expect(lines.length + missed).toBe(100)
    expect(lines.length).toBeGreaterThan(35)
  })

  it('leaves off what has too many values, and keeps the rest', () => {
    const log = new RequestLog()
    log.add(observed({ many: Array.from({ length: 3_000 }, (_, i) => i) }))
    log.add(observed({ few: Array.from({ length: 1_000 }, (_, i) => i) }))
    const [many, few] = log.after(0).lines.map((line) => JSON.parse(line))
    expect(many).toMatchObject({ api: 'Fetch', request: null, leftOff: true })
    expect(few.leftOff).toBe(false)
    expect(few.request.few).toHaveLength(1_000)
  })

  it('tells a reader that is too slow what it has missed', async () => {
    const log = new RequestLog()
    const stop = new AbortController()
    log.add(observed())
    const reader = log.follow(0, stop.signal)
    expect((await reader.next()).value).toMatch(/^\{"number":1,/)
    for (let i = 0; i < 1_100; i++) log.add(observed())
    expect((await reader.next()).value).toBe('{"missed":100}\n')
    expect(((await reader.next()).value as string).split('\n').length).toBe(1_001)
    const waiting = reader.next()
    stop.abort()
    expect(await waiting).toEqual({ done: true, value: undefined })
  })
})

describe('the port', () => {
  it('is not there where nobody asked for it', async () => {
    const kafka = await start({ faultsPort: undefined } as never)
    expect(kafka.faultsUrl).toBeUndefined()
  })

  it('is one of this machine, and says what there is', async () => {
    const kafka = await start()
    expect(kafka.faultsUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await ask(kafka, 'GET', '/')).body.routes).toContain('/faults')
    expect((await ask(kafka, 'HEAD', '/faults')).status).toBe(200)
  })

  it('that cannot be had closes what was opened', async () => {
    const kafka = await start()
    const taken = Number(new URL(kafka.faultsUrl as string).port)
    await expect(startTestServer({ faultsPort: taken })).rejects.toMatchObject({ code: 'LISTEN_ERROR' })
  })

  it.each<[string, string, string, Asked, number, string]>([
    ['another name', 'GET', '/faults', { headers: { host: 'evil.example' } }, 421, 'FORBIDDEN'],
    ['a web page', 'GET', '/faults', { headers: { origin: 'http://localhost' } }, 403, 'FORBIDDEN'],
    [
      'a form',
      'POST',
      '/faults',
      { body: '{"drop":true}', headers: { 'content-type': 'text/plain' } },
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    ['nothing that says what it is', 'POST', '/faults', {}, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['another path', 'GET', '/fault', {}, 404, 'NOT_FOUND'],
    ['a path of all objects', 'GET', '/constructor', {}, 404, 'NOT_FOUND'],
    ['an id that is none', 'GET', '/faults/x', {}, 404, 'NOT_FOUND'],
    ['leave of a browser', 'OPTIONS', '/faults', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['a change by GET', 'GET', '/leaders', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['too much', 'POST', '/faults', { body: 'x'.repeat(70_000) }, 413, 'TOO_LARGE'],
  ])('refuses %s', async (_, method, path, asked, status, code) => {
    const kafka = await start()
    const got = await ask(kafka, method, path, asked)
    expect(got).toMatchObject({ status, body: { code } })
    expect(got.body.message).not.toBe('')
    if (status === 405) expect(got.headers.allow).toBeTruthy()
    expect((await ask(kafka, 'GET', '/faults')).body).toEqual({ faults: [] })
  })
})
