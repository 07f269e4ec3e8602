/** `odradek serve`: a broker at a port, until it is interrupted. */
import { type OpenOptions, openBroker } from '../../index.ts'
import { SystemClock } from '../../model/clock.ts'
import { type KafkaServer, RELEASES, serve as serveBroker } from '../../server/server.ts'
import { argumentsOf, NO_WORDS, numberOf } from '../arguments.ts'
import { type Command, type Io, OK, UsageError } from '../command.ts'
import { isLogLevel, type LogFormat, type LogLevel, logTo } from '../log.ts'
import { Printer } from '../printer.ts'
import { clientSettings, SECURITY_HELP, SECURITY_OPTIONS, securityOptions } from '../security.ts'

const HELP = `odradek serve: a broker that Kafka's clients can use

Usage
  odradek serve [options]

Options
  --port <port>            to listen at (default 9092); 0 takes any free one
  --host <address>         to listen on (default 127.0.0.1, this machine alone)
  --advertised <host[:port]>
                           what clients are told to connect to, where that is another address
  --data <directory>       keeps everything in a directory; without it, in memory, until the process ends
  --durability <mode>      with --data: fsync (default; an acknowledged record is on the disk) or os (it
                           survives the process, not a power failure)
  --nodes <count>          virtual brokers, each at a port of its own (default 1)
  --partitions <count>     of topics that are made without saying how many (default 1)
  --no-auto-create         topics are not made because a client asks for them
${SECURITY_HELP}
  --metrics-port <port>    for Prometheus (/metrics) and for health (/healthz, /readyz), by HTTP; on this machine
                           alone, unless --insecure is given: then on --host
  --as <release>           tells clients that it is an older Kafka: ${RELEASES.join(', ')}
  --log <format>           text or json, to standard error (default: text on a terminal, else json)
  --log-level <level>      debug, info, warn or error (default info)
  --help                   this page

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
  'metrics-port': { type: 'string' },
  as: { type: 'string' },
  log: { type: 'string' },
  'log-level': { type: 'string' },
} as const

export const serveCommand: Command = {
  help: HELP,
  run: serve,
}

type ServeOptions = NonNullable<Parameters<typeof serveBroker>[1]>
type MetricsOptions = NonNullable<ServeOptions['metrics']>
type Release = (typeof RELEASES)[number]
type Given = ReturnType<typeof argumentsOf>['options']

async function serve(args: readonly string[], io: Io): Promise<number> {
  const given = argumentsOf(args, OPTIONS, NO_WORDS)
  const { options } = given
  const clock = new SystemClock()
  const logger = logTo(io.stderr, { ...logOptions(options, io), now: () => clock.now() })
  const security = await securityOptions(given)
  const listener = { ...listenerOptions(options), ...security }
  const interrupted = io.interrupted()
  const { url, settings } = engineOptions(options)
  const broker = await openBroker(url, { ...settings, clock, logger })
  try {
    const server = await serveBroker(broker, listener)
    clock.hold(true)
    const printer = new Printer(io.stdout)
    await printer.lines(banner(server, options, clientSettings(security)))
    await printer.flush()
    logger.info({ addresses: server.addresses, clusterId: server.clusterId }, 'listening')
    await new Promise<void>((resolve) => {
      if (interrupted.aborted) resolve()
      else interrupted.addEventListener('abort', () => resolve(), { once: true })
    })
    logger.info({ connections: server.connections }, 'closing')
    await server.close()
  } finally {
    await broker.close()
    clock.hold(false)
  }
  logger.info({}, 'closed')
  return OK
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

/** `settings`: what clients have to be told beside the address. */
function metricsLine({ metricsAddress }: KafkaServer): string[] {
  return metricsAddress === undefined
    ? []
    : [`Metrics are at http://${metricsAddress.host}:${metricsAddress.port}/metrics.`]
}

function banner(server: KafkaServer, { data }: Given, settings: readonly string[]): string[] {
  const { bootstrap } = server
  const kept = data === undefined ? 'in memory, until it ends; --data <directory> keeps it' : `in ${data}`
  const list = bootstrap
    .split(',')
    .map((address) => `'${address}'`)
    .join(', ')
  const metrics = metricsLine(server)
  const what = `Odradek serves Kafka's protocol at ${bootstrap}. Everything is ${kept}.`
  if (settings.length > 0) {
    const told = settings.map((setting) => `  ${setting}`)
    return [
      what,
      ...metrics,
      '',
      'Clients need:',
      `  bootstrap.servers=${bootstrap}`,
      ...told,
      '',
      'Ctrl-C ends it.',
    ]
  }
  return [
    what,
    ...metrics,
    '',
    `  kcat -b ${bootstrap} -L                       topics and partitions`,
    `  echo hello | kcat -b ${bootstrap} -P -t greetings`,
    `  kcat -b ${bootstrap} -C -t greetings -e`,
    `  new Kafka({ brokers: [${list}] })               KafkaJS; any other client: bootstrap.servers=${bootstrap}`,
    '',
    'Ctrl-C ends it.',
  ]
}
