/**
 * The publish ids of a topic that another process has left: they stand in the headers of its records, so the window is
 * read back from the logs, the newest records first, until it is full or its time is over.
 *
 *   start ──────── now − windowMs ──── │ page │ page │ page │ end
 *                  │ not looked at ◄───────────────────────┘ until `records` ids are found
 *
 * Copies that a redrive has sent back, and dead letters, carry the id of their original: they are not its publish.
 */
import type { PartitionLog } from '../log/contract.ts'
import { ID_HEADER, type RecordHeaders } from '../model/record.ts'
import type { CoreContext } from './context.ts'
import { DLQ_TOPIC_HEADER, REDRIVE_COUNT_HEADER } from './dead-letter.ts'
import type { Topic } from './topic.ts'

/** Offsets looked at in one go. */
const PAGE = 4_096
const LOAD_BYTES = 1024 * 1024

interface Seen {
  readonly id: string
  readonly partition: number
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/** Before the topic takes its first publish. What cannot be read is raised: a repeat is then taken for new. */
export async function restoreIds(topic: Topic, ctx: CoreContext): Promise<void> {
  const { dedupe } = topic.settings
  if (dedupe === null) return
  const { windowMs, records } = dedupe
  const now = ctx.clock.now()
  let seen: Seen[] = []
  for (const { index, log } of topic.partitions) {
    try {
      seen = newest([...seen, ...(await newestIds(log, index, now - windowMs, records))], records)
    } catch (error) {
      ctx.events.error(error, `reading back the publish ids of "${topic.name}" partition ${index}`)
    }
  }
  for (const { id, partition, offset, timestamp } of seen) {
    // The wall clock may have been put back meanwhile.
    topic.ids.restored(id, { partition, offset }, Math.max(0, now - timestamp))
  }
}

/** In order of time, at most `max` of them. */
function newest(seen: Seen[], max: number): Seen[] {
  return seen.sort((a, b) => a.timestamp - b.timestamp).slice(-max)
}

/** At least `enough` of the newest, where there are as many since `since`. */
async function newestIds(
  log: PartitionLog,
  partition: number,
  since: number,
  enough: number,
): Promise<Seen[]> {
  const { start, high } = log.marks
  const from = since === Number.NEGATIVE_INFINITY ? start : ((await log.offsetAt(since))?.offset ?? high)
  let seen: Seen[] = []
  for (let to = high; to > from && seen.length < enough; to -= PAGE) {
    seen = [...(await idsIn(log, partition, Math.max(from, to - PAGE), to)), ...seen]
  }
  return seen
}

async function idsIn(log: PartitionLog, partition: number, from: number, to: number): Promise<Seen[]> {
  const seen: Seen[] = []
  for (let at = from; at < to; ) {
    const { columns, row, count, next } = await log.load(at, LOAD_BYTES, 'uncommitted')
    for (let i = row; i < row + count; i++) {
      const offset = columns.offsetAt(i)
      if (offset >= to) break
      const id = publishId(columns.headersAt(i))
      if (id !== undefined) seen.push({ id, partition, offset, timestamp: columns.timestampAt(i) })
    }
    at = Math.max(next, at + 1)
  }
  return seen
}

function publishId(headers: RecordHeaders | null): string | undefined {
  if (headers === null || headers.has(REDRIVE_COUNT_HEADER) || headers.has(DLQ_TOPIC_HEADER)) return undefined
  return headers.get(ID_HEADER) ?? undefined
}
