/**
 * The groups of Kafka's protocol, by name. A name is one group's, of one kind: it belongs to members who assign among
 * themselves (`ClassicGroup`), to members who are assigned (`ModernGroup`), or to a reader of this process (`Readers`),
 * whichever came to it while it had no members. The last two share a consumer group, while both are there (`JointGroup`). All file offsets under the same keys, so a name that changes hands
 * keeps its place.
 *
 * A group is there from its first join or commit, and after a restart while anything is stored of it, with its members
 * (`GroupStore`): they go on as if nothing had been, and have their whole sessions from then on. No generation, epoch or
 * assignment is told before it is stored.
 */
import type { CoreContext } from '../core/context.ts'
import { BROADCAST_PREFIX, type Reader, type ReaderKind } from '../core/reader.ts'
import type { Topic } from '../core/topic.ts'
import type { Topics } from '../core/topics.ts'
import { OdradekError } from '../model/errors.ts'
import type { ReaderDescription } from '../model/views.ts'
import type { BrokerParts } from './broker-parts.ts'
import { ClassicGroup, type GroupHost } from './classic-group.ts'
import type { StoredClassicMember } from './classic-member.ts'
import {
  type GenerationRef,
  type GroupError,
  type GroupLimits,
  type JoinRequest,
  type JoinResult,
  type MemberRef,
  refusedJoin,
  refusedSync,
  type SyncRequest,
  type SyncResult,
} from './classic-requests.ts'
import { type RemoteMembers, rebalance } from './consumer-group.ts'
import { type ExpiringGroups, GroupExpiry } from './group-expiry.ts'
import type { GroupOffsets, PartitionRef } from './group-offsets.ts'
import { GroupStore, type StoredMember, type StoredMembers } from './group-store.ts'
import { describeJointGroup, describeWireGroup } from './group-view.ts'
import { JointGroup, type JointHost } from './joint-group.ts'
import { LocalMember } from './local-member.ts'
import { ModernGroup, type ModernHost } from './modern-group.ts'
import type { StoredModernMember } from './modern-member.ts'
import { type HeartbeatRequest, type HeartbeatResult, JOINS, refusedHeartbeat } from './modern-requests.ts'
import { partitionKey } from './partition-keys.ts'
import type { Readers } from './readers.ts'

/** A group that members of Kafka's protocol have. */
export type WireGroup = ClassicGroup | ModernGroup

/**
 * Kafka's, but for the initial delay: a first member need not wait three seconds for others that may come. Where many
 * start at once, a delay saves them rebalances.
 */
export const DEFAULT_GROUP_LIMITS: GroupLimits = {
  minSessionTimeoutMs: 6_000,
  maxSessionTimeoutMs: 1_800_000,
  initialRebalanceDelayMs: 0,
  maxSize: 10_000,
  consumerSessionTimeoutMs: 45_000,
  consumerHeartbeatIntervalMs: 5_000,
}

type Parts = Pick<BrokerParts, 'engine' | 'topics' | 'readers' | 'groupOffsets'>

export class Groups implements GroupHost, ModernHost, ExpiringGroups<WireGroup>, JointHost, RemoteMembers {
  readonly ctx: CoreContext
  /** How long offsets are kept that nobody reads. */
  readonly offsetRetentionMs: number
  limits: GroupLimits = DEFAULT_GROUP_LIMITS
  readonly topics: Topics
  readonly #readers: Readers
  readonly offsets: GroupOffsets
  readonly #expiry: GroupExpiry<WireGroup>
  readonly #store: GroupStore
  readonly #byName = new Map<string, WireGroup>()
  readonly #joints = new Map<ModernGroup, JointGroup>()
  #ended = false

