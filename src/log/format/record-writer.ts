/**
 * One record inside a batch: the format, and its writer (record-reader.ts reads it). Lengths and deltas are
 * zigzag varints, −1 for null:
 *
 *   length | attributes i8 | timestamp delta (varlong) | offset delta | key length, key | value length, value
 *   | header count | name length, name, value length, value | name length, ...
 *
 * **What a value is** travels in the last `content-type` header: added here when the codec names a type, and
 * taken away when the codec has made something of the bytes. A caller's own content-type on a value that the
 * codec names no type for (bytes) is marked by an `__odradek.untyped` header, so that the value is not taken
 * for what that type says. Headers and values so come back as they were given.
 *
 * **Text**: keys and header values come back as strings where their bytes are well-formed UTF-8, else as
 * bytes. It depends on the bytes alone, so equal keys come back equal, also by `===`, whoever wrote them;
 * `keyBytes` and `getBytes` answer the same bytes for either form.
 */
import type { Columns } from '../../model/batch.ts'
import { RecordHeaders } from '../../model/record.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import { CONTENT_TYPE_HEADER } from '../../model/value-codec.ts'
import { utf8Length, writeUtf8 } from './text.ts'
import { varintSize, varlongSize, writeVarint, writeVarlong } from './varint.ts'

/** Says that the codec named no type for the value, and that a content-type header is the caller's own. */
export const UNTYPED_HEADER = '__odradek.untyped'

/** The smallest record: six one-byte fields, and its length. */
export const MIN_RECORD_BYTES = 7
/** Copying by hand is faster up to here. */
const SHORT_COPY = 16
/** The buffer that batches are written into is kept for the next one, unless it has grown beyond this. */
const MAX_SPARE_BYTES = 1024 * 1024

/** Taken by one writer at a time: a codec is the user's code, which may come to encode another batch, or throw. */
let spare: Uint8Array | null = null

/** Writes records one after the other, leaving room in front of them. */
export class RecordWriter {
  readonly #codec: ValueCodec
  #out: Uint8Array
  #at: number
  /** The newest content type and the header it makes: all rows of a batch mostly share it. */
  #type: string | null = null
  #typeHeader: Uint8Array = UNTYPED

  constructor(codec: ValueCodec, headroomBytes: number) {
    this.#codec = codec
    this.#out = spare ?? new Uint8Array(4096)
    this.#at = headroomBytes
    spare = null
  }

  write(rows: Columns, row: number, offsetDelta: number, timestampDelta: number): void {
    const { bytes, contentType } = this.#codec.encode(rows.values[row])
    const key = rows.keyAt(row)
    const headers = rows.headersAt(row)
    const extra = bytes === null ? null : this.#extraHeader(contentType, headers)
    const keySize = key === null ? -1 : sizeOf(key)
    const headerCount = (headers === null ? 0 : headers.size) + (extra === null ? 0 : 1)
    let size = 1 + varlongSize(timestampDelta) + varintSize(offsetDelta) + varintSize(headerCount)
    size += fieldSize(keySize) + fieldSize(bytes === null ? -1 : bytes.length)
    if (headers !== null) size += headersSize(headers)
    if (extra !== null) size += extra.length

    const out = this.#room(size)
    let at = writeVarint(out, this.#at, size)
    out[at++] = 0
    at = writeVarlong(out, at, timestampDelta)
    at = writeVarint(out, at, offsetDelta)
    at = writeField(out, at, key, keySize)
    at = writeField(out, at, bytes, bytes === null ? -1 : bytes.length)
    at = writeVarint(out, at, headerCount)
    if (headers !== null) at = writeHeaders(out, at, headers)
    this.#at = extra === null ? at : copy(out, at, extra)
  }

  /** What was written, in memory of its own, headroom first. */
  finish(): Uint8Array {
    const written = this.#out.slice(0, this.#at)
    if (this.#out.length <= MAX_SPARE_BYTES) spare = this.#out
    return written
  }

  /** The header that says what the value is, as bytes. */
  #extraHeader(contentType: string | null, headers: RecordHeaders | null): Uint8Array | null {
    if (contentType === null) return headers?.has(CONTENT_TYPE_HEADER) ? UNTYPED : null
    if (contentType !== this.#type) {
      this.#type = contentType
      this.#typeHeader = oneHeader(CONTENT_TYPE_HEADER, contentType)
    }
    return this.#typeHeader
  }

  /** Room for a record of `size` bytes and its length. */
  #room(size: number): Uint8Array {
    const needed = this.#at + size + 5
    if (needed <= this.#out.length) return this.#out
    const grown = new Uint8Array(Math.max(needed, this.#out.length * 2))
    grown.set(this.#out.subarray(0, this.#at))
    this.#out = grown
    return grown
  }
}

const UNTYPED = oneHeader(UNTYPED_HEADER, null)

function oneHeader(name: string, value: string | null): Uint8Array {
  const headers = new RecordHeaders([[name, value]])
  const out = new Uint8Array(headersSize(headers))
  writeHeaders(out, 0, headers)
  return out
}

function headersSize(headers: RecordHeaders): number {
  let size = 0
  for (const [name, value] of headers) {
    size += fieldSize(utf8Length(name)) + fieldSize(value === null ? -1 : sizeOf(value))
  }
  return size
}

function writeHeaders(out: Uint8Array, start: number, headers: RecordHeaders): number {
  let at = start
  for (const [name, value] of headers) {
    at = writeField(out, at, name, utf8Length(name))
    at = writeField(out, at, value, value === null ? -1 : sizeOf(value))
  }
  return at
}

function sizeOf(field: string | Uint8Array): number {
  return typeof field === 'string' ? utf8Length(field) : field.length
}

function fieldSize(size: number): number {
  return size < 0 ? 1 : varintSize(size) + size
}

function writeField(out: Uint8Array, start: number, field: string | Uint8Array | null, size: number): number {
  const at = writeVarint(out, start, size)
  if (field === null) return at
  return typeof field === 'string' ? writeUtf8(out, at, field) : copy(out, at, field)
}

function copy(out: Uint8Array, at: number, bytes: Uint8Array): number {
  if (bytes.length > SHORT_COPY) out.set(bytes, at)
  else for (let i = 0; i < bytes.length; i++) out[at + i] = bytes[i] as number
  return at + bytes.length
}
