/** Where a group goes on reading, as its coordinator stores it. */
import type { ResponseOf } from '../wire/api.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import { offsetCommit } from '../wire/messages/08-offset-commit.ts'
import { offsetFetch } from '../wire/messages/09-offset-fetch.ts'
import { type KafkaCluster, kafkaError } from './cluster.ts'
import { grouped, placeKey, type TopicPartition } from './offsets.ts'

export interface GroupOffset extends TopicPartition {
  readonly offset: number
}

/** Who commits; nobody of the group, where it has no members. */
export interface Committer {
  readonly memberId: string
  readonly generation: number
}

const NOBODY: Committer = { memberId: '', generation: -1 }
/** Topics by their names: the last versions of both that tell them so. */
const COMMIT_VERSION = 9
const FETCH_VERSION = 9

/** Answers the first error code, `NONE` where there is no error. */
export async function commitOffsets(
  cluster: KafkaCluster,
  group: string,
  offsets: readonly GroupOffset[],
  { memberId, generation }: Committer = NOBODY,
): Promise<number> {
  const topics = [...grouped(offsets)].map(([name, each]) => ({
    name,
    partitions: each.map(({ partition, offset }) => {
      return { partitionIndex: partition, committedOffset: offset, committedMetadata: '' }
    }),
  }))
  const body = {
    groupId: group,
    generationIdOrMemberEpoch: generation,
    memberId,
    groupInstanceId: null,
    topics,
  }
  return firstError(
    await cluster.askCoordinator(group, offsetCommit, body, firstError, { upTo: COMMIT_VERSION }),
  )
}

function firstError({ topics }: ResponseOf<typeof offsetCommit>): number {
  for (const { partitions } of topics) {
    for (const { errorCode } of partitions) if (errorCode !== KAFKA_ERRORS.NONE) return errorCode
  }
  return KAFKA_ERRORS.NONE
}

/** By `placeKey`, those that there are. @throws OdradekError */
export async function committedOffsets(
  cluster: KafkaCluster,
  group: string,
): Promise<Map<string, GroupOffset>> {
  const body = {
    groupId: group,
    topics: null,
    groups: [{ groupId: group, topics: null }],
    requireStable: false,
  }
  const answer = await cluster.askCoordinator(group, offsetFetch, body, codeOf, { upTo: FETCH_VERSION })
  const errorCode = codeOf(answer)
  if (errorCode !== KAFKA_ERRORS.NONE) throw kafkaError(errorCode, `group "${group}"`)
  const found = new Map<string, GroupOffset>()
  for (const { name, partitions } of answer.groups[0]?.topics ?? answer.topics) {
    for (const { partitionIndex, committedOffset } of partitions) {
      if (committedOffset < 0) continue
      const place = { topic: name, partition: partitionIndex, offset: committedOffset }
      found.set(placeKey(place), place)
    }
  }
  return found
}

function codeOf({ errorCode, groups }: ResponseOf<typeof offsetFetch>): number {
  return groups[0]?.errorCode ?? errorCode
}
