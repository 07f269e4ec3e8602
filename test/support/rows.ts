/** Delivery records without a broker, for the structures that hold them. */
import type { Cursor } from '../../src/core/cursor.ts'
import { DeliveryRecord } from '../../src/core/delivery.ts'
import { Columns } from '../../src/model/batch.ts'
import type { Key } from '../../src/model/record.ts'

/** A record at `offset` whose cursor is never asked for anything. */
export function recordAt(offset: number, key: Key | null = null, attempt = 1): DeliveryRecord {
  const columns = new Columns(offset)
  columns.push(`value ${offset}`, key, null, 0, 64)
  return new DeliveryRecord(undefined as unknown as Cursor, columns, 0, attempt)
}
