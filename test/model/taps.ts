/**
 * Where the model listens: the logs, through the contract every engine keeps, and four moments inside the
 * broker that nobody outside can see in time: a member joins, a member leaves, a cursor is put elsewhere,
 * a log gets other limits. Everything else it learns as users do.
 */
import { Cursor } from '../../src/core/cursor.ts'
import type { Member } from '../../src/core/member.ts'
import { Reader } from '../../src/core/reader.ts'
import type { Engine, PartitionLog, RetentionLimits } from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { type Columns, Slice } from '../../src/model/batch.ts'
import type { Clock } from '../../src/model/clock.ts'
import type { ModelPartition, Row } from './logs.ts'

/** Records after which loaded rows are forgotten. */
const PAGED_OUT_EVERY = 4

export interface LogListener {
  opened(topic: string, topicId: string, partition: number, retention: RetentionLimits): ModelPartition
  advanced(partition: ModelPartition, start: number, rows: readonly Row[]): void
  configured(partition: ModelPartition, retention: RetentionLimits): void
}

export interface TapOptions {
  readonly durable: boolean
  /** One row in so many must be loaded before it can be read. 0: none. */
  readonly misses: number
}

/** A memory engine whose logs are listened to. */
export function tappedEngine(clock: Clock, options: TapOptions, listener: LogListener): Engine {
  const inner = memoryEngine({ clock })
  return {
    scheme: inner.scheme,
    durable: options.durable,
    encodes: inner.encodes,
    compacts: inner.compacts,
    retention: inner.retention,
    meta: inner.meta,
    refusal: (logs, sizeBytes) => inner.refusal(logs, sizeBytes),
    async openLog(spec) {
      const log = await inner.openLog(spec)
      const partition = listener.opened(spec.topic, spec.topicId, spec.partition, spec.retention)
      listen(log, partition, listener)
      if (options.misses > 0) miss(log, options.misses)
      return log
    },
    deleteLog: (topicId, partition) => inner.deleteLog(topicId, partition),
    close: () => inner.close(),
  }
}

function listen(log: PartitionLog, partition: ModelPartition, listener: LogListener): void {
  const slice = new Slice()
  const peek = log.peek.bind(log)
  log.onAdvance(() => {
    const rows: Row[] = []
    for (let at = partition.end; at < log.marks.end; at = slice.next) {
      if (peek(at, log.marks.end - at, 'committed', slice) !== 'hit') break
      for (let row = slice.row; row < slice.row + slice.count; row++) rows.push(rowOf(slice.columns, row))
    }
    listener.advanced(partition, log.marks.start, rows)
  })
  const configure = log.configure.bind(log)
  log.configure = (retention) => {
    listener.configured(partition, retention)
    configure(retention)
  }
}

function rowOf(columns: Columns, row: number): Row {
  const headers = columns.headersAt(row)
  const header = (name: string): string | null => headers?.get(name) ?? null
  const from = header('__dlq.errors.topic')
  const where = `${header('__dlq.errors.partition')}/${header('__dlq.errors.offset')}`
  return {
    offset: columns.offsetAt(row),
    value: columns.values[row] as string,
    key: columns.keyAt(row) as string | null,
    sizeBytes: columns.sizeAt(row),
    timestamp: columns.timestampAt(row),
    onlyFor: header('__redrive.reader'),
    letterOf: from === null ? null : `${from}/${where}/${header('__dlq.errors.group')}`,
    isCopy: header('__redrive.count') !== null && from === null,
  }
}

/**
 * As an engine that pages does: one row in `every` is not resident until it is loaded, and what was loaded is
 * forgotten now and then, when the log grows.
 */
function miss(log: PartitionLog, every: number): void {
  const peek = log.peek.bind(log)
  const loaded = new Set<number>()
  const isCold = (offset: number): boolean => offset % every === 0 && !loaded.has(offset)
  log.peek = (from, max, isolation, into) => {
    if (from < log.marks.start || from >= log.marks.stable) return peek(from, max, isolation, into)
    if (isCold(from)) return 'miss'
    let warm = 1
    while (warm < max && !isCold(from + warm)) warm++
    return peek(from, warm, isolation, into)
  }
  log.load = async (from, _maxBytes, isolation) => {
    const into = new Slice()
    loaded.add(from)
    peek(from, log.records, isolation, into)
    return into
  }
  log.onAdvance(() => {
    if (log.marks.end % PAGED_OUT_EVERY === 0) loaded.clear()
  })
}

export interface MomentListener {
  joined(reader: Reader, member: Member): void
  leaves(reader: Reader, member: Member): void
  reset(reader: Reader, topicId: string, partition: number, at: number): void
}

let listening: MomentListener | null = null

/** One at a time hears of the moments. */
export function listenTo(listener: MomentListener | null): void {
  listening = listener
}

const { join, leave } = Reader.prototype
Reader.prototype.join = function (member): void {
  listening?.joined(this, member)
  join.call(this, member)
}
Reader.prototype.leave = function (member): void {
  listening?.leaves(this, member)
  leave.call(this, member)
}
const { reset } = Cursor.prototype
Cursor.prototype.reset = function (at): void {
  listening?.reset(this.reader, this.partition.topic.id, this.partition.index, at)
  reset.call(this, at)
}
