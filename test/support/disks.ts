/**
 * Where logs are kept that outlive a process, and the engines that processes open there. One process after the other;
 * one that has crashed reaches the disk no more, and hears nothing of it.
 */
import type { Engine, LogSpec, PartitionLog } from '../../src/log/contract.ts'
import { fileEngine } from '../../src/log/file/file-engine.ts'
import { memoryEngine } from '../../src/log/memory/memory-engine.ts'
import type { Clock } from '../../src/model/clock.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { byteEngine } from './byte-engine.ts'
import { changedEngine, changedLog } from './engines.ts'
import { SimFs } from './sim-fs.ts'

export interface DiskEngine extends Engine {
  /** The process ends, without a close. */
  crash(): void
}

export interface Disk {
  open(clock: Clock): Promise<DiskEngine>
  /** The log of a partition loses everything, as a disk without flushes may. */
  loseLog(topicId: string, partition: number): Promise<void>
}

/** Values by reference, everything on the disk at once. */
export function plainDisk(): Disk {
  const disk = memoryEngine({ clock: new ManualClock() })
  return {
    open: async () => new PlainEngine(disk),
    loseLog: (topicId, partition) => disk.deleteLog(topicId, partition),
  }
}

/** Values as bytes, on the disk in groups. */
export function byteDisk(): Disk {
  const disk = memoryEngine({ clock: new ManualClock() })
  return {
    open: async (clock) => byteEngine({ clock, disk }),
    loseLog: (topicId, partition) => disk.deleteLog(topicId, partition),
  }
}

/** A simulated directory. What is written survives the process that wrote it. */
export function fileDisk(): Disk {
  let fs = new SimFs()
  return {
    async open(clock) {
      const mine = fs.kill({ clock })
      fs = mine
      const crash = (): void => {
        fs = mine.kill()
      }
      return changedEngine(await fileEngine({ clock, fs: mine }), { crash } as Partial<Engine>) as DiskEngine
    },
    async loseLog(topicId, partition) {
      const directory = `logs/${topicId}-${partition}`
      for (const name of await fs.list(directory)) await fs.remove(`${directory}/${name}`)
    },
  }
}

class PlainEngine implements DiskEngine {
  readonly scheme = 'machine'
  readonly durable = true
  readonly encodes = false
  readonly compacts = false
  readonly retention: Engine['retention']
  readonly meta: Engine['meta']
  readonly #disk: Engine
  readonly #ends: (() => void)[] = []
  #alive = true

  constructor(disk: Engine) {
    this.#disk = disk
    this.retention = disk.retention
    this.meta = {
      get: (key) => disk.meta.get(key),
      scan: (prefix) => disk.meta.scan(prefix),
      put: (changes) => (this.#alive ? disk.meta.put(changes) : new Promise(() => {})),
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
