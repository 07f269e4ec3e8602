/**
 * Batches that come as bytes, from a protocol: appended whole, in the partition's line like any publisher where there is
 * no room. Nothing of them is decoded, so neither the schema nor the ids of the topic are asked: what comes this way is
 * deduplicated by the sequences of its producer, and by nothing else.
 *
 *   appended, refused    at once, where nobody waits and there is room, or no room is needed to say so
 *   promise              else: taken when it is its turn, or given up in time, and then nothing of it was appended
 *
 * A producer numbers its batches before it knows how the ones before ended. So when one of them gives up, those of the
 * same producer behind it in line give up with it: the log does not know a new producer, and would take the later one
 * first.
 */
import type { Appended, Refusal } from '../log/contract.ts'
import type { Batch } from '../model/batch.ts'
import { abortedError, OdradekError } from '../model/errors.ts'
import type { CoreContext } from './context.ts'
import type { Partition } from './partition.ts'
import { whenRoom } from './waiting.ts'

export interface BytesWait {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Whether somebody is told how the batch ends. Otherwise a flush that fails is an `error` event. */
  readonly awaited: boolean
  /**
   * Called right before each attempt, for what depends on its moment. Anything but 0 keeps the batch from being appended,
   * and is the answer.
   */
  readonly before: (bytes: Uint8Array) => number
}

/** A number: that of `before`. */
export type BytesAnswer = Appended | Refusal | number

/**
 * Appends one batch whose view is `bytes`. Resolves when it is appended, which is before it is durable.
 * @throws OdradekError what `whenRoom` does, by the promise
 */
export function appendBytes(
  ctx: CoreContext,
  partition: Partition,
  batch: Batch,
  wait: BytesWait,
): BytesAnswer | Promise<BytesAnswer> {
  if (partition.line.length === 0) {
    let answer = append(partition, batch, wait)
    if (answer === 'NO_ROOM' && partition.fits(batch, null)) answer = append(partition, batch, wait)
    if (answer !== 'NO_ROOM') return answer
  }
  return appendInLine(ctx, partition, batch, wait)
}

function append(partition: Partition, batch: Batch, { awaited, before }: BytesWait): BytesAnswer {
  const code = before(batch.bytes as Uint8Array)
  if (code !== 0) return code
  const answer = partition.append(batch, null)
  if (typeof answer === 'string') return answer
  const { topic, log } = partition
  if (answer.duplicate) {
    topic.duplicates += batch.count
    return answer
  }
  topic.published += batch.count
  topic.publishedBytes += batch.sizeBytes
  if (answer.last >= log.marks.high) partition.flushes.begin(awaited)
  return answer
}

/** Who of one producer waits in one line, in their order; and how to send them away. */
type Queue = Map<object, (error: unknown) => void>

const queues = new WeakMap<Partition, Map<number, Queue>>()

async function appendInLine(
  ctx: CoreContext,
  partition: Partition,
  batch: Batch,
  wait: BytesWait,
): Promise<BytesAnswer> {
  if (wait.signal.aborted) throw abortedError(wait.signal, 'produce')
  // What it came in may be used again.
  const kept: Batch = { ...batch, bytes: (batch.bytes as Uint8Array).slice() }
  const controller = new AbortController()
  const leave = (): void => controller.abort(wait.signal.reason)
  wait.signal.addEventListener('abort', leave, { once: true })
  const queue = queueOf(partition, batch)
  queue?.set(kept, (error) => controller.abort(error))
  try {
    const options = { exempt: null, signal: controller.signal, timeoutMs: wait.timeoutMs, what: 'produce' }
    return await whenRoom(ctx, [{ partition, batch: kept }], options, () => {
      queue?.delete(kept)
      return append(partition, kept, wait)
    })
  } catch (error) {
    const { reason } = controller.signal
    const why = reason instanceof OdradekError ? reason : error
    if (queue !== undefined) giveUpWith(kept, queue, why)
    throw why
  } finally {
    wait.signal.removeEventListener('abort', leave)
    if (queue !== undefined) forget(partition, batch, queue)
  }
}

/** `undefined` where there is nobody whose batches could be told to be one's own. */
function queueOf(partition: Partition, { producer }: Batch): Queue | undefined {
  if (producer === null) return undefined
  let ofPartition = queues.get(partition)
  if (ofPartition === undefined) {
    ofPartition = new Map()
    queues.set(partition, ofPartition)
  }
  let queue = ofPartition.get(producer.id)
  if (queue === undefined) {
    queue = new Map()
    ofPartition.set(producer.id, queue)
  }
  return queue
}

function forget(partition: Partition, { producer }: Batch, queue: Queue): void {
  const ofPartition = queues.get(partition)
  const id = producer?.id as number
  if (queue.size === 0 && ofPartition?.get(id) === queue) ofPartition.delete(id)
}

/** It was not appended; those that came after it are not either. */
function giveUpWith(batch: Batch, queue: Queue, error: unknown): void {
  let behind = false
  for (const [each, giveUp] of [...queue]) {
    if (each === batch) behind = queue.delete(each)
    else if (behind) giveUp(error)
  }
}
