/**
 * Serves a broker by Kafka's protocol. One world for all listeners and nodes: what one connection does, every other one
 * sees, and the program too.
 *
 *   Listener ─► Connection ─┐
 *   Listener ─► Connection ─┼─► Router ─► handlers ─► World ─► the broker's parts
 *   Listener ─► Connection ─┘
 *
 * The broker is the caller's: it outlives its server, and is closed after it. A broker is served once at a time, since
 * what the protocol remembers (sessions, members of groups) is the world's.
 */
import type { Socket } from 'node:net'
import type { Broker } from '../broker.ts'
import { type Drain, drained, drainOf } from '../coordinator/drain.ts'
import type { CoreContext } from '../core/context.ts'
import { invalid } from '../core/settings.ts'
import type { Meta } from '../log/contract.ts'
import { messageOf } from '../model/errors.ts'
import type { CloseOptions } from '../model/options.ts'
import { UUID_BYTES, uuidText } from '../wire/uuid.ts'
import { type Address, Cluster, type Node } from './cluster.ts'
import { Connection, type Shared } from './connection.ts'
import type { Handler } from './handler.ts'
import { handlersOf } from './handlers-as.ts'
import type { HttpPort } from './http-port.ts'
import { BufferedBytes, Places } from './limits.ts'
import { hostOf, Listener } from './listener.ts'
import { exposition, unready } from './metrics.ts'
import type { Release } from './releases.ts'
import { RequestMemory } from './request-memory.ts'
import { type Interceptor, Router } from './router.ts'
import type { Authenticator } from './sasl.ts'
import {
  type ListenerSettings,
  type ServeOptions,
  type ServerSettings,
  serverSettings,
} from './server-options.ts'
import type { Door } from './session.ts'
import { SparseLog } from './sparse-log.ts'
import { Traffic } from './traffic.ts'
import { World } from './world.ts'

export { RELEASES, type Release } from './releases.ts'

/** One port. */
export interface ServerAddress {
  /** The listener's name. */
  readonly listener: string
  /** Id of the node. */
  readonly node: number
  readonly host: string
  /** The one that the system chose, where it was 0. */
  readonly port: number
}

const CLUSTER_ID = 'kafka/cluster-id'
const LOCAL_ALONE =
  'clients of other machines and of containers cannot stay: they are told to connect to localhost; advertise a name of this machine'
const served = new WeakSet<Broker>()

/**
 * Listens, and answers Kafka's clients from `broker`, until it is closed.
 * @throws OdradekError INVALID_ARGUMENT; LISTEN_ERROR when a port cannot be had
 */
export async function serve<Map extends object>(
  broker: Broker<Map>,
  options: ServeOptions = {},
): Promise<KafkaServer> {
  return serveWith(broker as unknown as Broker, options, [])
}

/** @internal `serve`, with `interceptors` in front of the handlers. */
export async function serveWith(
  key: Broker,
  options: ServeOptions,
  interceptors: readonly Interceptor[],
): Promise<KafkaServer> {
  const settings = serverSettings(options)
  const handlers = handlersOf(settings.as)
  if (served.has(key)) {
    throw invalid('this broker is served already; one server can have several listeners')
  }
  served.add(key)
  try {
    const onClosed = (): void => void served.delete(key)
    return await KafkaServer.open(key, settings, { handlers, interceptors, onClosed })
  } catch (error) {
    served.delete(key)
    throw error
  }
}

/** @internal What a server answers with. */
export interface ServerParts {
  readonly handlers: readonly Handler[]
  /** In front of the handlers, in this order: who may do what, and faults for tests. */
  readonly interceptors: readonly Interceptor[]
  readonly onClosed: () => void
}

interface OpenListener {
  readonly settings: ListenerSettings
  readonly node: number
  readonly listener: Listener
  readonly users: Authenticator | undefined
}

