/**
 * Group commit: whatever was accepted by any log, and whatever `Meta` was told, up to one moment becomes one group in
 * the journal, and takes effect together. While a group is on its way to the disk the next one gathers.
 *
 *   accepted ─► │ gathering │ ─ form ─► │ in the journal │ ─ sync ─► │ committed │ ─► high advances, promises resolve
 *                   ▲                        one at a time
 *                   └ refused when the journal has no room for it
 *
 * What is accepted will fit: room for it is reserved in the allocated part of the journal. So a full disk is met where
 * nothing has been promised yet, and clears up without a restart when space is freed.
 *
 * The first write or sync that fails ends it all: what was under way is unknown, and nothing is accepted any more.
 */
import type { Clock } from '../../model/clock.ts'
import { OdradekError } from '../../model/errors.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { type Capture, type Checkpointer, Checkpointing } from './checkpointing.ts'
import { GroupBuilder, type LogId } from './group.ts'
import type { Journal } from './journal.ts'
import { isFull, JournalRoom, type Refused } from './journal-room.ts'
import { Outcome } from './outcome.ts'

/** A log, to the committer. `roomAgain` is called after it was refused for a moment. */
export interface Participant extends Refused {
  /** Puts all that is pending into the group. Synchronous: a group is one moment of all logs. */
  form(group: GroupBuilder): void
  /** What was formed is accepted for good. */
  committed(): void
  /** Whether what was formed is on the disk is not known, and nothing more will be. */
  failed(): void
}

export interface CommitterOptions {
  readonly durability: 'fsync' | 'os'
  /** `os`: milliseconds until what was written is synced. */
  readonly flushMs: number
  readonly firstSequence: number
  /** Told of failures that nobody waits for. */
  readonly report: (error: unknown, what: string) => void
}

/** Bytes that a batch costs in the journal beyond its own, at most, for a log id of usual length. */
const ENTRY_BYTES = 128
/** What a group costs. */
const GROUP_BYTES = 64
/** Of the journal's capacity, what one group may take. */
const GROUP_SHARE = 4

/** Why something is not taken now. */
export type Unready = 'NO_ROOM' | 'STORAGE_FULL' | 'POISONED'

export class Committer {
  /** The most that one group may take of records. */
  readonly maxGroupBytes: number
  readonly #journal: Journal
  readonly #clock: Clock
  readonly #crc32c: Crc32c
  readonly #room: JournalRoom
  readonly #checkpointing: Checkpointing
  readonly #options: CommitterOptions
  readonly #participants = new Set<Participant>()
  readonly #dirty = new Set<Participant>()
  /** Of `Meta`, as JSON. */
  #changes: string[] = []
  #deletes: LogId[] = []
  /** Of the group before, for the next one. */
  #groupBuffer: Uint8Array | undefined
  /** Reserved for what is gathering. */
  #gatheringBytes = 0
  /** Reserved for what is on its way. */
  #formedBytes = 0
  #gathering = new Outcome()
  #formed: Outcome | null = null
  /** Of the newest group that was formed, that is in the journal, and that is on the disk for certain. */
  #sequence: number
  #written: number
  #synced: number
  #scheduled = false
  #running: Promise<void> | null = null
  #flushArmed = false
  #closing = false
  #failure: OdradekError | undefined

  constructor(
    journal: Journal,
    clock: Clock,
    crc32c: Crc32c,
    checkpointer: Checkpointer,
    options: CommitterOptions,
  ) {
    this.maxGroupBytes = Math.floor(journal.capacityBytes / GROUP_SHARE) - GROUP_BYTES
    this.#journal = journal
    this.#clock = clock
    this.#crc32c = crc32c
    const failed = (cause: unknown): void => this.fail(cause)
    this.#room = new JournalRoom(journal, clock, { report: options.report, failed })
    this.#checkpointing = new Checkpointing(checkpointer, this.#room, failed)
    this.#options = options
    this.#sequence = this.#written = this.#synced = options.firstSequence - 1
  }

  /** The sequence of the newest group that was formed. */
  get sequence(): number {
    return this.#sequence
  }

  /** Why nothing is accepted any more. */
  get failure(): OdradekError | undefined {
    return this.#failure ?? (this.#closing ? closed() : undefined)
  }

  // ── accepting ─────────────────────────────────────────────────────────────────────────────────

  /** Whether this much, in so many batches, can never be taken at once. */
  isTooLarge(sizeBytes: number, batches: number = 1): boolean {
    return sizeBytes + batches * ENTRY_BYTES > this.maxGroupBytes
  }

