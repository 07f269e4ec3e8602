/**
 * What clients may make a broker keep, and which requests make it grow: partitions, groups, what their members say of
 * themselves, committed offsets, transactional ids. A program in the same process may make more of all that: what it
 * has counts, and only clients are refused.
 *
 *   request ─► does it bring something new? ── no ─► handler
 *                    └ yes ─► is there room? ── no ─► the error, where clients of that API look for it
 *
 * Partitions are bounded where they are made, since one request can make several topics, each on its own.
 */
import type { BrokerParts } from '../coordinator/broker-parts.ts'
import { ClassicGroup } from '../coordinator/classic-group.ts'
import { PENDING_PREFIX } from '../coordinator/group-offsets.ts'
import { OFFSET_PREFIX } from '../coordinator/offsets.ts'
import { MiB } from '../model/limits.ts'
import type { RequestOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { offsetCommit } from '../wire/messages/08-offset-commit.ts'
import { joinGroup } from '../wire/messages/11-join-group.ts'
import { syncGroup } from '../wire/messages/14-sync-group.ts'
import { initProducerId } from '../wire/messages/22-init-producer-id.ts'
import { addOffsetsToTxn } from '../wire/messages/25-add-offsets-to-txn.ts'
import { txnOffsetCommit } from '../wire/messages/28-txn-offset-commit.ts'
import { consumerGroupHeartbeat } from '../wire/messages/68-consumer-group-heartbeat.ts'
import { Bound } from './bound.ts'
import { errorResponse } from './error-response.ts'
import type { Interceptor } from './router.ts'

export interface BoundsOptions {
  /** Of all topics together. */
  readonly maxPartitions: number
  /** Of Kafka's protocol, with those that are empty and not forgotten yet. */
  readonly maxGroups: number
  /** Of all groups together; one with metadata counts once more for each 100 characters of it. */
  readonly maxCommittedOffsets: number
  readonly maxTransactionalIds: number
  /** What all members of groups say of themselves, subscribe to and are assigned, and 512 for each. */
  readonly maxMemberBytes: number
}

export const DEFAULT_BOUNDS: BoundsOptions = {
  maxPartitions: 50_000,
  maxGroups: 50_000,
  maxCommittedOffsets: 1_000_000,
  maxTransactionalIds: 50_000,
  maxMemberBytes: 128 * MiB,
}

/** Of new groups and transactional ids, in characters: a name is kept as long as what it names. */
const MAX_NAME = 1_024
/** That a transaction commits offsets of. */
const MAX_GROUPS_OF_TRANSACTION = 1_000
const METADATA_UNIT = 100
/** What a member takes that says nothing: without it, members that subscribe to nothing would be without bound. */
const MEMBER_BYTES = 512

type Rule = (request: never) => number

export class Bounds {
  readonly partitions: Bound
  readonly #parts: BrokerParts
  readonly #groups: Bound
  readonly #offsets: Bound
  readonly #memberBytes: Bound
  readonly #transactionalIds: Bound
  /** By API: the error code, or 0. */
  readonly #rules: ReadonlyMap<number, Rule>

  constructor(parts: BrokerParts, options: BoundsOptions) {
    this.#parts = parts
    const { clock, logger } = parts.ctx
    const bound = (option: string, max: number, count: () => number): Bound =>
      new Bound({ option, max, count }, clock, logger)
    this.partitions = bound('maxPartitions', options.maxPartitions, () => partitionsOf(parts))
    this.#groups = bound('maxGroups', options.maxGroups, () => [...parts.groups.all()].length)
    this.#offsets = bound('maxCommittedOffsets', options.maxCommittedOffsets, () => offsetsOf(parts))
    this.#memberBytes = bound('maxMemberBytes', options.maxMemberBytes, () => memberBytesOf(parts))
    this.#transactionalIds = bound('maxTransactionalIds', options.maxTransactionalIds, () => {
      return [...parts.transactions.all()].length
    })
    this.#rules = new Map<number, Rule>([
      [offsetCommit.key, this.#offsetCommit],
      [joinGroup.key, this.#joinGroup],
      [syncGroup.key, this.#syncGroup],
      [initProducerId.key, this.#initProducerId],
      [addOffsetsToTxn.key, this.#addOffsetsToTxn],
      [txnOffsetCommit.key, this.#offsetCommit],
      [consumerGroupHeartbeat.key, this.#consumerHeartbeat],
    ])
  }

  /** Refuses what there is no room for. */
  get interceptor(): Interceptor {
    return ({ handler: { api }, body }, next) => {
      const code = this.#rules.get(api.key)?.(body as never) ?? KAFKA_ERRORS.NONE
      return code === KAFKA_ERRORS.NONE ? next() : errorResponse(api, body, code)
    }
  }

  readonly #joinGroup = (request: RequestOf<typeof joinGroup>): number => {
    const { groupId, memberId, groupInstanceId, protocols } = request
    const code = memberId === '' ? this.#newGroup(groupId) : KAFKA_ERRORS.NONE
    if (code !== KAFKA_ERRORS.NONE) return code
    return this.#member(memberBytes({ id: memberId, instanceId: groupInstanceId, protocols }))
  }

  readonly #syncGroup = ({ assignments }: RequestOf<typeof syncGroup>): number =>
    this.#member(assignments.reduce((sum, { assignment }) => sum + assignment.length, 0))

  readonly #consumerHeartbeat = (request: RequestOf<typeof consumerGroupHeartbeat>): number => {
    const { groupId, memberId, memberEpoch, instanceId, rackId } = request
    const { subscribedTopicNames, subscribedTopicRegex } = request
    const joins = memberEpoch === 0
    const code = joins ? this.#newGroup(groupId) : KAFKA_ERRORS.NONE
    if (code !== KAFKA_ERRORS.NONE) return code
    if (!joins && subscribedTopicNames === null && subscribedTopicRegex === null && rackId === null)
      return code
    const topicPattern = subscribedTopicRegex === null ? null : { source: subscribedTopicRegex }
    const topicNames = subscribedTopicNames ?? []
    return this.#member(memberBytes({ id: memberId, instanceId, rackId, topicNames, topicPattern }))
  }

  /** Clients come again, as after any answer that the coordinator is not ready. */
  #member(sizeBytes: number): number {
    return this.#memberBytes.admits(sizeBytes) ? KAFKA_ERRORS.NONE : KAFKA_ERRORS.COORDINATOR_NOT_AVAILABLE
  }

  #newGroup(name: string): number {
    if (this.#parts.groups.has(name)) return KAFKA_ERRORS.NONE
    if (name.length > MAX_NAME) return KAFKA_ERRORS.INVALID_GROUP_ID
    return this.#groups.admits(1) ? KAFKA_ERRORS.NONE : KAFKA_ERRORS.POLICY_VIOLATION
  }

  /** Also in a transaction, where they are set aside first. */
  readonly #offsetCommit = (
    request: RequestOf<typeof offsetCommit> | RequestOf<typeof txnOffsetCommit>,
  ): number => {
    const { groupId, topics } = request
    const code = this.#newGroup(groupId)
    if (code !== KAFKA_ERRORS.NONE) return code
    let more = 0
    for (const topic of topics) {
      const known =
        this.#parts.topics.get(topic.name) ?? this.#parts.topics.byId('topicId' in topic ? topic.topicId : '')
      if (known === undefined) continue
      for (const { partitionIndex: partition, committedMetadata } of topic.partitions) {
        if (known.partitions[partition] === undefined) continue
        const before = this.#parts.groupOffsets.committed(groupId, { topicId: known.id, partition })
        more += Math.max(
          weightOf(committedMetadata) - (before === undefined ? 0 : weightOf(before.metadata)),
          0,
        )
      }
    }
    return this.#offsets.admits(more) ? KAFKA_ERRORS.NONE : KAFKA_ERRORS.POLICY_VIOLATION
  }

  readonly #initProducerId = ({ transactionalId }: RequestOf<typeof initProducerId>): number => {
    if (transactionalId === null || this.#parts.transactions.get(transactionalId) !== undefined) {
      return KAFKA_ERRORS.NONE
    }
    if (transactionalId.length > MAX_NAME) return KAFKA_ERRORS.INVALID_REQUEST
    return this.#transactionalIds.admits(1) ? KAFKA_ERRORS.NONE : KAFKA_ERRORS.POLICY_VIOLATION
  }

  readonly #addOffsetsToTxn = ({ transactionalId, groupId }: RequestOf<typeof addOffsetsToTxn>): number => {
    if (groupId.length > MAX_NAME) return KAFKA_ERRORS.INVALID_GROUP_ID
    const groups = this.#parts.transactions.get(transactionalId)?.groups ?? []
    const isFull = groups.length >= MAX_GROUPS_OF_TRANSACTION && !groups.includes(groupId)
    return isFull ? KAFKA_ERRORS.POLICY_VIOLATION : KAFKA_ERRORS.NONE
  }
}

