/**
 * The log of a `ByteEngine`: rows of bytes, of which the newest are not durable yet.
 *
 *   start ─────────── high = end of the log on disk ───── end
 *   │ on disk, a memory log  │ gathering: rows of this process │
 *
 * Rows are read through the format of the disk, so that a reader gets what it would get from there: decoded copies,
 * keys that are text where their bytes are. What came as a batch of bytes goes to the disk log as it is, at once.
 */
import {
  type Appended,
  type At,
  type ByteSlice,
  type Isolation,
  LOG_CLOSED,
  LOG_POISONED,
  LOG_STORAGE_FULL,
  type LogSpec,
  type Marks,
  NO_ROOM,
  type PartitionLog,
  type PeekResult,
  PoisonValue,
  type ProducerView,
  type Refusal,
  type RetentionLimits,
  type RoomMode,
  refusalError,
} from '../../src/log/contract.ts'
import { BatchBuilder } from '../../src/log/format/batch-builder.ts'
import { noCompression } from '../../src/log/format/compression.ts'
import { decodeBatch } from '../../src/log/format/record-batch.ts'
import { type Batch, Columns, Slice } from '../../src/model/batch.ts'
import { assert, OdradekError } from '../../src/model/errors.ts'
import type { Key, RecordHeaders } from '../../src/model/record.ts'
import type { ValueCodec } from '../../src/model/value-codec.ts'
import { markerOf, producerOf } from '../../src/testing/conformance/kit.ts'
import type { ByteEngine } from './byte-engine.ts'

interface Row {
  readonly value: Uint8Array | null
  readonly key: Key | null
  readonly headers: RecordHeaders | null
  readonly timestamp: number
  readonly sizeBytes: number
  readonly mode: RoomMode
}

/** Ends no transaction of anybody's: its offset is empty to all readers. */
const EMPTY = producerOf(1_000_000, 0, { transactional: true })

export class ByteLog implements PartitionLog {
  readonly name: string
  readonly topicId: string
  readonly partition: number
  readonly marks: Marks
  readonly #disk: PartitionLog
  readonly #codec: ValueCodec
  readonly #engine: ByteEngine
  #gathering: Row[] = []
  #gatheringBytes = 0
  #closed = false
  readonly #decoded = new WeakMap<Columns, Columns>()
  readonly #wakes = new Set<() => void>()
  readonly #stops: (() => void)[] = []

  constructor(disk: PartitionLog, spec: LogSpec, engine: ByteEngine) {
    this.name = `${spec.topic}/${spec.partition}`
    this.topicId = spec.topicId
    this.partition = spec.partition
    this.#disk = disk
    this.#codec = spec.codec
    this.#engine = engine
    const end = (): number => disk.marks.end + this.#gathering.length
    this.marks = {
      get start() {
        return disk.marks.start
      },
      get stable() {
        return disk.marks.stable
      },
      get high() {
        return disk.marks.high
      },
      get end() {
        return end()
      },
      get epoch() {
        return disk.marks.epoch
      },
    }
    this.#stops.push(disk.onAdvance(() => this.roomAgain()))
  }

  get records(): number {
    return this.#disk.records + this.#gathering.length
  }

  get sizeBytes(): number {
    return this.#disk.sizeBytes + this.#gatheringBytes
  }

  get gatheringBytes(): number {
    return this.#gatheringBytes
  }

  bytesFrom(offset: number): number {
    const { end } = this.#disk.marks
    if (offset < end) return this.#disk.bytesFrom(offset) + this.#gatheringBytes
    return this.#gathering.slice(offset - end).reduce((sum, row) => sum + row.sizeBytes, 0)
  }

  // ── appending ─────────────────────────────────────────────────────────────────────────────────

  hasRoom(records: number, bytes: number, mode: RoomMode = 'gated'): boolean {
    return this.#fits(records, bytes, mode) && this.#engine.takes(this, bytes)
  }

