/**
 * The two loads. Producing: some connections, each with a few requests on their way, batches made before. Fetching: some
 * connections that each read a topic from its start to its end, over and over, one request at a time, as consumers do.
 * What was moved is counted by the answers, and checked: errors, offsets, counts, sums.
 */
import { BATCH_BYTES, type Template, walk } from './batches.ts'
import { fetch, produce, readResponse } from './built.ts'
import { type Connection, frameOf, setCorrelation } from './connection.ts'
import { endsOf, type Topic } from './topics.ts'

/** Both are spoken by Kafka 4, with names of topics rather than ids. */
const PRODUCE_VERSION = 11
const FETCH_VERSION = 12
const ALL = -1
const IN_FLIGHT = 5
/** Java's max.partition.fetch.bytes, fetch.max.bytes, fetch.max.wait.ms. */
const PARTITION_BYTES = 1_048_576
const FETCH_BYTES = 52_428_800
const WAIT_MS = 500
/** A record on its way may take its time, on a disk. */
const ROUND_TRIP_LIMIT_MS = 30_000

export interface Moved {
  readonly bytes: number
  readonly records: number
}

/** A request with a batch for every partition of the topic. */
function produceFrame({ name, partitions }: Topic, batch: Template): Buffer {
  return frameOf(produce, PRODUCE_VERSION, 0, {
    acks: ALL,
    timeoutMs: 30_000,
    topicData: [
      {
        name,
        partitionData: Array.from({ length: partitions }, (_, index) => ({ index, records: batch.bytes })),
      },
    ],
  })
}

/** Until `isOver`; then until all is answered. Throws where an answer is not what it should be. */
export async function produceLoad(
  connections: readonly Connection[],
  topic: Topic,
  batch: Template,
  isOver: (sentBytes: number) => boolean,
): Promise<Moved> {
  const frame = produceFrame(topic, batch)
  const requestBytes = batch.bytes.length * topic.partitions
  let sent = 0
  let answered = 0
  const one = (connection: Connection): Promise<void> => {
    // A frame must stay as it is until it was written, which it was when it is answered.
    const frames = Array.from({ length: IN_FLIGHT }, () => Buffer.from(frame))
    const lastBase = Array.from({ length: topic.partitions }, () => -1)
    let first = 0
    let next = 0
    return new Promise((resolve, reject) => {
      const send = (): void => {
        const each = frames[next % IN_FLIGHT] as Buffer
        setCorrelation(each, next++)
        sent += requestBytes
        connection.write(each)
      }
      const onFrame = (response: Uint8Array): void => {
        checkProduced(response, first++, lastBase)
        answered++
        if (!isOver(sent)) send()
        else if (first === next) resolve()
      }
      connection.listen((response) => guarded(() => onFrame(response), reject)).catch(reject)
      for (let i = 0; i < IN_FLIGHT; i++) send()
    })
  }
  await Promise.all(connections.map(one))
  return { bytes: answered * requestBytes, records: answered * topic.partitions * batch.records }
}

/** `lastBase`: the last base offset of each partition that this connection was told. */
function checkProduced(response: Uint8Array, correlationId: number, lastBase: number[]): void {
  const answer = readResponse(produce, PRODUCE_VERSION, Uint8Array.from(response))
  if (answer.correlationId !== correlationId) throw new Error('answers are out of order')
  const partitions = answer.body.responses[0]?.partitionResponses ?? []
  if (partitions.length !== lastBase.length) throw new Error('a partition is missing')
  for (const { index, errorCode, baseOffset } of partitions) {
    if (errorCode !== 0) throw new Error(`produce: error ${errorCode}`)
    if (baseOffset <= (lastBase[index] as number)) throw new Error('an offset was given twice')
    lastBase[index] = baseOffset
  }
}

function guarded(work: () => void, reject: (error: unknown) => void): void {
  try {
    work()
  } catch (error) {
    reject(error)
  }
}

/** Fills a topic, and checks that its partitions end where they must. */
export async function fill(
  connections: readonly Connection[],
  topic: Topic,
  batch: Template,
  bytes: number,
): Promise<Moved> {
  const moved = await produceLoad(connections, topic, batch, (sent) => sent >= bytes)
  const [connection] = connections
  const ends = await endsOf(connection as Connection, topic)
  const total = ends.reduce((sum, end) => sum + end, 0)
  if (total !== moved.records) throw new Error(`${total} records are there, and ${moved.records} were sent`)
  return moved
}

