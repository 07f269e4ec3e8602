/**
 * A run of whole batches in memory, and their rows once somebody asked. One for all readers of it.
 *
 *   batches   │ batch 0 │ batch 1 │ control │ batch 3 │ ▸ appended to, where it is the newest of its log
 *   rows      │ r r r r │ r r r   │         ▸ decoded as far as somebody asked
 *
 * - Rows once written never change: deliveries keep their columns when the chunk has dropped them, or is gone.
 * - Offsets may have gaps, and control batches have no rows: row `r` has offset `base + r` only where all is plain.
 * - A batch that cannot be decoded is one row, at whatever offset a reader enters it: it has columns of its own.
 * - Rows of batches that were made in this process were validated when they were published, and are not `foreign`.
 *   Among them a value that does not decode would go unseen: it is shown in columns of its own that are.
 *
 * Concurrency: one thread, run to completion.
 */
import { Columns, type Slice } from '../../model/batch.ts'
import { type At, type Isolation, PoisonValue } from '../contract.ts'
import { ABORTED, BatchRun, CONTROL, type Collected, POISON } from './batch-run.ts'
import { CacheEntry } from './chunk-cache.ts'
import type { RowDecoder } from './row-decoder.ts'
import type { Slab } from './slab.ts'

/** What a row costs in memory beyond its bytes, about. */
const ROW_OVERHEAD_BYTES = 64
/** Batches are copied for their rows in pieces of this, at least one: that is what a value of bytes keeps alive. */
const COPY_BYTES = 64 * 1024
/** Rows that are made room for at once. */
const MAX_FIRST_ROWS = 1024

export type { Collected } from './batch-run.ts'

const NO_ROWS = new Columns(0)
const NOTHING = new Uint8Array(0)

export interface ChunkOptions {
  /** Offset where it begins: that of its first batch, or lower where offsets are missing in front of it. */
  readonly base: number
  readonly inProcess: boolean
  readonly decoder: RowDecoder
  /** The cache has let go of it. */
  readonly onEvicted: (chunk: Chunk) => void
}

export class Chunk extends CacheEntry {
  readonly #batches: BatchRun
  readonly #decoder: RowDecoder
  readonly #onEvicted: (chunk: Chunk) => void
  /** What its bytes are a part of, and held for it. */
  #slab: Slab | null
  #columns: Columns | null = null
  /** Batches that are rows by now, or poison. */
  #decoded = 0
  #rowBytes = 0
  /** A copy of what is decoded next, for rows to keep views of, and where it begins. */
  #copy: Uint8Array = NOTHING
  #copyFrom = 0
  /** Of batches that cannot be decoded, by their index. */
  readonly #poison = new Map<number, PoisonValue>()
  /** Rows of this process whose value does not decode, ascending. */
  #bad: number[] = []

  /** To be appended to: empty, unless `batches` are given. It takes over a hold of `slab`. */
  constructor(options: ChunkOptions, batches: BatchRun | Uint8Array, slab: Slab | null = null) {
    super()
    this.#slab = slab
    this.#batches =
      batches instanceof BatchRun ? batches : new BatchRun(options.base, options.inProcess, batches)
    this.#decoder = options.decoder
    this.#onEvicted = options.onEvicted
  }

  /**
   * Chunks of one kind each for checked batches whose offsets go from `base` to `next`; see `BatchRun.of`. They take over
   * a hold of `slab`.
   */
  static of(
    bytes: Uint8Array,
    next: number,
    options: Omit<ChunkOptions, 'inProcess'>,
    slab: Slab | null = null,
  ): Chunk[] {
    const chunks = BatchRun.of(bytes, options.base, next).map((batches) => {
      const { base, inProcess } = batches
      slab?.hold()
      return new Chunk({ ...options, base, inProcess }, batches, slab)
    })
    slab?.release()
    return chunks
  }

  get base(): number {
    return this.#batches.base
  }

