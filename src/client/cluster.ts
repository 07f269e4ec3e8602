/**
 * A Kafka cluster as a client sees it: which brokers there are, who leads a partition, who coordinates a group. One
 * connection to each broker, opened when it is first needed and again when it was lost. What it knows is asked again
 * when a broker says that it is not the one, or is gone.
 */
import { OdradekError } from '../model/errors.ts'
import type { Api, RequestInputOf, ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS, kafkaErrorName } from '../wire/errors.ts'
import { metadata } from '../wire/messages/03-metadata.ts'
import { findCoordinator } from '../wire/messages/10-find-coordinator.ts'
import { type BrokerAddress, Connection, type ConnectionOptions, type RequestOptions } from './connection.ts'

export type Metadata = ResponseOf<typeof metadata>
export type TopicMetadata = Metadata['topics'][number]

/** Pause before what a broker refused for now is tried again, and how often. */
const RETRY_MS = 100
const RETRIES = 50
/** Heartbeats must not wait for fetches. */
const COORDINATION = 'coordination'

const NOT_THE_ONE: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.LEADER_NOT_AVAILABLE,
  KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER,
  KAFKA_ERRORS.COORDINATOR_LOAD_IN_PROGRESS,
  KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE,
  KAFKA_ERRORS.NOT_COORDINATOR,
])

/** Whether what was refused with this code may be accepted by somebody else, or a moment later. */
export function isNotTheOne(errorCode: number): boolean {
  return NOT_THE_ONE.has(errorCode)
}

/**
 * An error code as an error, for what cannot be tried again. What the broker says of it is worth more than its name, and
 * where it says nothing, a few words are.
 */
export function kafkaError(errorCode: number, what: string, message?: string | null): OdradekError {
  const code = CODES.get(errorCode)
  if (code === undefined) {
    const name = kafkaErrorName(errorCode)
    return new OdradekError('REFUSED', `${what}: ${name}${message ? `: ${message}` : ''}`)
  }
  return new OdradekError(code, message || `${what}: ${WORDS.get(errorCode) ?? kafkaErrorName(errorCode)}`)
}

/** `count`: how many there are. */
export function noSuchPartition(topic: string, count: number, partition: number): OdradekError {
  const what = `topic "${topic}" has partitions 0 to ${count - 1}, not ${partition}`
  return new OdradekError('INVALID_ARGUMENT', what)
}

const WORDS: ReadonlyMap<number, string> = new Map([
  [KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION, 'there is no such topic'],
  [KAFKA_ERRORS.TOPIC_ALREADY_EXISTS, 'it exists already'],
  [KAFKA_ERRORS.GROUP_ID_NOT_FOUND, 'there is no such group'],
  [KAFKA_ERRORS.NON_EMPTY_GROUP, 'it has members: end them first'],
])

const CODES: ReadonlyMap<number, OdradekError['code']> = new Map([
  [KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION, 'UNKNOWN_TOPIC'],
  [KAFKA_ERRORS.TOPIC_ALREADY_EXISTS, 'TOPIC_EXISTS'],
  [KAFKA_ERRORS.INVALID_TOPIC_EXCEPTION, 'INVALID_TOPIC'],
  [KAFKA_ERRORS.OFFSET_OUT_OF_RANGE, 'OFFSET_OUT_OF_RANGE'],
  [KAFKA_ERRORS.MESSAGE_TOO_LARGE, 'TOO_LARGE'],
  [KAFKA_ERRORS.NON_EMPTY_GROUP, 'GROUP_NOT_EMPTY'],
  [KAFKA_ERRORS.GROUP_ID_NOT_FOUND, 'UNKNOWN_CONSUMER'],
  [KAFKA_ERRORS.REQUEST_TIMED_OUT, 'TIMEOUT'],
])

export class KafkaCluster {
  readonly #bootstrap: readonly BrokerAddress[]
  readonly #options: ConnectionOptions
  readonly #brokers = new Map<number, BrokerAddress>()
  /** By address and line. */
  readonly #connections = new Map<string, Promise<Connection>>()
  readonly #topics = new Map<string, TopicMetadata>()
  #isClosed = false

  constructor(bootstrap: readonly BrokerAddress[], options: ConnectionOptions) {
    this.#bootstrap = bootstrap
    this.#options = options
  }

