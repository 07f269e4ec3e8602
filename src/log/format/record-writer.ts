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
import type { HeaderValue, Key, RecordHeaders } from '../../model/record.ts'
import { CONTENT_TYPE_HEADER, UNTYPED_HEADER } from '../../model/value-codec.ts'
import { utf8Length, writeUtf8 } from './text.ts'
import { varintSize, varlongSize, writeVarint, writeVarlong } from './varint.ts'

/** The smallest record: six one-byte fields, and its length. */
export const MIN_RECORD_BYTES = 7
/** Copying by hand is faster up to here. */
const SHORT_COPY = 16
/** Buffers of finished batches, for the next ones: so much of all together, and none larger than a part of that. */
const MAX_SPARES_BYTES = 4 * 1024 * 1024
const MAX_SPARE_BYTES = 1024 * 1024
const FIRST_BYTES = 4096
/** What is given away of a buffer that is used by this share is the buffer itself, and no copy. */
const FULL = 0.75

/** Taken by one writer at a time: a codec is the user's code, which may come to encode another batch, or throw. */
const spares: Uint8Array[] = []
let sparesBytes = 0
const NO_BYTES = new Uint8Array(0)

/** Gives room for what a batch is copied to, all of it the batch's own. */
export type Memory = (sizeBytes: number) => Uint8Array

/** Writes records one after the other, leaving room in front of them. */
export class RecordWriter {
  #out: Uint8Array = NO_BYTES
  #at = 0
  /** The newest content type and the header it makes: all rows of a batch mostly share it. */
  #type: string | null = null
  #typeHeader: Uint8Array = UNTYPED

  /** Bytes so far, headroom included. */
  get sizeBytes(): number {
    return this.#at
  }

  /** `roomBytes`: what to make room for at once, where much is expected. */
  open(headroomBytes: number, roomBytes: number = FIRST_BYTES): void {
    if (this.#out.length === 0) this.#out = bufferOf(roomBytes)
    this.#at = headroomBytes
  }

  /** `contentType` is what the value's codec says; `undefined` writes the headers as they are. */
  write(
    value: Uint8Array | null,
    key: Key | null,
    headers: RecordHeaders | null,
    contentType: string | null | undefined,
    timestampDelta: number,
    offsetDelta: number,
  ): void {
    const extra = value === null || contentType === undefined ? null : this.#extraHeader(contentType, headers)
    const entries = headers === null ? null : headers.toJSON()
    const keySize = key === null ? -1 : sizeOf(key)
    const headerCount = (entries === null ? 0 : entries.length) + (extra === null ? 0 : 1)
    let size = 1 + varlongSize(timestampDelta) + varintSize(offsetDelta) + varintSize(headerCount)
    size += fieldSize(keySize) + fieldSize(value === null ? -1 : value.length)
    if (entries !== null) size += headersSize(entries)
    if (extra !== null) size += extra.length

    const out = this.#room(size)
    let at = writeVarint(out, this.#at, size)
    out[at++] = 0
    at = writeVarlong(out, at, timestampDelta)
    at = writeVarint(out, at, offsetDelta)
    at = writeField(out, at, key, keySize)
    at = writeField(out, at, value, value === null ? -1 : value.length)
    at = writeVarint(out, at, headerCount)
    if (entries !== null) at = writeHeaders(out, at, entries)
    this.#at = extra === null ? at : copy(out, at, extra)
  }

  /** A view of what was written from `from` on, good until the next call. */
  written(from: number): Uint8Array {
    return this.#out.subarray(from, this.#at)
  }

  /** All that was written, in memory of its own; as `close` otherwise. */
  take(memory: Memory | undefined): Uint8Array {
    const written = this.written(0)
    if (written.length >= this.#out.length * FULL) {
      this.#out = NO_BYTES
      return written
    }
    const bytes = memory?.(written.length)
    bytes?.set(written)
    const taken = bytes ?? written.slice()
    this.close()
    return taken
  }

  /** Gives the buffer to whoever opens next. */
  close(): void {
    const { length } = this.#out
    if (length <= MAX_SPARE_BYTES && sparesBytes + length <= MAX_SPARES_BYTES) {
      spares.push(this.#out)
      sparesBytes += length
    }
    this.#out = NO_BYTES
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

/** A spare buffer that is large enough, or a new one. */
function bufferOf(roomBytes: number): Uint8Array {
  const spare = spares.at(-1)
  if (spare === undefined || spare.length < roomBytes) return new Uint8Array(roomBytes)
  spares.pop()
  sparesBytes -= spare.length
  return spare
}

type Entries = readonly (readonly [string, HeaderValue])[]

const UNTYPED = oneHeader(UNTYPED_HEADER, null)

function oneHeader(name: string, value: string | null): Uint8Array {
  const headers: Entries = [[name, value]]
  const out = new Uint8Array(headersSize(headers))
  writeHeaders(out, 0, headers)
  return out
}

function headersSize(headers: Entries): number {
  let size = 0
  for (const [name, value] of headers) {
    size += fieldSize(utf8Length(name)) + fieldSize(value === null ? -1 : sizeOf(value))
  }
  return size
}

function writeHeaders(out: Uint8Array, start: number, headers: Entries): number {
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
