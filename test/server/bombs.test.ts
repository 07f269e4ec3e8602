/**
 * Compressed batches that grow to a thousand times their size and more, produced over a socket: what has to open them
 * stops at 128 MiB, what is too much is one record that failed, and everything after it is delivered.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { Broker } from '../../src/broker.ts'
import { openBroker } from '../../src/index.ts'
import { concat } from '../../src/log/format/bytes.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { writeInt16, writeInt32 } from '../../src/log/format/integers.ts'
import {
  ATTRIBUTES_AT,
  COUNT_AT,
  CRC_AT,
  HEADER_BYTES,
  LAST_DELTA_AT,
  SIZE_AT,
} from '../../src/log/format/layout.ts'
import { MiB } from '../../src/model/limits.ts'
import { compressionWith } from '../../src/node/compression.ts'
import { type KafkaServer, type ServerAddress, serve } from '../../src/server/server.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { createTopics } from '../../src/wire/messages/19-create-topics.ts'
import { batchOf } from '../support/record-batches.ts'
import { WireClient } from './wire-client.ts'

/** What comes out, where nobody stops. */
const INFLATED_BYTES = 192 * MiB
/** Of one that is opened: what comes out of it until then, and copies that are gone soon. */
const MAX_GROWTH_BYTES = 450 * MiB

interface Bomb {
  readonly name: string
  readonly type: number
  readonly bytes: () => Uint8Array
  /** How many times as large it becomes, at least. */
  readonly grows: number
}

const varint = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 0x80))]

/** One literal byte, and then copies of 64 bytes of it: nothing in Snappy is denser. */
function snappyBlock(sizeBytes: number): Uint8Array {
  const copies = Math.floor((sizeBytes - 1) / 64)
  const head = Uint8Array.from([...varint(1 + copies * 64), 0, 0])
  const block = new Uint8Array(head.length + copies * 3)
  block.set(head)
  for (let at = head.length; at < block.length; at += 3) block.set([(63 << 2) | 2, 1, 0], at)
  return block
}

/** Blocks of 4 MiB, each a byte that is repeated: a length that grows by 255 with every byte. */
function lz4Frame(sizeBytes: number): Uint8Array {
  const matches = Math.floor((4 * MiB - 1 - 4 - 15) / 255)
  const block = new Uint8Array(1 + 1 + 2 + matches + 1 + 1)
  block.set([0x1f, 0, 1, 0])
  block.fill(255, 4, 4 + matches)
  const length = new Uint8Array(4)
  new DataView(length.buffer).setUint32(0, block.length, true)
  const parts: Uint8Array[] = [Uint8Array.of(4, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73)]
  for (let made = 0; made < sizeBytes; made += 4 * MiB) parts.push(length, block)
  return concat([...parts, new Uint8Array(4)])
}

/** Blocks of 128 KiB, each a byte that is repeated: four bytes each. */
function zstdFrame(sizeBytes: number): Uint8Array {
  const blocks = Math.ceil(sizeBytes / (128 * 1024))
  const frame = new Uint8Array(6 + 4 * blocks)
  frame.set([0x28, 0xb5, 0x2f, 0xfd, 0, 0x50])
  for (let i = 0; i < blocks; i++) {
    const header = ((128 * 1024) << 3) | (1 << 1) | (i === blocks - 1 ? 1 : 0)
    frame.set([header & 0xff, (header >> 8) & 0xff, header >> 16, 0], 6 + 4 * i)
  }
  return frame
}

const BOMBS: readonly Bomb[] = [
  { name: 'gzip', type: 1, grows: 1_000, bytes: () => gzipSync(new Uint8Array(INFLATED_BYTES)) },
  { name: 'snappy', type: 2, grows: 21, bytes: () => snappyBlock(INFLATED_BYTES) },
  // As many bytes as memory has, in a block of ten.
  {
    name: 'snappy that lies',
    type: 2,
    grows: 1e7,
    bytes: () => Uint8Array.from([...varint(2 ** 31), 0, 0, 9, 9]),
  },
  { name: 'lz4', type: 3, grows: 250, bytes: () => lz4Frame(INFLATED_BYTES) },
  { name: 'zstd', type: 4, grows: 30_000, bytes: () => zstdFrame(INFLATED_BYTES) },
]

/** A batch with a sum that is right, whose records are these bytes. */
function batchWith(records: Uint8Array, type: number, count: number): Uint8Array {
  const batch = new Uint8Array(HEADER_BYTES + records.length)
  batch.set(batchOf({ values: ['a'], timestamp: Date.now() }).subarray(0, HEADER_BYTES))
  batch.set(records, HEADER_BYTES)
  writeInt32(batch, SIZE_AT, batch.length - 12)
  writeInt16(batch, ATTRIBUTES_AT, type)
  writeInt32(batch, COUNT_AT, count)
  writeInt32(batch, LAST_DELTA_AT, count - 1)
  writeInt32(batch, CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)))
  return batch
}

class Target implements AsyncDisposable {
  readonly broker: Broker
  readonly #server: KafkaServer
  readonly #client: WireClient
  readonly #directory: string

