/**
 * A data directory as a plain report, for `odradek inspect`: what it holds, and what opening it would do, as recovery
 * itself decides it (recovery-plan.ts). Files are opened for reading, and nothing else is done to them.
 *
 *   with a checkpoint     its logs, and what the journal adds to them
 *   without, or broken    segments as their names and footers tell of them; the journal cannot be read
 *
 * It works beside a broker too, which goes on while its files are read one after the other. So where a checkpoint came in
 * between, or what was read does not fit together, all of it is read again, a few times.
 */
import type { OdradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import { CHECKPOINT_FILE, readCheckpoint } from './checkpoint.ts'
import { DamagedFile } from './damage.ts'
import type { FileSystem } from './fs.ts'
import type { EntryVisitor, LogId } from './group.ts'
import { JOURNAL_FILES } from './journal.ts'
import { walkEntries } from './journal-entries.ts'
import type { JournalTail } from './journal-reader.ts'
import { applyChanges } from './meta.ts'
import { type Aside, keyOf, livingEntries, planRecovery, type RecoveryPlan } from './recovery-plan.ts'
import { describeSegments, type SegmentDescription } from './segment-check.ts'
import { logsOnDisk } from './segment-files.ts'
import { directoryOf } from './segment-paths.ts'
import type { Cut } from './segment-plan.ts'

/** A topic's entry in `Meta`, which has its name. */
const TOPIC_PREFIX = 'topic/'
const MAX_TRIES = 10
/** The last moment that a date can be. */
const MAX_DATE_MS = 8_640_000_000_000_000

export interface DirectoryOptions {
  readonly fs: FileSystem
  readonly crc32c: Crc32c
  /** A broker has the directory open. */
  readonly moving?: boolean
}

/** The report. Its names are those of `--json`, and stay. */
export interface Inspection {
  /** Of the checkpoint; null where there is none to be read. */
  readonly format: number | null
  readonly durability: 'fsync' | 'os' | null
  /** The broker was closed, and nothing came after. */
  readonly clean: boolean | null
  readonly checkpoint: CheckpointReport | null
  /** Null where it cannot be read for want of a checkpoint. */
  readonly journal: JournalReport | null
  readonly logs: readonly LogReport[]
  readonly recovery: RecoveryReport
}

export interface CheckpointReport {
  readonly sizeBytes: number
  /** Groups of the journal up to this one are in it. */
  readonly sequence: number
  readonly logs: number
  readonly deleting: number
  /** Entries of `Meta`: topics, places of readers. */
  readonly meta: number
}

export interface JournalReport {
  readonly files: readonly { readonly file: string; readonly sizeBytes: number }[]
  /** After the checkpoint. */
  readonly groups: number
  /** Sequences of these; null where there are none. */
  readonly first: number | null
  readonly last: number | null
  readonly sizeBytes: number
  readonly entries: Readonly<Record<'batch' | 'meta' | 'start' | 'delete', number>>
  /** Bytes of batches. */
  readonly batchBytes: number
  readonly tail: JournalTail
}

export interface LogReport extends LogId {
  /** Null where nothing says it. */
  readonly topic: string | null
  readonly directory: string
  /** As after opening, when all that was recovered is committed. Null where only files tell of the log. */
  readonly start: number | null
  readonly high: number | null
  readonly end: number | null
  readonly epoch: number | null
  /** Where the checkpoint ends; what follows is in the journal. */
  readonly checkpointEnd: number | null
  readonly segments: readonly SegmentReport[]
}

export interface SegmentReport {
  readonly file: string
  readonly base: number
  /** Offset after it; null where nothing says it. */
  readonly next: number | null
  /** Of its batches. */
  readonly sizeBytes: number
  /** Of the file; null where it is missing. */
  readonly fileBytes: number | null
  /** Newest timestamp of a record, in ISO 8601. */
  readonly newest: string | null
  readonly sealed: boolean
  readonly compacted: boolean
  /** Null for an active segment, which has none. */
  readonly footer: 'ok' | 'damaged' | null
  /** `partial` covers a beginning; `unusable` will be made again. */
  readonly index: 'ok' | 'partial' | 'missing' | 'unusable'
}

export interface RecoveryReport {
  /** What opening would do, without `salvage`. */
  readonly outcome: 'nothing' | 'recover' | 'refuse'
  readonly refusals: readonly RefusalReport[]
  /** What is left out of the journal, and where it is copied to first. */
  readonly aside: readonly Aside[]
  readonly replay: { readonly groups: number; readonly batches: number; readonly batchBytes: number }
  readonly cut: readonly Cut[]
  /** Files that the checkpoint does not know: nothing that counts is in them alone. */
  readonly remove: readonly string[]
  /** Of deleted logs. */
  readonly removeDirectories: readonly string[]
  readonly newEpochs: RecoveryPlan['newEpochs']
}

export interface RefusalReport {
  readonly code: string
  readonly message: string
  readonly file: string | null
  readonly position: number | null
  readonly salvageable: boolean
}

/** A directory that was looked at. */
export interface DataDirectory {
  readonly fs: FileSystem
  readonly crc32c: Crc32c
  /** A broker has it open. */
  readonly moving: boolean
  /** Undefined where there is no telling what the directory holds: then `damage` says why. */
  readonly plan: RecoveryPlan | undefined
  readonly damage: DamagedFile | undefined
  readonly report: Inspection
}

/** @throws OdradekError UNSUPPORTED for the format of a later version, STORAGE_ERROR */
export async function readDirectory(options: DirectoryOptions): Promise<DataDirectory> {
  for (let tries = 1; ; tries++) {
    const directory = await readOnce(options)
    if (!directory.moving || tries === MAX_TRIES) return directory
    const isWhole = directory.report.recovery.outcome !== 'refuse'
    if (isWhole && (await sequenceNow(options)) === directory.plan?.checkpoint.sequence) return directory
  }
}

async function sequenceNow({ fs, crc32c }: DirectoryOptions): Promise<number | undefined> {
  return (await unlessDamaged(readCheckpoint(fs, crc32c))).found?.sequence
}

async function readOnce({ fs, crc32c, moving = false }: DirectoryOptions): Promise<DataDirectory> {
  const { found: plan, damage } = await unlessDamaged(planRecovery(fs, crc32c))
  const report =
    plan === undefined ? await reportOfFiles(fs, crc32c, damage) : await reportOf(fs, crc32c, plan)
  return { fs, crc32c, moving, plan, damage, report }
}

async function unlessDamaged<T>(
  work: Promise<T>,
): Promise<{ found: T; damage?: undefined } | { found?: undefined; damage: DamagedFile }> {
  try {
    return { found: await work }
  } catch (damage) {
    if (damage instanceof DamagedFile) return { damage }
    throw damage
  }
}

// ── with a checkpoint ──────────────────────────────────────────────────────────────────────────────────

async function reportOf(fs: FileSystem, crc32c: Crc32c, plan: RecoveryPlan): Promise<Inspection> {
  const { checkpoint } = plan
  const sizeBytes = await sizeOf(fs, CHECKPOINT_FILE)
  const journal = await journalOf(fs, plan)
  const found = sizeBytes !== null
  return {
    format: found ? checkpoint.format : null,
    durability: found ? checkpoint.durability : null,
    clean: found ? checkpoint.clean : null,
    checkpoint: found
      ? {
          sizeBytes,
          sequence: checkpoint.sequence,
          logs: checkpoint.logs.length,
          deleting: checkpoint.deleting.length,
          meta: checkpoint.meta.length,
        }
      : null,
    journal,
    logs: await logsOf(fs, crc32c, plan),
    recovery: await recoveryOf(fs, plan, journal),
  }
}

async function journalOf(fs: FileSystem, { journal, checkpoint }: RecoveryPlan): Promise<JournalReport> {
  const entries = { batch: 0, meta: 0, start: 0, delete: 0 }
  let [groups, sizeBytes, batchBytes] = [0, 0, 0]
  for (const group of journal.groups) {
    groups++
    sizeBytes += group.sizeBytes
  }
  const visitor: EntryVisitor = {
    batch(_log, _bytes, from, end) {
      entries.batch++
      batchBytes += end - from
    },
    meta: () => void entries.meta++,
    start: () => void entries.start++,
    delete: () => void entries.delete++,
  }
  for await (const _ of walkEntries(fs, journal.groups, visitor));
  const files: { file: string; sizeBytes: number }[] = []
  for (const file of JOURNAL_FILES) {
    const fileBytes = await sizeOf(fs, file)
    if (fileBytes !== null) files.push({ file, sizeBytes: fileBytes })
  }
  const first = groups === 0 ? null : checkpoint.sequence + 1
  const last = groups === 0 ? null : checkpoint.sequence + groups
  return { files, groups, first, last, sizeBytes, entries, batchBytes, tail: journal.tail }
}

interface Marks {
  start: number
  end: number
}

async function logsOf(fs: FileSystem, crc32c: Crc32c, plan: RecoveryPlan): Promise<LogReport[]> {
  const { marks, meta } = await afterReplay(fs, plan)
  const logs = [
    ...plan.kept.map(({ stored }) => stored),
    ...plan.created.map(({ id }) => ({ ...id, topic: '', start: 0, end: 0, epoch: 0, segments: [] })),
  ]
  const reports: LogReport[] = []
  for (const log of logs) {
    const { topicId, partition } = log
    const { start, end } = marks.get(keyOf(log)) as Marks
    const described = await describeSegments({ fs, crc32c, log, start }, log.segments)
    const names = new Set(await fs.list(directoryOf(log)))
    reports.push({
      topic: log.topic || topicIn(meta, topicId),
      topicId,
      partition,
      directory: directoryOf(log),
      start,
      high: end,
      end,
      epoch: plan.newEpochs === null ? log.epoch : log.epoch + 1,
      checkpointEnd: log.end,
      // One that ends below the start may be gone, and then it is.
      segments: described
        .filter(({ fileBytes, next }) => fileBytes !== undefined || next > start)
        .map((segment) => segmentOf(segment, names)),
    })
  }
  return reports.sort(byName)
}

/** Where logs begin and end, and what `Meta` says, when the groups of the journal are in. */
async function afterReplay(fs: FileSystem, plan: RecoveryPlan) {
  const marks = new Map<string, Marks>()
  for (const { stored } of plan.kept) marks.set(keyOf(stored), { start: stored.start, end: stored.end })
  for (const { id } of plan.created) marks.set(keyOf(id), { start: 0, end: 0 })
  const meta = new Map(plan.checkpoint.meta)
  const scan = new BatchScan()
  for await (const { entry } of livingEntries(fs, plan)) {
    if (entry.kind === 'meta') {
      applyChanges(meta, entry.changes)
      continue
    }
    const log = marks.get(keyOf(entry.log)) as Marks
    if (entry.kind === 'start') log.start = Math.max(log.start, entry.offset)
    else if (scan.start(entry.bytes).next()) log.end = Math.max(log.end, scan.last + 1)
  }
  return { marks, meta }
}

function topicIn(meta: ReadonlyMap<string, unknown>, topicId: string): string | null {
  const { name } = (meta.get(TOPIC_PREFIX + topicId) ?? {}) as { readonly name?: unknown }
  return typeof name === 'string' ? name : null
}

function segmentOf(segment: SegmentDescription, names: ReadonlySet<string>): SegmentReport {
  const { file, base, next, sizeBytes, fileBytes, maxTimestamp, sealed, compacted = false } = segment
  const { indexedBytes, footer } = segment
  const index = file.slice(file.lastIndexOf('/') + 1).replace(/log$/, 'index')
  return {
    file,
    base,
    next,
    sizeBytes,
    fileBytes: fileBytes ?? null,
    newest: timeOf(maxTimestamp),
    sealed,
    compacted,
    footer: sealed && fileBytes !== undefined ? (footer ? 'ok' : 'damaged') : null,
    index: indexedBytes === undefined ? missingOr(names, index) : indexedBytes < sizeBytes ? 'partial' : 'ok',
  }
}

function missingOr(names: ReadonlySet<string>, index: string): 'missing' | 'unusable' {
  return names.has(index) ? 'unusable' : 'missing'
}

async function recoveryOf(
  fs: FileSystem,
  plan: RecoveryPlan,
  { groups, entries, batchBytes }: JournalReport,
): Promise<RecoveryReport> {
  const { refusals, aside, newEpochs } = plan
  const segments = [...plan.kept, ...plan.created].flatMap((log) => log.segments ?? [])
  const remove = segments.flatMap((each) => each.remove)
  const removeDirectories: string[] = []
  for (const directory of plan.deleted.map(directoryOf)) {
    if ((await fs.list(directory)).length > 0) removeDirectories.push(directory)
  }
  const cut = segments.flatMap((each) => each.cut ?? [])
  const changes = [...aside, ...cut, ...remove, ...removeDirectories].length + groups
  const isDone = changes === 0 && newEpochs === null
  return {
    outcome: refusals.length > 0 ? 'refuse' : isDone ? 'nothing' : 'recover',
    refusals: refusals.map(({ error, salvageable }) => refusalOf(error, salvageable)),
    aside,
    replay: { groups, batches: entries.batch, batchBytes },
    cut,
    remove,
    removeDirectories,
    newEpochs,
  }
}

function refusalOf(error: OdradekError, salvageable: boolean): RefusalReport {
  const { code, message } = error
  const { file, position } = error instanceof DamagedFile ? error : { file: null, position: null }
  return { code, message, file, position, salvageable }
}

// ── without ────────────────────────────────────────────────────────────────────────────────────────────

async function reportOfFiles(fs: FileSystem, crc32c: Crc32c, damage: DamagedFile): Promise<Inspection> {
  const logs: LogReport[] = []
  for (const { id, segments } of await logsOnDisk(fs, crc32c)) {
    const directory = directoryOf(id)
    const described = await describeSegments({ fs, crc32c, log: id, start: 0 }, segments)
    const names = new Set(await fs.list(directory))
    logs.push({
      ...id,
      topic: null,
      directory,
      start: null,
      high: null,
      end: null,
      epoch: null,
      checkpointEnd: null,
      segments: described.map((segment) => {
        const report = segmentOf(segment, names)
        return segment.sealed ? report : { ...report, next: null }
      }),
    })
  }
  return {
    format: null,
    durability: null,
    clean: null,
    checkpoint: null,
    journal: null,
    logs: logs.sort(byName),
    recovery: {
      outcome: 'refuse',
      refusals: [refusalOf(damage, false)],
      aside: [],
      replay: { groups: 0, batches: 0, batchBytes: 0 },
      cut: [],
      remove: [],
      removeDirectories: [],
      newEpochs: null,
    },
  }
}

// ── small things ───────────────────────────────────────────────────────────────────────────────────────

async function sizeOf(fs: FileSystem, path: string): Promise<number | null> {
  if (!(await fs.exists(path))) return null
  const file = await fs.open(path, 'read')
  try {
    return await file.size()
  } finally {
    await file.close()
  }
}

/** In ISO 8601; null for none, or one that no date can be. */
export function timeOf(timestamp: number): string | null {
  return timestamp < 0 || timestamp > MAX_DATE_MS ? null : new Date(timestamp).toISOString()
}

function byName(one: LogReport, two: LogReport): number {
  const [a, b] = [one.topic ?? one.topicId, two.topic ?? two.topicId]
  return a === b ? one.partition - two.partition : a < b ? -1 : 1
}
