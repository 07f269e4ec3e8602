/** The command line of a command: options by name, one data directory, and what to say where it is neither. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from './command.ts'

type Options = NonNullable<ParseArgsConfig['options']>

export interface Arguments {
  readonly directory: string
  readonly options: Readonly<Record<string, string | boolean | undefined>>
}

/** @throws UsageError, which names what is not understood and what would be */
export function argumentsOf(args: readonly string[], options: Options): Arguments {
  const known = Object.keys(options)
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values: Record<string, string | boolean> = {}
  const directories: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') directories.push(token.value)
    if (token.kind !== 'option') continue
    const option = options[token.name]
    if (option === undefined || !token.rawName.startsWith('--')) {
      throw new UsageError(`unknown option ${token.rawName}${hint(token.rawName, known)}`)
    }
    const takesValue = option.type === 'string'
    if (takesValue && (token.value === undefined || token.value === '')) {
      throw new UsageError(`--${token.name} needs a value`)
    }
    if (!takesValue && token.value !== undefined) throw new UsageError(`--${token.name} takes no value`)
    values[token.name] = token.value ?? true
  }
  const [directory, another] = directories
  if (directory === undefined) throw new UsageError('name a data directory')
  if (another !== undefined) throw new UsageError(`one data directory at a time; "${another}" is another one`)
  return { directory, options: values }
}

/** The value of an option that is an offset. */
export function offsetOf(name: string, value: string | boolean | undefined): number | undefined {
  if (value === undefined) return undefined
  const offset = /^\d{1,16}$/.test(String(value)) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(offset))
    throw new UsageError(`--${name} is an offset, such as 1000; not "${value}"`)
  return offset
}

function hint(option: string, known: readonly string[]): string {
  const typed = option.replace(/^-+/, '')
  const near = known.find(
    (name) => typed.length > 1 && (name.startsWith(typed) || distance(typed, name) <= typed.length / 2),
  )
  return near === undefined ? `; there are ${known.map((name) => `--${name}`).join(', ')}` : `; --${near}?`
}

/** How many letters must change to make one word of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const change = (row[j] as number) + (a[i] === b[j] ? 0 : 1)
      next.push(Math.min(change, (row[j + 1] as number) + 1, (next[j] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
