/** A compacted log of the file engine on a simulated disk, and what a reader sees of it. */
import type { Engine, LogSpec, PartitionLog } from '../../../src/log/contract.ts'
import { readCheckpoint, type StoredLog } from '../../../src/log/file/checkpoint.ts'
import type { Compactable } from '../../../src/log/file/compactable.ts'
import {
  type FileEngineContext,
  type FileEngineOptions,
  fileEngine,
} from '../../../src/log/file/file-engine.ts'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { Slice } from '../../../src/model/batch.ts'
import { type Key, RecordHeaders } from '../../../src/model/record.ts'
import { CONTENT_TYPE_HEADER, defaultCodec } from '../../../src/model/value-codec.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const KiB = 1024
export const DAY_MS = 86_400_000

/** So small that a few records make several segments, and a few more a checkpoint. */
export const SMALL: FileEngineOptions = {
  journalBytes: 16 * KiB,
  segmentBytes: 2 * KiB,
  cacheBytes: 64 * KiB,
}

export interface Machine {
  readonly fs: FileSystem
  readonly clock: ManualClock
  readonly engine: Engine
  readonly reports: readonly string[]
}

export async function boot(
  fs: FileSystem,
  options: FileEngineOptions = SMALL,
  context: Partial<FileEngineContext> = {},
): Promise<Machine> {
  const clock = (context.clock as ManualClock | undefined) ?? new ManualClock()
  const reports: string[] = []
  const report = (error: unknown, what: string): void => {
    reports.push(error === undefined ? what : `${what}: ${(error as Error).message}`)
  }
  const engine = await fileEngine({ report, ...context, clock, fs }, options)
  return { fs, clock, engine, reports }
}

export function compacted(spec: Partial<LogSpec> = {}): LogSpec {
  const endless = Number.POSITIVE_INFINITY
  return {
    topic: 'topic',
    topicId: 't',
    partition: 0,
    retention: { records: endless, bytes: endless, ageMs: endless },
    cleanup: 'compact',
    deleteRetentionMs: DAY_MS,
    codec: defaultCodec,
    ...spec,
  }
}

/** One record, which is not durable yet. */
export function put(log: PartitionLog, clock: ManualClock, key: Key | null, value: string | null): number {
  const { bytes, contentType } = defaultCodec.encode(value)
  const headers = contentType === null ? null : new RecordHeaders([[CONTENT_TYPE_HEADER, contentType]])
  return log.tryAppendOne(bytes, key, headers, clock.now(), 100)
}

/** Writes behind, as a checkpoint does, and lets compaction come to rest. */
export async function settled({ clock }: Pick<Machine, 'clock'>): Promise<void> {
  for (let i = 0; i < 5; i++) await clock.settle()
}

export interface Row {
  readonly offset: number
  readonly key: Key | null
  readonly value: unknown
  readonly timestamp: number
}

/** All that a reader of `committed` sees from `from` on. */
export async function rowsOf(log: PartitionLog, from: number = log.marks.start): Promise<Row[]> {
  const rows: Row[] = []
  const into = new Slice()
  for (let at = from; ; ) {
    const result = log.peek(at, 1000, 'committed', into)
    if (result === 'end') return rows
    const { columns, row, count, next } = result === 'hit' ? into : await log.load(at, 4 * KiB, 'committed')
    for (let i = row; i < row + count; i++) {
      const [offset, key, value] = [columns.offsetAt(i), columns.keyAt(i), columns.values[i]]
      rows.push({ offset, key, value, timestamp: columns.timestampAt(i) })
    }
    if (next <= at) throw new Error(`a reader at ${at} goes on at ${next}`)
    at = next
  }
}

/** @public */
export function valuesOf(rows: readonly Row[]): unknown[] {
  return rows.map(({ offset, key, value }) => [offset, key, value])
}

/** What the compactor sees of a log. @public */
export function compactableOf(log: PartitionLog): Compactable {
  return (log as unknown as { readonly compactable: Compactable }).compactable
}

/** Calls `told` whenever a segment has taken the place of others. */
export function onReplaced(log: PartitionLog, told: () => void): void {
  const { segments } = compactableOf(log)
  const replace = segments.replace.bind(segments)
  segments.replace = (...parts) => {
    const done = replace(...parts)
    if (done) told()
    return done
  }
}

/** What the newest checkpoint tells of the log. */
export async function storedOf(fs: FileSystem, topicId = 't'): Promise<StoredLog> {
  const checkpoint = await readCheckpoint(fs, crc32c)
  return checkpoint?.logs.find((log) => log.topicId === topicId) as StoredLog
}
