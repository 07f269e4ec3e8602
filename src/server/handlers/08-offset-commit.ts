/**
 * OffsetCommit: how far a group has come, by a member of its generation, or by anybody where the group has no members,
 * as administrators and consumers do that assign partitions themselves. A group that does not exist comes to be.
 *
 *   3    throttle time
 *   5    no retention time of its own any more; in older versions it is not heeded
 *   6    leader epochs
 *   7    static members
 *   8    flexible
 *   9    GROUP_ID_NOT_FOUND is known; before, ILLEGAL_GENERATION. Members of modern groups commit from here on: before,
 *        UNSUPPORTED_VERSION; with another epoch than theirs, STALE_MEMBER_EPOCH
 *   10   topics by id
 *
 * A group of this process that has members commits for itself: UNKNOWN_MEMBER_ID. Without members, its place moves. In a
 * group that both have, a partition that a subscriber reads is committed by him: STALE_MEMBER_EPOCH.
 */
import type { GroupError } from '../../coordinator/classic-requests.ts'
import type { OffsetEntry } from '../../coordinator/group-offsets.ts'
import type { RequestOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { offsetCommit as api } from '../../wire/messages/08-offset-commit.ts'
import { groupErrorCode, isGroupCoordinator, offsetEntry, storedErrorCode } from '../groups.ts'
import { type Handler, handler } from '../handler.ts'
import type { World } from '../world.ts'

type Request = RequestOf<typeof api>

const SINCE_GROUP_NOT_FOUND = 9
const SINCE_MEMBER_EPOCHS = 9
const SINCE_TOPIC_IDS = 10

export const offsetCommit: Handler = handler(api, async (request, call, world) => {
  const entries: OffsetEntry[] = []
  /** One a partition, in their order: its entry, or an error. */
  const all = request.topics.map(({ name, topicId, partitions }) => {
    const byId = call.version >= SINCE_TOPIC_IDS
    const topic = byId ? world.parts.topics.byId(topicId) : world.parts.topics.get(name)
    const unknown = byId && topic === undefined ? KAFKA_ERRORS.UNKNOWN_TOPIC_ID : undefined
    return partitions.map((partition) => {
      const entry = unknown ?? offsetEntry(topic, partition)
      if (typeof entry !== 'number') entries.push(entry)
      return entry
    })
  })
  const { groups } = world.parts
  const held = new Set(entries.filter((entry) => groups.isHeldHere(request.groupId, entry)))
  const errorCode = isGroupCoordinator(world, call, request.groupId)
    ? await committed(request, entries, held, call.version, world)
    : KAFKA_ERRORS.NOT_COORDINATOR
  return {
    throttleTimeMs: 0,
    topics: request.topics.map(({ name, topicId, partitions }, t) => ({
      name,
      topicId,
      partitions: partitions.map(({ partitionIndex }, p) => {
        const entry = all[t]?.[p] as OffsetEntry | number
        if (typeof entry === 'number') return { partitionIndex, errorCode: entry }
        const isRefused = errorCode === KAFKA_ERRORS.NONE && held.has(entry)
        return { partitionIndex, errorCode: isRefused ? KAFKA_ERRORS.STALE_MEMBER_EPOCH : errorCode }
      }),
    })),
  }
})

async function committed(
  request: Request,
  entries: readonly OffsetEntry[],
  held: ReadonlySet<OffsetEntry>,
  version: number,
  { parts }: World,
): Promise<number> {
  if (entries.length === 0) return KAFKA_ERRORS.NONE
  const { groupId, memberId, groupInstanceId: instanceId, generationIdOrMemberEpoch: generation } = request
  const error = parts.groups.checkCommit(groupId, { memberId, instanceId, generation })
  if (version < SINCE_MEMBER_EPOCHS && parts.groups.modern(groupId)?.isVacant === false) {
    return KAFKA_ERRORS.UNSUPPORTED_VERSION
  }
  if (error !== 'NONE') return groupErrorCode(known(error, version))
  const free = entries.filter((entry) => !held.has(entry))
  return parts.groupOffsets.commit(groupId, free).then(() => KAFKA_ERRORS.NONE, storedErrorCode)
}

function known(error: GroupError, version: number): GroupError {
  const isKnown = error !== 'GROUP_ID_NOT_FOUND' || version >= SINCE_GROUP_NOT_FOUND
  return isKnown ? error : 'ILLEGAL_GENERATION'
}
