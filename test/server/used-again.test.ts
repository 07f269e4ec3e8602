/** Memory that requests and logs use again holds what somebody still looks at as long as he does. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { createBroker } from '../../src/memory.ts'
import { serveWithFaults } from '../../src/server/fault-control.ts'
import { handler } from '../../src/server/handler.ts'
import { type KafkaServer, type ServerAddress, serve } from '../../src/server/server.ts'
import type { ResponseOf } from '../../src/wire/api.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { batchOf, recordsOf } from '../support/record-batches.ts'
import { echo, echoOf, Kit } from './kit.ts'
import { requestOf, WireClient } from './wire-client.ts'

const KiB = 1024
const IN_FLIGHT = 5
/** Batches that a partition of the tests holds. */
const ROUND = 2

const connectTo = (server: KafkaServer): Promise<WireClient> =>
  WireClient.connect(server.addresses[0] as ServerAddress)

/** Of a size and with contents of its own. */
const valueAt = (n: number): string => `${n} `.padEnd((100 + (n % 7) * 20) * KiB, `the value ${n}, `)

const produceOf = (index: number, value: string, acks = -1): Buffer =>
  requestOf(produce, 9, {
    transactionalId: null,
    acks,
    timeoutMs: 10_000,
    topicData: [{ name: 'large', partitionData: [{ index, records: batchOf({ values: [value] }) }] }],
  })

const fetchOf = (partitions: number): Buffer =>
  requestOf(fetch, 11, {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes: 2 ** 26,
    isolationLevel: 0,
    topics: [
      {
        topic: 'large',
        partitions: Array.from({ length: partitions }, (_, partition) => ({
          partition,
          fetchOffset: 0,
          // One batch, of one run of memory.
          partitionMaxBytes: 256 * KiB,
        })),
      },
    ],
  })

/** One value after the other, several requests on their way. */
async function produceAll(client: WireClient, requests: readonly Buffer[]): Promise<void> {
  let sent = 0
  for (let answered = 0; answered < requests.length; answered++) {
    while (sent < requests.length && sent - answered < IN_FLIGHT) client.send(requests[sent++] as Buffer)
    const { body } = await client.response(produce, 9)
    expect(body.responses[0]?.partitionResponses[0]?.errorCode).toBe(0)
  }
}

async function bothEngines(use: (broker: Broker) => Promise<void>): Promise<void> {
  await using memory = createBroker()
  await use(memory)
  const directory = await mkdtemp(join(tmpdir(), 'odradek-used-again-'))
  try {
    await using files = await openBroker(`file:${directory}`, { durability: 'os' })
    await use(files)
  } finally {
    await rm(directory, { recursive: true })
  }
}

describe('large requests', () => {
  it('are in the log as they were sent, though all are put together in the same few buffers', async () => {
    await bothEngines(async (broker) => {
      await broker.createTopic('large')
      await using server = await serve(broker, { port: 0 })
      using client = await connectTo(server)
      const values = Array.from({ length: 60 }, (_, n) => valueAt(n))
      await produceAll(
        client,
        values.map((value) => produceOf(0, value)),
      )
      // These are done before they are durable.
      for (let n = 60; n < 70; n++) client.send(produceOf(0, valueAt(n), 0))
      await produceAll(client, [produceOf(0, valueAt(70))])
      const read = await broker.read('large')
      expect(read).toHaveLength(71)
      const wrong = read.filter(({ value }, n) => Buffer.from(value as Uint8Array).toString() !== valueAt(n))
      expect(wrong).toEqual([])
    })
  }, 60_000)
})

describe('large requests by TLS', () => {
  it('are in the log as they were sent', async () => {
    const file = (name: string): string =>
      readFileSync(join(import.meta.dirname, '..', 'fixtures', 'tls', name), 'utf8')
    await using broker = createBroker()
    await broker.createTopic('large')
    const tls = { key: file('server.key'), cert: file('server.crt') }
    await using server = await serve(broker, { port: 0, tls })
    const { port } = server.addresses[0] as ServerAddress
    const socket = connect({ host: '127.0.0.1', port, ca: file('ca.crt') })
    await once(socket, 'secureConnect')
    using client = new WireClient(socket)
    await produceAll(
      client,
      Array.from({ length: 20 }, (_, n) => produceOf(0, valueAt(n))),
    )
    const read = await broker.read('large')
    const texts = read.map(({ value }) => Buffer.from(value as Uint8Array).toString())
    expect(texts.every((text, n) => text === valueAt(n))).toBe(true)
    expect(texts).toHaveLength(20)
  }, 60_000)
})

