/**
 * One file of a log: batches end to end, and a footer when nothing more will come (segment-footer.ts). The last segment
 * of a log is the active one, which is written to; the others are sealed.
 *
 *   <base offset>.log     │ batch │ batch │ batch │ batch │ footer │
 *                         0                       sizeBytes
 *   <base offset>.index   a cache of where batches begin (segment-index.ts)
 *
 * - What the file holds is known from without, from the checkpoint or because this process wrote it: size, offsets, and
 *   the CRC of all batches. Bytes beyond count as absent.
 * - Nothing is read out that was not checked on the way: each batch by its own CRC, and against the index, which says
 *   exactly what the CRC leaves out. An index is believed when it was made of these very bytes, else made again.
 * - A write that failed changes nothing that is known, and is done again at the same place.
 */
import { type OdradekError, odradekError } from '../../model/errors.ts'
import { BufferPool } from '../format/buffer-pool.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { crc32cOfBatches } from '../format/crc32c-joined.ts'
import { readInt64 } from '../format/integers.ts'
import { HEADER_BYTES, MAX_TIMESTAMP_AT } from '../format/layout.ts'
import type { BatchScan } from '../format/scan.ts'
import type { StoredSegment } from './checkpoint.ts'
import { DamagedFile } from './damage.ts'
import type { FilePool } from './file-pool.ts'
import type { FileSystem } from './fs.ts'
import { IndexFile } from './index-file.ts'
import { BatchChain } from './segment-chain.ts'
import { encodeFooter } from './segment-footer.ts'
import { type Extract, type SavedIndex, SegmentIndex } from './segment-index.ts'
import { indexPath, segmentPath } from './segment-paths.ts'
import { Survey } from './segment-survey.ts'
import { Slab } from './slab.ts'

const MiB = 1024 * 1024
/** What a segment has to have grown by for its index to be saved. */
const SAVE_INDEX_BYTES = MiB
const NOTHING = new Uint8Array(0)
/** Of memory that is new each time. */
const NO_POOL = new BufferPool(0)

/** Where a log's segments are, and what they are handled with. */
export interface SegmentPlace {
  readonly fs: FileSystem
  readonly pool: FilePool
  readonly crc32c: Crc32c
  readonly directory: string
}

/** What a segment is from the beginning, and is called. */
export type SegmentKind = Pick<StoredSegment, 'compacted' | 'generation'>

/** Whole batches, checked. Offsets from `base` to `next` have no others. */
export interface SegmentRead {
  readonly bytes: Uint8Array
  readonly base: number
  readonly next: number
  /** What the bytes are a part of, held for whoever reads. Who just drops it leaves it to the collector. */
  readonly slab: Slab | null
}

/** What a write will add to a segment. */
export class Growth {
  readonly segment: Segment
  /** Batches, in a row. */
  readonly pieces: Uint8Array[] = []
  readonly entries: SegmentIndex = new SegmentIndex()
  sizeBytes = 0
  next: number
  maxTimestamp: number
  firstTimestamp = -1

  constructor(segment: Segment) {
    this.segment = segment
    this.next = segment.next
    this.maxTimestamp = segment.maxTimestamp
  }

  add(batch: BatchScan): void {
    const position = this.segment.sizeBytes + this.sizeBytes
    if (this.segment.isDue(position, batch.leaderEpoch, batch.base !== this.next, this.entries)) {
      this.entries.add(batch.base, position, this.maxTimestamp, batch.leaderEpoch)
    }
    if (this.sizeBytes === 0) this.firstTimestamp = batch.maxTimestamp
    if (!batch.control) this.maxTimestamp = Math.max(this.maxTimestamp, batch.maxTimestamp)
    this.sizeBytes += batch.sizeBytes
    this.next = batch.last + 1
  }
}

