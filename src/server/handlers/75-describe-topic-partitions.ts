/**
 * DescribeTopicPartitions: topics with their partitions, a page at a time (KIP-966). Topics come in the order of their
 * names; the cursor names the partition that the next page begins with, whether that still exists or not.
 *
 *   request   topics (none: all), cursor a-1 ──► a-1, a-2, c-0 … up to the limit ──► cursor of what follows, or null
 */
import { checkTopicName } from '../../core/names.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeTopicPartitions as api } from '../../wire/messages/75-describe-topic-partitions.ts'
import { NO_UUID } from '../../wire/uuid.ts'
import { outcomeOf } from '../admin-errors.ts'
import { type Handler, handler } from '../handler.ts'
import { TOPIC_OPERATIONS } from '../operations.ts'
import { isInternal, partitionView } from '../topic-view.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>
type TopicView = Response['topics'][number]

/** Partitions of a page at most, as Kafka's `max.request.partition.size.limit`. */
const PAGE = 2_000

export const describeTopicPartitions: Handler = handler(api, (request, _call, world) => {
  const { cursor, responsePartitionLimit } = request
  const all = request.topics.length === 0
  const names = all
    ? world.parts.topics.list().map(({ name }) => name)
    : request.topics.map(({ name }) => name)
  if (cursor !== null && (cursor.partitionIndex < 0 || (!all && !names.includes(cursor.topicName)))) {
    return invalid(names)
  }
  const from = cursor?.topicName ?? ''
  const sorted = [...new Set(names)].sort().filter((name) => name >= from)
  return page(sorted, cursor, Math.max(Math.min(responsePartitionLimit, PAGE), 1), world)
})

function page(names: readonly string[], from: Request['cursor'], limit: number, world: World): Response {
  const topics: TopicView[] = []
  let left = limit
  for (const topicName of names) {
    if (left === 0) return answer(topics, { topicName, partitionIndex: 0 })
    const first = topicName === from?.topicName ? from.partitionIndex : 0
    const view = viewOf(topicName, first, left, world)
    topics.push(view)
    left -= view.partitions.length
    const next = first + view.partitions.length
    if (next < (world.parts.topics.get(topicName)?.partitions.length ?? 0)) {
      return answer(topics, { topicName, partitionIndex: next })
    }
  }
  return answer(topics, null)
}

function viewOf(name: string, first: number, limit: number, world: World): TopicView {
  try {
    const { id: topicId, partitions } = world.parts.topics.require(checkTopicName(name))
    return {
      errorCode: KAFKA_ERRORS.NONE,
      name,
      topicId,
      isInternal: isInternal(name),
      partitions: partitions.slice(first, first + limit).map((partition) => ({
        ...partitionView(partition, world),
        // Who could lead although it is behind: there is one replica.
        eligibleLeaderReplicas: [],
        lastKnownElr: [],
      })),
      topicAuthorizedOperations: TOPIC_OPERATIONS,
    }
  } catch (error) {
    return missing(name, outcomeOf(error).errorCode)
  }
}

function missing(name: string, errorCode: number): TopicView {
  return { errorCode, name, topicId: NO_UUID, isInternal: isInternal(name), partitions: [] }
}

/** A cursor that belongs to another request. */
function invalid(names: readonly string[]): Response {
  return answer(
    names.map((name) => missing(name, KAFKA_ERRORS.INVALID_REQUEST)),
    null,
  )
}

function answer(topics: readonly TopicView[], nextCursor: Response['nextCursor']): Response {
  return { throttleTimeMs: 0, topics, nextCursor }
}
