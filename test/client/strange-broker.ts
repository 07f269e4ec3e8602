/** A broker that answers what a test says, however strange: as one that is of another make, too new, or broken. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { KafkaCluster } from '../../src/client/cluster.ts'
import { type Api, readRequest, readRequestHeader, writeResponse } from '../../src/wire/api.ts'
import { FrameReader } from '../../src/wire/frames.ts'
import { metadata } from '../../src/wire/messages/03-metadata.ts'
import { findCoordinator } from '../../src/wire/messages/10-find-coordinator.ts'
import { apiVersions } from '../../src/wire/messages/18-api-versions.ts'
import { WireReader } from '../../src/wire/reader.ts'
import { CONNECTION } from './kit.ts'

/** An API, and what is answered: a body, or what makes one of the request's. */
export type Answering = readonly [api: Api, answer: object | ((request: never) => object)]

export class StrangeBroker implements AsyncDisposable {
  readonly port: number
  readonly cluster: KafkaCluster
  readonly #server: Server
  readonly #answers: ReadonlyMap<number, Answering>

  private constructor(server: Server, answers: readonly Answering[]) {
    this.port = (server.address() as { port: number }).port
    this.cluster = new KafkaCluster([{ host: '127.0.0.1', port: this.port }], CONNECTION)
    this.#server = server
    const all: readonly Answering[] = [
      [apiVersions, () => this.#versions()],
      [metadata, () => ({ brokers: this.brokers, topics: [] })],
      [findCoordinator, { coordinators: [{ key: 'g', nodeId: 0, host: '127.0.0.1', port: this.port }] }],
      ...answers,
    ]
    this.#answers = new Map(all.map((each) => [each[0].key, each]))
    server.on('connection', (socket) => this.#serve(socket))
  }

  /** It is its own coordinator, and has no topics, unless the answers say so. */
  static async start(...answers: readonly Answering[]): Promise<StrangeBroker> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new StrangeBroker(server, answers)
  }

  get brokers(): readonly object[] {
    return [{ nodeId: 0, host: '127.0.0.1', port: this.port }]
  }

  #versions(): object {
    const apiKeys = [...this.#answers.values()].map(([{ key, min, max }]) => {
      return { apiKey: key, minVersion: min, maxVersion: max }
    })
    return { apiKeys }
  }

  #serve(socket: Socket): void {
    const frames = new FrameReader(() => true)
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      frames.push(chunk)
      for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
        for (const piece of this.#answer(frame)) socket.write(piece)
      }
    })
  }

  #answer(frame: Uint8Array): Uint8Array[] {
    const from = new WireReader(frame)
    const { apiKey, apiVersion, correlationId } = readRequestHeader(from)
    const [api, answer] = this.#answers.get(apiKey) as Answering
    const request = readRequest(api, apiVersion, from) as never
    const body = typeof answer === 'function' ? answer(request) : answer
    return writeResponse(api, apiVersion, correlationId, body as never)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster.close()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
