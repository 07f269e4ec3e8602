/**
 * What the cases of the log conformance suite share: assertions that need no test runner, batches in both
 * views, and a reader that goes the way the core goes (peek first, load on a miss).
 */

import {
  type Engine,
  type Isolation,
  type LogSpec,
  type Marks,
  NO_ROOM,
  type PartitionLog,
  type RetentionLimits,
} from '../../log/contract.ts'
import { encodeMarker } from '../../log/format/control.ts'
import { encodeBatch } from '../../log/format/record-batch.ts'
import type { Batch, ProducerInfo } from '../../model/batch.ts'
import { Columns, Slice } from '../../model/batch.ts'
import { OdradekError } from '../../model/errors.ts'
import type { Key, RecordHeaders } from '../../model/record.ts'
import { defaultCodec } from '../../model/value-codec.ts'

/**
 * What an engine may lack. Its cases are listed as skipped, with the engine's reason.
 * `exact retention`: `start` is exact by records. `exact bytes`: sizes are those that were said, to the byte, and what
 * retention and the gate make of them is exact. `immediate durability`: what is accepted may be evicted at once.
 */
export type Capability =
  | 'synchronous appends'
  | 'immediate durability'
  | 'a gate'
  | 'exact retention'
  | 'exact bytes'
  | 'wire batches'
  | 'transactions'
  | 'a store'

/** How the process that has an engine ends: it closes the engine, is killed, or the power fails. */
export type ProcessEnd = 'close' | 'kill' | 'power loss'

/** Ends the process, and answers the engine that the next one has. */
export type Restart = (end: ProcessEnd) => Promise<Engine>

export interface LogCase {
  /** The behaviour it checks. */
  readonly title: string
  readonly needs: readonly Capability[]
  run(engine: Engine, restart: Restart): Promise<void>
}

/** Nominal bytes of a record where a case does not care. */
export const SIZE = 100
/** 2026-01-01T00:00:00Z. */
export const T0 = 1_767_225_600_000

const ROOMY: RetentionLimits = { records: 10_000, bytes: 10_000_000, ageMs: Number.POSITIVE_INFINITY }

export function keeping(limits: Partial<RetentionLimits>): RetentionLimits {
  return { ...ROOMY, ...limits }
}

export function specOf(retention: RetentionLimits = ROOMY, topicId = 'topic-1'): LogSpec {
  return {
    topic: 'topic',
    topicId,
    partition: 0,
    retention,
    cleanup: 'delete',
    deleteRetentionMs: 86_400_000,
    codec: defaultCodec,
  }
}

export function openLog(engine: Engine, limits: Partial<RetentionLimits> = {}): Promise<PartitionLog> {
  return engine.openLog(specOf(keeping(limits)))
}

// ── assertions ────────────────────────────────────────────────────────────────────────────────────

export function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what)
}

export function same(actual: unknown, expected: unknown, what: string): void {
  const [a, b] = [shown(actual), shown(expected)]
  check(a === b, `${what}: expected ${b}, got ${a}`)
}

export async function rejects(promise: Promise<unknown>, code: string, what: string): Promise<void> {
  let outcome = 'resolved'
  try {
    await promise
  } catch (error) {
    outcome = error instanceof OdradekError ? error.code : String(error)
  }
  same(outcome, code, what)
}

/** Text that is equal for equal data; bytes and what JSON leaves out are told apart. */
function shown(data: unknown): string {
  return (
    JSON.stringify(data, (_name, value: unknown) => {
      if (value instanceof Uint8Array) return `bytes ${[...value].join(' ')}`
      if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
      return value === undefined ? 'undefined' : value
    }) ?? 'undefined'
  )
}

/** The order that marks always keep. */
export function checkMarks({ start, stable, high, end }: Readonly<Marks>): void {
  check(
    0 <= start && start <= stable && stable <= high && high <= end,
    `start ≤ stable ≤ high ≤ end, not ${start}, ${stable}, ${high}, ${end}`,
  )
}

/** The marks as they are now; an engine may derive them, so they are read one by one. */
export function marksOf(log: PartitionLog): Marks {
  const { start, stable, high, end, epoch } = log.marks
  return { start, stable, high, end, epoch }
}

/** Everything about a log that a refused append must leave alone. */
export function stateOf(log: PartitionLog): unknown {
  return { ...marksOf(log), records: log.records, sizeBytes: log.sizeBytes }
}

// ── appending ─────────────────────────────────────────────────────────────────────────────────────

export interface Row {
  readonly value: unknown
  readonly key?: Key | null
  readonly headers?: RecordHeaders | null
  readonly timestamp?: number
  readonly sizeBytes?: number
}

