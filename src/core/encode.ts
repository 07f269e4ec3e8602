/**
 * What an engine of bytes is given for a value: what a codec makes of it, and in the headers what it is. Whatever is
 * published goes through here once: publish, transactions, dead letters and their way back.
 *
 *   { total: 3 }   ─► {"total":3}   content-type: application/json
 *   bytes          ─► the same      nothing, or `__odradek.untyped` where the caller has a content-type of his own
 *   null           ─► null          nothing: a tombstone is no codec's to change
 *
 * Whoever reads the log takes those headers away again (log/format/record-reader.ts). Bytes may be the caller's, or
 * a buffer that the codec will use again: a log copies them when it takes them, what waits for that must copy them.
 */
import { PoisonValue } from '../log/contract.ts'
import { messageOf, OdradekError } from '../model/errors.ts'
import { ENCODED_OVERHEAD_BYTES } from '../model/limits.ts'
import { bytesOf, type Key, NO_HEADERS, RecordHeaders } from '../model/record.ts'
import {
  CONTENT_TYPE_HEADER,
  type EncodedValue,
  UNENCODABLE_HEADER,
  UNTYPED_HEADER,
  type ValueCodec,
} from '../model/value-codec.ts'

/** Says of a dead letter that its value is what could not be decoded. */
export const UNDECODED_HEADER = '__dlq.errors.undecoded'

/** A value as the log takes it, and what it counts. */
export interface Form {
  readonly value: unknown
  readonly headers: RecordHeaders | null
  readonly sizeBytes: number
}

/** Headers that say a type and nothing else, by the type: most records have just those. */
const typeHeaders = new Map<string, RecordHeaders>()
const MAX_TYPES = 64

/** @throws OdradekError INVALID_VALUE for what the codec does not take */
export function encoded(
  topic: string,
  codec: ValueCodec,
  value: unknown,
  key: Key | null,
  headers: RecordHeaders | null,
): Form {
  if (value === null) return formOf(null, key, headers)
  const { bytes, contentType } = encodedBy(topic, codec, value)
  return formOf(bytes, key, bytes === null ? headers : withType(headers, contentType))
}

/**
 * A record that was read from a topic with `codec`, in the bytes that it was read from. `typed`: what the value is
 * stands in the headers still, and not for that codec.
 * @throws OdradekError INVALID_VALUE for what was decoded and cannot be encoded
 */
export function reencoded(
  topic: string,
  codec: ValueCodec,
  value: unknown,
  key: Key | null,
  headers: RecordHeaders,
  typed: boolean,
): Form {
  // What could not be decoded has its type still, too.
  if (value instanceof PoisonValue) return formOf(value.bytes, key, headers)
  if (typed) return formOf(encodedBy(topic, codec, value).bytes, key, headers)
  return encoded(topic, codec, value, key, headers)
}

/**
 * The same for a dead letter, which must be readable, and must not fail: what could not be decoded are bytes now,
 * and a value that its handlers have made unfit for the codec is a null that says so. A letter that cannot be
 * written would hold its reader for ever.
 */
export function letterForm(
  topic: string,
  codec: ValueCodec,
  value: unknown,
  key: Key | null,
  headers: RecordHeaders,
): Form {
  if (value instanceof PoisonValue) {
    return formOf(value.bytes, key, withType(headers, null).with(UNDECODED_HEADER, null))
  }
  try {
    return encoded(topic, codec, value, key, headers)
  } catch (error) {
    return formOf(null, key, headers.with(UNENCODABLE_HEADER, messageOf(error)))
  }
}

function encodedBy(topic: string, codec: ValueCodec, value: unknown): EncodedValue {
  let encoded: Partial<EncodedValue> | undefined
  try {
    encoded = codec.encode(value)
  } catch (error) {
    if (error instanceof OdradekError) throw error
    throw new OdradekError('INVALID_VALUE', `the codec of "${topic}" refuses it: ${messageOf(error)}`, {
      cause: error,
    })
  }
  const { bytes, contentType } = encoded ?? {}
  if (bytes !== null && !(bytes instanceof Uint8Array)) {
    throw new OdradekError('INVALID_VALUE', `the codec of "${topic}" makes no bytes of it`)
  }
  return { bytes, contentType: typeof contentType === 'string' ? contentType : null }
}

function withType(headers: RecordHeaders, contentType: string | null): RecordHeaders
function withType(headers: RecordHeaders | null, contentType: string | null): RecordHeaders | null
function withType(headers: RecordHeaders | null, contentType: string | null): RecordHeaders | null {
  if (contentType === null) {
    return headers?.has(CONTENT_TYPE_HEADER) === true ? withHeader(headers, UNTYPED_HEADER, null) : headers
  }
  if (headers !== null) return withHeader(headers, CONTENT_TYPE_HEADER, contentType)
  let only = typeHeaders.get(contentType)
  if (only === undefined) {
    if (typeHeaders.size === MAX_TYPES) typeHeaders.clear()
    only = withHeader(NO_HEADERS, CONTENT_TYPE_HEADER, contentType)
    typeHeaders.set(contentType, only)
  }
  return only
}

/** One more at the end: what the caller has under that name stays his. */
function withHeader(headers: RecordHeaders, name: string, value: string | null): RecordHeaders {
  return new RecordHeaders([...headers, [name, value]])
}

function formOf(value: Uint8Array | null, key: Key | null, headers: RecordHeaders | null): Form {
  const sizeBytes = bytesOf(value) + bytesOf(key) + (headers?.sizeBytes ?? 0) + ENCODED_OVERHEAD_BYTES
  return { value, headers, sizeBytes }
}