  #fits(records: number, bytes: number, mode: RoomMode): boolean {
    return this.#disk.hasRoom(this.#gathering.length + records, this.#gatheringBytes + bytes, mode)
  }

  tryAppendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
    mode: RoomMode = 'gated',
  ): number {
    if (this.#closed) return LOG_CLOSED
    if (this.#engine.failure !== undefined) return LOG_POISONED
    if (!this.hasRoom(1, sizeBytes, mode)) return NO_ROOM
    if (this.#engine.full) return LOG_STORAGE_FULL
    this.#add({ value: bytesOf(value), key, headers, timestamp, sizeBytes, mode })
    return this.marks.end - 1
  }

  tryAppend(batch: Batch, mode: RoomMode = 'gated'): Appended | Refusal {
    if (this.#closed) return 'CLOSED'
    if (this.#engine.failure !== undefined) return 'POISONED'
    const { columns, count, sizeBytes, producer } = batch
    if (columns === null || producer !== null) {
      this.commit()
      return this.#disk.tryAppend(batch, mode)
    }
    if (this.#isTooLarge(count, sizeBytes)) return 'TOO_LARGE'
    if (!this.hasRoom(count, sizeBytes, mode)) return 'NO_ROOM'
    if (this.#engine.full) return 'STORAGE_FULL'
    const base = this.marks.end
    for (let row = 0; row < count; row++) {
      this.#add({
        value: bytesOf(columns.values[row]),
        key: columns.keyAt(row),
        headers: columns.headersAt(row),
        timestamp: columns.timestampAt(row),
        sizeBytes: columns.sizeAt(row),
        mode,
      })
    }
    return { base, last: base + count - 1, duplicate: false }
  }

  /** Of an empty log, through every gate, what does not fit never will. */
  #isTooLarge(records: number, bytes: number): boolean {
    return !this.#disk.hasRoom(records, bytes, 'force')
  }

  #add(row: Row): void {
    this.#gathering.push(row)
    this.#gatheringBytes += row.sizeBytes
    this.#engine.gathered(row.sizeBytes)
  }

  async append(batch: Batch): Promise<Appended> {
    const answer = this.tryAppend(batch)
    if (typeof answer === 'string') throw refusalError(answer, this.name)
    await this.durable(answer.last)
    return answer
  }

  durable(last: number): Promise<void> {
    return last < this.marks.high ? Promise.resolve() : this.#engine.work()
  }

  // ── the disk ──────────────────────────────────────────────────────────────────────────────────

  /** Puts what was gathered there; answers its values. */
  commit(): readonly (Uint8Array | null)[] {
    const rows = this.#taken()
    for (const { value, key, headers, timestamp, sizeBytes, mode } of rows) {
      const put = (how: RoomMode): boolean =>
        this.#disk.tryAppendOne(value, key, headers, timestamp, sizeBytes, how) >= 0
      // There was room when it was accepted, whoever has come to hold the log since.
      assert(put(mode) || put('exempt') || put('force'), 'what was accepted fits')
    }
    return rows.map(({ value }) => value)
  }

  /** Leaves the offsets of what was gathered empty. */
  skip(): readonly (Uint8Array | null)[] {
    for (const _ of this.#taken()) this.#disk.tryAppend(markerOf(EMPTY, true), 'force')
    return []
  }

  #taken(): Row[] {
    const rows = this.#gathering
    this.#gathering = []
    this.#gatheringBytes = 0
    return rows
  }

  drop(): void {
    this.#taken()
    this.leave()
  }

  /** The process is gone, or the topic. */
  leave(): void {
    this.#closed = true
    for (const stop of this.#stops) stop()
    this.#disk.gate(Number.POSITIVE_INFINITY)
  }

  /** What the disk has at `offset`, undecoded. */
  stored(offset: number): {
    readonly value: unknown
    readonly headers: readonly (readonly [string, unknown])[]
  } {
    const slice = new Slice()
    assert(this.#disk.peek(offset, 1, 'uncommitted', slice) === 'hit', 'it is there')
    const { columns, row } = slice
    return { value: columns.values[row], headers: [...(columns.headersAt(row) ?? [])] }
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult {
    if (this.#closed || (from > this.marks.high && from <= this.marks.end)) {
      into.count = 0
      into.next = from
      return 'end'
    }
    const result = this.#disk.peek(from, max, isolation, into)
    if (result === 'hit') this.#decode(into)
    return result
  }

  async load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice> {
    if (this.#closed) throw refusalError('CLOSED', this.name)
    const slice = await this.#disk.load(from, maxBytes, isolation, signal)
    this.#decode(slice)
    return slice
  }

  /** Foreign rows are decoded by the memory log. */
  #decode(into: Slice): void {
    const { columns, row, count } = into
    if (count === 0 || columns.foreign) return
    let rows = this.#decoded.get(columns)
    if (rows === undefined) {
      rows = new Columns(columns.base)
      this.#decoded.set(columns, rows)
    }
    while (rows.count < row + count) decodeRow(columns, rows.count, rows, this.#codec)
    const poison = rows.values.findIndex(
      (value, at) => at >= row && at < row + count && value instanceof PoisonValue,
    )
    into.columns = poison === row ? foreignRow(rows, row) : rows
    if (poison === row) into.row = 0
    if (poison >= 0) {
      into.count = poison === row ? 1 : poison - row
      into.next = columns.offsetAt(row + into.count - 1) + 1
    }
  }

  read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice> {
    return this.#disk.read(from, maxBytes, isolation, signal)
  }

  onAdvance(wake: () => void): () => void {
    this.#wakes.add(wake)
    return () => this.#wakes.delete(wake)
  }

  roomAgain(): void {
    for (const wake of this.#wakes) wake()
  }

  // ── the rest is the disk's ────────────────────────────────────────────────────────────────────

  gate(lowestNeeded: number): void {
    this.#disk.gate(lowestNeeded)
  }

  configure(retention: RetentionLimits): void {
    this.#disk.configure(retention)
  }

  expire(now: number): void {
    this.#disk.expire(now)
  }

  trim(before: number): Promise<void> {
    return this.#disk.trim(before)
  }

  offsetAt(timestamp: number): Promise<At | undefined> {
    return this.#disk.offsetAt(timestamp)
  }

  newest(): Promise<At | undefined> {
    return this.#disk.newest()
  }

  epochEnd(epoch: number): { epoch: number; endOffset: number } | undefined {
    return this.#disk.epochEnd(epoch)
  }

  producers(): Iterable<ProducerView> {
    return this.#disk.producers()
  }

  /** A group that is held is waited for. */
  flush(): Promise<void> {
    return this.#gathering.length === 0 ? Promise.resolve() : this.#engine.work()
  }

  async close(): Promise<void> {
    this.leave()
  }
}

/** A copy, as a log takes it. */
function bytesOf(value: unknown): Uint8Array | null {
  if (value === null) return null
  if (value instanceof Uint8Array) return new Uint8Array(value)
  throw new OdradekError('INVALID_VALUE', `an engine of bytes was given ${typeof value}`)
}

function decodeRow(from: Columns, row: number, into: Columns, codec: ValueCodec): void {
  const offset = from.offsetAt(row)
  const timestamp = from.timestampAt(row)
  const builder = new BatchBuilder()
  builder.open(offset, timestamp)
  builder.add(from.values[row] as Uint8Array | null, from.keyAt(row), from.headersAt(row), timestamp)
  const bytes = builder.finish({ leaderEpoch: 0 })
  const decoded = decodeBatch(
    bytes,
    0,
    codec,
    noCompression,
    (cause, value) => new PoisonValue(cause, value ?? NOTHING),
  )
  into.push(decoded.values[0], decoded.keyAt(0), decoded.headersAt(0), timestamp, from.sizeAt(row))
}

const NOTHING = new Uint8Array(0)

/** What could not be decoded is looked at before it is handed out. */
function foreignRow(columns: Columns, row: number): Columns {
  const copy = new Columns(columns.offsetAt(row), 1)
  copy.push(
    columns.values[row],
    columns.keyAt(row),
    columns.headersAt(row),
    columns.timestampAt(row),
    columns.sizeAt(row),
  )
  copy.foreign = true
  return copy
}
