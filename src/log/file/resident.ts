/**
 * What is in memory of one log: chunks in the order of their offsets, with holes between them where nobody read.
 *
 *   segments    ████████████████████████████████▒▒▒▒              written up to here, the rest is on its way
 *   chunks          ├────┤    ├──┤├────┤      ├─┤├──── tail ▸
 *                   paged in, may go at any time  │ pinned: not in segments yet
 *
 * Chunks never overlap. The cache that all logs share decides who goes (chunk-cache.ts).
 */
import { assert, OdradekError } from '../../model/errors.ts'
import { BufferPool } from '../format/buffer-pool.ts'
import { concat } from '../format/bytes.ts'
import { BatchScan } from '../format/scan.ts'
import type { PartitionState } from '../state.ts'
import { Chunk, type Collected } from './chunk.ts'
import type { ChunkCache } from './chunk-cache.ts'
import type { PendingBatch } from './pending.ts'
import type { RowDecoder } from './row-decoder.ts'
import type { SegmentRead } from './segment.ts'
import type { Segments } from './segments.ts'
import { SlabFiller } from './slab.ts'

const KiB = 1024
/** A chunk at the tail is left for a new one when it is this large. */
const CHUNK_BYTES = 256 * KiB
/** What a new one makes room for: a chunk of few bytes is doubled as it fills. */
const FIRST_BYTES = 4 * KiB
/** A batch of this much is a chunk, as it is: to copy it would cost more than a chunk. */
const LARGE_BYTES = 32 * KiB
/** What is read ahead at once. */
const PAGE_BYTES = 256 * KiB
/** A reader who has this much is shown it as it lies here: with more behind it, all would have to be copied. */
const ENOUGH_BYTES = 128 * KiB
/** What is written at once, if there is so much. */
const WRITE_BYTES = 1024 * KiB

const EVERYTHING = Number.POSITIVE_INFINITY

/** Whole batches that segments do not have yet. */
export interface Unwritten {
  /** In a row. */
  readonly pieces: readonly Uint8Array[]
  readonly base: number
  readonly next: number
}

/** `done` is to be called when nobody looks at the bytes any more; they are a copy where there is none. */
export interface Lent extends Collected {
  readonly done: (() => void) | undefined
}

export class Resident {
  readonly #segments: Segments
  readonly #cache: ChunkCache
  readonly #decoder: RowDecoder
  readonly #state: PartitionState
  /** Where batches are copied to before they come here. */
  readonly filler: SlabFiller
  /** Ascending. */
  readonly #chunks: Chunk[] = []
  #tail: Chunk | null = null
  readonly #pool: BufferPool
  /** What is being paged in, by the offset that was asked for. */
  readonly #paging = new Map<number, Promise<void>>()
  #version = 0
  #gone = false

  /** `pool`: where the memory of batches comes from, and goes. */
  constructor(
    segments: Segments,
    cache: ChunkCache,
    decoder: RowDecoder,
    state: PartitionState,
    pool: BufferPool = new BufferPool(0),
  ) {
    this.filler = new SlabFiller(pool)
    this.#pool = pool
    this.#segments = segments
    this.#cache = cache
    this.#decoder = decoder
    this.#state = state
  }

  // ── the tail ──────────────────────────────────────────────────────────────────────────────────

  /** A batch that was committed. It stays until `written`. */
  append(batch: PendingBatch): void {
    const { base, next, bytes, slab } = batch
    if (slab === null && bytes.length >= LARGE_BYTES) {
      const options = { base, decoder: this.#decoder, onEvicted: this.#evicted }
      for (const chunk of Chunk.of(bytes, next, options)) this.#push(chunk)
    } else if (this.#fitsTail(batch)) {
      this.#tail?.append(bytes)
      slab?.release()
    } else this.#push(this.#chunkFor(batch))
    this.#cache.add(this.#tail as Chunk, true)
  }

  #fitsTail({ base, bytes, foreign, control, slab }: PendingBatch): boolean {
    const tail = this.#tail
    if (tail === null || tail.next !== base || !tail.takes(bytes, slab)) return false
    // Of a slab the next chunk has what is left, which is not to be little.
    if (tail.usedBytes + (slab === null ? bytes.length : 1) > CHUNK_BYTES) return false
    return control || tail.inProcess === !foreign
  }

  /** A chunk that has the batch, and room for more: much where the one before was filled up. */
  #chunkFor({ base, bytes, foreign, slab }: PendingBatch): Chunk {
    const options = { base, inProcess: !foreign, decoder: this.#decoder, onEvicted: this.#evicted }
    const tail = this.#tail
    const filled = tail !== null && tail.next === base && tail.usedBytes + bytes.length > CHUNK_BYTES
    const sizeBytes = Math.max(bytes.length, filled ? CHUNK_BYTES : FIRST_BYTES)
    const memory = slab?.bytes.subarray(bytes.byteOffset - slab.bytes.byteOffset) ?? new Uint8Array(sizeBytes)
    const chunk = new Chunk(options, memory, slab)
    chunk.append(bytes)
    return chunk
  }

