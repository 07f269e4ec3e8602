/**
 * Who is in a classic group: by id, static ones by their instance too, one of them the leader. Answers what depends on
 * all of them together: whom a request comes from, which protocol they choose, how long they wait for one another.
 *
 * Invariants: the leader is a member, and there is one while there are members. A static member is under its instance
 * and its id, or under neither. What a member says changes here alone, so that protocols are counted, not asked for.
 */
import type { ClassicMember } from './classic-member.ts'
import type { GroupError, JoinRequest, MemberRef, Protocol } from './classic-requests.ts'

export class ClassicMembers {
  readonly #byId = new Map<string, ClassicMember>()
  readonly #byInstance = new Map<string, ClassicMember>()
  /** How many know a protocol. */
  readonly #knowing = new Map<string, number>()
  #leader: ClassicMember | null = null

  get size(): number {
    return this.#byId.size
  }

  get leader(): ClassicMember | null {
    return this.#leader
  }

  /** In the order in which they came. */
  [Symbol.iterator](): IterableIterator<ClassicMember> {
    return this.#byId.values()
  }

  get(id: string): ClassicMember | undefined {
    return this.#byId.get(id)
  }

  ofInstance(instanceId: string): ClassicMember | undefined {
    return this.#byInstance.get(instanceId)
  }

  add(member: ClassicMember): void {
    this.#byId.set(member.id, member)
    if (member.instanceId !== null) this.#byInstance.set(member.instanceId, member)
    this.#leader ??= member
    this.#count(member, 1)
  }

  /** It says something else from now on. */
  update(member: ClassicMember, request: JoinRequest): void {
    this.#count(member, -1)
    member.update(request)
    this.#count(member, 1)
  }

  #count({ protocols }: ClassicMember, change: 1 | -1): void {
    for (const name of new Set(protocols.map((each) => each.name))) {
      const count = (this.#knowing.get(name) ?? 0) + change
      if (count === 0) this.#knowing.delete(name)
      else this.#knowing.set(name, count)
    }
  }

  /** `member` is what `former` was. */
  replace(former: ClassicMember, member: ClassicMember): void {
    this.#byId.delete(former.id)
    this.#count(former, -1)
    this.add(member)
    if (this.#leader === former) this.#leader = member
  }

  remove(member: ClassicMember): void {
    this.#byId.delete(member.id)
    this.#count(member, -1)
    if (member.instanceId !== null) this.#byInstance.delete(member.instanceId)
    if (this.#leader === member) this.#leader = this.#byId.values().next().value ?? null
  }

  clear(): void {
    this.#byId.clear()
    this.#byInstance.clear()
    this.#knowing.clear()
    this.#leader = null
  }

  /** One of `joined` leads, the one that did if it is among them. */
  elect(joined: readonly ClassicMember[]): void {
    if (this.#leader === null || !joined.includes(this.#leader)) this.#leader = joined[0] ?? null
  }

  /** NONE where somebody is the member that he says. */
  identify({ memberId, instanceId }: MemberRef): GroupError {
    if (instanceId !== null) {
      const member = this.#byInstance.get(instanceId)
      if (member === undefined) return 'UNKNOWN_MEMBER_ID'
      if (member.id !== memberId) return 'FENCED_INSTANCE_ID'
    }
    return this.#byId.has(memberId) ? 'NONE' : 'UNKNOWN_MEMBER_ID'
  }

  /** Whether all know one of the protocols. */
  agreeOn(protocols: readonly Protocol[]): boolean {
    return protocols.some(({ name }) => this.#allKnow(name))
  }

  /** Of the protocols that all know, the one that most like best. */
  vote(): string | null {
    const votes = new Map<string, number>()
    for (const { protocols } of this) {
      const choice = protocols.find(({ name }) => this.#allKnow(name))
      if (choice !== undefined) votes.set(choice.name, (votes.get(choice.name) ?? 0) + 1)
    }
    let elected: string | null = null
    for (const [name, count] of votes) {
      if (elected === null || count > (votes.get(elected) as number)) elected = name
    }
    return elected
  }

  #allKnow(protocol: string): boolean {
    return this.#knowing.get(protocol) === this.size
  }

  get haveAllJoined(): boolean {
    for (const { isJoining } of this) if (!isJoining) return false
    return true
  }

  /** What the most patient one would wait for the others. */
  get patienceMs(): number {
    let mostMs = 0
    for (const { rebalanceTimeoutMs } of this) mostMs = Math.max(mostMs, rebalanceTimeoutMs)
    return mostMs
  }

  /** Topics that somebody subscribes to under a protocol; null where that cannot be told. */
  topicsOf(protocol: string | null): ReadonlySet<string> | null {
    const all = new Set<string>()
    for (const { protocols } of this) {
      for (const { name, topics } of protocols) {
        if (protocol !== null && name !== protocol) continue
        if (topics === null) return null
        for (const topic of topics) all.add(topic)
      }
    }
    return all
  }
}
