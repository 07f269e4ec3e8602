/**
 * The loop that most readers live in: one member takes the records of a cursor one by one, and acks each by
 * returning. Everything that is not of that kind leaves the loop and goes the long way, through the pump.
 *
 *   row ─► new delivery ─► window ─► handler ─► returned nothing? ─► settled ─► next row
 *                                        └ anything else, or the cursor was touched ─► out
 *
 * The window, the counters and the places are right before and after each handler, as on any other way. What makes it
 * fast is that it is short: all that it calls fits into what an optimising compiler inlines into one function. Where a
 * little more is called, a record takes a third longer.
 */
import type { Columns } from '../model/batch.ts'
import type { Cursor } from './cursor.ts'
import { DeliveryRecord } from './delivery.ts'
import type { Member } from './member.ts'

/**
 * Hands out rows from `first` on, for the first time, nothing else being in hand; answers how many. Fewer than there are: the
 * member has no place, a record is unsettled, the log overtook the cursor, or its `stamp` changed.
 */
export function runPlainly(
  cursor: Cursor,
  member: Member,
  columns: Columns,
  first: number,
  end: number,
): number {
  const { window, log, stamp } = cursor
  let row = first
  while (row < end && member.free) {
    const offset = columns.offsetAt(row)
    const record = new DeliveryRecord(cursor, columns, row++, 1)
    window.enter(record, offset)
    cursor.inFlight++
    if (!member.take(record)) {
      if (window.unsettled > 0 || cursor.stamp !== stamp) break
    } else if (cursor.stamp === stamp) cursor.ackAlone(record, offset)
    else {
      cursor.ackNow(record, offset)
      break
    }
    if (window.next < log.marks.start) break
  }
  return row - first
}
