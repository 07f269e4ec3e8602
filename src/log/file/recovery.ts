/**
 * What a data directory holds when it is opened: the checkpoint, and what the journal says happened since. Nothing is
 * changed before all of it was read; then segments are brought to where the journal ends, and the engine writes a
 * new checkpoint that says so. Killed anywhere in between, it begins again from the same checkpoint and journal.
 *
 *   checkpoint ─► segments cut to what it says ─► groups after it, in order ─► segments synced ─► new checkpoint
 *
 * A torn tail (a group that was being written) is copied aside and left out: nobody was told that it is in. Damage
 * before that, or in segments, is corruption, and refused, unless `salvage` says that what is left is better than
 * nothing (salvage.ts).
 */
import type { Crc32c } from '../format/crc32c.ts'
import { BatchScan } from '../format/scan.ts'
import { PartitionState } from '../state.ts'
import type { StoredCompaction } from './checkpoint.ts'
import { fewAtOnce } from './few-at-once.ts'
import type { FilePool } from './file-pool.ts'
import type { FileSystem } from './fs.ts'
import type { EntryVisitor, LogId } from './group.ts'
import { walkEntries } from './journal-entries.ts'
import type { JournalTail } from './journal-reader.ts'
import { applyChanges } from './meta.ts'
import {
  type Aside,
  type CreatedLog,
  type KeptLog,
  keyOf,
  Living,
  planRecovery,
  type RecoveryPlan,
} from './recovery-plan.ts'
import { Replay } from './replay.ts'
import { salvageLog } from './salvage.ts'
import { planSegments } from './segment-plan.ts'
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
  readonly compaction?: StoredCompaction
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

/** @throws OdradekError CORRUPT_LOG, STORAGE_ERROR, STORAGE_FULL */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const plan = await planRecovery(options.fs, options.crc32c)
  const refused = plan.refusals.find(({ salvageable }) => !(salvageable && options.salvage))
  if (refused !== undefined) throw refused.error
  const { checkpoint, journal, deleted, newEpochs } = plan
  const findings: string[] = []
  for (const each of plan.aside) await putAside(options.fs, each)
  if (plan.aside.length > 0) findings.push(leftOut(journal.tail, plan.aside))
  const logs = new Map<string, RecoveredLog>()
  const salvaged = new Map<string, RecoveredLog>()
  const restore = options.salvage ? restoredAnyhow : restored
  for (const { recovered, lost } of await fewAtOnce(plan.kept, (log) => restore(options, log))) {
    logs.set(keyOf(recovered.id), recovered)
    if (lost.length > 0) salvaged.set(keyOf(recovered.id), recovered)
    findings.push(...lost)
  }
  for (const log of await fewAtOnce(plan.created, (each) => created(options, each)))
    logs.set(keyOf(log.id), log)
  const meta = new Map(checkpoint.meta)
  await replay(options.fs, plan, logs, meta)
  startEpochs(newEpochs === null ? salvaged : logs)
  if (newEpochs === 'unclean' && logs.size > 0) {
    findings.push(
      'the process ended without a close under durability "os": the newest records may be missing',
    )
  }
  return {
    logs,
    meta,
    deleting: deleted,
    sequence: journal.next - 1,
    seed: checkpoint.seed,
    findings,
  }
}

interface Restored {
  readonly recovered: RecoveredLog
  /** What is lost of it, for people. */
  readonly lost: readonly string[]
}

/** What is sound of it, if it is damaged. */
async function restoredAnyhow(options: RecoveryOptions, log: KeptLog): Promise<Restored> {
  const { stored, neededFrom } = log
  const { segments, replaced, findings } = await salvageLog({ ...options, neededFrom }, stored)
  if (findings.length === 0) return restored(options, log)
  const { fs } = options
  const plan = await planSegments({ fs, log: stored, start: stored.start, neededFrom }, segments, replaced)
  const { recovered } = await restored(options, { ...log, stored: { ...stored, segments }, segments: plan })
  return { recovered, lost: findings }
}

async function restored(options: RecoveryOptions, { stored, segments: plan }: KeptLog): Promise<Restored> {
  const { topicId, partition, topic, start, end, epoch, stamped, compaction } = stored
  const id = { topicId, partition }
  const segments = await Segments.restore({ ...options, log: id, start }, stored.segments, plan)
  const state = PartitionState.fromJSON(stored.state)
  state.trim(start)
  const compacted = compaction === undefined ? {} : { compaction }
  const recovered = { id, topic, segments, state, start, end, epoch, stamped, ...compacted }
  return { recovered, lost: [] }
}

async function created(options: RecoveryOptions, { id, segments: plan }: CreatedLog): Promise<RecoveredLog> {
  const segments = await Segments.restore({ ...options, log: id, start: 0 }, [], plan)
  const state = new PartitionState()
  state.epochStarted(0, 0)
  return { id, topic: '', segments, state, start: 0, end: 0, epoch: 0, stamped: 0 }
}

async function replay(
  fs: FileSystem,
  plan: RecoveryPlan,
  logs: ReadonlyMap<string, RecoveredLog>,
  meta: Map<string, unknown>,
): Promise<void> {
  const replays = new Map<string, Replay>()
  // The journal names a log by the same object mostly.
  const near = new Map<LogId, Replay>()
  const living = new Living(plan)
  const scan = new BatchScan()
  /** With enough to be written, or with something that is only good until the walk goes on. */
  const due = new Set<Replay>()
  const replayOf = (log: LogId): Replay => {
    const key = keyOf(log)
    const replay = replays.get(key) ?? new Replay(logs.get(key) as RecoveredLog, scan)
    replays.set(key, replay)
    near.set(log, replay)
    return replay
  }
  const visitor: EntryVisitor = {
    batch(log, bytes, from, end) {
      if (!living.has(log)) return
      const replay = near.get(log) ?? replayOf(log)
      if (replay.batch(bytes, from, end)) due.add(replay)
    },
    meta: (changes) => applyChanges(meta, changes),
    start(log, offset) {
      if (living.has(log)) replayOf(log).start(offset)
    },
    delete: (log) => living.deleted(log),
  }
  for await (const _ of walkEntries(fs, plan.journal.groups, visitor)) {
    for (const replay of due) await replay.write()
    due.clear()
  }
  await fewAtOnce(replays.values(), (replay) => replay.finish())
}

function leftOut(tail: JournalTail, aside: readonly Aside[]): string {
  const copies = aside.map(({ copy }) => copy).join(' and ')
  if (tail.kind === 'corrupt') {
    return `${tail.file} is damaged at byte ${tail.position} (${tail.why}); what follows was left out, and is in ${copies}`
  }
  const [{ file, position }] = aside as readonly [Aside]
  return `a group was being written to ${file} at byte ${position} when the process ended; it was left out, and is in ${copies}`
}

async function putAside(fs: FileSystem, { file: path, position, sizeBytes, copy }: Aside): Promise<void> {
  await fs.makeDirectory('torn')
  await fs.remove(copy)
  const from = await fs.open(path, 'read')
  try {
    const to = await fs.open(copy, 'create')
    try {
      const bytes = new Uint8Array(sizeBytes)
      await to.write(bytes.subarray(0, await from.read(bytes, position)), 0)
      await to.sync()
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
  await fs.syncDirectory('torn')
}

function startEpochs(logs: ReadonlyMap<string, RecoveredLog>): void {
  for (const log of logs.values()) {
    log.epoch++
    log.state.epochStarted(log.epoch, log.end)
  }
}