  /** Offset after it. */
  get next(): number {
    return this.#batches.next
  }

  get inProcess(): boolean {
    return this.#batches.inProcess
  }

  /** Bytes of its batches. */
  get usedBytes(): number {
    return this.#batches.usedBytes
  }

  /** See `BatchRun`. */
  get codecs(): number {
    return this.#batches.codecs
  }

  get heldBytes(): number {
    return this.#batches.heldBytes
  }

  get rowBytes(): number {
    return this.#rowBytes
  }

  /** Whether bytes that are in this slab, or in none, can be appended without moving the others. */
  takes(bytes: Uint8Array, slab: Slab | null): boolean {
    return slab === this.#slab && (slab === null || this.#batches.isNext(bytes))
  }

  /** Nothing more is appended: what is left of its slab is for others. */
  end(): void {
    if (this.#slab !== null) this.#batches.end()
  }

  /** Its bytes are looked at until the answer is called, or for ever. */
  lend(): (() => void) | undefined {
    let slab = this.#slab
    if (slab === null) return undefined
    slab.hold()
    return () => {
      // Who says it twice must not let go for somebody else.
      slab?.release()
      slab = null
    }
  }

  /** Nobody looks at its bytes any more, unless they were lent. */
  release(): void {
    this.#slab?.release()
    this.#slab = null
  }

  /** Whoever has it may look at it at any time. */
  keep(): void {
    this.#slab = null
  }

  /** Copies whole batches to the end, visible at once. They follow `next`, and are of its kind or control batches. */
  append(batches: Uint8Array): void {
    this.#batches.append(batches)
  }

  /**
   * Spares `committed` readers what an aborted transaction left here. Only for one that reaches into this chunk;
   * it ends at the producer's first marker from `firstOffset` on, or after the chunk.
   */
  markAborted(producerId: number, firstOffset: number): void {
    this.#batches.markAborted(producerId, firstOffset)
  }

  /** A view of whole batches, see `BatchRun.collect`. */
  collect(from: number, limit: number, maxBytes: number): Collected {
    return this.#batches.collect(from, limit, maxBytes)
  }

  // ── rows ──────────────────────────────────────────────────────────────────────────────────────

  /** As the log's `peek`, for `base ≤ from < limit ≤ next`; `decode` mends a `miss`. */
  peek(from: number, limit: number, max: number, isolation: Isolation, into: Slice): 'hit' | 'miss' {
    if (!this.#batches.plain) return this.#peekAround(from, limit, max, isolation, into)
    const columns = this.#columns
    if (columns === null) return 'miss'
    const row = from - columns.base
    const count = Math.min(columns.count - row, limit - from, max)
    if (count <= 0) return 'miss'
    into.columns = columns
    into.row = row
    into.count = count
    into.next = from + count
    return 'hit'
  }

  /**
   * Decodes on until `peek` shows a row, if there is one below `limit`, and records of `maxBytes` in all. Nothing while a
   * codec is being loaded: whoever has the chunk waited for that, but a batch may have come since.
   */
  decode(from: number, limit: number, maxBytes: number, isolation: Isolation): void {
    const batches = this.#batches
    const hidden = hiddenTo(isolation)
    if (this.#decoder.ready(batches.codecs) !== undefined) return
    let leftBytes = maxBytes
    let shown = false
    while (
      this.#decoded < batches.length &&
      batches.baseOf(this.#decoded) < limit &&
      !(shown && leftBytes <= 0)
    ) {
      const index = this.#decoded
      const bytes = this.#decodeNext()
      if (batches.nextOf(index) <= from || batches.has(index, hidden)) continue
      shown ||= batches.has(index, POISON) || this.#rowAt(from) < (this.#columns as Columns).count
      leftBytes -= bytes
    }
  }

  override dropRows(): void {
    this.#columns = null
    this.#decoded = 0
    this.#rowBytes = 0
    this.#copy = NOTHING
    this.#copyFrom = 0
    this.#poison.clear()
    this.#bad = []
  }

  override evicted(): void {
    this.#onEvicted(this)
  }

  // ── looking up ────────────────────────────────────────────────────────────────────────────────

  /** The first record from `from` on that is at or after `timestamp`. Nothing assumes that timestamps grow. */
  firstAtOrAfter(timestamp: number, from: number): At | undefined {
    const batches = this.#batches
    for (let index = batches.indexOf(from); index < batches.length; index++) {
      const newest = batches.maxTimestampOf(index)
      if (newest < timestamp || batches.has(index, CONTROL)) continue
      const rows = this.#skim(index)
      if (rows === null) return { offset: Math.max(from, batches.baseOf(index)), timestamp: newest }
      for (let row = 0; row < rows.count; row++) {
        const offset = rows.offsetAt(row)
        if (offset >= from && rows.timestampAt(row) >= timestamp) {
          return { offset, timestamp: rows.timestampAt(row) }
        }
      }
    }
    return undefined
  }

  /** The newest timestamp of a record from `from` on, or −1. */
  newestTimestamp(from: number): number {
    const batches = this.#batches
    let newest = -1
    for (let index = batches.indexOf(from); index < batches.length; index++) {
      if (batches.maxTimestampOf(index) <= newest || batches.has(index, CONTROL)) continue
      const rows = batches.baseOf(index) < from ? this.#skim(index) : null
      if (rows === null) newest = batches.maxTimestampOf(index)
      else {
        for (let row = 0; row < rows.count; row++) {
          if (rows.offsetAt(row) >= from) newest = Math.max(newest, rows.timestampAt(row))
        }
      }
    }
    return newest
  }

  /** The rows of a batch for their offsets and times, or `null` where they cannot be read. */
  #skim(index: number): Columns | null {
    try {
      return this.#decoder.skim(this.#batches.bytes, this.#batches.positions[index] as number)
    } catch {
      // It is one row to a reader, who is told why.
      return null
    }
  }

  // ── showing ───────────────────────────────────────────────────────────────────────────────────

  /** `peek` where something is hidden, missing or poison. */
  #peekAround(from: number, limit: number, max: number, isolation: Isolation, into: Slice): 'hit' | 'miss' {
    const batches = this.#batches
    const hidden = hiddenTo(isolation)
    let index = batches.skip(batches.indexOf(from), hidden)
    let at = Math.max(from, batches.startOf(index))
    while (at < limit) {
      if (index >= this.#decoded) return 'miss'
      const poison = this.#poison.get(index)
      const stop = poison === undefined ? this.#stopAfter(index, limit, max, hidden | POISON) : index + 1
      const to = Math.min(limit, batches.startOf(stop))
      if (poison === undefined) this.#showRows(at, to, max, into)
      else show(into, poisonRow(at, poison, batches.maxTimestampOf(index)), 0, 1, to)
      index = batches.skip(stop, hidden)
      // Whoever has all of the run goes on behind what is hidden after it.
      if (into.next === to) into.next = Math.min(limit, batches.startOf(index))
      if (into.count > 0) return 'hit'
      at = batches.startOf(index)
    }
    show(into, NO_ROWS, 0, 0, limit)
    return 'hit'
  }

  /** The first batch behind `index` that ends a run: not decoded, flagged, from `limit` on, or one too many. */
  #stopAfter(index: number, limit: number, max: number, flags: number): number {
    const batches = this.#batches
    const until = Math.min(this.#decoded, index + max + 1)
    let stop = index + 1
    while (stop < until && !batches.has(stop, flags) && batches.baseOf(stop) < limit) stop++
    return stop
  }

  /** Shows rows of [from, to), all of which are decoded; `next` is `to` when it has all of them. */
  #showRows(from: number, to: number, max: number, into: Slice): void {
    const columns = this.#columns as Columns
    const first = this.#rowAt(from)
    const last = this.#rowAt(to)
    const bad = this.#bad[lowerBound(this.#bad, this.#bad.length, first)] ?? last
    const end = bad === first ? Math.min(first + 1, last) : Math.min(first + max, bad, last)
    const next = end === last ? to : columns.offsetAt(end - 1) + 1
    if (bad === first && first < last) show(into, foreignRow(columns, first), 0, 1, next)
    else show(into, columns, first, end - first, next)
  }

  /** The first row that is at or after `offset`. */
  #rowAt(offset: number): number {
    const { offsets, count, base } = this.#columns ?? NO_ROWS
    return offsets === null ? Math.min(Math.max(offset - base, 0), count) : lowerBound(offsets, count, offset)
  }

  // ── decoding ──────────────────────────────────────────────────────────────────────────────────

  /** Turns the next batch into rows, and answers how large they are. */
  #decodeNext(): number {
    const { bytes, inProcess, positions } = this.#batches
    const index = this.#decoded++
    if (this.#batches.has(index, CONTROL)) return 0
    const columns = this.#columns ?? this.#newColumns(index)
    this.#columns = columns
    const { count } = columns
    const bad: number[] = []
    try {
      const at = this.#copied(index)
      const sizeBytes = this.#decoder.decode(this.#copy, at, columns, bad)
      this.#rowBytes += sizeBytes + (columns.count - count) * ROW_OVERHEAD_BYTES
      if (inProcess && bad.length > 0) this.#noteBad(bad)
      return sizeBytes
    } catch (cause) {
      const poison = new PoisonValue(cause, bytes.slice(positions[index], this.#batches.endOf(index)))
      this.#rowBytes += poison.bytes.length
      this.#poison.set(index, poison)
      this.#batches.flag(index, POISON)
      return poison.bytes.length
    }
  }

  /** Where in the copy the batch is. */
  #copied(index: number): number {
    const { bytes, positions, usedBytes } = this.#batches
    const from = positions[index] as number
    const end = this.#batches.endOf(index)
    if (this.#copyFrom + this.#copy.length < end) {
      this.#copyFrom = from
      this.#copy = bytes.slice(from, Math.max(end, Math.min(from + COPY_BYTES, usedBytes)))
    }
    return from - this.#copyFrom
  }

  #newColumns(index: number): Columns {
    const { inProcess, next } = this.#batches
    const base = this.#batches.baseOf(index)
    const columns = new Columns(base, Math.min(next - base, MAX_FIRST_ROWS))
    columns.foreign = !inProcess
    return columns
  }

  #noteBad(rows: readonly number[]): void {
    this.#bad.push(...rows)
    this.#batches.plain = false
  }
}

function hiddenTo(isolation: Isolation): number {
  return isolation === 'committed' ? CONTROL | ABORTED : CONTROL
}

function show(into: Slice, columns: Columns, row: number, count: number, next: number): void {
  into.columns = columns
  into.row = row
  into.count = count
  into.next = next
}

/** One row for a whole batch. */
function poisonRow(offset: number, poison: PoisonValue, timestamp: number): Columns {
  const columns = new Columns(offset, 1)
  columns.push(poison, null, null, timestamp, 0)
  columns.foreign = true
  return columns
}

/** A copy of one row, in foreign columns, so that it is looked at. */
function foreignRow(columns: Columns, row: number): Columns {
  const copy = new Columns(columns.offsetAt(row), 1)
  const { values } = columns
  copy.push(
    values[row],
    columns.keyAt(row),
    columns.headersAt(row),
    columns.timestampAt(row),
    columns.sizeAt(row),
  )
  copy.foreign = true
  return copy
}

/** Place of the first of `count` ascending numbers that is not below `value`. */
function lowerBound(numbers: ArrayLike<number>, count: number, value: number): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] as number) < value) low = middle + 1
    else high = middle
  }
  return low
}
