/**
 * A partition on disk: the contract over what is pending (pending.ts), what is in memory of it (resident.ts), and what
 * is in segments (segments.ts).
 *
 *   offsets   start ─────────────── written ───────────── high ──────────── end
 *             │ in segments; in memory │ in the journal and │ pending, or on   │
 *             │ what is read           │ in memory          │ its way          │
 *
 * Records are encoded as they come, so that nothing of the caller's is kept. Readers get what was decoded from the
 * bytes, one copy for all of them. `start` is exact for every record; disk space is given back by whole segments.
 *
 * Concurrency: one thread, run to completion. Appends are synchronous and touch memory only; `form` and `committed`
 * are the committer's calls, `writeBehind` the writer's (behind.ts).
 */
import type { Batch, Columns, Slice } from '../../model/batch.ts'
import type { Clock } from '../../model/clock.ts'
import { abortedError, OdradekError } from '../../model/errors.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import {
  type Appended,
  type At,
  type ByteSlice,
  type Isolation,
  LOG_CLOSED,
  LOG_POISONED,
  LOG_STORAGE_FULL,
  type Marks,
  NO_ROOM,
  type PartitionLog,
  type PeekResult,
  type ProducerView,
  type Refusal,
  type RetentionLimits,
  type RoomMode,
  refusalError,
} from '../contract.ts'
import type { Crc32c } from '../format/crc32c.ts'
import { type Incoming, readIncoming } from '../format/intake.ts'
import { HEADER_BYTES } from '../format/layout.ts'
import type { PartitionState, Verdict } from '../state.ts'
import { Behind } from './behind.ts'
import type { StoredCompaction, StoredLog, StoredSegment } from './checkpoint.ts'
import type { Committer, Participant, Unready } from './committer.ts'
import { Compactable } from './compactable.ts'
import type { Compactor } from './compactor.ts'
import type { GroupBuilder, LogId } from './group.ts'
import { Lookup } from './lookup.ts'
import { Pending, type PendingBatch } from './pending.ts'
import { Reading } from './reading.ts'
import type { Resident } from './resident.ts'
import type { Room } from './room.ts'
import type { Segments } from './segments.ts'
import type { Writer, WrittenBehind } from './writer.ts'

/** Producers that appended nothing for a day are forgotten, as in Kafka. */
const PRODUCER_EXPIRY_MS = 86_400_000
const REFUSED = { NO_ROOM, STORAGE_FULL: LOG_STORAGE_FULL, POISONED: LOG_POISONED } as const

/** What a log is put together from. */
export interface LogParts {
  readonly id: LogId
  readonly topic: string
  readonly clock: Clock
  readonly crc32c: Crc32c
  readonly committer: Committer
  readonly segments: Segments
  readonly resident: Resident
  readonly room: Room
  readonly state: PartitionState
  readonly marks: Marks
  /** Newest timestamp given to a record in process. */
  readonly stamped: number
  readonly retention: RetentionLimits
  readonly compaction: StoredCompaction | undefined
  readonly writer: Writer
  readonly compactor: Compactor
}

export class FileLog implements PartitionLog, Participant, WrittenBehind {
  readonly topicId: string
  readonly partition: number
  readonly marks: Marks
  readonly compactable: Compactable

  readonly #parts: LogParts
  readonly #name: string
  readonly #committer: Committer
  readonly #resident: Resident
  readonly #room: Room
  readonly #state: PartitionState
  readonly #behind: Behind
  readonly #reading: Reading
  readonly #lookup: Lookup
  readonly #pending: Pending
  /** On its way to the disk. */
  #formed: readonly PendingBatch[] = []
  /** Offset after what is on its way. */
  #formedEnd: number
  /** The start that the journal has, or is being told. */
  #formedStart: number
  #stamped: number
  #ageMs: number
  #closed = false
  #poisoned = false
  readonly #wakes = new Set<() => void>()