export class Segment implements StoredSegment {
  readonly base: number
  readonly compacted: boolean
  readonly generation: number
  next: number
  sizeBytes = 0
  maxTimestamp = -1
  crc = 0
  sealed = false
  /** Of its first batch; undefined where that was written by a former process and nobody looked. */
  firstTimestamp: number | undefined

  readonly path: string
  readonly #place: SegmentPlace
  readonly #indexFile: IndexFile
  /** Of what this process wrote, which can be read by that alone, and of all when `#unindexed` is null. */
  #index = new SegmentIndex()
  #unindexed: Extract | null = null
  #loading: Promise<void> | null = null
  /** Found damaged: that does not heal, and looking again costs as much. */
  #damage: OdradekError | null = null
  /** Something may be in the file behind what is known. */
  #torn = false
  #dirty = false

  /** `known`: what is in its file; nothing if that is to be created. */
  constructor(place: SegmentPlace, base: number, kind: SegmentKind, known?: StoredSegment) {
    this.#place = place
    this.base = base
    this.next = base
    this.compacted = kind.compacted ?? false
    this.generation = kind.generation ?? 0
    this.path = segmentPath(place.directory, base, kind.generation)
    this.#indexFile = new IndexFile(indexPath(place.directory, base, kind.generation), base, place)
    if (known === undefined) return
    const { next, sizeBytes, maxTimestamp, crc, sealed } = known
    Object.assign(this, { next, sizeBytes, maxTimestamp, crc, sealed })
    this.#unindexed = { next, sizeBytes, maxTimestamp, crc }
    this.#indexFile.coveredBytes = sizeBytes
  }

  stored(): StoredSegment {
    const { base, next, sizeBytes, maxTimestamp, crc, sealed, compacted, generation } = this
    const known = { base, next, sizeBytes, maxTimestamp, crc, sealed }
    return { ...known, ...(compacted ? { compacted } : {}), ...(generation > 0 ? { generation } : {}) }
  }

  // ── writing ───────────────────────────────────────────────────────────────────────────────────

  /** Its name is not safe yet: the directory must be synced. */
  async create(): Promise<void> {
    const { fs, pool } = this.#place
    await pool.forget(this.path)
    await fs.remove(this.path)
    const file = await fs.open(this.path, 'create')
    await file.close()
  }

