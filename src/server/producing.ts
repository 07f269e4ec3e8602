/**
 * A batch on its way from a Produce request into its log: what its topic makes of it, the append, and the wait until it
 * is durable. What needs no waiting is done before this answers, so batches reach a log in the order of their requests.
 *
 *   checked ─► compression of the topic ─► appended, or in line for room ─► durable ─► result
 *
 * Acknowledgements: `all` and 1 are one here. A single node has nobody to be ahead of, so a batch is acknowledged when
 * the engine calls it durable; 0 does not hear of it.
 */
import { appendBytes, type BytesAnswer } from '../core/append-bytes.ts'
import type { Partition } from '../core/partition.ts'
import { type Appended, type PartitionLog, type Refusal, refusalError } from '../log/contract.ts'
import { compressionNumber } from '../log/format/compression.ts'
import type { ProducerInfo } from '../model/batch.ts'
import { messageOf } from '../model/errors.ts'
import { KAFKA_ERRORS } from '../wire/errors.ts'
import {
  type Codecs,
  compressionOf,
  countOf,
  type Fault,
  faultOf,
  faultOfKeys,
  faultWithin,
  hasAppendTime,
  producerOf,
  recompressed,
  setAppendTime,
} from './produced-batch.ts'
import { durabilityError, storageError } from './storage-errors.ts'
import type { AppendConfigs } from './topic-configs.ts'
import type { World } from './world.ts'

/** How one partition of a request ended. */
export interface Produced {
  readonly errorCode: number
  readonly errorMessage: string | null
  readonly baseOffset: number
  /** −1 where records keep their own time. */
  readonly logAppendTimeMs: number
  /** Which record is at fault, −1 for none in particular. */
  readonly recordIndex: number
}

export interface ProduceCall {
  readonly version: number
  readonly acks: number
  readonly timeoutMs: number
  readonly transactionalId: string | null
  readonly signal: AbortSignal
}

type Awaitable<T> = T | Promise<T>

export function produceTo(
  world: World,
  partition: Partition,
  bytes: Uint8Array | null,
  call: ProduceCall,
): Awaitable<Produced> {
  const rules = world.configs.of(partition.topic.id)
  const fault = faultOf(bytes, call.version, rules, world.parts.ctx.clock.now())
  if (fault !== null) return refused(fault)
  const batch = bytes as Uint8Array
  const ready = codecsReady(world.codecs, partition, rules, batch)
  if (ready === undefined) return produceReady(world, partition, batch, call, rules)
  return ready.then(() => produceReady(world, partition, batch, call, rules))
}

/** What has to be looked for first, once per process; who comes meanwhile stands behind. */
function codecsReady(
  { compression }: Codecs,
  partition: Partition,
  rules: AppendConfigs,
  bytes: Uint8Array,
): Promise<unknown> | undefined {
  const type = compressionOf(bytes)
  const target = codecOf(rules, type)
  const opens = type !== target || partition.topic.settings.cleanup === 'compact'
  if (!opens || compression.ready === undefined) return undefined
  const waits = [compression.ready(type), compression.ready(target)].filter((wait) => wait !== undefined)
  return waits.length === 0 ? undefined : Promise.all(waits)
}

function produceReady(
  world: World,
  partition: Partition,
  bytes: Uint8Array,
  call: ProduceCall,
  rules: AppendConfigs,
): Awaitable<Produced> {
  try {
    const made = madeFor(world.codecs, partition, bytes, rules)
    if (!(made instanceof Uint8Array)) return refused(made)
    return append(world, partition, made, call, rules)
  } catch (error) {
    return failed(error)
  }
}

/** The batch as its topic wants it, with a sum that is right, or why it does not. @throws OdradekError UNSUPPORTED */
function madeFor(
  codecs: Codecs,
  partition: Partition,
  bytes: Uint8Array,
  rules: AppendConfigs,
): Uint8Array | Fault {
  const compacts = partition.topic.settings.cleanup === 'compact'
  const type = compressionOf(bytes)
  const target = codecOf(rules, type)
  const repacks = target !== type
  const appendTime = rules.timestampType === 'LogAppendTime'
  if (!compacts && !repacks && !appendTime && !hasAppendTime(bytes)) return bytes
  // Who changes a batch sums it anew, so it must have been right before.
  const fault = faultWithin(bytes, codecs.crc32c) ?? (compacts ? faultOfKeys(bytes, codecs) : null)
  if (fault !== null) return fault
  const made = repacks ? recompressed(bytes, target, codecs) : bytes
  if (!appendTime && hasAppendTime(made)) setAppendTime(made, null, codecs.crc32c)
  return made
}

