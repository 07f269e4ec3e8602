/**
 * The second view of a segment, made when somebody asks: wire batches decoded to columns, columns encoded to
 * wire batches. A conversion is kept beside the authoritative view, so that it is made once however many read
 * it, and is continued when the segment has grown. It never costs a record its place: conversions have a
 * budget of their own, an eighth of retention, out of which the oldest fall first. The newest one stays
 * even if it is larger, or a reader that goes row by row would convert a segment once for every row.
 */
import { Columns } from '../../model/batch.ts'
import { messageOf, odradekError } from '../../model/errors.ts'
import { NO_HEADERS } from '../../model/record.ts'
import { UNENCODABLE_HEADER, type ValueCodec } from '../../model/value-codec.ts'
import { type EngineContext, PoisonValue } from '../contract.ts'
import { type CompressionPort, codecsReady, noCompression } from '../format/compression.ts'
import { decodeBatch, encodeBatch } from '../format/record-batch.ts'
import type { Segment } from './segment.ts'
import { CONTROL, POISON, Slab } from './slab.ts'

const KiB = 1024
/** Nominal bytes after which an encoded batch ends. */
const BATCH_BYTES = 64 * KiB
const FIRST_SLAB_BYTES = 4 * KiB
const BUDGET_SHARE = 8
const MAX_BUDGET_BYTES = 64 * KiB * KiB

export class Conversions {
  readonly #codec: ValueCodec
  readonly #compression: CompressionPort
  readonly #crc: { readonly crc32c?: (bytes: Uint8Array) => number }
  /** Segments with a conversion, the oldest first. */
  readonly #made = new Set<Segment>()
  #bytes = 0
  #budgetBytes = 0

  constructor(codec: ValueCodec, context: EngineContext) {
    this.#codec = codec
    this.#compression = context.compression ?? noCompression
    this.#crc = context.crc32c === undefined ? {} : { crc32c: context.crc32c }
  }

  /** Bytes held by conversions. */
  get bytes(): number {
    return this.#bytes
  }

  limit(retentionBytes: number): void {
    this.#budgetBytes = Math.min(retentionBytes / BUDGET_SHARE, MAX_BUDGET_BYTES)
    this.#keepBudget()
  }

  /** Resolves when there is what it takes to decode these segments; `undefined` where it is there. */
  ready(segments: Iterable<Segment>): Promise<unknown> | undefined {
    let codecs = 0
    for (const { wire, slab } of segments) if (wire && slab !== null) codecs |= slab.codecs
    return codecsReady(this.#compression, codecs)
  }

  /** Decodes a wire segment on, until its columns hold `offset` and, beyond it, another `moreBytes`. */
  decode(segment: Segment, offset: number, moreBytes: number): Columns {
    const slab = segment.slab as Slab
    const columns = segment.columns ?? new Columns(segment.base, segment.next - segment.base)
    columns.foreign = true
    segment.columns = columns
    let made = 0
    let more = 0
    while (segment.converted < slab.length && (segment.base + columns.count <= offset || more < moreBytes)) {
      const bytes = this.#decodeOne(slab, segment.converted, columns)
      made += bytes
      if (segment.base + columns.count > offset) more += bytes
      segment.converted++
    }
    this.#account(segment, made)
    return columns
  }

  /** The slab of a segment, encoded on until it holds `offset` where that is not yet so. */
  encode(segment: Segment, offset: number): Slab {
    if (segment.wire) return segment.slab as Slab
    const slab = segment.slab ?? new Slab(segment.base, FIRST_SLAB_BYTES)
    segment.slab = slab
    let made = 0
    while (slab.next <= offset && slab.next < segment.next) made += this.#encodeOne(segment, slab)
    this.#account(segment, made)
    return slab
  }

  /** The segment leaves the log. */
  forget(segment: Segment): void {
    if (this.#made.delete(segment)) this.#drop(segment)
  }

  #decodeOne(slab: Slab, index: number, into: Columns): number {
    const base = slab.bases[index] as number
    const count = slab.nextOf(index) - base
    const position = slab.positions[index] as number
    if (slab.has(index, CONTROL)) {
      for (let row = 0; row < count; row++) into.push(undefined, null, null, -1, 0)
      return 0
    }
    let rows: Columns
    try {
      rows = decodeBatch(slab.bytes, position, this.#codec, this.#compression, poisonValue)
    } catch (cause) {
      slab.mark(index, POISON)
      const poison = new PoisonValue(cause, slab.bytes.slice(position, slab.endOf(index)))
      const timestamp = slab.maxTimestamps[index] as number
      for (let row = 0; row < count; row++) into.push(poison, null, null, timestamp, 0)
      return poison.bytes.length
    }
    let bytes = 0
    for (let row = 0; row < count; row++) {
      const size = rows.sizeAt(row)
      into.push(rows.values[row], rows.keyAt(row), rows.headersAt(row), rows.timestampAt(row), size)
      bytes += size
    }
    return bytes
  }

  #encodeOne(segment: Segment, slab: Slab): number {
    const columns = segment.columns as Columns
    const row = slab.next - segment.base
    let count = 0
    let sizeBytes = 0
    while (row + count < columns.count && sizeBytes < BATCH_BYTES) sizeBytes += columns.sizeAt(row + count++)
    const batch = this.#encodeRows(columns, row, count)
    const maxTimestamp = columns.timestampAt(row + count - 1)
    slab.append(batch, { next: slab.next + count, sizeBytes, maxTimestamp, flags: 0 })
    return batch.length
  }

  #encodeRows(columns: Columns, row: number, count: number): Uint8Array {
    const options = { baseOffset: columns.base + row, leaderEpoch: 0, ...this.#crc }
    try {
      return encodeBatch(columns, row, count, this.#codec, options)
    } catch (error) {
      odradekError(error)
      return encodeBatch(this.#withoutUnencodable(columns, row, count), 0, count, this.#codec, options)
    }
  }

  #withoutUnencodable(columns: Columns, from: number, count: number): Columns {
    const safe = new Columns(columns.base + from, count)
    for (let row = from; row < from + count; row++) {
      let value = columns.values[row]
      let headers = columns.headersAt(row)
      try {
        this.#codec.encode(value)
      } catch (error) {
        value = null
        headers = (headers ?? NO_HEADERS).with(UNENCODABLE_HEADER, messageOf(error))
      }
      safe.push(value, columns.keyAt(row), headers, columns.timestampAt(row), columns.sizeAt(row))
    }
    return safe
  }

  #account(segment: Segment, bytes: number): void {
    if (bytes === 0) return
    this.#made.delete(segment)
    this.#made.add(segment)
    segment.cacheBytes += bytes
    this.#bytes += bytes
    this.#keepBudget()
  }

  #keepBudget(): void {
    for (const segment of this.#made) {
      if (this.#bytes <= this.#budgetBytes || this.#made.size === 1) return
      this.forget(segment)
    }
  }

  #drop(segment: Segment): void {
    this.#bytes -= segment.cacheBytes
    segment.cacheBytes = 0
    segment.converted = 0
    if (segment.wire) segment.columns = null
    else segment.slab = null
  }
}

/** One value that does not decode leaves its batch alone. */
function poisonValue(cause: unknown, bytes: Uint8Array | null): PoisonValue {
  return new PoisonValue(cause, bytes ?? new Uint8Array(0))
}