describe('what a request was put together in', () => {
  const KEPT = 100 * KiB

  /** A produce that is answered when its test says so. */
  async function asked(): Promise<{ kit: Kit; client: WireClient; end: (failure?: Error) => void }> {
    const ends: ((failure?: Error) => void)[] = []
    const kit = await Kit.open({
      handlers: [
        handler(produce, () => {
          return new Promise((resolve, reject) => {
            ends.push((failure) => (failure === undefined ? resolve({ responses: [] }) : reject(failure)))
          })
        }),
      ],
    })
    const client = await kit.connect()
    client.send(produceOf(0, 'x'.repeat(KEPT)))
    await kit.until(() => ends.length === 1)
    return { kit, client, end: (failure) => ends[0]?.(failure) }
  }

  it('is free when the request is answered, and not before', async () => {
    const { kit, client, end } = await asked()
    await using _ = kit
    expect([kit.memory.freeBytes, kit.shared.buffered.bytes > KEPT]).toEqual([0, true])
    end()
    await client.response(produce, 9)
    expect(kit.memory.freeBytes).toBeGreaterThan(KEPT)
    expect(kit.shared.buffered.bytes).toBe(0)
  })

  it('is never free where the request failed, some of which may still be under way', async () => {
    const { kit, client, end } = await asked()
    await using _ = kit
    end(new Error('on purpose'))
    await client.closed
    expect([kit.memory.freeBytes, kit.shared.buffered.bytes]).toEqual([0, 0])
  })

  it('is never free where the request is of another kind, parts of which are kept', async () => {
    await using kit = await Kit.open()
    const client = await kit.connect()
    client.send(echoOf('large', { data: new Uint8Array(KEPT) }))
    await client.response(echo, 1)
    expect(kit.memory.freeBytes).toBe(0)
  })
})

describe('a response', () => {
  it('is sent as it was read, though its log has evicted all of it and been written on meanwhile', async () => {
    const partitions = 64
    await using broker = createBroker()
    await broker.createTopic('large', { partitions, retention: { bytes: 512 * KiB } })
    await using server = await serve(broker, { port: 0 })
    using slow = await connectTo(server)
    using other = await connectTo(server)
    const round = (first: number): Buffer[] =>
      Array.from({ length: partitions * ROUND }, (_, i) => {
        const index = i % partitions
        return produceOf(index, `${first} ${index} ${i} `.padEnd(200 * KiB, 'x'))
      })
    await produceAll(other, round(0))
    slow.socket.pause()
    slow.send(fetchOf(partitions))
    // What the client does not read stays with the server, but for what the system holds.
    for (let again = 1; again <= 2; again++) await produceAll(other, round(again))
    slow.socket.resume()
    const { body } = await slow.response(fetch, 11)
    const found = body.responses[0]?.partitions ?? []
    expect(found).toHaveLength(partitions)
    for (const { partitionIndex, records } of found) {
      const values = recordsOf(records as Uint8Array).map(({ value }) => String(value))
      const starts = values.map((value) => value.slice(0, 20).split(' ').slice(0, 2).join(' '))
      expect(starts).toEqual(Array(starts.length).fill(`0 ${partitionIndex}`))
      expect(starts).toHaveLength(1)
    }
  }, 60_000)
})

describe('an answer that somebody has kept who looks on', () => {
  it('stays as it was, though it has left, and its log has evicted all of it and been written on', async () => {
    await using broker = createBroker()
    await broker.createTopic('large', { retention: { bytes: 512 * KiB } })
    const { server, faults } = await serveWithFaults(broker as unknown as Broker, { port: 0 }, 1, undefined)
    await using _ = server
    const kept: unknown[] = []
    faults.onRequest(({ api, response }) => void (api === 'Fetch' && kept.push(response)))
    using client = await connectTo(server)
    const value = (n: number): string => `${n} `.padEnd(200 * KiB, `the value ${n}, `)
    await produceAll(client, [produceOf(0, value(0)), produceOf(0, value(1))])
    client.send(fetchOf(1))
    await client.response(fetch, 11)
    await produceAll(
      client,
      Array.from({ length: 40 }, (_, n) => produceOf(0, value(n + 2))),
    )
    const [response] = kept as ResponseOf<typeof fetch>[]
    const records = response?.responses[0]?.partitions[0]?.records as Uint8Array
    expect(recordsOf(records).map((record) => record.value === value(0))).toEqual([true])
  }, 60_000)
})

describe('a record that a program was handed', () => {
  it('stays as it was, whatever its log takes later', async () => {
    await using broker = createBroker()
    const topic = await broker.createTopic<Uint8Array>('large', { retention: { bytes: 2048 * KiB } })
    await using server = await serve(broker, { port: 0 })
    using client = await connectTo(server)
    const kept: Uint8Array[] = []
    await topic.subscribe(({ value }) => void kept.push(value))
    const values = Array.from({ length: 60 }, (_, n) => valueAt(n))
    await produceAll(
      client,
      values.map((value) => produceOf(0, value)),
    )
    expect(kept.length).toBeGreaterThan(30)
    for (const value of kept) {
      const text = Buffer.from(value).toString()
      expect(text === valueAt(Number.parseInt(text, 10))).toBe(true)
    }
  }, 60_000)
})
