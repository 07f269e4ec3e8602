/**
 * What a data directory holds when it is opened: the checkpoint, and what the journal says happened since. Nothing is
 * changed before all of it was read; then segments are brought to where the journal ends, and the engine writes a
 * new checkpoint that says so. Killed anywhere in between, it begins again from the same checkpoint and journal.
 *
 *   checkpoint ─► segments cut to what it says ─► groups after it, in order ─► segments synced ─► new checkpoint
 *
 * A torn tail (a group that was being written) is copied aside and left out: nobody was told that it is in. Damage
 * before that is corruption, and refused, unless `salvage` says that what is left is better than nothing.
 */
import { OdradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import { PartitionState } from '../state.ts'
import { type Checkpoint, readCheckpoint, type StoredLog } from './checkpoint.ts'
import type { FilePool } from './file-pool.ts'
import type { FileSystem } from './fs.ts'
import { type LogId, seeded } from './group.ts'
import { type Group, type JournalTail, readJournal } from './journal-reader.ts'
import { applyChanges } from './meta.ts'
import { Replay } from './replay.ts'
import { Segments } from './segments.ts'

export interface RecoveryOptions {
  readonly fs: FileSystem
  readonly pool: FilePool
  readonly crc32c: Crc32c
  readonly segmentBytes: number
  readonly salvage: boolean
}

/** A log as it is after recovery. */
export interface RecoveredLog {
  readonly id: LogId
  readonly topic: string
  readonly segments: Segments
  readonly state: PartitionState
  start: number
  end: number
  epoch: number
  /** Newest timestamp that was given to a record in process. */
  stamped: number
}

export interface Recovered {
  readonly logs: Map<string, RecoveredLog>
  readonly meta: Map<string, unknown>
  /** Deleted, with files that are still to be removed. */
  readonly deleting: readonly LogId[]
  /** Sequence of the last group that is in. */
  readonly sequence: number
  /** See `Checkpoint`. */
  readonly seed: number
  /** What was left out, or may be missing, for people. */
  readonly findings: readonly string[]
}

function nothingYet(): Checkpoint {
  const [seed] = crypto.getRandomValues(new Uint32Array(1))
  const empty = { logs: [], deleting: [], meta: [] }
  return { format: 1, sequence: 0, clean: true, durability: 'fsync', seed: seed as number, ...empty }
}

export function keyOf({ topicId, partition }: LogId): string {
  return `${topicId}/${partition}`
}

/** @throws OdradekError CORRUPT_LOG, STORAGE_ERROR, STORAGE_FULL */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const { fs, crc32c } = options
  const stored = await readCheckpoint(fs, crc32c)
  if (stored === undefined && (await fs.list('logs')).length > 0) {
    throw new OdradekError(
      'CORRUPT_LOG',
      'the data directory has logs, but its file "checkpoint" is missing; restore it from a copy',
    )
  }
  const checkpoint = stored ?? nothingYet()
  const journal = await readJournal(fs, checkpoint.sequence, seeded(crc32c, checkpoint.seed))
  const findings: string[] = []
  await settleTail(options, journal.tail, findings)
  const { deleted, starts } = lookAhead(journal.groups, checkpoint.deleting)
  const gone = new Set(deleted.map(keyOf))
  const logs = new Map<string, RecoveredLog>()
  for (const log of checkpoint.logs) {
    if (!gone.has(keyOf(log))) logs.set(keyOf(log), await restored(options, log, starts.get(keyOf(log))))
  }
  const meta = new Map(checkpoint.meta)
  await replay(options, journal.groups, logs, meta, gone)
  const lost = journal.tail.kind === 'corrupt'
  if (lost || (checkpoint.durability === 'os' && !checkpoint.clean)) startEpochs(logs, findings, lost)
  return {
    logs,
    meta,
    deleting: deleted,
    sequence: journal.next - 1,
    seed: checkpoint.seed,
    findings,
  }
}

