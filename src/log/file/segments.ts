/**
 * The disk part of one log: a directory of segments in the order of their offsets, the last of which may be active.
 *
 *   logs/<topic id>-<partition>/   │ sealed │ sealed │ sealed │ active ▸
 *                                  base     next = base ...   next
 *
 * - Appends are serial, and behind the journal: what is not synced yet, names of new files included, is in the journal
 *   too. `sync` makes it last, and only then a checkpoint tells of it. So files that the checkpoint does not know, and
 *   bytes beyond what it knows, are nobody's, and `restore` removes them.
 * - Reads go to any part at any time, and check what they read (segment.ts).
 * - Sealed segments may be replaced by one that leaves out some of their records (compaction.ts). Their files stay until
 *   a checkpoint tells of the new one: a crash before finds all of them, and comes back to the old ones.
 */
import { assert, OdradekError } from '../../model/errors.ts'
import type { BufferPool } from '../format/buffer-pool.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import type { StoredSegment } from './checkpoint.ts'
import type { FilePool } from './file-pool.ts'
import { parentOf } from './fs.ts'
import { Growth, Segment, type SegmentPlace, type SegmentRead } from './segment.ts'
import { directoryOf } from './segment-paths.ts'
import { planSegments, type SegmentPlan, type SegmentPlanOptions } from './segment-plan.ts'

const KiB = 1024
/** What is read ahead if nothing is said. */
const READ_BYTES = 256 * KiB
/** Indexes of sealed segments that are kept in memory. */
const MAX_INDEXES = 4
/** A log that is compacted ends its segments early, but not before they are this large. */
const MIN_ROLL_BYTES = 1024 * KiB

export interface SegmentsOptions extends SegmentPlanOptions {
  readonly pool: FilePool
  readonly crc32c: Crc32c
  /** What a segment holds at most, unless a single batch is larger. */
  readonly segmentBytes: number
}

/** What is known of a segment without reading it. */
export type SegmentInfo = Readonly<StoredSegment>

export class Segments {
  readonly #options: SegmentsOptions
  readonly #place: SegmentPlace
  readonly #list: Segment[]
  #next: number
  readonly #scan = new BatchScan()
  #appending = false
  #hasDirectory: boolean
  /** Directories with names that a power loss would take away. */
  readonly #unsafe = new Set<string>()
  /** Sealed segments with an index in memory, the last used last. */
  #indexed: Segment[] = []
  /** What the active segment may hold: `segmentBytes`, or less. */
  #rollBytes: number
  #rollAgeMs = Number.POSITIVE_INFINITY
  #rollsEarly = false
  /** Replaced, with files that the newest checkpoint may tell of. */
  readonly #replaced = new Set<Segment>()

  private constructor(options: SegmentsOptions, place: SegmentPlace, list: Segment[], next: number) {
    this.#options = options
    this.#place = place
    this.#list = list
    this.#next = next
    // What a checkpoint tells of is there. Other names may have been made by a process that was killed before a sync.
    this.#hasDirectory = list.length > 0
    this.#rollBytes = options.segmentBytes
  }

  /**
   * The segments that a checkpoint knows, as it knows them: the active one is cut to its size, a footer included, and
   * other files are removed. Those below `start` may be missing. Sealed ones are looked at when they are read.
   * @throws OdradekError CORRUPT_LOG where one is missing above it, or the active one is too short
   */
  static async restore(
    options: SegmentsOptions,
    stored: readonly StoredSegment[],
    plan?: SegmentPlan,
  ): Promise<Segments> {
    const place = placeOf(options)
    const { kept, next, remove, cut, replaced } = plan ?? (await planSegments(options, stored))
    for (const path of remove) await place.fs.remove(path)
    const list = kept.map((each) => new Segment(place, each.base, each, each))
    if (cut !== null) await list.at(-1)?.cut()
    const segments = new Segments(options, place, list, next)
    for (const each of replaced) segments.#replaced.add(new Segment(place, each.base, each, each))
    return segments
  }

  /** Removes the files of a log, and its directory. Harmless when they are gone. */
  static async remove(options: SegmentsOptions): Promise<void> {
    const { fs, pool, directory } = placeOf(options)
    for (const name of await fs.list(directory)) {
      await pool.forget(`${directory}/${name}`)
      await fs.remove(`${directory}/${name}`)
    }
    await fs.removeDirectory(directory)
    // Neither may be there, where the power failed before anything of a log was synced.
    if (await fs.exists(parentOf(directory))) await fs.syncDirectory(parentOf(directory))
  }

  /** In the order of offsets. */
  get list(): readonly SegmentInfo[] {
    return this.#list
  }

  /** Offset after the last batch. */
  get next(): number {
    return this.#next
  }

  stored(): StoredSegment[] {
    // One that was only created may as well never have been.
    const known = this.#list.filter(({ sizeBytes, sealed }) => sizeBytes > 0 || sealed)
    return known.map((segment) => segment.stored())
  }

