/**
 * A machine on which brokers live and die: its logs and its store outlive each of them.
 *
 *   boot() ─► Process ─ publish, deliver, commit … ─ crash()      nothing of it reaches the machine any more
 *   boot() ─► Process ─ …
 *
 * A process that crashed is abandoned: its clock stands still, what it puts is lost, and it no longer hears of
 * its logs.
 */
import type { BrokerOptions } from '../../src/broker.ts'
import type { CursorState } from '../../src/core/restored.ts'
import type { Meta, MetaChange } from '../../src/log/contract.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import type { Disk, DiskEngine } from './disks.ts'
import { changedEngine } from './engines.ts'
import { diskOfSuite } from './suite.ts'
import { World } from './world.ts'

export class Machine {
  readonly #disk: Disk
  #meta: Meta | undefined
  /** Asked before each put; may wait, or throw. */
  beforePut: (changes: readonly MetaChange[]) => Promise<void> | void = () => {}
  /** Every change that was put. */
  readonly puts: MetaChange[] = []

  /** `disk`: that of the suite, if nothing is said. */
  constructor(disk: Disk = diskOfSuite()) {
    this.#disk = disk
  }

  async boot(options: BrokerOptions = {}, clock: ManualClock = new ManualClock()): Promise<Process> {
    const process = new Process(this, await this.#disk.open(clock), clock, options)
    this.#meta = process.engine.meta
    await process.broker.restore()
    return process
  }

  /** What is stored now of readers and their places. */
  stored(): [key: string, state: CursorState][] {
    return [...(this.#meta?.scan('offset/') ?? [])] as [string, CursorState][]
  }

  loseLog(topicId: string, partition: number): Promise<void> {
    return this.#disk.loseLog(topicId, partition)
  }
}

export class Process extends World {
  readonly engine: DiskEngine
  #alive = true

  constructor(machine: Machine, engine: DiskEngine, clock: ManualClock, options: BrokerOptions) {
    const meta = watchedMeta(engine.meta, machine, () => this.#alive)
    super(options, changedEngine(engine, { meta }), clock)
    this.engine = engine
  }

  crash(): void {
    this.#alive = false
    this.engine.crash()
  }
}

function watchedMeta(meta: Meta, machine: Machine, alive: () => boolean): Meta {
  return {
    get: (key) => meta.get(key),
    scan: (prefix) => meta.scan(prefix),
    put: (changes) => {
      // As it would be read back: what is no plain JSON must not survive by accident.
      const written = JSON.parse(JSON.stringify(changes)) as MetaChange[]
      const put = (): Promise<void> => {
        if (!alive()) return new Promise(() => {})
        machine.puts.push(...written)
        return meta.put(written)
      }
      try {
        // Where nothing is to be waited for, it is put within the call: what is asked at once belongs together.
        const before = machine.beforePut(written)
        return before === undefined ? put() : before.then(put)
      } catch (error) {
        return Promise.reject(error)
      }
    },
  }
}
