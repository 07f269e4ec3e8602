/** `odradek topic config`: what a topic goes by. */
import { type ConfigChange, changeConfigs, topicConfigs } from '../../client/topics.ts'
import { argumentsOf, near } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, type Session, withCluster } from '../cluster-options.ts'
import { type Io, type NamedCommand, OK, REFUSED, UsageError } from '../command.ts'
import { commandGroup } from '../command-group.ts'
import { Printer } from '../printer.ts'
import { table } from '../table.ts'

const MANY = Number.POSITIVE_INFINITY

const GET_HELP = `odradek topic config get: the configs of a topic

Usage
  odradek topic config get [options] <topic> [<key>...]

Options
  --json                   a JSON object a line: name, value, default, readOnly
  --help                   this page

${CLUSTER_HELP}

All of them, or those that are named. One that is named alone is printed as its value and nothing else.

Exit codes: 0 done; 1 there is no such topic or config, or the broker cannot be reached; 2 wrong usage.`

const SET_HELP = `odradek topic config set: changes configs of a topic

Usage
  odradek topic config set [options] <topic> <key>=<value>...

Options
  --help                   this page

${CLUSTER_HELP}

All changes are made, or none. They count at once.

Exit codes: 0 done; 1 there is no such topic, or a value is refused; 2 wrong usage.`

const DELETE_HELP = `odradek topic config delete: lets defaults count again

Usage
  odradek topic config delete [options] <topic> <key>...

Options
  --help                   this page

${CLUSTER_HELP}

Exit codes: 0 done; 1 there is no such topic or config; 2 wrong usage.`

async function get(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, json: { type: 'boolean' } } as const
  const { words, options } = argumentsOf(args, types, { min: 1, max: MANY, what: 'a topic' })
  const [topic = '', ...names] = words
  const all = await withCluster(options, io, ({ cluster }) => topicConfigs(cluster, topic))
  const known = all.map(({ name }) => name)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const meant = near(unknown, known)
    throw new UsageError(`there is no config "${unknown}"${meant === undefined ? '' : `; ${meant}?`}`)
  }
  const configs = all.filter(({ name }) => names.length === 0 || names.includes(name))
  const printer = new Printer(io.stdout)
  if (options.json === true) {
    for (const { name, value, isDefault, isReadOnly } of configs) {
      await printer.line(JSON.stringify({ name, value, default: isDefault, readOnly: isReadOnly }))
    }
  } else if (names.length === 1) await printer.line(configs[0]?.value ?? '')
  else {
    const rows = configs.map(({ name, value, isDefault }) => [
      name,
      value ?? '',
      isDefault ? 'default' : 'set',
    ])
    await printer.lines(table(rows))
  }
  await printer.flush()
  return OK
}

async function change(
  args: readonly string[],
  io: Io,
  what: string,
  changeOf: (word: string) => ConfigChange,
): Promise<number> {
  const { words, options } = argumentsOf(args, CLUSTER_OPTIONS, { min: 2, max: MANY, what })
  const [topic = '', ...rest] = words
  const changes = rest.map(changeOf)
  await withCluster(options, io, ({ cluster }: Session) => changeConfigs(cluster, topic, changes))
  const printer = new Printer(io.stdout)
  for (const [name, value] of changes) {
    await printer.line(
      value === null ? `${topic}: ${name} is the default again` : `${topic}: ${name}=${value}`,
    )
  }
  await printer.flush()
  return OK
}

function set(args: readonly string[], io: Io): Promise<number> {
  return change(args, io, 'a topic, and configs as key=value', (word) => {
    const at = word.indexOf('=')
    if (at < 1) throw new UsageError(`a config is key=value; not "${word}"`)
    return [word.slice(0, at), word.slice(at + 1)]
  })
}

function remove(args: readonly string[], io: Io): Promise<number> {
  return change(args, io, 'a topic, and the configs', (word) => [word, null])
}

const COMMANDS: readonly NamedCommand[] = [
  { name: 'get', summary: 'all, or some', help: GET_HELP, failure: REFUSED, run: get },
  { name: 'set', summary: 'changes some', help: SET_HELP, failure: REFUSED, run: set },
  {
    name: 'delete',
    summary: 'lets the default count again',
    help: DELETE_HELP,
    failure: REFUSED,
    run: remove,
  },
]

export const configCommand: NamedCommand = commandGroup({
  name: 'config',
  summary: 'get, set, delete: what a topic goes by',
  help: `odradek topic config: what a topic goes by

Usage
  odradek topic config <command> [options] <topic> [arguments]

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

${CLUSTER_HELP}

What each config does: docs/kafka-configs.md of the package's repository.`,
  commands: COMMANDS,
})
