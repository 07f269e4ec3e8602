/**
 * AddPartitionsToTxn: partitions that a transaction is about to write to.
 *
 *   2    PRODUCER_FENCED is known; before, INVALID_PRODUCER_EPOCH
 *   3    flexible
 *   4    several transactions, and to ask whether partitions are in them. Meant for brokers (KIP-890), but clients send it
 *   5    TRANSACTION_ABORTABLE is known; before, INVALID_TXN_STATE
 *
 * All partitions of a transaction or none: where one is not there, the others are not attempted.
 */
import type { TransactionPartition } from '../../coordinator/producer-transactions.ts'
import type { RequestOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { addPartitionsToTxn as api } from '../../wire/messages/24-add-partitions-to-txn.ts'
import { type Call, type Handler, handler } from '../handler.ts'
import { claimOf, isCoordinator, transactionErrorCode } from '../transactions.ts'
import { Turns } from '../turns.ts'
import type { World } from '../world.ts'

type Transaction = RequestOf<typeof api>['transactions'][number]
type Topics = Transaction['topics']
type TopicResults = {
  name: string
  resultsByPartition: { partitionIndex: number; partitionErrorCode: number }[]
}[]

const SINCE = { fenced: 2, abortable: 5 }
const FIRST_OF_SEVERAL = 4

export const addPartitionsToTxn: Handler = handler(api, async (request, call, world) => {
  if (call.version >= FIRST_OF_SEVERAL) {
    const resultsByTransaction = await new Turns(world.parts.ctx).each(
      request.transactions,
      async (each) => ({
        transactionalId: each.transactionalId,
        topicResults: await answerOne(each, call, world),
      }),
    )
    return { throttleTimeMs: 0, errorCode: 0, resultsByTransaction }
  }
  const one: Transaction = {
    transactionalId: request.v3AndBelowTransactionalId,
    producerId: request.v3AndBelowProducerId,
    producerEpoch: request.v3AndBelowProducerEpoch,
    verifyOnly: false,
    topics: request.v3AndBelowTopics,
  }
  return { throttleTimeMs: 0, resultsByTopicV3AndBelow: await answerOne(one, call, world) }
})

async function answerOne(transaction: Transaction, call: Call, world: World): Promise<TopicResults> {
  const { transactionalId, topics, verifyOnly } = transaction
  if (!isCoordinator(world, call, transactionalId)) return all(topics, KAFKA_ERRORS.NOT_COORDINATOR)
  const found = partitionsOf(topics, world)
  if (found === null) return notAttempted(topics, world)
  if (verifyOnly) return verified(transaction, call, world)
  const error = await world.transactions.addPartitions(transactionalId, claimOf(transaction), found)
  return all(topics, transactionErrorCode(error, call.version, SINCE))
}

/** Null where one of them is not there. */
function partitionsOf(topics: Topics, world: World): TransactionPartition[] | null {
  const found: TransactionPartition[] = []
  for (const { name, partitions } of topics) {
    const topic = world.parts.topics.get(name)
    for (const partition of partitions) {
      if (topic?.partitions[partition] === undefined) return null
      found.push({ topic: name, topicId: topic.id, partition })
    }
  }
  return found
}

function notAttempted(topics: Topics, world: World): TopicResults {
  return each(topics, (name, partition) =>
    world.parts.topics.get(name)?.partitions[partition] === undefined
      ? KAFKA_ERRORS.UNKNOWN_TOPIC_OR_PARTITION
      : KAFKA_ERRORS.OPERATION_NOT_ATTEMPTED,
  )
}

function verified(transaction: Transaction, call: Call, world: World): TopicResults {
  return each(transaction.topics, (name, partition) => {
    const topicId = world.parts.topics.get(name)?.id as string
    const place = { topic: name, topicId, partition }
    const { transactionalId } = transaction
    const error = world.transactions.admit(transactionalId, claimOf(transaction), place, false)
    return transactionErrorCode(error, call.version, SINCE)
  })
}

function all(topics: Topics, errorCode: number): TopicResults {
  return each(topics, () => errorCode)
}

function each(topics: Topics, codeOf: (topic: string, partition: number) => number): TopicResults {
  return topics.map(({ name, partitions }) => ({
    name,
    resultsByPartition: partitions.map((partitionIndex) => ({
      partitionIndex,
      partitionErrorCode: codeOf(name, partitionIndex),
    })),
  }))
}
