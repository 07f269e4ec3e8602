/** A classic group without a broker, and clients of it that do what they are told. */
import { ClassicGroup } from '../../src/coordinator/classic-group.ts'
import type {
  GroupError,
  GroupLimits,
  JoinRequest,
  JoinResult,
  Protocol,
  SyncResult,
} from '../../src/coordinator/classic-requests.ts'
import { DEFAULT_GROUP_LIMITS } from '../../src/coordinator/groups.ts'
import { DueQueue } from '../../src/core/due-queue.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

export const SESSION_MS = 10_000
export const REBALANCE_MS = 60_000

export class GroupKit {
  readonly clock: ManualClock = new ManualClock()
  readonly due: DueQueue = new DueQueue(this.clock, (error) => {
    throw error
  })
  readonly limits: GroupLimits
  readonly group: ClassicGroup
  /** Generations that the registry heard of. */
  readonly generations: number[] = []

  constructor(limits: Partial<GroupLimits> = {}) {
    this.limits = { ...DEFAULT_GROUP_LIMITS, ...limits }
    this.group = new ClassicGroup('g', {
      ctx: { clock: this.clock, due: this.due },
      limits: this.limits,
      changed: ({ generation }) => this.generations.push(generation),
      stands: () => {},
      keep: () => {},
      drop: () => {},
    })
  }

  readonly client = (said: Partial<JoinRequest> = {}): Client => new Client(this, said)

  /** So many clients, in a stable group; the first of them leads. */
  async stable(count: number, said: Partial<JoinRequest> = {}): Promise<Client[]> {
    const clients = Array.from({ length: count }, () => this.client(said))
    for (const client of clients) {
      client.join()
      await this.clock.settle()
      for (const each of clients) {
        if (each !== client && each.memberId !== '' && !each.isWaiting) each.join()
      }
      await this.clock.settle()
    }
    await this.assign(clients)
    return clients
  }

  /** All sync, the leader with a letter for each. */
  async assign(clients: readonly Client[]): Promise<void> {
    const leader = clients.find((each) => each.memberId === each.joined?.leader)
    const letters = clients.map(({ memberId }, i) => [memberId, bytes(String.fromCharCode(97 + i))] as const)
    for (const each of clients) each.sync(each === leader ? letters : [])
    await this.clock.settle()
  }
}

export class Client {
  readonly said: Partial<JoinRequest>
  readonly #kit: GroupKit
  #connection = new AbortController()
  memberId = ''
  generation = -1
  /** The newest answers; undefined while it waits, null where nobody waited any more. */
  joined: JoinResult | null | undefined
  synced: SyncResult | null | undefined
  /** Called at each answer, in the order in which they come. */
  onAnswer: () => void = () => {}
  /** Requests without an answer. */
  waiting = 0

  constructor(kit: GroupKit, said: Partial<JoinRequest>) {
    this.#kit = kit
    this.said = said
  }

  get isWaiting(): boolean {
    return this.waiting > 0
  }

  get instanceId(): string | null {
    return this.said.instanceId ?? null
  }

  join(changes: Partial<JoinRequest> = {}): void {
    this.joined = undefined
    const answer = this.#kit.group.join({
      memberId: this.memberId,
      instanceId: null,
      clientId: 'client',
      clientHost: '127.0.0.1',
      sessionTimeoutMs: SESSION_MS,
      rebalanceTimeoutMs: REBALANCE_MS,
      protocolType: 'consumer',
      protocols: [protocol('range')],
      requiresId: false,
      canSkipAssignment: true,
      signal: this.#connection.signal,
      ...this.said,
      ...changes,
    })
    this.waiting++
    void Promise.resolve(answer).then((joined) => {
      this.waiting--
      this.joined = joined
      if (joined?.error === 'NONE' || joined?.error === 'MEMBER_ID_REQUIRED') this.memberId = joined.memberId
      if (joined?.error === 'NONE') this.generation = joined.generation
      this.onAnswer()
    })
  }

  sync(
    assignments: readonly (readonly [member: string, assignment: Uint8Array])[] = [],
    said: { readonly protocolType?: string; readonly protocolName?: string } = {},
  ): void {
    this.synced = undefined
    const answer = this.#kit.group.sync({
      ...this.#ref,
      protocolType: null,
      protocolName: null,
      ...said,
      assignments: new Map(assignments),
      signal: this.#connection.signal,
    })
    this.waiting++
    void Promise.resolve(answer).then((synced) => {
      this.waiting--
      this.synced = synced
      this.onAnswer()
    })
  }

  heartbeat(generation: number = this.generation): GroupError {
    return this.#kit.group.heartbeat({ ...this.#ref, generation })
  }

  commit(generation: number = this.generation, isTransactional = false): GroupError {
    return this.#kit.group.checkCommit({ ...this.#ref, generation }, isTransactional)
  }

  leave(): GroupError {
    return this.#kit.group.leave([this.#ref])[0] as GroupError
  }

  /** The connection is gone; the next request takes another one. */
  disconnect(): void {
    this.#connection.abort()
    this.#connection = new AbortController()
  }

  get #ref() {
    return { memberId: this.memberId, instanceId: this.instanceId, generation: this.generation }
  }

  get assignment(): string {
    return new TextDecoder().decode(this.synced?.assignment)
  }
}

export function protocol(name: string, metadata = name, topics: readonly string[] | null = null): Protocol {
  return { name, metadata: bytes(metadata), topics }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
