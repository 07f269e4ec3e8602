/** Turns what a person says of a place, such as `-10` or `@-1h`, into the offsets of partitions. */
import type { KafkaCluster } from '../client/cluster.ts'
import { END, type Isolation, offsetsFor, placeKey, START, type TopicPartition } from '../client/offsets.ts'
import type { Position } from './offset-range.ts'

/** Where partitions begin and end, by `placeKey`. */
export interface Bounds {
  readonly starts: ReadonlyMap<string, number>
  readonly ends: ReadonlyMap<string, number>
}

export async function boundsOf(
  cluster: KafkaCluster,
  places: readonly TopicPartition[],
  isolation: Isolation = 'read_uncommitted',
): Promise<Bounds> {
  const at = (timestamp: number) => places.map(({ topic, partition }) => ({ topic, partition, timestamp }))
  const [starts, ends] = await Promise.all([
    offsetsFor(cluster, at(START), isolation),
    offsetsFor(cluster, at(END), isolation),
  ])
  return { starts, ends }
}

/** Within the bounds: there is nothing to be read before the start, and behind the end not yet. */
export async function offsetsAt(
  cluster: KafkaCluster,
  places: readonly TopicPartition[],
  position: Position,
  { starts, ends }: Bounds,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  const timestamp = position.at === 'time' ? position.timestamp : 0
  const byTime =
    position.at === 'time'
      ? await offsetsFor(
          cluster,
          places.map(({ topic, partition }) => ({ topic, partition, timestamp })),
        )
      : undefined
  for (const place of places) {
    const key = placeKey(place)
    const [start, end] = [starts.get(key) ?? 0, ends.get(key) ?? 0]
    const offset = byTime === undefined ? offsetAt(position, start, end) : (byTime.get(key) ?? -1)
    // No record is as young as that.
    const known = offset < 0 ? end : offset
    found.set(key, Math.min(Math.max(known, start), end))
  }
  return found
}

function offsetAt(position: Position, start: number, end: number): number {
  switch (position.at) {
    case 'start':
      return start
    case 'offset':
      return position.offset
    case 'after-start':
      return start + position.count
    case 'before-end':
      return Math.max(end - position.count, start)
    default:
      return end
  }
}