  // ── writing ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Adds whole batches with offsets from `base` to `next`, pieces of them in a row, one call at a time. After a failure the
   * same batches, and what follows them, may be given again: those that are in already are passed by.
   * @throws OdradekError STORAGE_FULL, STORAGE_ERROR
   */
  async append(
    pieces: readonly Uint8Array[],
    { base, next }: { readonly base: number; readonly next: number },
  ): Promise<void> {
    assert(!this.#appending, 'one append at a time')
    assert(base <= this.#next, `batches from ${base} on follow ${this.#next}`)
    this.#appending = true
    try {
      await this.#append(pieces)
    } finally {
      this.#appending = false
    }
    assert(this.#next === next, `batches end at ${this.#next}, not ${next}`)
  }

  /** What goes into one segment is written at once. */
  async #append(pieces: readonly Uint8Array[]): Promise<void> {
    const scan = this.#scan
    let growth: Growth | undefined
    for (const piece of pieces) {
      scan.start(piece)
      let more = scan.next()
      while (more && scan.base < this.#next) more = scan.next()
      while (more) {
        if (growth !== undefined && this.#isFull(growth.segment, growth, scan)) {
          await this.#write(growth)
          growth = undefined
        }
        growth ??= new Growth(await this.#segmentFor(scan))
        const from = scan.position
        while (more && !this.#isFull(growth.segment, growth, scan)) {
          assert(scan.base === growth.next, `a batch at ${scan.base} follows ${growth.next}`)
          growth.add(scan)
          more = scan.next()
        }
        growth.pieces.push(piece.subarray(from, scan.position))
      }
      assert(scan.end === 'end', 'batches are whole')
    }
    if (growth !== undefined) await this.#write(growth)
  }

  async #write(growth: Growth): Promise<void> {
    await growth.segment.write(growth)
    this.#next = growth.segment.next
  }

  /** The active segment if the batch fits into it, else a new one. */
  async #segmentFor(batch: BatchScan): Promise<Segment> {
    const active = this.#list.at(-1)
    if (active !== undefined && !active.sealed) {
      if (this.#rollsEarly) await active.lookAtFirst()
      if (!this.#isFull(active, new Growth(active), batch)) return active
      await this.#seal(active)
    }
    const { directory, fs } = this.#place
    // Once a name is there, and not before: a sync that is under way may have looked for it already.
    if (!this.#hasDirectory) {
      await fs.makeDirectory(directory)
      this.#unsafe.add(parentOf(directory)).add('')
      this.#hasDirectory = true
    }
    const segment = new Segment(this.#place, this.#next, {})
    await segment.create()
    this.#unsafe.add(directory)
    this.#list.push(segment)
    return segment
  }

  #isFull(segment: Segment, growth: Growth, batch: BatchScan): boolean {
    const sizeBytes = segment.sizeBytes + growth.sizeBytes
    if (sizeBytes === 0) return false
    const first = segment.firstTimestamp ?? growth.firstTimestamp
    const ageMs = first < 0 ? 0 : batch.maxTimestamp - first
    return sizeBytes + batch.sizeBytes > this.#rollBytes || ageMs > this.#rollAgeMs
  }

  async #seal(segment: Segment): Promise<void> {
    await segment.seal()
    await segment.saveIndex()
    this.#used(segment)
    this.#setRollBytes()
  }

  /**
   * From now on the log is to be compacted, and what is active never is: a segment ends when it is as large as all before
   * it, or its first batch is older than a new one by `ageMs`.
   */
  rollEarly(ageMs: number): void {
    this.#rollsEarly = true
    this.#rollAgeMs = ageMs
    this.#setRollBytes()
  }

  #setRollBytes(): void {
    if (!this.#rollsEarly) return
    let sealedBytes = 0
    for (const { sealed, sizeBytes } of this.#list) if (sealed) sealedBytes += sizeBytes
    this.#rollBytes = Math.min(this.#options.segmentBytes, Math.max(MIN_ROLL_BYTES, sealedBytes))
  }

  /**
   * Resolves when what was appended before, and the names of its files, are on the disk.
   * @throws OdradekError STORAGE_FULL, STORAGE_ERROR: then nothing is known of what was appended since the sync before.
   */
  async sync(): Promise<void> {
    // A checkpoint that is on its way may tell of what was replaced since.
    const dirty = [...this.#replaced, ...this.#list].filter((segment) => segment.dirty)
    for (const segment of dirty) {
      try {
        await segment.sync()
      } catch (error) {
        // One that was removed meanwhile needs no sync.
        if (this.#list.includes(segment) || this.#replaced.has(segment)) throw error
      }
    }
    for (const directory of [...this.#unsafe]) {
      this.#unsafe.delete(directory)
      try {
        await this.#place.fs.syncDirectory(directory)
      } catch (error) {
        this.#unsafe.add(directory)
        throw error
      }
    }
    await dirty.at(-1)?.saveIndexNowAndThen()
  }

  /** Removes whole segments that end at or below `offset`, never the active one. */
  async removeBelow(offset: number): Promise<void> {
    for (;;) {
      const [first] = this.#list
      if (first === undefined || !first.sealed || first.next > offset) return
      await first.remove()
      if (this.#list[0] === first) this.#list.shift()
      this.#indexed = this.#indexed.filter((each) => each !== first)
    }
  }

  // ── compaction ────────────────────────────────────────────────────────────────────────────────

  /** Segments from the first one on that may be replaced: sealed, below `bound`, and not the last one. */
  sealedBelow(bound: number): readonly Segment[] {
    const end = this.#list.findIndex(({ sealed, next }) => !sealed || next > bound)
    return this.#list.slice(0, end < 0 ? this.#list.length - 1 : end)
  }

  /** One that may take the place of others when it is finished; `generation` is one that none of them has. */
  async begin(base: number, generation: number): Promise<Segment> {
    const segment = new Segment(this.#place, base, { compacted: true, generation })
    await segment.create()
    return segment
  }

  /** Puts a finished one in the place of `sources`, if they are there. */
  replace(sources: readonly [Segment, ...Segment[]], by: Segment): boolean {
    const first = this.#list.indexOf(sources[0])
    if (first < 0) return false
    this.#list.splice(first, sources.length, by)
    for (const each of sources) this.#replaced.add(each)
    this.#indexed = this.#indexed.filter((each) => !this.#replaced.has(each))
    this.#setRollBytes()
    return true
  }

  /** Those whose files are there only because a checkpoint may tell of them. */
  get replaced(): readonly Segment[] {
    return [...this.#replaced]
  }

  get replacedBytes(): number {
    let replacedBytes = 0
    for (const { sizeBytes } of this.#replaced) replacedBytes += sizeBytes
    return replacedBytes
  }

  /** Removes what no checkpoint tells of any more. */
  async removeReplaced(segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) {
      if (!this.#replaced.has(segment)) continue
      await segment.remove()
      this.#replaced.delete(segment)
    }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Whole batches from the one that holds `offset`, or the first after it: at least one, and no more than `maxBytes` with
   * the others, as many as are sound. None only where all offsets from `offset` to the end are missing.
   * @throws OdradekError CORRUPT_LOG, which names file and position; OFFSET_OUT_OF_RANGE when it was removed meanwhile
   */
  async read(offset: number, maxBytes: number = READ_BYTES, pool?: BufferPool): Promise<SegmentRead> {
    assert(offset < this.#next, `offset ${offset} is below ${this.#next}`)
    for (let at = offset; ; ) {
      const segment = this.#list[this.#indexOf(at)] as Segment
      if (segment.sealed) this.#used(segment)
      const read = await this.#whileThere(segment, at, segment.read(at, maxBytes, pool))
      if (read === undefined) continue
      if (read.bytes.length > 0 || read.next >= this.#next)
        return at === offset ? read : { ...read, base: offset }
      read.slab?.release()
      at = read.next
    }
  }

  /** An offset below which all is older than `timestamp`, to go on from; undefined when all is. */
  async seekTime(timestamp: number): Promise<number | undefined> {
    for (;;) {
      const segment = this.#list.find(({ maxTimestamp }) => maxTimestamp >= timestamp)
      if (segment === undefined) return undefined
      if (segment.sealed) this.#used(segment)
      const found = await this.#whileThere(segment, segment.base, segment.before(timestamp))
      if (found !== undefined) return found
    }
  }

  /** What was read at `offset`; undefined where another segment has taken the place of that one. */
  async #whileThere<T>(segment: Segment, offset: number, read: Promise<T>): Promise<T | undefined> {
    try {
      return await read
    } catch (error) {
      if (this.#list.includes(segment)) throw error
      if (offset >= (this.#list[0]?.base ?? this.#next)) return undefined
      throw new OdradekError('OFFSET_OUT_OF_RANGE', `${segment.path} was removed while it was read`, {
        cause: error,
      })
    }
  }

  /** Keeps the indexes of the segments that were used last. */
  #used(segment: Segment): void {
    if (this.#indexed.at(-1) === segment) return
    this.#indexed = [...this.#indexed.filter((each) => each !== segment), segment]
    if (this.#indexed.length > MAX_INDEXES) this.#indexed.shift()?.forgetIndex()
  }

  /** The segment that holds `offset`, or the first one after it. */
  #indexOf(offset: number): number {
    let low = 0
    let high = this.#list.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#list[middle] as Segment).next > offset) high = middle
      else low = middle + 1
    }
    return low
  }
}

function placeOf({ fs, pool, crc32c, log }: SegmentsOptions): SegmentPlace {
  return { fs, pool, crc32c, directory: directoryOf(log) }
}
