/**
 * Fetch: whole batches of several partitions, from the one that holds the offset asked for.
 *
 *   4    isolation; batches of format 2
 *   5    log start offsets
 *   6    KAFKA_STORAGE_ERROR is understood
 *   7    sessions (KIP-227)
 *   9    the client's leader epoch is checked (KIP-320)
 *   10   zstd is understood (KIP-110)
 *   11   racks and preferred replicas (KIP-392): there is one replica, so none is preferred
 *   12   flexible; the epoch of the last record fetched, and where it diverges (KIP-595)
 *   13   topics by id (KIP-516)
 *   15   the id of a replica is a tagged field
 *   16   where the leader is, to who asked another node (KIP-951)
 *   17   directories of replicas
 *   18   high watermarks of replicas
 *
 * While a fetch waits, what its client sends after it on the same connection waits too, as in Kafka: clients fetch on a
 * connection of its own.
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { fetch as api } from '../../wire/messages/01-fetch.ts'
import type { Fetched } from '../fetch-sessions.ts'
import { Fetching, type PartitionFetched } from '../fetching.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { leaderHint } from '../partitions.ts'
import type { World } from '../world.ts'

type Response = ResponseInputOf<typeof api>
type TopicResponse = Response['responses'][number]
type Endpoint = NonNullable<Response['nodeEndpoints']>[number]

const READ_COMMITTED = 1

export const fetch: Handler = handler(api, (request, call, world) => {
  const { fetchSessions } = world
  const begun = fetchSessions.begin(request, call.version)
  if (begun.errorCode !== KAFKA_ERRORS.NONE) {
    return { throttleTimeMs: 0, errorCode: begun.errorCode, sessionId: 0, responses: [] }
  }
  const { minBytes, maxBytes, maxWaitMs, isolationLevel } = request
  const committed = isolationLevel === READ_COMMITTED
  const options = { committed, minBytes, maxBytes, maxWaitMs }
  const fetching = new Fetching(world, call, begun.wanted, begun.usesIds, options)
  return fetching.run().then((all) => {
    const { errorCode, sessionId, fetched } = fetchSessions.end(begun, all)
    const nodeEndpoints = endpointsFor(world, call, fetched)
    return { throttleTimeMs: 0, errorCode, sessionId, responses: byTopic(fetched), nodeEndpoints }
  })
})

/** Neighbours of one topic stand together; the order is that of the session. */
function byTopic(fetched: readonly Fetched<PartitionFetched>[]): TopicResponse[] {
  const topics: TopicResponse[] = []
  let partitions: PartitionFetched[] = []
  let last: TopicResponse | undefined
  for (const { wanted, response } of fetched) {
    const { topic, topicId } = wanted
    if (topic !== last?.topic || topicId !== last.topicId) {
      partitions = []
      last = { topic, topicId, partitions }
      topics.push(last)
    }
    partitions.push(response)
  }
  return topics
}

/** Where the leaders are reached that partitions were told of. */
function endpointsFor(world: World, call: Call, fetched: readonly Fetched<PartitionFetched>[]): Endpoint[] {
  const endpoints = new Map<number, Endpoint>()
  for (const { wanted, response } of fetched) {
    if (response.currentLeader === undefined || wanted.found === null) continue
    const { endpoint } = leaderHint(world, call, wanted.found)
    if (endpoint !== undefined) endpoints.set(endpoint.nodeId, { ...endpoint, rack: null })
  }
  return [...endpoints.values()]
}
