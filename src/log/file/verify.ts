/**
 * Reads all of a data directory and tells what is wrong with it, for `odradek verify`: the checkpoint, every group of the
 * journal and every batch in it, every batch, footer and index of every segment. Changes nothing.
 *
 *   damage     what was stored is not there, or not as it was
 *   harmless   what a crash leaves, or a cache that is of no use: opening deals with it, and loses nothing
 *
 * Beside a broker, files go and a checkpoint becomes old while it reads: what it finds there counts if it is found twice.
 */
import { odradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import { PartitionState } from '../state.ts'
import { CHECKPOINT_FILE, type StoredSegment } from './checkpoint.ts'
import type { FileSystem } from './fs.ts'
import type { LogId } from './group.ts'
import { type DataDirectory, type DirectoryOptions, readDirectory } from './inspect.ts'
import { type KeptLog, keyOf, livingEntries, type RecoveryPlan } from './recovery-plan.ts'
import { type Finding, verifySegments } from './segment-check.ts'
import { logsOnDisk } from './segment-files.ts'
import { directoryOf } from './segment-paths.ts'

export interface VerifyOptions extends DirectoryOptions {
  /** Told before a segment is read. */
  readonly progress?: (progress: Progress) => void
}

export interface Progress {
  readonly file: string
  readonly doneBytes: number
  readonly totalBytes: number
}

/** What was read. */
export interface Verified {
  logs: number
  segments: number
  /** Of batches in segments. */
  sizeBytes: number
  /** Of the journal, after the checkpoint. */
  groups: number
}

/** @throws OdradekError UNSUPPORTED for the format of a later version, STORAGE_ERROR */
export async function* verifyDirectory(options: VerifyOptions): AsyncGenerator<Finding, Verified> {
  if (options.moving !== true) return yield* walk(options)
  const { findings, verified } = await collected(walk(options))
  if (findings.length > 0) {
    const files = new Set(findings.map(({ file }) => file))
    const again = await collected(walk(options, (log) => [...files].some((file) => isOf(file, log))))
    yield* again.findings.filter(({ file }) => files.has(file))
  }
  return verified
}

/** What a crash would leave is not worth a word while nobody crashed. */
async function collected(findings: AsyncGenerator<Finding, Verified>) {
  const all: Finding[] = []
  for (;;) {
    const { done, value } = await findings.next()
    if (done === true) return { findings: all, verified: value }
    if (!value.harmless) all.push(value)
  }
}

function isOf(file: string, log: LogId): boolean {
  return file.startsWith(`${directoryOf(log)}/`)
}

interface Work {
  readonly log: LogId
  readonly start: number
  readonly segments: readonly StoredSegment[]
}

async function* walk(
  options: VerifyOptions,
  wanted: (log: LogId) => boolean = () => true,
): AsyncGenerator<Finding, Verified> {
  const directory = await readDirectory(options)
  const { plan, damage } = directory
  const verified = { logs: 0, segments: 0, sizeBytes: 0, groups: directory.report.journal?.groups ?? 0 }
  if (damage !== undefined) yield findingAt(damage.file, damage.position, damage.what)
  if (plan !== undefined) yield* ofJournal(options.fs, plan, options.crc32c)
  for (const log of plan?.kept ?? []) yield* ofLog(log)
  const work = (await workOf(directory)).filter(({ log }) => wanted(log))
  const totalBytes = sum(work.flatMap(({ segments }) => segments))
  for (const { log, start, segments } of work) {
    const looking = (file: string, sizeBytes: number): void => {
      options.progress?.({ file, doneBytes: verified.sizeBytes, totalBytes })
      verified.segments++
      verified.sizeBytes += sizeBytes
    }
    yield* verifySegments({ ...options, log, start, looking }, segments)
    verified.logs++
  }
  return verified
}

/** The segments of the checkpoint; without one, those that tell by a footer what they must hold. */
async function workOf({ fs, crc32c, plan, report }: DataDirectory): Promise<Work[]> {
  if (plan === undefined) {
    const logs = await logsOnDisk(fs, crc32c)
    return logs.map(({ id, segments }) => {
      return { log: id, start: 0, segments: segments.filter(({ sealed }) => sealed) }
    })
  }
  const starts = new Map(report.logs.map((log) => [keyOf(log), log.start ?? 0]))
  return plan.kept.map(({ stored }) => {
    return { log: stored, start: starts.get(keyOf(stored)) ?? 0, segments: stored.segments }
  })
}

async function* ofJournal(fs: FileSystem, plan: RecoveryPlan, crc32c: Crc32c): AsyncGenerator<Finding> {
  const { tail } = plan.journal
  const ends = new Map(plan.kept.map(({ stored }) => [keyOf(stored), stored.end]))
  const scan = new BatchScan({ crc32c })
  for await (const { entry, file, position } of livingEntries(fs, plan)) {
    if (entry.kind !== 'batch') continue
    const { bytes } = entry
    const end = ends.get(keyOf(entry.log)) ?? 0
    const whole = scan.start(bytes).next() && scan.sizeBytes === bytes.length
    if (!whole) yield findingAt(file, position + scan.position, scan.fault || 'not one whole batch')
    else if (scan.base > end) yield findingAt(file, position, `offset ${scan.base} where ${end} should be`)
    if (whole) ends.set(keyOf(entry.log), Math.max(end, scan.last + 1))
  }
  if (tail.kind === 'corrupt') yield findingAt(tail.file, tail.position, tail.why)
  if (tail.kind === 'torn') {
    const what = `a group of which ${tail.sizeBytes} bytes were written when the process ended; opening leaves it out`
    yield { file: tail.file, position: tail.position, what, harmless: true }
  }
}

/** What the checkpoint says of a log, as far as it can be told from itself: its CRC holds, or nothing is known of it. */
function* ofLog({ stored }: KeptLog): Generator<Finding> {
  const { topicId, partition, start, end, segments, state } = stored
  const complain = (what: string): Finding =>
    findingAt(CHECKPOINT_FILE, 0, `${topicId}/${partition}: ${what}`)
  const next = segments.at(-1)?.next ?? end
  if (next !== end) yield complain(`its segments end at ${next}, the log at ${end}`)
  if (start > end) yield complain(`it begins at ${start} and ends at ${end}`)
  try {
    PartitionState.fromJSON(state)
  } catch (error) {
    yield complain(odradekError(error).message)
  }
}

function findingAt(file: string, position: number, what: string): Finding {
  return { file, position, what, harmless: false }
}

function sum(segments: readonly StoredSegment[]): number {
  return segments.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0)
}
