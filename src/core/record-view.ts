/**
 * A record as a view of one row of somebody's columns: nothing is copied. Getters without setters make
 * the envelope read-only.
 */
import type { Columns } from '../model/batch.ts'
import { ID_HEADER, type Key, type LogRecord, NO_HEADERS, type RecordHeaders } from '../model/record.ts'
import type { Partition } from './partition.ts'

export abstract class RecordView<T = unknown> implements LogRecord<T> {
  declare readonly columns: Columns
  declare readonly row: number

  constructor(columns: Columns, row: number) {
    this.columns = columns
    this.row = row
  }

  abstract get home(): Partition

  get topic(): string {
    return this.home.topic.name
  }
  get partition(): number {
    return this.home.index
  }
  get offset(): number {
    return this.columns.offsetAt(this.row)
  }
  get timestamp(): number {
    return this.columns.timestampAt(this.row)
  }
  get key(): Key | null {
    return this.columns.keyAt(this.row)
  }
  get value(): T {
    return this.columns.values[this.row] as T
  }
  get headers(): RecordHeaders {
    return this.columns.headersAt(this.row) ?? NO_HEADERS
  }
  get id(): string {
    const given = this.columns.headersAt(this.row)?.get(ID_HEADER)
    return given ?? `${this.home.topic.id}/${this.partition}/${this.offset}`
  }

  /** What loggers and the console show. */
  toJSON(): object {
    const { id, topic, partition, offset, timestamp, key, value, headers } = this
    return { id, topic, partition, offset, timestamp, key, value, headers: headers.toJSON() }
  }
}

/** What `console.log` shows in Node: the record, not our bookkeeping. */
Object.defineProperty(RecordView.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: RecordView): object {
    return this.toJSON()
  },
})

/** A record that was read, not delivered. */
export class ReadRecord<T = unknown> extends RecordView<T> {
  readonly home: Partition

  constructor(home: Partition, columns: Columns, row: number) {
    super(columns, row)
    this.home = home
  }
}
