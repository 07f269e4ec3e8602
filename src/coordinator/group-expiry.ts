/**
 * How long the offsets of a group are kept that nobody reads (KIP-211): `offsetRetentionMs` from when the group became
 * empty; where it never had members, from the commit; while it has some, that of topics that none of them subscribes
 * to. A group of which nothing is left is forgotten.
 *
 * One look at all groups now and then, not a timer for each: what has expired is kept a little longer.
 */
import type { CoreContext } from '../core/context.ts'
import { Due } from '../core/due-queue.ts'
import type { Topics } from '../core/topics.ts'
import type { CommittedOffset, GroupOffsets } from './group-offsets.ts'

const LOOK_EVERY_MS = 600_000

/** A group of the protocol, of either kind. */
export interface ExpiringGroup {
  readonly name: string
  readonly state: string
  readonly isVacant: boolean
  /** Null where it never had members. */
  readonly protocolType: string | null
  /** Milliseconds since the epoch. */
  readonly emptySince: number
  /** Topics that somebody subscribes to; null where that cannot be told. */
  readonly topics: ReadonlySet<string> | null
}

/** What expires. */
export interface ExpiringGroups<G extends ExpiringGroup> {
  all(): Iterable<G>
  remove(group: G): Promise<void>
}

export class GroupExpiry<G extends ExpiringGroup> extends Due {
  readonly #ctx: CoreContext
  readonly #topics: Topics
  readonly #offsets: GroupOffsets
  readonly #groups: ExpiringGroups<G>
  readonly #retentionMs: number

  constructor(
    ctx: CoreContext,
    topics: Topics,
    offsets: GroupOffsets,
    groups: ExpiringGroups<G>,
    retentionMs: number,
  ) {
    super()
    this.#ctx = ctx
    this.#topics = topics
    this.#offsets = offsets
    this.#groups = groups
    this.#retentionMs = retentionMs
  }

  /** There is a group, so it looks. */
  arm(): void {
    if (this.heapIndex >= 0) return
    const everyMs = Math.min(this.#retentionMs, LOOK_EVERY_MS)
    this.#ctx.due.schedule(this, this.#ctx.clock.monotonic() + everyMs)
  }

  override fire(): void {
    this.#look().catch((error: unknown) => this.#ctx.events.error(error, 'expiring offsets of groups'))
    if (!this.#groups.all()[Symbol.iterator]().next().done) this.arm()
  }

  async #look(): Promise<void> {
    const changes: Promise<void>[] = []
    const stored = this.#offsets.stored()
    for (const group of [...this.#groups.all()]) {
      const all = stored.get(group.name) ?? []
      const expired = all.filter((each) => this.#isExpired(group, each))
      if (expired.length > 0) changes.push(this.#offsets.forget(group.name, expired))
      const isOver = group.isVacant && expired.length === all.length && !this.#offsets.hasPending(group.name)
      if (isOver) changes.push(this.#groups.remove(group))
    }
    await Promise.all(changes)
  }

  #isExpired(group: ExpiringGroup, offset: CommittedOffset): boolean {
    const since = this.#idleSince(group, offset)
    return (
      since !== undefined &&
      this.#ctx.clock.now() - since >= this.#retentionMs &&
      !this.#offsets.isUnstable(group.name, offset)
    )
  }

  /** Undefined while somebody may read it. */
  #idleSince(group: ExpiringGroup, { topicId, at }: CommittedOffset): number | undefined {
    // What a reader of an earlier process left behind says no time: it counts from now on.
    const committedAt = at < 0 ? group.emptySince : at
    if (group.protocolType === null) return committedAt
    if (group.state === 'Empty') return group.emptySince
    const { topics } = group
    if (group.state !== 'Stable' || topics === null) return undefined
    const name = this.#topics.list().find(({ id }) => id === topicId)?.name
    return name === undefined || !topics.has(name) ? committedAt : undefined
  }
}
