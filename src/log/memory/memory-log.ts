/**
 * A partition in memory: the contract over what is retained (retained.ts), a second view of it for whoever
 * asks (conversions.ts), and the producers' state. `high` is `end`: a record is accepted once it is here.
 *
 * What has a producer is kept as bytes, also when it came as columns: only a batch names its producer.
 *
 * Concurrency: one thread, run to completion. `tryAppendOne` is the hot path of publishing; it touches the
 * newest segment only and allocates nothing but that segment's share.
 */
import { type Batch, type Columns, type ProducerInfo, Slice } from '../../model/batch.ts'
import type { Clock } from '../../model/clock.ts'
import { abortedError, assert, OdradekError } from '../../model/errors.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import type { ValueCodec } from '../../model/value-codec.ts'
import {
  type Appended,
  type At,
  type ByteSlice,
  type EngineContext,
  type Isolation,
  LOG_CLOSED,
  type LogSpec,
  NO_ROOM,
  type PartitionLog,
  type PeekResult,
  type ProducerView,
  type Refusal,
  type RetentionLimits,
  type RoomMode,
  refusalError,
} from '../contract.ts'
import type { BufferPool } from '../format/buffer-pool.ts'
import { type CompressionPort, codecsReady, noCompression } from '../format/compression.ts'
import type { Marker } from '../format/control.ts'
import { crc32c } from '../format/crc32c.ts'
import { type Incoming, readIncoming } from '../format/intake.ts'
import { ATTRIBUTES_AT, COMPRESSION_BITS } from '../format/layout.ts'
import { type Crc32c, patchBatch } from '../format/record-batch.ts'
import { PartitionState, type Verdict } from '../state.ts'
import { collectBatches } from './collect.ts'
import { Conversions } from './conversions.ts'
import { firstAtOrAfter, newestTimestamp, startAfterExpiry } from './lookup.ts'
import { LiveMarks } from './marks.ts'
import { Retained } from './retained.ts'
import { hideAborted, type Segment } from './segment.ts'
import { CONTROL, type Slab } from './slab.ts'

/** Producers that appended nothing for a day are forgotten, as in Kafka. */
const PRODUCER_EXPIRY_MS = 86_400_000

const nobody = (): void => {}

export class MemoryLog implements PartitionLog {
  readonly topicId: string
  readonly partition: number
  readonly marks: LiveMarks = new LiveMarks()

  readonly #name: string
  readonly #clock: Clock
  readonly #retained: Retained
  readonly #state = new PartitionState()
  readonly #conversions: Conversions
  readonly #codec: ValueCodec
  readonly #crc32c: Crc32c
  readonly #compression: CompressionPort
  /** Codecs of batches that were taken, a bit for each. */
  #codecs = 0
  #ageMs: number
  /** Newest timestamp given to a record from within the process. */
  #stamped = 0
  #closed = false
  #wakes: readonly (() => void)[] = []
  /** Calls all of `#wakes`: the only one itself as a rule, which saves a loop per record. */
  #wake: () => void = nobody

  /** `pool`: where slabs have their bytes from, as those of other logs have. */
  constructor(spec: LogSpec, context: EngineContext, pool?: BufferPool) {
    this.topicId = spec.topicId
    this.partition = spec.partition
    this.#name = `${spec.topic}/${spec.partition}`
    this.#clock = context.clock
    this.#conversions = new Conversions(spec.codec, context)
    this.#codec = spec.codec
    this.#crc32c = context.crc32c ?? crc32c
    this.#compression = context.compression ?? noCompression
    this.#retained = new Retained(this.marks, (segment) => this.#evicted(segment), pool)
    this.#ageMs = spec.retention.ageMs
    this.#limit(spec.retention)
    this.#state.epochStarted(this.marks.epoch, 0)
  }

  get records(): number {
    return this.marks.end - this.marks.start
  }

  get sizeBytes(): number {
    return this.#retained.sizeBytes
  }

