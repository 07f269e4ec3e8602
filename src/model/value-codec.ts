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
/** Says that the codec named no type for the value, and that a content-type header is the caller's own. */
export const UNTYPED_HEADER = '__odradek.untyped'
/**
 * A value in memory may be anything, also what no codec can encode. Where bytes are needed all the same, such a
 * record is a null that says why in this header: leaving it out would be a loss that nobody sees.
 */
export const UNENCODABLE_HEADER = '__odradek.unencodable'

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
    const fault = faultIn(value, [])
    if (fault !== null) throw refused(`$${fault.path}`, fault.what)
    return { bytes: utf8.encode(JSON.stringify(value)), contentType: JSON_TYPE }
  },
  decode(bytes, contentType) {
    if (bytes === null || contentType === undefined) return bytes
    if (contentType === JSON_TYPE) return JSON.parse(strict.decode(bytes))
    if (contentType === TEXT_TYPE) return strict.decode(bytes)
    return bytes
  },
}

/** Levels that JSON values may nest: bounded, because at some depth the stack of whoever reads them ends. */
const MAX_DEPTH = 500

/** What JSON would change silently, and the path to it. */
interface Fault {
  readonly path: string
  readonly what: string
}

/** The first fault in `value`, which `above` contain; `null` when it would come back equal. */
function faultIn(value: unknown, above: object[]): Fault | null {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? null : { path: '', what: 'a string with a lone surrogate' }
    case 'boolean':
      return null
    case 'number':
      if (Object.is(value, -0)) return { path: '', what: '-0' }
      return Number.isFinite(value) ? null : { path: '', what: String(value) }
    case 'object':
      return value === null ? null : faultInside(value, above)
    default:
      return { path: '', what: `a value of type ${typeof value}` }
  }
}

function faultInside(value: object, above: object[]): Fault | null {
  if (above.includes(value)) return { path: '', what: 'a circular reference' }
  if (above.length === MAX_DEPTH) return { path: '', what: `more than ${MAX_DEPTH} levels deep` }
  above.push(value)
  const fault = Array.isArray(value) ? faultInArray(value, above) : faultInObject(value, above)
  above.pop()
  return fault
}

function faultInArray(value: unknown[], above: object[]): Fault | null {
  if (Object.getPrototypeOf(value) !== Array.prototype) return { path: '', what: instanceOf(value) }
  if (Object.keys(value).length !== value.length || Object.getOwnPropertySymbols(value).length > 0) {
    return { path: '', what: 'a sparse or decorated array' }
  }
  for (let i = 0; i < value.length; i++) {
    const fault = faultIn(value[i], above)
    if (fault !== null) return { path: `[${i}]${fault.path}`, what: fault.what }
  }
  return null
}

function faultInObject(value: object, above: object[]): Fault | null {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return { path: '', what: instanceOf(value) }
  for (const name of Reflect.ownKeys(value)) {
    if (typeof name === 'symbol') return { path: '', what: 'an object with symbol keys' }
    const property = Object.getOwnPropertyDescriptor(value, name) as PropertyDescriptor
    const fault = faultInProperty(name, property) ?? faultIn(property.value, above)
    if (fault !== null) return { path: `.${name}${fault.path}`, what: fault.what }
  }
  return null
}

function faultInProperty(name: string, property: PropertyDescriptor): Fault | null {
  if (!property.enumerable || !('value' in property)) {
    return { path: '', what: 'an accessor or hidden property' }
  }
  if (name === 'toJSON' && typeof property.value === 'function') return { path: '', what: 'a toJSON method' }
  return name.isWellFormed() ? null : { path: '', what: 'under a name with a lone surrogate' }
}

function instanceOf(value: object): string {
  return `an instance of ${value.constructor?.name ?? 'a class'}`
}

function refused(path: string, what: string): OdradekError {
  return new OdradekError(
    'INVALID_VALUE',
    `${path} is ${what}, which JSON would change silently; give the topic a codec, or publish bytes`,
  )
}
