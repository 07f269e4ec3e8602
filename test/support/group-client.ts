/** A consumer as a group sees one: joins, syncs, commits. What it does not say is what clients say by default. */

import type { RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { assignmentBytes, subscriptionBytes } from '../../src/wire/consumer-protocol.ts'
import { KAFKA_ERRORS } from '../../src/wire/errors.ts'
import { offsetCommit } from '../../src/wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../../src/wire/messages/09-offset-fetch.ts'
import { joinGroup } from '../../src/wire/messages/11-join-group.ts'
import { heartbeat } from '../../src/wire/messages/12-heartbeat.ts'
import { leaveGroup } from '../../src/wire/messages/13-leave-group.ts'
import { syncGroup } from '../../src/wire/messages/14-sync-group.ts'
import type { KafkaWorld, Sender } from './kafka.ts'

type Join = RequestInputOf<typeof joinGroup>
export type Joined = ResponseOf<typeof joinGroup>
export type Synced = ResponseOf<typeof syncGroup>
type Places = readonly (readonly [topic: string, partitions: readonly number[]])[]
type Part = ResponseOf<typeof offsetFetch>['groups'][number]['topics'][number]['partitions'][number]

export class GroupClient {
  readonly #world: KafkaWorld
  readonly group: string
  readonly instanceId: string | null
  readonly sender: Sender
  memberId = ''
  generation = -1

  constructor(
    world: KafkaWorld,
    { group = 'g', instanceId = null as string | null, sender = {} as Sender } = {},
  ) {
    this.#world = world
    this.group = group
    this.instanceId = instanceId
    this.sender = sender
  }

  /** One request. */
  async join(changes: Partial<Join> = {}, version = 9): Promise<Joined> {
    const joined = await this.#world.send(
      joinGroup,
      version,
      {
        groupId: this.group,
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 60_000,
        memberId: this.memberId,
        groupInstanceId: this.instanceId,
        protocolType: 'consumer',
        protocols: [{ name: 'range', metadata: subscriptionBytes(['orders']) }],
        ...changes,
      },
      this.sender,
    )
    if (joined.errorCode === KAFKA_ERRORS.NONE || joined.errorCode === KAFKA_ERRORS.MEMBER_ID_REQUIRED)
      this.memberId = joined.memberId
    if (joined.errorCode === KAFKA_ERRORS.NONE) this.generation = joined.generationId
    return joined
  }

  /** As clients do it: with the id that they are given. */
  async joinAll(changes: Partial<Join> = {}, version = 9): Promise<Joined> {
    const joined = await this.join(changes, version)
    return joined.errorCode === KAFKA_ERRORS.MEMBER_ID_REQUIRED ? this.join(changes, version) : joined
  }

  sync(
    assignments: readonly (readonly [member: string, places: Places])[] = [],
    version = 5,
  ): Promise<Synced> {
    return this.#world.send(
      syncGroup,
      version,
      {
        groupId: this.group,
        generationId: this.generation,
        memberId: this.memberId,
        groupInstanceId: this.instanceId,
        protocolType: 'consumer',
        protocolName: 'range',
        assignments: assignments.map(([memberId, places]) => ({
          memberId,
          assignment: assignmentBytes(places.map(([topic, partitions]) => ({ topic, partitions }))),
        })),
      },
      this.sender,
    )
  }

  async heartbeat(): Promise<number> {
    const { memberId, generation, instanceId } = this
    const body = { groupId: this.group, generationId: generation, memberId, groupInstanceId: instanceId }
    return (await this.#world.send(heartbeat, 4, body, this.sender)).errorCode
  }

  leave(version = 5): Promise<ResponseOf<typeof leaveGroup>> {
    const { memberId, instanceId } = this
    const members = [{ memberId, groupInstanceId: instanceId }]
    return this.#world.send(leaveGroup, version, { groupId: this.group, memberId, members }, this.sender)
  }

  async commit(
    topic: string,
    partition: number,
    offset: number,
    metadata: string | null = '',
  ): Promise<number> {
    const { topics } = await this.#world.send(
      offsetCommit,
      9,
      {
        groupId: this.group,
        generationIdOrMemberEpoch: this.generation,
        memberId: this.memberId,
        groupInstanceId: this.instanceId,
        topics: [
          {
            name: topic,
            partitions: [{ partitionIndex: partition, committedOffset: offset, committedMetadata: metadata }],
          },
        ],
      },
      this.sender,
    )
    return topics[0]?.partitions[0]?.errorCode as number
  }

  async committed(topic: string, partition: number): Promise<Part> {
    const asked = [{ name: topic, partitionIndexes: [partition] }]
    const groups = [{ groupId: this.group, memberId: null, topics: asked }]
    const response = await this.#world.send(offsetFetch, 9, { groups, requireStable: true }, this.sender)
    return response.groups[0]?.topics[0]?.partitions[0] as Part
  }
}
