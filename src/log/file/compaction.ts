/**
 * Compaction of one log: of each key the newest record stays. A pass reads the keys of what was written since the last
 * one, then writes the log anew from its first segment on, as far as it has read keys.
 *
 *   segments    │ each key once    │ as they were written │ active
 *   keys                           ├── read, as many ─────┤           as the map may hold; else there is another pass
 *   rewritten   ├─ several become one, in groups ─────────┤           each group in a moment of its own
 *
 * What goes: records with a newer one of their key; what aborted transactions left; tombstones, `deleteRetentionMs` after
 * they were compacted first; markers, as long after nothing was left of their transaction; batches of which nothing is
 * left. What stays is as it was, offsets and all. Records without a key stay, and so does a batch that cannot be read.
 *
 * Why a tombstone may go: when its horizon was set, the records that it deletes went in the same pass, from groups that
 * took their places before its own. So they are gone from every disk that has the horizon. What cannot be read may hold
 * some of them: behind that, tombstones stay.
 *
 * All of this is done in slices, with nothing in hand that others wait for. Whoever drives it may stop after any.
 */
import { odradekError } from '../../model/errors.ts'
import { BatchFilter } from '../format/batch-filter.ts'
import { type CompressionPort, codecsReady } from '../format/compression.ts'
import { decodeMarker } from '../format/control.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { readInt16, readInt64 } from '../format/integers.ts'
import { ATTRIBUTES_AT, BASE_TIMESTAMP_AT, DELETE_HORIZON } from '../format/layout.ts'
import { BatchScan } from '../format/scan.ts'
import type { Abortion } from '../state.ts'
import type { Compactable } from './compactable.ts'
import { OffsetMap } from './offset-map.ts'
import { Rewriter } from './rewriter.ts'
import type { Segment, SegmentRead } from './segment.ts'

/** What is looked at in one go: half a millisecond of small records. */
const SLICE_BYTES = 64 * 1024

export interface CompactionOptions {
  readonly now: () => number
  readonly crc32c: Crc32c
  readonly compression: CompressionPort
  /** Segments are merged up to this. */
  readonly segmentBytes: number
  /** What the keys of one pass may take in memory. */
  readonly mapBytes: number
}

/** What was done: looked at some records, or put one segment in the place of others. */
export type Slice = 'looked' | 'replaced'

/**
 * Compacts what is there of the log now, slice by slice. Ends early where retention takes the log away under its hands.
 * @throws OdradekError CORRUPT_LOG, STORAGE_FULL, STORAGE_ERROR: what was not finished is as it was
 */
export async function* compactLog(log: Compactable, options: CompactionOptions): AsyncGenerator<Slice> {
  const bound = log.sources.at(-1)?.next
  if (bound === undefined) return
  do {
    const done = yield* new Pass(log, options).run()
    if (!done) return
  } while (log.until < bound)
}

class Pass {
  readonly #log: Compactable
  readonly #options: CompactionOptions
  readonly #sources: readonly Segment[]
  readonly #start: number
  readonly #now: number
  readonly #map: OffsetMap
  readonly #compression: CompressionPort
  readonly #filter: BatchFilter
  readonly #scan = new BatchScan()
  readonly #aborted = new Map<number, Abortion[]>()
  /** Offsets of which the map has all keys. */
  readonly #mapFrom: number
  #mapEnd: number
  /** Producers with records left of the transaction that a marker to come ends. */
  readonly #withRecords = new Set<number>()
  /** Something could not be read so far. */
  #unread = false
  /** Abort markers that are left out, of the group that is written. */
  #gone = new Set<number>()
  #horizon = Number.NEGATIVE_INFINITY

  constructor(log: Compactable, options: CompactionOptions) {
    this.#log = log
    this.#options = options
    this.#sources = log.sources
    this.#start = log.start
    this.#now = options.now()
    this.#map = new OffsetMap(options.mapBytes)
    this.#compression = options.compression
    this.#filter = new BatchFilter(options.compression, options.crc32c)
    this.#mapFrom = log.until
    this.#mapEnd = log.until
    for (const abortion of log.state.abortions) {
      const list = this.#aborted.get(abortion.producerId)
      if (list === undefined) this.#aborted.set(abortion.producerId, [abortion])
      else list.push(abortion)
    }
  }