function weightOf(metadata: string | null | undefined): number {
  return 1 + Math.floor((metadata?.length ?? 0) / METADATA_UNIT)
}

function partitionsOf({ topics }: BrokerParts): number {
  return topics.list().reduce((sum, { partitions }) => sum + partitions.length, 0)
}

/** As they are stored: what was committed, and what transactions have set aside. */
interface Stored {
  readonly note?: { readonly metadata?: string }
  readonly metadata?: string
}

function offsetsOf({ engine: { meta } }: BrokerParts): number {
  let sum = 0
  for (const prefix of [OFFSET_PREFIX, PENDING_PREFIX]) {
    for (const [, value] of meta.scan(prefix)) {
      const { note, metadata } = value as Stored
      sum += weightOf(note?.metadata ?? metadata)
    }
  }
  return sum
}

/** What members of either kind have that a client gave them. */
interface Kept {
  readonly id: string
  readonly instanceId: string | null
  readonly rackId?: string | null
  readonly protocols?: readonly { readonly name: string; readonly metadata: Uint8Array }[]
  readonly assignment?: unknown
  readonly topicNames?: Iterable<string>
  readonly topicPattern?: { readonly source: string } | null
}

function memberBytesOf({ groups }: BrokerParts): number {
  let sum = 0
  for (const group of groups.all()) {
    if (group instanceof ClassicGroup) sum += group.invitedCount * MEMBER_BYTES
    for (const member of group.members as Iterable<Kept>) sum += memberBytes(member)
  }
  return sum
}

function memberBytes({
  id,
  instanceId,
  rackId,
  protocols,
  assignment,
  topicNames,
  topicPattern,
}: Kept): number {
  let sum = MEMBER_BYTES + id.length + (instanceId?.length ?? 0) + (rackId?.length ?? 0)
  for (const { name, metadata } of protocols ?? []) sum += name.length + metadata.length
  for (const name of topicNames ?? []) sum += name.length
  if (assignment instanceof Uint8Array) sum += assignment.length
  return sum + (topicPattern?.source.length ?? 0)
}
