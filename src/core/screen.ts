/**
 * What stands between a row and a handler: a redriven copy is for the reader that failed, and rows that
 * came from foreign bytes are decoded and validated here, where a failure is one record's and no jam.
 */
import { PoisonValue } from '../log/contract.ts'
import type { Columns } from '../model/batch.ts'
import { messageOf } from '../model/errors.ts'
import { REDRIVE_READER_HEADER } from './dead-letter.ts'
import type { Reader } from './reader.ts'
import type { Topic } from './topic.ts'

/** Undefined: hand it out. `not-ours`: pass by. Anything else is why it goes to the dead letters. */
export function screen(reader: Reader, topic: Topic, columns: Columns, row: number): string | undefined {
  const reserved = columns.headersAt(row)?.get(REDRIVE_READER_HEADER)
  if (reserved !== undefined && reserved !== reader.key) return 'not-ours'
  if (!columns.foreign) return undefined
  const value = columns.values[row]
  if (value instanceof PoisonValue) return `cannot be decoded: ${messageOf(value.cause)}`
  return topic.schemaFailure(value)
}
