/**
 * DescribeTransactions: what transactional ids are at (KIP-664).
 *
 *   0    flexible
 */
import type { ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { describeTransactions as api } from '../../wire/messages/65-describe-transactions.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { isCoordinator } from '../transactions.ts'
import type { World } from '../world.ts'

type Described = ResponseInputOf<typeof api>['transactionStates'][number]

export const describeTransactions: Handler = handler(api, (request, call, world) => ({
  throttleTimeMs: 0,
  // None is told twice: an answer is as large as the transaction.
  transactionStates: [...new Set(request.transactionalIds)].map((id) => described(world, call, id)),
}))

function described(world: World, call: Call, transactionalId: string): Described {
  if (!isCoordinator(world, call, transactionalId)) {
    return failed(transactionalId, KAFKA_ERRORS.NOT_COORDINATOR)
  }
  if (transactionalId === '') return failed(transactionalId, KAFKA_ERRORS.INVALID_REQUEST)
  const txn = world.transactions.get(transactionalId)
  if (txn === undefined) return failed(transactionalId, KAFKA_ERRORS.TRANSACTIONAL_ID_NOT_FOUND)
  return {
    errorCode: KAFKA_ERRORS.NONE,
    transactionalId,
    transactionState: txn.phase,
    transactionTimeoutMs: txn.timeoutMs,
    transactionStartTimeMs: txn.startedAt,
    producerId: txn.producerId,
    producerEpoch: txn.epoch,
    topics: topicsOf(txn.partitions),
  }
}

function topicsOf(partitions: { readonly [key: string]: string }): Described['topics'] {
  const topics = new Map<string, number[]>()
  for (const [key, topic] of Object.entries(partitions)) {
    const indexes = topics.get(topic) ?? []
    indexes.push(Number(key.slice(key.lastIndexOf('/') + 1)))
    topics.set(topic, indexes)
  }
  return [...topics].map(([topic, indexes]) => ({ topic, partitions: indexes }))
}

function failed(transactionalId: string, errorCode: number): Described {
  return {
    errorCode,
    transactionalId,
    transactionState: '',
    transactionTimeoutMs: 0,
    transactionStartTimeMs: 0,
    producerId: 0,
    producerEpoch: 0,
    topics: [],
  }
}