/** A broker at its ports. `await using` closes it. */
export class KafkaServer implements AsyncDisposable {
  /** Where it listens. */
  readonly addresses: readonly ServerAddress[]
  /** What clients call `bootstrap.servers`: where the nodes can be reached by the first listener. */
  readonly bootstrap: string
  /** The same after a restart, where the engine is durable. */
  readonly clusterId: string
  readonly #world: World
  readonly #ctx: CoreContext
  readonly #listeners: readonly Listener[]
  readonly #shared: Shared
  readonly #traffic = new Traffic()
  #metrics: HttpPort | undefined
  readonly #places: Places
  /** Of handshakes. */
  readonly #failures: SparseLog
  readonly #connections = new Set<Connection>()
  /** Those of connections, and those that have not come to be one. */
  readonly #sockets = new Set<Socket>()
  readonly #onClosed: () => void
  #refusing = false
  #closing: Promise<void> | undefined

  /** @internal */
  static async open(broker: Broker, settings: ServerSettings, parts: ServerParts): Promise<KafkaServer> {
    const id = await clusterId(broker.parts.engine.meta)
    const open = await openAll(settings)
    const world = new World(broker, new Cluster(id, nodesOf(settings.nodes, open)), settings.world)
    const server = new KafkaServer(world, settings, open, parts)
    try {
      await server.#watch(settings.metrics)
      return server
    } catch (error) {
      await server.close({ drainMs: 0 })
      throw error
    }
  }

