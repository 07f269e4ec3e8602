/**
 * Connections on real sockets, with handlers that a test scripts: an API that no client knows, whose requests wait
 * until the test answers them. Time is manual. At its end the kit says what was not given back.
 */

import type { Socket } from 'node:net'
import { Cluster, type Node } from '../../src/server/cluster.ts'
import { Connection, type Shared } from '../../src/server/connection.ts'
import { type Answer, type Call, type Handler, handler } from '../../src/server/handler.ts'
import { BufferedBytes } from '../../src/server/limits.ts'
import { hostOf, Listener } from '../../src/server/listener.ts'
import { RequestMemory } from '../../src/server/request-memory.ts'
import { type Interceptor, Router } from '../../src/server/router.ts'
import type { Authenticator } from '../../src/server/sasl.ts'
import { Session } from '../../src/server/session.ts'
import { Traffic } from '../../src/server/traffic.ts'
import { World as KafkaSide } from '../../src/server/world.ts'
import { api, type RequestOf, type ResponseInputOf } from '../../src/wire/api.ts'
import { bytes, int32, string } from '../../src/wire/schema.ts'
import { World } from '../support/world.ts'
import { requestOf, WireClient } from './wire-client.ts'

export const echo = api({
  key: 1_000,
  name: 'Echo',
  versions: [1, 3],
  flexibleSince: 3,
  request: { name: string, data: bytes, sizeBytes: int32 },
  response: { name: string, data: bytes },
})

type Request = RequestOf<typeof echo>
type Response = ResponseInputOf<typeof echo>

/** A request that the handler got. */
export interface Started {
  readonly request: Request
  readonly call: Call
}

export interface KitOptions {
  readonly answer?: (request: Request, call: Call) => Answer<Response>
  readonly handlers?: readonly Handler[]
  readonly interceptors?: readonly Interceptor[]
  readonly authenticates?: boolean
  readonly users?: Authenticator
  readonly maxRequestBytes?: number
  readonly maxBufferedBytes?: number
  readonly maxIdleMs?: number
}

const NOTHING = new Uint8Array(0)

/** A request of the echo API: `answerBytes` of data come back. */
export function echoOf(name: string, { data = NOTHING, answerBytes = 0, id = 1, version = 1 } = {}): Buffer {
  return requestOf(echo, version, { name, data, sizeBytes: answerBytes }, id)
}

/** What the handler does where a test says nothing. */
export function echoed({ name, sizeBytes }: Request): Response {
  return { name, data: new Uint8Array(sizeBytes) }
}

export class Kit extends World {
  readonly started: Started[] = []
  readonly connections: Connection[] = []
  readonly shared: Shared
  readonly memory: RequestMemory = new RequestMemory()
  readonly #clients: WireClient[] = []
  readonly #side: KafkaSide
  readonly #node: Node
  readonly #listener: Listener

  static async open(options: KitOptions = {}): Promise<Kit> {
    return new Kit(await Listener.open({ host: '127.0.0.1', port: 0 }), options)
  }

  private constructor(listener: Listener, options: KitOptions) {
    super()
    const { answer = echoed, handlers = [], interceptors, authenticates = false } = options
    this.#listener = listener
    const node: Node = { id: 0, advertised: new Map([['PLAINTEXT', listener.address]]) }
    const cluster = new Cluster('AAAAAAAAAAAAAAAAAAAAAQ', [node])
    this.#node = node
    const world = new KafkaSide(this.broker, cluster, { autoCreateTopics: true, defaultPartitions: 1 })
    this.#side = world
    const scripted = handler(echo, (request, call) => {
      this.started.push({ request, call })
      return answer(request, call)
    })
    this.shared = {
      ctx: world.parts.ctx,
      router: new Router(world, [...handlers, scripted], interceptors),
      limits: {
        maxRequestBytes: options.maxRequestBytes ?? 2 ** 20,
        maxIdleMs: options.maxIdleMs ?? 600_000,
      },
      traffic: new Traffic(),
      memory: this.memory,
      buffered: new BufferedBytes(options.maxBufferedBytes ?? 2 ** 28),
    }
    listener.start({
      admit: () => true,
      accept: (socket: Socket) => {
        const door = { listener: 'PLAINTEXT', node, authenticates, users: options.users }
        this.connections.push(new Connection(socket, hostOf(socket), door, this.shared))
      },
      failed: () => {},
      onError: () => {},
    })
  }

  /** One of its own, for handlers that stand for themselves. */
  routerOf(handlers: readonly Handler[]): Router {
    return new Router(this.#side, handlers)
  }

  session(): Session {
    return new Session(
      '127.0.0.1',
      { listener: 'PLAINTEXT', node: this.#node, authenticates: false },
      () => {},
    )
  }

  get names(): string[] {
    return this.started.map(({ request }) => request.name)
  }

  async connect(): Promise<WireClient> {
    const client = await WireClient.connect(this.#listener.address)
    this.#clients.push(client)
    return client
  }

  /** Lets sockets and promises go on until `what` is so. Never waits for time. */
  readonly until = async (what: () => boolean): Promise<void> => {
    while (!what()) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Lets what is on its way on this machine arrive, where nothing is to be seen of it. */
  readonly pass = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }

  reasons(level: 'info' | 'warn' | 'error'): string[] {
    return this.logged
      .filter((each) => each.level === level)
      .map(({ details }) => String((details as { reason?: string }).reason))
  }

  /** Ends it all; what is then still counted has leaked. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close()
    for (const connection of this.connections) connection.destroy()
    await this.#listener.close()
    await Promise.all(this.connections.map(({ closed }) => closed))
    const leaked = { buffered: this.shared.buffered.bytes, due: this.shared.ctx.due.size }
    await this.broker.close()
    if (leaked.buffered !== 0 || leaked.due !== 0) throw new Error(`leaked: ${JSON.stringify(leaked)}`)
  }
}

/** Answers that a test gives when it likes, by the name of the request. */
export class Later {
  readonly #resolves = new Map<string, (answer: Response | null) => void>()
  readonly #rejects = new Map<string, (error: unknown) => void>()

  /** Of those who asked. */
  readonly signals: AbortSignal[] = []

  get size(): number {
    return this.#resolves.size
  }

  readonly answer = ({ name }: Request, call: Call): Promise<Response | null> =>
    new Promise((resolve, reject) => {
      this.signals.push(call.client.signal)
      this.#resolves.set(name, resolve)
      this.#rejects.set(name, reject)
    })

  finish(name: string, data: Uint8Array = NOTHING): void {
    this.#resolves.get(name)?.({ name, data })
  }

  none(name: string): void {
    this.#resolves.get(name)?.(null)
  }

  fail(name: string, error: unknown): void {
    this.#rejects.get(name)?.(error)
  }
}
