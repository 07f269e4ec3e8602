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
 * are the committer's calls, `writeBehind` the writer's.
 */
import { type Batch, type Columns, Slice } from '../../model/batch.ts'
import type { Clock } from '../../model/clock.ts'
import { abortedError, OdradekError } from '../../model/errors.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
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
import type { PartitionState, Verdict } from '../state.ts'
import type { StoredLog, StoredSegment } from './checkpoint.ts'
import type { Committer, Participant, Reserved } from './committer.ts'
import type { GroupBuilder, LogId } from './group.ts'
import { Pending, type PendingBatch } from './pending.ts'
import type { Resident } from './resident.ts'
import type { Room } from './room.ts'
import type { Segments } from './segments.ts'

/** Producers that appended nothing for a day are forgotten, as in Kafka. */
const PRODUCER_EXPIRY_MS = 86_400_000
/** What a batch costs beyond its records. */
const BATCH_OVERHEAD_BYTES = 61

/** What a log is put together from. */
export interface LogParts {
  readonly id: LogId
  readonly topic: string
  readonly codec: ValueCodec
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
  /** There is something to be written behind. */
  readonly wakeWriter: (log: FileLog) => void
}

export class FileLog implements PartitionLog, Participant {
  readonly topicId: string
  readonly partition: number
  readonly marks: Marks

  readonly #parts: LogParts
  readonly #name: string
  readonly #committer: Committer
  readonly #resident: Resident
  readonly #room: Room
  readonly #state: PartitionState
  readonly #pending: Pending
  /** On its way to the disk. */
  #formed: readonly PendingBatch[] = []
  /** Offset after what is on its way. */
  #formedEnd: number
  /** The start that the journal has, or is being told. */
  #formedStart: number
  #durableStart: number
  #stamped: number
  #ageMs: number
  #closed = false
  #deleted = false
  #poisoned = false
  readonly #wakes = new Set<() => void>()
  /** Up to here it is in segments. */
  #written: number
  /** A checkpoint wants to know the segments as they are when they end here. */
  #fence: { readonly end: number; readonly reached: (segments: readonly StoredSegment[]) => void } | null =
    null

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
    this.#pending = new Pending(this.marks.end, this.marks.epoch, parts.crc32c)
    this.#formedEnd = this.marks.end
    this.#formedStart = this.marks.start
    this.#durableStart = this.marks.start
    this.#stamped = parts.stamped
    this.#written = parts.segments.next
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

  get closed(): boolean {
    return this.#closed
  }

  // ── appending ─────────────────────────────────────────────────────────────────────────────────

