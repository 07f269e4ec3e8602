/**
 * A transactional producer as clients are, of transactions v1 (adds its partitions and groups, keeps its epoch) or v2
 * (KIP-890: the first batch adds its partition, every end raises the epoch); and what is to be read of transactions.
 */

import { decodeMarker } from '../../src/log/format/control.ts'
import { readHeader } from '../../src/log/format/record-batch.ts'
import type { RequestInputOf, ResponseOf } from '../../src/wire/api.ts'
import { kafkaErrorName } from '../../src/wire/errors.ts'
import { initProducerId } from '../../src/wire/messages/22-init-producer-id.ts'
import { addPartitionsToTxn } from '../../src/wire/messages/24-add-partitions-to-txn.ts'
import { addOffsetsToTxn } from '../../src/wire/messages/25-add-offsets-to-txn.ts'
import { endTxn } from '../../src/wire/messages/26-end-txn.ts'
import { txnOffsetCommit } from '../../src/wire/messages/28-txn-offset-commit.ts'
import type { Sender } from './kafka.ts'
import type { DataWorld } from './kafka-data.ts'
import { by, positionsOf, type ReadRecord, recordsOf } from './record-batches.ts'

export type Protocol = 'v1' | 'v2'

interface Versions {
  readonly produce: number
  readonly addPartitions: number
  readonly addOffsets: number
  readonly end: number
  readonly commitOffsets: number
}

const VERSIONS: { readonly [protocol in Protocol]: Versions } = {
  v1: { produce: 11, addPartitions: 3, addOffsets: 3, end: 4, commitOffsets: 4 },
  v2: { produce: 12, addPartitions: 5, addOffsets: 4, end: 5, commitOffsets: 5 },
}

export interface ProducerOptions {
  readonly protocol?: Protocol
  readonly timeoutMs?: number
  /** Index of the virtual node that it asks. */
  readonly sender?: Sender
  readonly versions?: Partial<Versions>
}

/** Answers are names of errors, `NONE` for none. */
export class TransactionalProducer {
  readonly id: string
  producerId: number = -1
  epoch: number = -1
  readonly protocol: Protocol
  readonly versions: Versions
  readonly #world: DataWorld
  readonly #timeoutMs: number
  readonly #sender: Sender
  /** By `topic/partition`. */
  readonly #sequences = new Map<string, number>()
  readonly #added = new Set<string>()

  constructor(world: DataWorld, id: string, options: ProducerOptions = {}) {
    const { protocol = 'v1', timeoutMs = 60_000, sender = {}, versions = {} } = options
    this.#world = world
    this.id = id
    this.protocol = protocol
    this.versions = { ...VERSIONS[protocol], ...versions }
    this.#timeoutMs = timeoutMs
    this.#sender = sender
  }

  async init(given: { producerId?: number; producerEpoch?: number } = {}, version = 5): Promise<string> {
    const answer = await this.#world.send(
      initProducerId,
      version,
      { transactionalId: this.id, transactionTimeoutMs: this.#timeoutMs, ...given },
      this.#sender,
    )
    if (answer.errorCode === 0) this.#identify(answer.producerId, answer.producerEpoch)
    return kafkaErrorName(answer.errorCode)
  }

