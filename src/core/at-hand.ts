/**
 * Rows that a pump has taken to hand, for places that become free in the reactions of handlers' promises: a look at
 * the log for each would cost as much as the record.
 *
 *   log    ─────────────┬──────────── at hand ────────────┬─────────
 *          handed out   │ row ─►                           end
 *                       └ the window's next, or these are nothing to go by any more
 *
 * Nobody else can have taken them while the cursor's `stamp` and its window's `next` are what they were.
 */
import { Slice } from '../model/batch.ts'
import type { Cursor } from './cursor.ts'
import type { DeliveryRecord } from './delivery.ts'
import type { Member } from './member.ts'
import { isConsumed, needsLook, recordOf } from './row.ts'

const MOST_ROWS = 64

const slice = new Slice()

export class AtHand {
  readonly #cursor: Cursor
  #columns = slice.columns
  #row = 0
  #end = 0
  #checked = false
  #stamp = 0

  constructor(cursor: Cursor) {
    this.#cursor = cursor
  }

  /** Whether there are any, if need be after a look at the log. They lie within the window and above the start. */
  get some(): boolean {
    const { log, stamp, window } = this.#cursor
    const { next } = window
    const valid = this.#row < this.#end && this.#stamp === stamp && next === this.#columns.offsetAt(this.#row)
    return (valid && next >= log.marks.start) || this.#reach()
  }

  #reach(): boolean {
    const cursor = this.#cursor
    if (cursor.policy !== null || cursor.peek(MOST_ROWS, slice) !== 'hit') return false
    const { columns, row, count } = slice
    this.#columns = columns
    this.#row = row
    this.#end = row + count
    this.#checked = needsLook(cursor, columns)
    this.#stamp = cursor.stamp
    return count > 0
  }

  /** The next record for a place of `member`, the only one there is: in the window, and in its key's chain. */
  nextFor(member: Member): DeliveryRecord | undefined {
    const cursor = this.#cursor
    const { reader, window } = cursor
    const columns = this.#columns
    while (this.#row < this.#end && this.#stamp === cursor.stamp) {
      const row = this.#row++
      const offset = columns.offsetAt(row)
      if (isConsumed(cursor, columns, row, offset, this.#checked)) continue
      const record = recordOf(cursor, columns, row, offset)
      if (cursor.only === null) {
        const chosen = reader.selected(record, reader.freeOf(cursor.members), cursor.members)
        if (chosen !== member || this.#stamp !== cursor.stamp) return undefined
      }
      window.enter(record, offset)
      if (cursor.byKey && columns.keys !== null) cursor.chains.add(record)
      cursor.inFlight++
      return record
    }
    return undefined
  }
}
