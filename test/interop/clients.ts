/**
 * The clients that are tried, how each is started, whether it is on this machine, and what it has no way to do. A feature
 * that a client lacks is left out by name, with the reason; each reason is its own code's or documentation's.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'clients')
const PYTHON = '/usr/bin/python3'

export interface KafkaClient {
  /** Its file of tests. */
  readonly id: string
  readonly name: string
  readonly command: readonly string[]
  /** Why it cannot be tried here; undefined where it can. */
  readonly missing: () => string | undefined
  /** Features that it has not, by a part of their names or their group, with the reason. */
  readonly lacks: () => Readonly<Record<string, string>>
}

const NO_ADMIN = 'its AdminClient has topics and partitions alone'
const LOOKS_ONLY = 'it changes nothing but by producing'
const NO_NEW_GROUPS = 'it knows the older protocol alone'
const CODEC_APART = 'its codec is a package of its own'
const NO_TRANSACTIONS = 'this version has no transactional producer, and no isolation level'

export const CLIENTS: readonly KafkaClient[] = [
  {
    id: 'kafkajs',
    name: 'KafkaJS 2.2.4',
    command: [process.execPath, join(FOLDER, 'kafkajs.js')],
    missing: () => nodeModule('kafkajs'),
    lacks: () => ({
      snappy: CODEC_APART,
      lz4: CODEC_APART,
      zstd: CODEC_APART,
      'static membership': 'it knows no instance ids',
      cooperative: 'its assigners give up everything first',
      'KIP-848': NO_NEW_GROUPS,
    }),
  },
  {
    id: 'kcat',
    name: 'kcat 1.7 (librdkafka 2.0)',
    command: [process.execPath, join(FOLDER, 'kcat.js')],
    missing: () => program('kcat', '-V'),
    lacks: () => ({
      'offsets in a transaction': 'its transactions are of records alone',
      'create, grow': LOOKS_ONLY,
      configs: LOOKS_ONLY,
      'delete records': LOOKS_ONLY,
      'groups: list': 'it lists topics and brokers',
      'groups: describe': LOOKS_ONLY,
      'KIP-848': NO_NEW_GROUPS,
    }),
  },
  {
    id: 'rdkafka',
    name: 'node-rdkafka 3.6 (librdkafka 2)',
    command: [process.execPath, join(FOLDER, 'rdkafka.js')],
    missing: () => nodeModule('node-rdkafka/build/Release'),
    lacks: () => ({
      ...zstdOfRdkafka(),
      configs: NO_ADMIN,
      'delete records': NO_ADMIN,
      'groups: list': NO_ADMIN,
      'groups: describe': NO_ADMIN,
    }),
  },
  {
    id: 'platformatic',
    name: '@platformatic/kafka 1.35',
    command: [process.execPath, join(FOLDER, 'platformatic.js')],
    missing: () => nodeModule('@platformatic/kafka'),
    lacks: () => ({
      ...zstdOfNode(),
      cooperative: 'its groups give up everything first',
      'made anew': 'its stream ends with UNKNOWN_TOPIC_ID, and with OFFSET_OUT_OF_RANGE: it handles neither',
    }),
  },
  {
    id: 'java',
    name: 'Java kafka-clients 4.1.1',
    command: [
      'java',
      '-cp',
      join(FOLDER, 'java/target/*'),
      '-XX:TieredStopAtLevel=1',
      '-Xshare:auto',
      'Driver',
    ],
    missing: () =>
      program('java', '-version') ?? built('java/target/driver.jar', 'its driver is not built (Maven)'),
    lacks: () => ({}),
  },
  {
    id: 'franz-go',
    name: 'franz-go 1.22',
    command: [join(FOLDER, 'franz-go/driver')],
    missing: () => built('franz-go/driver', 'its driver is not built (Go)'),
    lacks: () => ({ 'KIP-848': 'it has it hidden, as a trial' }),
  },
  {
    id: 'kafka-python',
    name: 'kafka-python 2.0.2',
    command: [PYTHON, join(FOLDER, 'kafka_python.py')],
    missing: () => program(PYTHON, '-c', 'import kafka'),
    lacks: () => ({
      idempotent: 'this version has no idempotent producer',
      transactions: NO_TRANSACTIONS,
      'delete records': 'this version has no way to',
      'alter offsets': 'this version has no way to',
      'static membership': 'this version knows no instance ids',
      cooperative: 'this version gives up everything first',
      'KIP-848': NO_NEW_GROUPS,
      ...codecsOfPython(),
    }),
  },
]

function nodeModule(name: string): string | undefined {
  return built(join('node_modules', name), `${name.split('/build')[0]} is not installed`)
}

function built(path: string, otherwise: string): string | undefined {
  return existsSync(join(FOLDER, path)) ? undefined : otherwise
}

function program(command: string, ...args: string[]): string | undefined {
  return spawnSync(command, args).status === 0 ? undefined : `${command} is not on this machine, or not whole`
}

function zstdOfNode(): Record<string, string> {
  const [major = 0] = process.versions.node.split('.').map(Number)
  return major < 22 ? { zstd: 'its zstd is that of Node, from 22 on' } : {}
}

let rdkafkaZstd: Record<string, string> | undefined

function zstdOfRdkafka(): Record<string, string> {
  const script = "process.exit(require('node-rdkafka').features.includes('zstd') ? 0 : 1)"
  rdkafkaZstd ??=
    spawnSync(process.execPath, ['-e', script], { cwd: FOLDER }).status === 0
      ? {}
      : { zstd: 'built here without libzstd' }
  return rdkafkaZstd
}

let pythonCodecs: Record<string, string> | undefined

/** Each is a package of its own. */
function codecsOfPython(): Record<string, string> {
  if (pythonCodecs === undefined) {
    const script =
      'import kafka.codec as c; print(*[n for n in ("snappy","lz4","zstd") if getattr(c,"has_"+n)()])'
    const { stdout } = spawnSync(PYTHON, ['-c', script], { encoding: 'utf8' })
    const has = stdout.trim().split(' ')
    const lacking = ['snappy', 'lz4', 'zstd'].filter((codec) => !has.includes(codec))
    pythonCodecs = Object.fromEntries(lacking.map((codec) => [codec, CODEC_APART]))
  }
  return pythonCodecs
}