  /** False: sources are gone. */
  async *run(): AsyncGenerator<Slice, boolean> {
    if (this.#sources.length === 0) return false
    if (!(yield* this.#readKeys()) || !(yield* this.#rewrite())) return false
    const horizon = this.#horizon > this.#now ? this.#horizon : Number.POSITIVE_INFINITY
    this.#log.finished(this.#mapEnd, horizon)
    return true
  }

  async #read(source: Segment, at: number): Promise<SegmentRead | undefined> {
    try {
      const read = await source.read(at, SLICE_BYTES)
      await this.#codecsReady(read.bytes)
      return read
    } catch (error) {
      if (this.#log.segments.list.includes(source)) throw error
      return undefined
    }
  }

  async #codecsReady(bytes: Uint8Array): Promise<void> {
    let codecs = 0
    for (const scan = this.#scan.start(bytes); scan.next(); ) codecs |= 1 << scan.compression
    await codecsReady(this.#compression, codecs)
  }

  // ── keys ──────────────────────────────────────────────────────────────────────────────────────

  async *#readKeys(): AsyncGenerator<Slice, boolean> {
    for (const source of this.#sources) {
      for (let at = Math.max(source.base, this.#mapFrom); at < source.next; ) {
        const read = await this.#read(source, at)
        if (read === undefined) return false
        if (!this.#takeKeys(read.bytes)) return true
        at = read.next
        this.#mapEnd = at
        yield 'looked'
      }
    }
    return true
  }

  /** False: there is no room for all of them. */
  #takeKeys(bytes: Uint8Array): boolean {
    for (const scan = this.#scan.start(bytes); scan.next(); ) {
      if (scan.last >= this.#start && !scan.control && !this.#isAborted(scan)) {
        if (!this.#takeKeysOf(bytes, scan)) return false
      }
      this.#mapEnd = scan.last + 1
    }
    return true
  }

  #takeKeysOf(bytes: Uint8Array, batch: BatchScan): boolean {
    const filter = this.#filter
    try {
      // To its end first: of a batch that cannot be read no record counts as the newest of its key.
      for (const records = filter.open(bytes, batch); records.next(); );
    } catch (error) {
      odradekError(error)
      return true
    }
    const map = this.#map
    const fits = map.fits(batch.count, filter.records.length)
    // A pass takes one batch at least, or there would be no end.
    if (!fits && this.#mapEnd > this.#mapFrom) return false
    for (const records = filter.again(); records.next(); ) {
      const { keyStart, keyEnd, offsetDelta } = records
      if (keyEnd >= 0) map.set(filter.records, keyStart, keyEnd, batch.base + offsetDelta)
    }
    return true
  }

  #isAborted({ transactional, producerId, base }: BatchScan): boolean {
    if (!transactional) return false
    const list = this.#aborted.get(producerId) ?? []
    let low = 0
    let high = list.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((list[middle] as Abortion).marker > base) high = middle
      else low = middle + 1
    }
    return (list[low]?.first ?? Number.POSITIVE_INFINITY) <= base
  }

  // ── rewriting ─────────────────────────────────────────────────────────────────────────────────

  async *#rewrite(): AsyncGenerator<Slice, boolean> {
    const sources = this.#sources.filter(({ base }) => base < this.#mapEnd)
    const generation = 1 + sources.reduce((newest, each) => Math.max(newest, each.generation), 0)
    for (let rest = sources; rest.length > 0; ) {
      const taken = yield* this.#rewriteGroup(rest, generation)
      if (taken === 0) return false
      yield 'replaced'
      rest = rest.slice(taken)
    }
    return true
  }

  /** Makes one segment of the first ones; answers of how many, 0 where they are gone. */
  async *#rewriteGroup(sources: readonly Segment[], generation: number): AsyncGenerator<Slice, number> {
    const { segments } = this.#log
    const [first] = sources as readonly [Segment]
    const output = new Rewriter(await segments.begin(first.base, generation))
    let [count, changed, placed] = [0, false, false]
    try {
      do {
        const source = sources[count++] as Segment
        for (let at = source.base; at < source.next; ) {
          const read = await this.#read(source, at)
          if (read === undefined) return 0
          if (this.#takeRecords(read.bytes, output)) changed = true
          at = read.next
          await output.write()
          yield 'looked'
        }
      } while (output.sizeBytes + (sources[count]?.sizeBytes ?? Infinity) <= this.#options.segmentBytes)
      if (count === 1 && !changed) return 1
      const group = sources.slice(0, count) as unknown as readonly [Segment, ...Segment[]]
      await output.finish((group.at(-1) as Segment).next)
      const replacement = { sources: group, by: output.segment, start: this.#start, gone: this.#gone }
      this.#gone = new Set()
      placed = await this.#log.replace(replacement)
      return placed ? count : 0
    } finally {
      if (!placed) await output.segment.remove()
    }
  }

  /** Whether anything of it is left out, or was changed. */
  #takeRecords(bytes: Uint8Array, output: Rewriter): boolean {
    let changed = false
    for (const scan = this.#scan.start(bytes); scan.next(); ) {
      const kept = this.#kept(bytes, scan)
      changed ||= kept?.buffer !== bytes.buffer
      if (kept === null) continue
      output.add(kept)
      const attributes = readInt16(kept, ATTRIBUTES_AT)
      if ((attributes & DELETE_HORIZON) === 0) continue
      this.#horizon = Math.max(this.#horizon, readInt64(kept, BASE_TIMESTAMP_AT))
    }
    return changed
  }

  /** What stays of a batch. */
  #kept(bytes: Uint8Array, batch: BatchScan): Uint8Array | null {
    if (batch.last < this.#start) return null
    const whole = bytes.subarray(batch.position, batch.position + batch.sizeBytes)
    if (batch.control) return this.#keptMarker(bytes, batch, whole)
    if (this.#isAborted(batch)) return null
    const kept = this.#keptRecords(bytes, batch, whole)
    if (kept !== null && batch.transactional) this.#withRecords.add(batch.producerId)
    return kept
  }

  #keptRecords(bytes: Uint8Array, batch: BatchScan, whole: Uint8Array): Uint8Array | null {
    const filter = this.#filter
    const isOver = this.#isOver(batch) && !this.#unread
    try {
      for (const records = filter.open(bytes, batch); records.next(); ) {
        const { keyStart, keyEnd, offsetDelta } = records
        if (keyEnd >= 0) {
          if (isOver && records.isTombstone) continue
          if (this.#map.get(filter.records, keyStart, keyEnd) > batch.base + offsetDelta) continue
        }
        filter.keep()
      }
      if (filter.count === 0) return null
      const begins = filter.tombstones > 0 && !batch.deleteHorizon && this.#hasKeysOf(batch) && !this.#unread
      return filter.finish(begins ? this.#log.horizonFrom(this.#now) : undefined)
    } catch (error) {
      odradekError(error)
      this.#unread = true
      return whole
    }
  }

  #keptMarker(bytes: Uint8Array, batch: BatchScan, whole: Uint8Array): Uint8Array | null {
    const marker = decodeMarker(bytes, batch.position)
    if (marker === null || this.#withRecords.delete(batch.producerId)) return whole
    if (this.#isOver(batch)) {
      if (!marker.commit) this.#gone.add(batch.base)
      return null
    }
    const horizon = this.#log.horizonFrom(this.#now)
    if (batch.deleteHorizon || horizon === undefined) return whole
    for (const records = this.#filter.open(bytes, batch); records.next(); ) this.#filter.keep()
    return this.#filter.finish(horizon)
  }

  /** Whether its tombstones, or its marker, have had their time. */
  #isOver({ deleteHorizon, baseTimestamp }: BatchScan): boolean {
    return deleteHorizon && baseTimestamp <= this.#now
  }

  #hasKeysOf({ base, last }: BatchScan): boolean {
    return base >= this.#mapFrom && last < this.#mapEnd
  }
}
