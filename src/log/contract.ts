/**
 * What an engine gives the core: logs, and a small store beside them. Every engine passes one conformance
 * suite (`logConformance` in odradek/testing); what it cannot do it refuses with UNSUPPORTED.
 *
 *   offsets   0 ──────── start ─────────── stable ────── high ────── end
 *                        │ oldest kept     │ below any   │ durable   │ next to be written
 *                        │                 │ open txn    │           │
 *
 * `start ≤ stable ≤ high ≤ end`, none ever goes back. Readers of `committed` isolation stop at `stable`,
 * the others at `high`. In memory `high = end`, since a record is accepted once it is in the log.
 *
 * Concurrency: a log is used from one thread. `tryAppendOne`, `tryAppend`, `peek`, `hasRoom` and `gate`
 * are synchronous, call nobody but `onAdvance`'s wake, and are the critical section of a publish.
 */
import type { Batch, Slice } from '../model/batch.ts'
import type { Clock } from '../model/clock.ts'
import type { ErrorCode } from '../model/errors.ts'
import { OdradekError } from '../model/errors.ts'
import type { Key, RecordHeaders } from '../model/record.ts'
import type { ValueCodec } from '../model/value-codec.ts'

export interface Marks {
  start: number
  stable: number
  high: number
  end: number
  /** Leader epoch: grows when anything was lost at open. */
  epoch: number
}

/** Isolation of a read: `committed` stops at `stable` and hides aborted records, `uncommitted` stops at `high`. */
export type Isolation = 'committed' | 'uncommitted'

/**
 * `tryAppendOne`'s answers that are no offset, all below 0: there is no room now; the log is closed; it stopped
 * accepting after a failed flush; the disk is full.
 *
 * No room means that the log is full and the gate holds its oldest record, or that what was accepted before is
 * not durable yet and there may be no more of that. Who was refused for the latter is woken (`onAdvance`) when it
 * may ask again.
 */
export const NO_ROOM = -1
export const LOG_CLOSED = -2
export const LOG_POISONED = -3
export const LOG_STORAGE_FULL = -4

export type Refusal =
  | 'NO_ROOM'
  | 'TOO_LARGE'
  | 'OUT_OF_ORDER'
  | 'FENCED'
  | 'INVALID'
  | 'POISONED'
  | 'CLOSED'
  | 'STORAGE_FULL'

/** Offsets of an accepted batch. A duplicate (same producer sequence) answers its first offsets. */
export interface Appended {
  readonly base: number
  readonly last: number
  readonly duplicate: boolean
}

/**
 * How an append treats a full log whose oldest record is gated.
 * `gated`: refuse with NO_ROOM. `exempt`: grow past retention, at most to twice of it (a handler's own
 * publish must not wait for itself). `force`: evict through the gate (dead letters are never gated).
 */
export type RoomMode = 'gated' | 'exempt' | 'force'

export interface At {
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
}

/** Batches as bytes, for Fetch: whole RecordBatches, the first containing `from` or following it. */
export interface ByteSlice {
  readonly bytes: Uint8Array
  /** Where a reader goes on; equals the asked offset when there was nothing. */
  readonly next: number
  /** Aborted transactions that touch the range, sorted by first offset (for `committed`). */
  readonly aborted: readonly { readonly producerId: number; readonly firstOffset: number }[]
  /** To be called once, when nobody looks at `bytes` any more: the log may then use them again. One may never call it. */
  readonly done?: () => void
}

/**
 * `hit`: `into` is filled, possibly with no rows and a `next` beyond what is hidden. `miss`: not resident or
 * not decoded, use `load`. `end`: nothing there yet. `range`: below `start` or above the end.
 */
export type PeekResult = 'hit' | 'miss' | 'end' | 'range'

export interface RetentionLimits {
  readonly records: number
  readonly bytes: number
  /** Milliseconds a record is kept; Infinity for ever, as for the others. */
  readonly ageMs: number
}

/** `delete`: retention alone decides. `compact`: of each key the newest record stays, whatever its age. */
export type Cleanup = 'delete' | 'compact'

export interface PartitionLog {
  readonly topicId: string
  readonly partition: number
  /** Live view: the same object for the life of the log. */
  readonly marks: Readonly<Marks>
  /** Records and nominal bytes kept now. */
  readonly records: number
  readonly sizeBytes: number

  /** Nominal bytes of what is kept from `offset` on: all of it from `start` or below, 0 from `end` on. */
  bytesFrom(offset: number): number

