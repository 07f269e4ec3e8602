/**
 * An engine of bytes, as one on disk behaves, without the disk: values reach it encoded and leave it decoded, and what
 * is accepted becomes durable later, all of one moment together.
 *
 *   append, put, delete ─► │ gathering: this process │ ─ commit ─► │ a memory engine: the disk │ ─► high advances
 *
 * A group is committed in the next turn of the event loop, or when the test says so (`held`). A crash takes what is
 * gathering. The disk survives it, and another engine may be opened on it.
 */
import type {
  Engine,
  LogSpec,
  Meta,
  MetaChange,
  PartitionLog,
  Refusal,
  RetentionLimits,
} from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { Clock } from '../../src/model/clock.ts'
import { OdradekError } from '../../src/model/errors.ts'
import { ByteLog } from './byte-log.ts'

export interface ByteEngineOptions {
  readonly clock: Clock
  /** What is there already. */
  readonly disk?: Engine
  /** Groups wait for `commit()`. */
  readonly held?: boolean
  /** Bytes that may be on their way to the disk at once, over all logs. Default: no bound. */
  readonly gatheringBytes?: number
}

/** What became durable together. */
export interface Group {
  /** `topic/partition`, with the values as they are stored. */
  readonly appends: readonly { readonly log: string; readonly values: readonly (Uint8Array | null)[] }[]
  readonly changes: readonly MetaChange[]
  /** `topic/partition` of the logs that are gone. */
  readonly deleted: readonly string[]
}

export function byteEngine(options: ByteEngineOptions): ByteEngine {
  return new ByteEngine(options)
}

/** How a group ends, to all who wait for it. */
interface Outcome {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: OdradekError) => void
}

export class ByteEngine implements Engine {
  readonly scheme = 'bytes'
  readonly durable = true
  readonly encodes = true
  readonly compacts = true
  readonly retention: RetentionLimits
  readonly meta: Meta
  readonly groups: Group[] = []
  /** Groups wait for `commit()`. */
  held: boolean
  /** The disk is full: appends are refused. */
  full = false
  readonly #clock: Clock
  readonly #disk: Engine
  readonly #max: number
  readonly #entries: Map<string, unknown>
  readonly #logs = new Map<string, ByteLog>()
  readonly #refused = new Set<ByteLog>()
  #changes: MetaChange[] = []
  #deletes: ByteLog[] = []
  #gatheringBytes = 0
  #outcome = outcome()
  #scheduled = false
  #ends: 'OUTCOME_UNKNOWN' | 'STORAGE_FULL' | undefined
  #failure: OdradekError | undefined
  #alive = true