/** What has to be known of the groups before segments are looked at: files may be gone for a reason. */
function lookAhead(
  groups: Iterable<Group>,
  deleting: readonly LogId[],
): { readonly deleted: readonly LogId[]; readonly starts: ReadonlyMap<string, number> } {
  const deleted = [...deleting]
  const starts = new Map<string, number>()
  for (const { entries } of groups) {
    for (const entry of entries) {
      if (entry.kind === 'delete') deleted.push(entry.log)
      if (entry.kind === 'start') starts.set(keyOf(entry.log), entry.offset)
    }
  }
  return { deleted, starts }
}

async function restored(
  options: RecoveryOptions,
  stored: StoredLog,
  neededFrom = stored.start,
): Promise<RecoveredLog> {
  const { topicId, partition, topic, start, end, epoch, stamped } = stored
  const id = { topicId, partition }
  const segments = await Segments.restore({ ...options, log: id, start, neededFrom }, stored.segments)
  return { id, topic, segments, state: PartitionState.fromJSON(stored.state), start, end, epoch, stamped }
}

async function created(options: RecoveryOptions, id: LogId): Promise<RecoveredLog> {
  const segments = await Segments.restore({ ...options, log: id, start: 0 }, [])
  const state = new PartitionState()
  state.epochStarted(0, 0)
  return { id, topic: '', segments, state, start: 0, end: 0, epoch: 0, stamped: 0 }
}

async function replay(
  options: RecoveryOptions,
  groups: Iterable<Group>,
  logs: Map<string, RecoveredLog>,
  meta: Map<string, unknown>,
  gone: ReadonlySet<string>,
): Promise<void> {
  const replays = new Map<string, Replay>()
  const scan = new BatchScan()
  for (const { entries } of groups) {
    for (const entry of entries) {
      if (entry.kind === 'meta') applyChanges(meta, entry.changes)
      if (entry.kind === 'meta' || entry.kind === 'delete' || gone.has(keyOf(entry.log))) continue
      const key = keyOf(entry.log)
      let of = replays.get(key)
      if (of === undefined) {
        const log = logs.get(key) ?? (await created(options, entry.log))
        logs.set(key, log)
        of = new Replay(log, scan)
        replays.set(key, of)
      }
      if (entry.kind === 'start') of.start(entry.offset)
      else await of.batch(entry.bytes)
    }
  }
  for (const each of replays.values()) await each.finish()
}

/** Refuses corruption, and puts aside what is left out. */
async function settleTail(options: RecoveryOptions, tail: JournalTail, findings: string[]): Promise<void> {
  if (tail.kind === 'clean') return
  const { file, position } = tail
  if (tail.kind === 'corrupt' && !options.salvage) {
    throw new OdradekError(
      'CORRUPT_LOG',
      `${file} is damaged at byte ${position} (${tail.why}), and later groups show that it was whole before; ` +
        'restore it from a copy, or open with `salvage: true` to go on with what is before it',
    )
  }
  const copy = await putAside(options.fs, file, position)
  findings.push(
    tail.kind === 'torn'
      ? `a group was being written to ${file} at byte ${position} when the process ended; it was left out, and is in ${copy}`
      : `${file} is damaged at byte ${position} (${tail.why}); what follows was left out, and is in ${copy}`,
  )
}

async function putAside(fs: FileSystem, path: string, position: number): Promise<string> {
  await fs.makeDirectory('torn')
  const copy = `torn/${path.replaceAll('/', '-')}-${position}`
  await fs.remove(copy)
  const from = await fs.open(path, 'read')
  try {
    const to = await fs.open(copy, 'create')
    try {
      const bytes = new Uint8Array((await from.size()) - position)
      await to.write(bytes.subarray(0, await from.read(bytes, position)), 0)
      await to.sync()
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
  await fs.syncDirectory('torn')
  return copy
}

/** What was lost cannot be told from what never was: whoever saw more than is here now must be able to notice. */
function startEpochs(logs: ReadonlyMap<string, RecoveredLog>, findings: string[], lost: boolean): void {
  for (const log of logs.values()) {
    log.epoch++
    log.state.epochStarted(log.epoch, log.end)
  }
  if (!lost && logs.size > 0) {
    findings.push(
      'the process ended without a close under durability "os": the newest records may be missing',
    )
  }
}