/** The codec that a batch is stored with, by its number. */
function codecOf({ compressionType }: AppendConfigs, type: number): number {
  return compressionType === 'producer' ? type : compressionNumber(compressionType)
}

function append(
  world: World,
  partition: Partition,
  bytes: Uint8Array,
  call: ProduceCall,
  { timestampType }: AppendConfigs,
): Awaitable<Produced> {
  const { ctx } = world.parts
  const { timeoutMs, signal, acks } = call
  const producer = producerOf(bytes)
  const batch = { count: countOf(bytes), sizeBytes: bytes.length, columns: null, bytes, producer }
  let logAppendTimeMs = -1
  const before = (each: Uint8Array): number => {
    const code = verified(world, partition, producer, call)
    if (code !== KAFKA_ERRORS.NONE || timestampType !== 'LogAppendTime') return code
    logAppendTimeMs = ctx.clock.now()
    setAppendTime(each, logAppendTimeMs, world.codecs.crc32c)
    return KAFKA_ERRORS.NONE
  }
  const end = (answer: BytesAnswer): Awaitable<Produced> => {
    if (typeof answer === 'number') return refused({ errorCode: answer, errorMessage: null })
    if (typeof answer === 'string')
      return refused(faultOfRefusal(world.codecs, partition, batch.bytes, answer))
    return accepted(partition, answer, acks, answer.duplicate ? -1 : logAppendTimeMs)
  }
  const answer = appendBytes(ctx, partition, batch, { timeoutMs, signal, awaited: acks !== 0, before })
  return answer instanceof Promise ? answer.then(end).catch((error: unknown) => failed(error)) : end(answer)
}

/** Whether the transaction that the batch is of, if it is of one, goes on in this partition. */
function verified(
  world: World,
  partition: Partition,
  producer: ProducerInfo | null,
  { transactionalId, version }: ProduceCall,
): number {
  if (producer === null || !producer.transactional) return KAFKA_ERRORS.NONE
  if (transactionalId === null) return KAFKA_ERRORS.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
  return world.verifyTransaction(transactionalId, producer, partition, version)
}

/** Also a duplicate waits: what it repeats may not be durable yet. */
function accepted(
  { log }: Partition,
  { base, last }: Appended,
  acks: number,
  logAppendTimeMs: number,
): Awaitable<Produced> {
  const produced: Produced = {
    errorCode: KAFKA_ERRORS.NONE,
    errorMessage: null,
    baseOffset: base,
    logAppendTimeMs,
    recordIndex: -1,
  }
  if (acks === 0 || last < log.marks.high) return produced
  return log.durable(last).then(
    () => produced,
    (error: unknown) => failed(error, durabilityError(error)),
  )
}

function faultOfRefusal(codecs: Codecs, partition: Partition, bytes: Uint8Array, refusal: Refusal): Fault {
  const { topic, index } = partition
  const { log } = partition
  const where = `"${topic.name}" partition ${index}`
  switch (refusal) {
    case 'FENCED':
      return {
        errorCode: KAFKA_ERRORS.INVALID_PRODUCER_EPOCH,
        errorMessage: `a newer instance of this producer has written to ${where}`,
      }
    case 'OUT_OF_ORDER':
      return {
        errorCode: KAFKA_ERRORS.OUT_OF_ORDER_SEQUENCE_NUMBER,
        errorMessage: `the sequence does not follow the last one of this producer in ${where}`,
      }
    case 'INVALID':
      return faultWithin(bytes, codecs.crc32c) ?? faultOfState(log, bytes, where)
    default: {
      const error = refusalError(refusal, where)
      return { errorCode: storageError(error), errorMessage: error.message }
    }
  }
}

function faultOfState(log: PartitionLog, bytes: Uint8Array, where: string): Fault {
  const producer = producerOf(bytes)
  for (const { id, openSince } of log.producers()) {
    if (id !== producer?.id || openSince < 0 || producer.transactional) continue
    const errorMessage = `this producer has an open transaction in ${where}, and the batch is not of it`
    return { errorCode: KAFKA_ERRORS.INVALID_TXN_STATE, errorMessage }
  }
  return {
    errorCode: KAFKA_ERRORS.INVALID_RECORD,
    errorMessage: `${countOf(bytes)} records in ${bytes.length} bytes`,
  }
}

function refused({ errorCode, errorMessage, recordIndex = -1 }: Fault): Produced {
  return { errorCode, errorMessage, baseOffset: -1, logAppendTimeMs: -1, recordIndex }
}

function failed(error: unknown, errorCode: number = storageError(error)): Produced {
  return refused({ errorCode, errorMessage: messageOf(error) })
}
