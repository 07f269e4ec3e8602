/**
 * Metadata: the brokers, and of topics their partitions and who leads them.
 *
 *   0     all topics: an empty array
 *   1     all topics: null, and an empty array is none; controller, racks, internal topics
 *   2     cluster id
 *   4     whether missing topics may be created
 *   5     offline replicas
 *   7     leader epochs
 *   8     authorized operations, where they are asked for; those of the cluster until 10, then DescribeCluster tells them
 *   9     flexible
 *   10    topics by id (KIP-516); topics tell theirs
 *   12    a topic that is asked for by its id needs no name
 *   13    an error of the whole request
 *
 * Topics that are missing are made here, if the server and the client agree: a response that says so comes after they are
 * there. Every partition has one replica, on the node that leads it; its leader epoch grows when a log lost something.
 */
import { checkTopicName } from '../../core/names.ts'
import type { Topic } from '../../core/topic.ts'
import { OdradekError } from '../../model/errors.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { UNKNOWN_OPERATIONS } from '../../wire/constants.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { metadata as api } from '../../wire/messages/03-metadata.ts'
import { NO_UUID } from '../../wire/uuid.ts'
import { Refusal } from '../admin-errors.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { CLUSTER_OPERATIONS, TOPIC_OPERATIONS } from '../operations.ts'
import { storageError } from '../storage-errors.ts'
import { brokersAt, isInternal, partitionView } from '../topic-view.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>
type TopicResponse = Response['topics'][number]

const FIRST_WITH_NULL = 1
const FIRST_WITHOUT_NAMES = 12

export const metadata: Handler = handler(api, async (request, call, world) => {
  const { cluster } = world
  const brokers = brokersAt(call.listener, world).map(({ id, ...address }) => {
    return { nodeId: id, ...address, rack: null }
  })
  const topics = await topicsFor(request, call, world)
  const { includeTopicAuthorizedOperations, includeClusterAuthorizedOperations } = request
  return {
    throttleTimeMs: 0,
    brokers,
    clusterId: cluster.id,
    controllerId: cluster.controller.id,
    topics: includeTopicAuthorizedOperations
      ? topics.map((topic) => ({ ...topic, topicAuthorizedOperations: TOPIC_OPERATIONS }))
      : topics,
    clusterAuthorizedOperations: includeClusterAuthorizedOperations ? CLUSTER_OPERATIONS : UNKNOWN_OPERATIONS,
    errorCode: KAFKA_ERRORS.NONE,
  }
})

function topicsFor(request: Request, call: Call, world: World): Promise<TopicResponse[]> | TopicResponse[] {
  const asked = request.topics
  if (asked === null || (asked.length === 0 && call.version < FIRST_WITH_NULL)) {
    return world.parts.topics.list().map((topic) => described(topic, world))
  }
  const creates = request.allowAutoTopicCreation && world.options.autoCreateTopics
  const answered = new Set<string>()
  const distinct = asked.filter(({ topicId, name }) => {
    const key = topicId === NO_UUID ? `name/${name}` : topicId
    return !answered.has(key) && answered.add(key)
  })
  return new Turns(world.parts.ctx).each(distinct, ({ topicId, name }) =>
    topicId === NO_UUID ? byName(name ?? '', creates, world) : byId(topicId, call, world),
  )
}

function byId(topicId: string, call: Call, world: World): TopicResponse {
  const topic = world.parts.topics.byId(topicId)
  if (topic !== undefined) return described(topic, world)
  const name = call.version < FIRST_WITHOUT_NAMES ? '' : null
  return { ...missing(name, KAFKA_ERRORS.UNKNOWN_TOPIC_ID), topicId }
}

async function byName(name: string, creates: boolean, world: World): Promise<TopicResponse> {
  const { topics } = world.parts
  const topic = topics.get(name)
  if (topic !== undefined) return described(topic, world)
  try {
    // Who may not create a topic of that name is told so, also where nothing is created.
    if (!creates) checkTopicName(name)
    else return described(await created(name, world), world)
  } catch (error) {
    return unlessMade(name, error, world)
  }
  return missing(name, KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION)
}

/** @throws Refusal where there are too many */
function created(name: string, { options, configs, bounds }: World): Promise<Topic> {
  const { defaultPartitions } = options
  return bounds.partitions.making(defaultPartitions, () => configs.create(name, defaultPartitions))
}

/** Somebody else may have made it meanwhile, of another shape. */
function unlessMade(name: string, error: unknown, world: World): TopicResponse {
  const topic = world.parts.topics.get(name)
  if (topic !== undefined) return described(topic, world)
  // No other answer is understood here: clients ask again, as where topics are not made at all. The log is told why.
  if (error instanceof Refusal) return missing(name, KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION)
  const isInvalid = error instanceof OdradekError && error.code === 'INVALID_TOPIC'
  return missing(name, isInvalid ? KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION : storageError(error))
}

function missing(name: string | null, errorCode: number): TopicResponse {
  return { errorCode, name, topicId: NO_UUID, isInternal: false, partitions: [] }
}

function described({ name, id, partitions }: Topic, world: World): TopicResponse {
  return {
    errorCode: KAFKA_ERRORS.NONE,
    name,
    topicId: id,
    isInternal: isInternal(name),
    partitions: partitions.map((partition) => partitionView(partition, world)),
  }
}
