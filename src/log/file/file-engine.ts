/**
 * The engine whose logs are files in one directory, which it owns while it is open.
 *
 *   FileLog ─┐                 ┌─► Journal
 *   FileLog ─┼─► Committer ────┤                     accepted, in groups
 *   FileMeta ┘                 └─► capture ─┐
 *      └──────► Writer ─► Segments ─────────┴─► checkpoint      behind
 *
 * Formats, and why there is a journal in front of the segments: docs/format.md, docs/decisions.
 */
import type { Clock } from '../../model/clock.ts'
import { assert, OdradekError } from '../../model/errors.ts'
import { DEFAULT_FILE_RETENTION_BYTES, MiB } from '../../model/limits.ts'
import type {
  BatchCodecs,
  Engine,
  EngineContext,
  LogSpec,
  PartitionLog,
  Refusal,
  RetentionLimits,
} from '../contract.ts'
import { BufferPool } from '../format/buffer-pool.ts'
import { noCompression } from '../format/compression.ts'
import { type Crc32c, crc32c } from '../format/crc32c.ts'
import { HEADER_BYTES } from '../format/layout.ts'
import { type Checkpoint, type StoredLog, writeCheckpoint } from './checkpoint.ts'
import type { Capture, Checkpointer } from './checkpointing.ts'
import { ChunkCache } from './chunk-cache.ts'
import { closeAll } from './close-all.ts'
import { Committer } from './committer.ts'
import { Compactor } from './compactor.ts'
import { Extent } from './extent.ts'
import { fewAtOnce } from './few-at-once.ts'
import { FileLog } from './file-log.ts'
import { FileLogs, storedOf } from './file-logs.ts'
import { FilePool } from './file-pool.ts'
import type { FileSystem } from './fs.ts'
import { type LogId, seeded } from './group.ts'
import { Journal } from './journal.ts'
import { FileMeta } from './meta.ts'
import { MAP_BYTES } from './offset-map.ts'
import { type Recovered, type RecoveredLog, recover } from './recovery.ts'
import { Resident } from './resident.ts'
import { Room } from './room.ts'
import { RowDecoder } from './row-decoder.ts'
import type { Segment } from './segment.ts'
import type { Segments, SegmentsOptions } from './segments.ts'
import { Writer } from './writer.ts'

/** Of a journal's file, what is written behind together: what is in memory for that alone. */
const BEHIND_SHARE = 16

/** Kept although nothing is in it: what leaves the cache in a moment, when much was written behind. */
const MAX_FREE_BYTES = 16 * MiB

/** What a topic keeps on disk unless it says otherwise. */
const RETENTION: RetentionLimits = {
  records: Number.POSITIVE_INFINITY,
  bytes: DEFAULT_FILE_RETENTION_BYTES,
  ageMs: Number.POSITIVE_INFINITY,
}

export interface FileEngineOptions {
  /** `fsync` (default): accepted means on the disk. `os`: accepted means written, and synced every `flushMs`. */
  readonly durability?: 'fsync' | 'os'
  /** Milliseconds, under `os`. Default 1,000. */
  readonly flushMs?: number
  /** Goes on with what is left where the directory is damaged. Default false: refuse to open. */
  readonly salvage?: boolean
  /** Bytes of each of the two journal files. Default 64 MiB. */
  readonly journalBytes?: number
  /** Bytes after which a segment ends. Default 64 MiB. */
  readonly segmentBytes?: number
  /** Bytes of batches and rows kept in memory for readers, over all logs. Default 64 MiB. */
  readonly cacheBytes?: number
}

export const FILE_DEFAULTS: Required<FileEngineOptions> = {
  durability: 'fsync',
  flushMs: 1_000,
  salvage: false,
  journalBytes: 64 * MiB,
  segmentBytes: 64 * MiB,
  cacheBytes: 64 * MiB,
}

export interface FileEngineContext extends EngineContext {
  readonly fs: FileSystem
  /** Bytes that the keys of one pass of compaction may take in memory. */
  readonly mapBytes?: number
  /** Lets go of the directory. */
  readonly release?: () => Promise<void>
  /** Told of what happens behind the publishers' backs: failures, what recovery left out. */
  readonly report?: (error: unknown, what: string) => void
}

/**
 * Opens the directory that `fs` shows, and recovers what is in it.
 * @throws OdradekError CORRUPT_LOG, STORAGE_ERROR, STORAGE_FULL
 */
export async function fileEngine(
  context: FileEngineContext,
  options: FileEngineOptions = {},
): Promise<Engine> {
  const engine = new FileEngine(context, options)
  await engine.open()
  return engine
}

/** What a checkpoint tells of besides logs. */
interface Besides {
  readonly meta: Checkpoint['meta']
  readonly deleting: readonly LogId[]
  /** Nothing follows it. */
  readonly clean?: boolean
}

