/**
 * CreateTopics: topics with partitions and configs, each on its own. Any node may be asked: there is one controller in all
 * of them, and nobody to send on to.
 *
 *   2
 *   4    partitions and replication factor may be -1, for the defaults
 *   5    flexible; answers what came of it: partitions, replication factor, configs
 *   7    answers the id
 *
 * What is special here: replicas and assignments are checked, and then there is one replica all the same; names leave
 * room for `dlq.`, so they have 245 characters where Kafka allows 249.
 */
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { createTopics as api } from '../../wire/messages/19-create-topics.ts'
import { NO_UUID } from '../../wire/uuid.ts'
import { DONE, type Outcome, outcomeOf, Refusal, refused, repeated, within } from '../admin-errors.ts'
import { MAX_NEW_PARTITIONS, partitionsOf, REPLICATION_FACTOR } from '../assignments.ts'
import { topicEntries } from '../config-entries.ts'
import { type Handler, handler } from '../handler.ts'
import type { ConfigTexts } from '../topic-configs.ts'
import type { World } from '../world.ts'

type Creatable = RequestOf<typeof api>['topics'][number]
type Result = ResponseInputOf<typeof api>['topics'][number]

/** Kafka's own log of what a cluster is. */
const CLUSTER_METADATA = '__cluster_metadata'

export const createTopics: Handler = handler(
  api,
  async ({ topics, timeoutMs, validateOnly }, _call, world) => {
    const twice = repeated(topics.map(({ name }) => name))
    const single = topics.filter(({ name }) => !twice.has(name))
    const tooMany = sizeOf(single) > MAX_NEW_PARTITIONS
    const results = single.map((topic) => {
      if (tooMany)
        return failed(topic.name, refused('POLICY_VIOLATION', 'too many partitions for one request'))
      const work = created(topic, validateOnly, world).catch((error) => failed(topic.name, outcomeOf(error)))
      return within(world.parts.ctx, timeoutMs, work, (outcome) => failed(topic.name, outcome))
    })
    const repeats = [...twice].map((name) =>
      failed(name, refused('INVALID_REQUEST', 'a topic is named twice')),
    )
    return { throttleTimeMs: 0, topics: [...(await Promise.all(results)), ...repeats] }
  },
)

function sizeOf(topics: readonly Creatable[]): number {
  return topics.reduce((sum, each) => sum + Math.max(each.numPartitions, each.assignments.length, 1), 0)
}

async function created(topic: Creatable, validateOnly: boolean, world: World): Promise<Result> {
  const { name } = topic
  if (name === CLUSTER_METADATA) throw new Refusal('INVALID_REQUEST', `${name} is no topic of clients`)
  const given = textsOf(topic)
  world.configs.check(name, given)
  const numPartitions = partitionsOf(topic, world)
  const made = validateOnly
    ? undefined
    : await world.bounds.partitions.making(numPartitions, () =>
        world.configs.create(name, numPartitions, given),
      )
  const set = world.configs.checked(given)
  return {
    name,
    topicId: made?.id ?? NO_UUID,
    ...DONE,
    numPartitions,
    replicationFactor: REPLICATION_FACTOR,
    configs: topicEntries(world.configs, set),
  }
}

function textsOf({ configs }: Creatable): ConfigTexts {
  const missing = configs.filter(({ value }) => value === null).map(({ name }) => name)
  if (missing.length > 0)
    throw new Refusal('INVALID_CONFIG', `configs without a value: ${missing.join(', ')}`)
  return Object.fromEntries(configs.map(({ name, value }) => [name, value as string]))
}

function failed(name: string, outcome: Outcome): Result {
  return { name, topicId: NO_UUID, ...outcome, topicConfigErrorCode: KAFKA_ERRORS.NONE, configs: [] }
}
