/** The options with which every command that speaks to a broker finds it, and the cluster that they lead to. */
import { readFile } from 'node:fs/promises'
import type { KafkaCluster } from '../client/cluster.ts'
import { KafkaCluster as Cluster } from '../client/cluster.ts'
import type { BrokerAddress } from '../client/connection.ts'
import type { SaslCredentials, SaslMechanism } from '../client/sasl.ts'
import type { Clock } from '../model/clock.ts'
import { SystemClock } from '../model/clock.ts'
import { messageOf } from '../model/errors.ts'
import { type Arguments, numberOf, type OptionTypes } from './arguments.ts'
import { type Io, UsageError } from './command.ts'
import { packageVersion } from './version.ts'

export const CLUSTER_OPTIONS = {
  brokers: { type: 'string', short: 'b' },
  user: { type: 'string' },
  password: { type: 'string' },
  sasl: { type: 'string' },
  tls: { type: 'boolean' },
  ca: { type: 'string' },
  timeout: { type: 'string' },
} as const satisfies OptionTypes

export const CLUSTER_HELP = `Broker
  -b, --brokers <list>     host:port, several with commas between (default $ODRADEK_BROKERS, else 127.0.0.1:9092)
  --user <name>            who to be; the password is best kept in $ODRADEK_PASSWORD
  --password <password>    where that is not possible: other users of this machine can see it
  --sasl <mechanism>       SCRAM-SHA-256 (default), SCRAM-SHA-512 or PLAIN
  --tls                    over TLS, with the certificates that this system trusts
  --ca <file>              over TLS, with the authority in this PEM file
  --timeout <seconds>      for connecting and for every answer (default 10)`

/** A cluster, and what of the outside the work with it needs. */
export interface Session {
  readonly cluster: KafkaCluster
  readonly clock: Clock
  readonly timeoutMs: number
}

const DEFAULT_BROKERS = '127.0.0.1:9092'
const DEFAULT_PORT = 9092
const DEFAULT_TIMEOUT_S = 10
const MECHANISMS: readonly SaslMechanism[] = ['SCRAM-SHA-256', 'SCRAM-SHA-512', 'PLAIN']

/** Calls back with the cluster that the options name, and lets it go afterwards. */
export async function withCluster<T>(
  options: Arguments['options'],
  { env }: Io,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const brokers = addressesOf(String(options.brokers ?? env.ODRADEK_BROKERS ?? DEFAULT_BROKERS))
  const timeoutS = numberOf('timeout', options.timeout, { min: 1, max: 3_600 }) ?? DEFAULT_TIMEOUT_S
  const sasl = credentialsOf(options, env)
  const tls = await tlsOf(options)
  const clock = new SystemClock()
  const timeoutMs = timeoutS * 1_000
  const common = { clientId: 'odradek', clock, timeoutMs, version: await packageVersion() }
  const cluster = new Cluster(brokers, {
    ...common,
    ...(sasl === undefined ? {} : { sasl }),
    ...(tls === undefined ? {} : { tls }),
  })
  clock.hold(true)
  try {
    return await work({ cluster, clock, timeoutMs })
  } finally {
    await cluster.close()
    clock.hold(false)
  }
}

/** `host`, `host:port`, `[::1]:port`, with commas between. */
function addressesOf(list: string): BrokerAddress[] {
  return list.split(',').map((text) => {
    const [, bracketed, plain, port] =
      /^(?:\[([^\]]+)\]|([^:[\]/\s]+))(?::(\d{1,5}))?$/.exec(text.trim()) ?? []
    const host = bracketed ?? plain
    const number = Number(port ?? DEFAULT_PORT)
    if (host === undefined || number < 1 || number > 65_535) {
      throw new UsageError(`--brokers is host:port, several with commas between; not "${list}"`)
    }
    return { host, port: number }
  })
}

function credentialsOf(options: Arguments['options'], env: Io['env']): SaslCredentials | undefined {
  const { user, sasl } = options
  const mechanism = MECHANISMS.find((name) => name === String(sasl ?? 'SCRAM-SHA-256').toUpperCase())
  if (mechanism === undefined) throw new UsageError(`--sasl is ${MECHANISMS.join(', ')}; not "${sasl}"`)
  if (user === undefined) {
    if (sasl !== undefined || options.password !== undefined) {
      throw new UsageError('--sasl and --password go with --user')
    }
    return undefined
  }
  const password = options.password ?? env.ODRADEK_PASSWORD
  if (password === undefined) throw new UsageError('--user needs a password: put it into $ODRADEK_PASSWORD')
  return { mechanism, username: String(user), password: String(password) }
}

async function tlsOf({ tls, ca }: Arguments['options']): Promise<{ ca?: string } | undefined> {
  if (ca === undefined) return tls === true ? {} : undefined
  try {
    return { ca: await readFile(String(ca), 'utf8') }
  } catch (error) {
    throw new UsageError(`--ca ${ca} cannot be read: ${messageOf(error)}`)
  }
}
