/** Requests of real clients over a real socket, to a broker that the program uses too. */
import { describe, expect, it } from 'vitest'
import { startTestServer, type TestServer } from '../../src/testing/test-server.ts'
import type { RequestInputOf } from '../../src/wire/api.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { batchOf, recordsOf } from '../support/record-batches.ts'
import { requestOf, WireClient } from './wire-client.ts'

const connectTo = (kafka: TestServer, index = 0): Promise<WireClient> =>
  WireClient.connect(kafka.server.addresses[index] as { host: string; port: number })

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const records = (acks: number, value: string, topic = 'orders'): RequestInputOf<typeof produce> => ({
  transactionalId: null,
  acks,
  timeoutMs: 1_000,
  topicData: [{ name: topic, partitionData: [{ index: 0, records: batchOf({ values: [value] }) }] }],
})

const from = (fetchOffset: number, maxWaitMs: number): RequestInputOf<typeof fetch> => ({
  maxWaitMs,
  minBytes: 1,
  isolationLevel: 0,
  topics: [{ topic: 'orders', partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: 2 ** 20 }] }],
})

const valuesIn = (topic: { partitions: readonly { records: Uint8Array | null }[] } | undefined): unknown[] =>
  recordsOf(topic?.partitions[0]?.records ?? new Uint8Array(0)).map(({ value }) => value)

describe('one broker', () => {
  it('gives the program what clients produce, and clients what the program publishes', async () => {
    await using kafka = await startTestServer()
    using client = await connectTo(kafka)
    const topic = await kafka.broker.createTopic<string>('orders')
    await client.ask(produce, 9, records(-1, 'from a client'))
    await topic.publish('from the program')
    const { responses } = await client.ask(fetch, 11, from(0, 0))
    expect(valuesIn(responses[0])).toEqual(['from a client', 'from the program'])
    expect(await kafka.broker.read('orders')).toHaveLength(2)
  })

  it('has a leader for each partition, at the port of its node alone', async () => {
    await using kafka = await startTestServer({ nodes: 2 })
    await kafka.broker.createTopic('orders')
    using first = await connectTo(kafka, 0)
    using second = await connectTo(kafka, 1)
    const { brokers, topics } = await first.ask(metadata, 9, { topics: [{ name: 'orders' }] })
    expect(brokers.map(({ port }) => port)).toEqual(kafka.server.addresses.map(({ port }) => port))
    const leader = topics[0]?.partitions[0]?.leaderId
    const codes: (number | undefined)[] = []
    for (const client of [first, second]) {
      const { responses } = await client.ask(produce, 9, records(-1, 'a'))
      codes.push(responses[0]?.partitionResponses[0]?.errorCode)
    }
    expect(codes).toEqual(leader === 0 ? [0, 6] : [6, 0])
  })
})

describe('a client', () => {
  it('may ask for versions and metadata in one breath, before it knows anything', async () => {
    await using kafka = await startTestServer()
    using client = await connectTo(kafka)
    client.send(requestOf(apiVersions, 0, {}, 1), requestOf(metadata, 0, { topics: [] }, 2))
    expect((await client.response(apiVersions, 0)).correlationId).toBe(1)
    const { correlationId, body } = await client.response(metadata, 0)
    expect(correlationId).toBe(2)
    const port = kafka.server.addresses[0]?.port
    expect(body.brokers).toMatchObject([{ nodeId: 0, host: '127.0.0.1', port }])
  })

  it('that wants no acknowledgement gets none, nor a gap', async () => {
    await using kafka = await startTestServer()
    await kafka.broker.createTopic('orders')
    using client = await connectTo(kafka)
    client.send(requestOf(produce, 9, records(0, 'a'), 1), requestOf(produce, 9, records(1, 'b'), 2))
    const { correlationId, body } = await client.response(produce, 9)
    expect([correlationId, body.responses[0]?.partitionResponses[0]?.baseOffset]).toEqual([2, 1])
  })

  it('that wants none is disconnected when its records are not taken', async () => {
    await using kafka = await startTestServer({ autoCreateTopics: false })
    using client = await connectTo(kafka)
    client.send(requestOf(produce, 9, records(0, 'a', 'missing')))
    await client.closed
  })

  it('that sends without acknowledgement and leaves has sent', async () => {
    await using kafka = await startTestServer()
    await kafka.broker.createTopic('orders')
    const client = await connectTo(kafka)
    for (let i = 0; i < 200; i++) client.send(requestOf(produce, 9, records(0, `${i}`)))
    client.socket.end()
    await client.closed
    const read = await kafka.broker.read('orders')
    expect(read).toHaveLength(200)
  })

  it('that fetches at the end of the log is woken by the next record', async () => {
    await using kafka = await startTestServer()
    const topic = await kafka.broker.createTopic<string>('orders')
    using client = await connectTo(kafka)
    client.send(requestOf(fetch, 11, from(0, 60_000)))
    await turn()
    await topic.publish('news')
    expect(valuesIn((await client.response(fetch, 11)).body.responses[0])).toEqual(['news'])
  })

  it('that waits for records is answered when the server closes', async () => {
    await using kafka = await startTestServer()
    await kafka.broker.createTopic('orders')
    using client = await connectTo(kafka)
    await client.ask(apiVersions, 0, {})
    client.send(requestOf(fetch, 11, from(0, 60_000)))
    for (let i = 0; i < 20; i++) await turn()
    await kafka.server.close()
    const { errorCode } = (await client.response(fetch, 11)).body
    expect(errorCode).toBe(0)
    expect(await client.frame()).toBeUndefined()
  })

  it('that asks for what fills its buffers gets it whole', async () => {
    await using kafka = await startTestServer()
    const topic = await kafka.broker.createTopic<string>('orders')
    const value = 'x'.repeat(900_000)
    for (let i = 0; i < 8; i++) await topic.publish(value)
    using client = await connectTo(kafka)
    const everything = from(0, 0)
    const topics = [
      { topic: 'orders', partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 2 ** 26 }] },
    ]
    const { responses } = await client.ask(fetch, 11, { ...everything, topics })
    expect(valuesIn(responses[0])).toEqual(Array.from({ length: 8 }, () => value))
  })
})
