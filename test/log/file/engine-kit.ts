/** A file engine on a simulated disk, with plain values, a clock that stands still, and everything it reported. */
import { type Engine, NO_ROOM, type PartitionLog, type RetentionLimits } from '../../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import type { FileSystem } from '../../../src/log/file/fs.ts'
import { plainly } from '../../../src/testing/conformance/encoding.ts'
import { keeping, settled, specOf, T0 } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { type Fault, SimFs, type SimOptions } from '../../support/sim-fs.ts'

export const KiB = 1024
export const MiB = 1024 * 1024

export interface Reported {
  readonly what: string
  readonly code: string | undefined
}

export class Machine {
  readonly clock: ManualClock
  readonly fs: SimFs
  readonly options: FileEngineOptions
  /** What the engine told of. */
  readonly reports: Reported[] = []
  /** Ordinals of operations, by what they are: `sync journal/a`. */
  readonly operations: string[] = []
  engine!: Engine
  released = 0

  private constructor(clock: ManualClock, fs: SimFs, options: FileEngineOptions) {
    this.clock = clock
    this.fs = fs
    this.options = options
    this.fail(() => undefined)
  }

  /** Opens an engine on an empty disk; with `timed`, each operation takes a turn of the clock. */
  static async open(
    options: FileEngineOptions = {},
    disk: Omit<SimOptions, 'clock'> & { readonly timed?: boolean } = {},
  ): Promise<Machine> {
    const clock = new ManualClock()
    const { timed = false, ...rest } = disk
    const machine = new Machine(clock, new SimFs(timed ? { ...rest, clock } : rest), options)
    await machine.boot()
    return machine
  }

  /** The engine of a next process on this disk. */
  static async on(
    fs: SimFs,
    options: FileEngineOptions = {},
    fault: (operation: string, path: string) => Fault | undefined = () => undefined,
    clock = new ManualClock(),
  ): Promise<Machine> {
    const machine = new Machine(clock, fs, options)
    machine.fail(fault)
    await machine.boot()
    return machine
  }

  async boot(seam: FileSystem = this.fs): Promise<void> {
    const report = (error: unknown, what: string): void => {
      this.reports.push({ what, code: (error as { code?: string } | undefined)?.code })
    }
    const release = async (): Promise<void> => {
      this.released++
    }
    this.engine = await fileEngine({ clock: this.clock, fs: seam, report, release }, this.options)
  }

  /** What goes wrong on the disk from now on. */
  fail(fault: (operation: string, path: string) => Fault | undefined): void {
    this.fs.onOperation = (operation, path) => {
      this.operations.push(`${operation} ${path}`)
      return fault(operation, path)
    }
  }

  mend(): void {
    this.fail(() => undefined)
  }

  /** How many operations of this kind there were, by the beginning of what they are. */
  count(what: string): number {
    return this.operations.filter((each) => each.startsWith(what)).length
  }

  /** A log that takes plain values. */
  log(name = 'a', limits: Partial<RetentionLimits> = {}): Promise<PartitionLog> {
    return plainly(this.engine).openLog(specOf(keeping({ bytes: 100 * MiB, ...limits }), name))
  }

  /** Takes all but `leftBytes` of the disk's room away. */
  fill(capacityBytes: number, leftBytes: number): void {
    this.fs.put('filler', new Uint8Array(capacityBytes - this.fs.usedBytes - leftBytes))
  }

  free(): void {
    this.fs.erase('filler')
  }
}

/** One record; its offset, or why not. */
export function put(log: PartitionLog, value: unknown): number {
  return log.tryAppendOne(value, null, null, T0, 0)
}

/** One record, which waits for room as publishers do. */
export async function push(machine: Machine, log: PartitionLog, value: unknown): Promise<number> {
  for (let answer = put(log, value); ; answer = put(log, value)) {
    if (answer !== NO_ROOM) return answer
    await machine.clock.settle()
  }
}

/** A log whose records are on the disk, and nowhere else. */
export async function stored(
  count: number,
  options: { readonly timed?: boolean; readonly cacheBytes?: number; readonly sizeBytes?: number } = {},
): Promise<{ machine: Machine; log: PartitionLog }> {
  const { timed = false, cacheBytes = 1, sizeBytes = 200 } = options
  const small = { segmentBytes: 4 * KiB, journalBytes: 64 * KiB, cacheBytes }
  const first = await Machine.open(small)
  const log = await first.log()
  for (let i = 0; i < count; i++) {
    log.tryAppendOne(filled(sizeBytes, i), null, null, T0 + i, 0)
    await settled(log)
  }
  await first.engine.close()
  const machine = await Machine.on(first.fs.kill(), small)
  if (!timed) return { machine, log: await machine.log() }
  // Slow from here on.
  const slow = await Machine.on(
    machine.fs.kill({ clock: machine.clock }),
    small,
    () => undefined,
    machine.clock,
  )
  return { machine: slow, log: await slow.log() }
}

/** Bytes that nothing else has. */
export function filled(sizeBytes: number, seed = 1): Uint8Array {
  return Uint8Array.from({ length: sizeBytes }, (_, i) => (i * 31 + seed * 7 + (i >> 8)) & 0xff)
}

export type Ended = 'waiting' | 'resolved' | string

/** How promises have ended by now: `resolved`, a code, or still `waiting`. */
export function watched(promises: readonly Promise<unknown>[]): Ended[] {
  const ended: Ended[] = promises.map(() => 'waiting')
  for (const [i, promise] of promises.entries()) {
    promise.then(
      () => {
        ended[i] = 'resolved'
      },
      (error: { code?: string }) => {
        ended[i] = error.code ?? String(error)
      },
    )
  }
  return ended
}

export function turns(count: number): Promise<void> {
  return count === 0
    ? Promise.resolve()
    : new Promise((resolve) => setImmediate(() => resolve(turns(count - 1))))
}
