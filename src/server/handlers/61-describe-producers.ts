/**
 * DescribeProducers: who produces to partitions, and whose transactions are open there (KIP-664).
 *
 *   0    flexible
 */
import { COORDINATOR_EPOCH } from '../../coordinator/producer-markers.ts'
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeProducers as api } from '../../wire/messages/61-describe-producers.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { partitionOf } from '../partitions.ts'
import type { World } from '../world.ts'

type PartitionResponse = ResponseInputOf<typeof api>['topics'][number]['partitions'][number]

export const describeProducers: Handler = handler(api, (request, call, world) => ({
  throttleTimeMs: 0,
  topics: request.topics.map(({ name, partitionIndexes }) => ({
    name,
    partitions: partitionIndexes.map((index) => described(world, call, name, index)),
  })),
}))

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
