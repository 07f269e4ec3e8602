/**
 * The control markers that end a transaction in its partitions, and which of them are still to be written. A marker is
 * small and must get in, since readers stand before the transaction that it ends: it may exceed retention as a handler's
 * own publish does, and where even that is used up it evicts. It waits only for what nobody can help: a journal that is
 * busy, a disk that is full. Partitions of topics that are gone are left out.
 */
import type { CoreContext } from '../core/context.ts'
import type { Partition } from '../core/partition.ts'
import type { Appended, Refusal } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import { commits, type ProducerIdentity, type ProducerTransaction } from './producer-transaction.ts'

/** There is one coordinator, and it never moves to another broker. */
export const COORDINATOR_EPOCH = 0

/** Makes the control batch of a marker; whoever composes the broker has it of the log's format. */
export type EncodeMarker = (
  marker: { readonly commit: boolean; readonly coordinatorEpoch: number },
  options: {
    readonly baseOffset: number
    readonly leaderEpoch: number
    readonly producerId: number
    readonly producerEpoch: number
    readonly timestamp: number
  },
) => Uint8Array

export class Markers {
  readonly #ctx: CoreContext
  readonly #encode: EncodeMarker
  readonly #txn: ProducerTransaction
  readonly #batch: Batch
  readonly #left: Set<Partition>
  #watched: Partition[] = []
  #watcher: (() => void) | undefined

  /** Of a transaction that is prepared. */
  constructor(ctx: CoreContext, encode: EncodeMarker, txn: ProducerTransaction) {
    this.#ctx = ctx
    this.#encode = encode
    this.#txn = txn
    this.#batch = this.#marker(txn)
    this.#left = new Set(partitionsOf(ctx, txn))
  }

  /** Writes all that are taken now, in the call. Whether none is left. */
  write(): boolean {
    this.stop()
    for (const partition of this.#left) {
      if (this.#isGone(partition) || this.#append(partition)) this.#left.delete(partition)
    }
    return this.#left.size === 0
  }

  /** A topic that has ended with its broker is still to be found. */
  #isGone({ topic }: Partition): boolean {
    return this.#ctx.topics.get(topic.name) !== topic
  }

  /** Whether it is in, or never can be. */
  #append(partition: Partition): boolean {
    const answer = appendTo(partition, this.#batch)
    if (typeof answer === 'object') return true
    if (answer === 'FENCED') return this.#appendFenced(partition)
    if (answer !== 'TOO_LARGE' && answer !== 'INVALID') return false
    const details = { topic: partition.topic.name, partition: partition.index, refusal: answer }
    this.#ctx.logger.error(details, 'a transaction cannot be ended in a partition')
    return true
  }

  /** Somebody wrote with a newer epoch than the coordinator knows. Whatever is open there must be ended all the same. */
  #appendFenced(partition: Partition): boolean {
    const { producerId } = this.#txn
    for (const { id, epoch } of partition.log.producers()) {
      if (id === producerId)
        return typeof appendTo(partition, this.#marker({ producerId, epoch })) === 'object'
    }
    return true
  }

  #marker({ producerId, epoch }: ProducerIdentity): Batch {
    const bytes = this.#encode(
      { commit: commits(this.#txn), coordinatorEpoch: COORDINATOR_EPOCH },
      {
        // The log says where it is.
        baseOffset: 0,
        leaderEpoch: 0,
        producerId,
        producerEpoch: epoch,
        timestamp: this.#ctx.clock.now(),
      },
    )
    const producer = { id: producerId, epoch, sequence: -1, transactional: true }
    return { count: 1, sizeBytes: bytes.length, columns: null, bytes, producer }
  }

  /** Calls back, until `stop`, when those that are left should be tried again. */
  whenRoom(callback: () => void): void {
    this.#watcher = callback
    this.#watched = [...this.#left]
    for (const { watchers } of this.#watched) watchers.add(callback)
  }

  stop(): void {
    if (this.#watcher === undefined) return
    for (const { watchers } of this.#watched) watchers.delete(this.#watcher)
    this.#watcher = undefined
  }
}

function appendTo(partition: Partition, batch: Batch): Appended | Refusal {
  const { log, flushes } = partition
  let answer = log.tryAppend(batch, 'exempt')
  if (answer === 'NO_ROOM') answer = log.tryAppend(batch, 'force')
  if (typeof answer === 'object' && answer.last >= log.marks.high) flushes.begin(true)
  return answer
}

/** Those that are still there. A topic of the same name that was made since is another one. */
function* partitionsOf({ topics }: CoreContext, { partitions }: ProducerTransaction): Iterable<Partition> {
  for (const [key, name] of Object.entries(partitions)) {
    const [topicId, index] = key.split('/') as [string, string]
    const topic = topics.get(name)
    const partition = topic?.id === topicId ? topic.partitions[Number(index)] : undefined
    if (partition !== undefined) yield partition
  }
}
