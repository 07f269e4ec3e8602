/** The command line of a command: options by name, words beside them, and what to say where it is neither. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from './command.ts'

export type OptionTypes = NonNullable<ParseArgsConfig['options']>

export interface Arguments {
  readonly words: readonly string[]
  readonly options: Readonly<Record<string, string | boolean | undefined>>
  /** Every value of the options that may be repeated. */
  readonly lists: Readonly<Record<string, readonly string[] | undefined>>
}

/** How many words there may be, and what the first and another one are called. */
export interface Words {
  readonly min: number
  readonly max: number
  /** `a topic` */
  readonly what: string
}

export const NO_WORDS: Words = { min: 0, max: 0, what: 'nothing' }

/** @throws UsageError, which names what is not understood and what would be */
export function argumentsOf(args: readonly string[], options: OptionTypes, expected: Words): Arguments {
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values: Record<string, string | boolean> = {}
  const lists: Record<string, string[]> = {}
  const words: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const option = options[token.name]
    if (option === undefined) {
      throw unknownOption(token.rawName, Object.keys(options))
    }
    const takesValue = option.type === 'string'
    if (takesValue && (token.value === undefined || token.value === '')) {
      throw new UsageError(`--${token.name} needs a value`)
    }
    if (!takesValue && token.value !== undefined) throw new UsageError(`--${token.name} takes no value`)
    values[token.name] = token.value ?? true
    if (option.multiple === true) lists[token.name] = [...(lists[token.name] ?? []), String(token.value)]
  }
  if (words.length < expected.min) throw new UsageError(`name ${expected.what}`)
  if (words.length > expected.max) throw tooMany(words[expected.max] as string, expected)
  return { words, options: values, lists }
}

function tooMany(word: string, { max, what }: Words): UsageError {
  if (max === 0) return new UsageError(`"${word}" is too much: there are options only`)
  const one = what.replace(/^an? /, '')
  return new UsageError(`one ${one} at a time; "${word}" is another one`)
}

/** The value of an option that is a whole number, such as a port. */
export function numberOf(
  name: string,
  value: string | boolean | undefined,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  if (value === undefined) return undefined
  const number = /^\d{1,16}$/.test(String(value)) ? Number(value) : Number.NaN
  if (number >= min && number <= max) return number
  throw new UsageError(`--${name} is a whole number from ${min} to ${max}; not "${value}"`)
}

/** The value of an option that is an offset. */
export function offsetOf(name: string, value: string | boolean | undefined): number | undefined {
  if (value === undefined) return undefined
  const offset = /^\d{1,16}$/.test(String(value)) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(offset))
    throw new UsageError(`--${name} is an offset, such as 1000; not "${value}"`)
  return offset
}

/** `option` as it was typed. */
export function unknownOption(option: string, known: readonly string[]): UsageError {
  const meant = near(option.replace(/^-+/, ''), known)
  const hint =
    meant === undefined ? `there are ${known.map((name) => `--${name}`).join(', ')}` : `--${meant}?`
  return new UsageError(`unknown option ${option}; ${hint}`)
}

/** What of `known` somebody may have meant. */
export function near(typed: string, known: readonly string[]): string | undefined {
  if (typed.length < 2) return undefined
  const begun = known.find((name) => name.startsWith(typed))
  if (begun !== undefined) return begun
  const [nearest] = known.map((name) => ({ name, far: distance(typed, name) })).sort((a, b) => a.far - b.far)
  return nearest !== undefined && nearest.far <= typed.length / 2 ? nearest.name : undefined
}

/** What is written `name=value` and may be given several times. @throws UsageError */
export function pairsOf(
  name: string,
  list: readonly string[] | undefined,
): (readonly [name: string, value: string])[] {
  return (list ?? []).map((text) => {
    const at = text.indexOf('=')
    if (at < 1) throw new UsageError(`--${name} is name=value; not "${text}"`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
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
