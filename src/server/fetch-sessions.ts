/**
 * Fetch sessions (KIP-227): the server remembers which partitions a client wants, so that a request names only what has
 * changed, and a response only what is new.
 *
 *   epoch 0     begins: names all partitions, is told all of them, and the id of a session where there is room for one
 *   epoch n     goes on: n grows by one each time, so that a lost or repeated request is noticed
 *   epoch −1    ends, or never was: all partitions, and no session
 *
 *   partitions  │ p₃ │ p₁ │ p₂ │      read from the front; what had records goes to the back, so that no partition starves
 *                 └ told last: high watermark, start
 *
 * There are at most 1,000, of 250,000 partitions in all. A new one takes the place of one that nobody used for two minutes, else that of a smaller one
 * as old as that; else its client has none, and fetches as before. No session belongs to a connection.
 */
import type { Partition } from '../core/partition.ts'
import type { Clock } from '../model/clock.ts'
import { MAX_INT32 } from '../wire/constants.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'

const MAX_SESSIONS = 1_000
/** Of all sessions together: as many as all partitions that clients can make, five times. */
const MAX_PARTITIONS = 250_000
/** After this long without use a session may go, and after this long at all to a larger one. */
const EVICTABLE_AFTER_MS = 120_000
const NO_SESSION = 0
const FIRST_EPOCH = 0
const FINAL_EPOCH = -1
const FIRST_WITH_IDS = 13

interface PartitionRequest {
  readonly partition: number
  readonly currentLeaderEpoch: number
  readonly fetchOffset: number
  readonly lastFetchedEpoch: number
  readonly partitionMaxBytes: number
}

interface TopicRequest {
  readonly topic: string
  readonly topicId: string
}

/** What of a request concerns its session. */
export interface SessionRequest {
  readonly sessionId: number
  readonly sessionEpoch: number
  readonly topics: readonly (TopicRequest & { readonly partitions: readonly PartitionRequest[] })[]
  readonly forgottenTopicsData: readonly (TopicRequest & { readonly partitions: readonly number[] })[]
}

/** A partition that is to be read, and what its client was told of it last. */
export class Wanted {
  readonly topic: string
  readonly topicId: string
  readonly index: number
  fetchOffset = 0
  maxBytes = 0
  leaderEpoch = 0
  lastFetchedEpoch = 0
  /** What it was found to be. */
  found: Partition | null = null
  #high = -1
  #start = -1

  constructor({ topic, topicId }: TopicRequest, request: PartitionRequest) {
    this.topic = topic
    this.topicId = topicId
    this.index = request.partition
    this.update(request)
  }

  update(request: PartitionRequest): void {
    this.fetchOffset = request.fetchOffset
    this.maxBytes = request.partitionMaxBytes
    this.leaderEpoch = request.currentLeaderEpoch
    this.lastFetchedEpoch = request.lastFetchedEpoch
  }

  /** Whether the client does not know this yet. From now on it does. */
  tell({ errorCode, highWatermark, logStartOffset, records, divergingEpoch }: Tellable): boolean {
    const isNew =
      records.length > 0 ||
      errorCode !== KAFKA_ERRORS.NONE ||
      divergingEpoch !== undefined ||
      highWatermark !== this.#high ||
      logStartOffset !== this.#start
    // When an error is over, that is news too.
    this.#high = errorCode === KAFKA_ERRORS.NONE ? highWatermark : -1
    this.#start = logStartOffset
    return isNew
  }
}

/** What of a partition's response decides whether it is sent. */
export interface Tellable {
  readonly errorCode: number
  readonly highWatermark: number
  readonly logStartOffset: number
  readonly records: Uint8Array
  readonly divergingEpoch?: object | undefined
}

export interface Fetched<R extends Tellable> {
  readonly wanted: Wanted
  readonly response: R
}

interface Session {
  readonly id: number
  readonly usesIds: boolean
  /** By their keys, in the order in which they are read. */
  readonly partitions: Map<string, Wanted>
  readonly createdAt: number
  usedAt: number
  /** Of the next request. */
  epoch: number
}

/** A fetch that is under way. */
export interface Begun {
  readonly errorCode: number
  readonly wanted: readonly Wanted[]
  readonly usesIds: boolean
  /** `null`: there is none, or none yet. */
  readonly session: Session | null
  /** What the session must be at when this ends; where there is none, what was asked for. */
  readonly epoch: number
}

