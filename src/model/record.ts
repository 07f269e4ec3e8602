/**
 * A record and its headers, as readers see them.
 *
 * Keys are compared as UTF-8 bytes: a string and the bytes of its UTF-8 form are the same key.
 * Headers are an ordered multi-map, as in Kafka; values are strings or bytes, `null` is Kafka's null.
 */
import { OdradekError } from './errors.ts'

export type Key = string | Uint8Array
export type HeaderValue = string | Uint8Array | null

/** What `publish` accepts as headers: an object literal, pairs, or headers taken from a delivery. */
export type HeadersInit =
  | RecordHeaders
  | Iterable<readonly [string, HeaderValue]>
  | { readonly [name: string]: HeaderValue | readonly HeaderValue[] | undefined }

/** The header that carries a publish id, so that it survives encoding, dead letters and redrive. */
export const ID_HEADER = '__odradek.id'

const utf8 = new TextEncoder()
const text = new TextDecoder()
const strictText = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An ordered multi-map of headers. Immutable: `with` answers a copy. */
export class RecordHeaders implements Iterable<readonly [string, HeaderValue]> {
  readonly #entries: readonly (readonly [string, HeaderValue])[]
  /** Made by `from`: nobody else has the entries. */
  // biome-ignore lint/style/useReadonlyClassProperties: `from` sets it
  #checked = false
  #sizeBytes = -1

  constructor(entries: readonly (readonly [string, HeaderValue])[]) {
    this.#entries = entries
  }

  /** Checks and copies what a caller gave. `undefined` members of an object literal are left out. */
  static from(init: HeadersInit): RecordHeaders {
    if (init instanceof RecordHeaders && #checked in init && init.#checked) return init
    if (typeof init !== 'object' || init === null) {
      throw badHeaders(`headers are an object, pairs, or those of a record; got ${String(init)}`)
    }
    const headers = new RecordHeaders(Symbol.iterator in init ? pairsOf(init) : membersOf(init))
    headers.#checked = true
    return headers
  }

  get size(): number {
    return this.#entries.length
  }

  /** Bytes of all names and values, text as UTF-8. */
  get sizeBytes(): number {
    if (this.#sizeBytes < 0) {
      this.#sizeBytes = 0
      for (const [name, value] of this.#entries) this.#sizeBytes += utf8Length(name) + bytesOf(value)
    }
    return this.#sizeBytes
  }

  /** The last value under `name` as text (bytes are decoded as UTF-8), `null` for Kafka's null, else `undefined`. */
  get(name: string): string | null | undefined {
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i]
      if (entry?.[0] === name) return asText(entry[1])
    }
    return undefined
  }

  /** Every value under `name`, in order, as text. */
  getAll(name: string): (string | null)[] {
    const found: (string | null)[] = []
    for (const [key, value] of this.#entries) if (key === name) found.push(asText(value))
    return found
  }

  /** The last value under `name` as bytes. */
  getBytes(name: string): Uint8Array | null | undefined {
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i]
      if (entry?.[0] === name) return typeof entry[1] === 'string' ? utf8.encode(entry[1]) : entry[1]
    }
    return undefined
  }

  has(name: string): boolean {
    return this.#entries.some((entry) => entry[0] === name)
  }

  /** A copy with every `name` replaced by one value, at the end. */
  with(name: string, value: HeaderValue): RecordHeaders {
    return new RecordHeaders([...this.#entries.filter((entry) => entry[0] !== name), [name, value]])
  }

  /** A copy without the names that `drop` picks. */
  without(drop: (name: string) => boolean): RecordHeaders {
    return new RecordHeaders(this.#entries.filter((entry) => !drop(entry[0])))
  }

  [Symbol.iterator](): IterableIterator<readonly [string, HeaderValue]> {
    return this.toJSON()[Symbol.iterator]()
  }

  /** A plain list of pairs, so that `JSON.stringify` and `console.log` show something useful. */
  toJSON(): (readonly [string, HeaderValue])[] {
    // Pairs of their own: readers share these headers, and one must not change them for the others.
    return this.#entries.map(([name, value]) => [name, value])
  }
}

export const NO_HEADERS: RecordHeaders = new RecordHeaders([])

/** One record as read from a log. The envelope is read-only; the value is the caller's. */
export interface LogRecord<T = unknown> {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
  readonly key: Key | null
  readonly value: T
  readonly headers: RecordHeaders
  /** The id given to `publish`, else `topicId/partition/offset`. Kept through dead letter and redrive. */
  readonly id: string
}

/** The bytes of a key, as the partitioner and compaction see it. */
export function keyBytes(key: Key): Uint8Array {
  return typeof key === 'string' ? utf8.encode(key) : key
}

/**
 * One string per key, equal exactly when the UTF-8 bytes are equal. Bytes that are not UTF-8 get a form
 * that no well-formed string has (a lone surrogate in front).
 */
export function keyIdentity(key: Key): string {
  if (typeof key === 'string') return key.isWellFormed() ? key : key.toWellFormed()
  try {
    return strictText.decode(key)
  } catch {
    let form = '\ud800'
    for (const byte of key) form += String.fromCharCode(byte)
    return form
  }
}

/** Length of a key or of a header's value, text as UTF-8. */
export function bytesOf(field: HeaderValue): number {
  if (field === null) return 0
  return typeof field === 'string' ? utf8Length(field) : field.length
}

/** Bytes of `text` as UTF-8. */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    length += unit < 0x800 ? 1 : 2
    // A pair is two units and four bytes.
    if ((unit & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) i++
  }
  return length
}

type Entry = readonly [string, HeaderValue]

function pairsOf(init: Iterable<Entry>): Entry[] {
  const entries: Entry[] = []
  for (const pair of init) {
    const name: unknown = Array.isArray(pair) ? pair[0] : undefined
    if (typeof name !== 'string') {
      throw badHeaders(`headers as an iterable are pairs [name, value]; got ${typeof pair}`)
    }
    entries.push([name, checkValue(name, pair[1])])
  }
  return entries
}

function membersOf(init: { readonly [name: string]: unknown }): Entry[] {
  const entries: Entry[] = []
  for (const name of Object.keys(init)) {
    const value = init[name]
    if (Array.isArray(value)) for (const each of value) entries.push([name, checkValue(name, each)])
    else if (value !== undefined) entries.push([name, checkValue(name, value)])
  }
  return entries
}

function asText(value: HeaderValue): string | null {
  return value === null || typeof value === 'string' ? value : text.decode(value)
}

function checkValue(name: string, value: unknown): HeaderValue {
  if (value === null || typeof value === 'string') return value
  if (value instanceof Uint8Array) return new Uint8Array(value)
  throw badHeaders(`header "${name}" must be a string, bytes or null; got ${typeof value}`)
}

function badHeaders(message: string): OdradekError {
  return new OdradekError('INVALID_VALUE', message)
}