  /**
   * Why this much, in so many more batches, would not fit now; `undefined` where it would. Who must wait is
   * told when to ask again.
   */
  refusal(participant: Participant, sizeBytes: number, batches: number = 1): Unready | undefined {
    if (this.failure !== undefined) return 'POISONED'
    const wanted = this.#gatheringBytes + sizeBytes + batches * ENTRY_BYTES
    if (wanted <= this.maxGroupBytes) {
      const fits = GROUP_BYTES + this.#formedBytes + wanted <= this.#journal.roomBytes
      if (fits && !this.#isStuck()) return undefined
      this.#room.extend()
    }
    return this.#room.refuse(participant)
  }

  /** Whether the group that gathers would wait for a checkpoint that a full disk holds up. */
  #isStuck(): boolean {
    return this.#room.isFull && this.#checkpointing.isUnderWay && this.#isUsedUp(2, this.#formedBytes)
  }

  /** Takes it: `participant` has it, and will put it into the next group. */
  accept(participant: Participant, sizeBytes: number, batches: number = 1): void {
    this.#gatheringBytes += sizeBytes + batches * ENTRY_BYTES
    this.touch(participant)
  }

  /** Something of it belongs into the next group. */
  touch(participant: Participant): void {
    this.#dirty.add(participant)
    this.#schedule()
  }

