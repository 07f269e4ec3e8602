/**
 * The model's logs: every record that ever was, what retention has left of them, and who waits for room.
 * Written to be read, not to be fast; everything is counted anew for every question.
 */
import type { Fate, ModelCursor, ModelReader } from './readers.ts'

/** A record in a log. */
export interface Row {
  readonly offset: number
  readonly value: string
  readonly key: string | null
  readonly sizeBytes: number
  readonly timestamp: number
  /** The one reader that a redriven copy is for. */
  readonly onlyFor: string | null
  /** Which failure a dead letter tells of. */
  readonly letterOf: string | null
  /** A dead letter on its way back: its value is not new. */
  readonly isCopy: boolean
}

/** What a publisher, or a transaction, asks of one partition: all of it or nothing. */
export interface Request {
  partition: ModelPartition
  /** The broker may put it into any partition, as long as it does so at once. */
  readonly anywhere: boolean
  readonly values: readonly string[]
  readonly sizeBytes: number
  /** The reader whose handler publishes: its own hold is not in the way, and it need not stand in line. */
  readonly exempt: ModelReader | null
  /** The requests that must be let in at once with this one, itself included. */
  readonly together: readonly Request[]
  /** What is acked at the same moment. */
  readonly acks: readonly Fate[]
  readonly deadline: number
  state: 'calling' | 'waiting' | 'in' | 'refused'
  /** Whether it stands in line, or was refused, is not known yet. */
  unsure: boolean
  /** Offset of the first, once they are in. */
  base: number
  /** The call failed already, for another partition: nobody hears what becomes of it. */
  orphaned: boolean
  /** How often all had been at rest when it was let in or refused. */
  ended: number
}

export class ModelTopic {
  readonly name: string
  readonly id: string
  readonly partitions: ModelPartition[] = []
  records = Number.POSITIVE_INFINITY
  bytes = Number.POSITIVE_INFINITY
  ageMs = Number.POSITIVE_INFINITY
  publishTimeoutMs = 30_000
  maxWaiting = 10_000
  dedupeMs = 0
  /** Publish ids: where the first one went, or is going. */
  readonly ids = new Map<string, { readonly request: Request; at: number }>()
  /** Everybody can find it. */
  visible = false

  constructor(name: string, id: string) {
    this.name = name
    this.id = id
  }

  get isDeadLetter(): boolean {
    return this.name.startsWith('dlq.') || this.name === 'graveyard'
  }

  get waitingRecords(): number {
    let records = 0
    for (const { line } of this.partitions) for (const { values } of line) records += values.length
    return records
  }
}

export class ModelPartition {
  readonly topic: ModelTopic
  readonly index: number
  readonly rows: Row[] = []
  start = 0
  readonly cursors = new Set<ModelCursor>()
  /** Who waits, first come first. */
  readonly line: Request[] = []

  constructor(topic: ModelTopic, index: number) {
    this.topic = topic
    this.index = index
  }

  get end(): number {
    return this.rows.length
  }

  bytesFrom(offset: number): number {
    return this.rows.slice(offset).reduce((sum, row) => sum + row.sizeBytes, 0)
  }

  /** The lowest start with which this much more is within `factor` times retention. */
  startFor(records: number, bytes: number, factor = 1): number {
    const { topic } = this
    let start = this.start
    while (
      start < this.end &&
      (this.end - start + records > topic.records * factor ||
        this.bytesFrom(start) + bytes > topic.bytes * factor)
    ) {
      start++
    }
    return start
  }

  /** Whether everything that is in the way of this much more lies below `gate`. */
  hasRoom(records: number, bytes: number, gate: number, factor = 1): boolean {
    const start = this.startFor(records, bytes, factor)
    return start === this.start || start <= gate
  }
}

/** Whether no eviction could ever make room for it. */
export function isTooLarge({
  partition,
  values,
  sizeBytes,
}: Pick<Request, 'partition' | 'values' | 'sizeBytes'>): boolean {
  const { records, bytes } = partition.topic
  return values.length > records || sizeBytes > bytes
}
