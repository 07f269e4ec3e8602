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
import { MiB } from '../../model/limits.ts'
import type { Engine, EngineContext, LogSpec, PartitionLog, Refusal, RetentionLimits } from '../contract.ts'
import { noCompression } from '../format/compression.ts'
import { type Crc32c, crc32c } from '../format/crc32c.ts'
import { PartitionState } from '../state.ts'
import { type StoredLog, writeCheckpoint } from './checkpoint.ts'
import { ChunkCache } from './chunk-cache.ts'
import { type Capture, type Checkpointer, Committer } from './committer.ts'
import { Extent } from './extent.ts'
import { FileLog } from './file-log.ts'
import { FilePool } from './file-pool.ts'
import type { FileSystem } from './fs.ts'
import { type LogId, seeded } from './group.ts'
import { Journal } from './journal.ts'
import { FileMeta } from './meta.ts'
import { type RecoveredLog, recover } from './recovery.ts'
import { keyOf } from './recovery-plan.ts'
import { Resident } from './resident.ts'
import { Room } from './room.ts'
import { RowDecoder } from './row-decoder.ts'
import { Segments } from './segments.ts'
import { Writer } from './writer.ts'

/** What a batch costs beyond its records: its header, and its entry in the journal. */
const BATCH_OVERHEAD_BYTES = 192
const REFUSALS = { ok: undefined, wait: 'NO_ROOM', full: 'STORAGE_FULL', poisoned: 'POISONED' } as const

