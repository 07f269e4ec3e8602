/**
 * A subscriber of this process as a member of a modern group. It takes the same steps as all, but is asked instead of
 * heard: it has no session, and what it owns is what it has something in hand of.
 */
import type { Member } from '../core/member.ts'
import { ModernMember } from './modern-member.ts'

/** For what is in flight to settle once it is to be given up: what clients of Kafka have by default. */
const REBALANCE_TIMEOUT_MS = 300_000

export class LocalMember extends ModernMember {
  readonly member: Member

  /** `held`: what it has already, in a group whose epoch that is. */
  constructor(
    member: Member,
    held: ReadonlySet<string>,
    epoch: number,
    onOverdue: (member: LocalMember) => void,
  ) {
    super(member.id, null, () => onOverdue(this))
    this.member = member
    this.rebalanceTimeoutMs = REBALANCE_TIMEOUT_MS
    this.assignor = member.reader.settings.assignment === 'range' ? 'range' : 'uniform'
    this.assigned = held
    this.target = held
    if (held.size > 0) this.epoch = epoch
  }

  /** Ids of this process and of clients do not meet. */
  override get key(): string {
    return `in-process/${this.id}`
  }

  /** Takes what it reads; answers whether that has changed. One that is about to leave reads nothing any more. */
  reads(): boolean {
    const { closed, reader, topics } = this.member
    const names = closed ? [] : reader.topics.filter(({ id }) => topics.has(id)).map(({ name }) => name)
    const isSame = names.length === this.topicNames.size && names.every((name) => this.topicNames.has(name))
    this.topicNames = new Set(names)
    return !isSame
  }
}
