/**
 * One member of a modern group: what it subscribes to, what it may read, and how it gets from there to its target. It
 * gives up before it is given:
 *
 *               target moved, and it owns what is another's now
 *     stable ─────────────────────────────────────────────────► unrevoked
 *      │  ▲  ▲                                                      │ it says that it owns that no more
 *      │  │  └──────────────────────────────────────────────────────┤
 *      │  │ all of the target is its own                            │
 *      │  └────────────────────── unreleased ◄──────────────────────┘ some of the target is still another's
 *      └──────────────────────────►┘
 *
 * Invariants: a partition is in the `owners` of the group under this member if and only if it is in `assigned` or in
 * `revoking`, so no two members have it at once. The epoch reaches the target's when nothing is left to be revoked,
 * and grows only, but for a member that joins anew: that owns nothing, and begins at 0.
 */
import { DueCallback } from '../core/due-queue.ts'
import { type Assignor, type HeartbeatRequest, JOINS, LEAVES_FOR_NOW } from './modern-requests.ts'
import { byTopic, partitionKey } from './partition-keys.ts'
import { patternOf } from './pattern.ts'

export type Owners = Map<string, ModernMember>

type State = 'stable' | 'unrevoked' | 'unreleased'

/** As it outlives the process. */
export interface StoredModernMember {
  readonly instanceId: string | null
  readonly rackId: string | null
  readonly clientId: string
  readonly clientHost: string
  readonly rebalanceTimeoutMs: number
  readonly topicNames: readonly string[]
  /** Its source. */
  readonly topicPattern: string | null
  readonly assignor: Assignor | null
  readonly epoch: number
  readonly previousEpoch: number
  readonly state: State
  readonly assigned: StoredPartitions
  readonly revoking: StoredPartitions
}

/** By topic id. */
type StoredPartitions = Readonly<Record<string, readonly number[]>>

const NOTHING: ReadonlySet<string> = new Set()

export class ModernMember {
  /** A static member that is back has another one. */
  id: string
  readonly instanceId: string | null
  clientId = ''
  clientHost = ''
  rackId: string | null = null
  rebalanceTimeoutMs = 0
  topicNames: ReadonlySet<string> = NOTHING
  topicPattern: HeartbeatRequest['topicPattern'] = null
  assignor: Assignor | null = null

  epoch: number = JOINS
  /** The one before: its heartbeats are taken, as an answer may have been lost. */
  previousEpoch: number = JOINS
  state: State = 'stable'
  /** Whether it is stored as it is. */
  isKept = false
  /** What it may read. */
  assigned: ReadonlySet<string> = NOTHING
  /** What it was asked to give up, and may still be reading. */
  revoking: ReadonlySet<string> = NOTHING
  /** What it shall have in the end. */
  target: ReadonlySet<string> = NOTHING
  /** It is out when they are due. */
  readonly session: DueCallback
  readonly revocation: DueCallback

  constructor(id: string, instanceId: string | null, onOverdue: (member: ModernMember) => void) {
    this.id = id
    this.instanceId = instanceId
    this.session = new DueCallback(() => onOverdue(this))
    this.revocation = new DueCallback(() => onOverdue(this))
  }

  /** One of the process before: it shall have what it has, until somebody says otherwise. */
  static restored(
    id: string,
    { assigned, revoking, topicNames, topicPattern, instanceId, ...said }: StoredModernMember,
    onOverdue: (member: ModernMember) => void,
    owners: Owners,
  ): ModernMember {
    const member = new ModernMember(id, instanceId, onOverdue)
    Object.assign(member, said)
    member.topicNames = new Set(topicNames)
    const pattern = topicPattern === null ? undefined : patternOf(topicPattern)
    member.topicPattern =
      pattern === undefined ? null : { source: topicPattern as string, matches: pattern.matches }
    member.assigned = keysOf(assigned)
    member.revoking = keysOf(revoking)
    member.target = member.assigned
    for (const keys of [member.assigned, member.revoking]) for (const key of keys) owners.set(key, member)
    member.isKept = true
    return member
  }

  get stored(): StoredModernMember {
    const { instanceId, rackId, clientId, clientHost, rebalanceTimeoutMs, assignor } = this
    const { epoch, previousEpoch, state } = this
    return {
      instanceId,
      rackId,
      clientId,
      clientHost,
      rebalanceTimeoutMs,
      topicNames: [...this.topicNames],
      topicPattern: this.topicPattern?.source ?? null,
      assignor,
      epoch,
      previousEpoch,
      state,
      assigned: Object.fromEntries(byTopic(this.assigned)),
      revoking: Object.fromEntries(byTopic(this.revoking)),
    }
  }

  /** The same for an instance, whoever stands for it: what it was assigned is its own when it is back. */
  get key(): string {
    return this.instanceId === null ? `member/${this.id}` : `instance/${this.instanceId}`
  }

  /** Whether it left and will be back. */
  get isAway(): boolean {
    return this.epoch === LEAVES_FOR_NOW
  }

