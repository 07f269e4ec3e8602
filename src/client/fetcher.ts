/**
 * Reads partitions from where they are told, as fast as they are taken: one Fetch at a time to each leader, and the next
 * one when the records of the last are out of the caller's hands. Where a leader has moved or a connection was lost, it
 * asks again.
 *
 *   leader 1   ◄─ fetch: a/0 a/2 ─► records ─┐
 *   leader 2   ◄─ fetch: a/1      ─► records ─┴─► caller
 */
import { OdradekError, odradekError } from '../model/errors.ts'
import type { ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { fetch } from '../wire/messages/01-fetch.ts'
import { isNotTheOne, type KafkaCluster, kafkaError } from './cluster.ts'
import type { Connection } from './connection.ts'
import { type FetchedRecord, type Formats, recordsIn } from './fetched.ts'
import {
  grouped,
  type Isolation,
  isolationLevel,
  offsetsFor,
  placeKey,
  START,
  type TopicPartition,
} from './offsets.ts'

export interface ReadFrom extends TopicPartition {
  readonly offset: number
  /** Not read any more. */
  readonly end?: number | undefined
}

export interface FetcherOptions extends Formats {
  readonly isolation: Isolation
}

export interface Fetched extends TopicPartition {
  readonly records: readonly FetchedRecord[]
  /** Where to read on. */
  readonly next: number
  /** Offsets that retention has taken before they were read. */
  readonly skipped: number
}

interface Place extends TopicPartition {
  readonly end: number
  offset: number
  isAsked: boolean
}

type Answer = ResponseOf<typeof fetch>
type PartitionAnswer = Answer['responses'][number]['partitions'][number]

interface Round {
  readonly leader: Connection
  readonly asked: readonly Place[]
  readonly answer: Answer | OdradekError
}

const MAX_WAIT_MS = 500
const MAX_BYTES = 8 * 1024 * 1024
const PARTITION_MAX_BYTES = 1024 * 1024
/** Rounds without one that succeeds. */
const MAX_FAILURES = 50

export class Fetcher {
  readonly #cluster: KafkaCluster
  readonly #options: FetcherOptions
  readonly #places: Place[]
  #failures = 0

  constructor(cluster: KafkaCluster, from: readonly ReadFrom[], options: FetcherOptions) {
    this.#cluster = cluster
    this.#options = options
    this.#places = from.map(({ topic, partition, offset, end = Number.POSITIVE_INFINITY }) => {
      return { topic, partition, offset, end, isAsked: false }
    })
  }

  /** Ends when every partition has been read to its end, or when it is aborted. @throws OdradekError */
  async *run(signal: AbortSignal): AsyncGenerator<Fetched, void, void> {
    const aborted = new Promise<null>((resolve) => {
      signal.addEventListener('abort', () => resolve(null), { once: true })
    })
    const rounds = new Map<Connection, Promise<Round>>()
    while (!signal.aborted) {
      const open = this.#places.filter(({ offset, end }) => offset < end)
      if (open.length === 0) return
      for (const [leader, places] of await this.#byLeader(open)) {
        if (!rounds.has(leader)) rounds.set(leader, this.#ask(leader, places))
      }
      // Nobody who leads can be reached: they are looked for again.
      if (rounds.size === 0) continue
      const round = await Promise.race([aborted, ...rounds.values()])
      if (round === null) return
      rounds.delete(round.leader)
      yield* this.#take(round)
    }
  }

  async #byLeader(open: readonly Place[]): Promise<Map<Connection, Place[]>> {
    const byLeader = new Map<Connection, Place[]>()
    for (const place of open) {
      if (place.isAsked) continue
      try {
        const leader = await this.#cluster.leader(place.topic, place.partition)
        byLeader.set(leader, [...(byLeader.get(leader) ?? []), place])
      } catch (error) {
        await this.#failed(error, place.topic)
      }
    }
    return byLeader
  }

  async #ask(leader: Connection, places: readonly Place[]): Promise<Round> {
    for (const place of places) place.isAsked = true
    try {
      const topics = await Promise.all(
        [...grouped(places)].map(async ([topic, asked]) => ({
          topic,
          topicId: (await this.#cluster.topic(topic)).topicId,
          partitions: asked.map(({ partition, offset }) => {
            return { partition, fetchOffset: offset, partitionMaxBytes: PARTITION_MAX_BYTES }
          }),
        })),
      )
      const body = {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes: MAX_BYTES,
        isolationLevel: isolationLevel(this.#options.isolation),
        sessionId: 0,
        topics,
        forgottenTopicsData: [],
        rackId: '',
      }
      const answer = await leader.request(fetch, body, { waitMs: MAX_WAIT_MS })
      return { leader, asked: places, answer }
    } catch (error) {
      return { leader, asked: places, answer: odradekError(error) }
    }
  }

  async *#take({ asked, answer }: Round): AsyncGenerator<Fetched, void, void> {
    for (const place of asked) place.isAsked = false
    if (answer instanceof OdradekError) return this.#failed(answer, ...asked.map(({ topic }) => topic))
    if (answer.errorCode !== KAFKA_ERRORS.NONE) throw kafkaError(answer.errorCode, 'fetch')
    for (const { topic, topicId, partitions } of answer.responses) {
      for (const partition of partitions) {
        const place = await this.#placeOf(asked, topic, topicId, partition.partitionIndex)
        if (place !== undefined) yield* this.#taken(place, partition)
      }
    }
  }

  /** From version 13 on a topic is told by its id. */
  async #placeOf(
    asked: readonly Place[],
    name: string,
    topicId: string,
    partition: number,
  ): Promise<Place | undefined> {
    for (const place of asked) {
      if (place.partition !== partition) continue
      if (place.topic === name || (await this.#cluster.topic(place.topic)).topicId === topicId) return place
    }
    return undefined
  }

  async *#taken(place: Place, answer: PartitionAnswer): AsyncGenerator<Fetched, void, void> {
    const { topic, partition } = place
    const { errorCode } = answer
    if (errorCode === KAFKA_ERRORS.OFFSET_OUT_OF_RANGE) return yield* this.#skip(place)
    if (errorCode !== KAFKA_ERRORS.NONE) {
      return this.#failed(kafkaError(errorCode, placeKey(place)), isNotTheOne(errorCode) ? topic : undefined)
    }
    this.#failures = 0
    if (answer.records === null || answer.records.length === 0) return
    const isCommitted = this.#options.isolation === 'read_committed'
    const what = {
      topic,
      partition,
      from: place.offset,
      aborted: isCommitted ? answer.abortedTransactions : null,
    }
    const { records, next } = await recordsIn(answer.records, what, this.#options)
    place.offset = next
    const shown = next > place.end ? records.filter(({ offset }) => offset < place.end) : records
    yield { topic, partition, records: shown, next: Math.min(next, place.end), skipped: 0 }
  }

  /** Retention was faster, or nothing is there yet. */
  async *#skip(place: Place): AsyncGenerator<Fetched, void, void> {
    const { topic, partition, offset } = place
    const starts = await offsetsFor(this.#cluster, [{ topic, partition, timestamp: START }])
    const start = starts.get(placeKey(place)) ?? offset
    if (start <= offset) throw kafkaError(KAFKA_ERRORS.OFFSET_OUT_OF_RANGE, `${placeKey(place)} at ${offset}`)
    place.offset = start
    yield { topic, partition, records: [], next: start, skipped: start - offset }
  }

  /** Asks anew who leads, a moment later; what no asking mends is thrown. */
  async #failed(error: unknown, ...topics: readonly (string | undefined)[]): Promise<void> {
    const known = topics.filter((topic) => topic !== undefined)
    const mayMend =
      error instanceof OdradekError && (error.retriable || (known.length > 0 && error.code === 'REFUSED'))
    if (!mayMend || ++this.#failures > MAX_FAILURES) throw error
    for (const topic of known) this.#cluster.forget(topic)
    await this.#cluster.pause()
  }
}
