/**
 * ListTransactions: the transactional ids of this node, by state, producer, duration and pattern (KIP-664).
 *
 *   0    flexible
 *   1    longer than a duration (KIP-994)
 *   2    by a regular expression (KIP-1152), which an id has to match as a whole
 *
 * An empty filter lets everything pass. States that nobody knows are named in the answer, and match nothing.
 */

import { type Pattern, patternOf } from '../../coordinator/pattern.ts'
import type { ProducerTransaction, TransactionPhase } from '../../coordinator/producer-transaction.ts'
import type { RequestOf, ResponseInputOf } from '../../wire/api.ts'
import { KAFKA_ERRORS } from '../../wire/errors.ts'
import { listTransactions as api } from '../../wire/messages/66-list-transactions.ts'
import { type Handler, handler } from '../handler.ts'
import { isCoordinator } from '../transactions.ts'

type Request = RequestOf<typeof api>
type Response = ResponseInputOf<typeof api>

/** Those that are here, and those that a transaction of Kafka's may be in besides. */
const STATES: ReadonlySet<string> = new Set<TransactionPhase | 'Dead' | 'PrepareEpochFence'>([
  'Empty',
  'Ongoing',
  'PrepareCommit',
  'PrepareAbort',
  'CompleteCommit',
  'CompleteAbort',
  'Dead',
  'PrepareEpochFence',
])

export const listTransactions: Handler = handler(api, (request, call, world): Response => {
  const { transactionalIdPattern } = request
  const pattern = transactionalIdPattern ? patternOf(transactionalIdPattern) : null
  if (pattern === undefined) return answer(KAFKA_ERRORS.INVALID_REGULAR_EXPRESSION, request, [])
  const now = world.parts.ctx.clock.now()
  const found: Response['transactionStates'][number][] = []
  for (const [transactionalId, txn] of world.transactions.all()) {
    if (!isCoordinator(world, call, transactionalId)) continue
    if (!passes(request, pattern, transactionalId, txn, now)) continue
    found.push({ transactionalId, producerId: txn.producerId, transactionState: txn.phase })
  }
  return answer(KAFKA_ERRORS.NONE, request, found)
})

function passes(
  { stateFilters, producerIdFilters, durationFilter }: Request,
  pattern: Pattern | null,
  transactionalId: string,
  txn: ProducerTransaction,
  now: number,
): boolean {
  if (stateFilters.length > 0 && !stateFilters.includes(txn.phase)) return false
  if (producerIdFilters.length > 0 && !producerIdFilters.includes(txn.producerId)) return false
  if (durationFilter >= 0 && now - txn.startedAt <= durationFilter) return false
  return pattern === null || pattern.matches(transactionalId)
}

function answer(
  errorCode: number,
  { stateFilters }: Request,
  transactionStates: Response['transactionStates'],
): Response {
  const unknownStateFilters = stateFilters.filter((state) => !STATES.has(state))
  return { throttleTimeMs: 0, errorCode, unknownStateFilters, transactionStates }
}
