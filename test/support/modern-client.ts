/** A consumer whose partitions the broker assigns, as the wire sees one: it does what it is told in each heartbeat. */
import type { RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { offsetCommit } from '../../src/wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../../src/wire/messages/09-offset-fetch.ts'
import { consumerGroupHeartbeat } from '../../src/wire/messages/68-consumer-group-heartbeat.ts'
import type { KafkaWorld, Sender } from './kafka.ts'

export type Beat = RequestInputOf<typeof consumerGroupHeartbeat>
export type Heard = ResponseOf<typeof consumerGroupHeartbeat>
type Owned = NonNullable<Heard['assignment']>['topicPartitions']

let ids = 0

export class ModernClient {
  readonly #world: KafkaWorld
  readonly group: string
  readonly sender: Sender
  memberId = `member-${++ids}`
  memberEpoch = 0
  owned: Owned = []

  constructor(world: KafkaWorld, { group = 'g', sender = {} as Sender } = {}) {
    this.#world = world
    this.group = group
    this.sender = sender
  }

  /** One request: all that it is where it joins, and what it owns where not. */
  async beat(changes: Partial<Beat> = {}, version = 1): Promise<Heard> {
    const epoch = changes.memberEpoch ?? this.memberEpoch
    const joining = { rebalanceTimeoutMs: 60_000, subscribedTopicNames: ['orders'], topicPartitions: [] }
    const staying = { rebalanceTimeoutMs: -1, subscribedTopicNames: null, topicPartitions: this.owned }
    const heard = await this.#world.send(
      consumerGroupHeartbeat,
      version,
      {
        groupId: this.group,
        memberId: this.memberId,
        memberEpoch: epoch,
        instanceId: null,
        rackId: null,
        subscribedTopicRegex: null,
        serverAssignor: null,
        ...(epoch === 0 ? joining : staying),
        ...changes,
      },
      this.sender,
    )
    if (heard.errorCode === 0 && heard.memberEpoch > 0) {
      this.memberId = heard.memberId as string
      this.memberEpoch = heard.memberEpoch
    }
    if (heard.assignment !== null) this.owned = heard.assignment.topicPartitions
    return heard
  }

  get partitions(): number[] {
    return this.owned.flatMap(({ partitions }) => partitions)
  }

  /** Of partition 0 of `orders`; the error code. */
  async commit(offset: number, changes: object = {}, version = 9): Promise<number> {
    const partitions = [{ partitionIndex: 0, committedOffset: offset, committedMetadata: '' }]
    const topicId = this.#world.broker.describe('orders').id
    const { topics } = await this.#world.send(offsetCommit, version, {
      groupId: this.group,
      generationIdOrMemberEpoch: this.memberEpoch,
      memberId: this.memberId,
      groupInstanceId: null,
      topics: [{ name: 'orders', topicId, partitions }],
      ...changes,
    })
    return topics[0]?.partitions[0]?.errorCode as number
  }

  /** The offset there, or the error code of the group. */
  async committed(changes: object = {}, version = 9): Promise<{ errorCode: number; offset?: number }> {
    const topics = [
      { name: 'orders', topicId: this.#world.broker.describe('orders').id, partitionIndexes: [0] },
    ]
    const { memberId, memberEpoch } = this
    const groups = [{ groupId: this.group, memberId, memberEpoch, topics, ...changes }]
    const response = await this.#world.send(offsetFetch, version, { groups, requireStable: true })
    const group = response.groups[0] as (typeof response.groups)[number]
    const offset = group.topics[0]?.partitions[0]?.committedOffset
    return offset === undefined ? { errorCode: group.errorCode } : { errorCode: group.errorCode, offset }
  }
}