  constructor({ clock, disk, held = false, gatheringBytes }: ByteEngineOptions) {
    this.#clock = clock
    this.#disk = disk ?? memoryEngine({ clock })
    this.retention = this.#disk.retention
    this.held = held
    this.#max = gatheringBytes ?? Number.POSITIVE_INFINITY
    this.#entries = new Map(this.#disk.meta.scan(''))
    this.meta = {
      get: (key) => this.#entries.get(key),
      scan: (prefix) =>
        [...this.#entries].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1)),
      put: (changes) => this.#put(changes),
    }
  }

  // ── the contract ──────────────────────────────────────────────────────────────────────────────

  async openLog(spec: LogSpec): Promise<PartitionLog> {
    const log = new ByteLog(await this.#disk.openLog(spec), spec, this)
    this.#logs.set(log.name, log)
    return log
  }

  deleteLog(topicId: string, partition: number): Promise<void> {
    const log = [...this.#logs.values()].find(
      (each) => each.topicId === topicId && each.partition === partition,
    )
    if (log === undefined) return Promise.resolve()
    this.#logs.delete(log.name)
    this.#gatheringBytes -= log.gatheringBytes
    log.drop()
    this.#deletes.push(log)
    return this.work()
  }

  refusal(logs: readonly PartitionLog[], sizeBytes: number): Refusal | undefined {
    if (this.#failure !== undefined) return 'POISONED'
    if (this.full) return 'STORAGE_FULL'
    if (sizeBytes > this.#max) return 'TOO_LARGE'
    if (this.#gatheringBytes + sizeBytes <= this.#max) return undefined
    for (const log of logs) this.#refused.add(this.#logs.get(nameOf(log)) as ByteLog)
    return 'NO_ROOM'
  }

  /** What was asked for before is done. */
  async close(): Promise<void> {
    this.commit()
    this.#failure ??= new OdradekError('CLOSED', 'the engine is closed')
    for (const log of this.#logs.values()) log.leave()
  }

  #put(changes: readonly MetaChange[]): Promise<void> {
    // As they would be read back: what is no plain JSON must not survive by accident.
    const written = JSON.parse(JSON.stringify(changes)) as MetaChange[]
    for (const [key, value] of written) {
      if (value === null) this.#entries.delete(key)
      else this.#entries.set(key, value)
    }
    this.#changes.push(...written)
    return this.work()
  }

  // ── for its logs ──────────────────────────────────────────────────────────────────────────────

  /** There is something to commit. Resolves when it is. */
  work(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (!this.#scheduled) {
      this.#scheduled = true
      this.#clock.nextTurn(() => {
        this.#scheduled = false
        if (!this.held) this.commit()
      })
    }
    return this.#outcome.promise
  }

  /** Takes these bytes of `log` on, or not: it is told when to ask again. */
  takes(log: ByteLog, sizeBytes: number): boolean {
    if (this.#gatheringBytes + sizeBytes <= this.#max) return true
    this.#refused.add(log)
    return false
  }

  gathered(sizeBytes: number): void {
    this.#gatheringBytes += sizeBytes
    void this.work()
  }

  get failure(): OdradekError | undefined {
    return this.#failure
  }

  // ── for tests ─────────────────────────────────────────────────────────────────────────────────

  /** Bytes on their way. */
  get gatheringBytes(): number {
    return this.#gatheringBytes
  }

  /** Makes durable what is gathering, in one moment. */
  commit(): void {
    if (!this.#alive || this.#failure !== undefined) return
    const { promise, resolve, reject } = this.#outcome
    promise.catch(() => undefined)
    this.#outcome = outcome()
    const ends = this.#ends
    this.#ends = undefined
    this.#gatheringBytes = 0
    if (ends === 'OUTCOME_UNKNOWN') {
      this.#failure = new OdradekError('OUTCOME_UNKNOWN', 'the flush failed')
      reject(this.#failure)
      this.#tellRefused()
      return
    }
    this.#take(ends === undefined)
    if (ends === undefined) resolve()
    else reject(new OdradekError('STORAGE_FULL', 'the disk is full'))
    this.#tellRefused()
  }

  /** How the next group ends: nobody knows, or for certain not on the disk. */
  fail(how: 'OUTCOME_UNKNOWN' | 'STORAGE_FULL'): void {
    this.#ends = how
  }

  /** Nothing of this process reaches the disk any more. */
  crash(): void {
    this.#alive = false
    for (const log of this.#logs.values()) log.leave()
  }

  #take(succeeds: boolean): void {
    const appends: { log: string; values: readonly (Uint8Array | null)[] }[] = []
    for (const log of this.#logs.values()) {
      const values = succeeds ? log.commit() : log.skip()
      if (values.length > 0) appends.push({ log: log.name, values })
    }
    const changes = this.#changes
    const deletes = this.#deletes
    this.#changes = []
    this.#deletes = []
    if (!succeeds) return
    void this.#disk.meta.put(changes)
    for (const { topicId, partition } of deletes) void this.#disk.deleteLog(topicId, partition)
    this.groups.push({ appends, changes, deleted: deletes.map(({ name }) => name) })
  }

  #tellRefused(): void {
    const refused = [...this.#refused]
    this.#refused.clear()
    for (const log of refused) log.roomAgain()
  }
}

function outcome(): Outcome {
  let resolve: () => void = () => {}
  let reject: (error: OdradekError) => void = () => {}
  const promise = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  return { promise, resolve, reject }
}

function nameOf(log: PartitionLog): string {
  return (log as ByteLog).name
}
