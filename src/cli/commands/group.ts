/** `odradek group`: consumer groups, how far behind they are, and where they go on. */
import { deleteGroup, listGroups } from '../../client/groups.ts'
import { argumentsOf } from '../arguments.ts'
import { CLUSTER_HELP, CLUSTER_OPTIONS, withCluster } from '../cluster-options.ts'
import { type Command, type Io, type NamedCommand, OK, REFUSED } from '../command.ts'
import { commandGroup } from '../command-group.ts'
import { Outcomes } from '../outcomes.ts'
import { Printer } from '../printer.ts'
import { table } from '../table.ts'
import { describeCommand } from './group-describe.ts'
import { resetCommand } from './group-reset.ts'

const LIST_HELP = `odradek group list: the groups of a broker

Usage
  odradek group list [options]

Options
  --json                   a JSON object a line: group, type, state, protocolType
  --help                   this page

${CLUSTER_HELP}

Types: classic, whose members assign among themselves; consumer (KIP-848), whose broker assigns. Brokers before
Kafka 3.8 do not say; before 2.6 they do not say the state either.

States: Stable, PreparingRebalance, CompletingRebalance (classic), Assigning, Reconciling (consumer), Empty (no member;
its offsets are kept).

Exit codes: 0 done; 1 the broker cannot be reached or has refused; 2 wrong usage.`

const DELETE_HELP = `odradek group delete: deletes groups, with the offsets that they have committed

Usage
  odradek group delete [options] <group>...

Options
  --help                   this page

${CLUSTER_HELP}

A group with members is refused: end them first. It does not ask back.

Exit codes: 0 all are gone; 1 one is not, or the broker cannot be reached; 2 wrong usage.`

async function list(args: readonly string[], io: Io): Promise<number> {
  const types = { ...CLUSTER_OPTIONS, json: { type: 'boolean' } } as const
  const { options } = argumentsOf(args, types, { min: 0, max: 0, what: 'nothing' })
  const groups = await withCluster(options, io, ({ cluster }) => listGroups(cluster))
  const printer = new Printer(io.stdout)
  if (options.json === true) await printer.lines(groups.map((group) => JSON.stringify(group)))
  else if (groups.length > 0) {
    const rows = groups.map(({ group, type, state, protocolType }) => {
      return [group, type, state, protocolType].map((text) => (text === '' ? '-' : text))
    })
    await printer.lines(table([['GROUP', 'TYPE', 'STATE', 'PROTOCOL'], ...rows]))
  }
  await printer.flush()
  return OK
}

async function remove(args: readonly string[], io: Io): Promise<number> {
  const expected = { min: 1, max: Number.POSITIVE_INFINITY, what: 'a group' }
  const { words, options } = argumentsOf(args, CLUSTER_OPTIONS, expected)
  const outcomes = new Outcomes(io)
  await withCluster(options, io, async ({ cluster }) => {
    for (const group of words) await outcomes.add(`deleted ${group}`, await deleteGroup(cluster, group))
  })
  return outcomes.end()
}

const COMMANDS: readonly NamedCommand[] = [
  { name: 'list', summary: 'which there are', help: LIST_HELP, failure: REFUSED, run: list },
  describeCommand,
  resetCommand,
  {
    name: 'delete',
    summary: 'deletes some, with their offsets',
    help: DELETE_HELP,
    failure: REFUSED,
    run: remove,
  },
]

export const groupCommand: Command = commandGroup({
  help: `odradek group: consumer groups of a broker

Usage
  odradek group <command> [options] [arguments]
  odradek group <command> --help

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

${CLUSTER_HELP}`,
  commands: COMMANDS,
})
