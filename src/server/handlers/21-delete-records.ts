/**
 * DeleteRecords: what lies below an offset goes; −1 stands for the high watermark.
 *
 *   0–1
 *   2    flexible
 *
 * A reader in process that holds the log keeps what it has not settled. Then as much goes as may, and the request has
 * timed out, as it would have if a replica lagged: clients try again. Compacted topics keep theirs, as in Kafka.
 */
import type { Partition } from '../../core/partition.ts'
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { deleteRecords as api } from '../../wire/messages/21-delete-records.ts'
import { type Handler, handler } from '../handler.ts'
import { partitionOf } from '../partitions.ts'
import { storageError } from '../storage-errors.ts'
import { Turns } from '../turns.ts'

type Response = ResponseInputOf<typeof api>['topics'][number]['partitions'][number]
type Deleted = Omit<Response, 'partitionIndex'>

const HIGH_WATERMARK = -1

export const deleteRecords: Handler = handler(api, async ({ topics }, call, world) => {
  const turns = new Turns(world.parts.ctx)
  const answered = turns.each(topics, async ({ name, partitions }) => {
    const topic = world.parts.topics.get(name)
    const deleted = turns.each(partitions, async ({ partitionIndex, offset }): Promise<Response> => {
      const partition = partitionOf(world, call, topic, partitionIndex)
      const outcome =
        typeof partition === 'number' ? failure(partition) : await deletedBelow(partition, offset)
      return { partitionIndex, ...outcome }
    })
    return { name, partitions: await deleted }
  })
  return { throttleTimeMs: 0, topics: await answered }
})

async function deletedBelow(partition: Partition, offset: number): Promise<Deleted> {
  const { topic, log } = partition
  if (topic.settings.cleanup === 'compact') return failure(KAFKA_ERRORS.POLICY_VIOLATION)
  const before = offset === HIGH_WATERMARK ? log.marks.high : offset
  if (before < 0 || before > log.marks.high) return failure(KAFKA_ERRORS.OFFSET_OUT_OF_RANGE)
  try {
    await partition.trim(before)
  } catch (error) {
    return failure(storageError(error))
  }
  const lowWatermark = log.marks.start
  const errorCode = lowWatermark < before ? KAFKA_ERRORS.REQUEST_TIMED_OUT : KAFKA_ERRORS.NONE
  return { lowWatermark, errorCode }
}

function failure(errorCode: number): Deleted {
  return { lowWatermark: -1, errorCode }
}