  bytesFrom(offset: number): number {
    return this.#retained.bytesFrom(offset)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Bytes of second views made for readers, beside `sizeBytes`. */
  get cachedBytes(): number {
    return this.#conversions.bytes
  }

  // ── appending ─────────────────────────────────────────────────────────────────────────────────

  hasRoom(records: number, bytes: number, mode: RoomMode = 'gated'): boolean {
    return this.#retained.room(records, bytes, mode) !== NO_ROOM
  }

  tryAppendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
    mode: RoomMode = 'gated',
  ): number {
    const retained = this.#retained
    if (!retained.takes(sizeBytes)) {
      const refusal = this.#makeRoomForOne(sizeBytes, mode)
      if (refusal < 0) return refusal
    }
    if (timestamp > this.#stamped) this.#stamped = timestamp
    const offset = this.marks.end
    retained.push(value, key, headers, this.#stamped, sizeBytes)
    this.#advance(offset + 1)
    return offset
  }

  #makeRoomForOne(sizeBytes: number, mode: RoomMode): number {
    if (this.#closed) return LOG_CLOSED
    const start = this.#retained.room(1, sizeBytes, mode)
    if (start !== NO_ROOM) this.#retained.evictTo(start)
    return start
  }

  tryAppend(batch: Batch, mode: RoomMode = 'gated'): Appended | Refusal {
    if (this.#closed) return 'CLOSED'
    if (batch.bytes !== null || batch.producer !== null) {
      const incoming = readIncoming(batch, this.#codec, this.#crc32c, this.#stamped)
      if (incoming === 'INVALID') return incoming
      const answer = this.#appendBytes(incoming, mode)
      const accepted = typeof answer === 'object'
      if (accepted && batch.bytes === null) this.#stamped = Math.max(this.#stamped, incoming.maxTimestamp)
      return answer
    }
    return this.#appendRows(batch, batch.columns as Columns, mode)
  }

  async append(batch: Batch, signal?: AbortSignal): Promise<Appended> {
    if (signal?.aborted) throw abortedError(signal, 'append')
    const answer = this.tryAppend(batch)
    if (typeof answer === 'string') throw refusalError(answer, this.#name)
    return answer
  }

  /** A record in memory is as durable as it will ever be. */
  async durable(last: number): Promise<void> {
    assert(last < this.marks.high, 'only what was appended can be waited for')
  }

  #appendRows(batch: Batch, rows: Columns, mode: RoomMode): Appended | Refusal {
    assert(batch.count > 0 && batch.count === rows.count, 'a batch has the rows it says')
    const refusal = this.#makeRoom(batch.count, batch.sizeBytes, mode)
    if (refusal !== undefined) return refusal
    const base = this.marks.end
    for (let row = 0; row < rows.count; row++) {
      this.#stamped = Math.max(this.#stamped, rows.timestampAt(row))
      const value = rows.values[row]
      this.#retained.push(value, rows.keyAt(row), rows.headersAt(row), this.#stamped, rows.sizeAt(row))
    }
    this.#advance(base + batch.count)
    return { base, last: base + batch.count - 1, duplicate: false }
  }

  #appendBytes(incoming: Incoming, mode: RoomMode): Appended | Refusal {
    const { bytes, count, sizeBytes, maxTimestamp, producer, marker } = incoming
    const verdict = this.#verdict(incoming)
    if (verdict !== 'ok') return verdict
    const refusal = this.#makeRoom(count, sizeBytes, mode)
    if (refusal !== undefined) return refusal

    const base = this.marks.end
    const next = base + count
    const entry = { next, sizeBytes, maxTimestamp, flags: marker === null ? 0 : CONTROL }
    const { slab, position } = this.#retained.pushBatch(bytes, entry)
    patchBatch(slab.bytes, position, base, this.marks.epoch)
    this.#codecs |= 1 << ((bytes[ATTRIBUTES_AT + 1] as number) & COMPRESSION_BITS)
    if (producer !== null && marker === null) this.#state.appended(producer, base, next - 1, maxTimestamp)
    if (producer !== null && marker !== null) this.#endTransaction(producer, marker, base, maxTimestamp)
    const stable = this.#state.stable(next)
    this.marks.held = stable < next ? stable : -1
    this.#advance(next)
    return { base, last: next - 1, duplicate: false }
  }

  /** What the producer's state says of a batch, after its size: no state could let it in if it is too large. */
  #verdict({ count, sizeBytes, producer, marker }: Incoming): Verdict | 'TOO_LARGE' {
    if (this.#retained.isTooLarge(count, sizeBytes)) return 'TOO_LARGE'
    if (producer === null) return 'ok'
    if (marker !== null) return this.#state.checkMarker(producer.id, producer.epoch)
    return this.#state.check(producer, count)
  }

  #endTransaction(producer: ProducerInfo, marker: Marker, offset: number, timestamp: number): void {
    if (!marker.commit) {
      for (const { id, openSince } of this.#state.producers()) {
        if (id === producer.id && openSince >= 0) hideAborted(this.#retained.ring, id, openSince)
      }
    }
    this.#state.marker(producer.id, producer.epoch, marker.commit, offset, timestamp)
  }

  #makeRoom(records: number, bytes: number, mode: RoomMode): Refusal | undefined {
    if (this.#retained.isTooLarge(records, bytes)) return 'TOO_LARGE'
    const start = this.#retained.room(records, bytes, mode)
    if (start === NO_ROOM) return 'NO_ROOM'
    this.#retained.evictTo(start)
    return undefined
  }

  #advance(end: number): void {
    this.marks.end = end
    this.#wake()
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    const marks = this.marks
    into.count = 0
    into.next = from
    if (this.#closed) return 'end'
    if (from < marks.start || from > marks.end) return 'range'
    const bound = isolation === 'committed' ? marks.stable : marks.high
    if (from >= bound) return 'end'
    const segment = this.#retained.find(from)
    const columns = segment.columns
    if (columns === null) return 'miss'
    const limit = Math.min(bound, segment.base + columns.count)
    if (from >= limit) return 'miss'
    into.columns = columns
    if (segment.wire) {
      const run = (segment.slab as Slab).run(from, limit, max, isolation)
      into.row = run.first - segment.base
      into.count = run.count
      into.next = run.next
    } else {
      const next = Math.min(from + max, limit)
      into.row = from - segment.base
      into.count = next - from
      into.next = next
    }
    return 'hit'
  }

  async load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice> {
    this.#checkReadable(from, signal)
    const into = new Slice()
    while (this.peek(from, this.records, isolation, into) === 'miss') {
      const segment = this.#retained.find(from)
      const ready = this.#conversions.ready([segment])
      if (ready === undefined) this.#conversions.decode(segment, from, maxBytes)
      else await ready.then(() => this.#checkReadable(from, signal))
    }
    shorten(into, maxBytes)
    return into
  }

  /** Whether codecs had to be waited for: the log may be another one since. */
  async #codecsReady(): Promise<boolean> {
    const ready = codecsReady(this.#compression, this.#codecs)
    await ready
    return ready !== undefined
  }

  async read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice> {
    this.#checkReadable(from, signal)
    const bound = isolation === 'committed' ? this.marks.stable : this.marks.high
    const collected = collectBatches(this.#retained.ring, from, bound, maxBytes, this.#conversions)
    const { bytes, next, slab } = collected
    const aborted = isolation === 'committed' ? this.#state.aborted(from, next) : []
    return slab === null ? { bytes, next, aborted } : { bytes, next, aborted, done: slab.lend() }
  }

  #checkReadable(from: number, signal: AbortSignal | undefined): void {
    if (this.#closed) throw refusalError('CLOSED', this.#name)
    if (signal?.aborted) throw abortedError(signal, `a read of ${this.#name}`)
    const { start, end } = this.marks
    if (from >= start && from <= end) return
    throw new OdradekError('OFFSET_OUT_OF_RANGE', `${this.#name} has ${start} to ${end}, not ${from}`)
  }

  onAdvance(wake: () => void): () => void {
    this.#listen([...this.#wakes, wake])
    return () => this.#listen(this.#wakes.filter((each) => each !== wake))
  }

  #listen(wakes: readonly (() => void)[]): void {
    this.#wakes = wakes
    const [only] = wakes
    this.#wake =
      wakes.length === 1 && only !== undefined
        ? only
        : () => {
            for (const wake of wakes) wake()
          }
  }

  // ── retention ─────────────────────────────────────────────────────────────────────────────────

  gate(lowestNeeded: number): void {
    const { start } = this.marks
    this.#retained.gate = lowestNeeded
    if (this.#retained.isOver()) this.#retained.evictTo(this.#retained.startWithin())
    if (this.marks.start > start) this.#wake()
  }

  configure(retention: RetentionLimits): void {
    if (this.#closed) return
    const { start } = this.marks
    this.#limit(retention)
    this.#retained.evictTo(this.#retained.startWithin())
    if (this.marks.start > start) this.#wake()
    this.expire(this.#clock.now())
  }

  expire(now: number): void {
    this.#state.expireProducers(now - PRODUCER_EXPIRY_MS)
    this.#moveStart(startAfterExpiry(this.#retained.ring, this.marks.start, now - this.#ageMs))
  }

  async trim(before: number): Promise<void> {
    this.#moveStart(Math.min(before, this.marks.high))
  }

  #limit(retention: RetentionLimits): void {
    this.#ageMs = retention.ageMs
    this.#retained.limit(retention)
    this.#conversions.limit(retention.bytes)
  }

  #moveStart(target: number): void {
    const allowed = Math.min(target, this.#retained.gate)
    if (allowed <= this.marks.start) return
    this.#retained.evictTo(allowed)
    this.#wake()
  }

  #evicted(segment: Segment): void {
    this.#conversions.forget(segment)
    if (!segment.wire) return
    this.#state.trim(segment.next)
    segment.slab?.retire()
  }

  // ── looking up ────────────────────────────────────────────────────────────────────────────────

  async offsetAt(timestamp: number): Promise<At | undefined> {
    await this.#codecsReady()
    await this.#allReady()
    return firstAtOrAfter(this.#retained.ring, this.marks.start, timestamp, this.#conversions)
  }

  async newest(): Promise<At | undefined> {
    await this.#codecsReady()
    await this.#allReady()
    const newest = newestTimestamp(this.#retained.ring, this.marks.start, this.#conversions)
    return newest < 0
      ? undefined
      : firstAtOrAfter(this.#retained.ring, this.marks.start, newest, this.#conversions)
  }

  /** Which segments a look by time decodes shows on the way. */
  async #allReady(): Promise<void> {
    const ready = () => this.#conversions.ready(this.#retained.ring)
    for (let wait = ready(); wait !== undefined; wait = ready()) await wait
  }

  epochEnd(epoch: number): { epoch: number; endOffset: number } | undefined {
    return this.#state.epochEnd(epoch, this.marks.end)
  }

  producers(): Iterable<ProducerView> {
    return this.#state.producers()
  }

  async flush(): Promise<void> {
    // What is in memory is nowhere else to be written to.
  }

  /** Gives the memory back: nothing is left between `start` and `end`. Wakes nobody. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#retained.clear()
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