  /** A broker, whichever answers first. @throws OdradekError CONNECTION_FAILED, TIMEOUT, AUTHENTICATION_FAILED */
  async any(): Promise<Connection> {
    let failed: unknown
    for (const address of [...this.#brokers.values(), ...this.#bootstrap]) {
      try {
        return await this.#connect(address)
      } catch (error) {
        failed ??= error
      }
    }
    throw failed
  }

  /** `line`: a connection beside the others. What waits on one, as a fetch does, is not waited for on another. */
  async broker(id: number, line: string = ''): Promise<Connection> {
    let address = this.#brokers.get(id)
    if (address === undefined) await this.metadata([])
    address = this.#brokers.get(id)
    if (address === undefined) throw new OdradekError('CONNECTION_FAILED', `there is no broker ${id}`)
    return this.#connect(address, line)
  }

  /** `topics`: names; null for all. What it answers of topics is remembered. */
  async metadata(topics: readonly string[] | null, allowAutoTopicCreation = false): Promise<Metadata> {
    const connection = await this.any()
    const answer = await connection.request(metadata, {
      topics: topics?.map((name) => ({ name })) ?? null,
      allowAutoTopicCreation,
    })
    this.#brokers.clear()
    for (const { nodeId, host, port } of answer.brokers) this.#brokers.set(nodeId, { host, port })
    for (const topic of answer.topics) {
      if (topic.name === null) continue
      if (topic.errorCode === KAFKA_ERRORS.NONE) this.#topics.set(topic.name, topic)
      else this.#topics.delete(topic.name)
    }
    return answer
  }

  /** @throws OdradekError UNKNOWN_TOPIC, INVALID_TOPIC, REFUSED */
  async topic(name: string, create = false): Promise<TopicMetadata> {
    const known = this.#topics.get(name)
    if (known !== undefined) return known
    for (let retries = RETRIES; ; retries--) {
      const { topics } = await this.metadata([name], create)
      const [topic] = topics
      const errorCode = topic?.errorCode ?? KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
      if (topic !== undefined && errorCode === KAFKA_ERRORS.NONE) return topic
      const isOnItsWay = create && errorCode === KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
      if (retries === 0 || !(isOnItsWay || isNotTheOne(errorCode)))
        throw kafkaError(errorCode, `topic "${name}"`)
      await this.pause()
    }
  }

  async leader(topic: string, partition: number): Promise<Connection> {
    const { partitions } = await this.topic(topic)
    const found = partitions.find(({ partitionIndex }) => partitionIndex === partition)
    if (found === undefined) throw noSuchPartition(topic, partitions.length, partition)
    return this.broker(found.leaderId)
  }

  /** The leader of a partition may be another one by now. */
  forget(topic: string): void {
    this.#topics.delete(topic)
  }

  async coordinator(group: string, line: string = COORDINATION): Promise<Connection> {
    for (let retries = RETRIES; ; retries--) {
      const connection = await this.any()
      const keys = { key: group, keyType: 0, coordinatorKeys: [group] }
      const answer = await connection.request(findCoordinator, keys)
      const { errorCode, nodeId, errorMessage } = answer.coordinators[0] ?? answer
      if (errorCode === KAFKA_ERRORS.NONE) return this.broker(nodeId, line)
      if (retries === 0 || !isNotTheOne(errorCode))
        throw kafkaError(errorCode, `group "${group}"`, errorMessage)
      await this.pause()
    }
  }

  /** Sends it to whoever coordinates the group, and again where that has moved. */
  async askCoordinator<A extends Api>(
    group: string,
    api: A,
    body: RequestInputOf<A>,
    errorOf: (answer: ResponseOf<A>) => number,
    { line, ...options }: RequestOptions & { readonly line?: string } = {},
  ): Promise<ResponseOf<A>> {
    for (let retries = RETRIES; ; retries--) {
      const connection = await this.coordinator(group, line)
      const answer = await connection.request(api, body, options)
      if (retries === 0 || !isNotTheOne(errorOf(answer))) return answer
      await this.pause()
    }
  }

  /**
   * Does it again while no broker can be reached, for as long as what a broker refuses for now is tried again. `stop`:
   * nobody waits for it any more.
   */
  async patiently<T>(work: () => Promise<T>, stop?: AbortSignal): Promise<T> {
    for (let retries = RETRIES; ; retries--) {
      try {
        return await work()
      } catch (error) {
        const mayMend = error instanceof OdradekError && error.retriable
        if (!mayMend || retries === 0 || stop?.aborted === true) throw error
      }
      await this.pause()
    }
  }

  pause(delayMs: number = RETRY_MS): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.setTimer(resolve, delayMs)
    })
  }

  /** For good: who still tries, fails. */
  async close(): Promise<void> {
    this.#isClosed = true
    const connections = [...this.#connections.values()]
    this.#connections.clear()
    for (const opened of await Promise.allSettled(connections)) {
      if (opened.status === 'fulfilled') opened.value.close()
    }
  }

  async #connect(address: BrokerAddress, line: string = ''): Promise<Connection> {
    if (this.#isClosed) throw new OdradekError('CLOSED', 'the cluster is not spoken to any more')
    const key = `${address.host}:${address.port} ${line}`
    const known = this.#connections.get(key)
    if (known !== undefined) {
      const connection = await known.catch(() => undefined)
      if (connection?.isOpen === true) return connection
    }
    const opening = Connection.open(address, this.#options)
    this.#connections.set(key, opening)
    return opening
  }
}
