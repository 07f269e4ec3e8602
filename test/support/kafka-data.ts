/** Produce and fetch as tests of the data path say them: one topic, mostly one partition, and the parts that matter. */
import type { RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { produce } from '../../src/wire/messages/00-produce.ts'
import { fetch } from '../../src/wire/messages/01-fetch.ts'
import { KafkaWorld, type Sender } from './kafka.ts'
import { type BatchParts, batchOf, recordsOf } from './record-batches.ts'

type ProduceResponse = ResponseOf<typeof produce>
export type ProducedPartition = ProduceResponse['responses'][number]['partitionResponses'][number]
type FetchRequest = RequestInputOf<typeof fetch>
type FetchResponse = ResponseOf<typeof fetch>
export type FetchedPartition = FetchResponse['responses'][number]['partitions'][number]

export interface ProduceParts {
  readonly topic?: string
  readonly partition?: number
  readonly version?: number
  readonly acks?: number
  readonly timeoutMs?: number
  readonly transactionalId?: string | null
  readonly sender?: Sender
}

export interface FetchParts extends Partial<Omit<FetchRequest, 'topics'>> {
  readonly topic?: string
  readonly partition?: number
  readonly version?: number
  readonly offset?: number
  readonly partitionMaxBytes?: number
  readonly currentLeaderEpoch?: number
  readonly lastFetchedEpoch?: number
  readonly sender?: Sender
}

export class DataWorld extends KafkaWorld {
  topicId(name = 'orders'): string {
    return this.kafka.parts.topics.require(name).id
  }

  /** Sends a batch, or these bytes, and answers what became of them. */
  readonly produce = async (
    batch: BatchParts | Uint8Array | null = {},
    parts: ProduceParts = {},
  ): Promise<ProducedPartition> => {
    const response = await this.send(
      produce,
      parts.version ?? 9,
      this.produceBody(batch, parts),
      parts.sender,
    )
    return response.responses[0]?.partitionResponses[0] as ProducedPartition
  }

  produceBody(
    batch: BatchParts | Uint8Array | null,
    {
      topic = 'orders',
      partition = 0,
      version = 9,
      acks = -1,
      timeoutMs = 1_000,
      transactionalId = null,
    }: ProduceParts,
  ): RequestInputOf<typeof produce> {
    const records = batch === null || batch instanceof Uint8Array ? batch : batchOf(batch)
    const named = version < 13 ? { name: topic } : { topicId: this.topicId(topic) }
    return {
      transactionalId,
      acks,
      timeoutMs,
      topicData: [{ ...named, partitionData: [{ index: partition, records }] }],
    }
  }

  /** Fetches from one partition, without a session and without waiting if nothing else is said. */
  readonly fetch = async (parts: FetchParts = {}): Promise<FetchedPartition> => {
    const response = await this.send(fetch, parts.version ?? 12, this.fetchBody(parts), parts.sender)
    return response.responses[0]?.partitions[0] as FetchedPartition
  }

  fetchBody({
    topic = 'orders',
    partition = 0,
    version = 12,
    offset = 0,
    partitionMaxBytes = 1_048_576,
    currentLeaderEpoch = -1,
    lastFetchedEpoch = -1,
    sender: _,
    ...rest
  }: FetchParts): FetchRequest {
    const named = version < 13 ? { topic } : { topicId: this.topicId(topic) }
    const wanted = { partition, fetchOffset: offset, partitionMaxBytes, currentLeaderEpoch, lastFetchedEpoch }
    return {
      maxWaitMs: 0,
      minBytes: 1,
      maxBytes: 52_428_800,
      isolationLevel: 0,
      sessionId: 0,
      sessionEpoch: -1,
      forgottenTopicsData: [],
      rackId: '',
      topics: [{ ...named, partitions: [wanted] }],
      ...rest,
    }
  }

  /** The values that a fetch from `offset` brings. */
  readonly values = async (parts: FetchParts = {}): Promise<(string | null)[]> => {
    const { records } = await this.fetch(parts)
    return recordsOf(records as Uint8Array)
      .filter(({ offset }) => offset >= (parts.offset ?? 0))
      .map(({ value }) => value)
  }
}