  private constructor(
    world: World,
    settings: ServerSettings,
    open: readonly OpenListener[],
    { handlers, interceptors, onClosed }: ServerParts,
  ) {
    const { cluster } = world
    const { limits } = settings
    this.clusterId = cluster.id
    this.#world = world
    this.#ctx = world.parts.ctx
    this.#onClosed = onClosed
    this.#listeners = open.map(({ listener }) => listener)
    this.#places = new Places(limits)
    this.#failures = new SparseLog(this.#ctx.clock)
    this.#shared = {
      ctx: this.#ctx,
      router: new Router(
        world,
        handlers,
        [...(settings.metrics ? [this.#counting] : []), ...interceptors, world.bounds.interceptor],
        limits.maxPlainRequestBytes,
      ),
      limits,
      buffered: new BufferedBytes(limits.maxBufferedBytes),
      traffic: this.#traffic,
      memory: interceptors.length === 0 ? new RequestMemory() : null,
    }
    this.addresses = open.map(({ settings: { name }, node, listener }) => {
      return { listener: name, node, ...listener.address }
    })
    const [first] = settings.listeners as readonly [ListenerSettings]
    this.bootstrap = cluster.nodes.map(({ advertised }) => written(advertised.get(first.name))).join()
    for (const { host, name, advertised, isGuessed } of settings.listeners) {
      if (!isGuessed) continue
      const about = { host, listener: name, advertised: advertised.host }
      this.#ctx.logger.warn(about, LOCAL_ALONE)
    }
    for (const each of open) {
      const door: Door = {
        listener: each.settings.name,
        node: cluster.nodes[each.node] as Node,
        authenticates: each.users !== undefined,
        users: each.users,
      }
      each.listener.start({
        admit: (socket) => this.#admit(socket),
        accept: (socket) => this.#accept(socket, door),
        failed: (client, reason, gone) => this.#insecure({ client, listener: door.listener, reason }, gone),
        onError: (error) =>
          this.#ctx.logger.error({ error }, `a connection could not be taken: ${messageOf(error)}`),
      })
    }
  }

  /** @internal Topics, nodes and groups as handlers see them. */
  get world(): World {
    return this.#world
  }

  /** @internal Speaks no more than that from now on; those who are connected have to ask what it is. */
  speakAs(release: Release | undefined): void {
    this.#shared.router.speak(handlersOf(release))
    for (const connection of this.#connections) connection.drain()
  }

  /** Where metrics are, if anywhere. */
  get metricsAddress(): Pick<ServerAddress, 'host' | 'port'> | undefined {
    return this.#metrics?.address
  }

  get #counting(): Interceptor {
    return this.#traffic.interceptor(this.#ctx.clock)
  }

  /** How many clients are connected. */
  get connections(): number {
    return this.#connections.size
  }

  /**
   * Takes no further request, wakes what waits for records or members, lets what is in flight be answered for `drainMs`
   * at most, and closes all connections. The broker stays open.
   */
  close(options: CloseOptions = {}): Promise<void> {
    try {
      this.#closing ??= this.#close(drainOf(options))
      return this.#closing
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #watch(address: Address | undefined): Promise<void> {
    if (address === undefined) return
    const { openMetrics } = await import('./metrics-server.ts')
    this.#metrics = await openMetrics(address, {
      metrics: () => {
        const { connections } = this
        return exposition(this.#world, this.#traffic, {
          connections,
          bufferedBytes: this.#shared.buffered.bytes,
        })
      },
      unready: () => (this.#closing === undefined ? unready(this.#world) : 'the server is closing'),
    })
  }

  #admit(socket: Socket): boolean {
    const host = hostOf(socket)
    const refused = this.#places.take(host)
    if (refused !== undefined) {
      // Told once for each time that it is so: whoever comes again and again must not fill the log.
      if (!this.#refusing) this.#ctx.logger.warn({ client: host }, `a connection is refused: ${refused}`)
      this.#refusing = true
      return false
    }
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#places.give(host)
      this.#refusing = false
    })
    return true
  }

  #insecure(about: { client: string; listener: string; reason: string }, gone: boolean): void {
    const message = 'a connection did not become a secure one'
    if (gone) {
      this.#ctx.logger.debug(about, message)
      return
    }
    const leftOut = this.#failures.take(about.client)
    if (leftOut === undefined) return
    const more = leftOut === 0 ? {} : { leftOut }
    this.#ctx.logger.warn({ ...about, ...more }, message)
  }

  #accept(socket: Socket, door: Door): void {
    if (this.#closing !== undefined) {
      socket.destroy()
      return
    }
    const connection = new Connection(socket, hostOf(socket), door, this.#shared)
    this.#connections.add(connection)
    void connection.closed.then(() => void this.#connections.delete(connection))
  }

  async #close(drain: Drain): Promise<void> {
    const listening = Promise.all(this.#listeners.map((listener) => listener.close()))
    const connections = [...this.#connections]
    for (const connection of connections) connection.drain()
    const ended = Promise.all(connections.map(({ closed }) => closed)).then(() => {})
    await drained(this.#ctx, ended, drain)
    for (const connection of connections) connection.destroy()
    await ended
    for (const socket of this.#sockets) socket.destroy()
    await listening
    await this.#metrics?.close()
    this.#onClosed()
  }
}

/** All ports of all listeners, or none. */
async function openAll({ listeners, nodes }: ServerSettings): Promise<OpenListener[]> {
  const open: OpenListener[] = []
  try {
    for (const settings of listeners) {
      const { host, port, tls, sasl } = settings
      const users = sasl && (await (await import('./sasl.ts')).Authenticator.open(sasl))
      for (let node = 0; node < nodes; node++) {
        const address = { host, port: port === 0 ? 0 : port + node }
        open.push({ settings, node, listener: await Listener.open(address, tls), users })
      }
    }
    return open
  } catch (error) {
    await Promise.all(open.map(({ listener }) => listener.close()))
    throw error
  }
}

function nodesOf(count: number, open: readonly OpenListener[]): Node[] {
  return Array.from({ length: count }, (_, id) => {
    const own = open.filter(({ node }) => node === id)
    const advertised = new Map(
      own.map(({ settings, listener }): [string, Address] => {
        const { host = settings.host, port } = settings.advertised
        return [settings.name, { host, port: port === undefined ? listener.address.port : port + id }]
      }),
    )
    return { id, advertised }
  })
}

/** Made when a broker is served for the first time. */
async function clusterId(meta: Meta): Promise<string> {
  const stored = meta.get(CLUSTER_ID)
  if (typeof stored === 'string') return stored
  const id = uuidText(crypto.getRandomValues(new Uint8Array(UUID_BYTES)), 0)
  await meta.put([[CLUSTER_ID, id]])
  return id
}

function written(address: Address | undefined): string {
  const { host, port } = address as Address
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
