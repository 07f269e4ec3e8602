/**
 * A machine on which brokers live and die: its logs and its store outlive each of them, in memory.
 *
 *   boot() ─► Process ─ publish, deliver, commit … ─ crash()      nothing of it reaches the machine any more
 *   boot() ─► Process ─ …
 *
 * A process that crashed is abandoned: its clock stands still, what it puts is lost, and it no longer hears of
 * its logs.
 */
import type { BrokerOptions } from '../../src/broker.ts'
import type { CursorState } from '../../src/core/restored.ts'
import type {
  Engine,
  LogSpec,
  Meta,
  MetaChange,
  PartitionLog,
  RetentionLimits,
} from '../../src/log/contract.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { changedLog } from './engines.ts'
import { World } from './world.ts'

export class Machine {
  readonly #disk = memoryEngine({ clock: new ManualClock() })
  /** Asked before each put; may wait, or throw. */
  beforePut: (changes: readonly MetaChange[]) => Promise<void> | void = () => {}
  /** Every change that reached the store. */
  readonly puts: MetaChange[] = []

  async boot(options: BrokerOptions = {}): Promise<Process> {
    const process = new Process(new ProcessEngine(this, this.#disk), options)
    await process.broker.restore()
    return process
  }

  /** What is stored now of readers and their places. */
  stored(): [key: string, state: CursorState][] {
    return [...this.#disk.meta.scan('offset/')] as [string, CursorState][]
  }

  /** The log of a partition loses everything, as a disk without flushes may. */
  async loseLog(topicId: string, partition: number): Promise<void> {
    await this.#disk.deleteLog(topicId, partition)
  }
}

export class Process extends World {
  readonly #engine: ProcessEngine

  constructor(engine: ProcessEngine, options: BrokerOptions) {
    super(options, engine)
    this.#engine = engine
  }

  crash(): void {
    this.#engine.crash()
  }
}

class ProcessEngine implements Engine {
  readonly scheme = 'machine'
  readonly durable = true
  readonly encodes = false
  readonly compacts = false
  readonly retention: RetentionLimits
  readonly meta: Meta
  readonly #disk: Engine
  readonly #ends: (() => void)[] = []
  #alive = true

  constructor(machine: Machine, disk: Engine) {
    this.#disk = disk
    this.retention = disk.retention
    this.meta = {
      get: (key) => disk.meta.get(key),
      scan: (prefix) => disk.meta.scan(prefix),
      put: async (changes) => {
        // As it would be read back: what is no plain JSON must not survive by accident.
        const written = JSON.parse(JSON.stringify(changes)) as MetaChange[]
        await machine.beforePut(written)
        if (!this.#alive) return new Promise(() => {})
        machine.puts.push(...written)
        return disk.meta.put(written)
      },
    }
  }

  refusal(): undefined {
    return undefined
  }

  async openLog(spec: LogSpec): Promise<PartitionLog> {
    const log = await this.#disk.openLog(spec)
    const stops: (() => void)[] = []
    const end = (): void => {
      for (const stop of stops) stop()
      log.gate(Number.POSITIVE_INFINITY)
    }
    this.#ends.push(end)
    return changedLog(log, {
      onAdvance: (wake) => {
        const stop = log.onAdvance(wake)
        stops.push(stop)
        return stop
      },
      close: async () => end(),
    })
  }

  deleteLog(topicId: string, partition: number): Promise<void> {
    return this.#disk.deleteLog(topicId, partition)
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end()
  }

  crash(): void {
    this.#alive = false
    for (const end of this.#ends) end()
  }
}
