/**
 * The clients of the soak test, which do what clients do over and over, and among it what they should not: producers,
 * members of a group that come and go or just fall silent, transactions that are committed, aborted or left open, and
 * connections that break off in the middle of a request.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { batchOf, type Template } from '../batches.ts'
import { crc32c, fetch, metadata, produce } from '../built.ts'
import { Connection, frameOf } from '../connection.ts'
import { produceLoad } from '../loads.ts'
import type { Topic } from '../topics.ts'
import { addPartitionsToTxn, endTxn, initProducerId } from './built.ts'

/** What the clients of a run share. */
export interface Ground {
  readonly port: number
  readonly topic: Topic
  /** All that is in it. */
  readonly batch: Template
  /** For transactions alone. */
  readonly ledger: Topic
  /** Reproducible: from 0 up to, not including, `below`. */
  random(below: number): number
  readonly tally: Tally
}

export interface Tally {
  produced: number
  fetched: number
  joins: number
  committed: number
  aborted: number
  abandoned: number
  brokenOff: number
}

const TRANSACTION_TIMEOUT_MS = 10_000
const PRODUCES = 50

/** Produces for a while, by a connection that stays or by one of its own. */
export function producer(ground: Ground): () => Promise<void> {
  let kept: Connection | undefined
  return async () => {
    kept ??= await Connection.open(ground.port)
    let left = PRODUCES
    const moved = await produceLoad([kept], ground.topic, ground.batch, () => left-- <= 0)
    ground.tally.produced += moved.records
    if (ground.random(4) > 0) return
    kept.close()
    kept = undefined
  }
}

/** Breaks off: with half a request, with requests whose answers it never reads, with a fetch that waits, or with nothing. */
export function dropper(ground: Ground): () => Promise<void> {
  const { topic } = ground
  const waiting = frameOf(fetch, 12, 1, {
    maxWaitMs: 30_000,
    minBytes: 1_000_000_000,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: 0,
    topics: [
      { topic: topic.name, partitions: [{ partition: 0, fetchOffset: 1e15, partitionMaxBytes: 1_000 }] },
    ],
    forgottenTopicsData: [],
    rackId: '',
  })
  const asking = frameOf(metadata, 9, 1, { topics: null, allowAutoTopicCreation: false })
  return async () => {
    const connection = await Connection.open(ground.port)
    switch (ground.random(4)) {
      case 0:
        connection.write(asking.subarray(0, 1 + ground.random(asking.length - 1)))
        break
      case 1:
        for (let i = 0; i < 20; i++) connection.write(asking)
        break
      case 2:
        connection.write(waiting)
        break
      default:
    }
    await sleep(ground.random(20))
    connection.close()
    ground.tally.brokenOff++
  }
}

/** A transaction of a few batches: committed, aborted, or left open by a client that is gone. */
export function transactor(ground: Ground, transactionalId: string): () => Promise<void> {
  const { ledger, tally } = ground
  let connection: Connection | undefined
  let producerId = -1
  let epoch = -1
  let sequences: number[] = []
  const begin = async (): Promise<Connection> => {
    const opened = await Connection.open(ground.port)
    const body = {
      transactionalId,
      transactionTimeoutMs: TRANSACTION_TIMEOUT_MS,
      producerId: -1,
      producerEpoch: -1,
    }
    // What was left open is aborted first, and then this is answered.
    for (;;) {
      const answer = await opened.ask(initProducerId, 3, body)
      if (answer.errorCode === 0) {
        producerId = answer.producerId
        epoch = answer.producerEpoch
        sequences = Array.from({ length: ledger.partitions }, () => 0)
        return opened
      }
      if (answer.errorCode !== CONCURRENT_TRANSACTIONS) throw new Error(`init: error ${answer.errorCode}`)
      await sleep(20)
    }
  }
  return async () => {
    connection ??= await begin()
    const partitions = Array.from({ length: ledger.partitions }, (_, i) => i)
    const who = { transactionalId, producerId, producerEpoch: epoch }
    await retried(async () => {
      const added = await (connection as Connection).ask(addPartitionsToTxn, 3, {
        v3AndBelowTransactionalId: transactionalId,
        v3AndBelowProducerId: producerId,
        v3AndBelowProducerEpoch: epoch,
        v3AndBelowTopics: [{ name: ledger.name, partitions }],
      })
      return Math.max(
        ...added.resultsByTopicV3AndBelow.flatMap(({ resultsByPartition }) =>
          resultsByPartition.map(({ partitionErrorCode }) => partitionErrorCode),
        ),
      )
    })
    for (let i = 0; i < 3; i++) {
      const partition = ground.random(ledger.partitions)
      const batch = transactional(producerId, epoch, sequences[partition] as number)
      sequences[partition] = (sequences[partition] as number) + batch.records
      await send(connection, ledger, partition, batch, transactionalId)
    }
    if (ground.random(10) === 0) {
      connection.close()
      connection = undefined
      tally.abandoned++
      return
    }
    const committed = ground.random(3) > 0
    await retried(async () => {
      const { errorCode } = await (connection as Connection).ask(endTxn, 3, { ...who, committed })
      return errorCode
    })
    if (committed) tally.committed++
    else tally.aborted++
  }
}

const CONCURRENT_TRANSACTIONS = 51

/** Again for as long as the transaction before is not quite over. */
async function retried(work: () => Promise<number>): Promise<void> {
  for (;;) {
    const errorCode = await work()
    if (errorCode === 0) return
    if (errorCode !== CONCURRENT_TRANSACTIONS) throw new Error(`a transaction: error ${errorCode}`)
    await sleep(5)
  }
}

const TRANSACTIONAL = 0x10

function transactional(producerId: number, epoch: number, sequence: number): Template {
  const batch = batchOf([Buffer.alloc(200), Buffer.alloc(200)], Date.now())
  const { bytes } = batch
  bytes.writeInt16BE(TRANSACTIONAL, 21)
  bytes.writeBigInt64BE(BigInt(producerId), 43)
  bytes.writeInt16BE(epoch, 51)
  bytes.writeInt32BE(sequence, 53)
  const crc = crc32c(bytes.subarray(21)) >>> 0
  bytes.writeUInt32BE(crc, 17)
  return { ...batch, crc }
}

async function send(
  connection: Connection,
  { name }: Topic,
  index: number,
  { bytes }: Template,
  transactionalId: string,
): Promise<void> {
  const { responses } = await connection.ask(produce, 11, {
    transactionalId,
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{ name, partitionData: [{ index, records: bytes }] }],
  })
  const errorCode = responses[0]?.partitionResponses[0]?.errorCode
  if (errorCode !== 0) throw new Error(`a transaction's batch: error ${errorCode}`)
}