  /** Takes what it says; answers whether it subscribes to something else now. */
  update(request: HeartbeatRequest): boolean {
    const { topicNames, topicPattern } = request
    const { clientId, clientHost, rackId, assignor, rebalanceTimeoutMs } = this
    this.clientId = request.clientId
    this.clientHost = request.clientHost
    this.rackId = request.rackId ?? rackId
    this.assignor = request.assignor ?? assignor
    if (request.rebalanceTimeoutMs !== -1) this.rebalanceTimeoutMs = request.rebalanceTimeoutMs
    const isAsBefore =
      clientId === this.clientId &&
      clientHost === this.clientHost &&
      rackId === this.rackId &&
      assignor === this.assignor &&
      rebalanceTimeoutMs === this.rebalanceTimeoutMs
    const names = topicNames === null ? this.topicNames : new Set(topicNames)
    const pattern = topicPattern === null ? this.topicPattern : topicPattern
    const isChanged = !areSame(names, this.topicNames) || sourceOf(pattern) !== sourceOf(this.topicPattern)
    this.topicNames = names
    this.topicPattern = pattern
    if (isChanged || !isAsBefore) this.isKept = false
    return isChanged
  }

  subscribesTo(topic: string): boolean {
    const { topicPattern } = this
    const hasPattern = topicPattern !== null && topicPattern.source !== ''
    return this.topicNames.has(topic) || (hasPattern && topicPattern.matches(topic))
  }

  // ── coming and going ──────────────────────────────────────────────────────────────────────────

  /** It joins anew, under an id of its choice: it owns nothing. What it had stays its own to be given. */
  restart(id: string, owners: Owners): void {
    this.id = id
    this.isKept = false
    this.#release(this.revoking, owners)
    this.revoking = NOTHING
    this.state = 'stable'
    this.epoch = JOINS
    this.previousEpoch = JOINS
  }

  /** It will be back, so it keeps its place; what it was to give up is free. */
  leaveForNow(owners: Owners): void {
    this.restart(this.id, owners)
    this.epoch = LEAVES_FOR_NOW
  }

  leave(owners: Owners): void {
    this.#release(this.assigned, owners)
    this.#release(this.revoking, owners)
    this.assigned = NOTHING
    this.revoking = NOTHING
  }

  // ── reconciling ───────────────────────────────────────────────────────────────────────────────

  /**
   * Goes as far towards the target as it can; answers whether it may read something else now. `owned`: what it says that
   * it owns, null where it does not say.
   */
  reconcile(targetEpoch: number, owned: ReadonlySet<string> | null, owners: Owners): boolean {
    switch (this.state) {
      case 'stable':
        return this.epoch !== targetEpoch && this.#proceed(this.epoch, targetEpoch, owned, owners)
      case 'unreleased':
        return this.#proceed(this.epoch, targetEpoch, owned, owners)
      case 'unrevoked':
        // That it gave up is a step of its own.
        return !holdsAny(owned, this.revoking) && this.#proceed(this.epoch + 1, targetEpoch, owned, owners)
    }
  }

  #proceed(epoch: number, targetEpoch: number, owned: ReadonlySet<string> | null, owners: Owners): boolean {
    const kept = new Set([...this.assigned].filter((key) => this.target.has(key)))
    const leaving = new Set([...this.assigned].filter((key) => !kept.has(key)))
    const before = this.assigned
    if (this.revoking.size > 0) this.isKept = false
    this.#release(this.revoking, owners)
    if (holdsAny(owned, leaving)) {
      this.assigned = kept
      this.revoking = leaving
      this.#become('unrevoked', epoch)
      this.isKept = false
      return true
    }
    this.#release(leaving, owners)
    this.revoking = NOTHING
    let isMissing = false
    for (const key of this.target) {
      if (kept.has(key)) continue
      if (owners.has(key)) isMissing = true
      else kept.add(key)
    }
    for (const key of kept) owners.set(key, this)
    this.assigned = kept
    this.#become(isMissing ? 'unreleased' : 'stable', targetEpoch)
    const isMoved = !areSame(before, kept)
    if (isMoved) this.isKept = false
    return isMoved
  }

  #become(state: State, epoch: number): void {
    if (state !== this.state || epoch !== this.epoch) this.isKept = false
    this.state = state
    if (epoch === this.epoch) return
    this.previousEpoch = this.epoch
    this.epoch = epoch
  }

  #release(keys: ReadonlySet<string>, owners: Owners): void {
    for (const key of keys) if (owners.get(key) === this) owners.delete(key)
  }
}

/** Whoever does not say what it owns may own all of it. */
function holdsAny(owned: ReadonlySet<string> | null, keys: ReadonlySet<string>): boolean {
  if (keys.size === 0) return false
  return owned === null || [...keys].some((key) => owned.has(key))
}

function areSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((each) => b.has(each))
}

function keysOf(partitions: StoredPartitions): ReadonlySet<string> {
  const keys = Object.entries(partitions).flatMap(([topicId, all]) =>
    all.map((partition) => partitionKey(topicId, partition)),
  )
  return new Set(keys)
}

function sourceOf(pattern: HeartbeatRequest['topicPattern']): string {
  return pattern?.source ?? ''
}
