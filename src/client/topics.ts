/** Topics as an administrator sees them: made, deleted, with their configs. */
import type { OdradekError } from '../model/errors.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { createTopics as createApi } from '../wire/messages/19-create-topics.ts'
import { deleteTopics as deleteApi } from '../wire/messages/20-delete-topics.ts'
import { describeConfigs } from '../wire/messages/32-describe-configs.ts'
import { incrementalAlterConfigs } from '../wire/messages/44-incremental-alter-configs.ts'
import { NO_UUID } from '../wire/uuid.ts'
import { type KafkaCluster, kafkaError, type TopicMetadata } from './cluster.ts'

export interface NewTopic {
  readonly name: string
  /** −1: as the broker has it for topics that are made without saying. */
  readonly partitions: number
  readonly replicas: number
  readonly configs: readonly (readonly [name: string, value: string])[]
}

/** What became of one of several. */
export interface TopicOutcome {
  readonly name: string
  readonly error: OdradekError | undefined
  /** −1 where the broker does not say. */
  readonly partitions: number
}

export interface TopicConfig {
  readonly name: string
  readonly value: string | null
  /** Nobody has set it on this topic. */
  readonly isDefault: boolean
  readonly isReadOnly: boolean
}

/** Null deletes, so that the default counts again. */
export type ConfigChange = readonly [name: string, value: string | null]

const TOPIC = 2
const OF_TOPIC = 1
const SET = 0
const DELETE = 1

/** The outcomes in the order of the topics. @throws OdradekError */
export async function createTopics(
  cluster: KafkaCluster,
  topics: readonly NewTopic[],
  options: { readonly timeoutMs: number; readonly validateOnly: boolean },
): Promise<TopicOutcome[]> {
  const { timeoutMs } = options
  const body = {
    topics: topics.map(({ name, partitions, replicas, configs }) => ({
      name,
      numPartitions: partitions,
      replicationFactor: replicas,
      assignments: [],
      configs: configs.map(([config, value]) => ({ name: config, value })),
    })),
    ...options,
  }
  const answer = await (await cluster.any()).request(createApi, body, { waitMs: timeoutMs })
  return topics.map(({ name }) => {
    const found = answer.topics.find((topic) => topic.name === name)
    const { errorCode = KAFKA_ERRORS.UNKNOWN_SERVER_ERROR, errorMessage, numPartitions = -1 } = found ?? {}
    return { name, error: errorOf(errorCode, name, errorMessage), partitions: numPartitions }
  })
}

/** @throws OdradekError */
export async function deleteTopics(
  cluster: KafkaCluster,
  names: readonly string[],
  timeoutMs: number,
): Promise<TopicOutcome[]> {
  const topics = names.map((name) => ({ name, topicId: NO_UUID }))
  const body = { topics, topicNames: names, timeoutMs }
  const answer = await (await cluster.any()).request(deleteApi, body, { waitMs: timeoutMs })
  return names.map((name) => {
    const found = answer.responses.find((topic) => topic.name === name)
    const { errorCode = KAFKA_ERRORS.UNKNOWN_SERVER_ERROR, errorMessage } = found ?? {}
    return { name, error: errorOf(errorCode, name, errorMessage), partitions: -1 }
  })
}

/** All topics, in the order of their names. Internal ones too. @throws OdradekError */
export async function listTopics(cluster: KafkaCluster): Promise<TopicMetadata[]> {
  const { topics } = await cluster.metadata(null)
  return [...topics].sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))
}

/** In the order of their names. @throws OdradekError UNKNOWN_TOPIC, REFUSED */
export async function topicConfigs(cluster: KafkaCluster, topic: string): Promise<TopicConfig[]> {
  const resource = { resourceType: TOPIC, resourceName: topic, configurationKeys: null }
  const body = { resources: [resource], includeSynonyms: false, includeDocumentation: false }
  const { results } = await (await cluster.any()).request(describeConfigs, body)
  const { errorCode = KAFKA_ERRORS.UNKNOWN_SERVER_ERROR, errorMessage, configs = [] } = results[0] ?? {}
  const error = errorOf(errorCode, topic, errorMessage)
  if (error !== undefined) throw error
  return [...configs]
    .map(({ name, value, configSource, readOnly }) => {
      return { name, value, isDefault: configSource !== OF_TOPIC, isReadOnly: readOnly }
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** All of them, or none. @throws OdradekError UNKNOWN_TOPIC, REFUSED */
export async function changeConfigs(
  cluster: KafkaCluster,
  topic: string,
  changes: readonly ConfigChange[],
): Promise<void> {
  const configs = changes.map(([name, value]) => {
    return { name, configOperation: value === null ? DELETE : SET, value }
  })
  const body = { resources: [{ resourceType: TOPIC, resourceName: topic, configs }], validateOnly: false }
  const { responses } = await (await cluster.any()).request(incrementalAlterConfigs, body)
  const { errorCode = KAFKA_ERRORS.UNKNOWN_SERVER_ERROR, errorMessage } = responses[0] ?? {}
  const error = errorOf(errorCode, topic, errorMessage)
  if (error !== undefined) throw error
}

function errorOf(errorCode: number, topic: string, message?: string | null): OdradekError | undefined {
  return errorCode === KAFKA_ERRORS.NONE ? undefined : kafkaError(errorCode, `topic "${topic}"`, message)
}
