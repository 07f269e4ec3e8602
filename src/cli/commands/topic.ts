/** `odradek topic`: lists, makes, shows and deletes topics, and changes their configs. */
import { createTopics, deleteTopics, listTopics, type TopicOutcome } from '../../client/topics.ts'
import { argumentsOf, numberOf, pairsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, withCluster } from '../cluster-options.ts'
import { type Command, type Io, type NamedCommand, OK, REFUSED } from '../command.ts'
import { commandGroup } from '../command-group.ts'
import { Outcomes } from '../outcomes.ts'
import { Printer } from '../printer.ts'
import { plural, table } from '../table.ts'
import { configCommand } from './topic-config.ts'
import { describeCommand } from './topic-describe.ts'

const SOME_TOPICS = { min: 1, max: Number.POSITIVE_INFINITY, what: 'a topic' }
const NO_TOPIC = { min: 0, max: 0, what: 'nothing' }

const LIST_HELP = `odradek topic list: the topics of a broker

Usage
  odradek topic list [options]

Options
  --json                   a JSON object a line: topic, topicId, partitions, replicas, internal
  --internal               also those that Kafka keeps for itself
  --help                   this page

${CLUSTER_HELP}

Exit codes: 0 done; 1 the broker cannot be reached or has refused; 2 wrong usage.`

const CREATE_HELP = `odradek topic create: makes topics

Usage
  odradek topic create [options] <topic>...

Options
  -p, --partitions <n>     of each topic (default: the broker's)
  -r, --replicas <n>       on a Kafka cluster (default: the broker's)
  -c, --config <key=value> such as retention.ms=3600000; several times for several
  --if-not-exists          a topic that is there already is no failure
  --dry-run                only asks whether it would be possible
  --help                   this page

${CLUSTER_HELP}

Each topic that was made is a line on standard output; each that was not, one on standard error.
Which configs count: docs/kafka-configs.md, or odradek topic config get <topic>.

Exit codes: 0 all were made; 1 one was not, or the broker cannot be reached; 2 wrong usage.`

const DELETE_HELP = `odradek topic delete: deletes topics, with all that is in them

Usage
  odradek topic delete [options] <topic>...

Options
  --if-exists              a topic that is not there is no failure
  --help                   this page

${CLUSTER_HELP}

It does not ask back. A topic that is made again under the name begins at offset 0.

Exit codes: 0 all are gone; 1 one is not, or the broker cannot be reached; 2 wrong usage.`

async function list(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, json: { type: 'boolean' }, internal: { type: 'boolean' } } as const
  const { options } = argumentsOf(args, types, NO_TOPIC)
  const all = await withCluster(options, io, ({ cluster }) => listTopics(cluster))
  const topics = all
    .filter(({ isInternal }) => options.internal === true || !isInternal)
    .map(({ name, topicId, partitions, isInternal }) => ({
      topic: name ?? '',
      topicId,
      partitions: partitions.length,
      replicas: partitions[0]?.replicaNodes.length ?? 0,
      internal: isInternal,
    }))
  const printer = new Printer(io.stdout)
  if (options.json === true) await printer.lines(topics.map((topic) => JSON.stringify(topic)))
  else if (topics.length > 0) {
    const rows = topics.map(({ topic, partitions, replicas }) => [topic, `${partitions}`, `${replicas}`])
    await printer.lines(table([['TOPIC', 'PARTITIONS', 'REPLICAS'], ...rows], [1, 2]))
  }
  await printer.flush()
  return OK
}

async function create(args: readonly string[], io: Io): Promise<number> {
  const types = {
    ...CLUSTER_OPTIONS,
    partitions: { type: 'string', short: 'p' },
    replicas: { type: 'string', short: 'r' },
    config: { type: 'string', short: 'c', multiple: true },
    'if-not-exists': { type: 'boolean' },
    'dry-run': { type: 'boolean' },
  } as const
  const { words, options, lists } = argumentsOf(args, types, SOME_TOPICS)
  const partitions = numberOf('partitions', options.partitions, { min: 1, max: 100_000 }) ?? -1
  const replicas = numberOf('replicas', options.replicas, { min: 1, max: 1_000 }) ?? -1
  const configs = pairsOf('config', lists.config)
  const validateOnly = options['dry-run'] === true
  const topics = words.map((name) => ({ name, partitions, replicas, configs }))
  const outcomes = await withCluster(options, io, ({ cluster, timeoutMs }) => {
    return createTopics(cluster, topics, { timeoutMs, validateOnly })
  })
  const ignored = options['if-not-exists'] === true ? 'TOPIC_EXISTS' : undefined
  return report(io, outcomes, ignored, ({ name, partitions: made }) => {
    const many = made < 0 ? '' : ` with ${plural(made, 'partition')}`
    return validateOnly ? `could create ${name}${many}` : `created ${name}${many}`
  })
}

async function remove(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, 'if-exists': { type: 'boolean' } } as const
  const { words, options } = argumentsOf(args, types, SOME_TOPICS)
  const outcomes = await withCluster(options, io, ({ cluster, timeoutMs }) => {
    return deleteTopics(cluster, words, timeoutMs)
  })
  const ignored = options['if-exists'] === true ? 'UNKNOWN_TOPIC' : undefined
  return report(io, outcomes, ignored, ({ name }) => `deleted ${name}`)
}

async function report(
  io: Io,
  outcomes: readonly TopicOutcome[],
  ignored: string | undefined,
  textOf: (outcome: TopicOutcome) => string,
): Promise<number> {
  const told = new Outcomes(io)
  for (const outcome of outcomes) {
    const { error } = outcome
    if (error === undefined || error.code !== ignored) await told.add(textOf(outcome), error)
  }
  return told.end()
}

const COMMANDS: readonly NamedCommand[] = [
  { name: 'list', summary: 'which there are', help: LIST_HELP, failure: REFUSED, run: list },
  { name: 'create', summary: 'makes some', help: CREATE_HELP, failure: REFUSED, run: create },
  describeCommand,
  {
    name: 'delete',
    summary: 'deletes some, with all that is in them',
    help: DELETE_HELP,
    failure: REFUSED,
    run: remove,
  },
  configCommand,
]

export const topicCommand: Command = commandGroup({
  help: `odradek topic: topics of a broker

Usage
  odradek topic <command> [options] [arguments]
  odradek topic <command> --help

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

${CLUSTER_HELP}`,
  commands: COMMANDS,
})