/** Until `isOver`: each connection reads all partitions to their ends and begins again. */
export async function fetchLoad(
  connections: readonly Connection[],
  topic: Topic,
  batch: Template,
  isOver: () => boolean,
): Promise<Moved> {
  const ends = await endsOf(connections[0] as Connection, topic)
  let bytes = 0
  let records = 0
  const one = (connection: Connection): Promise<void> => {
    const at = ends.map(() => 0)
    let correlationId = 0
    return new Promise((resolve, reject) => {
      const send = (): void => connection.write(fetchFrame(topic, at, ++correlationId))
      const onFrame = (frame: Uint8Array): void => {
        const got = walkFetched(frame, correlationId, at, batch)
        bytes += got.bytes
        records += got.records
        if (ends.every((end, i) => (at[i] as number) >= end)) at.fill(0)
        else if (got.records === 0) throw new Error('a fetch brought nothing, before the end')
        if (isOver()) resolve()
        else send()
      }
      connection.listen((frame) => guarded(() => onFrame(frame), reject)).catch(reject)
      send()
    })
  }
  await Promise.all(connections.map(one))
  return { bytes, records }
}

/** Checks a response, and moves `at` on, the offsets of the partitions. */
function walkFetched(frame: Uint8Array, correlationId: number, at: number[], batch: Template): Moved {
  const answer = readResponse(fetch, FETCH_VERSION, frame)
  if (answer.correlationId !== correlationId) throw new Error('answers are out of order')
  if (answer.body.errorCode !== 0) throw new Error(`fetch: error ${answer.body.errorCode}`)
  let bytes = 0
  let records = 0
  for (const { partitionIndex, errorCode, records: each } of answer.body.responses[0]?.partitions ?? []) {
    if (errorCode !== 0) throw new Error(`fetch: error ${errorCode}`)
    if (each === null) continue
    const walked = walk(each, at[partitionIndex] as number, batch)
    at[partitionIndex] = walked.next
    bytes += each.length
    records += walked.records
  }
  return { bytes, records }
}

function fetchFrame(
  { name }: Topic,
  at: readonly number[],
  correlationId: number,
  maxWaitMs: number = WAIT_MS,
): Buffer {
  return frameOf(fetch, FETCH_VERSION, correlationId, {
    maxWaitMs,
    minBytes: 1,
    maxBytes: FETCH_BYTES,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [
      {
        topic: name,
        partitions: at.map((fetchOffset, partition) => ({
          partition,
          fetchOffset,
          partitionMaxBytes: PARTITION_BYTES,
        })),
      },
    ],
    forgottenTopicsData: [],
    rackId: '',
  })
}

/**
 * Milliseconds from sending a record until a fetch that waited for it has it, one after the other: a producer and a
 * consumer, each with a connection of its own.
 */
export async function roundTrips(
  producer: Connection,
  consumer: Connection,
  topic: Topic,
  batch: Template,
  count: number,
): Promise<number[]> {
  if (batch.records !== 1 || batch.bytes.length > BATCH_BYTES) throw new Error('one small record')
  const request = produceFrame(topic, batch)
  const took: number[] = []
  const [end] = await endsOf(producer, topic)
  const first = end as number
  await new Promise<void>((resolve, reject) => {
    let sentAt = 0
    let arrived = false
    let acknowledged = false
    const start = (): void => {
      const next = first + took.length
      arrived = acknowledged = false
      consumer.write(fetchFrame(topic, [next], took.length, ROUND_TRIP_LIMIT_MS))
      // The fetch must be there before the record is.
      setTimeout(() => {
        sentAt = performance.now()
        producer.write(request)
      }, 1)
    }
    const done = (): void => {
      if (!arrived || !acknowledged) return
      if (took.length === count) resolve()
      else start()
    }
    const onAcknowledged = (frame: Uint8Array): void => {
      const { body } = readResponse(produce, PRODUCE_VERSION, Uint8Array.from(frame))
      const errorCode = body.responses[0]?.partitionResponses[0]?.errorCode
      if (errorCode !== 0) throw new Error(`produce: error ${errorCode}`)
      acknowledged = true
      done()
    }
    const onFetched = (frame: Uint8Array): void => {
      const elapsedMs = performance.now() - sentAt
      const { body } = readResponse(fetch, FETCH_VERSION, frame)
      const records = body.responses[0]?.partitions[0]?.records ?? Buffer.alloc(0)
      const next = first + took.length
      if (walk(records, next, batch).next !== next + 1) throw new Error('the record did not arrive')
      took.push(elapsedMs)
      arrived = true
      done()
    }
    producer.listen((frame) => guarded(() => onAcknowledged(frame), reject)).catch(reject)
    consumer.listen((frame) => guarded(() => onFetched(frame), reject)).catch(reject)
    start()
  })
  return took
}