export class FetchSessions {
  readonly #clock: Clock
  readonly #random: () => number
  /** Longest unused first. */
  readonly #sessions = new Map<number, Session>()
  /** Of all of them. */
  #partitions = 0

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
  }

  get size(): number {
    return this.#sessions.size
  }

  begin(request: SessionRequest, version: number): Begun {
    const { sessionId, sessionEpoch, topics } = request
    const usesIds = version >= FIRST_WITH_IDS
    if (sessionEpoch !== FIRST_EPOCH && sessionEpoch !== FINAL_EPOCH) return this.#goOn(request, usesIds)
    this.#end(this.#sessions.get(sessionId))
    return begun(wantedOf(topics), usesIds, null, sessionEpoch)
  }

  #goOn({ sessionId, sessionEpoch, topics, forgottenTopicsData }: SessionRequest, usesIds: boolean): Begun {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return refused(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    if (session.epoch !== sessionEpoch) return refused(KAFKA_ERRORS.INVALID_FETCH_SESSION_EPOCH)
    if (session.usesIds !== usesIds) return refused(KAFKA_ERRORS.FETCH_SESSION_TOPIC_ID_ERROR)
    const { partitions } = session
    const before = partitions.size
    want(partitions, topics)
    for (const topic of forgottenTopicsData) {
      for (const partition of topic.partitions) partitions.delete(keyOf(topic, partition))
    }
    this.#partitions += partitions.size - before
    if (partitions.size === 0 || this.#partitions > MAX_PARTITIONS) {
      this.#end(session)
      // Where there are too many, its client begins again, and has none.
      return partitions.size === 0
        ? begun([], usesIds, null, FINAL_EPOCH)
        : refused(KAFKA_ERRORS.FETCH_SESSION_ID_NOT_FOUND)
    }
    this.#sessions.delete(sessionId)
    this.#sessions.set(sessionId, session)
    session.usedAt = this.#clock.monotonic()
    session.epoch = sessionEpoch === MAX_INT32 ? 1 : sessionEpoch + 1
    return begun([...partitions.values()], usesIds, session, session.epoch)
  }

  /** What of it is sent. */
  end<R extends Tellable>(
    { session, epoch, usesIds }: Begun,
    fetched: readonly Fetched<R>[],
  ): { readonly errorCode: number; readonly sessionId: number; readonly fetched: readonly Fetched<R>[] } {
    if (session === null) {
      const sessionId = epoch === FIRST_EPOCH ? this.#create(fetched, usesIds) : NO_SESSION
      return { errorCode: KAFKA_ERRORS.NONE, sessionId, fetched }
    }
    const { id: sessionId, partitions } = session
    if (session.epoch !== epoch) {
      return { errorCode: KAFKA_ERRORS.INVALID_FETCH_SESSION_EPOCH, sessionId, fetched: [] }
    }
    const news = fetched.filter(({ wanted, response }) => wanted.tell(response))
    for (const { wanted, response } of news) {
      const key = keyOf(wanted, wanted.index)
      if (response.records.length > 0 && partitions.delete(key)) partitions.set(key, wanted)
    }
    return { errorCode: KAFKA_ERRORS.NONE, sessionId, fetched: news }
  }

  #create(fetched: readonly Fetched<Tellable>[], usesIds: boolean): number {
    if (fetched.length === 0 || !this.#makeRoom(fetched.length)) return NO_SESSION
    const partitions = new Map<string, Wanted>()
    for (const { wanted, response } of fetched) {
      wanted.tell(response)
      partitions.set(keyOf(wanted, wanted.index), wanted)
    }
    this.#partitions += partitions.size
    let id = 1 + Math.floor(this.#random() * (MAX_INT32 - 1))
    while (this.#sessions.has(id)) id = (id % MAX_INT32) + 1
    const now = this.#clock.monotonic()
    const epoch = FIRST_EPOCH + 1
    this.#sessions.set(id, { id, usesIds, partitions, createdAt: now, usedAt: now, epoch })
    return id
  }

  #end(session: Session | undefined): void {
    if (session === undefined || !this.#sessions.delete(session.id)) return
    this.#partitions -= session.partitions.size
  }

  /** Whether there is room for a session of so many partitions. */
  #makeRoom(partitions: number): boolean {
    if (this.#partitions + partitions > MAX_PARTITIONS) return false
    if (this.#sessions.size < MAX_SESSIONS) return true
    const now = this.#clock.monotonic()
    let goes: Session | undefined
    for (const session of this.#sessions.values()) {
      if (now - session.usedAt > EVICTABLE_AFTER_MS) {
        goes = session
        break
      }
      const limit = goes?.partitions.size ?? partitions
      if (now - session.createdAt > EVICTABLE_AFTER_MS && session.partitions.size < limit) goes = session
    }
    this.#end(goes)
    return goes !== undefined
  }
}

/** Each partition once, however often it is named: what is said last holds, as in Kafka. */
function wantedOf(topics: SessionRequest['topics']): Wanted[] {
  const [first] = topics
  if (topics.length === 1 && first?.partitions.length === 1) {
    return first.partitions.map((request) => new Wanted(first, request))
  }
  const wanted = new Map<string, Wanted>()
  want(wanted, topics)
  return [...wanted.values()]
}

/** What is named twice is wanted once, as it was named last. */
function want(wanted: Map<string, Wanted>, topics: SessionRequest['topics']): void {
  for (const topic of topics) {
    for (const request of topic.partitions) {
      const key = keyOf(topic, request.partition)
      const known = wanted.get(key)
      if (known === undefined) wanted.set(key, new Wanted(topic, request))
      else known.update(request)
    }
  }
}

function begun(wanted: readonly Wanted[], usesIds: boolean, session: Session | null, epoch: number): Begun {
  return { errorCode: KAFKA_ERRORS.NONE, wanted, usesIds, session, epoch }
}

function refused(errorCode: number): Begun {
  return { errorCode, wanted: [], usesIds: false, session: null, epoch: FINAL_EPOCH }
}

/** One of both is always the same. */
function keyOf({ topic, topicId }: TopicRequest, partition: number): string {
  return `${topicId}/${topic}/${partition}`
}
