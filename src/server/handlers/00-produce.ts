/**
 * Produce: one batch for each partition that is named.
 *
 *   3    transactional ids; batches of format 2. Before, message sets: they are understood, and refused by an error
 *   5    log start offsets
 *   7    zstd (KIP-110)
 *   8    which records are at fault, and a message (KIP-467)
 *   9    flexible
 *   10   where the leader is, to who asked another node (KIP-951)
 *   12   batches of a transaction may come without AddPartitionsToTxn before (KIP-890)
 *   13   topics by id
 *
 * Partitions are appended to in the order of the request, each for itself: one that is refused does not keep another from
 * being appended to. An acknowledgement that nobody waits for is none: then an error closes the connection, which is
 * how clients notice. Where such a request waits for room, what its client sends next waits behind it.
 */
import type { Partition } from '../../core/partition.ts'
import type { Topic } from '../../core/topic.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS, kafkaErrorName } from '../../wire/errors.ts'
import { produce as api } from '../../wire/messages/00-produce.ts'
import { type Call, Disconnect, type Handler, handler } from '../handler.ts'
import { leaderHint, partitionOf } from '../partitions.ts'
import { type ProduceCall, type Produced, produceTo } from '../producing.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>
type PartitionRequest = Request['topicData'][number]['partitionData'][number]
type PartitionResponse = Response['responses'][number]['partitionResponses'][number]
type Endpoint = NonNullable<Response['nodeEndpoints']>[number]

const FIRST_WITH_BATCHES = 3
const FIRST_WITH_LEADERS = 10
const FIRST_WITH_IDS = 13

export const produce: Handler = handler(
  api,
  (request, call, world) => {
    const answer = new Answer(request, call, world)
    if (answer.pending.length === 0) return answer.finish()
    return Promise.all(answer.pending).then(() => answer.finish())
  },
  [0, api.max],
)

/** The response as it comes together: partitions that have to wait put their part in later. */
class Answer {
  readonly pending: Promise<void>[] = []
  readonly #call: Call
  readonly #world: World
  readonly #produceCall: ProduceCall
  readonly #responses: Response['responses']
  readonly #endpoints = new Map<number, Endpoint>()
  #firstError = KAFKA_ERRORS.NONE as number

  constructor({ acks, timeoutMs, transactionalId, topicData }: Request, call: Call, world: World) {
    this.#call = call
    this.#world = world
    const { signal } = call.client
    const { version } = call
    this.#produceCall = { version, acks, timeoutMs: Math.max(timeoutMs, 0), transactionalId, signal }
    this.#responses = topicData.map(({ name, topicId, partitionData }) => {
      const topic = version < FIRST_WITH_IDS ? world.parts.topics.get(name) : world.parts.topics.byId(topicId)
      return { name, topicId, partitionResponses: this.#partitions(topic, partitionData) }
    })
  }

  finish(): Response | null {
    const { acks } = this.#produceCall
    if (acks !== 0) {
      return {
        responses: this.#responses,
        throttleTimeMs: 0,
        nodeEndpoints: [...this.#endpoints.values()],
      }
    }
    if (this.#firstError === KAFKA_ERRORS.NONE) return null
    throw new Disconnect(`a produce without acknowledgement failed: ${kafkaErrorName(this.#firstError)}`)
  }

  #partitions(topic: Topic | undefined, data: readonly PartitionRequest[]): PartitionResponse[] {
    const responses: PartitionResponse[] = []
    data.forEach(({ index, records }, at) => {
      const partition = this.#partitionFor(topic, index)
      if (typeof partition === 'number') {
        responses[at] = this.#failure(topic, index, partition)
        return
      }
      const produced = produceTo(this.#world, partition, records, this.#produceCall)
      if (!(produced instanceof Promise)) {
        responses[at] = this.#response(partition, produced)
        return
      }
      const later = produced.then((each) => {
        responses[at] = this.#response(partition, each)
      })
      this.pending.push(later)
    })
    return responses
  }

  #partitionFor(topic: Topic | undefined, index: number): Partition | number {
    const { version, acks } = this.#produceCall
    if (version < FIRST_WITH_BATCHES) return KAFKA_ERRORS.UNSUPPORTED_VERSION
    if (acks !== -1 && acks !== 0 && acks !== 1) return KAFKA_ERRORS.INVALID_REQUIRED_ACKS
    if (topic === undefined && version >= FIRST_WITH_IDS) return KAFKA_ERRORS.UNKNOWN_TOPIC_ID
    return partitionOf(this.#world, this.#call, topic, index)
  }

  #response({ index, log }: Partition, produced: Produced): PartitionResponse {
    const { errorCode, errorMessage, baseOffset, logAppendTimeMs, recordIndex } = produced
    this.#firstError ||= errorCode
    return {
      index,
      errorCode,
      baseOffset,
      logAppendTimeMs,
      logStartOffset: log.marks.start,
      recordErrors:
        recordIndex < 0 ? [] : [{ batchIndex: recordIndex, batchIndexErrorMessage: errorMessage }],
      errorMessage,
    }
  }

  #failure(topic: Topic | undefined, index: number, errorCode: number): PartitionResponse {
    this.#firstError ||= errorCode
    const response = {
      index,
      errorCode,
      baseOffset: -1,
      logAppendTimeMs: -1,
      logStartOffset: -1,
      recordErrors: [],
      errorMessage: null,
    }
    const partition = topic?.partitions[index]
    if (errorCode !== KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER || partition === undefined) return response
    if (this.#call.version < FIRST_WITH_LEADERS) return response
    const { currentLeader, endpoint } = leaderHint(this.#world, this.#call, partition)
    if (endpoint !== undefined) this.#endpoints.set(endpoint.nodeId, { ...endpoint, rack: null })
    return { ...response, currentLeader }
  }
}
