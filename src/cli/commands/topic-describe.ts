/** `odradek topic describe`: partitions with their leaders and offsets, and the configs that somebody has set. */
import type { TopicMetadata } from '../../client/cluster.ts'
import { END, offsetsFor, placeKey, START } from '../../client/offsets.ts'
import { type TopicConfig, topicConfigs } from '../../client/topics.ts'
import { argumentsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, type Session, withCluster } from '../cluster-options.ts'
import { type Io, type NamedCommand, OK, REFUSED } from '../command.ts'
import { Printer } from '../printer.ts'
import { plural, table } from '../table.ts'

const HELP = `odradek topic describe: partitions with their leaders and offsets, and the configs that somebody has set

Usage
  odradek topic describe [options] <topic>...

Options
  --json                   a JSON object a line and topic: topic, topicId, partitions [{ partition, leader, replicas,
                           inSync, start, end }], configs { … }
  --help                   this page

${CLUSTER_HELP}

Offsets: start is that of the oldest record, end that of the next one. All configs: odradek topic config get.

Exit codes: 0 done; 1 there is no such topic, or the broker cannot be reached; 2 wrong usage.`

export const describeCommand: NamedCommand = {
  name: 'describe',
  summary: 'partitions, leaders, offsets, and configs that are not the default',
  help: HELP,
  failure: REFUSED,
  run: describe,
}

interface Description {
  readonly topic: string
  readonly topicId: string
  readonly partitions: readonly {
    readonly partition: number
    readonly leader: number
    readonly replicas: readonly number[]
    readonly inSync: readonly number[]
    readonly start: number
    readonly end: number
  }[]
  readonly configs: Readonly<Record<string, string | null>>
}

async function describe(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, json: { type: 'boolean' } } as const
  const { words, options } = argumentsOf(args, types, {
    min: 1,
    max: Number.POSITIVE_INFINITY,
    what: 'a topic',
  })
  const printer = new Printer(io.stdout)
  await withCluster(options, io, async (session) => {
    for (const [i, name] of words.entries()) {
      const description = await describeTopic(session, name)
      if (options.json === true) await printer.line(JSON.stringify(description))
      else await printer.lines([...(i === 0 ? [] : ['']), ...linesOf(description, printer)])
    }
  })
  await printer.flush()
  return OK
}

async function describeTopic({ cluster }: Session, name: string): Promise<Description> {
  const topic = await cluster.topic(name)
  const places = topic.partitions.map(({ partitionIndex }) => ({ topic: name, partition: partitionIndex }))
  const [starts, ends, configs] = await Promise.all([
    offsetsFor(
      cluster,
      places.map((place) => ({ ...place, timestamp: START })),
    ),
    offsetsFor(
      cluster,
      places.map((place) => ({ ...place, timestamp: END })),
    ),
    topicConfigs(cluster, name),
  ])
  const partitions = sorted(topic).map(({ partitionIndex: partition, leaderId, replicaNodes, isrNodes }) => {
    const key = placeKey({ topic: name, partition })
    const [start, end] = [starts.get(key) ?? -1, ends.get(key) ?? -1]
    return { partition, leader: leaderId, replicas: replicaNodes, inSync: isrNodes, start, end }
  })
  return { topic: name, topicId: topic.topicId, partitions, configs: setConfigs(configs) }
}

function sorted({ partitions }: TopicMetadata): TopicMetadata['partitions'] {
  return [...partitions].sort((a, b) => a.partitionIndex - b.partitionIndex)
}

function setConfigs(configs: readonly TopicConfig[]): Record<string, string | null> {
  return Object.fromEntries(
    configs.filter(({ isDefault }) => !isDefault).map(({ name, value }) => [name, value]),
  )
}

function linesOf({ topic, topicId, partitions, configs }: Description, printer: Printer): string[] {
  const records = partitions.reduce((sum, { start, end }) => sum + end - start, 0)
  const rows = partitions.map(({ partition, leader, replicas, inSync, start, end }) => {
    return [partition, leader, replicas.join(','), inSync.join(','), start, end, end - start].map(String)
  })
  const head = ['PARTITION', 'LEADER', 'REPLICAS', 'IN SYNC', 'START', 'END', 'OFFSETS']
  const set = Object.entries(configs).map(([name, value]) => [`  ${name}`, value ?? ''])
  return [
    printer.styled('bold', topic),
    ...table([
      ['id', topicId],
      ['partitions', `${plural(partitions.length, 'partition')}, ${plural(records, 'offset')}`],
      ['configs', set.length === 0 ? 'the defaults' : ''],
    ]),
    ...table(set),
    '',
    ...table([head, ...rows], [0, 1, 4, 5, 6]),
  ]
}
