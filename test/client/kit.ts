/** A client at a broker of its own. */

import { KafkaCluster } from '../../src/client/cluster.ts'
import type { ConnectionOptions } from '../../src/client/connection.ts'
import type { FetchedRecord } from '../../src/client/fetched.ts'
import { Fetcher, type FetcherOptions, type ReadFrom } from '../../src/client/fetcher.ts'
import { type OutgoingRecord, Producer } from '../../src/client/producer.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { SystemClock } from '../../src/model/clock.ts'
import { lazyCompression } from '../../src/node/compression.ts'
import { startTestServer, type TestServer, type TestServerOptions } from '../../src/testing/test-server.ts'

export const clock = new SystemClock()
export const formats: FetcherOptions = { compression: lazyCompression(), crc32c, isolation: 'read_committed' }
export const CONNECTION: ConnectionOptions = { clientId: 'test', clock, timeoutMs: 10_000, version: '0' }

const text = new TextEncoder()

export class Client implements AsyncDisposable {
  readonly kafka: TestServer
  readonly cluster: KafkaCluster

  constructor(kafka: TestServer, options: Partial<ConnectionOptions> = {}) {
    this.kafka = kafka
    const bootstrap = kafka.bootstrap.split(',').map(addressOf)
    this.cluster = new KafkaCluster(bootstrap, { ...CONNECTION, ...options })
  }

  static async start(options: TestServerOptions = {}): Promise<Client> {
    return new Client(await startTestServer(options))
  }

  producer(options: Partial<ConstructorParameters<typeof Producer>[1]> = {}): Producer {
    return new Producer(this.cluster, { clock, crc32c, timeoutMs: 10_000, ...options })
  }

  /** Sends values, and waits until they are acknowledged. */
  async publish(topic: string, ...values: readonly string[]): Promise<void> {
    const producer = this.producer()
    for (const value of values) await producer.send(record(topic, value))
    await producer.flush()
  }

  /** All from there to the ends, which must be given. */
  async read(from: readonly ReadFrom[], options: Partial<FetcherOptions> = {}): Promise<FetchedRecord[]> {
    const records: FetchedRecord[] = []
    const fetcher = new Fetcher(this.cluster, from, { ...formats, ...options })
    for await (const fetched of fetcher.run(new AbortController().signal)) records.push(...fetched.records)
    return records
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.close()
    await this.kafka.close()
  }
}

export function addressOf(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) }
}

export function record(
  topic: string,
  value: string | null,
  more: Partial<OutgoingRecord> = {},
): OutgoingRecord {
  const bytes = value === null ? null : text.encode(value)
  return { topic, partition: null, key: null, value: bytes, headers: null, timestamp: 1, tag: 0, ...more }
}

export function textOf({ value }: { readonly value: Uint8Array | null }): string | null {
  return value === null ? null : new TextDecoder().decode(value)
}
