/** A modern group without a broker, topics for it, and clients of it that do what they are told. */
import { DEFAULT_GROUP_LIMITS } from '../../src/coordinator/groups.ts'
import { ModernGroup } from '../../src/coordinator/modern-group.ts'
import type { HeartbeatRequest, HeartbeatResult } from '../../src/coordinator/modern-requests.ts'
import { partitionKey } from '../../src/coordinator/partition-keys.ts'
import { DueQueue } from '../../src/core/due-queue.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

export const SESSION_MS = 45_000
export const REBALANCE_MS = 60_000

export class ModernKit {
  readonly clock: ManualClock = new ManualClock()
  readonly due: DueQueue = new DueQueue(this.clock, (error) => {
    throw error
  })
  readonly group: ModernGroup
  /** Epochs that the registry heard of. */
  readonly epochs: number[] = []
  readonly #topics = new Map<string, { id: string; name: string; partitions: { length: number } }>()
  #ids = 0

  constructor(topics: Readonly<Record<string, number>> = { orders: 6 }, maxSize = 100) {
    for (const [name, partitions] of Object.entries(topics)) this.create(name, partitions)
    this.group = new ModernGroup('g', {
      ctx: { clock: this.clock, due: this.due },
      limits: { ...DEFAULT_GROUP_LIMITS, maxSize },
      topics: { list: () => [...this.#topics.values()] },
      grew: ({ epoch }) => this.epochs.push(epoch),
      keep: () => {},
      drop: () => {},
    })
  }

  /** Makes or grows a topic. */
  create(name: string, partitions: number): void {
    const id = this.#topics.get(name)?.id ?? `${name}#${++this.#ids}`
    this.#topics.set(name, { id, name, partitions: { length: partitions } })
    this.group?.topicsChanged()
  }

  delete(name: string): void {
    this.#topics.delete(name)
    this.group.topicsChanged()
  }

  /** Of all partitions that there are. */
  get partitions(): { readonly topic: string; readonly key: string }[] {
    return [...this.#topics.values()].flatMap(({ id, name, partitions }) =>
      Array.from({ length: partitions.length }, (_, p) => ({ topic: name, key: partitionKey(id, p) })),
    )
  }

  readonly client = (said: Partial<HeartbeatRequest> = {}): Client => new Client(this, said)

  /** Clients that have joined one after the other, and have what they shall have. */
  settled(count: number, said: Partial<HeartbeatRequest> = {}): Client[] {
    const clients = Array.from({ length: count }, () => this.client(said))
    this.settle(clients)
    return clients
  }

  /** All are heard of, and obey, until nothing changes any more. */
  settle(clients: readonly Client[]): void {
    for (let round = 0; round < 6; round++) for (const each of clients) each.beat()
  }
}

let ids = 0

export class Client {
  readonly said: Partial<HeartbeatRequest>
  readonly #kit: ModernKit
  memberId = `member-${++ids}`
  epoch = 0
  /** What it reads. */
  owned: ReadonlySet<string> = new Set()
  /** What it was told that it may read, last. */
  assigned: ReadonlySet<string> = new Set()

  constructor(kit: ModernKit, said: Partial<HeartbeatRequest>) {
    this.#kit = kit
    this.said = said
  }

  /** A heartbeat with no more than the changes to the usual, unless it joins. */
  send(changes: Partial<HeartbeatRequest> = {}): HeartbeatResult {
    const joins = (changes.epoch ?? this.epoch) === 0
    const { instanceId = null, rebalanceTimeoutMs = REBALANCE_MS, topicNames = ['orders'] } = this.said
    return this.#kit.group.heartbeat({
      memberId: this.memberId,
      epoch: this.epoch,
      rackId: null,
      clientId: 'client',
      clientHost: '127.0.0.1',
      topicPattern: joins ? (this.said.topicPattern ?? null) : null,
      assignor: joins ? (this.said.assignor ?? null) : null,
      instanceId,
      rebalanceTimeoutMs: joins ? rebalanceTimeoutMs : -1,
      topicNames: joins ? topicNames : null,
      owned: joins ? new Set() : this.owned,
      ...changes,
    })
  }

  /** The same, and it takes in what it hears. */
  hear(changes: Partial<HeartbeatRequest> = {}): HeartbeatResult {
    const result = this.send(changes)
    if (result.error === 'NONE') {
      this.memberId = result.memberId
      this.epoch = result.epoch
      this.assigned = result.assigned ?? this.assigned
    } else if (result.error === 'FENCED_MEMBER_EPOCH' || result.error === 'UNKNOWN_MEMBER_ID') {
      this.epoch = 0
      this.assigned = new Set()
      this.owned = new Set()
    }
    return result
  }

  /** The same, and it does what it is told. */
  beat(changes: Partial<HeartbeatRequest> = {}): HeartbeatResult {
    const result = this.hear(changes)
    this.obey()
    return result
  }

  obey(): void {
    this.owned = this.assigned
  }

  /** Partitions of one topic, as digits. */
  get digits(): string {
    return digits(this.assigned)
  }
}

export function digits(keys: ReadonlySet<string>): string {
  return [...keys]
    .map((key) => key.split('/')[1] as string)
    .sort()
    .join('')
}