/** What a topic keeps on disk unless it says otherwise. */
const RETENTION: RetentionLimits = {
  records: Number.POSITIVE_INFINITY,
  bytes: 1024 * MiB,
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

class FileEngine implements Engine, Checkpointer {
  readonly scheme = 'file'
  readonly durable = true
  readonly encodes = true
  readonly compacts = false
  readonly retention = RETENTION
  readonly #fs: FileSystem
  readonly #pool: FilePool
  readonly #clock: Clock
  readonly #crc32c: Crc32c
  readonly #context: FileEngineContext
  readonly #options: Required<FileEngineOptions>
  readonly #report: (error: unknown, what: string) => void
  readonly #cache: ChunkCache
  readonly #writer: Writer
  readonly #logs = new Map<string, FileLog>()
  /** Those that nobody opened yet. */
  #recovered = new Map<string, RecoveredLog>()
  #seed = 0
  readonly #deleting = new Map<string, LogId>()
  #committer: Committer | undefined
  #meta: FileMeta | undefined
  #closing: Promise<void> | undefined

  constructor(context: FileEngineContext, options: FileEngineOptions) {
    this.#fs = context.fs
    this.#pool = new FilePool(context.fs)
    this.#clock = context.clock
    this.#crc32c = context.crc32c ?? crc32c
    this.#context = context
    this.#options = { ...FILE_DEFAULTS, ...options }
    this.#report = context.report ?? (() => {})
    this.#cache = new ChunkCache(this.#options.cacheBytes)
    this.#writer = new Writer(this.#clock, {
      failed: (error) => this.#notWritten(error),
      recovered: () => this.#open.storageFreed(),
    })
  }

  get meta(): FileMeta {
    assert(this.#meta !== undefined, 'the engine is open')
    return this.#meta
  }

  async open(): Promise<void> {
    const recovered = await recover({
      fs: this.#fs,
      pool: this.#pool,
      crc32c: this.#crc32c,
      segmentBytes: this.#options.segmentBytes,
      salvage: this.#options.salvage,
    })
    for (const finding of recovered.findings) this.#report(undefined, finding)
    this.#recovered = recovered.logs
    for (const log of recovered.deleting) this.#deleting.set(keyOf(log), log)
    this.#seed = recovered.seed
    const firstSequence = recovered.sequence + 1
    await this.#writeCheckpoint(recovered.sequence, this.#unopened(), [...recovered.meta], false)
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
    await this.#removeDeleted()
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

  /** An open log is answered again, under the retention that is asked for now. */
  async openLog(spec: LogSpec): Promise<PartitionLog> {
    if (this.#closing !== undefined) throw new OdradekError('CLOSED', 'the file engine is closed')
    const key = keyOf(spec)
    const open = this.#logs.get(key)
    if (open !== undefined && !open.closed) {
      open.configure(spec.retention)
      return open
    }
    const recovered = this.#recovered.get(key) ?? (await this.#fresh(spec))
    this.#recovered.delete(key)
    const log = this.#log(spec, recovered)
    this.#logs.set(key, log)
    log.configure(spec.retention)
    return log
  }

  async #fresh({ topicId, partition, topic }: LogSpec): Promise<RecoveredLog> {
    const id = { topicId, partition }
    const segments = await Segments.restore(this.#segmentsOptions(id, 0), [])
    const state = new PartitionState()
    state.epochStarted(0, 0)
    return { id, topic, segments, state, start: 0, end: 0, epoch: 0, stamped: 0 }
  }

  #segmentsOptions(log: LogId, start: number) {
    return {
      fs: this.#fs,
      pool: this.#pool,
      crc32c: this.#crc32c,
      segmentBytes: this.#options.segmentBytes,
      log,
      start,
    }
  }

  #log(spec: LogSpec, recovered: RecoveredLog): FileLog {
    const { id, segments, state, start, end, epoch, stamped } = recovered
    const marks = { start, stable: Math.max(start, state.stable(end)), high: end, end, epoch }
    const extent = new Extent(segments.list[0]?.base ?? end)
    for (const { next, sizeBytes } of segments.list) extent.append(next, sizeBytes)
    const decoder = new RowDecoder(spec.codec, this.#context.compression ?? noCompression)
    return new FileLog({
      id,
      topic: spec.topic,
      codec: spec.codec,
      clock: this.#clock,
      crc32c: this.#crc32c,
      committer: this.#open,
      segments,
      resident: new Resident(segments, this.#cache, decoder, state),
      room: new Room(marks, extent),
      state,
      marks,
      stamped,
      retention: spec.retention,
      wakeWriter: (log) => this.#writer.wake(log),
    })
  }

  async deleteLog(topicId: string, partition: number): Promise<void> {
    const id = { topicId, partition }
    const key = keyOf(id)
    const log = this.#logs.get(key)
    if (log === undefined && !this.#recovered.has(key)) return
    this.#logs.delete(key)
    this.#recovered.delete(key)
    log?.abandon()
    this.#deleting.set(key, id)
    await this.#open.delete(id)
    await this.#writer.idle()
    await this.#removeDeleted()
  }

  async #removeDeleted(): Promise<void> {
    for (const [key, id] of this.#deleting) {
      try {
        await Segments.remove(this.#segmentsOptions(id, 0))
        this.#deleting.delete(key)
      } catch (error) {
        // It is in the next checkpoint still, and tried again when the directory is opened.
        this.#report(error, 'removing the files of a deleted log')
      }
    }
  }

  /** All of these go into one group, so it is the committer who knows. */
  refusal(logs: readonly PartitionLog[], sizeBytes: number): Refusal | undefined {
    const committer = this.#open
    const log = logs[0] === undefined ? undefined : this.#logs.get(keyOf(logs[0]))
    if (log === undefined) return undefined
    const groupBytes = sizeBytes + logs.length * BATCH_OVERHEAD_BYTES
    if (groupBytes > committer.maxGroupBytes) return 'TOO_LARGE'
    return REFUSALS[committer.room(log, groupBytes)]
  }

  // ── checkpoints ───────────────────────────────────────────────────────────────────────────────

  capture(sequence: number): Capture {
    const meta = this.meta.entries()
    const captured = [...this.#logs.values()].map((log) => ({ log, ...log.capture() }))
    const unopened = this.#unopened()
    return {
      write: async () => {
        const logs: StoredLog[] = [...unopened]
        for (const { log, stored, segments } of captured) {
          const list = await segments
          await log.sync()
          logs.push({ ...stored, segments: list })
        }
        await this.#writeCheckpoint(sequence, logs, meta, false)
      },
    }
  }

  #unopened(): StoredLog[] {
    return [...this.#recovered.values()].map(({ id, segments, state, ...rest }) => ({
      ...id,
      ...rest,
      segments: segments.stored(),
      state: state.toJSON(),
    }))
  }

  #writeCheckpoint(
    sequence: number,
    logs: readonly StoredLog[],
    meta: readonly (readonly [string, unknown])[],
    clean: boolean,
  ): Promise<void> {
    return writeCheckpoint(
      this.#fs,
      {
        format: 1,
        sequence,
        clean,
        durability: this.#options.durability,
        seed: this.#seed,
        logs: logs.filter((log) => !this.#deleting.has(keyOf(log))),
        deleting: [...this.#deleting.values()],
        meta,
      },
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
    try {
      await committer.close()
      await this.#checkpointAtClose(committer.sequence)
    } finally {
      for (const log of this.#logs.values()) await log.close()
      await committer.abandon()
      await this.#pool.close()
      await this.#context.release?.()
    }
  }

  /** Where it cannot be written, the journal has everything. */
  async #checkpointAtClose(sequence: number): Promise<void> {
    try {
      await this.#writer.idle()
      const logs = this.#unopened()
      for (const log of this.#logs.values()) logs.push(await log.settled())
      await this.#writeCheckpoint(sequence, logs, this.meta.entries(), true)
    } catch (error) {
      this.#report(error, 'writing a checkpoint at the end; the next open reads the journal instead')
    }
  }
}
