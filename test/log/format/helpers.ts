/** What the tests of the format share: hexadecimal, records as plain data, and errors by their code. */
import type { Columns } from '../../../src/model/batch.ts'
import { Columns as Rows } from '../../../src/model/batch.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import type { HeaderValue, Key } from '../../../src/model/record.ts'
import { RecordHeaders } from '../../../src/model/record.ts'

export function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** The code of the OdradekError that `act` throws; anything else fails the test. */
export function codeOf(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof OdradekError) return error.code
    throw error
  }
  return 'nothing thrown'
}

/** One record as data. */
export interface Row {
  readonly offset: number
  readonly timestamp: number
  readonly key: Key | null
  readonly value: unknown
  readonly headers: readonly (readonly [string, HeaderValue])[]
}

export function columnsOf(rows: readonly Row[]): Columns {
  const columns = new Rows(rows[0]?.offset ?? 0, rows.length)
  for (const { timestamp, key, value, headers } of rows) {
    columns.push(value, key, headers.length === 0 ? null : new RecordHeaders(headers), timestamp, 0)
  }
  if (rows.some(({ offset }, i) => offset !== columns.base + i)) {
    columns.offsets = Float64Array.from(rows, ({ offset }) => offset)
  }
  return columns
}

export function rowsOf(columns: Columns): Row[] {
  return Array.from({ length: columns.count }, (_, row) => ({
    offset: columns.offsetAt(row),
    timestamp: columns.timestampAt(row),
    key: columns.keyAt(row),
    value: columns.values[row],
    headers: [...(columns.headersAt(row) ?? [])],
  }))
}