  /**
   * Whether an append of this much would not be answered NO_ROOM now. Changes nothing. As far as retention decides,
   * there is room below the gate, as `bytesFrom` counts, exactly where `hasRoom` says so.
   */
  hasRoom(records: number, bytes: number, mode?: RoomMode): boolean
  /**
   * The hot path: one record, its offset or NO_ROOM (also for one larger than retention), LOG_CLOSED,
   * LOG_POISONED, LOG_STORAGE_FULL. `timestamp` is raised to the newest one given to a record in process, if
   * lower; the timestamps of wire batches are their senders', and one from a wrong clock must not move ours.
   * On an engine that encodes, `value` is `Uint8Array | null`, what it is stands in the headers, and the log has
   * copied what it needs when it answers: bytes and key may be used again.
   */
  tryAppendOne(
    value: unknown,
    key: Key | null,
    headers: RecordHeaders | null,
    timestamp: number,
    sizeBytes: number,
    mode?: RoomMode,
  ): number
  /**
   * All of the batch or nothing; a refused one evicts nothing either. Columns are copied, with the bytes in them
   * where the engine encodes, their timestamps raised as above. Bytes are checked (CRC, count, producer sequence) and copied, not decoded, not changed:
   * base offset and leader epoch are set in the copy. A control batch is taken for what it says: that a client
   * may not send one is the server's to see to. Refusals come in this order: CLOSED or POISONED, INVALID,
   * TOO_LARGE, FENCED or OUT_OF_ORDER, NO_ROOM or STORAGE_FULL; a duplicate needs no room.
   */
  tryAppend(batch: Batch, mode?: RoomMode): Appended | Refusal
  /** For engines where offsets follow an acknowledgement (cluster). Local engines: `tryAppend`, or reject with `refusalError`. */
  append(batch: Batch, signal?: AbortSignal): Promise<Appended>
  /**
   * Resolves once `high > last`. Rejects with OUTCOME_UNKNOWN when that cannot be known, and with STORAGE_FULL when
   * it is known that those records are not in the log and never will be: their offsets stay empty.
   */
  durable(last: number): Promise<void>

  /**
   * Resident rows from `from` on, at most `max`; what is in memory as bytes may be decoded for it, a little at a time.
   * Markers, and aborted records where isolation says so, are skipped: a run ends before them, and its `next` may
   * lie behind them.
   */
  peek(from: number, max: number, isolation: Isolation, into: Slice): PeekResult
  /**
   * The same, paging in and decoding. A value that does not decode is a `PoisonValue`, an undecodable batch
   * is one row of that, at `from` where that lies inside the batch. At least one row where there is one, even if it exceeds
   * `maxBytes`. Rejects with OFFSET_OUT_OF_RANGE where `peek` answers `range`; none at the end.
   */
  load(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<Slice>
  /**
   * RecordBatch v2 bytes, markers and aborted records included, as Kafka's clients expect. At least one whole
   * batch where there is one, even if it exceeds `maxBytes`. Rejects with OFFSET_OUT_OF_RANGE as `load` does.
   */
  read(from: number, maxBytes: number, isolation: Isolation, signal?: AbortSignal): Promise<ByteSlice>

  /**
   * Calls `wake` after any mark that readers look at moved (`start`, `stable`, `high`), whoever moved it, and when
   * there may be room again. Answers the way to stop.
   */
  onAdvance(wake: () => void): () => void
  /** The lowest offset that must be kept; Infinity for none. Age does not evict past it either. */
  gate(lowestNeeded: number): void
  /** Applies new limits and, with them, age: evicts what has expired by `now`. */
  configure(retention: RetentionLimits): void
  expire(now: number): void
  /** Moves `start` to `before` (not past `high`), through the gate. Idempotent. */
  trim(before: number): Promise<void>

  /** The first record at or after `timestamp`. */
  offsetAt(timestamp: number): Promise<At | undefined>
  /** The first record that has the newest timestamp of all that are kept. */
  newest(): Promise<At | undefined>
  /** End offset of `epoch`: the start of the next one, `end` for the current, undefined for an unknown one. */
  epochEnd(epoch: number): { epoch: number; endOffset: number } | undefined
  /** Active producers, for DescribeProducers. */
  producers(): Iterable<ProducerView>

  flush(): Promise<void>
  /** Idempotent, wakes nobody. Later: appends answer CLOSED, `peek` answers `end`, `load` and `read` reject CLOSED. */
  close(): Promise<void>
}

/** What a refused append is to a caller who awaits it. */
export function refusalError(refusal: Refusal, what: string): OdradekError {
  return new OdradekError(REFUSALS[refusal].code, `${what}: ${REFUSALS[refusal].why}`)
}

const REFUSALS: { readonly [refusal in Refusal]: { readonly code: ErrorCode; readonly why: string } } = {
  NO_ROOM: { code: 'FULL', why: 'there is no room in the log now' },
  TOO_LARGE: { code: 'TOO_LARGE', why: 'more than the log retains, or its engine takes at once' },
  OUT_OF_ORDER: {
    code: 'INVALID_ARGUMENT',
    why: 'the sequence does not follow the last one of this producer',
  },
  FENCED: { code: 'FENCED', why: 'a newer instance of this producer has taken over' },
  INVALID: { code: 'INVALID_VALUE', why: 'not a batch that may be appended' },
  POISONED: { code: 'OUTCOME_UNKNOWN', why: 'a flush has failed, and the log accepts nothing more' },
  STORAGE_FULL: { code: 'STORAGE_FULL', why: 'the disk is full' },
  CLOSED: { code: 'CLOSED', why: 'the log is closed' },
}

export interface ProducerView {
  readonly id: number
  readonly epoch: number
  readonly lastSequence: number
  /** Milliseconds since the epoch, of its newest batch or marker. */
  readonly timestamp: number
  /** First offset of its open transaction, or −1. */
  readonly openSince: number
}

/** Stands in for the value of a batch that could not be decoded, so that it is one poison delivery and no jam. */
export class PoisonValue {
  readonly cause: unknown
  readonly bytes: Uint8Array

