/**
 * What is published under torture: everything about a record follows from its token, so that whoever reads it back
 * can tell whether a single byte of it has changed, without having been told what was sent.
 *
 *   token "12.p0.7" ─► dice ─► value (object, text or bytes, with the token in front), key, header
 */
import { isDeepStrictEqual } from 'node:util'
import type { LogRecord } from '../../../src/model/record.ts'
import { Dice } from '../dice.ts'

/** What a record of a token looks like. */
export interface Content {
  readonly value: unknown
  readonly key: string | null
  readonly headers: { readonly [name: string]: string }
}

const LARGE_BYTES = 3_000
const KEYS = 5

export function contentOf(token: string): Content {
  const dice = new Dice(hashOf(token))
  const kind = dice.share()
  const sizeBytes = kind < 0.03 ? LARGE_BYTES : dice.below(200)
  const pad = letters(dice, sizeBytes)
  const key = dice.chance(0.7) ? `k${dice.below(KEYS)}` : null
  const headers = { check: String(hashOf(pad)) }
  if (kind < 0.4) return { value: { token, pad, n: dice.below(1_000) }, key, headers }
  if (kind < 0.7) return { value: `${token}|${pad}`, key, headers }
  return { value: new TextEncoder().encode(`${token}|${pad}`), key, headers }
}

/** The token that a record carries, whether or not the rest of it is as it should be. */
export function tokenOf(value: unknown): string | undefined {
  if (value instanceof Uint8Array) return tokenOf(new TextDecoder().decode(value))
  if (typeof value === 'string') return value.includes('|') ? value.slice(0, value.indexOf('|')) : undefined
  const { token } = (value ?? {}) as { token?: unknown }
  return typeof token === 'string' ? token : undefined
}

/** What is wrong with a record, by what its token says of it, and its topic of its key; undefined: nothing. */
export function corruptionOf(record: LogRecord, keyOf?: (token: string) => string): string | undefined {
  const token = tokenOf(record.value)
  const where = `${record.topic}/${record.partition}/${record.offset}`
  if (token === undefined) return `${where} has no token: ${String(record.value).slice(0, 80)}`
  const { value, headers, ...content } = contentOf(token)
  const key = keyOf === undefined ? content.key : keyOf(token)
  if (!isDeepStrictEqual(plain(record.value), plain(value))) return `${where} has another value than ${token}`
  if (record.key !== key) return `${where} has key ${String(record.key)}, not that of ${token}`
  for (const [name, text] of Object.entries(headers)) {
    if (record.headers.get(name) !== text) return `${where} has another header "${name}" than ${token}`
  }
  return undefined
}

/** Bytes as bytes, whichever class of the platform they came in. */
function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? [...value] : value
}

function letters(dice: Dice, length: number): string {
  const some = Array.from({ length: Math.min(length, 16) }, () => String.fromCharCode(97 + dice.below(26)))
  return some.length === 0
    ? ''
    : some
        .join('')
        .repeat(Math.ceil(length / some.length))
        .slice(0, length)
}

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