  /** On files, which alone can be compacted, and decode as memory does. */
  static async open(configs: Readonly<Record<string, string>> = {}): Promise<Target> {
    const directory = await mkdtemp(join(tmpdir(), 'odradek-bombs-'))
    const broker = (await openBroker(`file:${directory}`)) as unknown as Broker
    const server = await serve(broker, { port: 0 })
    const client = await WireClient.connect(server.addresses[0] as ServerAddress)
    const all = { 'max.message.bytes': String(16 * MiB), ...configs }
    const topic = {
      name: 'orders',
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      configs: Object.entries(all).map(([name, value]) => ({ name, value })),
    }
    const { topics } = await client.ask(createTopics, 7, {
      topics: [topic],
      timeoutMs: 0,
      validateOnly: false,
    })
    expect(topics[0]?.errorCode).toBe(KAFKA_ERRORS.NONE)
    return new Target(directory, broker, server, client)
  }

  private constructor(directory: string, broker: Broker, server: KafkaServer, client: WireClient) {
    this.#directory = directory
    this.broker = broker
    this.#server = server
    this.#client = client
  }

  /** Texts that a reader in process is handed, and how many records were given up. */
  async read(): Promise<{ values: string[]; lengths: number[]; letters: number }> {
    const all: Uint8Array[] = []
    await using _ = await this.broker.subscribe('orders', ({ value }) => void all.push(value as Uint8Array), {
      group: 'g',
      from: 'earliest',
    })
    await this.broker.idle()
    const values = all.map((value) => new TextDecoder().decode(value.subarray(0, 100)))
    const letters = this.broker.listTopics().includes('dlq.orders')
      ? await this.broker.read('dlq.orders')
      : []
    return { values, lengths: all.map(({ length }) => length), letters: letters.length }
  }

  async produce(records: Uint8Array): Promise<number> {
    const topicData = [{ name: 'orders', partitionData: [{ index: 0, records }] }]
    const { responses } = await this.#client.ask(produce, 9, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 10_000,
      topicData,
    })
    return responses[0]?.partitionResponses[0]?.errorCode as number
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close()
    await this.#server.close({ drainMs: 0 })
    await this.broker.close({ drainMs: 0 })
    await rm(this.#directory, { recursive: true })
  }
}

const good = (value: string): Uint8Array => batchOf({ values: [value], timestamp: Date.now() })

describe.each(BOMBS)('a bomb by $name', ({ type, bytes, grows }) => {
  const bomb = bytes()

  it('is as small as it must be to be taken', () => {
    expect(bomb.length * grows).toBeLessThan(Math.max(INFLATED_BYTES, 2 ** 31))
    expect(bomb.length).toBeLessThan(16 * MiB)
  })

  it.each([1, 1_000])(
    'of %i records is one record that failed, and what follows is delivered',
    async (count) => {
      await using target = await Target.open()
      const before = process.memoryUsage().rss
      expect(await target.produce(batchWith(bomb, type, count))).toBe(KAFKA_ERRORS.NONE)
      expect(await target.produce(good('after'))).toBe(KAFKA_ERRORS.NONE)
      expect(await target.read()).toMatchObject({ values: ['after'], letters: 1 })
      expect(process.memoryUsage().rss - before).toBeLessThan(MAX_GROWTH_BYTES)
    },
  )

  it.each([
    ['is compacted', { 'cleanup.policy': 'compact' }],
    ['has a compression of its own', { 'compression.type': type === 1 ? 'lz4' : 'gzip' }],
  ])('is refused by a topic that %s, and the next batch is not', async (_, configs) => {
    await using target = await Target.open(configs as Record<string, string>)
    const before = process.memoryUsage().rss
    expect(await target.produce(batchWith(bomb, type, 1))).toBe(KAFKA_ERRORS.CORRUPT_MESSAGE)
    expect(process.memoryUsage().rss - before).toBeLessThan(MAX_GROWTH_BYTES)
    expect(await target.produce(good('after'))).toBe(KAFKA_ERRORS.NONE)
  })

  it('is not opened by a topic that puts its own time on it', async () => {
    await using target = await Target.open({ 'message.timestamp.type': 'LogAppendTime' })
    const before = process.memoryUsage().rss
    expect(await target.produce(batchWith(bomb, type, 1))).toBe(KAFKA_ERRORS.NONE)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MiB)
    expect(await target.produce(good('after'))).toBe(KAFKA_ERRORS.NONE)
  })
})

describe('what grows to less than 128 MiB', () => {
  it('is delivered, however small it was', async () => {
    await using target = await Target.open()
    const value = 'z'.repeat(64 * MiB)
    const port = await compressionWith()
    const batch = batchOf({ values: [value], timestamp: Date.now(), compression: { type: 1, port } })
    expect(batch.length * 900).toBeLessThan(value.length)
    expect(await target.produce(batch)).toBe(KAFKA_ERRORS.NONE)
    expect(await target.produce(good('after'))).toBe(KAFKA_ERRORS.NONE)
    expect(await target.read()).toMatchObject({ lengths: [64 * MiB, 5], letters: 0 })
  })
})
