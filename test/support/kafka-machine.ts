/**
 * The Kafka side of a broker on a simulated disk that can stop anywhere: each process opens what the one before has left.
 *
 *   boot ─ requests … ─┬─ halt at an operation of the disk ─► nothing is answered any more ─► power loss, or kill ─► boot
 *                      └─ close ─► boot
 */
import type { ProducerTransactions } from '../../src/coordinator/producer-transactions.ts'
import type { Engine } from '../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../src/log/file/file-engine.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { DataWorld } from './kafka-data.ts'
import { SimFs } from './sim-fs.ts'

const SMALL: FileEngineOptions = { journalBytes: 256 * 1024, segmentBytes: 16 * 1024 }

export class KafkaMachine {
  fs: SimFs
  clock: ManualClock = new ManualClock()
  world!: DataWorld
  transactions!: ProducerTransactions
  /** Of this process. */
  operations = 0
  halted: Promise<'halted'> = Promise.resolve('halted')
  isHalted = false
  /** The operation at which it stops, counted from now. */
  haltIn: number = Number.POSITIVE_INFINITY
  /** Whether that operation has its effect. */
  haltHow: 'before' | 'after' = 'before'
  readonly #options: FileEngineOptions

  private constructor(seed: number, options: FileEngineOptions) {
    this.fs = new SimFs({ seed })
    this.#options = { ...SMALL, ...options }
  }

  static async open(seed = 0, options: FileEngineOptions = {}): Promise<KafkaMachine> {
    const machine = new KafkaMachine(seed, options)
    await machine.#boot()
    return machine
  }

  async #boot(): Promise<void> {
    let halt: (how: 'halted') => void = () => {}
    this.halted = new Promise((resolve) => {
      halt = resolve
    })
    this.isHalted = false
    this.operations = 0
    this.haltIn = Number.POSITIVE_INFINITY
    const engine: Engine = await fileEngine({ clock: this.clock, fs: this.fs }, this.#options)
    this.fs.onOperation = () => {
      this.operations++
      if (--this.haltIn > 0) return undefined
      this.isHalted = true
      halt('halted')
      return { halt: this.haltHow }
    }
    this.world = new DataWorld({ engine, clock: this.clock })
    await this.world.broker.restore()
    this.transactions = this.world.kafka.transactions
    // What the process before had prepared is completed now.
    await this.until(this.clock.settle())
  }

  /** The process ends here, and the next one begins, at the same time of day. */
  async powerLoss(seed: number): Promise<void> {
    await this.#next(this.fs.crash({ seed }))
  }

  async kill(): Promise<void> {
    await this.#next(this.fs.kill())
  }

  async restart(): Promise<void> {
    await this.world.broker.close()
    await this.kill()
  }

  async #next(fs: SimFs): Promise<void> {
    this.fs = fs
    this.clock = new ManualClock({ startMs: this.clock.now() })
    await this.#boot()
  }

  /** What `work` resolves to, or undefined where the machine stops before. */
  async until<T>(work: Promise<T>): Promise<T | undefined> {
    const done = await Promise.race([work, this.halted])
    return done === 'halted' ? undefined : (done as T)
  }
}