  #push(chunk: Chunk): void {
    const tail = this.#tail
    tail?.end()
    if (tail !== null) this.#cache.resized(tail)
    this.#chunks.push(chunk)
    this.#tail = chunk
  }

  /** Batches from `from` on, which are here, up to `until`: as many as are written at once. */
  unwritten(from: number, until: number): Unwritten {
    const pieces: Uint8Array[] = []
    let next = from
    for (let sizeBytes = 0; next < until && sizeBytes < WRITE_BYTES; ) {
      const piece = (this.find(next) as Chunk).collect(next, until, EVERYTHING)
      pieces.push(piece.bytes)
      sizeBytes += piece.bytes.length
      next = piece.next
    }
    return { pieces, base: from, next }
  }

  /** Segments have everything below `next`. Chunks that may leave now do so while others are unpinned. */
  written(next: number): void {
    const end = this.#indexOf(next)
    let first = end
    while (first > 0 && this.#chunks[first - 1]?.pinned) first--
    for (const chunk of this.#chunks.slice(first, end)) this.#cache.unpin(chunk)
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  /** The chunk that holds `offset`, if it is in memory. */
  find(offset: number): Chunk | undefined {
    const chunk = this.#chunks[this.#indexOf(offset)]
    if (chunk === undefined || chunk.base > offset) return undefined
    this.#cache.touch(chunk)
    return chunk
  }

  /** Decodes, which makes a chunk larger. */
  decode(
    chunk: Chunk,
    from: number,
    limit: number,
    maxBytes: number,
    isolation: 'committed' | 'uncommitted',
  ): void {
    chunk.decode(from, limit, maxBytes, isolation)
    if (chunk.heldBytes > 0 && this.#isHere(chunk)) this.#cache.resized(chunk)
  }

  /** The chunk that holds `offset`, from memory or from the disk. @throws OdradekError CORRUPT_LOG, STORAGE_ERROR */
  async chunkAt(offset: number): Promise<Chunk> {
    let chunk = this.find(offset)
    for (; chunk === undefined; chunk = this.find(offset)) await this.#paged(offset)
    chunk.keep()
    const ready = this.#decoder.ready(chunk.codecs)
    if (ready !== undefined) await ready
    return chunk
  }

  /** Resolves when the chunk has come. By the time that somebody looks for it, it may have left again. */
  #paged(offset: number, isAhead: boolean = false): Promise<void> {
    let paging = this.#paging.get(offset)
    if (paging === undefined) {
      paging = this.#page(offset, isAhead).finally(() => this.#paging.delete(offset))
      this.#paging.set(offset, paging)
    }
    return paging
  }

  /** Who reads on will want it. If it cannot be had, it is for them to hear of that. */
  #readAhead(offset: number): void {
    const isThere = offset >= this.#segments.next || this.#has(offset)
    if (!isThere && this.#cache.readsAhead) this.#paged(offset, true).catch(() => {})
  }

  /** Whole batches from the one that holds `from`, below `bound`: at least one, and not more than `maxBytes` with the others. */
  async collect(from: number, bound: number, maxBytes: number): Promise<Lent> {
    const pieces: Uint8Array[] = []
    const ends: (() => void)[] = []
    let sizeBytes = 0
    let next = from
    while (next < bound) {
      const chunk = this.find(next)
      if (chunk === undefined) {
        await this.#paged(next)
        continue
      }
      const piece = chunk.collect(next, bound, sizeBytes === 0 ? maxBytes : maxBytes - sizeBytes)
      if (sizeBytes > 0 && sizeBytes + piece.bytes.length > maxBytes) break
      if (piece.bytes.length > 0) {
        pieces.push(piece.bytes)
        const end = chunk.lend()
        if (end !== undefined) ends.push(end)
      }
      sizeBytes += piece.bytes.length
      next = piece.next
      if (sizeBytes >= Math.min(maxBytes, ENOUGH_BYTES) || next < Math.min(chunk.next, bound)) break
    }
    this.#readAhead(next)
    const bytes = concat(pieces)
    if (pieces.length === 1) return { bytes, next, done: ends[0] }
    for (const end of ends) end()
    return { bytes, next, done: undefined }
  }

  async #page(offset: number, isAhead: boolean): Promise<void> {
    const read = await this.#read(offset)
    if (this.#has(offset)) {
      read.slab?.release()
      return
    }
    const { bytes, base, next, slab } = this.#withoutOverlap(read, offset)
    const options = { base, decoder: this.#decoder, onEvicted: this.#evicted }
    const chunks = Chunk.of(bytes, next, options, slab)
    // From behind, so that what was asked for is the last to leave.
    for (const chunk of chunks.reverse()) this.#insert(chunk, isAhead)
  }

  /** As segments are now: what was read from one that has been replaced meanwhile is read again. */
  async #read(offset: number): Promise<SegmentRead> {
    for (;;) {
      const version = this.#version
      const read = await this.#segments.read(offset, PAGE_BYTES, this.#pool)
      if (version === this.#version) return read
      read.slab?.release()
    }
  }

  #insert(chunk: Chunk, isAhead: boolean): void {
    for (const { producerId, firstOffset } of this.#state.aborted(chunk.base, chunk.next)) {
      chunk.markAborted(producerId, firstOffset)
    }
    if (this.#gone) throw new OdradekError('CLOSED', 'the log was closed while it was read')
    this.#chunks.splice(this.#indexOf(chunk.base), 0, chunk)
    if (isAhead) this.#cache.addAhead(chunk)
    else this.#cache.add(chunk)
  }

  /** Cuts off what other chunks have: they follow `offset`, or were read from another offset. */
  #withoutOverlap(read: SegmentRead, offset: number): SegmentRead {
    const index = this.#indexOf(offset)
    const base = Math.max(read.base, this.#chunks[index - 1]?.next ?? read.base)
    const next = Math.min(read.next, this.#chunks[index]?.base ?? read.next)
    if (base === read.base && next === read.next) return read
    let begin = read.bytes.length
    let end = 0
    for (const scan = new BatchScan().start(read.bytes); scan.next(); ) {
      if (scan.last < base || scan.base >= next) continue
      begin = Math.min(begin, scan.position)
      end = scan.position + scan.sizeBytes
    }
    return { ...read, bytes: read.bytes.subarray(begin, end), base, next }
  }

  // ── leaving ───────────────────────────────────────────────────────────────────────────────────

  /** The producer's transaction since `firstOffset` is aborted: readers can be spared it. */
  hideAborted(producerId: number, firstOffset: number): void {
    for (let i = this.#indexOf(firstOffset); i < this.#chunks.length; i++) {
      ;(this.#chunks[i] as Chunk).markAborted(producerId, firstOffset)
    }
  }

  /** Where the log begins when all that is older than `oldest` is gone, as far as it is in memory from `start` on. */
  expired(start: number, oldest: number): number {
    let at = start
    for (let chunk = this.find(at); chunk !== undefined; chunk = this.find(at)) {
      const { bytes } = chunk.collect(at, EVERYTHING, EVERYTHING)
      for (const scan = new BatchScan().start(bytes); scan.next(); ) {
        if (scan.maxTimestamp < 0 || scan.maxTimestamp >= oldest) return at
        at = scan.last + 1
      }
      at = chunk.next
    }
    return at
  }

  /** Changes when segments have other batches than before. */
  get version(): number {
    return this.#version
  }

  /** Segments have other batches from `base` to `next` now: what is here of the former ones goes. Nothing of it is pinned. */
  replaced(base: number, next: number): void {
    this.#version++
    const first = this.#indexOf(base)
    let end = first
    for (; end < this.#chunks.length; end++) {
      const chunk = this.#chunks[end] as Chunk
      if (chunk.base >= next) break
      assert(!chunk.pinned, 'what is pinned is in no segment that is replaced')
      this.#remove(chunk)
    }
    this.#chunks.splice(first, end - first)
  }

  /** Nothing below `start` is read any more. */
  trim(start: number): void {
    let count = 0
    for (const chunk of this.#chunks) {
      if (chunk.next > start || chunk.pinned || chunk === this.#tail) break
      this.#remove(chunk)
      count++
    }
    if (count > 0) this.#chunks.splice(0, count)
  }

  clear(): void {
    this.#gone = true
    for (const chunk of this.#chunks) this.#remove(chunk)
    this.#chunks.length = 0
  }

  /** What is pinned may just be on its way into a segment. */
  #remove(chunk: Chunk): void {
    this.#cache.remove(chunk)
    if (!chunk.pinned) chunk.release()
    this.#left(chunk)
  }

  /** A log that rests holds no memory for what may come. */
  #left(chunk: Chunk): void {
    if (chunk !== this.#tail) return
    this.#tail = null
    this.filler.rest()
  }

  readonly #evicted = (chunk: Chunk): void => {
    const index = this.#indexOf(chunk.base)
    if (this.#chunks[index] === chunk) this.#chunks.splice(index, 1)
    chunk.release()
    this.#left(chunk)
  }

  #has(offset: number): boolean {
    const chunk = this.#chunks[this.#indexOf(offset)]
    return chunk !== undefined && chunk.base <= offset
  }

  #isHere(chunk: Chunk): boolean {
    return this.#chunks[this.#indexOf(chunk.base)] === chunk
  }

  /** Position of the chunk that holds `offset`, or of the first one after it. */
  #indexOf(offset: number): number {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chunks[middle] as Chunk).next > offset) high = middle
      else low = middle + 1
    }
    return low
  }
}
