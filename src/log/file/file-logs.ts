/**
 * Which logs a directory has, by topic id and partition: every one of them is in exactly one of these places, so that a
 * checkpoint, taken at any moment, tells of all.
 *
 *   recovered ── openLog ──► open ── deleteLog ──► deleting ── its files are removed ──► gone
 *       └───────────────── deleteLog ─────────────────▲
 *
 * Openings of one log go one after the other, and behind its deletion. A log that is deleted takes and shows nothing at
 * once; its files stay until that is on the disk, since a crash before may bring it back, as a whole.
 */
import { OdradekError } from '../../model/errors.ts'
import type { LogSpec, PartitionLog } from '../contract.ts'
import { PartitionState } from '../state.ts'
import type { StoredLog } from './checkpoint.ts'
import type { Committer } from './committer.ts'
import type { Compactor } from './compactor.ts'
import type { FileLog } from './file-log.ts'
import type { LogId } from './group.ts'
import type { RecoveredLog } from './recovery.ts'
import { keyOf } from './recovery-plan.ts'
import { Segments, type SegmentsOptions } from './segments.ts'
import type { Writer } from './writer.ts'

export interface FileLogsOptions {
  readonly committer: Committer
  readonly compactor: Compactor
  readonly writer: Writer
  readonly segmentsOf: (log: LogId) => SegmentsOptions
  /** A log, of what was recovered of it, or of nothing. */
  readonly make: (spec: LogSpec, recovered: RecoveredLog) => FileLog
  /** Told of failures that nobody waits for. */
  readonly report: (error: unknown, what: string) => void
}

export class FileLogs {
  readonly #options: FileLogsOptions
  readonly #open = new Map<string, FileLog>()
  /** Those that nobody opened yet. */
  readonly #recovered: Map<string, RecoveredLog>
  /** The newest opening of each log that is under way. They do not reject. */
  readonly #opening = new Map<string, Promise<void>>()
  /** Deleted, with files that may still be there. */
  readonly #deleting: Map<string, LogId>
  /** The deletions that are under way, by their logs. They do not reject. */
  readonly #deletions = new Map<string, Promise<void>>()
  #closed = false

  constructor(options: FileLogsOptions, recovered: Map<string, RecoveredLog>, deleting: readonly LogId[]) {
    this.#options = options
    this.#recovered = recovered
    this.#deleting = new Map(deleting.map((log) => [keyOf(log), log]))
  }

  get open(): IterableIterator<FileLog> {
    return this.#open.values()
  }

  find(id: LogId): FileLog | undefined {
    return this.#open.get(keyOf(id))
  }

  unopened(): StoredLog[] {
    return storedOf(this.#recovered.values())
  }

  get deleting(): readonly LogId[] {
    return [...this.#deleting.values()]
  }

  // ── opening ───────────────────────────────────────────────────────────────────────────────────

  /** An open log is answered again, under the retention that is asked for now. */
  openLog(spec: LogSpec): Promise<PartitionLog> {
    const key = keyOf(spec)
    const before = this.#opening.get(key) ?? Promise.resolve()
    const opening = before.then(() => this.#openLog(spec, key))
    const ended = opening.then(
      () => {},
      () => {},
    )
    this.#opening.set(key, ended)
    void ended.then(() => {
      if (this.#opening.get(key) === ended) this.#opening.delete(key)
    })
    return opening
  }

  async #openLog(spec: LogSpec, key: string): Promise<FileLog> {
    await this.#deletions.get(key)
    const fresh = this.#open.has(key) || this.#recovered.has(key) ? undefined : await this.#fresh(spec, key)
    this.assertOpen()
    // Not a moment in which it is neither here nor there: a checkpoint would not know it.
    const recovered = this.#recovered.get(key) ?? fresh
    const log = this.#open.get(key) ?? this.#options.make(spec, recovered as RecoveredLog)
    this.#recovered.delete(key)
    this.#open.set(key, log)
    log.reopen()
    log.configure(spec.retention)
    log.compactable.configure(spec)
    this.#options.compactor.consider(log.compactable)
    return log
  }

  /** A log that never was. What a deleted one of that name has left goes first. */
  async #fresh({ topicId, partition, topic }: LogSpec, key: string): Promise<RecoveredLog> {
    const { committer, segmentsOf } = this.#options
    const id = { topicId, partition }
    if (this.#deleting.has(key)) {
      // Where that has failed nobody knows whether it is gone.
      await committer.settle()
      await Segments.remove(segmentsOf(id))
      this.#deleting.delete(key)
    }
    const segments = await Segments.restore(segmentsOf(id), [])
    const state = new PartitionState()
    state.epochStarted(0, 0)
    return { id, topic, segments, state, start: 0, end: 0, epoch: 0, stamped: 0 }
  }

  // ── deleting ──────────────────────────────────────────────────────────────────────────────────

  deleteLog(topicId: string, partition: number): Promise<void> {
    const id = { topicId, partition }
    const key = keyOf(id)
    const log = this.#open.get(key)
    if (this.#closed) return Promise.reject(closed())
    if (log === undefined && !this.#recovered.has(key)) return this.#deletions.get(key) ?? Promise.resolve()
    this.#open.delete(key)
    this.#recovered.delete(key)
    this.#deleting.set(key, id)
    const deletion = this.#delete(id, log, this.#options.committer.delete(id))
    const ended = deletion.then(
      () => void this.#deletions.delete(key),
      () => void this.#deletions.delete(key),
    )
    this.#deletions.set(key, ended)
    return deletion
  }

  async #delete(id: LogId, log: FileLog | undefined, committed: Promise<void>): Promise<void> {
    const { committer, compactor, writer } = this.#options
    await Promise.all([committed, log?.close()])
    await committer.settle()
    if (log !== undefined) {
      log.abandon()
      await compactor.forget(log.compactable)
      await writer.forget(log)
    }
    await this.#remove(id)
  }

  /** Those that were deleted by a process before. */
  async removeDeleted(): Promise<void> {
    for (const id of this.deleting) await this.#remove(id)
  }

  async #remove(id: LogId): Promise<void> {
    try {
      await Segments.remove(this.#options.segmentsOf(id))
      this.#deleting.delete(keyOf(id))
    } catch (error) {
      // It is in the next checkpoint still, and tried again when the directory is opened.
      this.#options.report(error, 'removing the files of a deleted log')
    }
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /** None is opened or deleted any more, and those that are open take nothing. */
  close(): void {
    this.#closed = true
    for (const log of this.#open.values()) void log.close()
  }

  assertOpen(): void {
    if (this.#closed) throw closed()
  }

  /** Resolves when no opening and no deletion is under way. */
  async settled(): Promise<void> {
    await Promise.all([...this.#opening.values(), ...this.#deletions.values()])
  }
}

/** What a checkpoint tells of logs that nobody has opened. */
export function storedOf(recovered: Iterable<RecoveredLog>): StoredLog[] {
  return [...recovered].map(({ id, segments, state, ...rest }) => ({
    ...id,
    ...rest,
    segments: segments.stored(),
    state: state.toJSON(),
  }))
}

function closed(): OdradekError {
  return new OdradekError('CLOSED', 'the file engine is closed')
}