  #identify(producerId: number, epoch: number): void {
    if (producerId !== this.producerId || epoch !== this.epoch) this.#sequences.clear()
    this.producerId = producerId
    this.epoch = epoch
  }

  get claim(): { producerId: number; producerEpoch: number } {
    return { producerId: this.producerId, producerEpoch: this.epoch }
  }

  /** Adds the partition as its protocol does, and produces to it. */
  async send(topic: string, values: readonly string[], partition = 0): Promise<string> {
    if (this.protocol === 'v1' && !this.#added.has(`${topic}/${partition}`)) {
      const added = await this.add(topic, partition)
      if (added !== 'NONE') return added
    }
    return this.produce(topic, values, partition)
  }

  async add(topic: string, partition = 0): Promise<string> {
    const { addPartitions: version } = this.versions
    const topics = [{ name: topic, partitions: [partition] }]
    const body =
      version < 4
        ? {
            v3AndBelowTransactionalId: this.id,
            v3AndBelowProducerId: this.producerId,
            v3AndBelowProducerEpoch: this.epoch,
            v3AndBelowTopics: topics,
          }
        : { transactions: [{ transactionalId: this.id, ...this.claim, verifyOnly: false, topics }] }
    const answer = await this.#world.send(addPartitionsToTxn, version, body, this.#sender)
    const results =
      version < 4 ? answer.resultsByTopicV3AndBelow : answer.resultsByTransaction[0]?.topicResults
    const code = results?.[0]?.resultsByPartition[0]?.partitionErrorCode as number
    if (code === 0) this.#added.add(`${topic}/${partition}`)
    return kafkaErrorName(code)
  }

  async produce(topic: string, values: readonly string[], partition = 0): Promise<string> {
    const where = `${topic}/${partition}`
    const sequence = this.#sequences.get(where) ?? 0
    const { errorCode } = await this.#world.produce(
      { values, producer: by(this.producerId, sequence, this.epoch, true) },
      { topic, partition, version: this.versions.produce, transactionalId: this.id },
    )
    if (errorCode === 0) this.#sequences.set(where, sequence + values.length)
    return kafkaErrorName(errorCode)
  }

  async addOffsets(groupId: string): Promise<string> {
    const body = { transactionalId: this.id, ...this.claim, groupId }
    const answer = await this.#world.send(addOffsetsToTxn, this.versions.addOffsets, body, this.#sender)
    return kafkaErrorName(answer.errorCode)
  }

  async commitOffset(
    groupId: string,
    topic: string,
    committedOffset: number,
    extra: Partial<RequestInputOf<typeof txnOffsetCommit>> & { partition?: number } = {},
  ): Promise<string> {
    const { partition: partitionIndex = 0, ...rest } = extra
    const answer = await this.#world.send(
      txnOffsetCommit,
      this.versions.commitOffsets,
      {
        transactionalId: this.id,
        ...this.claim,
        groupId,
        topics: [{ name: topic, partitions: [{ partitionIndex, committedOffset, committedMetadata: null }] }],
        ...rest,
      },
      this.#sender,
    )
    return kafkaErrorName(answer.topics[0]?.partitions[0]?.errorCode as number)
  }

  /** Adds the group as its protocol does, and commits an offset of it. */
  async sendOffset(groupId: string, topic: string, offset: number, partition = 0): Promise<string> {
    if (this.protocol === 'v1') {
      const added = await this.addOffsets(groupId)
      if (added !== 'NONE') return added
    }
    return this.commitOffset(groupId, topic, offset, { partition })
  }

  commit(): Promise<string> {
    return this.end(true)
  }

  abort(): Promise<string> {
    return this.end(false)
  }

  async end(committed: boolean, claim = this.claim, version = this.versions.end): Promise<string> {
    const answer = await this.ended(committed, claim, version)
    if (answer.errorCode === 0) {
      this.#added.clear()
      if (version >= 5) this.#identify(answer.producerId, answer.producerEpoch)
    }
    return kafkaErrorName(answer.errorCode)
  }

  ended(
    committed: boolean,
    claim = this.claim,
    version = this.versions.end,
  ): Promise<ResponseOf<typeof endTxn>> {
    return this.#world.send(endTxn, version, { transactionalId: this.id, ...claim, committed }, this.#sender)
  }
}

/** What a read_committed consumer makes of a partition from its start: the values, in order. */
export async function committedValues(world: DataWorld, topic: string, partition = 0): Promise<string[]> {
  const values: string[] = []
  for (let offset = 0; ; ) {
    const fetched = await world.fetch({ topic, partition, offset, isolationLevel: 1 })
    const bytes = fetched.records as Uint8Array
    const records = withoutAborted(bytes, fetched.abortedTransactions ?? [])
    for (const record of records) if (record.offset >= offset) values.push(record.value as string)
    const next = nextOf(bytes)
    if (next <= offset) return values
    offset = next
  }
}

function nextOf(bytes: Uint8Array): number {
  const last = positionsOf(bytes).at(-1)
  if (last === undefined) return -1
  const { baseOffset, lastOffsetDelta } = readHeader(bytes, last)
  return baseOffset + lastOffsetDelta + 1
}

/** As Kafka's consumer does it: aborted producers from their first offset on, until their marker. */
function withoutAborted(
  bytes: Uint8Array,
  aborted: readonly { readonly producerId: number; readonly firstOffset: number }[],
): ReadRecord[] {
  const ahead = [...aborted]
  const skipped = new Set<number>()
  const records: ReadRecord[] = []
  for (const at of positionsOf(bytes)) {
    const { baseOffset, lastOffsetDelta, producerId, transactional, control, sizeBytes } = readHeader(
      bytes,
      at,
    )
    while (ahead[0] !== undefined && ahead[0].firstOffset <= baseOffset + lastOffsetDelta) {
      skipped.add((ahead.shift() as { producerId: number }).producerId)
    }
    if (control) {
      if (decodeMarker(bytes, at)?.commit === false) skipped.delete(producerId)
    } else if (!transactional || !skipped.has(producerId)) {
      records.push(...recordsOf(bytes.subarray(at, at + sizeBytes)))
    }
  }
  return records
}

/** Markers of a partition, as `commit 0/1`: whether, producer and epoch. */
export async function markersOf(world: DataWorld, topic: string, partition = 0): Promise<string[]> {
  const { records } = await world.fetch({ topic, partition })
  const bytes = records as Uint8Array
  return positionsOf(bytes)
    .filter((at) => readHeader(bytes, at).control)
    .map((at) => {
      const { producerId, producerEpoch } = readHeader(bytes, at)
      return `${decodeMarker(bytes, at)?.commit ? 'commit' : 'abort'} ${producerId}/${producerEpoch}`
    })
}
