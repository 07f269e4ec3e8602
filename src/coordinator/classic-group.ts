/**
 * A classic group: Kafka's consumer groups as they were before KIP-848. Members assign among themselves, the
 * coordinator only brings them together, in generations:
 *
 *            join                   all joined,                 the leader
 *                                   or time is over             synced
 *   Empty ─────────► PreparingRebalance ──► CompletingRebalance ──────► Stable
 *     ▲                │      ▲                  │                        │
 *     └────────────────┘      └──────────────────┴────────────────────────┘
 *       nobody is left          somebody joins anew, leaves, or is not heard of
 *
 * Invariants: a generation begins when a rebalance completes, and never otherwise. Whoever is of another one is
 * refused. Only its leader's sync assigns. A member is in it that has joined for it, and a static one that is away
 * (`group.instance.id`, KIP-345): it keeps its place and assignment until its session ends.
 *
 * One timer for what the group waits for: for joins as long as the most patient member would, at first for the initial
 * delay; then as long for syncs. Who has not come by then is out. Nothing here knows a protocol's bytes: results are
 * values, errors have Kafka's names. Everything runs to completion; answers that wait are given last.
 */
import type { CoreContext } from '../core/context.ts'
import { type Due, DueCallback } from '../core/due-queue.ts'
import { Invitations } from './classic-invitations.ts'
import { ClassicMember, type StoredClassicMember } from './classic-member.ts'
import { ClassicMembers } from './classic-members.ts'
import {
  type ClassicState,
  type GenerationRef,
  type GroupError,
  type GroupLimits,
  type JoinRequest,
  type JoinResult,
  type MemberRef,
  NO_ASSIGNMENT,
  refusedJoin,
  refusedSync,
  type SyncRequest,
  type SyncResult,
} from './classic-requests.ts'
import type { StoredGroup, StoredMembers } from './group-store.ts'

/** What a group asks of the registry that made it. */
export interface GroupHost {
  readonly ctx: Pick<CoreContext, 'clock' | 'due'>
  readonly limits: GroupLimits
  /** A generation began. */
  changed(group: ClassicGroup): void
  /** It stands: its leader has assigned, or somebody has taken the place of a member in it. */
  stands(group: ClassicGroup): void
  /** Members are to be stored as they are. */
  keep(group: ClassicGroup, members: readonly ClassicMember[]): void
  /** A member is out. */
  drop(group: ClassicGroup, memberId: string): void
}

/** A member that was never told that it is one is not waited for any longer. */
const NEW_MEMBER_JOIN_MS = 300_000
const MAX_GENERATION = 2 ** 31 - 1
/** Between two looks for static members that are not here. */
const LEAST_PATIENCE_MS = 1_000
/** Characters. */
const NAME_IN_MEMBER_ID = 249

export class ClassicGroup {
  readonly name: string
  state: ClassicState = 'Empty'
  generation: number
  /** What its members are ('consumer', 'connect'); null where it never had any. Kept when they have left. */
  protocolType: string | null
  protocolName: string | null = null
  readonly members: ClassicMembers = new ClassicMembers()
  /** When the last member left, or it came to be: milliseconds since the epoch. */
  emptySince: number
  readonly #host: GroupHost
  readonly #invited: Invitations
  /** Have joined this generation, and not synced. */
  readonly #unsynced = new Set<ClassicMember>()
  readonly #phase = new DueCallback(() => this.#phaseOver())
  /** Monotonic. */
  #preparingSince = 0
  /** The rebalance under way is the first of a group that was empty. */
  #isInitial = false

  constructor(name: string, host: GroupHost, generation: number = 0, protocolType: string | null = null) {
    this.name = name
    this.#host = host
    this.generation = generation
    this.protocolType = protocolType
    this.emptySince = host.ctx.clock.now()
    this.#invited = new Invitations(host.ctx, () => this.#expectLess())
  }

