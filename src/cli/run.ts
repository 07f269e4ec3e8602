/**
 * The command line `odradek`: finds the command, and turns what it throws into a word to the person and an exit code.
 *
 *   stdout   what was asked for            0 done   1 damage found, or the broker refused   2 wrong usage, or not to be had
 *   stderr   everything else
 */
import { OdradekError } from '../model/errors.ts'
import { unknownOption } from './arguments.ts'
import { BROKEN_PIPE, type Command, FAILED, type Io, type NamedCommand, OK, UsageError } from './command.ts'
import { unknownCommand } from './command-group.ts'
import { BrokenPipe, say } from './printer.ts'
import { table } from './table.ts'
import { packageVersion } from './version.ts'

/** Loaded when it is called: each command brings only what it needs. */
interface Loadable extends Pick<NamedCommand, 'name' | 'summary'> {
  readonly load: () => Promise<Command>
}

const COMMANDS: readonly Loadable[] = [
  {
    name: 'serve',
    summary: 'a broker that Kafka clients can use',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  {
    name: 'topic',
    summary: 'lists, makes, shows and deletes topics, and changes their configs',
    load: async () => (await import('./commands/topic.ts')).topicCommand,
  },
  {
    name: 'produce',
    summary: 'lines of standard input as records',
    load: async () => (await import('./commands/produce.ts')).produceCommand,
  },
  {
    name: 'consume',
    summary: 'the records of topics, alone or as a member of a group',
    load: async () => (await import('./commands/consume.ts')).consumeCommand,
  },
  {
    name: 'group',
    summary: 'groups: members, lag, where they go on reading',
    load: async () => (await import('./commands/group.ts')).groupCommand,
  },
  {
    name: 'inspect',
    summary: 'what a directory holds, and what opening it would do',
    load: async () => (await import('./commands/inspect.ts')).inspectCommand,
  },
  {
    name: 'verify',
    summary: 'reads all of a directory, and tells what is damaged',
    load: async () => (await import('./commands/verify.ts')).verifyCommand,
  },
]

const HELP = `odradek: a mini-Kafka

Usage
  odradek <command> [options] [arguments]
  odradek <command> --help

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

Options
  --help, -h      this page, or that of a command, as odradek help <command>
  --version, -V   the version of the package

topic, produce, consume and group speak to a broker by Kafka's protocol: to odradek serve, or to a Kafka cluster.
inspect and verify look at a data directory. They only read: nothing in it is written, locked, made or cut, so they
may be used on what a crash has left, on a copy, and beside a broker that has the directory open.

Exit codes: 0 done; 1 damage found (verify), or the broker cannot be reached or has refused (topic, produce,
consume, group); 2 wrong usage, or a directory or port that cannot be had; 141 nobody reads the output any more.

Guide: docs/guide/cli.md. Formats and promises: docs/format.md and docs/durability.md of the package's repository.`

const OPTIONS = ['help', 'version']

/** A command, the words that lead to it, and what follows them. */
interface Found {
  readonly command: Command | undefined
  readonly path: readonly string[]
  readonly rest: readonly string[]
}

/** Answers the exit code. */
export async function run(typed: readonly string[], io: Io): Promise<number> {
  const args = typed[0] === 'help' ? [...typed.slice(1), '--help'] : typed
  const { command, path, rest } = await find(args)
  try {
    if (command !== undefined) {
      if (rest.includes('--help') || rest.includes('-h')) return await print(io, command.help)
      return await command.run(rest, io)
    }
    const [first] = args
    if (first === '--help' || first === '-h') return await print(io, HELP)
    if (first === '--version' || first === '-V') return await print(io, await packageVersion())
    throw first?.startsWith('-') ? unknownOption(first, OPTIONS) : unknownCommand(first, COMMANDS)
  } catch (error) {
    if (error instanceof BrokenPipe) return BROKEN_PIPE
    if (error instanceof UsageError) {
      const page = ['odradek', ...path, '--help'].join(' ')
      await say(io.stderr, `odradek: ${error.message}`, `Try: ${page}`)
      return FAILED
    }
    if (!(error instanceof OdradekError)) throw error
    await say(io.stderr, `odradek: ${error.code}: ${error.message}`)
    return command?.failure ?? FAILED
  }
}

async function find(args: readonly string[]): Promise<Found> {
  let command = await COMMANDS.find(({ name }) => name === args[0])?.load()
  let words = command === undefined ? 0 : 1
  for (const word of args.slice(words)) {
    const next = command?.commands?.find(({ name }) => name === word)
    if (next === undefined) break
    command = next
    words++
  }
  return { command, path: args.slice(0, words), rest: args.slice(words) }
}

async function print(io: Io, text: string): Promise<number> {
  await say(io.stdout, text)
  return OK
}
