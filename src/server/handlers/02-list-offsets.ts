/**
 * ListOffsets: an offset for a timestamp, or for what a negative one stands for.
 *
 *   1     one offset for each partition: the first record at or after a timestamp, −1 the end, −2 the start
 *   2     isolation: with read_committed the end is where stable records end
 *   4     the client's leader epoch is checked, that of the record is told (KIP-320)
 *   6     flexible
 *   7     −3: the record with the newest timestamp (KIP-734)
 *   8     −4: the start of what is on this node, which is all of it (KIP-405)
 *   9     −5: the end of what is in another tier, which is nothing
 *   10    a timeout for what is in another tier
 *   11    −6: the start of what is not in another tier yet; there is none
 *
 * Where there is no such record, offset and timestamp are −1, and never one without the other: clients take an offset
 * without a timestamp, found by one, for a fault. What lies behind the end that is asked for is not found.
 */
import type { Partition } from '../../core/partition.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { listOffsets as api } from '../../wire/messages/02-list-offsets.ts'
import { repeated } from '../admin-errors.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { epochError, epochOf, partitionOf } from '../partitions.ts'
import { storageError } from '../storage-errors.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>['topics'][number]['partitions'][number]
type Response = ResponseInputOf<typeof api>['topics'][number]['partitions'][number]
interface Found {
  readonly offset: number
  readonly timestamp: number
  readonly leaderEpoch: number
}

const READ_COMMITTED = 1
const NOTHING: Found = { offset: -1, timestamp: -1, leaderEpoch: -1 }

const LATEST = -1
const EARLIEST = -2
const MAX_TIMESTAMP = -3
const EARLIEST_LOCAL = -4
const LATEST_TIERED = -5
const EARLIEST_PENDING_UPLOAD = -6

/** The versions from which negative timestamps are known. */
const SINCE: ReadonlyMap<number, number> = new Map([
  [LATEST, 1],
  [EARLIEST, 1],
  [MAX_TIMESTAMP, 7],
  [EARLIEST_LOCAL, 8],
  [LATEST_TIERED, 9],
  [EARLIEST_PENDING_UPLOAD, 11],
])

export const listOffsets: Handler = handler(api, async ({ isolationLevel, topics }, call, world) => {
  const committed = isolationLevel === READ_COMMITTED
  const turns = new Turns(world.parts.ctx)
  const answered = turns.each(topics, async ({ name, partitions }) => {
    const topic = world.parts.topics.get(name)
    const isRepeated = repeatedIn(partitions.map(({ partitionIndex }) => partitionIndex))
    const offsets = turns.each(partitions, async (request): Promise<Response> => {
      const { partitionIndex } = request
      const partition = isRepeated(partitionIndex)
        ? KAFKA_ERRORS.INVALID_REQUEST
        : partitionOf(world, call, topic, partitionIndex)
      return { partitionIndex, ...(await offsetFor(world, call, partition, request, committed)) }
    })
    return { name, partitions: await offsets }
  })
  return { throttleTimeMs: 0, topics: await answered }
})

function repeatedIn(indices: readonly number[]): (index: number) => boolean {
  const twice = repeated(indices)
  return (index) => twice.has(index)
}

async function offsetFor(
  world: World,
  call: Call,
  partition: Partition | number,
  { timestamp, currentLeaderEpoch }: Request,
  committed: boolean,
): Promise<Found & { readonly errorCode: number }> {
  const failure = (errorCode: number) => ({ ...NOTHING, errorCode })
  if (partition === KAFKA_ERRORS.INVALID_REQUEST) return failure(partition)
  if (timestamp < 0 && call.version < (SINCE.get(timestamp) ?? Number.POSITIVE_INFINITY)) {
    return failure(KAFKA_ERRORS.UNSUPPORTED_VERSION)
  }
  if (typeof partition === 'number') return failure(partition)
  const stale = epochError(partition, currentLeaderEpoch)
  if (stale !== KAFKA_ERRORS.NONE) return failure(stale)
  try {
    return { ...(await found(partition, timestamp, committed)), errorCode: KAFKA_ERRORS.NONE }
  } catch (error) {
    const gone = partitionOf(world, call, world.parts.topics.byId(partition.topic.id), partition.index)
    return failure(typeof gone === 'number' ? gone : storageError(error))
  }
}

async function found(partition: Partition, timestamp: number, committed: boolean): Promise<Found> {
  const { log } = partition
  const { start, stable, high, epoch } = log.marks
  const end = committed ? stable : high
  switch (timestamp) {
    case LATEST:
      return { offset: end, timestamp: -1, leaderEpoch: epoch }
    case EARLIEST:
    case EARLIEST_LOCAL:
      return { offset: start, timestamp: -1, leaderEpoch: epochOf(partition, start) }
    case LATEST_TIERED:
    case EARLIEST_PENDING_UPLOAD:
      return NOTHING
    default: {
      const at = await (timestamp === MAX_TIMESTAMP ? log.newest() : log.offsetAt(timestamp))
      if (at === undefined || at.offset >= end) return NOTHING
      return { ...at, leaderEpoch: epochOf(partition, at.offset) }
    }
  }
}