  constructor(cause: unknown, bytes: Uint8Array) {
    this.cause = cause
    this.bytes = bytes
  }
}

export interface LogSpec {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly retention: RetentionLimits
  readonly cleanup: Cleanup
  /** `compact`: milliseconds that a tombstone is kept for those who read slowly. */
  readonly deleteRetentionMs: number
  readonly codec: ValueCodec
}

/** A change of `Meta`: `null` deletes. */
export type MetaChange = readonly [key: string, value: unknown | null]

/**
 * A small key-value store beside the logs, for topics, offsets, groups and transactions. `put` is atomic:
 * all of its changes or none, also across a crash on a durable engine. Values are plain JSON. What is put shows at
 * once to `get` and `scan`.
 */
export interface Meta {
  get(key: string): unknown | undefined
  /** Entries whose key starts with `prefix`, in key order. */
  scan(prefix: string): Iterable<readonly [string, unknown]>
  put(changes: readonly MetaChange[]): Promise<void>
}

/**
 * Where the logs are. On a durable engine everything that is asked of it in one run to completion (appends to
 * any of its logs, `meta.put`, `deleteLog`) survives a crash together or not at all: transactions are built on it.
 */
export interface Engine {
  /** URL scheme, for messages: `memory`, `file`, `kafka`. */
  readonly scheme: string
  /** Whether `meta` and the logs outlive the process. Where they do not, marks need no write before a hand-out. */
  readonly durable: boolean
  /**
   * Whether its logs take bytes: values reach them encoded, as `Uint8Array | null` with a `content-type` header,
   * and are decoded for readers. Where they do not, a record is accepted at once, `high = end`.
   */
  readonly encodes: boolean
  /** Whether logs may be opened with cleanup `compact`. */
  readonly compacts: boolean
  /** What a topic retains per partition where it does not say. */
  readonly retention: RetentionLimits
  readonly meta: Meta
  /** What it was given for batches, for whoever makes or opens some beside it. */
  readonly codecs?: BatchCodecs
  /**
   * Why batches for these logs, one each, `sizeBytes` in all, could not be taken in one run to completion now, as
   * far as that is not their own retention: `undefined` where they all could, whatever else is said of it until then.
   */
  refusal(logs: readonly PartitionLog[], sizeBytes: number): Refusal | undefined
  /** For messages, where `refusal` may be TOO_LARGE: what it takes at once, and by which option. */
  readonly takesAtOnce?: string
  /** Creates or reopens. */
  openLog(spec: LogSpec): Promise<PartitionLog>
  /** Closes and removes the log of a deleted topic. */
  deleteLog(topicId: string, partition: number): Promise<void>
  /** What was asked for before is done, and durable; what comes later rejects with CLOSED. */
  close(): Promise<void>
}

/** What sums and opens batches: native CRC-32C and compression where the composition root has them. */
export interface BatchCodecs {
  readonly crc32c?: (bytes: Uint8Array, previous?: number) => number
  readonly compression?: {
    compress(type: number, bytes: Uint8Array): Uint8Array
    decompress(type: number, bytes: Uint8Array, maxBytes: number): Uint8Array
    ready?(type: number): Promise<void> | undefined
  }
}

export interface EngineContext extends BatchCodecs {
  readonly clock: Clock
}
