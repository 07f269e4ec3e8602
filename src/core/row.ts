/**
 * What stands between a row of the log and a handler: whether a former process settled it, for whom it is, whether
 * it can be delivered at all, and whether an earlier record of its key is unsettled. What must not be handed
 * out now leaves here with a place: passed by, on its way to the dead letters, or held.
 */
import { PoisonValue } from '../log/contract.ts'
import type { Columns } from '../model/batch.ts'
import { messageOf } from '../model/errors.ts'
import type { Cursor } from './cursor.ts'
import { REDRIVE_READER_HEADER } from './dead-letter.ts'
import { DeliveryRecord, GATHERED, HELD } from './delivery.ts'

/** The first delivery of a row in this process. */
export function recordOf(cursor: Cursor, columns: Columns, row: number, offset: number): DeliveryRecord {
  if (!cursor.mark.remembers) return new DeliveryRecord(cursor, columns, row, 1)
  const starts = cursor.mark.startsAt(offset)
  const attempt = Math.min(starts + 1, cursor.reader.settings.retry.attempts)
  const record = new DeliveryRecord(cursor, columns, row, attempt)
  if (starts > 0) record.more().redelivered = true
  return record
}

/** Whether rows of these columns may be screened at all: most may not, and are not asked. */
export function needsLook(cursor: Cursor, columns: Columns): boolean {
  return columns.headers !== null || columns.foreign || cursor.mark.remembers
}

/** Not to be handed out now, by content (where `checked`) or by order. */
export function isConsumed(
  cursor: Cursor,
  columns: Columns,
  row: number,
  offset: number,
  checked: boolean,
): boolean {
  if (checked && isScreened(cursor, columns, row, offset)) return true
  return cursor.byKey && cursor.chains.size > 0 && isHeldByKey(cursor, columns, row, offset)
}

/** Passes by what was settled before or is another reader's; sends what cannot be delivered to the dead letters. */
export function isScreened(cursor: Cursor, columns: Columns, row: number, offset: number): boolean {
  const verdict = verdictOn(cursor, columns, row, offset)
  if (verdict === undefined) return false
  if (verdict === 'not-ours') {
    cursor.policy?.leaves(columns.sizeAt(row))
    cursor.passTo(offset + 1)
    return true
  }
  const record = recordOf(cursor, columns, row, offset)
  cursor.window.enter(record, offset)
  cursor.reader.settle.failUnseen(record, verdict)
  return true
}

/** Undefined: hand it out. `not-ours`: pass by. Anything else is why it goes to the dead letters. */
function verdictOn(cursor: Cursor, columns: Columns, row: number, offset: number): string | undefined {
  const { mark, partition, reader } = cursor
  if (mark.wasSettled(offset)) return 'not-ours'
  if (mark.isExhausted(offset)) return 'the process ended during its last delivery'
  const reserved = columns.headersAt(row)?.get(REDRIVE_READER_HEADER)
  if (reserved !== undefined && reserved !== reader.key) return 'not-ours'
  if (!columns.foreign) return undefined
  const value = columns.values[row]
  if (value instanceof PoisonValue) return `cannot be decoded: ${messageOf(value.cause)}`
  return partition.topic.schemaFailure(value)
}

/** A record whose key is busy enters the window, but waits for its turn. Within one batch keys may repeat. */
export function isHeldByKey(cursor: Cursor, columns: Columns, row: number, offset: number): boolean {
  const key = columns.keyAt(row)
  const last = key === null ? undefined : cursor.chains.last(key)
  if (last === undefined || last.state === GATHERED) return false
  const record = recordOf(cursor, columns, row, offset)
  record.state = HELD
  cursor.window.enter(record, offset)
  cursor.chains.add(record)
  return true
}
