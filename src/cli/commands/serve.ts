/** `odradek serve`: a broker at a port, until it is interrupted. */

import { type Broker, type OpenOptions, openBroker } from '../../index.ts'
import { SystemClock } from '../../model/clock.ts'
import type { FaultControl } from '../../server/fault-control.ts'
import { GROUP_CONFIGS, type GroupOptions, MINUTE_MS, OFFSET_RETENTION } from '../../server/group-options.ts'
import { type KafkaServer, RELEASES, serve as serveBroker } from '../../server/server.ts'
import { type Arguments, argumentsOf, NO_WORDS, near, numberOf, pairsOf } from '../arguments.ts'
import { banner } from '../banner.ts'
import { type Command, type Io, OK, UsageError } from '../command.ts'
import { isLogLevel, type LogFormat, type LogLevel, logTo } from '../log.ts'
import { Printer } from '../printer.ts'
import { clientSettings, SECURITY_HELP, SECURITY_OPTIONS, securityOptions } from '../security.ts'
import { table } from '../table.ts'

const CONFIG_ROWS = [...GROUP_CONFIGS, OFFSET_RETENTION].map(({ name, fallback, documentation }) => [
  `  ${name}`,
  String(fallback),
  documentation,
])

const HELP = `odradek serve: a broker that Kafka's clients can use

Usage
  odradek serve [options]

Options
  -p, --port <port>        to listen at (default 9092); 0 takes any free one
  --host <address>         to listen on (default 127.0.0.1, this machine alone)
  --advertised <host[:port]>
                           what clients are told to connect to, where that is another address; with --host 0.0.0.0
                           else localhost, with which only clients on this machine get on
  -d, --data <directory>   keeps everything in a directory; without it, in memory, until the process ends
  --durability <mode>      with --data: fsync (default; an acknowledged record is on the disk) or os (it
                           survives the process, not a power failure)
  --nodes <count>          virtual brokers, each at a port of its own (default 1)
  --partitions <count>     of topics that are made without saying how many (default 1)
  --no-auto-create         topics are not made because a client asks for them
  -c, --config <name=value>
                           a config of groups, below; several times for several
${SECURITY_HELP}
  --metrics-port <port>    for Prometheus (/metrics) and for health (/healthz, /readyz), by HTTP; on this machine
                           alone, unless --insecure is given: then on --host
  --as <release>           tells clients that it is an older Kafka: ${RELEASES.join(', ')}
  --faults-port <port>     for tests of clients, never else: whoever is on this machine can have errors answered,
                           connections dropped and leaders moved, by HTTP: docs/guide/testing.md
  --log <format>           text or json, to standard error (default: text on a terminal, else json)
  --log-level <level>      debug, info, warn or error (default info)
  --help                   this page

Configs, by Kafka's names
${table(CONFIG_ROWS).join('\n')}

Once it listens, it says on standard output where, and how to connect. SIGINT and SIGTERM end it: requests under way
are answered, everything is stored, and the exit code is 0. A second one ends it at once; with --data nothing that
was acknowledged is lost by that.

What each client can do with it: docs/compatibility.md. What survives what: docs/durability.md.

Exit codes: 0 ended as asked; 2 wrong usage, the port or the directory cannot be had.`

const OPTIONS = {
  port: { type: 'string', short: 'p' },
  host: { type: 'string' },
  advertised: { type: 'string' },
  data: { type: 'string', short: 'd' },
  durability: { type: 'string' },
  nodes: { type: 'string' },
  partitions: { type: 'string' },
  'no-auto-create': { type: 'boolean' },
  ...SECURITY_OPTIONS,
  config: { type: 'string', short: 'c', multiple: true },
  'metrics-port': { type: 'string' },
  'faults-port': { type: 'string' },
  as: { type: 'string' },
  log: { type: 'string' },
  'log-level': { type: 'string' },
} as const

/** What the chance of faults comes from; a fault can bring its own. */
const FAULTS_SEED = 1

export const serveCommand: Command = {
  help: HELP,
  run: serve,
}

type ServeOptions = NonNullable<Parameters<typeof serveBroker>[1]>
type MetricsOptions = NonNullable<ServeOptions['metrics']>
type Release = (typeof RELEASES)[number]
type Given = Arguments['options']

async function serve(args: readonly string[], io: Io): Promise<number> {
  const given = argumentsOf(args, OPTIONS, NO_WORDS)
  const { options } = given
  const data = options.data === undefined ? undefined : String(options.data)
  const clock = new SystemClock()
  const logger = logTo(io.stderr, { ...logOptions(options, io), now: () => clock.now() })
  const security = await securityOptions(given)
  const { retention, groups } = configOptions(given)
  const settings = { ...listenerOptions(options), groups, ...security }
  const faultsPort = numberOf('faults-port', options['faults-port'], { min: 0, max: 65_535 })
  const interrupted = io.interrupted()
  const engine = engineOptions(options)
  const broker = await openBroker(engine.url, { ...engine.settings, ...retention, clock, logger })
  try {
    const { server, control } = await opened(broker, settings, faultsPort)
    clock.hold(true)
    const printer = new Printer(io.stdout)
    await printer.lines(banner(server, control?.url, data, clientSettings(security)))
    await printer.flush()
    logger.info({ addresses: server.addresses, clusterId: server.clusterId }, 'listening')
    await new Promise<void>((resolve) => {
      if (interrupted.aborted) resolve()
      else interrupted.addEventListener('abort', () => resolve(), { once: true })
    })
    logger.info({ connections: server.connections }, 'closing')
    await control?.close()
    await server.close()
  } finally {
    await broker.close()
    clock.hold(false)
  }
  logger.info({}, 'closed')
  return OK
}