class FileEngine implements Engine, Checkpointer {
  readonly scheme = 'file'
  readonly durable = true
  readonly encodes = true
  readonly compacts = true
  readonly retention = RETENTION
  readonly codecs: BatchCodecs
  readonly #fs: FileSystem
  readonly #pool: FilePool
  readonly #clock: Clock
  readonly #crc32c: Crc32c
  readonly #context: FileEngineContext
  readonly #options: Required<FileEngineOptions>
  readonly #report: (error: unknown, what: string) => void
  readonly #cache: ChunkCache
  /** Memory of batches, for those that come. */
  readonly #memory = new BufferPool(MAX_FREE_BYTES)
  readonly #writer: Writer
  readonly #compactor: Compactor
  #seed = 0
  #committer: Committer | undefined
  #meta: FileMeta | undefined
  #logs: FileLogs | undefined
  #closing: Promise<void> | undefined

  constructor(context: FileEngineContext, options: FileEngineOptions) {
    this.#pool = new FilePool(context.fs)
    this.#fs = this.#pool.fs
    this.#clock = context.clock
    this.#crc32c = context.crc32c ?? crc32c
    this.#context = context
    this.codecs = context
    this.#options = { ...FILE_DEFAULTS, ...options }
    this.#report = context.report ?? (() => {})
    this.#cache = new ChunkCache(this.#options.cacheBytes)
    this.#writer = new Writer(this.#clock, this.#options.journalBytes / BEHIND_SHARE, {
      failed: (error) => this.#notWritten(error),
      recovered: () => this.#open.storageFreed(),
    })
    this.#compactor = new Compactor({
      clock: this.#clock,
      crc32c: this.#crc32c,
      compression: context.compression ?? noCompression,
      segmentBytes: this.#options.segmentBytes,
      mapBytes: context.mapBytes ?? MAP_BYTES,
      report: this.#report,
      mustWait: () => this.#mustWaitForCheckpoint(),
    })
  }

  get meta(): FileMeta {
    assert(this.#meta !== undefined, 'the engine is open')
    return this.#meta
  }

  async open(): Promise<void> {
    try {
      await this.#recover()
    } catch (error) {
      await this.#pool.close()
      throw error
    }
  }

  async #recover(): Promise<void> {
    const recovered = await recover({
      fs: this.#fs,
      pool: this.#pool,
      crc32c: this.#crc32c,
      segmentBytes: this.#options.segmentBytes,
      salvage: this.#options.salvage,
    })
    for (const finding of recovered.findings) this.#report(undefined, finding)
    this.#seed = recovered.seed
    const firstSequence = recovered.sequence + 1
    const meta = [...recovered.meta]
    const { deleting } = recovered
    await this.#checkpoint(recovered.sequence, storedOf(recovered.logs.values()), { meta, deleting })
    for (const { segments } of recovered.logs.values()) {
      await this.#removeReplaced(segments, segments.replaced)
    }
    const journal = await Journal.create(this.#fs, {
      fileBytes: this.#options.journalBytes,
      firstSequence,
    })
    this.#committer = new Committer(journal, this.#clock, seeded(this.#crc32c, this.#seed), this, {
      durability: this.#options.durability,
      flushMs: this.#options.flushMs,
      firstSequence,
      report: this.#report,
    })
    this.#meta = new FileMeta(recovered.meta, this.#committer)
    this.#logs = this.#logsOf(this.#committer, recovered)
    await this.#logs.removeDeleted()
  }

  #logsOf(committer: Committer, { logs, deleting }: Recovered): FileLogs {
    const options = {
      committer,
      compactor: this.#compactor,
      writer: this.#writer,
      segmentsOf: (log: LogId) => this.#segmentsOf(log),
      make: (spec: LogSpec, recovered: RecoveredLog) => this.#log(spec, recovered),
      report: this.#report,
    }
    return new FileLogs(options, logs, deleting)
  }

  get #table(): FileLogs {
    assert(this.#logs !== undefined, 'the engine is open')
    return this.#logs
  }

  get #open(): Committer {
    assert(this.#committer !== undefined, 'the engine is open')
    return this.#committer
  }

  /** It is in the journal, and tried again. */
  #notWritten(error: unknown): void {
    if (error instanceof OdradekError && error.code === 'STORAGE_FULL') this.#open.storageFull(error)
    else this.#report(error, 'writing segments; it is tried again')
  }

  // ── logs ──────────────────────────────────────────────────────────────────────────────────────

  openLog(spec: LogSpec): Promise<PartitionLog> {
    return this.#table.openLog(spec)
  }

  deleteLog(topicId: string, partition: number): Promise<void> {
    return this.#table.deleteLog(topicId, partition)
  }

  #segmentsOf(log: LogId): SegmentsOptions {
    return {
      fs: this.#fs,
      pool: this.#pool,
      crc32c: this.#crc32c,
      segmentBytes: this.#options.segmentBytes,
      log,
      start: 0,
    }
  }

  #log(spec: LogSpec, recovered: RecoveredLog): FileLog {
    const { id, segments, state, start, end, epoch, stamped, compaction } = recovered
    const marks = { start, stable: Math.max(start, state.stable(end)), high: end, end, epoch }
    const extent = new Extent(segments.list[0]?.base ?? end)
    for (const { next, sizeBytes } of segments.list) extent.append(next, sizeBytes)
    const decoder = new RowDecoder(spec.codec, this.#context.compression ?? noCompression)
    return new FileLog({
      id,
      topic: spec.topic,
      clock: this.#clock,
      crc32c: this.#crc32c,
      committer: this.#open,
      segments,
      resident: new Resident(segments, this.#cache, decoder, state, this.#memory),
      room: new Room(marks, extent),
      state,
      marks,
      stamped,
      retention: spec.retention,
      compaction,
      writer: this.#writer,
      compactor: this.#compactor,
    })
  }

  /** All of these go into one group, so it is the committer who knows. */
  refusal(logs: readonly PartitionLog[], sizeBytes: number): Refusal | undefined {
    const log = logs[0] === undefined ? undefined : this.#table.find(logs[0])
    if (log === undefined) return undefined
    const bytes = sizeBytes + logs.length * HEADER_BYTES
    if (this.#open.isTooLarge(bytes, logs.length)) return 'TOO_LARGE'
    return this.#open.refusal(log, bytes, logs.length)
  }

  get takesAtOnce(): string {
    const { journalBytes } = this.#options
    return `${this.#open.maxGroupBytes} bytes with what goes around them, a quarter of the option \`journalBytes\` (${journalBytes})`
  }

  // ── checkpoints ───────────────────────────────────────────────────────────────────────────────

  capture(sequence: number): Capture {
    const captured = [...this.#table.open].map((log) => {
      const { segments: files } = log.compactable
      // Until the segments that are captured are told of, none of them is replaced (behind.ts).
      return { log, files, replaced: files.replaced, ...log.capture() }
    })
    const unopened = this.#table.unopened()
    const besides = this.#besides()
    return {
      write: async () => {
        const logs: StoredLog[] = [...unopened]
        for (const { log, stored, segments } of captured) {
          const list = await segments
          if (await this.#isSynced(log)) logs.push({ ...stored, segments: list })
        }
        await this.#checkpoint(sequence, logs, besides)
        for (const { files, replaced } of captured) await this.#removeReplaced(files, replaced)
        this.#compactor.freed()
      },
    }
  }

  /** A checkpoint tells of what took their places. */
  async #removeReplaced(files: Segments, replaced: readonly Segment[]): Promise<void> {
    try {
      await files.removeReplaced(replaced)
    } catch (error) {
      this.#report(error, 'removing segments that were compacted; it is tried again')
    }
  }

  /** What was replaced may take as much as the journal does. Beyond, a checkpoint is wanted that needs none of it. */
  #mustWaitForCheckpoint(): boolean {
    let replacedBytes = 0
    for (const { compactable } of this.#table.open) replacedBytes += compactable.segments.replacedBytes
    if (replacedBytes < this.#options.journalBytes) return false
    this.#open.wantCheckpoint()
    return true
  }

  /** Whether there is something of it to be told of: a log that is gone, for good, needs no files. */
  async #isSynced(log: FileLog): Promise<boolean> {
    try {
      this.#table.assertOpen()
      await log.sync()
    } catch (error) {
      if (!log.isAbandoned) throw error
    }
    return !log.isAbandoned
  }

  #besides(): Besides {
    return { meta: this.meta.entries(), deleting: this.#table.deleting }
  }

  #checkpoint(
    sequence: number,
    logs: readonly StoredLog[],
    { meta, deleting, clean = false }: Besides,
  ): Promise<void> {
    const { durability } = this.#options
    const seed = this.#seed
    return writeCheckpoint(
      this.#fs,
      { format: 1, sequence, clean, durability, seed, logs, deleting, meta },
      this.#crc32c,
    )
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /** Everything accepted is on the disk afterwards, and the next open has nothing to replay. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const committer = this.#open
    this.#table.close()
    const flushed = committer.close()
    // A checkpoint that is under way would wait for the disk, and another one is written here.
    for (const log of this.#table.open) log.forgetCapture()
    await closeAll([
      async () => {
        await flushed
        await this.#settle()
        await this.#checkpointAtClose()
      },
      () => this.#settle(),
      () => committer.end(),
      () => this.#pool.close(),
      () => this.#context.release?.(),
    ])
  }

  /** Resolves when nothing goes on behind anybody's back. */
  async #settle(): Promise<void> {
    await this.#table.settled()
    await this.#compactor.stop()
    await this.#writer.stop()
    await this.#open.idle()
  }

  /** Where it cannot be written, the journal has everything. */
  async #checkpointAtClose(): Promise<void> {
    try {
      const stored = [
        ...this.#table.unopened(),
        ...(await fewAtOnce(this.#table.open, (log) => log.settled())),
      ]
      await this.#checkpoint(this.#open.sequence, stored, { ...this.#besides(), clean: true })
    } catch (error) {
      this.#report(error, 'writing a checkpoint at the end; the next open reads the journal instead')
      return
    }
    for (const { compactable } of this.#table.open) {
      await this.#removeReplaced(compactable.segments, compactable.segments.replaced)
    }
  }
}
