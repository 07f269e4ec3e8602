/** Producer and fetcher at one broker, over the wire. */
import { describe, expect, it } from 'vitest'
import { END, offsetsFor, START } from '../../src/client/offsets.ts'
import { createTopics } from '../../src/client/topics.ts'
import { BatchBuilder } from '../../src/log/format/batch-builder.ts'
import { compressionNumber } from '../../src/log/format/compression.ts'
import { partitionOf } from '../../src/model/key-hash.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { addPartitionsToTxn } from '../../src/wire/messages/24-add-partitions-to-txn.ts'
import { endTxn } from '../../src/wire/messages/26-end-txn.ts'
import { Client, formats, record, textOf } from './kit.ts'

describe('a producer', () => {
  it('sends records as they are, to the partitions that their keys have in every client', async () => {
    await using client = await Client.start({ nodes: 3 })
    await client.kafka.broker.createTopic('orders', { partitions: 5 })
    const producer = client.producer()
    const headers = new RecordHeaders([
      ['a', '1'],
      ['a', null],
    ])
    const keys = Array.from({ length: 40 }, (_, i) => `k${i}`)
    for (const [tag, key] of keys.entries()) {
      await producer.send(record('orders', `v${tag}`, { key, headers, timestamp: 1_000 + tag, tag }))
    }
    await producer.send(record('orders', null, { partition: 4, key: 'gone' }))
    await producer.flush()
    expect(producer.acknowledged).toBe(41)
    const places = [0, 1, 2, 3, 4].map((partition) => ({ topic: 'orders', partition }))
    const ends = await offsetsFor(
      client.cluster,
      places.map((place) => ({ ...place, timestamp: END })),
    )
    const from = places.map((place) => ({ ...place, offset: 0, end: ends.get(`orders/${place.partition}`) }))
    const read = await client.read(from)
    expect(read).toHaveLength(41)
    for (const { key, partition, timestamp, headers: own, ...rest } of read) {
      if (key === 'gone') {
        expect({ partition, value: rest.value, own }).toEqual({ partition: 4, value: null, own: [] })
        continue
      }
      const tag = keys.indexOf(String(key))
      expect({ partition, timestamp, text: textOf(rest), own }).toEqual({
        partition: partitionOf(String(key), 5),
        timestamp: 1_000 + tag,
        text: `v${tag}`,
        own: headers.toJSON(),
      })
    }
  })

  it('sends batches that are full before the rest, spreads keyless ones, and keeps the order of a partition', async () => {
    await using client = await Client.start()
    await client.kafka.broker.createTopic('big', { partitions: 2 })
    const producer = client.producer()
    const filler = 'x'.repeat(100_000)
    for (let tag = 0; tag < 40; tag++) await producer.send(record('big', `${tag}:${filler}`, { tag }))
    await producer.flush()
    const places = [0, 1].map((partition) => ({ topic: 'big', partition }))
    const ends = await offsetsFor(
      client.cluster,
      places.map((place) => ({ ...place, timestamp: END })),
    )
    for (const place of places) {
      const end = ends.get(`big/${place.partition}`) ?? 0
      expect(end).toBeGreaterThan(0)
      const numbers = (await client.read([{ ...place, offset: 0, end }])).map((each) =>
        Number.parseInt(textOf(each) ?? '', 10),
      )
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    }
    expect([...ends.values()].reduce((a, b) => a + b)).toBe(40)
  })

  it.each(['gzip', 'snappy', 'lz4', 'zstd'])('compresses by %s, and the fetcher reads it', async (name) => {
    await using client = await Client.start()
    const type = compressionNumber(name)
    const { compression: port } = formats
    await port.ready?.(type)
    const producer = client.producer({ compression: { type, port } })
    for (let tag = 0; tag < 100; tag++) await producer.send(record('packed', 'same same same', { tag }))
    await producer.flush()
    const read = await client.read([{ topic: 'packed', partition: 0, offset: 90, end: 100 }])
    expect(read.map(({ offset }) => offset)).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99])
    expect(new Set(read.map(textOf))).toEqual(new Set(['same same same']))
  })

  it('names the records that a broker refuses, and sends nothing after them', async () => {
    await using client = await Client.start()
    const topic = {
      name: 'small',
      partitions: 1,
      replicas: -1,
      configs: [['max.message.bytes', '200']] as const,
    }
    await createTopics(client.cluster, [topic], { timeoutMs: 1_000, validateOnly: false })
    const producer = client.producer()
    await producer.send(record('small', 'a', { key: 'k', tag: 7 }))
    await producer.flush()
    await producer.send(record('small', 'x'.repeat(300), { tag: 8 }))
    await expect(producer.flush()).rejects.toMatchObject({ first: 8, last: 8 })
    await expect(producer.send(record('small', 'b', { key: 'k', tag: 9 }))).rejects.toMatchObject({
      first: 8,
    })
    expect(producer.acknowledged).toBe(1)
    await expect(client.producer().send(record('small', 'x', { partition: 3 }))).rejects.toThrow(
      'partitions 0 to 0, not 3',
    )
  })

  it('says at the end what was refused meanwhile, when nothing is under way any more', async () => {
    await using client = await Client.start()
    await client.kafka.broker.createTopic('small')
    const answered = new Promise<void>((resolve) => {
      client.kafka.faults.onRequest(({ api }) => {
        if (api === 'Produce') resolve()
      })
    })
    client.kafka.faults.error('MESSAGE_TOO_LARGE', { api: 'Produce' })
    const producer = client.producer()
    await producer.send(record('small', 'x', { tag: 7 }))
    await answered
    // An answer that is ahead of it on the same connection has been taken when this one has.
    await client.cluster.metadata([])
    await new Promise((resolve) => setImmediate(resolve))
    await expect(producer.flush()).rejects.toMatchObject({ code: 'TOO_LARGE', first: 7, last: 7 })
    await expect(producer.send(record('small', 'y'))).rejects.toMatchObject({ code: 'TOO_LARGE' })
  })

  it('names what was under way when the broker went', async () => {
    await using client = await Client.start()
    await client.publish('orders', 'a')
    const producer = client.producer()
    await producer.send(record('orders', 'b', { tag: 1 }))
    await producer.send(record('orders', 'c', { tag: 2 }))
    await client.kafka.close()
    await expect(producer.flush()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
  })
})