  /** Cuts off what nothing is known of. @throws OdradekError CORRUPT_LOG where something is missing */
  async cut(): Promise<void> {
    const { sizeBytes, path } = this
    await this.#place.pool.use(path, 'write', async (file) => {
      const found = await file.size()
      if (found < sizeBytes)
        throw new DamagedFile(path, { position: found, what: `it ends here, and not at ${sizeBytes}` })
      if (found > sizeBytes) await file.truncate(sizeBytes)
    })
  }

  /** Whether a batch at `position` deserves an entry, after those that come with it. */
  isDue(position: number, epoch: number, gap: boolean, entries: SegmentIndex): boolean {
    return entries.isDue(position, epoch, gap, this.#index)
  }

  /** Adds batches. */
  async write(growth: Growth): Promise<void> {
    const { pieces } = growth
    const torn = this.#torn
    this.#torn = true
    await this.#place.pool.use(this.path, 'write', (file) => file.writeAll(pieces, this.sizeBytes))
    this.#torn = torn
    if (this.sizeBytes === 0) this.firstTimestamp = growth.firstTimestamp
    for (const piece of pieces) this.crc = crc32cOfBatches(piece, this.crc, this.#place.crc32c)
    this.sizeBytes += growth.sizeBytes
    this.next = growth.next
    this.maxTimestamp = growth.maxTimestamp
    this.#index.addAll(growth.entries)
    this.#dirty = true
  }

  /** Writes the footer: nothing more will come up to `next`, which lies behind the last batch where offsets are missing. */
  async seal(next: number = this.next): Promise<void> {
    const { sizeBytes } = this
    const footer = encodeFooter({ ...this.stored(), compacted: this.compacted, next }, this.#place.crc32c)
    await this.#place.pool.use(this.path, 'write', async (file) => {
      if (this.#torn) await file.truncate(sizeBytes)
      this.#torn = true
      await file.write(footer, sizeBytes)
    })
    this.next = next
    this.sealed = true
    this.#dirty = true
  }

  /** The same, and it is on the disk, with its name. */
  async finish(next: number): Promise<void> {
    await this.seal(next)
    await this.sync()
    await this.saveIndex()
    await this.#place.fs.syncDirectory(this.#place.directory)
  }

  /** Whether something was written since it was synced. */
  get dirty(): boolean {
    return this.#dirty
  }

  async sync(): Promise<void> {
    this.#dirty = false
    try {
      await this.#place.pool.use(this.path, 'write', (file) => file.sync())
    } catch (error) {
      this.#dirty = true
      throw error
    }
  }

  /** Index first: without a segment nobody would know what it is. */
  async remove(): Promise<void> {
    const { fs, pool } = this.#place
    await this.#indexFile.remove()
    await pool.forget(this.path)
    await fs.remove(this.path)
  }

  /** Reads `firstTimestamp` where it is not known. Nothing depends on it but when the segment ends. */
  async lookAtFirst(): Promise<void> {
    if (this.firstTimestamp !== undefined || this.sizeBytes === 0) return
    const header = new Uint8Array(HEADER_BYTES)
    await this.#place.pool.use(this.path, 'read', (file) => file.read(header, 0))
    this.firstTimestamp = readInt64(header, MAX_TIMESTAMP_AT)
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Whole batches from the one that holds `offset` or follows it: one, and `maxBytes` with the others. Fewer where the
   * next one is damaged; none where offsets are missing up to `next`. `pool`: where the memory for them comes from.
   * @throws OdradekError CORRUPT_LOG where the first of them is damaged, or lies behind damage up to the next entry of
   * the index, so that nothing says which offset it has
   */
  async read(offset: number, maxBytes: number, pool: BufferPool = NO_POOL): Promise<SegmentRead> {
    const index =
      offset >= (this.#index.offsets[0] ?? Number.POSITIVE_INFINITY) ? this.#index : await this.index()
    const { sizeBytes, next } = this
    if (sizeBytes === 0) return { bytes: NOTHING, base: offset, next, slab: null }
    const first = index.at(offset)
    const from = index.positions[first] as number
    let last = first + 1
    while (last < index.length && (index.positions[last + 1] ?? sizeBytes) - from <= maxBytes) last++
    const wantedBytes = (index.positions[last] ?? sizeBytes) - from
    const slab = new Slab(pool, wantedBytes)
    const bytes = slab.bytes.subarray(0, wantedBytes)
    const length = await this.#place.pool.use(this.path, 'read', (file) => file.read(bytes, from))
    const chain = new BatchChain(this.#place.crc32c, false)
    chain.begin(bytes, length, from)
    const found = collect(chain, index, first, offset, maxBytes)
    if (found.end === found.begin) this.#throwDamage(chain, length < bytes.length)
    const all = chain.batch.end === 'end' && length === bytes.length
    return {
      bytes: bytes.subarray(found.begin, found.end),
      base: Math.min(offset, found.base),
      next: all ? (index.offsets[last] ?? next) : found.next,
      slab,
    }
  }

  /** Nothing was found: because of that, or because offsets are missing. */
  #throwDamage(chain: BatchChain, short: boolean): void {
    if (chain.damage === null && chain.batch.end === 'end' && !short) return
    chain.fail(short ? 'the file ends before the batch does' : 'the batch reaches into the next one')
    if (chain.damage !== null) throw new DamagedFile(this.path, chain.damage)
  }

  /** An offset of a batch in front of which all is older than `timestamp`. */
  async before(timestamp: number): Promise<number> {
    const index = await this.index()
    return index.offsets[index.before(timestamp)] ?? this.base
  }

  // ── the index ─────────────────────────────────────────────────────────────────────────────────

  /** All of it. @throws OdradekError CORRUPT_LOG where it has to be made, and cannot */
  async index(): Promise<SegmentIndex> {
    while (this.#unindexed !== null) {
      if (this.#damage !== null) throw this.#damage
      this.#loading ??= this.#load(this.#unindexed).finally(() => {
        this.#loading = null
      })
      await this.#loading
    }
    return this.#index
  }

  /** Gives its memory back, of a sealed segment. */
  forgetIndex(): void {
    if (this.#unindexed !== null) return
    this.#index = new SegmentIndex()
    const { next, sizeBytes, maxTimestamp, crc } = this
    this.#unindexed = { next, sizeBytes, maxTimestamp, crc }
  }

  /** From the file beside the segment as far as it goes, and from there on from the segment itself. */
  async #load(known: Extract): Promise<void> {
    let saved = await this.#indexFile.read()
    let survey = await this.#survey(known, saved)
    if (saved !== undefined && survey.differsFrom(known) !== null) {
      saved = undefined
      survey = await this.#survey(known)
    }
    const damage = survey.differsFrom(known)
    if (damage !== null) {
      this.#damage = new DamagedFile(this.path, damage)
      throw this.#damage
    }
    survey.index.addAll(this.#index)
    this.#index = survey.index
    this.#unindexed = null
    this.#indexFile.coveredBytes = saved?.of.sizeBytes ?? 0
    if (this.sealed && this.#indexFile.coveredBytes < this.sizeBytes)
      await this.#indexFile.write(this.#index, this)
  }

  async #survey(known: Extract, saved?: SavedIndex): Promise<Survey> {
    const { pool, crc32c } = this.#place
    const survey = new Survey(this, crc32c, saved)
    if (survey.sizeBytes < known.sizeBytes) {
      await pool.use(this.path, 'read', (file) => survey.goOn(file, known.sizeBytes))
    }
    return survey
  }

  /** Writes the index beside the segment, if that has grown by `grownBytes` since. */
  async saveIndex(grownBytes: number = 1): Promise<void> {
    if (this.sizeBytes - this.#indexFile.coveredBytes < grownBytes) return
    try {
      await this.index()
    } catch (error) {
      // Old damage is for those who read it; what is new must not wait for that.
      odradekError(error)
      return
    }
    await this.#indexFile.write(this.#index, this)
  }

  /** The same when it has grown by a part, so that after a crash little has to be read again, at a bounded cost. */
  saveIndexNowAndThen(): Promise<void> {
    return this.saveIndex(Math.max(SAVE_INDEX_BYTES, this.#indexFile.coveredBytes / 4))
  }
}

interface Collected {
  readonly begin: number
  readonly end: number
  readonly base: number
  readonly next: number
}

/** Walks batches from the entry `first` on: those from the one that holds `offset` on, up to `maxBytes`. */
function collect(
  chain: BatchChain,
  index: SegmentIndex,
  first: number,
  offset: number,
  maxBytes: number,
): Collected {
  const { batch } = chain
  let [begin, end, base, next] = [0, 0, offset, offset]
  let entry = first
  chain.next = index.offsets[entry] as number
  while (chain.step()) {
    if (batch.leaderEpoch !== index.epochs[entry]) {
      chain.fail(`leader epoch ${batch.leaderEpoch} where ${index.epochs[entry]} should be`)
      break
    }
    const { position, sizeBytes } = batch
    if (chain.position + sizeBytes === index.positions[entry + 1]) {
      chain.next = index.offsets[++entry] as number
    }
    if (batch.last < offset) continue
    if (end > begin && position + sizeBytes - begin > maxBytes) break
    if (end === begin) {
      begin = position
      base = batch.base
    }
    end = position + sizeBytes
    next = batch.last + 1
  }
  return { begin, end, base, next }
}
