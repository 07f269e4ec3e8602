/** A command that is nothing but the name of others. */
import { near } from './arguments.ts'
import { type Command, type NamedCommand, UsageError } from './command.ts'

/** What is said where none of them is named. */
export function unknownCommand(
  word: string | undefined,
  commands: readonly Pick<NamedCommand, 'name'>[],
): UsageError {
  const names = commands.map(({ name }) => name)
  if (word === undefined) return new UsageError(`name a command: ${names.join(', ')}`)
  const meant = near(word, names)
  const hint = meant === undefined ? `there are ${names.join(', ')}` : `${meant}?`
  return new UsageError(`unknown command "${word}"; ${hint}`)
}

export function commandGroup<Group extends Omit<Command, 'run'>>(group: Group): Group & Command {
  const { commands = [] } = group
  return { ...group, run: ([word]) => Promise.reject(unknownCommand(word, commands)) }
}