  /** Resolves when the changes, if there are any, and all that was accepted before them are committed. */
  put(changes?: string): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (changes !== undefined) this.#changes.push(changes)
    return this.#lastly()
  }

  /** Resolves when the log counts as gone. */
  delete(log: LogId): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    this.#deletes.push(log)
    return this.#lastly()
  }

  #lastly(): Promise<void> {
    if (!this.#gathers()) return this.formed
    this.#schedule()
    return this.gathering
  }

  /** Resolves when what is gathering now is committed, for whoever has a part in it; rejects with OUTCOME_UNKNOWN. */
  get gathering(): Promise<void> {
    return this.#failure === undefined ? this.#gathering.promise : Promise.reject(this.#failure)
  }

  /** The same for what is on its way, if anything is. */
  get formed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    return this.#formed?.promise ?? Promise.resolve()
  }

  /** Everything accepted so far is on the disk, whatever the durability. */
  async flush(): Promise<void> {
    await (this.#gathers() ? this.gathering : this.formed)
    await this.settle()
  }

  /** What is committed is on the disk, whatever the durability. */
  async settle(): Promise<void> {
    this.#throwFailure()
    await this.#sync(this.#written)
    this.#throwFailure()
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  // ── committing ────────────────────────────────────────────────────────────────────────────────

  /** In the next turn, so that all who publish in this one share the group. */
  #schedule(): void {
    if (this.#scheduled || this.#running !== null || this.#failure !== undefined) return
    this.#scheduled = true
    this.#clock.nextTurn(() => {
      this.#scheduled = false
      if (this.#running === null) this.#run()
    })
  }

  /** Whether there is something that the next group is formed for. */
  #gathers(): boolean {
    return this.#dirty.size > 0 || this.#changes.length > 0 || this.#deletes.length > 0
  }

  /** A file that one huge group has used up is left with an empty one. */
  #hasWork(): boolean {
    return this.#gathers() || this.#isUsedUp(1) || this.#checkpointing.isDue
  }

  /** Whether the group to be formed is the last one in its file. */
  get #isLast(): boolean {
    return this.#isUsedUp(2) || this.#checkpointing.isDue
  }

  /** A checkpoint is taken soon, whether the journal's file is used up or not. */
  wantCheckpoint(): void {
    this.#checkpointing.want()
    this.#schedule()
  }

  /** Whether so many more groups might not fit into the file. What is left when it closes does. */
  #isUsedUp(groups: number, moreBytes = 0): boolean {
    if (this.#closing) return false
    const { usedBytes, capacityBytes } = this.#journal
    return usedBytes + moreBytes + groups * (this.maxGroupBytes + GROUP_BYTES) > capacityBytes
  }

  #run(): void {
    this.#running = this.#commitAll().finally(() => {
      this.#running = null
      if (this.#hasWork()) this.#schedule()
    })
  }

  async #commitAll(): Promise<void> {
    while (this.#hasWork() && this.#failure === undefined) {
      try {
        await this.#commit()
      } catch (cause) {
        this.fail(cause)
      }
      // Whoever was woken by this group may join the next one.
      if (this.#hasWork()) await new Promise<void>((resolve) => this.#clock.nextTurn(resolve))
    }
  }

  async #commit(): Promise<void> {
    if (this.#isLast) await this.#checkpointing.idle()
    this.#throwFailure()
    const last = this.#isLast
    const participants = [...this.#dirty]
    const group = this.#form(participants)
    const outcome = this.#gathering
    const sequence = ++this.#sequence
    this.#gathering = new Outcome()
    this.#formed = outcome
    this.#formedBytes = this.#gatheringBytes
    this.#gatheringBytes = 0
    const capture = last ? this.#checkpointing.capture(sequence) : null
    await this.#fits(group.sizeBytes)
    await this.#journal.append(group.finish(sequence, this.#synced, this.#crc32c))
    this.#groupBuffer = group.buffer
    this.#written = sequence
    if (this.#options.durability === 'fsync') await this.#sync(sequence)
    else this.#armFlush()
    this.#throwFailure()
    this.#formed = null
    this.#formedBytes = 0
    for (const participant of participants) participant.committed()
    outcome.resolve()
    if (capture !== null) await this.#rotate(capture)
    else if (this.#journal.roomBytes < this.#journal.usedBytes) this.#room.extend()
    this.#room.tellRefused()
  }

  #form(participants: readonly Participant[]): GroupBuilder {
    this.#dirty.clear()
    const group = new GroupBuilder(this.#groupBuffer)
    for (const participant of participants) participant.form(group)
    for (const changes of this.#changes) group.meta(changes)
    for (const log of this.#deletes) group.delete(log)
    this.#changes = []
    this.#deletes = []
    return group
  }

  /** Records were reserved for, but changes of `Meta` were not: the journal may have to grow for those. */
  async #fits(sizeBytes: number): Promise<void> {
    while (this.#journal.roomBytes < sizeBytes) {
      await this.#room.growFor(sizeBytes)
      this.#throwFailure()
      if (this.#journal.roomBytes >= sizeBytes || !this.#room.isFull) continue
      if (this.#closing) {
        throw new OdradekError('STORAGE_FULL', 'the disk is full, and what was accepted last is not on it')
      }
      await this.#room.pause()
    }
  }

  async #sync(sequence: number): Promise<void> {
    if (this.#synced >= sequence) return
    try {
      await this.#journal.sync()
    } catch (cause) {
      this.fail(cause)
      return
    }
    this.#synced = Math.max(this.#synced, sequence)
  }

  #armFlush(): void {
    if (this.#flushArmed) return
    this.#flushArmed = true
    this.#clock.setTimer(() => {
      this.#flushArmed = false
      if (this.#failure === undefined) void this.#sync(this.#written).then(() => this.#armAgain())
    }, this.#options.flushMs)
  }

  #armAgain(): void {
    if (this.#synced < this.#written && this.#failure === undefined) this.#armFlush()
  }

  /** The other file is free, since the checkpoint before this one is on the disk. */
  async #rotate(capture: Capture): Promise<void> {
    await this.#journal.rotate()
    this.#synced = this.#written
    this.#checkpointing.begin(capture)
  }

  /** What is written behind the journal finds no room on the disk: neither will the journal for long. */
  storageFull(error: unknown): void {
    this.#room.full(error)
  }

  storageFreed(): void {
    this.#room.freed()
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────

  /** Nothing is accepted any more, and what is under way is unknown. The first reason counts. */
  fail(cause: unknown): void {
    if (this.#failure !== undefined) return
    const failure = isFull(cause) ? cause : unknownOutcome(cause)
    this.#failure = failure
    this.#options.report(failure, 'the journal failed, and accepts nothing more')
    for (const participant of this.#participants) participant.failed()
    this.#formed?.reject(failure)
    this.#gathering.reject(failure)
    this.#checkpointing.end()
    this.#room.end()
  }

  /**
   * Takes nothing more, and flushes. Logs take nothing more already.
   * @throws OdradekError OUTCOME_UNKNOWN, STORAGE_FULL where that failed
   */
  async close(): Promise<void> {
    this.#closing = true
    this.#checkpointing.close()
    await this.flush()
  }

  /** Resolves when nothing is under way any more, after `close`. */
  async idle(): Promise<void> {
    await this.#running
    await this.#checkpointing.idle()
    await this.#room.idle()
  }

  /** After `close` and `idle`. */
  end(): Promise<void> {
    return this.#journal.close()
  }

  join(participant: Participant): void {
    this.#participants.add(participant)
  }

  leave(participant: Participant): void {
    this.#participants.delete(participant)
    this.#dirty.delete(participant)
    this.#room.forget(participant)
  }
}

function closed(): OdradekError {
  return new OdradekError('CLOSED', 'the file engine is closed')
}

function unknownOutcome(cause: unknown): OdradekError {
  if (cause instanceof OdradekError && cause.code === 'OUTCOME_UNKNOWN') return cause
  return new OdradekError(
    'OUTCOME_UNKNOWN',
    'the journal could not be written; reopen the directory to know what is in it',
    { cause },
  )
}
