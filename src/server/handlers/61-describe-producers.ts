/**
 * DescribeProducers: who produces to partitions, and whose transactions are open there (KIP-664).
 *
 *   0    flexible
 */
import { COORDINATOR_EPOCH } from '../../coordinator/producer-markers.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeProducers as api } from '../../wire/messages/61-describe-producers.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { partitionOf } from '../partitions.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type PartitionResponse = ResponseInputOf<typeof api>['topics'][number]['partitions'][number]

export const describeProducers: Handler = handler(api, async (request, call, world) => {
  const turns = new Turns(world.parts.ctx)
  return {
    throttleTimeMs: 0,
    topics: await turns.each([...indexesByTopic(request)], async ([name, indexes]) => ({
      name,
      partitions: await turns.each([...indexes], (index) => described(world, call, name, index)),
    })),
  }
})

/** No partition is told twice: an answer has all its producers, and the question is four bytes. */
function indexesByTopic({ topics }: RequestOf<typeof api>): Map<string, Set<number>> {
  const asked = new Map<string, Set<number>>()
  for (const { name, partitionIndexes } of topics) {
    const indexes = asked.get(name) ?? new Set()
    for (const index of partitionIndexes) indexes.add(index)
    asked.set(name, indexes)
  }
  return asked
}

function described(world: World, call: Call, name: string, partitionIndex: number): PartitionResponse {
  const partition = partitionOf(world, call, world.parts.topics.get(name), partitionIndex)
  if (typeof partition === 'number') {
    return { partitionIndex, errorCode: partition, errorMessage: null, activeProducers: [] }
  }
  const activeProducers = [...partition.log.producers()].map((producer) => ({
    producerId: producer.id,
    producerEpoch: producer.epoch,
    lastSequence: producer.lastSequence,
    lastTimestamp: producer.timestamp,
    coordinatorEpoch: COORDINATOR_EPOCH,
    currentTxnStartOffset: producer.openSince,
  }))
  return { partitionIndex, errorCode: KAFKA_ERRORS.NONE, errorMessage: null, activeProducers }
}