  constructor(parts: LogParts) {
    this.#parts = parts
    this.topicId = parts.id.topicId
    this.partition = parts.id.partition
    this.marks = parts.marks
    this.#name = `${parts.topic}/${this.partition}`
    this.#committer = parts.committer
    this.#resident = parts.resident
    this.#room = parts.room
    this.#state = parts.state
    this.#behind = new Behind(parts.segments, parts.resident, this.marks, parts.committer)
    const hurry = (): void => parts.writer.hurry(this)
    this.compactable = new Compactable({ ...parts, behind: this.#behind, hurry }, parts.compaction)
    this.#reading = new Reading(this.#name, this.marks, parts.resident, parts.state)
    this.#lookup = new Lookup(parts.segments, parts.resident, this.marks)
    const { filler } = parts.resident
    this.#pending = new Pending(this.marks.end, this.marks.epoch, parts.crc32c, filler)
    this.#formedEnd = this.marks.end
    this.#formedStart = this.marks.start
    this.#stamped = parts.stamped
    this.#ageMs = parts.retention.ageMs
    this.#room.limit(parts.retention)
    this.#committer.join(this)
  }

  get records(): number {
    return this.marks.end - this.marks.start
  }

  get sizeBytes(): number {
    return this.#room.sizeBytes
  }

  bytesFrom(offset: number): number {
    return this.#room.bytesFrom(offset)
  }

  // ── appending ─────────────────────────────────────────────────────────────────────────────────

  /** A full disk counts as room: the append itself says what is wrong. */
  hasRoom(records: number, bytes: number, mode: RoomMode = 'gated'): boolean {
    if (this.#closed || this.#room.for(records, bytes, mode) === NO_ROOM) return false
    return this.#unready(bytes) !== 'NO_ROOM'
  }

  tryAppendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
    mode: RoomMode = 'gated',
  ): number {
    const start = this.#room.for(1, sizeBytes, mode)
    if (start === NO_ROOM || this.#closed) return this.#refusalOfOne()
    const unready = this.#unready(sizeBytes)
    if (unready !== undefined) return REFUSED[unready]
    if (timestamp > this.#stamped) this.#stamped = timestamp
    this.#evictTo(start)
    const offset = this.marks.end
    this.#accepted(offset + 1, sizeBytes)
    this.#pending.add(value as Uint8Array | null, key, headers, this.#stamped)
    return offset
  }

  #refusalOfOne(): number {
    if (this.#closed) return LOG_CLOSED
    return this.#poisoned ? LOG_POISONED : NO_ROOM
  }

  tryAppend(batch: Batch, mode: RoomMode = 'gated'): Appended | Refusal {
    if (this.#closed) return 'CLOSED'
    if (this.#poisoned) return 'POISONED'
    if (batch.bytes !== null || batch.producer !== null) return this.#tryAppendBytes(batch, mode)
    const { count, sizeBytes } = batch
    const refusal = this.#makeRoom(count, sizeBytes, mode)
    if (refusal !== undefined) return refusal
    const rows = batch.columns as Columns
    const appended = this.#accepted(this.marks.end + count, sizeBytes)
    for (let row = 0; row < count; row++) {
      this.#stamped = Math.max(this.#stamped, rows.timestampAt(row))
      const value = rows.values[row] as Uint8Array | null
      this.#pending.add(value, rows.keyAt(row), rows.headersAt(row), this.#stamped)
    }
    return appended
  }

  async append(batch: Batch, signal?: AbortSignal): Promise<Appended> {
    if (signal?.aborted) throw abortedError(signal, 'append')
    const answer = this.tryAppend(batch)
    if (typeof answer === 'string') throw refusalError(answer, this.#name)
    await this.durable(answer.last)
    return answer
  }

  durable(last: number): Promise<void> {
    if (last < this.marks.high) return Promise.resolve()
    return last < this.#formedEnd ? this.#committer.formed : this.#committer.gathering
  }

  #tryAppendBytes(batch: Batch, mode: RoomMode): Appended | Refusal {
    const incoming = readIncoming(batch, null, this.#parts.crc32c, this.#stamped)
    if (incoming === 'INVALID') return incoming
    const { count, bytes, maxTimestamp, producer, marker } = incoming
    this.#pending.seal()
    if (this.#isTooLarge(count, bytes.length)) return 'TOO_LARGE'
    const verdict = this.#verdict(incoming)
    if (verdict !== 'ok') return verdict
    const refusal = this.#makeRoom(count, bytes.length, mode)
    if (refusal !== undefined) return refusal
    const base = this.marks.end
    const next = base + count
    const openSince = producer === null ? -1 : this.#state.openSince(producer.id)
    const appended = this.#accepted(next, bytes.length)
    this.#pending.addBatch(incoming, openSince)
    if (batch.bytes === null) this.#stamped = Math.max(this.#stamped, maxTimestamp)
    if (producer !== null) {
      if (marker === null) this.#state.appended(producer, base, next - 1, maxTimestamp)
      else this.#state.marker(producer.id, producer.epoch, marker.commit, base, maxTimestamp)
    }
    return appended
  }

  #verdict({ count, producer, marker }: Incoming): Verdict {
    if (producer === null) return 'ok'
    if (marker !== null) return this.#state.checkMarker(producer.id, producer.epoch)
    return this.#state.check(producer, count)
  }

  #isTooLarge(records: number, bytes: number): boolean {
    const batches = this.#pending.batchesOf(bytes)
    return (
      this.#room.isTooLarge(records, bytes) ||
      this.#committer.isTooLarge(bytes + batches * HEADER_BYTES, batches)
    )
  }

  #makeRoom(records: number, bytes: number, mode: RoomMode): Refusal | undefined {
    if (this.#isTooLarge(records, bytes)) return 'TOO_LARGE'
    const start = this.#room.for(records, bytes, mode)
    if (start === NO_ROOM) return 'NO_ROOM'
    const unready = this.#unready(bytes)
    if (unready === undefined) this.#evictTo(start)
    return unready
  }

  #unready(sizeBytes: number): Unready | undefined {
    const batches = this.#pending.batchesOf(sizeBytes)
    return this.#committer.refusal(this, sizeBytes + batches * HEADER_BYTES, batches)
  }

  /** Before it is pending: what it costs depends on what is. */
  #accepted(end: number, sizeBytes: number): Appended {
    const base = this.marks.end
    this.marks.end = end
    this.#room.appended(sizeBytes)
    const batches = this.#pending.batchesOf(sizeBytes)
    this.#committer.accept(this, sizeBytes + batches * HEADER_BYTES, batches)
    return { base, last: end - 1, duplicate: false }
  }

  // ── committing ────────────────────────────────────────────────────────────────────────────────

  form(group: GroupBuilder): void {
    if (this.marks.start > this.#formedStart) {
      this.#formedStart = this.marks.start
      group.start(this.#parts.id, this.#formedStart)
    }
    this.#formed = this.#pending.take()
    this.#formedEnd = this.marks.end
    this.#room.formed(this.#formed)
    for (const { bytes } of this.#formed) group.batch(this.#parts.id, bytes)
  }

  committed(): void {
    const formed = this.#formed
    this.#formed = []
    this.#behind.start = this.#formedStart
    let sizeBytes = 0
    for (const batch of formed) {
      sizeBytes += batch.bytes.length
      this.#resident.append(batch)
      if (batch.aborts !== null) this.#resident.hideAborted(batch.aborts.producerId, batch.aborts.since)
    }
    const high = formed.at(-1)?.next ?? this.marks.high
    this.#advance(high)
    if (this.#behind.isAwaited) this.#parts.writer.hurry(this)
    else if (sizeBytes > 0) this.#parts.writer.add(this, sizeBytes)
  }

  /** Moves `high`, and `stable` behind it. */
  #advance(high: number): void {
    const { marks } = this
    const stable = Math.max(this.#state.stable(high), marks.start)
    if (high === marks.high && stable === marks.stable) return
    marks.high = high
    marks.stable = stable
    this.#wake()
  }

  /** Who waits for room of any kind waits for nothing now. */
  failed(): void {
    this.#poisoned = true
    this.#wake()
  }

  roomAgain(): void {
    this.#wake()
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    return this.#reading.peek(from, max, isolation, into)
  }

  load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice> {
    return this.#reading.load(from, maxBytes, isolation, signal)
  }

  read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice> {
    return this.#reading.read(from, maxBytes, isolation, signal)
  }

  onAdvance(wake: () => void): () => void {
    this.#wakes.add(wake)
    return () => this.#wakes.delete(wake)
  }

  #wake(): void {
    for (const wake of this.#wakes) wake()
  }

  // ── retention ─────────────────────────────────────────────────────────────────────────────────

  gate(lowestNeeded: number): void {
    this.#room.gate = lowestNeeded
    this.#moveStart(this.#room.startWithin())
  }

  configure(retention: RetentionLimits): void {
    if (this.#closed) return
    this.#ageMs = retention.ageMs
    this.#room.limit(retention)
    this.#moveStart(this.#room.startWithin())
    this.expire(this.#parts.clock.now())
  }

  expire(now: number): void {
    this.#state.expireProducers(now - PRODUCER_EXPIRY_MS)
    if (this.#ageMs === Number.POSITIVE_INFINITY) return
    this.#moveStart(this.#lookup.startAfter(now - this.#ageMs))
  }

  async trim(before: number): Promise<void> {
    this.#moveStart(before)
    const { start } = this.marks
    if (start > this.#formedStart) await this.#committer.gathering
    else if (start > this.#behind.start) await this.#committer.formed
  }

  #moveStart(target: number): void {
    const allowed = Math.min(target, this.#room.gate, this.marks.high)
    if (this.#closed || allowed <= this.marks.start) return
    this.#evictTo(allowed)
    this.#committer.touch(this)
    this.#wake()
  }

  #evictTo(start: number): void {
    const { marks } = this
    if (start <= marks.start) return
    marks.start = start
    marks.stable = Math.max(marks.stable, start)
    this.#room.trimmed(start)
    this.#state.trim(start)
    this.#resident.trim(start)
  }

  // ── behind the journal ────────────────────────────────────────────────────────────────────────

  /** Writes what is committed to segments, and gives back those below the start. */
  async writeBehind(): Promise<void> {
    await this.#behind.write()
    this.#parts.compactor.consider(this.compactable)
  }

  /** Right after a group was formed: what it takes to come back to this moment. `segments` follow when they are there. */
  capture(): {
    readonly stored: Omit<StoredLog, 'segments'>
    readonly segments: Promise<readonly StoredSegment[]>
  } {
    const segments = this.#behind.fence(this.marks.end)
    this.#parts.writer.hurry(this)
    return { stored: this.#stored(), segments }
  }

  /** Lets go of who waits for `segments`, which are not to be used then. */
  forgetCapture(): void {
    this.#behind.open()
  }

  /** When nothing is pending: all of it is written, and synced. */
  async settled(): Promise<StoredLog> {
    await this.writeBehind()
    await this.sync()
    return { ...this.#stored(), segments: this.#parts.segments.stored() }
  }

  #stored(): Omit<StoredLog, 'segments'> {
    const { start, end, epoch } = this.marks
    const { id, topic } = this.#parts
    const state = this.#state.toJSON()
    return { ...id, topic, start, end, epoch, stamped: this.#stamped, state, ...this.compactable.stored() }
  }

  /**
   * Makes what was written behind last.
   * @throws OdradekError STORAGE_ERROR, also for a full disk: what a sync has failed for is not to be had again.
   */
  async sync(): Promise<void> {
    try {
      await this.#parts.segments.sync()
    } catch (cause) {
      throw new OdradekError('STORAGE_ERROR', `segments of ${this.#name} could not be synced`, { cause })
    }
  }

  // ── looking up ────────────────────────────────────────────────────────────────────────────────

  offsetAt(timestamp: number): Promise<At | undefined> {
    return this.#lookup.offsetAt(timestamp)
  }

  newest(): Promise<At | undefined> {
    return this.#lookup.newest()
  }

  epochEnd(epoch: number): { epoch: number; endOffset: number } | undefined {
    return this.#state.epochEnd(epoch, this.marks.end)
  }

  producers(): Iterable<ProducerView> {
    return this.#state.producers()
  }

  async flush(): Promise<void> {
    if (!this.#closed) await this.#committer.flush()
  }

  /** Pending records are still committed: they were accepted. */
  async close(): Promise<void> {
    this.#closed = true
    this.#reading.closed = true
    this.#wakes.clear()
  }

  /** As before `close`, but for those who listened, or needed something. */
  reopen(): void {
    if (this.#closed) this.#room.gate = Number.POSITIVE_INFINITY
    this.#closed = false
    this.#reading.closed = false
  }

  /** Its end is committed: nothing more is written to its files, and nothing is kept. */
  abandon(): void {
    this.#committer.leave(this)
    this.#behind.end()
    this.#resident.clear()
  }

  get isAbandoned(): boolean {
    return this.#behind.isOver
  }
}
