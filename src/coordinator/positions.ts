/** From what a caller says ('earliest', a date, an offset …) to one offset per partition, or an error. */
import { checkFrom, invalid } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import { OdradekError } from '../model/errors.ts'
import type { StartPosition } from '../model/options.ts'

/**
 * One entry per partition; undefined where `to` names only others. All or an error:
 * OFFSET_OUT_OF_RANGE outside of [start, end], INVALID_ARGUMENT for a bare offset with several partitions.
 */
export async function resolvePositions(topic: Topic, to: StartPosition): Promise<(number | undefined)[]> {
  checkFrom(to)
  topic.expire()
  const { partitions } = topic
  if (to === 'earliest') return partitions.map(({ log }) => log.marks.start)
  if (to === 'latest') return partitions.map(({ log }) => log.marks.high)
  if (to instanceof Date) {
    return Promise.all(
      partitions.map(async ({ log }) => {
        // What comes while it is looked up comes after the date.
        const { high } = log.marks
        return (await log.offsetAt(to.getTime()))?.offset ?? high
      }),
    )
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
