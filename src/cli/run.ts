/**
 * The command line `odradek`: finds the command, and turns what it throws into a word to the person and an exit code.
 *
 *   stdout   what was asked for            0 done   1 damage found   2 wrong usage, or not to be had
 *   stderr   everything else
 */
import { readFile } from 'node:fs/promises'
import { OdradekError } from '../model/errors.ts'
import { BROKEN_PIPE, type Command, FAILED, type Io, OK, UsageError } from './command.ts'
import { inspectCommand } from './commands/inspect.ts'
import { serveCommand } from './commands/serve.ts'
import { verifyCommand } from './commands/verify.ts'
import { BrokenPipe, Printer } from './printer.ts'
import { table } from './table.ts'

const COMMANDS: readonly Command[] = [serveCommand, inspectCommand, verifyCommand]

const HELP = `odradek: a mini-Kafka

Usage
  odradek <command> [options] [arguments]
  odradek <command> --help

Commands
${table(COMMANDS.map(({ name, summary }) => [`  ${name}`, summary])).join('\n')}

Options
  --help      this page, or that of a command
  --version   the version of the package

inspect and verify only read: nothing in the directory is written, locked, made or cut, so they may be used on
what a crash has left, on a copy, and beside a broker that has the directory open.

Exit codes: 0 done, 1 damage found (verify), 2 wrong usage, or what was asked for cannot be had.

Formats and promises: docs/format.md and docs/durability.md of the package's repository.`

/** Answers the exit code. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const errors = new Printer(io.stderr)
  const [first, ...rest] = args
  const command = COMMANDS.find(({ name }) => name === first)
  try {
    if (command !== undefined) {
      return rest.includes('--help') || rest.includes('-h')
        ? await print(io, command.help)
        : await command.run(rest, io)
    }
    if (first === '--help' || first === '-h' || first === 'help') return await print(io, HELP)
    if (first === '--version') return await print(io, await version())
    const names = COMMANDS.map(({ name }) => name).join(', ')
    throw new UsageError(
      first === undefined ? `name a command: ${names}` : `unknown command "${first}"; there are ${names}`,
    )
  } catch (error) {
    if (error instanceof BrokenPipe) return BROKEN_PIPE
    if (error instanceof UsageError) {
      const page = command === undefined ? 'odradek --help' : `odradek ${command.name} --help`
      await errors.line(`odradek: ${error.message}`)
      await errors.line(`Try: ${page}`)
    } else if (error instanceof OdradekError) {
      await errors.line(`odradek: ${error.code}: ${error.message}`)
    } else throw error
    await errors.flush()
    return FAILED
  }
}

async function print(io: Io, text: string): Promise<number> {
  const printer = new Printer(io.stdout)
  await printer.line(text)
  await printer.flush()
  return OK
}

async function version(): Promise<string> {
  const manifest = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
