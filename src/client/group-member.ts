/**
 * A member of a classic consumer group. `join` enters, or enters again after a rebalance, and answers what the member may
 * read until `revoked` aborts; then it commits and joins again. Heartbeats go out in between, and tell of rebalances.
 *
 *   join ─► JoinGroup ─► SyncGroup ─► Membership ─► … heartbeats … ─► revoked ─► commit ─► join
 *             ▲ again with the id it was given         │
 *             └── again as somebody new ◄── unknown ───┘
 *
 * A coordinator that cannot be reached is looked for again, as a leader is by who fetches. One that kept its groups over
 * a restart takes the member as it is.
 */
import type { Clock, Timer } from '../model/clock.ts'
import { OdradekError } from '../model/errors.ts'
import type { ResponseOf } from '../wire/api.ts'
import {
  type AssignedTopic,
  assignedTopics,
  assignmentBytes,
  subscribedTopics,
  subscriptionBytes,
} from '../wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { joinGroup } from '../wire/messages/11-join-group.ts'
import { heartbeat } from '../wire/messages/12-heartbeat.ts'
import { leaveGroup } from '../wire/messages/13-leave-group.ts'
import { syncGroup } from '../wire/messages/14-sync-group.ts'
import { type KafkaCluster, kafkaError } from './cluster.ts'
import { commitOffsets } from './group-offsets.ts'
import type { TopicPartition } from './offsets.ts'
import { assignRanges } from './range-assignor.ts'

const PROTOCOL_TYPE = 'consumer'
const PROTOCOL = 'range'
/** The coordinator may be asked nothing else where a join waits for the others. */
const LEAVING = 'leaving'

export interface GroupMemberOptions {
  readonly group: string
  readonly topics: readonly string[]
  readonly clock: Clock
  readonly sessionTimeoutMs: number
  /** How long the others are waited for in a rebalance. */
  readonly rebalanceTimeoutMs: number
  readonly heartbeatMs: number
}

export interface Membership {
  readonly generation: number
  readonly partitions: readonly TopicPartition[]
  /** Aborts when the group rebalances, or when the member is no member any more; its reason is an error where that is one. */
  readonly revoked: AbortSignal
}

type Joined = ResponseOf<typeof joinGroup>

/** After these, joining again is what helps. */
const REJOIN: ReadonlySet<number> = new Set([
  KAFKA_ERRORS.REBALANCE_IN_PROGRESS,
  KAFKA_ERRORS.ILLEGAL_GENERATION,
  KAFKA_ERRORS.UNKNOWN_MEMBER_ID,
])

export class GroupMember {
  readonly #cluster: KafkaCluster
  readonly #options: GroupMemberOptions
  #memberId = ''
  #generation = -1
  #owned: readonly AssignedTopic[] = []
  #timer: Timer | undefined
  readonly #left = new AbortController()

  constructor(cluster: KafkaCluster, options: GroupMemberOptions) {
    this.#cluster = cluster
    this.#options = options
  }

  /** @throws OdradekError */
  async join(): Promise<Membership> {
    this.#timer?.cancel()
    for (;;) {
      const joined = await this.#enter()
      const { errorCode, assignment } = await this.#sync(joined)
      if (REJOIN.has(errorCode)) {
        this.#leftBehind(errorCode)
        continue
      }
      if (errorCode !== KAFKA_ERRORS.NONE) throw this.#refused(errorCode)
      this.#owned = assignedTopics(assignment)
      const revoked = new AbortController()
      this.#beat(revoked)
      const partitions = this.#owned.flatMap(({ topic, partitions: each }) =>
        each.map((partition) => ({ topic, partition })),
      )
      return { generation: this.#generation, partitions, revoked: revoked.signal }
    }
  }

