/**
 * What handlers translate to: the parts of one broker, and what the protocol needs beside them. There is one world for
 * a broker, however many listeners and virtual nodes it has; records, groups and offsets are the broker's own.
 */
import type { Broker } from '../broker.ts'
import type { BrokerParts } from '../coordinator/broker-parts.ts'
import type { GroupLimits } from '../coordinator/classic-requests.ts'
import type { ProducerTransactions } from '../coordinator/producer-transactions.ts'
import type { Partition } from '../core/partition.ts'
import { noCompression } from '../log/format/compression.ts'
import { crc32c } from '../log/format/crc32c.ts'
import type { ProducerInfo } from '../model/batch.ts'
import { Bounds, type BoundsOptions, DEFAULT_BOUNDS } from './bounds.ts'
import type { Cluster } from './cluster.ts'
import { FetchSessions } from './fetch-sessions.ts'
import type { Codecs } from './produced-batch.ts'
import { TopicConfigs } from './topic-configs.ts'
import { batchAdmission } from './transactions.ts'

export interface WorldOptions {
  /** Whether Metadata creates topics that it is asked for, where the client lets it. Default true. */
  readonly autoCreateTopics: boolean
  /** Partitions of a topic that says nothing of them. */
  readonly defaultPartitions: number
  /** Default: Kafka's, without the initial delay. */
  readonly groups?: Partial<GroupLimits>
  /** What clients may make the broker keep. Default: those of a server. */
  readonly bounds?: BoundsOptions
}

/** Whether a batch of a transaction may go to a partition now: `NONE`, or the error code. Asked in the run that appends it. */
export type VerifyTransaction = (
  transactionalId: string,
  producer: ProducerInfo,
  partition: Partition,
  version: number,
) => number

export class World {
  readonly broker: Broker
  readonly parts: BrokerParts
  readonly cluster: Cluster
  readonly options: WorldOptions
  readonly configs: TopicConfigs
  readonly transactions: ProducerTransactions
  readonly fetchSessions: FetchSessions
  readonly bounds: Bounds
  readonly codecs: Codecs
  readonly verifyTransaction: VerifyTransaction

  constructor(broker: Broker, cluster: Cluster, options: WorldOptions) {
    this.broker = broker
    this.parts = broker.parts
    this.cluster = cluster
    this.options = options
    this.parts.groups.configure(options.groups ?? {})
    this.configs = new TopicConfigs(this.parts)
    this.bounds = new Bounds(this.parts, options.bounds ?? DEFAULT_BOUNDS)
    this.fetchSessions = new FetchSessions(this.parts.ctx.clock, this.parts.ctx.random)
    const { codecs } = this.parts.engine
    this.codecs = {
      crc32c: codecs?.crc32c ?? crc32c,
      compression: codecs?.compression ?? noCompression,
    }
    this.transactions = this.parts.transactions
    this.verifyTransaction = batchAdmission(this.transactions)
  }
}
