/**
 * The engine whose logs live and die with the process. Logs are found by topic id and partition, so that a
 * topic that was deleted and made again starts with a log of its own.
 */
import { OdradekError } from '../../model/errors.ts'
import { DEFAULT_RETENTION_BYTES, DEFAULT_RETENTION_RECORDS, MiB } from '../../model/limits.ts'
import type {
  BatchCodecs,
  Engine,
  EngineContext,
  LogSpec,
  Meta,
  PartitionLog,
  RetentionLimits,
} from '../contract.ts'
import { BufferPool } from '../format/buffer-pool.ts'
import { MemoryLog } from './memory-log.ts'
import { MemoryMeta } from './memory-meta.ts'

/** Kept although nothing is in it: what a log at its limit evicts in a moment, while fetches of it are under way. */
const MAX_FREE_BYTES = 16 * MiB

export function memoryEngine(context: EngineContext): Engine {
  return new MemoryEngine(context)
}

class MemoryEngine implements Engine {
  readonly scheme = 'memory'
  readonly durable = false
  readonly encodes = false
  readonly compacts = false
  readonly retention: RetentionLimits = {
    records: DEFAULT_RETENTION_RECORDS,
    bytes: DEFAULT_RETENTION_BYTES,
    ageMs: Number.POSITIVE_INFINITY,
  }
  readonly meta: Meta = new MemoryMeta()
  readonly codecs: BatchCodecs
  readonly #context: EngineContext
  readonly #logs = new Map<string, MemoryLog>()
  /** Bytes of wire batches that were evicted, for those that come. */
  readonly #pool = new BufferPool(MAX_FREE_BYTES)
  #closed = false

  constructor(context: EngineContext) {
    this.#context = context
    this.codecs = context
  }

  /** Logs share nothing that could run out. */
  refusal(): undefined {
    return undefined
  }

  /** An open log is answered again, under the retention that is asked for now. */
  async openLog(spec: LogSpec): Promise<PartitionLog> {
    if (this.#closed) throw new OdradekError('CLOSED', 'the memory engine is closed')
    const id = idOf(spec.topicId, spec.partition)
    const open = this.#logs.get(id)
    if (open !== undefined && !open.closed) {
      open.configure(spec.retention)
      return open
    }
    const log = new MemoryLog(spec, this.#context, this.#pool)
    this.#logs.set(id, log)
    return log
  }

  async deleteLog(topicId: string, partition: number): Promise<void> {
    const id = idOf(topicId, partition)
    await this.#logs.get(id)?.close()
    this.#logs.delete(id)
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#logs.values()].map((log) => log.close()))
    this.#logs.clear()
  }
}

function idOf(topicId: string, partition: number): string {
  return `${topicId}/${partition}`
}