export function columnsOf(rows: readonly Row[]): Columns {
  const columns = new Columns(0)
  for (const { value, key = null, headers = null, timestamp = T0, sizeBytes = SIZE } of rows) {
    columns.push(value, key, headers, timestamp, sizeBytes)
  }
  return columns
}

/** As a publisher in the process makes it. */
export function batchOf(rows: readonly Row[], producer: ProducerInfo | null = null): Batch {
  const sizeBytes = rows.reduce((sum, row) => sum + (row.sizeBytes ?? SIZE), 0)
  return { count: rows.length, sizeBytes, columns: columnsOf(rows), bytes: null, producer }
}

/** As a client on the wire sends it. */
export function wireBatchOf(rows: readonly Row[], producer: ProducerInfo | null = null): Batch {
  const columns = columnsOf(rows)
  const options = { baseOffset: 0, leaderEpoch: 0, producer }
  return wireBatch(encodeBatch(columns, 0, rows.length, defaultCodec, options), rows.length, producer)
}

export function wireBatch(bytes: Uint8Array, count: number, producer: ProducerInfo | null = null): Batch {
  return { count, sizeBytes: bytes.length, columns: null, bytes, producer }
}

/** As a transaction coordinator ends a transaction. */
export function markerOf(producer: ProducerInfo, commit: boolean): Batch {
  const bytes = encodeMarker(
    { commit, coordinatorEpoch: 0 },
    { baseOffset: 0, leaderEpoch: 0, producerId: producer.id, producerEpoch: producer.epoch, timestamp: T0 },
  )
  return wireBatch(bytes, 1)
}

export function producerOf(id: number, sequence: number, options: Partial<ProducerInfo> = {}): ProducerInfo {
  return { id, epoch: 0, sequence, transactional: false, ...options }
}

export function valuesFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i)
}

/** One record each, in order; answers the offsets or refusals. */
export async function publish(log: PartitionLog, values: readonly unknown[]): Promise<number[]> {
  const offsets: number[] = []
  for (const value of values) {
    let offset = log.tryAppendOne(value, null, null, T0, SIZE)
    if (offset === NO_ROOM && log.marks.high < log.marks.end) {
      // What was accepted before may be in the way only because it is not durable yet.
      await settled(log)
      offset = log.tryAppendOne(value, null, null, T0, SIZE)
    }
    offsets.push(offset)
  }
  await settled(log)
  return offsets
}

/** Appends what must be accepted, waits until it is durable, and answers its first offset. */
export async function accept(log: PartitionLog, batch: Batch): Promise<number> {
  const answer = log.tryAppend(batch)
  check(typeof answer === 'object', `the batch is accepted, not ${String(answer)}`)
  await log.durable(answer.last)
  return answer.base
}

/** Waits until all of the log is durable. */
export async function settled(log: PartitionLog): Promise<void> {
  if (log.marks.end > 0) await log.durable(log.marks.end - 1)
}

// ── reading ───────────────────────────────────────────────────────────────────────────────────────

export interface ReadRow {
  readonly offset: number
  readonly value: unknown
  readonly key: Key | null
  readonly headers: readonly (readonly [string, unknown])[]
  readonly timestamp: number
}

export interface ReadResult {
  readonly rows: readonly ReadRow[]
  /** Where the reader came to rest. */
  readonly next: number
}

/** All that a reader sees from `from` on, `max` rows at a time. */
export async function readRows(
  log: PartitionLog,
  from: number,
  isolation: Isolation = 'committed',
  max = 100,
): Promise<ReadResult> {
  const rows: ReadRow[] = []
  const slice = new Slice()
  let next = from
  for (;;) {
    const result = log.peek(next, max, isolation, slice)
    if (result === 'end') return { rows, next }
    check(result !== 'range', `offset ${next} is in the log`)
    const run = result === 'hit' ? slice : await log.load(next, 1_000_000, isolation)
    check(run.next > next, `a read at ${next} comes further`)
    rows.push(...rowsOf(run))
    next = run.next
  }
}

export function rowsOf({ columns, row, count }: Slice): ReadRow[] {
  return Array.from({ length: count }, (_, i) => ({
    offset: columns.offsetAt(row + i),
    value: columns.values[row + i],
    key: columns.keyAt(row + i),
    headers: [...(columns.headersAt(row + i) ?? [])],
    timestamp: columns.timestampAt(row + i),
  }))
}

export async function valuesOf(log: PartitionLog, from: number, isolation?: Isolation): Promise<unknown[]> {
  return (await readRows(log, from, isolation)).rows.map((row) => row.value)
}
