/** What a server may be told, checked, with the defaults filled in. */
import { count, flag, invalid, known, nonNegative, positive } from '../core/settings.ts'
import { MAX_PARTITIONS } from '../model/limits.ts'
import { isLoopback } from './addresses.ts'
import { type BoundsOptions, DEFAULT_BOUNDS } from './bounds.ts'
import type { Address } from './cluster.ts'
import { type GroupOptions, groupSettings } from './group-options.ts'
import {
  DEFAULT_MAX_BUFFERED_BYTES,
  DEFAULT_MAX_CONNECTIONS,
  DEFAULT_MAX_IDLE_MS,
  DEFAULT_MAX_PLAIN_REQUEST_BYTES,
  DEFAULT_MAX_REQUEST_BYTES,
  type ServerLimits,
} from './limits.ts'
import { RELEASES, type Release } from './releases.ts'
import { type SaslOptions, type SaslSettings, saslSettings } from './sasl-options.ts'
import { type TlsOptions, type TlsSettings, tlsSettings } from './tls-options.ts'
import type { WorldOptions } from './world.ts'

/** A port, or one for each node. */
export interface ListenerOptions {
  /** How it is called in logs. Default `PLAINTEXT`. */
  readonly name?: string
  /** Address to listen on. Default `127.0.0.1`: this machine alone. `0.0.0.0` and `::` are all of them. */
  readonly host?: string
  /** Default 9092; 0 is any free one. Several nodes take as many ports, from this one on. */
  readonly port?: number
  /** Where clients are told to connect. Default: where it listens; for all addresses `localhost`, with a warning. */
  readonly advertised?: { readonly host?: string; readonly port?: number }
  /** Key and certificate: then clients connect by TLS, and not otherwise. */
  readonly tls?: TlsOptions
  /** Users: then a client shows who it is before anything else is answered. */
  readonly sasl?: SaslOptions
  /**
   * Whether others than this machine may come without `tls` and `sasl`, and passwords be sent as they are: for networks
   * where everybody is trusted. Default false.
   */
  readonly insecure?: boolean
}

/** A port for Prometheus and for those that ask whether the server is well: plain HTTP, for everybody who reaches it. */
export interface MetricsOptions {
  /** Default 9308, as kafka_exporter; 0 is any free one. */
  readonly port?: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Whether others than this machine may read names of topics and groups, and how busy they are. Default false. */
  readonly insecure?: boolean
}

/** One listener and what holds for all of the server. */
export interface ServeOptions extends Omit<ListenerOptions, 'name'> {
  /** Several of them; then `host`, `port` and `advertised` are theirs. */
  readonly listeners?: readonly ListenerOptions[]
  /** Brokers that clients see, each at a port of its own. Default 1. */
  readonly nodes?: number
  /** Whether topics are created when a client asks for them. Default true. */
  readonly autoCreateTopics?: boolean
  /** Partitions of topics that are created without saying how many. Default 1. */
  readonly defaultPartitions?: number
  /** Times and sizes of groups of Kafka's protocol. */
  readonly groups?: GroupOptions
  /** Of one request. Default 100 MiB. */
  readonly maxRequestBytes?: number
  /** Of one that is no Produce: what is read of it takes up to fifty times as much memory. Default 8 MiB. */
  readonly maxPlainRequestBytes?: number
  /** Requests and responses of all connections together. Default 256 MiB. */
  readonly maxBufferedBytes?: number
  /** Default 10,000. */
  readonly maxConnections?: number
  /** Default: no bound of its own. */
  readonly maxConnectionsPerAddress?: number
  /** Milliseconds without a byte after which a connection is closed. Default 10 minutes. */
  readonly maxIdleMs?: number
  /** Partitions of all topics together, beyond which clients make no more. Default 50,000. */
  readonly maxPartitions?: number
  /** Groups of Kafka's protocol, with those that nobody is in any more. Default 50,000. */
  readonly maxGroups?: number
  /** Committed offsets of all groups together. Default 1,000,000. */
  readonly maxCommittedOffsets?: number
  /** Default 50,000. */
  readonly maxTransactionalIds?: number
  /** What members of all groups say of themselves and are assigned, and 512 for each. Default 128 MiB. */
  readonly maxMemberBytes?: number
  /** What clients are told that this is: versions of APIs that came later are not spoken. Default: the newest. */
  readonly as?: Release
  /** Default: none. */
  readonly metrics?: MetricsOptions
}

