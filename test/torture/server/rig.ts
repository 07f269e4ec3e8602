/**
 * A whole server without sockets: a broker on the manual clock, served by the real connections, router and handlers, with
 * what a busy broker has: topics of every kind, a group of this process that holds a log, and one that reads along.
 */

import type { Engine } from '../../../src/log/contract.ts'
import { Connection, type Shared } from '../../../src/server/connection.ts'
import type { Handler } from '../../../src/server/handler.ts'
import { HANDLERS } from '../../../src/server/handlers.ts'
import { BufferedBytes } from '../../../src/server/limits.ts'
import { RequestMemory } from '../../../src/server/request-memory.ts'
import { Router } from '../../../src/server/router.ts'
import { Traffic } from '../../../src/server/traffic.ts'
import type { ManualClock } from '../../../src/testing/manual-clock.ts'
import { KafkaWorld } from '../../support/kafka.ts'
import type { Dice } from '../dice.ts'
import { PipeClient } from './pipe.ts'

export const HONEST_TOPIC = 'honest-records'
export const HONEST_PARTITIONS = 2

export interface RigOptions {
  readonly engine?: Engine
  readonly clock?: ManualClock
  /** In place of those of the same key. */
  readonly handlers?: readonly Handler[]
}

export class Rig extends KafkaWorld {
  readonly shared: Shared
  readonly handlers: readonly Handler[]
  readonly connections = new Set<Connection>()
  /** What the reader in process was handed. */
  readonly handed: string[] = []

  constructor(dice: Dice, { handlers = [], ...options }: RigOptions = {}) {
    super({ ...options, broker: { random: () => dice.share() } })
    const replaced = new Map(handlers.map((each) => [each.api.key, each]))
    this.handlers = HANDLERS.map((each) => replaced.get(each.api.key) ?? each)
    this.shared = {
      ctx: this.kafka.parts.ctx,
      router: new Router(this.kafka, this.handlers, [this.kafka.bounds.interceptor]),
      limits: { maxRequestBytes: 2 ** 24, maxIdleMs: 600_000 },
      traffic: new Traffic(),
      memory: new RequestMemory(),
      buffered: new BufferedBytes(2 ** 28),
    }
  }

  async furnish(): Promise<void> {
    const { broker } = this
    await broker.createTopic(HONEST_TOPIC, { partitions: HONEST_PARTITIONS })
    await broker.createTopic('plain', { partitions: 1 })
    await broker.createTopic('wide', { partitions: 4 })
    if (this.kafka.parts.engine.compacts) await broker.createTopic('compacted', { cleanup: 'compact' })
    await broker.createTopic('held', { retention: { bytes: 4_000 } })
    await this.kafka.configs.create('packed', 1, { 'compression.type': 'gzip' })
    await this.kafka.configs.create('stamped', 2, { 'message.timestamp.type': 'LogAppendTime' })
    await broker.subscribe(HONEST_TOPIC, ({ value }) => void this.handed.push(textOf(value)), {
      group: 'honest-process',
      from: 'earliest',
    })
    // Takes what it is given and is never done: the log is full before long, and produces wait.
    await broker.subscribe('held', () => {}, { group: 'manual', ack: 'manual', ackTimeoutMs: 2 ** 31 - 1 })
    await broker.subscribe(['plain', 'wide'][0] as string, () => {}, { group: 'process' })
    await this.settle()
  }

  connect(onFrame: (frame: Uint8Array) => void): PipeClient {
    const client = new PipeClient(onFrame)
    const node = this.kafka.cluster.nodes[0]
    if (node === undefined) throw new Error('there is a node')
    const door = { listener: 'PLAINTEXT', node, authenticates: false }
    const connection = new Connection(client.server, '127.0.0.1', door, this.shared)
    this.connections.add(connection)
    void connection.closed.then(() => this.connections.delete(connection))
    return client
  }
}

function textOf(value: unknown): string {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value)
}
