/** From what a caller says ('earliest', a date, an offset …) to one offset per partition, or an error. */
import { checkFrom, invalid } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { PartitionLog } from '../log/contract.ts'
import { OdradekError } from '../model/errors.ts'
import type { StartPosition } from '../model/options.ts'

/**
 * One entry per partition; undefined where `to` names only others. All or an error:
 * OFFSET_OUT_OF_RANGE outside of [start, end], INVALID_ARGUMENT for a bare offset with several partitions.
 *
 * What was published before the call counts as there, also if it is not durable yet, and is waited for: so it does
 * not depend on the engine who is at the tail, and what is accepted once this has resolved lies behind that.
 */
export async function resolvePositions(topic: Topic, to: StartPosition): Promise<(number | undefined)[]> {
  checkFrom(to)
  topic.expire()
  // Those there are now: others may be added while something is looked up.
  const partitions = [...topic.partitions]
  if (to === 'earliest') return partitions.map(({ log }) => log.marks.start)
  const ends = partitions.map(({ log }) => log.marks.end)
  if (partitions.some(({ log }) => log.marks.high < log.marks.end)) {
    await Promise.all(partitions.map(({ log }) => flushed(log)))
  }
  // Where a flush failed, the end is not reached: what lies behind it then is nobody's.
  const tails = partitions.map(({ log }, i) => Math.min(ends[i] as number, log.marks.high))
  if (to === 'latest') return tails
  if (to instanceof Date) {
    // What comes while it is looked up comes after the date.
    const found = await Promise.all(partitions.map(({ log }) => log.offsetAt(to.getTime())))
    return found.map((at, i) => at?.offset ?? (tails[i] as number))
  }
  if (typeof to === 'number') {
    if (partitions.length !== 1) {
      throw invalid(`"${topic.name}" has ${partitions.length} partitions; name them: { partition: offset }`)
    }
    return [inRange(topic, 0, to)]
  }
  const positions: (number | undefined)[] = partitions.map(() => undefined)
  for (const [name, offset] of Object.entries(to)) {
    const partition = topic.partitionAt(Number(name)).index
    positions[partition] = inRange(topic, partition, offset)
  }
  return positions
}

/** Resolves when what the log has now is durable, or is known not to be: how that ends is its publishers' to hear. */
export async function flushed(log: PartitionLog): Promise<void> {
  const { high, end } = log.marks
  if (high < end) await log.durable(end - 1).catch(() => undefined)
}

/** Whether retention has left them there. If not, while they were looked up, they are to be looked up anew. */
export function areKept(topic: Topic, positions: readonly (number | undefined)[]): boolean {
  return topic.partitions.every(({ log }, i) => (positions[i] ?? log.marks.end) >= log.marks.start)
}

/** The offset, if the partition has it or ends there. @throws OdradekError OFFSET_OUT_OF_RANGE */
export function inRange(topic: Topic, partition: number, offset: number): number {
  const { start, end } = topic.partitionAt(partition).log.marks
  if (offset >= start && offset <= end) return offset + 0
  throw new OdradekError(
    'OFFSET_OUT_OF_RANGE',
    `"${topic.name}" partition ${partition} has offsets ${start} to ${end}; ${offset} is not among them`,
  )
}
