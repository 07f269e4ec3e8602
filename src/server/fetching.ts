/**
 * One fetch: which partitions can be read, whether there is enough of them to answer, and the reading. Batches are handed
 * on as the log has them; of all that lies in a request, only sizes and offsets are looked at.
 *
 *   look ─► enough, or something to say? ── no ─► long poll ─┐
 *              └──────────── yes ───────────────────────────►└─► read, in order, until the response is full
 *
 * The first batch of all is always sent, however large; what else does not fit waits for its next turn. With
 * `committed`, what lies behind an open transaction does not count: readers stop before it.
 */
import type { Partition } from '../core/partition.ts'
import type { ByteSlice } from '../log/contract.ts'
import type { ResponseInputOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import type { fetch } from '../wire/messages/01-fetch.ts'
import type { Fetched, Wanted } from './fetch-sessions.ts'
import type { Call } from './handler.ts'
import { polled } from './long-poll.ts'
import { epochError, isLeader, leaderHint, NO_EPOCH } from './partitions.ts'
import { storageError } from './storage-errors.ts'
import type { World } from './world.ts'

/** What a response holds at most, whatever is asked for: Kafka's default of fetch.max.bytes. */
const MAX_FETCH_BYTES = 57_671_680
const NO_RECORDS = new Uint8Array(0)
/** No error code: there is a diverging epoch to tell. */
const DIVERGES = -2
/** First version whose clients know KAFKA_STORAGE_ERROR, and the first one that knows zstd. */
const FIRST_WITH_STORAGE_ERRORS = 6
const FIRST_WITH_ZSTD = 10
/** From here on it is told who leads instead (KIP-951). */
const FIRST_WITH_LEADERS = 16

type Response = ResponseInputOf<typeof fetch>
type Written = Response['responses'][number]['partitions'][number]
/** A partition's part of the response. */
export type PartitionFetched = Written & { readonly records: Uint8Array; readonly logStartOffset: number }

export interface FetchOptions {
  readonly committed: boolean
  readonly minBytes: number
  readonly maxBytes: number
  readonly maxWaitMs: number
}

export class Fetching {
  readonly #world: World
  readonly #call: Call
  readonly #wanted: readonly Wanted[]
  readonly #usesIds: boolean
  readonly #options: FetchOptions
  #bytesLeft: number
  #isEmpty = true

  constructor(world: World, call: Call, wanted: readonly Wanted[], usesIds: boolean, options: FetchOptions) {
    this.#world = world
    this.#call = call
    this.#wanted = wanted
    this.#usesIds = usesIds
    this.#options = options
    this.#bytesLeft = Math.min(options.maxBytes, MAX_FETCH_BYTES)
  }

  /** In the order of what is wanted. Nothing is read any more for a client that is gone. */
  async run(): Promise<Fetched<PartitionFetched>[]> {
    if (!this.#isReady()) await this.#poll()
    const fetched: Fetched<PartitionFetched>[] = []
    for (const wanted of this.#wanted) {
      const read = this.#answer(wanted)
      fetched.push({ wanted, response: read instanceof Promise ? await read : read })
    }
    return fetched
  }

  // ── whether there is enough ───────────────────────────────────────────────────────────────────

  #isReady(): boolean {
    const { maxWaitMs } = this.#options
    if (maxWaitMs <= 0 || this.#wanted.length === 0) return true
    const minBytes = this.#minBytes
    let bytes = 0
    for (const wanted of this.#wanted) {
      bytes += this.#bytesOf(wanted)
      if (bytes >= minBytes) return true
    }
    return false
  }

  get #minBytes(): number {
    return Math.min(this.#options.minBytes, this.#bytesLeft)
  }

  #poll(): Promise<void> {
    const wanted = this.#wanted
    return polled(this.#world.parts.ctx, {
      partitions: wanted.map(({ found }) => found as Partition),
      bytesOf: (place) => this.#bytesOf(wanted[place] as Wanted),
      minBytes: this.#minBytes,
      maxWaitMs: this.#options.maxWaitMs,
      signal: this.#call.client.signal,
    })
  }

  /** What could be read of it now; Infinity where there is something else to say. As the log counts, so nearly. */
  #bytesOf(wanted: Wanted): number {
    if (this.#look(wanted) !== KAFKA_ERRORS.NONE) return Number.POSITIVE_INFINITY
    const { log } = wanted.found as Partition
    const bound = this.#boundOf(log)
    if (wanted.fetchOffset >= bound) return 0
    if (this.#options.minBytes <= 1) return 1
    const bytes = log.bytesFrom(wanted.fetchOffset) - log.bytesFrom(bound)
    return Math.max(1, Math.min(bytes, wanted.maxBytes))
  }

  #boundOf({ marks }: Partition['log']): number {
    return this.#options.committed ? marks.stable : marks.high
  }

  // ── what is in the way ────────────────────────────────────────────────────────────────────────

  /** The error code, or DIVERGES; where there is neither, `wanted` is found. */
  #look(wanted: Wanted): number {
    const partition = this.#find(wanted)
    if (typeof partition === 'number') return partition
    const stale = epochError(partition, wanted.leaderEpoch)
    if (stale !== KAFKA_ERRORS.NONE) return stale
    const { start, end } = partition.log.marks
    const { fetchOffset, lastFetchedEpoch } = wanted
    if (fetchOffset < start) return KAFKA_ERRORS.OFFSET_OUT_OF_RANGE
    if (lastFetchedEpoch !== NO_EPOCH) {
      const last = partition.log.epochEnd(lastFetchedEpoch)
      if (last === undefined) return KAFKA_ERRORS.OFFSET_OUT_OF_RANGE
      if (last.epoch < lastFetchedEpoch || last.endOffset < fetchOffset) return DIVERGES
    }
    return fetchOffset > end ? KAFKA_ERRORS.OFFSET_OUT_OF_RANGE : this.#unreadable(partition)
  }

  #find(wanted: Wanted): Partition | number {
    const { topics } = this.#world.parts
    let { found } = wanted
    if (found === null || found.topic.ended) {
      const topic = this.#usesIds ? topics.byId(wanted.topicId) : topics.get(wanted.topic)
      if (topic === undefined) return this.#missing(wanted)
      if (topic.ended) return KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER
      found = topic.partitions[wanted.index] ?? null
      if (found === null) return KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
      wanted.found = found
    }
    return isLeader(this.#world, this.#call, found) ? found : KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER
  }

  /** A topic that had the id may have given its name to another one. */
  #missing({ found }: Wanted): number {
    if (!this.#usesIds) return KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
    const hasHeir = found !== null && this.#world.parts.topics.get(found.topic.name) !== undefined
    return hasHeir ? KAFKA_ERRORS.INCONSISTENT_TOPIC_ID : KAFKA_ERRORS.UNKNOWN_TOPIC_ID
  }

  #unreadable({ topic }: Partition): number {
    if (this.#call.version >= FIRST_WITH_ZSTD) return KAFKA_ERRORS.NONE
    const { compressionType } = this.#world.configs.of(topic.id)
    return compressionType === 'zstd' ? KAFKA_ERRORS.UNSUPPORTED_COMPRESSION_TYPE : KAFKA_ERRORS.NONE
  }

  // ── reading ───────────────────────────────────────────────────────────────────────────────────

  #answer(wanted: Wanted): PartitionFetched | Promise<PartitionFetched> {
    const code = this.#look(wanted)
    if (code === DIVERGES) return this.#diverging(wanted)
    if (code !== KAFKA_ERRORS.NONE) return this.#failure(wanted, code)
    const { log } = wanted.found as Partition
    const hasNothing = wanted.fetchOffset >= this.#boundOf(log)
    const isFull = this.#bytesLeft <= 0 && !this.#isEmpty
    if (hasNothing || isFull || this.#call.client.signal.aborted) return this.#success(wanted, null)
    return this.#read(wanted, log)
  }

  async #read(wanted: Wanted, log: Partition['log']): Promise<PartitionFetched> {
    const maxBytes = Math.max(0, Math.min(wanted.maxBytes, this.#bytesLeft))
    const isolation = this.#options.committed ? 'committed' : 'uncommitted'
    try {
      const slice = await log.read(wanted.fetchOffset, maxBytes, isolation, this.#call.client.signal)
      const sizeBytes = slice.bytes.length
      // A log answers one batch at least; only the first of all may be larger than what is asked for.
      if (sizeBytes > maxBytes && !this.#isEmpty) {
        slice.done?.()
        return this.#success(wanted, null)
      }
      if (slice.done !== undefined) this.#call.whenSent?.(slice.done)
      if (sizeBytes > 0) this.#isEmpty = false
      this.#bytesLeft -= sizeBytes
      return this.#success(wanted, slice)
    } catch (error) {
      const code = this.#find(wanted)
      return this.#failure(wanted, typeof code === 'number' ? code : storageError(error))
    }
  }

  #success({ found, index }: Wanted, slice: ByteSlice | null): PartitionFetched {
    const { start, stable, high } = (found as Partition).log.marks
    return {
      partitionIndex: index,
      errorCode: KAFKA_ERRORS.NONE,
      highWatermark: high,
      lastStableOffset: stable,
      logStartOffset: start,
      abortedTransactions: this.#options.committed ? (slice?.aborted ?? []) : null,
      preferredReadReplica: -1,
      records: slice?.bytes ?? NO_RECORDS,
    }
  }

  #diverging(wanted: Wanted): PartitionFetched {
    const last = (wanted.found as Partition).log.epochEnd(wanted.lastFetchedEpoch)
    return { ...this.#success(wanted, null), divergingEpoch: last }
  }

  #failure(wanted: Wanted, code: number): PartitionFetched {
    const { index, found } = wanted
    const isOutOfRange = code === KAFKA_ERRORS.OFFSET_OUT_OF_RANGE
    const marks = isOutOfRange && found !== null ? found.log.marks : null
    const failure = {
      partitionIndex: index,
      errorCode: this.#codeFor(code),
      highWatermark: marks?.high ?? -1,
      lastStableOffset: marks?.stable ?? -1,
      logStartOffset: marks?.start ?? -1,
      abortedTransactions: null,
      preferredReadReplica: -1,
      records: NO_RECORDS,
    }
    const isAboutLeader =
      code === KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER || code === KAFKA_ERRORS.FENCED_LEADER_EPOCH
    if (!isAboutLeader || found === null || this.#call.version < FIRST_WITH_LEADERS) return failure
    return { ...failure, currentLeader: leaderHint(this.#world, this.#call, found).currentLeader }
  }

  /** Clients of the first versions do not know a disk that fails, and look for another leader when they are told so. */
  #codeFor(code: number): number {
    const isNews = this.#call.version < FIRST_WITH_STORAGE_ERRORS && code === KAFKA_ERRORS.KAFKA_STORAGE_ERROR
    return isNews ? KAFKA_ERRORS.NOT_LEADER_OR_FOLLOWER : code
  }
}
