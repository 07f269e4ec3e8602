/**
 * What handlers translate to: the parts of one broker, and what the protocol needs beside them. There is one world for
 * a broker, however many listeners and virtual nodes it has; records, groups and offsets are the broker's own.
 */
import type { Broker } from '../broker.ts'
import type { BrokerParts } from '../coordinator/broker-parts.ts'
import { ProducerIds } from '../coordinator/producer-ids.ts'
import type { Cluster } from './cluster.ts'

export interface WorldOptions {
  /** Whether Metadata creates topics that it is asked for, where the client lets it. Default true. */
  readonly autoCreateTopics: boolean
  /** Partitions of a topic that says nothing of them. */
  readonly defaultPartitions: number
}

export class World {
  readonly broker: Broker
  readonly parts: BrokerParts
  readonly cluster: Cluster
  readonly options: WorldOptions
  readonly producerIds: ProducerIds

  constructor(broker: Broker, cluster: Cluster, options: WorldOptions) {
    this.broker = broker
    this.parts = broker.parts
    this.cluster = cluster
    this.options = options
    this.producerIds = new ProducerIds(this.parts.engine.meta)
  }
}
