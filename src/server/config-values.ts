/**
 * What the values of configs may be: their types as Kafka numbers them, where a value comes from, and checks from a text
 * to the text that is kept and answered. Numbers stay text, since a long of Kafka has more digits than a number here.
 */
import { invalid } from '../core/settings.ts'

/** `ConfigType` of DescribeConfigs. */
export const CONFIG_TYPES = { boolean: 1, string: 2, int: 3, long: 5, double: 6, list: 7 } as const
export type ConfigType = keyof typeof CONFIG_TYPES

/** `ConfigSource` of DescribeConfigs. */
export const CONFIG_SOURCES = { topic: 1, staticBroker: 4, default: 5 } as const

/** `ConfigResource.Type`. */
export const RESOURCE_TYPES = { topic: 2, broker: 4, brokerLogger: 8, clientMetrics: 16, group: 32 } as const

/** From what was given to what is kept. @throws OdradekError INVALID_ARGUMENT, without the config's name */
export type Check = (text: string) => string

export interface ValueType {
  readonly type: ConfigType
  readonly check: Check
  /** For documentation. */
  readonly values: string
}

const INT_MAX = 2n ** 31n - 1n
/** Kafka's Long.MAX_VALUE, which stands for no limit in some configs. */
export const LONG_MAX: bigint = 2n ** 63n - 1n
/** Longer texts are nobody's config. */
export const MAX_LENGTH = 32_767

function whole(type: 'int' | 'long', min: bigint, max: bigint): ValueType {
  const range = max === INT_MAX || max === LONG_MAX ? `from ${min} on` : `from ${min} to ${max}`
  return {
    type,
    values: range,
    check(text) {
      const value = /^[+-]?\d{1,19}$/.test(text) ? BigInt(text.replace('+', '')) : undefined
      if (value !== undefined && value >= min && value <= max) return String(value)
      throw invalid(`a whole number ${range}, not ${shown(text)}`)
    },
  }
}

export function int(min: number, max: bigint = INT_MAX): ValueType {
  return whole('int', BigInt(min), max)
}

export function long(min: number): ValueType {
  return whole('long', BigInt(min), LONG_MAX)
}

/** A share, from 0 to 1. */
export const SHARE: ValueType = {
  type: 'double',
  values: 'from 0 to 1',
  check(text) {
    const value = text === '' ? Number.NaN : Number(text)
    if (value >= 0 && value <= 1) return Number.isInteger(value) ? value.toFixed(1) : String(value)
    throw invalid(`a number from 0 to 1, not ${shown(text)}`)
  },
}

export const BOOLEAN: ValueType = {
  type: 'boolean',
  values: '`true`, `false`',
  check(text) {
    const value = text.toLowerCase()
    if (value === 'true' || value === 'false') return value
    throw invalid(`true or false, not ${shown(text)}`)
  },
}

export function oneOfTexts(...allowed: readonly string[]): ValueType {
  return {
    type: 'string',
    values: allowed.map((each) => `\`${each}\``).join(', '),
    check(text) {
      if (allowed.includes(text)) return text
      throw invalid(`one of ${allowed.join(', ')}, not ${shown(text)}`)
    },
  }
}

/** `item`: what each may be; the whole list when there is but that. */
export function list(values: string, item: RegExp, atLeast: number): ValueType {
  return {
    type: 'list',
    values,
    check(text) {
      const items = itemsOf(text)
      const strange = items.find((each) => !item.test(each))
      if (strange !== undefined) throw invalid(`a list of ${values}, not of ${shown(strange)}`)
      if (new Set(items).size < items.length)
        throw invalid(`a list that names nothing twice, not ${shown(text)}`)
      if (items.length < atLeast) throw invalid(`a list of ${values}, and not empty`)
      return items.join(',')
    },
  }
}

/** Of a list, in order. Blanks around them do not count. */
export function itemsOf(text: string): string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
}

/** @throws OdradekError INVALID_ARGUMENT, with the config's name */
export function checkValue(name: string, { check }: ValueType, text: string): string {
  if (text.length > MAX_LENGTH) throw invalid(`${name} has at most ${MAX_LENGTH} characters`)
  try {
    return check(text.trim())
  } catch (error) {
    throw invalid(`${name} is ${(error as Error).message}`)
  }
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}