describe('a fetcher', () => {
  it('waits for what comes, stops when it is aborted, and reads from within a batch', async () => {
    await using client = await Client.start()
    await client.publish('orders', 'a', 'b', 'c')
    const { Fetcher } = await import('../../src/client/fetcher.ts')
    const stop = new AbortController()
    const values: (string | null)[] = []
    const fetcher = new Fetcher(client.cluster, [{ topic: 'orders', partition: 0, offset: 1 }], formats)
    for await (const { records, next } of fetcher.run(stop.signal)) {
      values.push(...records.map(textOf))
      if (next === 3) await client.publish('orders', 'd')
      else stop.abort()
    }
    expect(values).toEqual(['b', 'c', 'd'])
  })

  it('goes on at the start where retention was faster, and says how much is missing', async () => {
    await using client = await Client.start()
    await client.kafka.broker.createTopic('short', { retention: { records: 10 } })
    for (let i = 0; i < 30; i++) await client.publish('short', `${i}`)
    const { Fetcher } = await import('../../src/client/fetcher.ts')
    const fetcher = new Fetcher(
      client.cluster,
      [{ topic: 'short', partition: 0, offset: 0, end: 30 }],
      formats,
    )
    let [skipped, read] = [0, 0]
    for await (const each of fetcher.run(new AbortController().signal)) {
      skipped += each.skipped
      read += each.records.length
    }
    expect(skipped).toBeGreaterThan(0)
    expect(skipped + read).toBe(30)
  })

  it('fails where there is no such topic or offset', async () => {
    await using client = await Client.start()
    await expect(client.read([{ topic: 'none', partition: 0, offset: 0, end: 1 }])).rejects.toMatchObject({
      code: 'UNKNOWN_TOPIC',
    })
    await client.publish('orders', 'a')
    await expect(client.read([{ topic: 'orders', partition: 0, offset: 9, end: 10 }])).rejects.toMatchObject({
      code: 'OFFSET_OUT_OF_RANGE',
    })
  })

  it('shows what is committed alone, unless it is to show everything', async () => {
    await using client = await Client.start()
    await client.publish('tx', 'before')
    const connection = await client.cluster.leader('tx', 0)
    const transactionalId = 'tx-1'
    const { producerId: id, producerEpoch: epoch } = await connection.request(initProducerId, {
      transactionalId,
      transactionTimeoutMs: 60_000,
    })
    let sequence = 0
    for (const [value, committed] of [
      ['kept', true],
      ['lost', false],
      ['kept too', true],
    ] as const) {
      const topics = [{ name: 'tx', partitions: [0] }]
      const adding = {
        v3AndBelowTransactionalId: transactionalId,
        v3AndBelowProducerId: id,
        v3AndBelowProducerEpoch: epoch,
        v3AndBelowTopics: topics,
      }
      await connection.request(addPartitionsToTxn, adding as never, { upTo: 3 })
      const builder = new BatchBuilder()
      builder.open(0, 1)
      builder.add(new TextEncoder().encode(value), null, null, 1)
      const records = builder.finish({
        leaderEpoch: -1,
        producer: { id, epoch, sequence: sequence++, transactional: true },
      })
      const { topicId } = await client.cluster.topic('tx')
      const topicData = [{ name: 'tx', topicId, partitionData: [{ index: 0, records }] }]
      const { responses } = await connection.request(produce, {
        transactionalId,
        acks: -1,
        timeoutMs: 1_000,
        topicData,
      })
      expect(responses[0]?.partitionResponses[0]?.errorCode).toBe(0)
      await connection.request(
        endTxn,
        { transactionalId, producerId: id, producerEpoch: epoch, committed },
        { upTo: 3 },
      )
    }
    await client.publish('tx', 'after')
    const ends = await offsetsFor(client.cluster, [{ topic: 'tx', partition: 0, timestamp: END }])
    const from = [{ topic: 'tx', partition: 0, offset: 0, end: ends.get('tx/0') }]
    expect((await client.read(from)).map(textOf)).toEqual(['before', 'kept', 'kept too', 'after'])
    const all = await client.read(from, { isolation: 'read_uncommitted' })
    expect(all.map(textOf)).toEqual(['before', 'kept', 'lost', 'kept too', 'after'])
  })
})

describe('offsets', () => {
  it('are told by time and by name, of partitions of several leaders', async () => {
    await using client = await Client.start({ nodes: 2 })
    await client.kafka.broker.createTopic('orders', { partitions: 2 })
    const producer = client.producer()
    for (const timestamp of [100, 200, 300]) {
      for (const partition of [0, 1]) await producer.send(record('orders', 'x', { partition, timestamp }))
    }
    await producer.flush()
    const ask = (timestamp: number) =>
      offsetsFor(
        client.cluster,
        [0, 1].map((partition) => ({ topic: 'orders', partition, timestamp })),
      )
    expect([...(await ask(200)).values()]).toEqual([1, 1])
    expect([...(await ask(301)).values()]).toEqual([-1, -1])
    expect([...(await ask(START)).values(), ...(await ask(END)).values()]).toEqual([0, 0, 3, 3])
  })
})
