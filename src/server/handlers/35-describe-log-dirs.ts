/**
 * DescribeLogDirs: what the partitions of a node take, in bytes.
 *
 *   1
 *   2    flexible
 *   3    an error of the whole request
 *   4    size of the volume, and what is free: not known here
 *
 * What is special here: there is one directory, named by the engine's scheme. In memory, bytes are nominal.
 */
import type { RequestOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeLogDirs as api } from '../../wire/messages/35-describe-log-dirs.ts'
import { type Handler, handler } from '../handler.ts'
import { isLeader } from '../partitions.ts'

const UNKNOWN_BYTES = -1
const NONE: ReadonlySet<number> = new Set()

export const describeLogDirs: Handler = handler(api, (request, call, world) => {
  const { topics, engine } = world.parts
  const askedFor = partitionsByTopic(request)
  const described = topics.list().flatMap((topic) => {
    const asked = askedFor === null ? null : (askedFor.get(topic.name) ?? NONE)
    const partitions = topic.partitions
      .filter(
        (partition) => (asked === null || asked.has(partition.index)) && isLeader(world, call, partition),
      )
      .map(({ index, log }) => {
        return { partitionIndex: index, partitionSize: log.sizeBytes, offsetLag: 0, isFutureKey: false }
      })
    return partitions.length === 0 ? [] : [{ name: topic.name, partitions }]
  })
  return {
    throttleTimeMs: 0,
    errorCode: KAFKA_ERRORS.NONE,
    results: [
      {
        errorCode: KAFKA_ERRORS.NONE,
        logDir: `${engine.scheme}:`,
        topics: described,
        totalBytes: UNKNOWN_BYTES,
        usableBytes: UNKNOWN_BYTES,
      },
    ],
  }
})

/** Null for all. */
function partitionsByTopic({ topics }: RequestOf<typeof api>): Map<string, Set<number>> | null {
  if (topics === null) return null
  const asked = new Map<string, Set<number>>()
  for (const { topic, partitions } of topics) {
    const known = asked.get(topic) ?? new Set()
    for (const partition of partitions) known.add(partition)
    asked.set(topic, known)
  }
  return asked
}
