/**
 * A modern group: Kafka's consumer groups as they are since KIP-848. The coordinator assigns, and each member gets there
 * by itself, in heartbeats, while the others read on:
 *
 *   who is in it, what they subscribe to,     ──►  group epoch
 *   which partitions there are                          │ an assignor, at the next heartbeat
 *                                                       ▼
 *   target of every member                    ──►  assignment epoch
 *                                                       │ revoked before it is assigned: modern-member.ts
 *                                                       ▼
 *   what every member may read                ──►  member epochs
 *
 * Invariants: no partition has two owners. The group epoch grows with whatever the target follows from, and never goes
 * back; the assignment epoch follows it, the members' epochs follow that one. Whoever is of another epoch than its own
 * is fenced, but for the one before, as the answer may have been lost. A member that is not heard of for a session, or
 * that keeps for its rebalance timeout what it is to give up, is out.
 *
 * It waits for nothing: every heartbeat is answered at once. Nothing here knows a protocol's bytes. Members of this
 * process send no heartbeats: they are told at once, and take the same steps in the same moment (joint-group.ts).
 */
import type { CoreContext } from '../core/context.ts'
import { assign, type PartitionCounts, type TopicPartition } from './assignors.ts'
import type { GenerationRef, GroupError, GroupLimits } from './classic-requests.ts'
import type { StoredMembers } from './group-store.ts'
import { ModernMember, type Owners, type StoredModernMember } from './modern-member.ts'
import {
  ASSIGNORS,
  type Assignor,
  DEFAULT_ASSIGNOR,
  type HeartbeatRequest,
  type HeartbeatResult,
  JOINS,
  LEAVES,
  LEAVES_FOR_NOW,
  refusedHeartbeat,
} from './modern-requests.ts'
import { byTopic, partitionKey } from './partition-keys.ts'

export type ModernState = 'Empty' | 'Assigning' | 'Reconciling' | 'Stable' | 'Dead'

interface KnownTopic {
  readonly id: string
  readonly name: string
  readonly partitions: { readonly length: number }
}

/** What a group asks of the registry that made it. */
export interface ModernHost {
  readonly ctx: Pick<CoreContext, 'clock' | 'due'>
  readonly limits: GroupLimits
  readonly topics: { list(): readonly KnownTopic[] }
  /** The epoch grew. */
  grew(group: ModernGroup): void
  /** Members are to be stored as they are. */
  keep(group: ModernGroup, members: readonly ModernMember[]): void
  /** Nobody has that id any more. */
  drop(group: ModernGroup, memberId: string): void
}

/** Members of this process that are in a group, too. */
export interface LocalSide {
  readonly members: ReadonlySet<ModernMember>
  /** What one of them was given, and has something in hand of. */
  inHand(member: ModernMember): ReadonlySet<string>
  /** Who may read what may have changed. */
  moved(): void
}

const NOBODY: ReadonlySet<ModernMember> = new Set()

export class ModernGroup {
  readonly name: string
  readonly protocolType: string = 'consumer'
  epoch: number
  /** That of the target. */
  assignmentEpoch: number
  /** When the last member left, or it came to be: milliseconds since the epoch. */
  emptySince: number
  readonly #host: ModernHost
  readonly #members = new Map<string, ModernMember>()
  readonly #instances = new Map<string, ModernMember>()
  readonly #owners: Owners = new Map()
  #locals: LocalSide | null = null
  /** What the target shares out: partitions of topics that somebody subscribes to, by topic id. Null: not known. */
  #shared: PartitionCounts | null = new Map()
  /** Topics came, went or grew, and it has not looked yet whether it minds. */
  #isOutOfDate = false
  #isOver = false

  constructor(name: string, host: ModernHost, epoch: number = 0) {
    this.name = name
    this.#host = host
    this.epoch = epoch
    this.assignmentEpoch = epoch
    this.emptySince = host.ctx.clock.now()
  }

