/**
 * A broker seen through the protocol, without a socket: requests are encoded and decoded as on the wire, in the
 * version that is asked for, and handled as a connection would. For tests of handlers.
 */
import type { BrokerOptions } from '../../src/broker.ts'
import type { Engine } from '../../src/log/contract.ts'
import { Cluster, type Node } from '../../src/server/cluster.ts'
import type { Call, Client } from '../../src/server/handler.ts'
import { HANDLERS } from '../../src/server/handlers.ts'
import { World as KafkaSide, type WorldOptions } from '../../src/server/world.ts'
import type { ManualClock } from '../../src/testing/manual-clock.ts'
import {
  type Api,
  type RequestInputOf,
  type ResponseOf,
  readRequest,
  readRequestHeader,
  readResponse,
  writeRequest,
  writeResponse,
} from '../../src/wire/api.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { World } from './world.ts'

const OPTIONS: WorldOptions = { autoCreateTopics: true, defaultPartitions: 1 }

export interface KafkaOptions extends Partial<WorldOptions> {
  readonly nodes?: number
  readonly broker?: BrokerOptions
  readonly engine?: Engine
  readonly clock?: ManualClock
}

export interface Sender {
  readonly clientId?: string
  readonly client?: Partial<Client>
  /** Index of the virtual node. */
  readonly node?: number
}

export class KafkaWorld extends World {
  readonly #open: () => KafkaSide
  #kafka: KafkaSide | undefined

  constructor({ nodes = 1, broker, engine, clock, ...options }: KafkaOptions = {}) {
    super(broker, engine, clock)
    const all = Array.from({ length: nodes }, (_, i): Node => {
      const advertised = new Map([['PLAINTEXT', { host: 'localhost', port: 9092 + i }]])
      return { id: i, advertised }
    })
    const cluster = new Cluster('AAAAAAAAAAAAAAAAAAAAAQ', all)
    this.#open = () => new KafkaSide(this.broker, cluster, { ...OPTIONS, ...options })
  }

  /** Made when it is first asked for: on a durable engine, the broker is to be restored before. */
  get kafka(): KafkaSide {
    this.#kafka ??= this.#open()
    return this.#kafka
  }

  /** Sends a request in a version; rejects where there is no response. */
  readonly send = async <A extends Api>(
    api: A,
    version: number,
    body: RequestInputOf<A>,
    sender: Sender = {},
  ): Promise<ResponseOf<A>> => {
    const response = await this.trySend(api, version, body, sender)
    if (response === null) throw new Error(`${api.name} was not answered`)
    return response
  }

  /** The same; null where there is no response. */
  readonly trySend = async <A extends Api>(
    api: A,
    version: number,
    body: RequestInputOf<A>,
    { clientId = 'test', client, node = 0 }: Sender = {},
  ): Promise<ResponseOf<A> | null> => {
    const handler = HANDLERS.find((each) => each.api.key === api.key)
    if (handler === undefined) throw new Error(`there is no handler for ${api.name}`)
    const frame = joined(writeRequest(api, version, { correlationId: 1, clientId }, body as never))
    const from = new WireReader(frame.subarray(4))
    readRequestHeader(from)
    const request = readRequest(api, version, from)
    const call: Call = {
      version,
      clientId,
      client: {
        host: '127.0.0.1',
        principal: 'User:ANONYMOUS',
        signal: new AbortController().signal,
        ...client,
      },
      node: this.kafka.cluster.nodes[node] as Node,
      listener: 'PLAINTEXT',
    }
    const answer = await handler.answer(request, call, this.kafka)
    if (answer === null) return null
    const response = joined(writeResponse(api, version, 1, answer as never))
    return readResponse(api, version, response.subarray(4)).body as ResponseOf<A>
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces))
}