export interface ListenerSettings {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly advertised: Partial<Address>
  /** It listens on all addresses, and nobody said by which name clients of other machines reach it. */
  readonly isGuessed: boolean
  readonly tls: TlsSettings | undefined
  readonly sasl: SaslSettings | undefined
}

export interface ServerSettings {
  readonly listeners: readonly ListenerSettings[]
  readonly nodes: number
  readonly world: WorldOptions
  readonly limits: ServerLimits
  readonly metrics: Address | undefined
  readonly as: Release | undefined
}

const LISTENER_OPTIONS = ['host', 'port', 'advertised', 'tls', 'sasl', 'insecure'] as const
const OPTIONS = [
  ...LISTENER_OPTIONS,
  'listeners',
  'nodes',
  'autoCreateTopics',
  'defaultPartitions',
  'groups',
  'maxRequestBytes',
  'maxPlainRequestBytes',
  'maxBufferedBytes',
  'maxConnections',
  'maxConnectionsPerAddress',
  'maxIdleMs',
  'maxPartitions',
  'maxGroups',
  'maxCommittedOffsets',
  'maxTransactionalIds',
  'maxMemberBytes',
  'metrics',
  'as',
] as const

const DEFAULT_LISTENER = 'PLAINTEXT'
const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_PORT = 9092
const DEFAULT_METRICS_PORT = 9308
const MAX_PORT = 65_535
const MAX_NODES = 1_000
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** @throws OdradekError INVALID_ARGUMENT */
export function serverSettings(options: ServeOptions): ServerSettings {
  const given = known('serve', options, OPTIONS)
  const nodes = atMost('nodes', count('nodes', given.nodes, 1), MAX_NODES)
  const maxConnections = count('maxConnections', given.maxConnections, DEFAULT_MAX_CONNECTIONS)
  return {
    listeners: listenersOf(given, nodes),
    nodes,
    world: {
      autoCreateTopics: flag('autoCreateTopics', given.autoCreateTopics, true),
      defaultPartitions: atMost(
        'defaultPartitions',
        count('defaultPartitions', given.defaultPartitions, 1),
        MAX_PARTITIONS,
      ),
      bounds: boundsOf(given),
      groups: groupSettings(given.groups),
    },
    limits: {
      maxRequestBytes: count('maxRequestBytes', given.maxRequestBytes, DEFAULT_MAX_REQUEST_BYTES),
      maxPlainRequestBytes: count(
        'maxPlainRequestBytes',
        given.maxPlainRequestBytes,
        DEFAULT_MAX_PLAIN_REQUEST_BYTES,
      ),
      maxBufferedBytes: count('maxBufferedBytes', given.maxBufferedBytes, DEFAULT_MAX_BUFFERED_BYTES),
      maxConnections,
      maxConnectionsPerAddress: count(
        'maxConnectionsPerAddress',
        given.maxConnectionsPerAddress,
        maxConnections,
      ),
      maxIdleMs: positive('maxIdleMs', given.maxIdleMs, DEFAULT_MAX_IDLE_MS),
    },
    as: given.as === undefined ? undefined : releaseOf(given.as),
    metrics: given.metrics && metricsOf(given.metrics),
  }
}

function boundsOf(options: ServeOptions): BoundsOptions {
  const of = (name: keyof BoundsOptions): number => count(name, options[name], DEFAULT_BOUNDS[name])
  return {
    maxPartitions: of('maxPartitions'),
    maxGroups: of('maxGroups'),
    maxCommittedOffsets: of('maxCommittedOffsets'),
    maxTransactionalIds: of('maxTransactionalIds'),
    maxMemberBytes: of('maxMemberBytes'),
  }
}