  /**
   * With the members of the process before, as far as their generation stood. Their sessions begin anew. Where it did not
   * stand, or somebody has left since, the rebalance that was under way goes on.
   */
  restore(
    { protocolName, stands }: Pick<StoredGroup, 'protocolName' | 'stands'>,
    members: StoredMembers<StoredClassicMember>,
  ): void {
    if (members.size === 0) return
    for (const [id, stored] of members) this.members.add(ClassicMember.restored(id, stored, this.#expired))
    const leader = this.members.get(stands?.leader ?? '')
    if (leader !== undefined) this.members.elect([leader])
    this.protocolName = protocolName ?? null
    this.state = stands?.size === members.size ? 'Stable' : 'PreparingRebalance'
    for (const member of this.members) this.#hear(member)
    this.#preparingSince = this.#host.ctx.clock.monotonic()
    if (this.state === 'PreparingRebalance') this.#proceed()
  }

  /** Whether nobody is in it. Who was given an id only may never come; if so, it asks for another one. */
  get isVacant(): boolean {
    return this.members.size === 0
  }

  /** Who has been given an id, and has not joined under it yet. */
  get invitedCount(): number {
    return this.#invited.size
  }

  // ── joining ───────────────────────────────────────────────────────────────────────────────────

  /** Answers when the generation begins that the member is in; null where nobody waits for that any more. */
  join(request: JoinRequest): Promise<JoinResult | null> | JoinResult {
    const { memberId, instanceId } = request
    if (!this.#suits(request)) return refusedJoin('INCONSISTENT_GROUP_PROTOCOL', memberId)
    if (memberId !== '') return this.#joinAgain(request)
    const former = instanceId === null ? undefined : this.members.ofInstance(instanceId)
    const id = memberIdFor(instanceId ?? request.clientId)
    if (former !== undefined) return this.#replace(former, id, request)
    if (this.members.size + this.#invited.size >= this.#host.limits.maxSize) {
      return refusedJoin('GROUP_MAX_SIZE_REACHED')
    }
    if (instanceId !== null || !request.requiresId) return this.#admit(id, request)
    this.#invited.give(id, request.sessionTimeoutMs)
    return refusedJoin('MEMBER_ID_REQUIRED', id)
  }

  /** Whether all could agree on a protocol with it. */
  #suits({ protocolType, protocols }: JoinRequest): boolean {
    if (this.members.size === 0) return protocolType !== '' && protocols.length > 0
    return protocolType === this.protocolType && this.members.agreeOn(protocols)
  }

  #joinAgain(request: JoinRequest): Promise<JoinResult | null> | JoinResult {
    const { memberId, instanceId, protocols } = request
    if (instanceId === null && this.#invited.take(memberId)) return this.#admit(memberId, request)
    const error = this.members.identify(request)
    if (error !== 'NONE') return refusedJoin(error, memberId)
    const member = this.members.get(memberId) as ClassicMember
    // It may not have heard what became of its join. A leader that joins while all is well wants a rebalance.
    const mayRepeat =
      this.state === 'CompletingRebalance' || (this.state === 'Stable' && member !== this.members.leader)
    if (!mayRepeat || !member.matches(protocols)) return this.#await(member, request)
    this.#hear(member)
    return this.#current(member)
  }

  #admit(id: string, request: JoinRequest): Promise<JoinResult | null> {
    const member = new ClassicMember(id, request, this.#expired)
    if (this.members.size === 0) this.protocolType = request.protocolType
    this.members.add(member)
    return this.#await(member, request)
  }

  /** A static member is back, as somebody new, since it does not know who it was: it takes its own place. */
  #replace(former: ClassicMember, id: string, request: JoinRequest): Promise<JoinResult | null> | JoinResult {
    const member = new ClassicMember(id, request, this.#expired)
    member.assignment = former.assignment
    this.members.replace(former, member)
    if (this.#unsynced.delete(former)) this.#unsynced.add(member)
    this.#silence(former, 'FENCED_INSTANCE_ID', former.id)
    this.#host.drop(this, former.id)
    if (this.state !== 'Stable' || this.members.vote() !== this.protocolName)
      return this.#await(member, request)
    member.isNew = false
    this.#stand()
    this.#hear(member)
    const led = member === this.members.leader
    const current = this.#current(member)
    if (!led || request.canSkipAssignment) return { ...current, skipAssignment: led }
    // It must not assign anew, and would if it heard that it leads.
    return { ...current, leader: former.id, members: [] }
  }

  /** It has joined; the answer is given when all have. */
  #await(member: ClassicMember, request: JoinRequest): Promise<JoinResult | null> {
    this.members.update(member, request)
    member.answerJoin(refusedJoin('REBALANCE_IN_PROGRESS', member.id))
    const answered = member.waitToJoin(request.signal, () => {
      // Of one that can come again it counts that it has joined; of others nobody will hear.
      if (!member.canComeAgain) this.#lose(member)
    })
    this.#host.ctx.due.cancel(member)
    if (member.isNew) this.#schedule(member, NEW_MEMBER_JOIN_MS)
    this.#rebalance()
    return answered
  }

  // ── rebalancing ───────────────────────────────────────────────────────────────────────────────

  #rebalance(): void {
    if (this.state === 'PreparingRebalance') {
      this.#proceed()
      return
    }
    for (const member of this.members) {
      if (this.state === 'CompletingRebalance') member.assignment = NO_ASSIGNMENT
      if (member.answerSync(refusedSync('REBALANCE_IN_PROGRESS'))) this.#hear(member)
    }
    this.#unsynced.clear()
    this.#isInitial = this.state === 'Empty'
    this.#preparingSince = this.#host.ctx.clock.monotonic()
    this.state = 'PreparingRebalance'
    this.#proceed()
  }

  /** Somebody who was expected will not come. */
  #expectLess(): void {
    if (this.state === 'PreparingRebalance') this.#proceed()
  }

