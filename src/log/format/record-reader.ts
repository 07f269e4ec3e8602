/**
 * Reads the records of a batch into columns; record-writer.ts describes their format. Whatever the bytes
 * hold, it reads nothing outside of them, makes nothing larger than them, and answers an error where they
 * are not what they claim: a matching CRC says that they arrived as sent, not that they were sound.
 */
import { Columns } from '../../model/batch.ts'
import type { HeaderValue, Key } from '../../model/record.ts'
import { RecordHeaders } from '../../model/record.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import { CONTENT_TYPE_HEADER, UNTYPED_HEADER } from '../../model/value-codec.ts'
import type { BatchHeader } from './record-batch.ts'
import { MIN_RECORD_BYTES } from './record-writer.ts'
import { readUtf8, textOrBytes } from './text.ts'
import { ByteReader, corrupt } from './varint.ts'

/** Makes a value's stand-in when the codec throws, so that one bad value does not spoil its batch. */
export type BadValue = (cause: unknown, bytes: Uint8Array | null) => unknown

/** The rows of a batch from its uncompressed records, which the rows keep views of. */
export function readRecords(
  records: Uint8Array,
  header: BatchHeader,
  codec: ValueCodec | null,
  badValue: BadValue | undefined,
): Columns {
  const { baseOffset, count, lastOffsetDelta } = header
  if (count > records.length / MIN_RECORD_BYTES) throw corrupt(`${count} records do not fit into the batch`)
  const reader = new RecordReader(records, header, codec, badValue)
  const rows = new Columns(baseOffset, count)
  let last = -1
  for (let row = 0; row < count; row++) {
    const delta = reader.read(rows)
    if (delta <= last || delta > lastOffsetDelta) throw corrupt(`offset delta ${delta} follows ${last}`)
    if (row === 0) rows.base = baseOffset + delta
    else if (rows.offsets !== null || delta !== last + 1) putOffset(rows, row, count, baseOffset + delta)
    last = delta
  }
  reader.finish()
  return rows
}

/** Offsets come to be with the first gap. */
function putOffset(rows: Columns, row: number, count: number, offset: number): void {
  if (rows.offsets === null) {
    rows.offsets = new Float64Array(count)
    for (let before = 0; before < row; before++) rows.offsets[before] = rows.base + before
  }
  rows.offsets[row] = offset
}

type HeaderEntry = readonly [name: string, value: HeaderValue]

/** A run of the input and what it was read as. */
interface Seen {
  start: number
  end: number
  text: HeaderValue
}

/** Headers per record that are compared with the record before. */
const MAX_SEEN = 8

class RecordReader {
  readonly #in: ByteReader
  readonly #end: number
  readonly #codec: ValueCodec | null
  readonly #badValue: BadValue | undefined
  readonly #baseTimestamp: number
  /** The broker's time for all records, or null where each has its own. */
  readonly #appendTime: number | null
  /** Names and values of headers by place, because those of the next record are mostly the same. */
  readonly #names: Seen[] = []
  readonly #values: Seen[] = []

  constructor(
    records: Uint8Array,
    header: BatchHeader,
    codec: ValueCodec | null,
    badValue: BadValue | undefined,
  ) {
    this.#in = new ByteReader(records, 0, records.length)
    this.#end = records.length
    this.#codec = codec
    this.#badValue = badValue
    this.#baseTimestamp = header.baseTimestamp
    this.#appendTime = header.logAppendTime ? header.maxTimestamp : null
  }

  /** Adds the next record to `rows` and answers its offset delta. */
  read(rows: Columns): number {
    const input = this.#in
    const start = input.at
    const size = input.varint()
    input.end = input.at + size
    if (size < 0 || input.end > this.#end) throw corrupt('a record reaches beyond its batch')
    input.skip(1)
    const timestampDelta = input.varlong()
    const offsetDelta = input.varint()
    const key = this.#key()
    const bytes = this.#bytes()
    const entries = this.#entries()
    if (input.at !== input.end) throw corrupt('a record is longer than its fields')
    input.end = this.#end
    const value = this.#value(bytes, entries)
    const headers = entries === null || entries.length === 0 ? null : new RecordHeaders(entries)
    rows.push(value, key, headers, this.#appendTime ?? this.#baseTimestamp + timestampDelta, input.at - start)
    return offsetDelta
  }

  finish(): void {
    if (this.#in.at !== this.#end) throw corrupt('bytes follow the last record of a batch')
  }

  #key(): Key | null {
    const size = this.#in.varint()
    if (size < 0) return null
    const start = this.#in.skip(size)
    return textOrBytes(this.#in.bytes, start, start + size)
  }

  #bytes(): Uint8Array | null {
    const size = this.#in.varint()
    if (size < 0) return null
    const start = this.#in.skip(size)
    return this.#in.bytes.subarray(start, start + size)
  }

  #entries(): HeaderEntry[] | null {
    const input = this.#in
    const count = input.varint()
    if (count === 0) return null
    if (count < 0) throw corrupt('a negative count of headers')
    const entries: HeaderEntry[] = []
    for (let place = 0; place < count; place++) {
      const nameSize = input.varint()
      if (nameSize < 0) throw corrupt('a header without a name')
      const name = this.#text(this.#names, place, nameSize, readUtf8)
      const size = input.varint()
      entries.push([name, size < 0 ? null : this.#text(this.#values, place, size, textOrBytes)])
    }
    return entries
  }

  /** Text of the next `size` bytes; what the record before had at this place, if it is the same. */
  #text<T extends HeaderValue>(
    seen: Seen[],
    place: number,
    size: number,
    read: (bytes: Uint8Array, start: number, end: number) => T,
  ): T {
    const bytes = this.#in.bytes
    const start = this.#in.skip(size)
    const before = seen[place]
    if (before !== undefined && before.end - before.start === size) {
      let i = 0
      while (i < size && bytes[before.start + i] === bytes[start + i]) i++
      if (i === size) return before.text as T
    }
    const text = read(bytes, start, start + size)
    if (place < MAX_SEEN) seen[place] = { start, end: start + size, text }
    return text
  }

  /** Decodes a value by the header that says its type, and takes that out if it has served. */
  #value(bytes: Uint8Array | null, entries: HeaderEntry[] | null): unknown {
    if (this.#codec === null) return bytes
    const at = entries === null ? -1 : entries.findLastIndex(saysType)
    const [name, type] = entries?.[at] ?? NO_TYPE
    let value: unknown
    try {
      value = this.#codec.decode(bytes, typeof type === 'string' ? type : undefined)
    } catch (cause) {
      if (this.#badValue === undefined) throw cause
      return this.#badValue(cause, bytes)
    }
    if (at >= 0 && (name === UNTYPED_HEADER || value !== bytes)) entries?.splice(at, 1)
    return value
  }
}

const NO_TYPE: HeaderEntry = ['', null]

function saysType([name]: HeaderEntry): boolean {
  return name === CONTENT_TYPE_HEADER || name === UNTYPED_HEADER
}
