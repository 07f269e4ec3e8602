/** The parts that a broker is put together from, for faces that speak another language than its verbs. */
import type { CoreContext } from '../core/context.ts'
import type { Topics } from '../core/topics.ts'
import type { Engine } from '../log/contract.ts'
import type { GroupOffsets } from './group-offsets.ts'
import type { Groups } from './groups.ts'
import type { OffsetStore } from './offsets.ts'
import type { ProducerTransactions } from './producer-transactions.ts'
import type { Readers } from './readers.ts'

export interface BrokerParts {
  readonly engine: Engine
  readonly ctx: CoreContext
  readonly topics: Topics
  readonly readers: Readers
  readonly offsets: OffsetStore
  readonly groups: Groups
  readonly groupOffsets: GroupOffsets
  readonly transactions: ProducerTransactions
}
