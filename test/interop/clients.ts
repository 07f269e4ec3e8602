/**
 * The clients that are tried, how each is started, whether it is on this machine, and what it has no way to do. A feature
 * that a client lacks is left out by name, with the reason.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, 'clients')

export interface KafkaClient {
  readonly name: string
  readonly command: readonly string[]
  /** Why it cannot be tried here; undefined where it can. */
  readonly missing: string | undefined
  /** Features that it has not, by a part of their names. */
  readonly lacks: Readonly<Record<string, string>>
}

function nodeModule(name: string): string | undefined {
  return existsSync(join(FOLDER, 'node_modules', name)) ? undefined : `${name} is not installed`
}

function program(command: string, ...args: string[]): string | undefined {
  return spawnSync(command, args).status === 0 ? undefined : `${command} is not on this machine`
}

const ZSTD_NEEDS_NODE_22 = 'its zstd is that of Node, from 22 on'
const [major] = process.versions.node.split('.').map(Number)

export const CLIENTS: readonly KafkaClient[] = [
  {
    name: 'KafkaJS 2.2.4',
    command: [process.execPath, join(FOLDER, 'kafkajs.js')],
    missing: nodeModule('kafkajs'),
    lacks: {
      snappy: 'only with a codec of another package',
      lz4: 'only with a codec of another package',
      zstd: 'only with a codec of another package',
    },
  },
  {
    name: '@platformatic/kafka 1.35',
    command: [process.execPath, join(FOLDER, 'platformatic.js')],
    missing: nodeModule('@platformatic/kafka'),
    lacks: (major ?? 0) < 22 ? { zstd: ZSTD_NEEDS_NODE_22 } : {},
  },
  {
    name: 'node-rdkafka 3.6 (librdkafka)',
    command: [process.execPath, join(FOLDER, 'rdkafka.js')],
    missing: nodeModule('node-rdkafka/build/Release'),
    lacks: zstdOfRdkafka(),
  },
  {
    name: 'kcat (librdkafka)',
    command: [process.execPath, join(FOLDER, 'kcat.js')],
    missing: program('kcat', '-V'),
    lacks: { transactions: 'it has none', 'offsets in a transaction': 'it has none' },
  },
  {
    name: 'kafka-python 2.0.2',
    command: ['/usr/bin/python3', join(FOLDER, 'kafka_python.py')],
    missing: program('/usr/bin/python3', '-c', 'import kafka'),
    lacks: {
      idempotent: 'it has none',
      transactions: 'it has none',
      'offsets in a transaction': 'it has none',
      ...pythonCodecs(),
    },
  },
]

function zstdOfRdkafka(): Record<string, string> {
  const script = "process.exit(require('node-rdkafka').features.includes('zstd') ? 0 : 1)"
  const { status } = spawnSync(process.execPath, ['-e', script], { cwd: FOLDER })
  return status === 0 ? {} : { zstd: 'built without libzstd' }
}

/** Its codecs are packages of their own. */
function pythonCodecs(): Record<string, string> {
  const lacks: Record<string, string> = {}
  for (const [codec, test] of [
    ['snappy', 'has_snappy'],
    ['lz4', 'has_lz4'],
    ['zstd', 'has_zstd'],
  ] as const) {
    const script = `import kafka.codec as c, sys; sys.exit(0 if c.${test}() else 1)`
    if (spawnSync('/usr/bin/python3', ['-c', script]).status !== 0)
      lacks[codec] = 'its codec is not installed'
  }
  return lacks
}
