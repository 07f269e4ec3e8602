/**
 * OffsetDelete: forgets how far a group has come in partitions that none of its members reads (KIP-496). Version 0 is
 * all there is.
 *
 * What a group of another type than `consumer` reads cannot be told: while it has members, NON_EMPTY_GROUP.
 */
import type { PartitionRef } from '../../coordinator/group-offsets.ts'
import type { Topic } from '../../core/topic.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { offsetDelete as api } from '../../wire/messages/47-offset-delete.ts'
import { CONSUMER } from '../consumer-protocol.ts'
import { isGroupCoordinator, storedErrorCode } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

export const offsetDelete: Handler = handler(api, async (request, call, world) => {
  const failed = (errorCode: number) => ({ errorCode, throttleTimeMs: 0, topics: [] })
  const { groupId } = request
  if (!isGroupCoordinator(world, call, groupId)) return failed(KAFKA_ERRORS.NOT_COORDINATOR)
  if (!world.parts.groups.has(groupId)) return failed(KAFKA_ERRORS.GROUP_ID_NOT_FOUND)
  const reads = readsOf(groupId, world)
  if (reads === null) return failed(KAFKA_ERRORS.NON_EMPTY_GROUP)
  const gone: PartitionRef[] = []
  const topics = request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex }) => {
      const topic = world.parts.topics.get(name)
      if (topic?.partitions[partitionIndex] === undefined) {
        return { partitionIndex, errorCode: KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION }
      }
      if (reads(topic)) return { partitionIndex, errorCode: KAFKA_ERRORS.GROUP_SUBSCRIBED_TO_TOPIC }
      gone.push({ topicId: topic.id, partition: partitionIndex })
      return { partitionIndex, errorCode: KAFKA_ERRORS.NONE }
    }),
  }))
  const errorCode = await world.parts.groupOffsets
    .forget(groupId, gone)
    .then(() => KAFKA_ERRORS.NONE, storedErrorCode)
  return { errorCode, throttleTimeMs: 0, topics }
})

/** Which topics members of the group read; null where that cannot be told. */
function readsOf(groupId: string, { parts }: World): ((topic: Topic) => boolean) | null {
  const group = parts.groups.withoutReader(groupId)
  if (group === undefined) return ({ id }) => parts.readers.group(groupId)?.reads(id) === true
  if (group.members.size === 0) return () => false
  if (group.protocolType !== CONSUMER) return null
  // Where it cannot be told although they are consumers, all of them may be read: as Kafka has it.
  return ({ name }) => group.topics?.has(name) ?? true
}
