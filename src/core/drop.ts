/**
 * Records that a reader gives up: below a floor that retention or its own bound has reached. What is in
 * flight settles normally; what waits (ready, retrying, held) goes, exactly counted.
 */
import type { Cursor } from './cursor.ts'
import { type DeliveryRecord, HELD, READY, RETRY, SETTLED } from './delivery.ts'
import type { DropReason } from './reader.ts'

/** Gives up everything below `floor` that is not in flight. */
export function dropTo(cursor: Cursor, floor: number, reason: DropReason): void {
  const { window } = cursor
  let first = floor
  let count = 0
  for (let at = Math.max(window.committed, cursor.droppedBelow); at < Math.min(floor, window.next); at++) {
    const record = window.at(at)
    if (record === undefined || !dropOne(cursor, record)) continue
    if (count++ === 0) first = at
  }
  if (floor > window.next) {
    first = Math.min(first, window.next)
    count += floor - window.next
    window.skip(floor)
    cursor.stamp++
  }
  if (floor > cursor.droppedBelow) cursor.droppedBelow = floor
  if (count > 0) cursor.countDropped(count, first, floor, reason)
  cursor.moved()
}

/** Whether a record that came back was passed by a drop meanwhile; then it is dropped here. */
export function dropIfPassed(cursor: Cursor, record: DeliveryRecord): boolean {
  const { offset } = record
  if (offset >= cursor.droppedBelow || !dropOne(cursor, record)) return false
  cursor.countDropped(1, offset, offset + 1, overtakenReason(cursor))
  return true
}

/** Why a reader loses what retention takes: by its own policy, or against it. */
export function overtakenReason(cursor: Cursor): DropReason {
  return cursor.reader.settings.overflow === 'drop-oldest' ? 'drop-oldest' : 'overtaken'
}

function dropOne(cursor: Cursor, record: DeliveryRecord): boolean {
  if (record.state !== READY && record.state !== RETRY && record.state !== HELD) return false
  cursor.reader.settle.cancelRetry(record)
  record.state = SETTLED
  cursor.leave(record)
  return true
}