  constructor(ctx: CoreContext, parts: Parts, offsetRetentionMs: number) {
    this.ctx = ctx
    this.offsetRetentionMs = offsetRetentionMs
    this.topics = parts.topics
    this.#readers = parts.readers
    this.offsets = parts.groupOffsets
    this.#store = new GroupStore(parts.engine, (error, name) =>
      ctx.events.error(error, `storing group "${name}"`),
    )
    this.#expiry = new GroupExpiry(ctx, parts.topics, parts.groupOffsets, this, offsetRetentionMs)
  }

  /** For whoever serves them, from now on: nobody could be heard of before. */
  configure(limits: Partial<GroupLimits>): void {
    this.limits = { ...this.limits, ...limits }
    for (const group of this.#byName.values()) if (group instanceof ModernGroup) group.beginSessions()
  }

  /** Groups of which something is stored. A reader of this process that comes back takes its name with it. */
  restore(): void {
    this.offsets.restore()
    for (const { name, group: stored, members } of this.#store.restored()) {
      const { kind, generation, protocolType, emptySince } = stored
      let group: WireGroup
      if (kind === 'modern') {
        group = this.#enroll(new ModernGroup(name, this, generation))
        group.restore(members as StoredMembers<StoredModernMember>)
      } else {
        group = this.#open(name, generation, protocolType)
        group.restore(stored, members as StoredMembers<StoredClassicMember>)
      }
      group.emptySince = emptySince ?? group.emptySince
    }
    for (const name of this.offsets.stored().keys()) {
      if (!this.#byName.has(name) && this.#readers.group(name) === undefined) this.#open(name)
    }
  }

  /** The classic group of that name. */
  get(name: string): ClassicGroup | undefined {
    const group = this.#byName.get(name)
    return group instanceof ClassicGroup ? group : undefined
  }

  modern(name: string): ModernGroup | undefined {
    const group = this.#byName.get(name)
    return group instanceof ModernGroup ? group : undefined
  }

  all(): Iterable<WireGroup> {
    return this.#byName.values()
  }

  #open(name: string, generation?: number, protocolType?: string | null): ClassicGroup {
    return this.#enroll(new ClassicGroup(name, this, generation, protocolType))
  }

  #enroll<G extends WireGroup>(group: G): G {
    this.#byName.set(group.name, group)
    this.#expiry.arm()
    return group
  }

  /** Where nobody has the name: what its numbers go on from. Undefined where a group of another kind has members. */
  #vacate(name: string): number | undefined {
    const group = this.#byName.get(name)
    if (group === undefined) {
      const generation = this.#readers.group(name)?.generation ?? 0
      return this.#readers.release(name) ? generation : undefined
    }
    if (!group.isVacant) return undefined
    group.end()
    return group instanceof ModernGroup ? group.epoch : group.generation
  }

  // ── members ───────────────────────────────────────────────────────────────────────────────────

  /** Null where nobody waits for the answer any more. */
  join(name: string, request: JoinRequest): Promise<JoinResult | null> | JoinResult | null {
    const { memberId, sessionTimeoutMs, signal } = request
    if (!isName(name)) return refusedJoin('INVALID_GROUP_ID', memberId)
    const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.limits
    if (sessionTimeoutMs < minSessionTimeoutMs || sessionTimeoutMs > maxSessionTimeoutMs) {
      return refusedJoin('INVALID_SESSION_TIMEOUT', memberId)
    }
    if (this.#ended) return refusedJoin('COORDINATOR_NOT_AVAILABLE', memberId)
    if (signal.aborted) return null
    const known = this.get(name)
    const unstored = refusedJoin('COORDINATOR_NOT_AVAILABLE', memberId)
    if (known !== undefined) return this.#stored(name, known.join(request), unstored)
    if (memberId !== '') return refusedJoin('UNKNOWN_MEMBER_ID', memberId)
    const generation = this.#vacate(name)
    if (generation === undefined) return refusedJoin('INCONSISTENT_GROUP_PROTOCOL')
    return this.#stored(name, this.#open(name, generation).join(request), unstored)
  }

  /** Null where nobody waits for the answer any more. */
  sync(name: string, request: SyncRequest): Promise<SyncResult | null> | SyncResult | null {
    if (!isName(name)) return refusedSync('INVALID_GROUP_ID')
    if (request.signal.aborted) return null
    const answer = this.get(name)?.sync(request) ?? refusedSync(this.#unknown)
    return this.#stored(name, answer, refusedSync('COORDINATOR_NOT_AVAILABLE'))
  }

  heartbeat(name: string, who: GenerationRef): GroupError {
    if (!isName(name)) return 'INVALID_GROUP_ID'
    return this.get(name)?.heartbeat(who) ?? this.#unknown
  }

  /** One answer each, in their order. */
  leave(name: string, members: readonly MemberRef[]): Promise<GroupError[]> | GroupError[] {
    const group = this.get(name)
    const all = (error: GroupError): GroupError[] => members.map(() => error)
    if (isName(name) && group !== undefined) {
      return this.#stored(name, group.leave(members), all('COORDINATOR_NOT_AVAILABLE'))
    }
    return all(isName(name) ? this.#unknown : 'INVALID_GROUP_ID')
  }

  /** Of a member of a modern group, which comes to be with its first one. */
  consumerHeartbeat(name: string, request: HeartbeatRequest): Promise<HeartbeatResult> | HeartbeatResult {
    if (!isName(name)) return refusedHeartbeat('INVALID_GROUP_ID')
    if (this.#ended) return refusedHeartbeat('COORDINATOR_NOT_AVAILABLE')
    const group = this.#entered(name, request.epoch === JOINS)
    if (typeof group === 'string') return refusedHeartbeat(group)
    const answer = group.heartbeat(request)
    const joint = this.#joints.get(group)
    if (joint !== undefined) this.looked(joint)
    return this.#stored(name, answer, refusedHeartbeat('COORDINATOR_NOT_AVAILABLE'))
  }

  /** An answer, once all that it tells is stored. */
  #stored<T>(name: string, answer: Promise<T> | T, unstored: T): Promise<T> | T {
    if (!this.#store.isDurable) return answer
    if (answer instanceof Promise) return answer.then((given) => this.#stored(name, given, unstored))
    const refuse = (): T => unstored
    return this.#store.saved(name)?.then(() => answer, refuse) ?? answer
  }

  #entered(name: string, joins: boolean): ModernGroup | GroupError {
    const known = this.modern(name)
    if (known !== undefined) return known
    const reader = this.#readers.group(name)
    if (!joins) {
      // Somebody who was in it, or in one that is forgotten, joins anew when he hears that nobody knows him.
      const mayJoin = reader?.kind === 'consumer' || !this.has(name)
      return mayJoin ? 'UNKNOWN_MEMBER_ID' : 'GROUP_ID_NOT_FOUND'
    }
    if (reader?.kind === 'consumer' && reader.members.length > 0) {
      const group = this.#enroll(new ModernGroup(name, this, reader.generation))
      this.#combine(group, reader).adopt()
      return group
    }
    const epoch = this.#vacate(name)
    return epoch === undefined ? 'GROUP_ID_NOT_FOUND' : this.#enroll(new ModernGroup(name, this, epoch))
  }

  get #unknown(): GroupError {
    return this.#ended ? 'COORDINATOR_NOT_AVAILABLE' : 'UNKNOWN_MEMBER_ID'
  }

  // ── offsets ───────────────────────────────────────────────────────────────────────────────────

  /**
   * Whether `who` may commit offsets of a group. One that is not there comes to be, where a consumer or administrator
   * commits who is no member.
   */
  checkCommit(name: string, who: GenerationRef, isTransactional: boolean = false): GroupError {
    if (this.#ended) return 'COORDINATOR_NOT_AVAILABLE'
    if (name.startsWith(BROADCAST_PREFIX)) return 'INVALID_GROUP_ID'
    const known = this.#byName.get(name)
    if (known !== undefined) return known.checkCommit(who, isTransactional)
    const reader = this.#readers.group(name)
    if (reader !== undefined && reader.members.length > 0) return 'UNKNOWN_MEMBER_ID'
    if (who.generation >= 0) return reader?.kind === 'consumer' ? 'UNKNOWN_MEMBER_ID' : 'GROUP_ID_NOT_FOUND'
    if (reader === undefined) this.#open(name)
    return 'NONE'
  }

  /** Whether `who` may ask where the group is: that concerns members of modern groups alone. */
  checkFetch(name: string, memberId: string | null, epoch: number): GroupError {
    const group = this.modern(name)
    if (group === undefined) return 'NONE'
    return this.#ended ? 'COORDINATOR_NOT_AVAILABLE' : group.checkFetch(memberId, epoch)
  }

  /** Whether a subscriber of this process has a partition: then the group is there where he is, whatever a member says. */
  isHeldHere(name: string, { topicId, partition }: PartitionRef): boolean {
    return this.modern(name)?.ownerOf(partitionKey(topicId, partition)) instanceof LocalMember
  }

  // ── with readers of this process ──────────────────────────────────────────────────────────────

  /** @throws OdradekError INCONSISTENT_GROUP */
  claim(name: string, kind: ReaderKind): void {
    const group = this.#byName.get(name)
    if (group === undefined || (group instanceof ModernGroup && !group.isVacant && kind === 'consumer'))
      return
    if (!group.isVacant) {
      const isOpen = group instanceof ModernGroup
      const advice = isOpen ? 'join it with an `assignment`' : 'take another name, or have them leave first'
      throw new OdradekError(
        'INCONSISTENT_GROUP',
        `"${name}" is a group of Kafka's protocol, with members; ${advice}`,
      )
    }
    this.remove(group).catch((error: unknown) => this.ctx.events.error(error, `forgetting group "${name}"`))
  }

  joined(reader: Reader): void {
    const group = reader.kind === 'consumer' ? this.modern(reader.name) : undefined
    if (group !== undefined && !this.#joints.has(group)) this.#combine(group, reader)
  }

  reads(name: string, topicId: string, partition: number): boolean {
    const owner = this.modern(name)?.ownerOf(partitionKey(topicId, partition))
    return owner !== undefined && !(owner instanceof LocalMember)
  }

  #combine(group: ModernGroup, reader: Reader): JointGroup {
    const joint = new JointGroup(group, reader, this)
    this.#joints.set(group, joint)
    return joint
  }

  /** Where one kind has left, the other goes on as it did before. */
  looked(joint: JointGroup): void {
    const { group, reader } = joint
    const isOver = this.#joints.get(group) !== joint
    if (isOver || (group.remoteMembers.size > 0 && reader.members.length > 0)) return
    const isOfReader = group.remoteMembers.size === 0
    // As long as one of their transactions may say how far they have come, nobody else is to move.
    if (isOfReader && reader.members.length > 0 && this.offsets.hasPending(group.name)) return
    this.#joints.delete(group)
    joint.end()
    if (!isOfReader) {
      this.#readers.release(group.name)
      return
    }
    this.remove(group).catch((error: unknown) =>
      this.ctx.events.error(error, `forgetting group "${group.name}"`),
    )
    for (const cursor of reader.cursors()) reader.takeBack(cursor)
    rebalance(reader)
  }

  // ── administration ────────────────────────────────────────────────────────────────────────────

  /** Whether there is a group of that name, of whatever kind. */
  has(name: string): boolean {
    return this.#byName.has(name) || this.#readers.group(name) !== undefined
  }

  /** The group, once no reader stands for it: one without members gives up the name. Undefined where it has members. */
  withoutReader(name: string): WireGroup | undefined {
    const known = this.#byName.get(name)
    if (known !== undefined || !this.#readers.release(name)) return known
    return this.#open(name)
  }

  /** Forgets a group of either kind with all that is stored of it. @throws OdradekError UNKNOWN_CONSUMER, GROUP_NOT_EMPTY */
  async delete(name: string): Promise<void> {
    const group = this.#byName.get(name)
    if (group === undefined) await this.#readers.deleteGroup(name)
    else if (group.state === 'Empty') await this.remove(group)
    else throw new OdradekError('GROUP_NOT_EMPTY', `group "${name}" has members; they have to leave first`)
    await this.offsets.forgetGroup(name)
  }

  /** Groups of both kinds. */
  names(): string[] {
    const readers = [...this.#readers.all()].filter(({ kind }) => kind !== 'broadcast')
    return [...new Set([...readers.map(({ name }) => name), ...this.#byName.keys()])]
  }

  /** @throws OdradekError UNKNOWN_CONSUMER */
  describe(name: string): ReaderDescription {
    const group = this.#byName.get(name)
    const joint = group instanceof ModernGroup ? this.#joints.get(group) : undefined
    if (joint !== undefined) return describeJointGroup(joint, this.topics, this.offsets)
    if (group !== undefined) return describeWireGroup(group, this.topics, this.offsets)
    const reader = this.#readers.group(name)
    if (reader === undefined) throw new OdradekError('UNKNOWN_CONSUMER', `there is no group "${name}"`)
    return reader.describe()
  }

  /** Topics came or grew. */
  topicsChanged(): void {
    for (const group of this.#byName.values()) if (group instanceof ModernGroup) group.topicsChanged()
  }

  /** With a topic go the offsets in it. */
  deleted(topic: Topic): void {
    this.topicsChanged()
    this.offsets
      .forgetTopic(topic.id)
      .catch((error: unknown) => this.ctx.events.error(error, `forgetting offsets in "${topic.name}"`))
  }

  async remove(group: WireGroup): Promise<void> {
    group.end()
    this.#byName.delete(group.name)
    this.#store.remove(group.name)
    await this.#store.saved(group.name)
  }

  changed(group: ClassicGroup): void {
    const { generation, protocolType, protocolName } = group
    const emptySince = group.state === 'Empty' ? group.emptySince : null
    this.#store.put(group.name, { generation, protocolType, protocolName, emptySince })
  }

  stands({ name, generation, protocolType, protocolName, members }: ClassicGroup): void {
    const stands = { leader: members.leader?.id ?? '', size: members.size }
    this.#store.put(name, { generation, protocolType, protocolName, emptySince: null, stands })
  }

  grew(group: ModernGroup): void {
    const { epoch, protocolType, isVacant } = group
    const emptySince = isVacant ? group.emptySince : null
    this.#store.put(group.name, { kind: 'modern', generation: epoch, protocolType, emptySince })
    const joint = this.#joints.get(group)
    if (joint !== undefined) this.looked(joint)
  }

  keep(
    { name }: WireGroup,
    members: readonly { readonly id: string; readonly stored: StoredMember }[],
  ): void {
    this.#store.keep(name, members)
  }

  drop({ name }: WireGroup, memberId: string): void {
    this.#store.drop(name, memberId)
  }

  /** The broker closes: who waits is answered. */
  end(): void {
    this.#ended = true
    this.ctx.due.cancel(this.#expiry)
    for (const joint of this.#joints.values()) joint.end()
    this.#joints.clear()
    for (const group of this.#byName.values()) group.end()
  }
}

/** Readers that are no groups have names of their own. */
function isName(name: string): boolean {
  return name !== '' && !name.startsWith(BROADCAST_PREFIX)
}
