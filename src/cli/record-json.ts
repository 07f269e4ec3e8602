/**
 * Records as JSON, one a line, so that reading back what was written gives the same record: bytes that are no UTF-8 are
 * `{"base64": "…"}`, headers are pairs in their order, null is null.
 *
 *   {"topic":"orders","partition":0,"offset":7,"timestamp":1700000000000,"key":"k","value":"v","headers":[["a","1"]]}
 */
import { Buffer } from 'node:buffer'
import type { FetchedRecord } from '../client/fetched.ts'
import { type HeaderValue, type Key, RecordHeaders } from '../model/record.ts'

export interface JsonRecord {
  readonly topic: string | undefined
  readonly partition: number | undefined
  readonly timestamp: number | undefined
  readonly key: Key | null
  readonly value: Uint8Array | null
  readonly headers: RecordHeaders | null
}

type Json = string | { readonly base64: string } | null

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()
const FIELDS: ReadonlySet<string> = new Set([
  'topic',
  'partition',
  'offset',
  'timestamp',
  'key',
  'value',
  'headers',
])

export function recordJson({
  topic,
  partition,
  offset,
  timestamp,
  key,
  value,
  headers,
}: FetchedRecord): string {
  return JSON.stringify({
    topic,
    partition,
    offset,
    timestamp,
    key: fieldJson(key),
    value: fieldJson(value),
    headers: headers.map(([name, header]) => [name, fieldJson(header)]),
  })
}

function fieldJson(field: HeaderValue): Json {
  if (field === null || typeof field === 'string') return field
  try {
    return strict.decode(field)
  } catch {
    return { base64: Buffer.from(field).toString('base64') }
  }
}

/** @throws Error, whose message says what is wrong with the line */
export function recordOfJson(line: string): JsonRecord {
  const json: unknown = parsed(line)
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new Error('it is no JSON object')
  const fields = json as Readonly<Record<string, unknown>>
  const unknown = Object.keys(fields).find((name) => !FIELDS.has(name))
  if (unknown !== undefined)
    throw new Error(`unknown field "${unknown}"; there are ${[...FIELDS].join(', ')}`)
  if (fields.value === undefined) throw new Error('it has no "value"; a null is "value": null')
  const { topic } = fields
  if (topic !== undefined && typeof topic !== 'string') throw new Error('"topic" is no string')
  const key = fieldOf('key', fields.key ?? null)
  return {
    topic,
    partition: wholeNumber('partition', fields.partition),
    timestamp: wholeNumber('timestamp', fields.timestamp),
    key,
    value: bytesOf(fieldOf('value', fields.value)),
    headers: headersOf(fields.headers),
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new Error(`it is no JSON: ${(error as Error).message}`)
  }
}

function bytesOf(field: HeaderValue): Uint8Array | null {
  return typeof field === 'string' ? encoder.encode(field) : field
}

function fieldOf(name: string, field: unknown): HeaderValue {
  if (field === null || typeof field === 'string') return field
  const { base64, ...rest } = field as { readonly base64?: unknown }
  if (typeof base64 === 'string' && Object.keys(rest).length === 0) {
    if (/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return new Uint8Array(Buffer.from(base64, 'base64'))
    throw new Error(`"${name}" has a "base64" that is none`)
  }
  throw new Error(`"${name}" is a string, null, or {"base64": "…"}`)
}

function wholeNumber(name: string, number: unknown): number | undefined {
  if (number === undefined) return undefined
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
  throw new Error(`"${name}" is no whole number`)
}

/** Pairs, or an object, whose members may be lists. */
function headersOf(headers: unknown): RecordHeaders | null {
  if (headers === undefined || headers === null) return null
  if (typeof headers !== 'object') throw new Error('"headers" are pairs, or an object')
  const pairs = Array.isArray(headers) ? headers.map(pairOf) : Object.entries(headers).flatMap(members)
  return pairs.length === 0 ? null : new RecordHeaders(pairs)
}

function members([name, value]: readonly [string, unknown]): (readonly [string, HeaderValue])[] {
  const values: unknown[] = Array.isArray(value) ? value : [value]
  return values.map((each) => [name, fieldOf(`headers.${name}`, each)])
}

function pairOf(pair: unknown): readonly [string, HeaderValue] {
  if (Array.isArray(pair) && pair.length === 2 && typeof pair[0] === 'string') {
    return [pair[0], fieldOf(`headers.${pair[0]}`, pair[1])]
  }
  throw new Error('a header is a pair: ["name", value]')
}