function listenersOf(options: ServeOptions, nodes: number): ListenerSettings[] {
  const { listeners } = options
  if (listeners === undefined) {
    const own = Object.fromEntries(LISTENER_OPTIONS.map((name) => [name, options[name]]))
    return [listenerOf('serve', own as ListenerOptions, nodes)]
  }
  for (const name of LISTENER_OPTIONS) {
    if (options[name] !== undefined) throw invalid(`with listeners, ${name} is an option of each of them`)
  }
  if (!Array.isArray(listeners) || listeners.length === 0)
    throw invalid('listeners is a list of at least one')
  const settings = listeners.map((each, i) => {
    const listener = known(`listeners[${i}]`, each, ['name', ...LISTENER_OPTIONS])
    return listenerOf(`listeners[${i}]`, listener, nodes)
  })
  const names = new Set(settings.map(({ name }) => name))
  if (names.size < settings.length) throw invalid('listeners have different names')
  return settings
}

function listenerOf(where: string, options: ListenerOptions, nodes: number): ListenerSettings {
  const host = text(`${where}: host`, options.host, DEFAULT_HOST)
  const port = portOf(`${where}: port`, options.port, DEFAULT_PORT, nodes)
  const advertised = known(`${where}: advertised`, options.advertised, ['host', 'port'])
  const { tls, sasl } = securityOf(where, host, options)
  const isEverywhere = WILDCARDS.has(host)
  const own = text(`${where}: advertised.host`, advertised.host, isEverywhere ? 'localhost' : host)
  if (WILDCARDS.has(own)) throw invalid(`${where}: advertised.host is one that clients can reach, not ${own}`)
  const settings = {
    name: text(`${where}: name`, options.name, DEFAULT_LISTENER),
    host,
    port,
    advertised: { host: own },
    isGuessed: isEverywhere && advertised.host === undefined,
    tls,
    sasl,
  }
  if (advertised.port === undefined) return settings
  const known_ = portOf(`${where}: advertised.port`, advertised.port, 0, nodes)
  if (known_ === 0) throw invalid(`${where}: advertised.port is one that clients can connect to, not 0`)
  return { ...settings, advertised: { ...settings.advertised, port: known_ } }
}

/** What others could use or read is refused, unless that is said to be meant. */
function securityOf(
  where: string,
  host: string,
  options: ListenerOptions,
): Pick<ListenerSettings, 'tls' | 'sasl'> {
  const insecure = flag(`${where}: insecure`, options.insecure, false)
  const tls = options.tls === undefined ? undefined : tlsSettings(`${where}: tls`, options.tls)
  const mayPlain = tls !== undefined || insecure
  const sasl = options.sasl === undefined ? undefined : saslSettings(`${where}: sasl`, options.sasl, mayPlain)
  if (insecure || isLoopback(host)) return { tls, sasl }
  // Whoever has a certificate of that authority has shown who it is.
  const authenticated = sasl !== undefined || tls?.requestCert === true
  if (authenticated && tls !== undefined) return { tls, sasl }
  const missing = [
    ...(tls === undefined ? ['tls: { key, cert }'] : []),
    ...(authenticated ? [] : ["sasl: { users: { name: 'password' } }"]),
  ]
  throw invalid(
    `${where}: ${host} can be reached by other machines: give ${missing.join(' and ')}, or say insecure: true`,
  )
}

function releaseOf(text: string): Release {
  const release = RELEASES.find((each) => each === text)
  if (release !== undefined) return release
  throw invalid(`as is one of ${RELEASES.join(', ')}; got ${text}`)
}

function metricsOf(options: MetricsOptions): Address {
  const given = known('metrics', options, ['port', 'host', 'insecure'])
  const host = text('metrics.host', given.host, DEFAULT_HOST)
  const port = portOf('metrics.port', given.port, DEFAULT_METRICS_PORT, 1)
  if (flag('metrics.insecure', given.insecure, false) || isLoopback(host)) return { host, port }
  throw invalid(`metrics: ${host} can be reached by other machines; say insecure: true if they may read this`)
}

function portOf(name: string, value: number | undefined, otherwise: number, nodes: number): number {
  const port = nonNegative(name, value, otherwise)
  if (!Number.isInteger(port)) throw invalid(`${name} is a whole number; got ${port}`)
  return atMost(name, port, port === 0 ? 0 : MAX_PORT + 1 - nodes)
}

function text(name: string, value: string | undefined, otherwise: string): string {
  if (value === undefined) return otherwise
  if (typeof value === 'string' && value !== '') return value
  throw invalid(`${name} is text; got ${String(value)}`)
}

function atMost(name: string, value: number, max: number): number {
  if (value <= max) return value
  throw invalid(`${name} is at most ${max}; got ${value}`)
}
