/**
 * A consumer group of both kinds: subscribers of this process and members of Kafka's protocol. It exists while both are
 * there, and stands between the group, which assigns, and the reader, whose cursors deliver.
 *
 *   subscribers come, go, settle ──► LocalMembers ──► ModernGroup ◄── heartbeats
 *                                                         │ owners
 *                                                         ▼
 *   cursors:   a subscriber's ─► assigned     nobody's ─► assigned to nobody     a member's elsewhere ─► away
 *
 * Invariants: a cursor is delivered from only while its partition is a subscriber's in `owners`, and a partition stays
 * that subscriber's until nothing of it is in flight. So each partition has one owner, on whichever side. Everything
 * between a change and its outcome in the cursors runs to completion.
 */
import type { Cursor } from '../core/cursor.ts'
import type { Reader, RemoteSide } from '../core/reader.ts'
import type { TopicPartition } from './assignors.ts'
import type { GroupOffsets } from './group-offsets.ts'
import { LocalMember } from './local-member.ts'
import type { LocalSide, ModernGroup } from './modern-group.ts'
import type { ModernMember } from './modern-member.ts'
import { byTopic, partitionKey } from './partition-keys.ts'

export interface JointHost {
  readonly topics: { byId(id: string): { readonly name: string } | undefined }
  readonly offsets: Pick<GroupOffsets, 'isUnstable'>
  /** Members may have left, or a transaction has ended: one kind may be all there is. */
  looked(joint: JointGroup): void
}

export class JointGroup implements RemoteSide, LocalSide {
  readonly group: ModernGroup
  readonly reader: Reader
  readonly members: Set<LocalMember> = new Set()
  readonly #host: JointHost
  /** It looks again after this drain. */
  #isAsked = false
  /** The epoch of the last assignment that was told. */
  #told = -1

  constructor(group: ModernGroup, reader: Reader, host: JointHost) {
    this.group = group
    this.reader = reader
    this.#host = host
    group.bind(this)
    reader.remote = this
  }

  /** Subscribers were there first: they come with what they have. */
  adopt(): void {
    for (const member of this.reader.members) {
      const held = [...this.reader.cursors()].filter(({ holder }) => holder === member).map(keyOf)
      const local = new LocalMember(member, new Set(held), this.group.epoch, this.#overdue)
      local.reads()
      this.members.add(local)
      this.group.admit(local)
    }
    this.#told = this.group.assignmentEpoch
  }

  /** Neither side is heard or told by the other any more. */
  end(): void {
    for (const local of this.members) this.group.dismiss(local)
    this.members.clear()
    this.group.bind(null)
    this.reader.remote = null
    this.reader.generation = this.group.epoch
  }

  // ── what the reader says ──────────────────────────────────────────────────────────────────────

  changed(): void {
    if (this.#update()) this.group.localsChanged()
    else this.group.settle()
    this.#host.looked(this)
  }

  /** Whether others are there, or they read something else. */
  #update(): boolean {
    const { members } = this.reader
    let isOther = false
    for (const local of [...this.members]) {
      if (members.includes(local.member)) continue
      this.members.delete(local)
      this.group.dismiss(local)
      isOther = true
    }
    const known = new Set([...this.members].map(({ member }) => member))
    for (const member of members) {
      if (!known.has(member)) this.members.add(new LocalMember(member, new Set(), 0, this.#overdue))
    }
    for (const local of this.members) {
      const readsOther = local.reads()
      isOther ||= readsOther
    }
    return isOther || this.members.size > known.size
  }

  /** In the middle of a settle: what it has left behind is looked at after that. */
  settled(): void {
    if (this.#isAsked || ![...this.members].some(({ state }) => state === 'unrevoked')) return
    this.#isAsked = true
    this.reader.ctx.dispatcher.afterDrain(() => {
      this.#isAsked = false
      this.group.settle()
    })
  }

  ownerOf(cursor: Cursor): string | null {
    return this.group.ownerOf(keyOf(cursor))?.id ?? null
  }

  // ── what the group says ───────────────────────────────────────────────────────────────────────

  inHand({ assigned, revoking }: ModernMember): ReadonlySet<string> {
    const busy = [...this.reader.cursors()].filter((cursor) => {
      const key = keyOf(cursor)
      return (assigned.has(key) || revoking.has(key)) && cursor.isBusy
    })
    return new Set(busy.map(keyOf))
  }

  moved(): void {
    for (const cursor of this.reader.cursors()) this.#place(cursor)
    const { epoch, assignmentEpoch } = this.group
    this.reader.generation = epoch
    if (this.#told === assignmentEpoch) return
    this.#told = assignmentEpoch
    this.#raise()
  }

  #place(cursor: Cursor): void {
    const key = keyOf(cursor)
    const owner = this.group.ownerOf(key)
    if (owner !== undefined && !(owner instanceof LocalMember)) {
      cursor.goAway()
      return
    }
    this.reader.takeBack(cursor)
    const { topic, index } = cursor.partition
    // A transaction may still say that it is further.
    const isReady = !this.#host.offsets.isUnstable(this.group.name, { topicId: topic.id, partition: index })
    cursor.assign(owner?.assigned.has(key) === true && isReady ? owner.member : null)
  }

  /** It did not give up in time: what is left in flight is fenced. */
  readonly #overdue = ({ revoking }: LocalMember): void => {
    for (const cursor of this.reader.cursors()) {
      if (revoking.has(keyOf(cursor)) && cursor.isBusy) {
        cursor.reset(cursor.position, 'its partition was to be given up, and it took too long')
      }
    }
    this.group.settle()
  }

  #raise(): void {
    const assignment = Object.create(null) as Record<string, TopicPartition[]>
    for (const { id, target } of this.group.members) {
      assignment[id] = [...byTopic(target)].flatMap(([topicId, partitions]) => {
        const topic = this.#host.topics.byId(topicId)?.name
        return topic === undefined ? [] : partitions.map((partition) => ({ topic, partition }))
      })
    }
    const { name, assignmentEpoch } = this.group
    this.reader.ctx.events.raise('rebalance', { group: name, generation: assignmentEpoch, assignment })
  }
}

function keyOf({ partition }: Cursor): string {
  return partitionKey(partition.topic.id, partition.index)
}