  /**
   * Stores where the group goes on reading. False where the member has been put out meanwhile: somebody else reads from
   * what was stored last.
   */
  async commit(offsets: readonly (TopicPartition & { readonly offset: number })[]): Promise<boolean> {
    if (offsets.length === 0) return true
    const { group } = this.#options
    const as = { memberId: this.#memberId, generation: this.#generation }
    const errorCode = await this.#patiently(() => commitOffsets(this.#cluster, group, offsets, as))
    if (errorCode === KAFKA_ERRORS.NONE) return true
    // Offsets are taken as long as the others have not joined; what is refused then belongs to the next generation.
    if (REJOIN.has(errorCode)) return false
    throw this.#refused(errorCode)
  }

  /**
   * At once, so that the others need not wait for the session to time out; also out of a `join` that waits for them, and
   * which fails then. For good; where the coordinator cannot be reached, it finds out by itself.
   */
  async leave(): Promise<void> {
    this.#left.abort()
    this.#timer?.cancel()
    if (this.#memberId === '') return
    const { group } = this.#options
    const memberId = this.#memberId
    this.#memberId = ''
    const body = {
      groupId: group,
      memberId,
      members: [{ memberId, groupInstanceId: null, reason: 'it was ended' }],
    }
    await this.#cluster.askCoordinator(group, leaveGroup, body, codeOf, { line: LEAVING })
  }

  async #enter(): Promise<Joined> {
    const { group, topics, sessionTimeoutMs, rebalanceTimeoutMs } = this.#options
    for (;;) {
      if (this.#left.signal.aborted) throw new OdradekError('CLOSED', `the member has left group "${group}"`)
      const body = {
        groupId: group,
        sessionTimeoutMs,
        rebalanceTimeoutMs,
        memberId: this.#memberId,
        groupInstanceId: null,
        protocolType: PROTOCOL_TYPE,
        protocols: [{ name: PROTOCOL, metadata: subscriptionBytes(topics, this.#owned) }],
        reason: null,
      }
      const waitMs = Math.max(rebalanceTimeoutMs, sessionTimeoutMs)
      const ask = () => this.#cluster.askCoordinator(group, joinGroup, body, codeOf, { waitMs })
      const joined = await this.#patiently(ask)
      if (joined.errorCode === KAFKA_ERRORS.MEMBER_ID_REQUIRED) this.#memberId = joined.memberId
      else if (REJOIN.has(joined.errorCode)) this.#leftBehind(joined.errorCode)
      else if (joined.errorCode !== KAFKA_ERRORS.NONE) throw this.#refused(joined.errorCode)
      else {
        this.#memberId = joined.memberId
        this.#generation = joined.generationId
        return joined
      }
    }
  }

  async #sync(joined: Joined): Promise<ResponseOf<typeof syncGroup>> {
    const { group, rebalanceTimeoutMs } = this.#options
    const isLeader = joined.leader === this.#memberId && !joined.skipAssignment
    const body = {
      groupId: group,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: null,
      protocolType: PROTOCOL_TYPE,
      protocolName: PROTOCOL,
      assignments: isLeader ? await this.#assign(joined) : [],
    }
    const options = { waitMs: rebalanceTimeoutMs }
    return this.#patiently(() => this.#cluster.askCoordinator(group, syncGroup, body, codeOf, options))
  }

  async #assign({ members }: Joined): Promise<{ memberId: string; assignment: Uint8Array }[]> {
    const subscribed = members.map(({ memberId, metadata }) => ({
      memberId,
      topics: subscribedTopics(metadata),
    }))
    const names = [...new Set(subscribed.flatMap(({ topics }) => topics))]
    const { topics } = await this.#patiently(() => this.#cluster.metadata(names))
    const partitionsOf = new Map(topics.map(({ name, partitions }) => [name ?? '', partitions.length]))
    return [...assignRanges(subscribed, partitionsOf)].map(([memberId, assigned]) => {
      return { memberId, assignment: assignmentBytes(assigned) }
    })
  }

  /** Until the member has left. */
  #patiently<T>(work: () => Promise<T>): Promise<T> {
    return this.#cluster.patiently(work, this.#left.signal)
  }

  #beat(revoked: AbortController): void {
    const { clock, heartbeatMs } = this.#options
    this.#timer = clock.setTimer(() => {
      this.#heartbeat().then(
        (goesOn) => {
          if (goesOn) this.#beat(revoked)
          else revoked.abort()
        },
        (error: unknown) => revoked.abort(error),
      )
    }, heartbeatMs)
  }

  async #heartbeat(): Promise<boolean> {
    const { group } = this.#options
    const memberId = this.#memberId
    const body = { groupId: group, generationId: this.#generation, memberId, groupInstanceId: null }
    const ask = () => this.#cluster.askCoordinator(group, heartbeat, body, codeOf)
    const { errorCode } = await this.#patiently(ask)
    if (errorCode === KAFKA_ERRORS.NONE) return true
    if (!REJOIN.has(errorCode)) throw this.#refused(errorCode)
    if (this.#memberId === memberId) this.#leftBehind(errorCode)
    return false
  }

  #leftBehind(errorCode: number): void {
    if (errorCode === KAFKA_ERRORS.UNKNOWN_MEMBER_ID) this.#memberId = ''
    if (errorCode !== KAFKA_ERRORS.REBALANCE_IN_PROGRESS) this.#owned = []
  }

  #refused(errorCode: number): OdradekError {
    const { group } = this.#options
    if (errorCode === KAFKA_ERRORS.INCONSISTENT_GROUP_PROTOCOL) {
      const what = `group "${group}" has members that do not know the assignor "${PROTOCOL}", or is no group of consumers`
      return new OdradekError('INCONSISTENT_GROUP', what)
    }
    return kafkaError(errorCode, `group "${group}"`)
  }
}

function codeOf({ errorCode }: { readonly errorCode: number }): number {
  return errorCode
}
