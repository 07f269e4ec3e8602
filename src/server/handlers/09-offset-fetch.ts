/**
 * OffsetFetch: how far groups have come. −1 where nothing was committed, also of groups and partitions that there are
 * none of. While a group of this process has a reader, that one says where it is.
 *
 *   1    errors stand in the partitions alone
 *   2    null topics are all of them; an error for the group
 *   5    leader epochs
 *   6    flexible
 *   7    requires stable offsets: UNSTABLE_OFFSET_COMMIT where a transaction may still change them (KIP-447)
 *   8    several groups
 *   9    members say who they are: one of a modern group hears STALE_MEMBER_EPOCH where it is of another epoch; of no
 *        concern to other groups
 *   10   topics by id
 */
import type { Topic } from '../../core/topic.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { offsetFetch as api } from '../../wire/messages/09-offset-fetch.ts'
import { NO_UUID } from '../../wire/uuid.ts'
import { groupErrorCode, isGroupCoordinator } from '../groups.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

type Groups = RequestOf<typeof api>['groups']
type Asked = Groups[number]['topics']
type Group = NonNullable<ResponseInputOf<typeof api>['groups']>[number]
type Partition = Group['topics'][number]['partitions'][number]

const SINCE_GROUP_ERROR = 2
const SINCE_GROUPS = 8
const SINCE_TOPIC_IDS = 10

export const offsetFetch: Handler = handler(api, (request, call, world) => {
  const { groupId, topics, groups, requireStable } = request
  if (call.version >= SINCE_GROUPS) {
    return {
      throttleTimeMs: 0,
      groups: distinct(groups).map(({ groupId, memberId, memberEpoch, topics }) => {
        const error = world.parts.groups.checkFetch(groupId, memberId, memberEpoch)
        const isHere = isGroupCoordinator(world, call, groupId)
        if (isHere && error !== 'NONE') return { groupId, topics: [], errorCode: groupErrorCode(error) }
        return fetched(groupId, topics, requireStable, call, world)
      }),
    }
  }
  const asked = topics?.map((topic) => ({ ...topic, topicId: NO_UUID })) ?? null
  const group = fetched(groupId, asked, requireStable, call, world)
  const { errorCode } = group
  const tells = call.version >= SINCE_GROUP_ERROR || errorCode === KAFKA_ERRORS.NONE
  const places = tells ? group.topics : failed(asked, errorCode)
  return {
    throttleTimeMs: 0,
    errorCode,
    topics: places.map(({ name = '', partitions }) => ({ name, partitions })),
  }
})

/** Each partition once, for the same reason: it has metadata of 4,096 characters. */
function merged(asked: NonNullable<Asked>): NonNullable<Asked> {
  const topics = new Map<string, { name: string; topicId: string; indexes: Set<number> }>()
  for (const { name, topicId, partitionIndexes } of asked) {
    const key = `${topicId}/${name}`
    const known = topics.get(key) ?? { name, topicId, indexes: new Set() }
    for (const index of partitionIndexes) known.indexes.add(index)
    topics.set(key, known)
  }
  return [...topics.values()].map(({ indexes, ...topic }) => ({ ...topic, partitionIndexes: [...indexes] }))
}

/** A group that is named again is told once, or a name of one byte would be worth all of its offsets each time. */
function distinct(groups: Groups): Groups {
  const asked = new Set<string>()
  return groups.filter(({ groupId }) => !asked.has(groupId) && asked.add(groupId))
}

function fetched(groupId: string, asked: Asked, requireStable: boolean, call: Call, world: World): Group {
  if (!isGroupCoordinator(world, call, groupId)) {
    return { groupId, topics: [], errorCode: KAFKA_ERRORS.NOT_COORDINATOR }
  }
  const { topics, groupOffsets } = world.parts
  const answer = (topic: Topic | undefined, partitionIndex: number): Partition => {
    if (topic === undefined) return absent(partitionIndex)
    const ref = { topicId: topic.id, partition: partitionIndex }
    if (requireStable && groupOffsets.isUnstable(groupId, ref)) {
      return absent(partitionIndex, KAFKA_ERRORS.UNSTABLE_OFFSET_COMMIT)
    }
    const committed = groupOffsets.committed(groupId, ref)
    if (committed === undefined) return absent(partitionIndex)
    const { offset, epoch, metadata } = committed
    return { partitionIndex, committedOffset: offset, committedLeaderEpoch: epoch, metadata, errorCode: 0 }
  }
  if (asked === null) {
    return {
      groupId,
      errorCode: KAFKA_ERRORS.NONE,
      topics: allPlaces(groupId, world).map(([topic, partitions]) => ({
        name: topic.name,
        topicId: topic.id,
        partitions: partitions.map((index) => answer(topic, index)),
      })),
    }
  }
  const byId = call.version >= SINCE_TOPIC_IDS
  return {
    groupId,
    errorCode: KAFKA_ERRORS.NONE,
    topics: merged(asked).map(({ name, topicId, partitionIndexes }) => {
      const topic = byId ? topics.byId(topicId) : topics.get(name)
      const isUnknown = byId && topic === undefined
      return {
        name,
        topicId,
        partitions: partitionIndexes.map((index) =>
          isUnknown ? absent(index, KAFKA_ERRORS.UNKNOWN_TOPIC_ID) : answer(topic, index),
        ),
      }
    }),
  }
}

function allPlaces(groupId: string, { parts }: World): [Topic, number[]][] {
  const places = new Map<Topic, number[]>()
  for (const { topicId, partition } of parts.groupOffsets.all(groupId)) {
    const topic = parts.topics.byId(topicId)
    if (topic === undefined) continue
    places.set(topic, [...(places.get(topic) ?? []), partition])
  }
  return [...places]
}

function absent(partitionIndex: number, errorCode: number = KAFKA_ERRORS.NONE): Partition {
  return { partitionIndex, committedOffset: -1, committedLeaderEpoch: -1, metadata: '', errorCode }
}

function failed(asked: Asked, errorCode: number): Group['topics'] {
  return (asked ?? []).map(({ name, partitionIndexes }) => {
    return { name, partitions: partitionIndexes.map((index) => absent(index, errorCode)) }
  })
}