interface Opened {
  readonly server: KafkaServer
  readonly control?: FaultControl | undefined
}

/** Nothing stands between a client and the broker unless faults are asked for. */
async function opened(
  broker: Broker,
  settings: ServeOptions,
  faultsPort: number | undefined,
): Promise<Opened> {
  if (faultsPort === undefined) return { server: await serveBroker(broker, settings) }
  const { serveWithFaults } = await import('../../server/fault-control.ts')
  return serveWithFaults(broker, settings, FAULTS_SEED, faultsPort)
}

function logOptions(options: Given, { stderr }: Io): { format: LogFormat; level: LogLevel } {
  const format = options.log ?? (stderr.isTTY === true ? 'text' : 'json')
  const level = options['log-level'] ?? 'info'
  if (format !== 'text' && format !== 'json') throw new UsageError(`--log is text or json; not "${format}"`)
  if (isLogLevel(level)) return { format, level }
  throw new UsageError(`--log-level is debug, info, warn or error; not "${level}"`)
}

function listenerOptions(options: Given): Parameters<typeof serveBroker>[1] {
  const port = numberOf('port', options.port, { min: 0, max: 65_535 })
  const nodes = numberOf('nodes', options.nodes, { min: 1, max: 1_000 })
  const partitions = numberOf('partitions', options.partitions, { min: 1, max: 100_000 })
  const { host, advertised } = options
  return {
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host: String(host) }),
    ...(nodes === undefined ? {} : { nodes }),
    ...(advertised === undefined ? {} : { advertised: addressOf(String(advertised)) }),
    ...(partitions === undefined ? {} : { defaultPartitions: partitions }),
    ...(options['no-auto-create'] === true ? { autoCreateTopics: false } : {}),
    ...metricsOptions(options),
    ...(options.as === undefined ? {} : { as: releaseOf(String(options.as)) }),
  }
}

/** @throws UsageError */
function configOptions({ lists }: Arguments): {
  groups: GroupOptions
  retention: { offsetRetentionMs?: number }
} {
  const groups: Record<string, number> = {}
  let retention = {}
  for (const [name, value] of pairsOf('config', lists.config)) {
    const option = GROUP_CONFIGS.find((each) => each.name === name)?.option
    const isRetention = name === OFFSET_RETENTION.name
    if (option === undefined && !isRetention) throw unknownConfig(name)
    const bounds = { min: isRetention ? 1 : 0, max: 2 ** 31 - 1 }
    const number = numberOf(`config ${name}`, value, bounds) as number
    if (option === undefined) retention = { offsetRetentionMs: number * MINUTE_MS }
    else groups[option] = number
  }
  return { groups, retention }
}

function unknownConfig(name: string): UsageError {
  const known = [...GROUP_CONFIGS, OFFSET_RETENTION].map((each) => each.name)
  const meant = near(name, known)
  const hint = meant === undefined ? `; there are ${known.join(', ')}` : `; ${meant}?`
  return new UsageError(`--config: there is no "${name}" here${hint}`)
}

function metricsOptions({ host, insecure, 'metrics-port': given }: Given): { metrics?: MetricsOptions } {
  const port = numberOf('metrics-port', given, { min: 0, max: 65_535 })
  if (port === undefined) return {}
  return {
    metrics: insecure === true && host !== undefined ? { port, host: String(host), insecure } : { port },
  }
}

function releaseOf(text: string): Release {
  const release = RELEASES.find((each) => each === text)
  if (release !== undefined) return release
  throw new UsageError(`--as is one of ${RELEASES.join(', ')}; not "${text}"`)
}

/** `host`, `host:port`, `[::1]:port` */
function addressOf(text: string): { host: string; port?: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port ?? 1) > 65_535 || Number(port ?? 1) === 0) {
    throw new UsageError(
      `--advertised is a host, with a port or without, such as broker.local:9092; not "${text}"`,
    )
  }
  return port === undefined ? { host } : { host, port: Number(port) }
}

function engineOptions({ data, durability }: Given): { url: string; settings: OpenOptions } {
  if (durability !== undefined && durability !== 'fsync' && durability !== 'os') {
    throw new UsageError(`--durability is fsync or os; not "${durability}"`)
  }
  if (data !== undefined)
    return { url: `file:${data}`, settings: durability === undefined ? {} : { durability } }
  if (durability !== undefined) throw new UsageError('--durability goes with --data')
  return { url: 'memory:', settings: {} }
}
