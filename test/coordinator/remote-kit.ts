/** Members that a group has elsewhere, without the protocol: each does what it is told, when it is heard of. */
import type { Broker } from '../../src/broker.ts'
import type { HeartbeatRequest, HeartbeatResult } from '../../src/coordinator/modern-requests.ts'
import { byTopic, partitionKey } from '../../src/coordinator/partition-keys.ts'

export interface RemoteOptions {
  readonly group?: string
  readonly id?: string
  readonly topics?: readonly string[]
  readonly instanceId?: string | null
}

let ids = 0

export class Remote {
  readonly broker: Broker
  readonly group: string
  readonly id: string
  readonly topics: readonly string[]
  readonly instanceId: string | null
  epoch = 0
  /** What it reads, as keys. */
  owned: ReadonlySet<string> = new Set()
  /** What it was told that it may read. */
  told: ReadonlySet<string> = new Set()

  constructor(
    broker: Broker,
    { group = 'g', id, topics = ['orders'], instanceId = null }: RemoteOptions = {},
  ) {
    this.broker = broker
    this.group = group
    this.id = id ?? `remote-${++ids}`
    this.topics = topics
    this.instanceId = instanceId
  }

  /** Is heard of; does not do yet what it is told. */
  async hear(said: Partial<HeartbeatRequest> = {}): Promise<HeartbeatResult> {
    const joins = (said.epoch ?? this.epoch) === 0
    const result = await this.broker.parts.groups.consumerHeartbeat(this.group, {
      memberId: this.id,
      epoch: this.epoch,
      instanceId: this.instanceId,
      rackId: null,
      clientId: 'client',
      clientHost: '127.0.0.1',
      rebalanceTimeoutMs: joins ? 60_000 : -1,
      topicNames: joins ? this.topics : null,
      topicPattern: null,
      assignor: null,
      owned: joins ? new Set() : this.owned,
      ...said,
    })
    if (result.error === 'NONE' && result.epoch >= 0) this.epoch = result.epoch
    this.told = result.assigned ?? this.told
    return result
  }

  async beat(said: Partial<HeartbeatRequest> = {}): Promise<HeartbeatResult> {
    const result = await this.hear(said)
    this.obey()
    return result
  }

  /** Reads what it was told to, and nothing else any more. */
  obey(): void {
    this.owned = this.told
  }

  /** Until it has nothing more to be told. */
  async settle(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.beat()
  }

  async leave(): Promise<void> {
    await this.hear({ epoch: -1 })
    this.told = new Set()
    this.owned = new Set()
    this.epoch = 0
  }

  /** Partitions of one topic, as digits. */
  digits(topic = 'orders'): string {
    const { id } = this.broker.describe(topic)
    return (byTopic(this.owned).get(id) ?? []).join('')
  }

  /** As the protocol has it: its error, or HELD where a subscriber has the partition. */
  async commit(partition: number, offset: number, topic = 'orders'): Promise<string> {
    const { groups, groupOffsets } = this.broker.parts
    const { id, epoch, instanceId } = this
    const entry = { topicId: this.broker.describe(topic).id, partition, offset, metadata: '', epoch: -1 }
    const error = groups.checkCommit(this.group, { memberId: id, instanceId, generation: epoch })
    if (error !== 'NONE') return error
    if (groups.isHeldHere(this.group, entry)) return 'HELD'
    await groupOffsets.commit(this.group, [entry])
    return 'NONE'
  }

  /** Where the group is in a partition. */
  committed(partition: number, topic = 'orders'): number | undefined {
    const topicId = this.broker.describe(topic).id
    return this.broker.parts.groupOffsets.committed(this.group, { topicId, partition })?.offset
  }

  has(partition: number, topic = 'orders'): boolean {
    return this.owned.has(partitionKey(this.broker.describe(topic).id, partition))
  }
}
