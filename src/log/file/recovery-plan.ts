/**
 * What opening a data directory will do, decided before any of it is done: recovery carries it out, `odradek inspect` shows
 * it. Reads the checkpoint, the journal, and names and sizes of segments; changes nothing.
 *
 *   checkpoint ─► groups of the journal ─► files of each log ─► refusals, or what stays, is cut, removed and replayed
 */
import { type OdradekError, odradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import {
  CHECKPOINT_FILE,
  type Checkpoint,
  damagedCheckpoint,
  readCheckpoint,
  type StoredLog,
} from './checkpoint.ts'
import { DamagedFile } from './damage.ts'
import { fewAtOnce } from './few-at-once.ts'
import type { FileSystem } from './fs.ts'
import { type Entry, type EntryVisitor, type LogId, seeded } from './group.ts'
import { JOURNAL_DIRECTORY, JOURNAL_FILES } from './journal.ts'
import { walkEntries } from './journal-entries.ts'
import {
  type Group,
  type JournalContent,
  type JournalRest,
  type JournalTail,
  readJournal,
} from './journal-reader.ts'
import { LOGS_DIRECTORY } from './segment-paths.ts'
import { planSegments, type SegmentPlan } from './segment-plan.ts'

export interface RecoveryPlan {
  readonly checkpoint: Checkpoint
  readonly journal: JournalContent
  /** What keeps the directory from being opened, in the order in which it is told. */
  readonly refusals: readonly Refused[]
  /** The parts of the journal that are left out, and where they are copied to first. */
  readonly aside: readonly Aside[]
  /** Those of the checkpoint that are not deleted. */
  readonly kept: readonly KeptLog[]
  /** First told of by the journal, in its order: where each of them has files, they are removed. */
  readonly created: readonly CreatedLog[]
  /** Deleted, with files that may still be there. */
  readonly deleted: readonly LogId[]
  /** How often each log is deleted in the journal: its entries before the last time are of a log that is gone. */
  readonly deletions: ReadonlyMap<string, number>
  /** Why every log begins a new leader epoch: damage was left out, or records may be missing. */
  readonly newEpochs: 'damage' | 'unclean' | null
}

export interface Refused {
  readonly error: OdradekError
  /** With `salvage` the directory is opened all the same. */
  readonly salvageable: boolean
}

export interface Aside extends JournalRest {
  readonly copy: string
}

export interface KeptLog {
  readonly stored: StoredLog
  /** Where it begins by what the journal says. */
  readonly neededFrom: number
  /** Undefined where that is why opening is refused. */
  readonly segments: SegmentPlan | undefined
}

export interface CreatedLog {
  readonly id: LogId
  readonly segments: SegmentPlan
}

export interface LivingEntry {
  readonly entry: Exclude<Entry, { readonly kind: 'delete' }>
  readonly file: string
  /** Of a batch in the file. */
  readonly position: number
}

export function keyOf({ topicId, partition }: LogId): string {
  return `${topicId}/${partition}`
}

/** @throws OdradekError CORRUPT_LOG where there is no telling what the directory holds, UNSUPPORTED, STORAGE_ERROR */
export async function planRecovery(fs: FileSystem, crc32c: Crc32c): Promise<RecoveryPlan> {
  const checkpoint = await checkpointOf(fs, crc32c)
  const journal = await journalOf(fs, checkpoint, crc32c)
  const { tail } = journal
  const { deleted, deletions, starts, logs } = await lookAhead(fs, journal.groups, checkpoint.deleting)
  const refusals: Refused[] = []
  if (tail.kind === 'corrupt') refusals.push({ error: corruptJournal(tail), salvageable: true })
  const lost = await lostJournal(fs, checkpoint)
  if (lost !== undefined) refusals.push({ error: lost, salvageable: true })
  const living = checkpoint.logs.filter((stored) => !deletions.has(keyOf(stored)))
  for (const stored of living) logs.delete(keyOf(stored))
  const looks = await fewAtOnce(living, (stored) => keptLog(fs, stored, starts.get(keyOf(stored))))
  for (const { refusal } of looks) if (refusal !== undefined) refusals.push(refusal)
  const created = await fewAtOnce(logs.values(), async (id): Promise<CreatedLog> => {
    return { id, segments: await planSegments({ fs, log: id, start: 0 }, []) }
  })
  return {
    checkpoint,
    journal,
    refusals,
    aside: journal.rest.map(asideOf),
    kept: looks.map(({ log }) => log),
    created,
    deleted: [...deleted.values()],
    deletions,
    newEpochs: newEpochs(checkpoint, tail.kind === 'corrupt' || lost !== undefined),
  }
}

async function keptLog(
  fs: FileSystem,
  stored: StoredLog,
  neededFrom: number = stored.start,
): Promise<{ readonly log: KeptLog; readonly refusal?: Refused }> {
  try {
    const options = { fs, log: stored, start: stored.start, neededFrom }
    return { log: { stored, neededFrom, segments: await planSegments(options, stored.segments) } }
  } catch (error) {
    const refusal = { error: odradekError(error), salvageable: error instanceof DamagedFile }
    return { log: { stored, neededFrom, segments: undefined }, refusal }
  }
}

/** After a close there is nothing in it that the checkpoint does not have. */
async function journalOf(fs: FileSystem, checkpoint: Checkpoint, crc32c: Crc32c): Promise<JournalContent> {
  const { sequence, seed, clean } = checkpoint
  if (clean) return { groups: [], next: sequence + 1, tail: { kind: 'clean' }, rest: [] }
  return readJournal(fs, sequence, seeded(crc32c, seed))
}

async function checkpointOf(fs: FileSystem, crc32c: Crc32c): Promise<Checkpoint> {
  const stored = await readCheckpoint(fs, crc32c)
  if (stored !== undefined) return stored
  // It is there before all else, so that nothing is taken for torn whose CRCs only start elsewhere.
  for (const directory of [JOURNAL_DIRECTORY, LOGS_DIRECTORY]) {
    if ((await fs.list(directory)).length === 0) continue
    const what = `it is missing, though there is a directory "${directory}"`
    throw damagedCheckpoint({ position: 0, what }, `${CHECKPOINT_FILE}: ${what}`)
  }
  const [seed] = crypto.getRandomValues(new Uint32Array(1))
  const empty = { logs: [], deleting: [], meta: [] }
  return { format: 1, sequence: 0, clean: true, durability: 'fsync', seed: seed as number, ...empty }
}

/**
 * What has to be known of the groups before segments are looked at: files may be gone for a reason. A log may come
 * again after it was deleted, and then has nothing of the one before.
 */
async function lookAhead(fs: FileSystem, groups: readonly Group[], deleting: readonly LogId[]) {
  const deleted = new Map(deleting.map((log) => [keyOf(log), log]))
  const deletions = new Map<string, number>()
  const starts = new Map<string, number>()
  const logs = new Map<string, LogId>()
  // Those of whom another batch says nothing new.
  const known = new Set<LogId>()
  const isThere = (log: LogId): void => {
    if (known.has(log)) return
    known.add(log)
    const key = keyOf(log)
    logs.set(key, log)
    deleted.delete(key)
  }
  const visitor: EntryVisitor = {
    batch: isThere,
    meta: () => {},
    start(log, offset) {
      isThere(log)
      starts.set(keyOf(log), offset)
    },
    delete(log) {
      const key = keyOf(log)
      known.clear()
      deleted.set(key, log)
      logs.delete(key)
      deletions.set(key, (deletions.get(key) ?? 0) + 1)
    },
  }
  for await (const _ of walkEntries(fs, groups, visitor));
  return { deleted, deletions, starts, logs }
}

/** Which entries still mean something: those of a log that is deleted after them do not. Asked in their order. */
export class Living {
  /** Deletions to come. */
  readonly #toCome: Map<string, number>

  constructor({ deletions }: Pick<RecoveryPlan, 'deletions'>) {
    this.#toCome = new Map(deletions)
  }

  has(log: LogId): boolean {
    return this.#toCome.size === 0 || (this.#toCome.get(keyOf(log)) ?? 0) === 0
  }

  deleted(log: LogId): void {
    const key = keyOf(log)
    this.#toCome.set(key, (this.#toCome.get(key) ?? 0) - 1)
  }
}

/** The entries that still mean something, in order. What they are views of is good until the next one is asked for. */
export async function* livingEntries(fs: FileSystem, plan: RecoveryPlan): AsyncGenerator<LivingEntry> {
  const living = new Living(plan)
  let told: Omit<LivingEntry, 'file'>[] = []
  const visitor: EntryVisitor = {
    batch(log, bytes, from, end, position) {
      const entry = { kind: 'batch', log, bytes: bytes.subarray(from, end) } as const
      if (living.has(log)) told.push({ entry, position })
    },
    meta: (changes) => told.push({ entry: { kind: 'meta', changes }, position: 0 }),
    start(log, offset) {
      if (living.has(log)) told.push({ entry: { kind: 'start', log, offset }, position: 0 })
    },
    delete: (log) => living.deleted(log),
  }
  for await (const file of walkEntries(fs, plan.journal.groups, visitor)) {
    for (const each of told) yield { ...each, file }
    told = []
  }
}

function corruptJournal({ file, position, why }: JournalTail & { kind: 'corrupt' }): DamagedFile {
  return new DamagedFile(
    file,
    { position, what: why },
    `${file} is damaged at byte ${position} (${why}), and later groups show that it was whole before; ` +
      'restore it from a copy, or open with `salvage: true` to go on with what is before it',
  )
}

/** Both files were there before the first group, and are only needed while the directory is open. */
async function lostJournal(fs: FileSystem, checkpoint: Checkpoint): Promise<DamagedFile | undefined> {
  if (checkpoint.clean || checkpoint.sequence === 0) return undefined
  for (const file of JOURNAL_FILES) {
    if (await fs.exists(file)) continue
    const what = 'it is missing, and what was in it'
    const message = `${file}: ${what}; restore it from a copy, or open with \`salvage: true\` to go on without`
    return new DamagedFile(file, { position: 0, what }, message)
  }
  return undefined
}

function asideOf(rest: JournalRest): Aside {
  return { ...rest, copy: `torn/${rest.file.replaceAll('/', '-')}-${rest.position}` }
}

/** What was lost cannot be told from what never was: whoever saw more than is here now must be able to notice. */
function newEpochs({ durability, clean }: Checkpoint, damage: boolean): RecoveryPlan['newEpochs'] {
  if (damage) return 'damage'
  return durability === 'os' && !clean ? 'unclean' : null
}
