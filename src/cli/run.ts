/**
 * The command line `odradek`: finds the command, and turns what it throws into a word to the person and an exit code.
 *
 *   stdout   what was asked for            0 done   1 damage found, or the broker refused   2 wrong usage, or not to be had
 *   stderr   everything else
 */
import { OdradekError } from '../model/errors.ts'
import { BROKEN_PIPE, type Command, FAILED, type Io, OK, UsageError } from './command.ts'
import { unknownCommand } from './command-group.ts'
import { consumeCommand } from './commands/consume.ts'
import { groupCommand } from './commands/group.ts'
import { inspectCommand } from './commands/inspect.ts'
import { produceCommand } from './commands/produce.ts'
import { serveCommand } from './commands/serve.ts'
import { topicCommand } from './commands/topic.ts'
import { verifyCommand } from './commands/verify.ts'
import { BrokenPipe, Printer } from './printer.ts'
import { table } from './table.ts'
import { packageVersion } from './version.ts'

const COMMANDS: readonly Command[] = [
  serveCommand,
  topicCommand,
  produceCommand,
  consumeCommand,
  groupCommand,
  inspectCommand,
  verifyCommand,
]

const HELP = `odradek: a mini-Kafka

Usage
  odradek <command> [options] [arguments]
  odradek <command> --help

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

Options
  --help      this page, or that of a command
  --version   the version of the package

topic, produce, consume and group speak to a broker by Kafka's protocol: to odradek serve, or to a Kafka cluster.
inspect and verify look at a data directory. They only read: nothing in it is written, locked, made or cut, so they
may be used on what a crash has left, on a copy, and beside a broker that has the directory open.

Exit codes: 0 done; 1 damage found (verify), or the broker cannot be reached or has refused (topic, produce,
consume, group); 2 wrong usage, or a directory or port that cannot be had; 141 nobody reads the output any more.

Guide: docs/guide/cli.md. Formats and promises: docs/format.md and docs/durability.md of the package's repository.`

/** A command, the words that lead to it, and what follows them. */
interface Found {
  readonly command: Command | undefined
  readonly path: readonly string[]
  readonly rest: readonly string[]
}

/** Answers the exit code. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const errors = new Printer(io.stderr)
  const { command, path, rest } = find(args)
  try {
    if (command !== undefined) {
      if (rest.includes('--help') || rest.includes('-h')) return await print(io, command.help)
      return await command.run(rest, io)
    }
    const [first] = args
    if (first === '--help' || first === '-h' || first === 'help') return await print(io, HELP)
    if (first === '--version') return await print(io, await packageVersion())
    throw unknownCommand(first, COMMANDS)
  } catch (error) {
    if (error instanceof BrokenPipe) return BROKEN_PIPE
    if (error instanceof UsageError) {
      await errors.line(`odradek: ${error.message}`)
      await errors.line(`Try: ${['odradek', ...path, '--help'].join(' ')}`)
      await errors.flush()
      return FAILED
    }
    if (!(error instanceof OdradekError)) throw error
    await errors.line(`odradek: ${error.code}: ${error.message}`)
    await errors.flush()
    return command?.failure ?? FAILED
  }
}

function find(args: readonly string[]): Found {
  let command: Command | undefined
  let commands = COMMANDS
  let words = 0
  for (const word of args) {
    const next = commands.find(({ name }) => name === word)
    if (next === undefined) break
    command = next
    commands = next.commands ?? []
    words++
  }
  return { command, path: args.slice(0, words), rest: args.slice(words) }
}

async function print(io: Io, text: string): Promise<number> {
  const printer = new Printer(io.stdout)
  await printer.line(text)
  await printer.flush()
  return OK
}
