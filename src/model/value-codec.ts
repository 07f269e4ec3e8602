/**
 * How a value becomes bytes and comes back equal. Memory topics hand values over by reference and never
 * call this until somebody asks for bytes; engines of bytes call it inside `publish`.
 *
 * The default codec: bytes stay bytes, strings are UTF-8, everything else is strict JSON. A `content-type`
 * header says which, so that a subscriber gets an equal value live, after a restart and elsewhere, while
 * foreign clients see plain bytes.
 */
import { OdradekError } from './errors.ts'

export const CONTENT_TYPE_HEADER = 'content-type'

export interface EncodedValue {
  /** `null` is Kafka's null, a tombstone. */
  readonly bytes: Uint8Array | null
  /** Goes into the `content-type` header; `null` adds none (bytes are the default of every Kafka client). */
  readonly contentType: string | null
}

export interface ValueCodec {
  /** @throws OdradekError INVALID_VALUE when decoding would not give an equal value. */
  encode(value: unknown): EncodedValue
  /** `contentType` is the record's header, if any. @throws anything when the bytes are not what they claim. */
  decode(bytes: Uint8Array | null, contentType: string | undefined): unknown
}

export const TEXT_TYPE = 'text/plain; charset=utf-8'
export const JSON_TYPE = 'application/json'

const utf8 = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const defaultCodec: ValueCodec = {
  encode(value) {
    if (value === null) return { bytes: null, contentType: null }
    if (value instanceof Uint8Array) return { bytes: value, contentType: null }
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw refused('$', 'a string with a lone surrogate')
      return { bytes: utf8.encode(value), contentType: TEXT_TYPE }
    }
    checkJson(value, '$', new Set())
    return { bytes: utf8.encode(JSON.stringify(value)), contentType: JSON_TYPE }
  },
  decode(bytes, contentType) {
    if (bytes === null || contentType === undefined) return bytes
    if (contentType === JSON_TYPE) return JSON.parse(strict.decode(bytes))
    if (contentType === TEXT_TYPE) return strict.decode(bytes)
    return bytes
  },
}

/** Refuses everything that JSON would change silently, naming the path to it. */
function checkJson(value: unknown, path: string, above: Set<object>): void {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw refused(path, 'a string with a lone surrogate')
      return
    case 'boolean':
      return
    case 'number':
      if (!Number.isFinite(value)) throw refused(path, String(value))
      if (Object.is(value, -0)) throw refused(path, '-0')
      return
    case 'object':
      break
    default:
      throw refused(path, `a value of type ${typeof value}`)
  }
  if (value === null) return
  if (above.has(value)) throw refused(path, 'a circular reference')
  above.add(value)
  if (Array.isArray(value)) checkArray(value, path, above)
  else checkObject(value, path, above)
  above.delete(value)
}

function checkArray(value: unknown[], path: string, above: Set<object>): void {
  if (Object.keys(value).length !== value.length) throw refused(path, 'a sparse or decorated array')
  for (let i = 0; i < value.length; i++) {
    if (!(i in value)) throw refused(path, 'a sparse array')
    checkJson(value[i], `${path}[${i}]`, above)
  }
}

function checkObject(value: object, path: string, above: Set<object>): void {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw refused(path, `an instance of ${value.constructor?.name ?? 'a class'}`)
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw refused(path, 'symbol keys')
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    const where = `${path}.${name}`
    if (!property.enumerable || !('value' in property)) throw refused(where, 'an accessor or hidden property')
    if (name === 'toJSON' && typeof property.value === 'function') throw refused(where, 'a toJSON method')
    if (!name.isWellFormed()) throw refused(where, 'a name with a lone surrogate')
    checkJson(property.value, where, above)
  }
}

function refused(path: string, what: string): OdradekError {
  return new OdradekError(
    'INVALID_VALUE',
    `${path} is ${what}, which JSON would change silently; give the topic a codec, or publish bytes`,
  )
}