  /**
   * With the members of the process before. Targets are not stored: where all had come to rest, what they have is what
   * they shall have; where not, the first that is heard of begins a new epoch, which is made of what they have.
   */
  restore(members: StoredMembers<StoredModernMember>): void {
    for (const [id, stored] of members) {
      const member = ModernMember.restored(id, stored, this.#remove, this.#owners)
      this.#members.set(id, member)
      if (member.instanceId !== null) this.#instances.set(member.instanceId, member)
    }
    this.#isOutOfDate = true
    this.#shared = this.state === 'Reconciling' ? null : sizesOf(this.#owners.keys())
    this.beginSessions()
  }

  /** All members were heard of just now, as far as we know. */
  beginSessions(): void {
    const { ctx, limits } = this.#host
    const now = ctx.clock.monotonic()
    for (const member of this.#members.values()) {
      ctx.due.schedule(member.session, now + limits.consumerSessionTimeoutMs)
      if (member.state === 'unrevoked') ctx.due.schedule(member.revocation, now + member.rebalanceTimeoutMs)
    }
  }

  get state(): ModernState {
    if (this.#isOver) return 'Dead'
    if (this.isVacant) return 'Empty'
    if (this.epoch > this.assignmentEpoch) return 'Assigning'
    const isSettled = ({ state, epoch }: ModernMember): boolean =>
      state === 'stable' && epoch === this.assignmentEpoch
    return [...this.members].every(isSettled) ? 'Stable' : 'Reconciling'
  }

  /** In the order in which they came, those of this process last. */
  get members(): Iterable<ModernMember> & { readonly size: number } {
    const local = this.#locals?.members ?? NOBODY
    const all = [...this.#members.values(), ...local]
    return { size: all.length, [Symbol.iterator]: () => all.values() }
  }

  /** Those that are not of this process. */
  get remoteMembers(): Iterable<ModernMember> & { readonly size: number } {
    const all = this.#members
    return { size: all.size, [Symbol.iterator]: () => all.values() }
  }

  get isVacant(): boolean {
    return this.#members.size + (this.#locals?.members.size ?? 0) === 0
  }

  /** Who has a partition, be it that it is to give it up. */
  ownerOf(key: string): ModernMember | undefined {
    return this.#owners.get(key)
  }

  /** The one that most members ask for. */
  get assignor(): Assignor {
    const votes = new Map<Assignor, number>()
    for (const { assignor } of this.members) {
      if (assignor !== null) votes.set(assignor, (votes.get(assignor) ?? 0) + 1)
    }
    const most = Math.max(0, ...votes.values())
    return ASSIGNORS.find((each) => votes.get(each) === most) ?? DEFAULT_ASSIGNOR
  }

  /** Names of the topics that somebody subscribes to. */
  get topics(): ReadonlySet<string> {
    const all = [...this.members]
    const named = all.flatMap(({ topicNames }) => [...topicNames])
    const matched = this.#host.topics.list().filter(({ name }) => all.some((each) => each.subscribesTo(name)))
    return new Set([...named, ...matched.map(({ name }) => name)])
  }

  // ── heartbeats ────────────────────────────────────────────────────────────────────────────────

  heartbeat(request: HeartbeatRequest): HeartbeatResult {
    const { epoch, owned } = request
    if (epoch === LEAVES || epoch === LEAVES_FOR_NOW) return this.#part(request)
    const { size } = this.#members
    const member = epoch === JOINS ? this.#enter(request) : this.#known(request)
    if (typeof member === 'string') return refusedHeartbeat(member)
    const saysOther = member.update(request)
    if (saysOther || this.#members.size > size) this.#grow()
    this.#assign()
    // What they give up may be this one's at once.
    this.#reconcileLocals()
    const isMoved = member.reconcile(this.assignmentEpoch, owned, this.#owners)
    this.#keep(member)
    this.settle()
    const { ctx, limits } = this.#host
    const now = ctx.clock.monotonic()
    ctx.due.schedule(member.session, now + limits.consumerSessionTimeoutMs)
    if (member.state !== 'unrevoked') ctx.due.cancel(member.revocation)
    else if (isMoved) ctx.due.schedule(member.revocation, now + member.rebalanceTimeoutMs)
    return {
      error: 'NONE',
      memberId: member.id,
      epoch: member.epoch,
      heartbeatIntervalMs: limits.consumerHeartbeatIntervalMs,
      assigned: isMoved || saysAll(request) ? member.assigned : null,
    }
  }

  #enter(request: HeartbeatRequest): ModernMember | GroupError {
    const { instanceId } = request
    const id = request.memberId === '' ? crypto.randomUUID() : request.memberId
    const known = instanceId === null ? this.#members.get(id) : this.#instances.get(instanceId)
    if (known !== undefined) {
      // The same program again: its join was answered, and it did not hear of that.
      if (known.id !== id && !known.isAway) return 'UNRELEASED_INSTANCE_ID'
      // Another one's: it would be a member no more, and have its partitions for ever.
      if (known.id !== id && this.#members.has(id)) return 'FENCED_INSTANCE_ID'
      this.#members.delete(known.id)
      if (known.id !== id) this.#host.drop(this, known.id)
      known.restart(id, this.#owners)
      this.#members.set(id, known)
      return known
    }
    if (this.#members.size >= this.#host.limits.maxSize) return 'GROUP_MAX_SIZE_REACHED'
    // An instance has one id, and an id one instance.
    if (this.#members.has(id)) return 'FENCED_INSTANCE_ID'
    const member = new ModernMember(id, instanceId, this.#remove)
    this.#members.set(id, member)
    if (instanceId !== null) this.#instances.set(instanceId, member)
    return member
  }

  #known(request: HeartbeatRequest): ModernMember | GroupError {
    const member = this.#identify(request)
    if (typeof member === 'string') return member
    const { epoch, owned } = request
    if (epoch === member.epoch) return member
    const mayHaveMissedIt =
      epoch < member.epoch &&
      epoch === member.previousEpoch &&
      owned !== null &&
      [...owned].every((key) => member.assigned.has(key))
    return mayHaveMissedIt ? member : 'FENCED_MEMBER_EPOCH'
  }

  #identify({ memberId, instanceId }: HeartbeatRequest): ModernMember | GroupError {
    if (instanceId !== null) {
      const member = this.#instances.get(instanceId)
      if (member === undefined) return 'UNKNOWN_MEMBER_ID'
      return member.id === memberId ? member : 'FENCED_INSTANCE_ID'
    }
    return this.#members.get(memberId) ?? 'UNKNOWN_MEMBER_ID'
  }

  #part(request: HeartbeatRequest): HeartbeatResult {
    const member = this.#identify(request)
    if (typeof member === 'string') return refusedHeartbeat(member)
    const { memberId, epoch } = request
    if (epoch === LEAVES) this.#remove(member)
    else {
      // Its session goes on from when it was last heard of.
      this.#host.ctx.due.cancel(member.revocation)
      member.leaveForNow(this.#owners)
      this.#keep(member)
      this.settle()
    }
    return { error: 'NONE', memberId, epoch, heartbeatIntervalMs: 0, assigned: null }
  }

  #keep(member: ModernMember): void {
    if (member.isKept) return
    member.isKept = true
    this.#host.keep(this, [member])
  }

  readonly #remove = (member: ModernMember): void => {
    this.#forget(member)
    this.#host.drop(this, member.id)
    if (this.isVacant) this.emptySince = this.#host.ctx.clock.now()
    this.#grow()
    this.settle()
  }

  #forget(member: ModernMember): void {
    const { due } = this.#host.ctx
    due.cancel(member.session)
    due.cancel(member.revocation)
    member.leave(this.#owners)
    this.#members.delete(member.id)
    if (member.instanceId !== null) this.#instances.delete(member.instanceId)
  }

  // ── members of this process ───────────────────────────────────────────────────────────────────

  /** They are in it from now on; null: no more. */
  bind(locals: LocalSide | null): void {
    this.#locals = locals
  }

  /** One of them comes, with what it has. */
  admit(member: ModernMember): void {
    for (const key of member.assigned) this.#owners.set(key, member)
  }

  /** One of them has left, with nothing in hand. */
  dismiss(member: ModernMember): void {
    this.#host.ctx.due.cancel(member.revocation)
    member.leave(this.#owners)
  }

  /** Some came or left, or read something else. */
  localsChanged(): void {
    if (this.isVacant) this.emptySince = this.#host.ctx.clock.now()
    this.#grow()
    this.settle()
  }

  /** Goes as far as can be gone without a heartbeat, where there is anybody who needs none. */
  settle(): void {
    if (this.#locals === null || this.#isOver) return
    this.#assign()
    this.#reconcileLocals()
    this.#locals?.moved()
  }

  /** Twice, as what one gives up may be another's. */
  #reconcileLocals(): void {
    const { due, clock } = this.#host.ctx
    for (let round = 0; round < 2; round++) {
      for (const member of this.#locals?.members ?? NOBODY) {
        const inHand = this.#locals?.inHand(member) ?? null
        member.reconcile(this.assignmentEpoch, inHand, this.#owners)
        const { revocation } = member
        if (member.state !== 'unrevoked') due.cancel(revocation)
        else if (revocation.heapIndex < 0)
          due.schedule(revocation, clock.monotonic() + member.rebalanceTimeoutMs)
      }
    }
  }

  // ── assigning ─────────────────────────────────────────────────────────────────────────────────

  /** Topics came, went or grew: at the next heartbeat it is seen whether that matters. */
  topicsChanged(): void {
    this.#isOutOfDate = true
    this.settle()
  }

  #grow(): void {
    this.epoch++
    this.#host.grew(this)
  }

  #assign(): void {
    if (this.epoch === this.assignmentEpoch && !this.#isOutOfDate) return
    this.#isOutOfDate = false
    const subscriptions = this.#subscriptions()
    const subscribed = new Set([...subscriptions.values()].flatMap((topics) => [...topics]))
    const shared = new Map<string, number>()
    for (const { id, partitions } of this.#host.topics.list()) {
      if (subscribed.has(id)) shared.set(id, partitions.length)
    }
    if (this.epoch === this.assignmentEpoch) {
      if (this.#shared !== null && areSame(shared, this.#shared)) return
      this.#grow()
    }
    this.#shared = shared
    this.#retarget(subscriptions, shared)
    this.assignmentEpoch = this.epoch
  }

  /** Ids of the topics that each member subscribes to. Those that say the same are asked once. */
  #subscriptions(): Map<ModernMember, ReadonlySet<string>> {
    const known = this.#host.topics.list()
    const bySaying = new Map<string, ReadonlySet<string>>()
    const all = new Map<ModernMember, ReadonlySet<string>>()
    for (const member of this.members) {
      const saying = JSON.stringify([[...member.topicNames].sort(), member.topicPattern?.source ?? ''])
      const topics =
        bySaying.get(saying) ??
        new Set(known.filter(({ name }) => member.subscribesTo(name)).map(({ id }) => id))
      bySaying.set(saying, topics)
      all.set(member, topics)
    }
    return all
  }

  /** Topics stand for themselves by id: one that is made anew is another. */
  #retarget(subscriptions: ReadonlyMap<ModernMember, ReadonlySet<string>>, shared: PartitionCounts): void {
    const subscribers = [...subscriptions].map(([{ key: id }, topics]) => ({ id, topics }))
    const previous = new Map<string, TopicPartition[]>()
    for (const { key, target } of this.members) {
      const held = [...byTopic(target)].flatMap(([topic, all]) =>
        all.map((partition) => ({ topic, partition })),
      )
      previous.set(key, held)
    }
    const strategy = this.assignor === 'range' ? 'range' : 'sticky'
    const target = assign(strategy, subscribers, shared, previous)
    for (const member of this.members) {
      const held = target.get(member.key) ?? []
      member.target = new Set(held.map(({ topic, partition }) => partitionKey(topic, partition)))
    }
  }

  // ── offsets ───────────────────────────────────────────────────────────────────────────────────

  /** Whether `who` may commit offsets of the group. In a transaction, whoever does not say who it is may. */
  checkCommit({ memberId, instanceId, generation }: GenerationRef, isTransactional: boolean): GroupError {
    if (generation < 0) {
      if (this.isVacant) return 'NONE'
      if (isTransactional && memberId === '' && instanceId === null) return 'NONE'
    }
    return this.#checkEpoch(memberId, generation)
  }

  /** Whether `who` may ask for them: an administrator, who is nobody, or a member of its epoch. */
  checkFetch(memberId: string | null, epoch: number): GroupError {
    const isNobody = epoch < 0 && (memberId === null || memberId === '')
    return isNobody ? 'NONE' : this.#checkEpoch(memberId ?? '', epoch)
  }

  #checkEpoch(memberId: string, epoch: number): GroupError {
    const member = this.#members.get(memberId)
    if (member === undefined) return 'UNKNOWN_MEMBER_ID'
    return member.epoch === epoch ? 'NONE' : 'STALE_MEMBER_EPOCH'
  }

  /** The group is gone: nothing falls due any more. */
  end(): void {
    for (const member of [...this.#members.values()]) this.#forget(member)
    for (const member of this.#locals?.members ?? NOBODY) this.dismiss(member)
    this.#locals = null
    this.#isOver = true
  }
}

/** Whether a heartbeat says all that a member is: it does not know what became of the ones before. */
function saysAll({ epoch, rebalanceTimeoutMs, topicNames, topicPattern, owned }: HeartbeatRequest): boolean {
  const subscribes = topicNames !== null || topicPattern !== null
  return epoch === JOINS || (rebalanceTimeoutMs !== -1 && subscribes && owned !== null)
}

/** How many partitions of each topic there are among `keys`. */
function sizesOf(keys: Iterable<string>): PartitionCounts {
  return new Map([...byTopic(keys)].map(([topicId, partitions]) => [topicId, partitions.length]))
}

function areSame(a: PartitionCounts, b: PartitionCounts): boolean {
  return a.size === b.size && [...a].every(([topic, count]) => b.get(topic) === count)
}
