/** Reading a log without a reader: nothing is tracked, nothing is held. */
import type { Partition } from '../core/partition.ts'
import { ReadRecord } from '../core/record-view.ts'
import { checkOffset } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import { Slice } from '../model/batch.ts'
import type { LogRecord } from '../model/record.ts'
import { inRange } from './positions.ts'

const LOAD_BYTES = 1024 * 1024

/** Records with `from ≤ offset < to`. @throws OdradekError INVALID_ARGUMENT, OFFSET_OUT_OF_RANGE */
export async function readRange(
  topic: Topic,
  index: number,
  from: number | undefined,
  to: number | undefined,
): Promise<LogRecord[]> {
  if (from !== undefined) checkOffset(from)
  if (to !== undefined) checkOffset(to)
  topic.expire()
  const partition = topic.partitionAt(index)
  const { marks } = partition.log
  const until = Math.min(to ?? marks.stable, marks.stable)
  const records: LogRecord[] = []
  for (let at = from === undefined ? marks.start : inRange(topic, index, from); at < until; ) {
    const page = await readRecords(partition, at, until, until - at)
    records.push(...page.records)
    // What retention took meanwhile is gone.
    at = Math.max(page.next, marks.start)
  }
  return records
}

/** At most `max` records of `[from, to)`, and where to go on. */
export async function readRecords(
  partition: Partition,
  from: number,
  to: number,
  max: number,
): Promise<{ records: LogRecord[]; next: number }> {
  const { log } = partition
  let slice = new Slice()
  if (log.peek(from, max, 'committed', slice) === 'miss')
    slice = await log.load(from, LOAD_BYTES, 'committed')
  const records: LogRecord[] = []
  for (let row = slice.row; row < slice.row + slice.count; row++) {
    if (records.length === max || slice.columns.offsetAt(row) >= to) break
    records.push(new ReadRecord(partition, slice.columns, row))
  }
  const last = records.at(-1)
  const cut = records.length < slice.count
  return { records, next: cut && last !== undefined ? last.offset + 1 : Math.max(slice.next, from + 1) }
}