  /** A full disk counts as room: the append itself says what is wrong. */
  hasRoom(records: number, bytes: number, mode: RoomMode = 'gated'): boolean {
    return this.#room.for(records, bytes, mode) !== NO_ROOM && this.#reserve(bytes) !== 'wait'
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
    if (start === NO_ROOM || this.#closed || this.#poisoned) return this.#refusalOfOne()
    const reserved = this.#reserve(sizeBytes)
    if (reserved !== 'ok') return reserved === 'full' ? LOG_STORAGE_FULL : NO_ROOM
    if (timestamp > this.#stamped) this.#stamped = timestamp
    this.#evictTo(start)
    const offset = this.marks.end
    this.#pending.add(value as Uint8Array | null, key, headers, this.#stamped)
    this.#accepted(offset + 1, sizeBytes)
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
    const base = this.marks.end
    for (let row = 0; row < count; row++) {
      this.#stamped = Math.max(this.#stamped, rows.timestampAt(row))
      const value = rows.values[row] as Uint8Array | null
      this.#pending.add(value, rows.keyAt(row), rows.headersAt(row), this.#stamped)
    }
    return this.#accepted(base + count, sizeBytes)
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
    const { codec, crc32c } = this.#parts
    const incoming = readIncoming(batch, codec, crc32c, this.#stamped)
    if (incoming === 'INVALID') return incoming
    const { count, bytes, maxTimestamp, producer, marker } = incoming
    if (this.#isTooLarge(count, bytes.length)) return 'TOO_LARGE'
    const verdict = this.#verdict(incoming)
    if (verdict !== 'ok') return verdict
    const refusal = this.#makeRoom(count, bytes.length, mode)
    if (refusal !== undefined) return refusal
    const base = this.marks.end
    const next = base + count
    const openSince = producer === null ? -1 : this.#state.openSince(producer.id)
    this.#pending.addBatch(incoming, openSince)
    if (batch.bytes === null) this.#stamped = Math.max(this.#stamped, maxTimestamp)
    if (producer !== null) {
      if (marker === null) this.#state.appended(producer, base, next - 1, maxTimestamp)
      else this.#state.marker(producer.id, producer.epoch, marker.commit, base, maxTimestamp)
    }
    return this.#accepted(next, bytes.length)
  }

  #verdict({ count, producer, marker }: Incoming): Verdict {
    if (producer === null) return 'ok'
    if (marker !== null) return this.#state.checkMarker(producer.id, producer.epoch)
    return this.#state.check(producer, count)
  }

  #isTooLarge(records: number, bytes: number): boolean {
    return (
      this.#room.isTooLarge(records, bytes) || bytes + BATCH_OVERHEAD_BYTES > this.#committer.maxGroupBytes
    )
  }

  #makeRoom(records: number, bytes: number, mode: RoomMode): Refusal | undefined {
    if (this.#isTooLarge(records, bytes)) return 'TOO_LARGE'
    const start = this.#room.for(records, bytes, mode)
    if (start === NO_ROOM) return 'NO_ROOM'
    const reserved = this.#reserve(bytes)
    if (reserved === 'full') return 'STORAGE_FULL'
    if (reserved === 'wait') return 'NO_ROOM'
    this.#evictTo(start)
    return undefined
  }

  #reserve(sizeBytes: number): Reserved {
    return this.#committer.room(this, sizeBytes + BATCH_OVERHEAD_BYTES)
  }

  #accepted(end: number, sizeBytes: number): Appended {
    const base = this.marks.end
    this.marks.end = end
    this.#room.appended(end, sizeBytes)
    this.#committer.accept(this, sizeBytes + BATCH_OVERHEAD_BYTES)
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
    const freed = this.#formedStart > this.#durableStart
    this.#durableStart = this.#formedStart
    for (const batch of formed) {
      this.#resident.append(batch)
      if (batch.aborts !== null) this.#resident.hideAborted(batch.aborts.producerId, batch.aborts.since)
    }
    const high = formed.at(-1)?.next ?? this.marks.high
    this.#advance(high)
    if (high > this.#written || freed) this.#parts.wakeWriter(this)
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

  failed(): void {
    this.#poisoned = true
  }

  roomAgain(): void {
    this.#wake()
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    const { marks } = this
    into.count = 0
    into.next = from
    if (this.#closed) return 'end'
    if (from < marks.start || from > marks.end) return 'range'
    const bound = this.#bound(isolation)
    if (from >= bound) return 'end'
    const chunk = this.#resident.find(from)
    return chunk === undefined ? 'miss' : chunk.peek(from, Math.min(bound, chunk.next), max, isolation, into)
  }

  async load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice> {
    const into = new Slice()
    this.#checkReadable(from, signal)
    while (this.peek(from, Number.POSITIVE_INFINITY, isolation, into) === 'miss') {
      const chunk = await this.#resident.chunkAt(from)
      this.#checkReadable(from, signal)
      this.#resident.decode(chunk, from, this.#bound(isolation), maxBytes, isolation)
    }
    shorten(into, maxBytes)
    return into
  }

  async read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice> {
    this.#checkReadable(from, signal)
    const { bytes, next } = await this.#resident.collect(from, this.#bound(isolation), maxBytes)
    this.#checkReadable(from, signal)
    const aborted = isolation === 'committed' ? this.#state.aborted(from, next) : []
    return { bytes, next, aborted }
  }

  #bound(isolation: Isolation): number {
    return isolation === 'committed' ? this.marks.stable : this.marks.high
  }

  #checkReadable(from: number, signal: AbortSignal | undefined): void {
    if (this.#closed) throw refusalError('CLOSED', this.#name)
    if (signal?.aborted) throw abortedError(signal, `a read of ${this.#name}`)
    const { start, end } = this.marks
    if (from >= start && from <= end) return
    throw new OdradekError('OFFSET_OUT_OF_RANGE', `${this.#name} has ${start} to ${end}, not ${from}`)
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
    const oldest = now - this.#ageMs
    let start = this.marks.start
    for (const { next, maxTimestamp } of this.#parts.segments.list) {
      if (next <= start) continue
      if (maxTimestamp >= oldest) break
      start = next
    }
    this.#moveStart(this.#resident.expired(start, oldest))
  }

  async trim(before: number): Promise<void> {
    this.#moveStart(before)
    if (this.marks.start > this.#durableStart) await this.#committer.gathering
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

  /** Writes what is committed to segments, in pieces, and gives back segments below the start. */
  async writeBehind(): Promise<void> {
    const { segments } = this.#parts
    while (this.#written < this.marks.high && !this.#deleted) {
      const until = Math.min(this.marks.high, this.#fence?.end ?? Number.POSITIVE_INFINITY)
      if (this.#written === until) break
      const piece = this.#resident.unwritten(this.#written, until)
      await segments.append(piece.bytes, piece)
      this.#written = piece.next
      this.#resident.written(piece.next)
    }
    if (this.#fence !== null && this.#written >= this.#fence.end) {
      const { reached } = this.#fence
      this.#fence = null
      reached(segments.stored())
      if (this.#written < this.marks.high) this.#parts.wakeWriter(this)
    }
    if (!this.#deleted) await segments.removeBelow(this.#durableStart)
  }

  /** Right after a group was formed: what it takes to come back to this moment. `segments` follow when they are there. */
  capture(): {
    readonly stored: Omit<StoredLog, 'segments'>
    readonly segments: Promise<readonly StoredSegment[]>
  } {
    const segments = new Promise<readonly StoredSegment[]>((reached) => {
      this.#fence = { end: this.marks.end, reached }
    })
    this.#parts.wakeWriter(this)
    return { stored: this.#stored(), segments }
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
    return { ...id, topic, start, end, epoch, stamped: this.#stamped, state: this.#state.toJSON() }
  }

  /** Makes what was written behind last. */
  sync(): Promise<void> {
    return this.#parts.segments.sync()
  }

  // ── looking up ────────────────────────────────────────────────────────────────────────────────

  async offsetAt(timestamp: number): Promise<At | undefined> {
    const seen = this.#written
    const from = (await this.#parts.segments.seekTime(timestamp)) ?? seen
    return this.#firstAtOrAfter(timestamp, from)
  }

  async newest(): Promise<At | undefined> {
    let newest = -1
    for (let at = this.marks.start; at < this.marks.high; ) {
      const segment = this.#parts.segments.list.find(({ next }) => next > at)
      if (segment !== undefined && segment.base >= at && segment.next <= this.#written) {
        newest = Math.max(newest, segment.maxTimestamp)
        at = segment.next
      } else {
        const chunk = await this.#resident.chunkAt(at)
        newest = Math.max(newest, chunk.newestTimestamp(Math.max(at, this.marks.start)))
        at = Math.max(chunk.next, this.marks.start)
      }
    }
    return newest < 0 ? undefined : this.offsetAt(newest)
  }

  async #firstAtOrAfter(timestamp: number, from: number): Promise<At | undefined> {
    for (let at = Math.max(from, this.marks.start); at < this.marks.high; ) {
      const chunk = await this.#resident.chunkAt(at)
      const found = chunk.firstAtOrAfter(timestamp, Math.max(at, this.marks.start))
      if (found !== undefined) return found
      at = Math.max(chunk.next, this.marks.start)
    }
    return undefined
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
  }

  /** Closes it for good: what was not committed will not be, and nothing more is written to its files. */
  abandon(): void {
    this.#closed = true
    this.#deleted = true
    this.#committer.leave(this)
    this.#resident.clear()
    this.#fence?.reached([])
  }
}

/** Cuts a run after `maxBytes`, but leaves it one row. */
function shorten(run: Slice, maxBytes: number): void {
  let bytes = 0
  for (let i = 0; i < run.count; i++) {
    bytes += run.columns.sizeAt(run.row + i)
    if (bytes <= maxBytes || i === 0) continue
    run.count = i
    run.next = run.columns.offsetAt(run.row + i)
  }
}
