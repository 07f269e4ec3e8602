/**
 * Sends records, acknowledged by all replicas, without lingering: what has come together while the last request to a
 * leader was under way goes out in the next. One request at a time to each leader, so that records stay in order, also
 * where a leader has moved and they are sent again. A request whose answer is lost is not sent again: it may have been
 * done.
 *
 *   send ─► partition: batch, batch, open batch ─┬─ one batch of each ─► leader ─► acknowledged
 *   send ─► partition: open batch ───────────────┘
 */
import { BatchBuilder, type BatchCompression } from '../log/format/batch-builder.ts'
import type { Crc32c } from '../log/format/crc32c.ts'
import type { Clock } from '../model/clock.ts'
import { OdradekError } from '../model/errors.ts'
import { partitionOf } from '../model/key-hash.ts'
import type { Key, RecordHeaders } from '../model/record.ts'
import type { ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { produce } from '../wire/messages/00-produce.ts'
import { isNotTheOne, type KafkaCluster, kafkaError, noSuchPartition } from './cluster.ts'
import type { Connection } from './connection.ts'
import { grouped, placeKey } from './offsets.ts'

export interface OutgoingRecord {
  readonly topic: string
  /** Null: by the key, else any. */
  readonly partition: number | null
  readonly key: Key | null
  readonly value: Uint8Array | null
  readonly headers: RecordHeaders | null
  /** Milliseconds since the epoch. */
  readonly timestamp: number
  /** What the caller knows it by: in what is said of a record that was refused. */
  readonly tag: number
}

export interface ProducerOptions {
  readonly clock: Clock
  readonly crc32c: Crc32c
  readonly compression?: BatchCompression
  /** Milliseconds that replicas may take. */
  readonly timeoutMs: number
}

/** Records that the broker did not take, or of which nobody knows. */
export class RefusedRecords extends OdradekError {
  /** Tags of the first and the last one. */
  readonly first: number
  readonly last: number

  constructor(error: OdradekError, tags: readonly number[]) {
    super(error.code, error.message, { cause: error })
    this.first = tags[0] as number
    this.last = tags.at(-1) as number
  }
}

const ALL_REPLICAS = -1
const BATCH_BYTES = 512 * 1024
/** What waits to be sent; whoever sends more waits, too. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const RETRIES = 50

interface Sealed {
  readonly bytes: Uint8Array
  readonly tags: readonly number[]
}

/** One partition: what is to be sent to it, in order. */
interface Lane {
  readonly topic: string
  readonly partition: number
  readonly builder: BatchBuilder
  readonly sealed: Sealed[]
  tags: number[]
  isUnderWay: boolean
}

export class Producer {
  readonly #cluster: KafkaCluster
  readonly #options: ProducerOptions
  readonly #lanes = new Map<string, Lane>()
  /** Where records without a key go, until a batch of theirs is full. */
  readonly #sticky = new Map<string, number>()
  readonly #running = new Set<Promise<void>>()
  #waitingBytes = 0
  #isDue = false
  #failed: unknown
  /** Records that the broker has acknowledged. */
  acknowledged = 0

  constructor(cluster: KafkaCluster, options: ProducerOptions) {
    this.#cluster = cluster
    this.#options = options
  }

  /** Resolves when there is room for another one. @throws OdradekError, RefusedRecords for one that was sent before */
  async send(record: OutgoingRecord): Promise<void> {
    this.#check()
    const { partitions } = await this.#cluster.topic(record.topic, true)
    const lane = this.#laneOf(record, partitions.length)
    if (lane.tags.length === 0) lane.builder.open(0, record.timestamp)
    const before = lane.builder.sizeBytes
    lane.builder.add(record.value, record.key, record.headers, record.timestamp)
    lane.tags.push(record.tag)
    this.#waitingBytes += lane.builder.sizeBytes - before
    if (lane.builder.sizeBytes >= BATCH_BYTES) this.#seal(lane)
    this.#soon()
    while (this.#waitingBytes > MAX_WAITING_BYTES) await this.#settled()
  }

  /** Resolves when everything has been acknowledged. @throws RefusedRecords */
  async flush(): Promise<void> {
    while (this.#running.size > 0 || this.#isDue || this.#waitingBytes > 0) await this.#settled()
    this.#check()
  }

  #laneOf({ topic, partition, key }: OutgoingRecord, count: number): Lane {
    const chosen = partition ?? (key === null ? this.#stick(topic, count) : partitionOf(key, count))
    if (chosen >= count) throw noSuchPartition(topic, count, chosen)
    const id = placeKey({ topic, partition: chosen })
    let lane = this.#lanes.get(id)
    if (lane === undefined) {
      lane = {
        topic,
        partition: chosen,
        builder: new BatchBuilder(),
        sealed: [],
        tags: [],
        isUnderWay: false,
      }
      this.#lanes.set(id, lane)
    }
    return lane
  }

  #stick(topic: string, count: number): number {
    const chosen = (this.#sticky.get(topic) ?? 0) % count
    this.#sticky.set(topic, chosen)
    return chosen
  }

  #seal(lane: Lane): void {
    const { compression, crc32c } = this.#options
    const { sizeBytes } = lane.builder
    const bytes = lane.builder.finish({
      leaderEpoch: -1,
      crc32c,
      ...(compression === undefined ? {} : { compression }),
    })
    this.#waitingBytes += bytes.length - sizeBytes
    lane.sealed.push({ bytes, tags: lane.tags })
    lane.tags = []
    if (this.#sticky.get(lane.topic) === lane.partition) this.#sticky.set(lane.topic, lane.partition + 1)
  }

  /** In the next turn, so that what is sent in one goes together. */
  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#run(
      new Promise<void>((resolve) => this.#options.clock.nextTurn(resolve)).then(() => {
        this.#isDue = false
        return this.#dispatch()
      }),
    )
  }

  #run(work: Promise<void>): void {
    const guarded = work
      .catch((error: unknown) => {
        this.#failed ??= error
      })
      .finally(() => this.#running.delete(guarded))
    this.#running.add(guarded)
  }

  /** What has failed leaves nothing that runs: there would be nothing to wait for. */
  async #settled(): Promise<void> {
    this.#check()
    await Promise.race(this.#running)
    this.#check()
  }

  #check(): void {
    if (this.#failed !== undefined) throw this.#failed
  }

  /** Sends the oldest batch of every partition that has one, and none under way. */
  async #dispatch(): Promise<void> {
    const byLeader = new Map<Connection, Lane[]>()
    const idle = [...this.#lanes.values()].filter((lane) => {
      return !lane.isUnderWay && (lane.sealed.length > 0 || lane.tags.length > 0)
    })
    for (const lane of idle) {
      lane.isUnderWay = true
      if (lane.sealed.length === 0) this.#seal(lane)
    }
    for (const lane of idle) {
      const leader = await this.#cluster.leader(lane.topic, lane.partition)
      byLeader.set(leader, [...(byLeader.get(leader) ?? []), lane])
    }
    for (const [leader, lanes] of byLeader) this.#run(this.#deliver(leader, lanes))
  }

  async #deliver(leader: Connection, lanes: readonly Lane[]): Promise<void> {
    let left = await this.#request(leader, lanes)
    for (let retries = RETRIES; left.length > 0; retries--) {
      const [lane] = left as [Lane]
      if (retries === 0) throw new OdradekError('TIMEOUT', `${placeKey(lane)} has no leader`)
      await this.#cluster.pause()
      const moved = left
      left = []
      for (const each of moved) {
        left.push(...(await this.#request(await this.#cluster.leader(each.topic, each.partition), [each])))
      }
    }
    for (const lane of lanes) lane.isUnderWay = false
    this.#soon()
  }

  /** Answers those whose leader is another one by now. */
  async #request(leader: Connection, lanes: readonly Lane[]): Promise<Lane[]> {
    const { timeoutMs } = this.#options
    const topicData = await Promise.all(
      [...grouped(lanes)].map(async ([name, each]) => ({
        name,
        topicId: (await this.#cluster.topic(name)).topicId,
        partitionData: each.map(({ partition, sealed }) => ({
          index: partition,
          records: sealed[0]?.bytes ?? null,
        })),
      })),
    )
    const body = { transactionalId: null, acks: ALL_REPLICAS, timeoutMs, topicData }
    let answer: ResponseOf<typeof produce>
    try {
      answer = await leader.request(produce, body, { waitMs: timeoutMs })
    } catch (error) {
      const tags = lanes.flatMap(({ sealed }) => sealed[0]?.tags ?? []).sort((a, b) => a - b)
      throw error instanceof OdradekError ? new RefusedRecords(error, tags) : error
    }
    const left: Lane[] = []
    for (const lane of lanes) {
      const id = topicData.find(({ name }) => name === lane.topic)?.topicId
      const partition = answer.responses
        .find(({ name, topicId }) => name === lane.topic || topicId === id)
        ?.partitionResponses.find(({ index }) => index === lane.partition)
      if (this.#answered(lane, partition)) left.push(lane)
    }
    return left
  }

  /** Whether it must be sent to somebody else. */
  #answered(
    lane: Lane,
    answer: ResponseOf<typeof produce>['responses'][number]['partitionResponses'][number] | undefined,
  ): boolean {
    const errorCode = answer?.errorCode ?? KAFKA_ERRORS.UNKNOWN_SERVER_ERROR
    if (isNotTheOne(errorCode)) {
      this.#cluster.forget(lane.topic)
      return true
    }
    const { bytes, tags } = lane.sealed[0] as Sealed
    if (errorCode !== KAFKA_ERRORS.NONE) {
      const bad = answer?.recordErrors[0]
      const error = kafkaError(errorCode, placeKey(lane), bad?.batchIndexErrorMessage ?? answer?.errorMessage)
      throw new RefusedRecords(
        error,
        bad === undefined ? tags : tags.slice(bad.batchIndex, bad.batchIndex + 1),
      )
    }
    lane.sealed.shift()
    this.#waitingBytes -= bytes.length
    this.acknowledged += tags.length
    return false
  }
}