  /** Completes the rebalance, or waits for those that have not joined, longer or shorter as they are. */
  #proceed(): void {
    const { ctx, limits } = this.#host
    const delayMs = this.#isInitial ? limits.initialRebalanceDelayMs : 0
    const isComplete = this.#isInitial
      ? delayMs === 0
      : this.#invited.size === 0 && this.members.haveAllJoined
    if (this.members.size === 0 || isComplete) {
      this.#complete()
      return
    }
    const latest = this.#preparingSince + this.members.patienceMs
    ctx.due.schedule(
      this.#phase,
      this.#isInitial ? Math.min(ctx.clock.monotonic() + delayMs, latest) : latest,
    )
  }

  #complete(): void {
    const { ctx } = this.#host
    this.#isInitial = false
    ctx.due.cancel(this.#phase)
    for (const member of this.members) {
      if (!member.isJoining && member.instanceId === null) this.#drop(member)
    }
    const joined = [...this.members].filter(({ isJoining }) => isJoining)
    if (joined.length === 0 && this.members.size > 0) {
      // Only static members are left, and none of them is here: their sessions decide.
      this.#preparingSince = ctx.clock.monotonic()
      // Their own patience may be none, and this would look again at once, for ever.
      const patienceMs = Math.max(this.members.patienceMs, LEAST_PATIENCE_MS)
      ctx.due.schedule(this.#phase, this.#preparingSince + patienceMs)
      return
    }
    this.generation = this.generation === MAX_GENERATION ? 1 : this.generation + 1
    if (joined.length === 0) this.#becomeEmpty()
    else this.#begin(joined)
    this.#host.changed(this)
  }

  #becomeEmpty(): void {
    this.state = 'Empty'
    this.protocolName = null
    this.emptySince = this.#host.ctx.clock.now()
  }

  #begin(joined: readonly ClassicMember[]): void {
    this.members.elect(joined)
    this.protocolName = this.members.vote()
    this.state = 'CompletingRebalance'
    for (const member of joined) {
      member.isNew = false
      member.answerJoin(this.#current(member))
      this.#unsynced.add(member)
      this.#hear(member)
    }
    this.#schedule(this.#phase, this.members.patienceMs)
  }

  /** What a member is told of the generation. */
  #current(member: ClassicMember): JoinResult {
    const { generation, protocolType, protocolName } = this
    const { leader } = this.members
    const members = member === leader ? [...this.members] : []
    return {
      error: 'NONE',
      memberId: member.id,
      generation,
      protocolType,
      protocolName,
      leader: leader?.id ?? '',
      skipAssignment: false,
      members: members.map((each) => ({
        memberId: each.id,
        instanceId: each.instanceId,
        metadata: each.metadataFor(protocolName),
      })),
    }
  }

  // ── assigning ─────────────────────────────────────────────────────────────────────────────────

  /** Answers when the leader has assigned; null where nobody waits for that any more. */
  sync(request: SyncRequest): Promise<SyncResult | null> | SyncResult {
    const error = this.#fence(request)
    if (error !== 'NONE') return refusedSync(error)
    const { protocolType, protocolName } = request
    if (
      (protocolType !== null && protocolType !== this.protocolType) ||
      (protocolName !== null && protocolName !== this.protocolName)
    ) {
      return refusedSync('INCONSISTENT_GROUP_PROTOCOL')
    }
    if (this.state === 'PreparingRebalance') return refusedSync('REBALANCE_IN_PROGRESS')
    const member = this.members.get(request.memberId) as ClassicMember
    this.#unsynced.delete(member)
    if (this.state === 'Stable') {
      this.#allMayBeThere()
      this.#hear(member)
      return this.#assignmentOf(member)
    }
    member.answerSync(refusedSync('REBALANCE_IN_PROGRESS'))
    const answered = member.waitToSync(request.signal)
    this.#host.ctx.due.cancel(member)
    if (member === this.members.leader) this.#assign(request.assignments)
    return answered
  }

  #assign(assignments: ReadonlyMap<string, Uint8Array>): void {
    this.state = 'Stable'
    for (const member of this.members) {
      member.assignment = assignments.get(member.id) ?? NO_ASSIGNMENT
    }
    this.#stand()
    for (const member of this.members) {
      if (member.answerSync(this.#assignmentOf(member))) this.#hear(member)
    }
    this.#allMayBeThere()
  }

  /** All that is not stored as it is will be. */
  #stand(): void {
    const changed = [...this.members].filter(({ isKept }) => !isKept)
    this.#host.keep(this, changed)
    for (const member of changed) member.isKept = true
    this.#host.stands(this)
  }

  #assignmentOf({ assignment }: ClassicMember): SyncResult {
    return {
      error: 'NONE',
      protocolType: this.protocolType,
      protocolName: this.protocolName,
      assignment,
    }
  }

  #allMayBeThere(): void {
    if (this.#unsynced.size === 0) this.#host.ctx.due.cancel(this.#phase)
  }

  // ── being a member ────────────────────────────────────────────────────────────────────────────

  heartbeat(who: GenerationRef): GroupError {
    const error = this.#fence(who)
    if (error !== 'NONE') return error
    this.#hear(this.members.get(who.memberId) as ClassicMember)
    return this.state === 'PreparingRebalance' ? 'REBALANCE_IN_PROGRESS' : 'NONE'
  }

  /** Whether `who` may commit offsets of the group; it was heard of then. In a transaction, whoever does not say may. */
  checkCommit(who: GenerationRef, isTransactional: boolean): GroupError {
    if (this.state === 'Dead') return 'COORDINATOR_NOT_AVAILABLE'
    const { memberId, instanceId, generation } = who
    if (generation < 0 && this.state === 'Empty') return 'NONE'
    if (generation < 0 && memberId === '' && instanceId === null) {
      return isTransactional ? 'NONE' : 'UNKNOWN_MEMBER_ID'
    }
    const error = this.#fence(who)
    if (error !== 'NONE') return error
    this.#hear(this.members.get(memberId) as ClassicMember)
    return !isTransactional && this.state === 'CompletingRebalance' ? 'REBALANCE_IN_PROGRESS' : 'NONE'
  }

  /** One answer each, in their order. An administrator names a static member by its instance alone. */
  leave(leaving: readonly MemberRef[]): GroupError[] {
    const { size } = this.members
    const errors = leaving.map((who) => this.#leave(who))
    if (this.members.size < size) this.#rebalance()
    else this.#expectLess()
    return errors
  }

  #leave({ memberId, instanceId }: MemberRef): GroupError {
    if (this.#invited.take(memberId)) return 'NONE'
    const named = memberId === '' && instanceId !== null ? this.members.ofInstance(instanceId)?.id : memberId
    const error = this.members.identify({ memberId: named ?? '', instanceId })
    if (error === 'NONE') this.#drop(this.members.get(named ?? '') as ClassicMember)
    return error
  }

  /** Topics that somebody subscribes to; null where that cannot be told. */
  get topics(): ReadonlySet<string> | null {
    return this.protocolType === 'consumer' ? this.members.topicsOf(this.protocolName) : null
  }

  #fence(who: GenerationRef): GroupError {
    if (this.state === 'Dead') return 'COORDINATOR_NOT_AVAILABLE'
    const error = this.members.identify(who)
    if (error !== 'NONE') return error
    return who.generation === this.generation ? 'NONE' : 'ILLEGAL_GENERATION'
  }

  /** Its session begins anew, unless it waits for us. */
  #hear(member: ClassicMember): void {
    if (!member.isWaiting) this.#schedule(member, member.sessionTimeoutMs)
  }

  #schedule(due: Due, inMs: number): void {
    const { ctx } = this.#host
    ctx.due.schedule(due, ctx.clock.monotonic() + inMs)
  }

  // ── losing members ────────────────────────────────────────────────────────────────────────────

  readonly #expired = (member: ClassicMember): void => this.#lose(member)

  #phaseOver(): void {
    if (this.state === 'PreparingRebalance') {
      this.#complete()
      return
    }
    for (const member of this.#unsynced) this.#drop(member)
    this.#rebalance()
  }

  #lose(member: ClassicMember): void {
    this.#drop(member)
    this.#rebalance()
  }

  #drop(member: ClassicMember): void {
    this.members.remove(member)
    this.#unsynced.delete(member)
    this.#silence(member, 'UNKNOWN_MEMBER_ID')
    this.#host.drop(this, member.id)
  }

  /** Nothing more is expected of it, and whatever it waits for is answered. */
  #silence(member: ClassicMember, error: GroupError, memberId: string = ''): void {
    this.#host.ctx.due.cancel(member)
    member.answerJoin(refusedJoin(error, memberId))
    member.answerSync(refusedSync(error))
  }

  /** The group is gone: who waits is answered, and nothing falls due any more. */
  end(): void {
    this.#invited.clear()
    for (const member of this.members) this.#silence(member, 'COORDINATOR_NOT_AVAILABLE')
    this.members.clear()
    this.#unsynced.clear()
    this.#host.ctx.due.cancel(this.#phase)
    this.state = 'Dead'
  }
}

/** Begins with what people know the member by: not all of it, since that alone may be as long as a name can be. */
function memberIdFor(name: string): string {
  // Not half of a character either: that would come back as another one.
  const start = name.slice(0, NAME_IN_MEMBER_ID).replace(/[\ud800-\udbff]$/, '')
  return `${start}-${crypto.randomUUID()}`
}
