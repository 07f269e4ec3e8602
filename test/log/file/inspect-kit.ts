/** Directories that programs have left, and what a disk may do to them. */

import type { Engine, PartitionLog } from '../../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import { FilePool } from '../../../src/log/file/file-pool.ts'
import type { Operation } from '../../../src/log/file/fs.ts'
import { recover } from '../../../src/log/file/recovery.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import {
  keeping,
  markerOf,
  producerOf,
  specOf,
  T0,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'

const SMALL: FileEngineOptions = { journalBytes: 8 * 1024, segmentBytes: 1024, cacheBytes: 4 * 1024 }

/** What a program leaves that does so many steps, and is stopped at that operation of the disk, if at any. */
export async function leftBy(
  seed: number,
  {
    steps = 30,
    durability = 'fsync',
    stop,
  }: { steps?: number; durability?: 'fsync' | 'os'; stop?: number } = {},
): Promise<SimFs> {
  const fs = new SimFs()
  fs.onOperation = (_, __, ordinal) => (ordinal === stop ? { halt: 'after' } : undefined)
  const program = new Program(fs, seed, { ...SMALL, durability, flushMs: 200 })
  let ended = false
  const living = program.live(steps).finally(() => {
    ended = true
  })
  // One that is halted waits for ever.
  while (!ended && !fs.halted) await turn()
  if (ended) await living
  return fs.kill()
}

/** Does a bit of everything, by chance: records, batches, transactions, entries of `Meta`, trims, deletions. */
class Program {
  readonly #fs: SimFs
  readonly #dice: Dice
  readonly #options: FileEngineOptions
  readonly #clock = new ManualClock()
  readonly #logs = new Map<string, PartitionLog>()
  #engine: Engine | undefined
  #third = 'c0'
  #sequence = 0
  #open = false

  constructor(fs: SimFs, seed: number, options: FileEngineOptions) {
    this.#fs = fs
    this.#dice = new Dice(seed)
    this.#options = options
  }

  async live(steps: number): Promise<void> {
    this.#engine = await fileEngine({ clock: this.#clock, fs: this.#fs }, this.#options)
    for (const name of ['a', 'b', this.#third]) await this.#openLog(name)
    for (let i = 0; i < steps; i++) await this.#step()
    await this.#engine.close()
  }

  async #openLog(name: string): Promise<void> {
    const retention = name === 'a' ? keeping({ records: 12 }) : keeping({})
    this.#logs.set(name, await (this.#engine as Engine).openLog(specOf(retention, name)))
  }

  async #step(): Promise<void> {
    const dice = this.#dice
    const engine = this.#engine as Engine
    for (let left = 1 + dice.below(3); left > 0; left--) this.#append(dice.pick(['a', 'b', 'b', this.#third]))
    const way = dice.below(10)
    if (way === 0) void engine.meta.put([[`topic/${this.#third}`, { name: `topic ${dice.below(9)}` }]])
    if (way === 1) {
      const log = this.#logs.get(this.#third) as PartitionLog
      await log.flush()
      await log.trim(dice.below(log.marks.end + 1))
    }
    if (way === 2) {
      await engine.deleteLog(this.#third, 0)
      this.#third = `c${Number(this.#third.slice(1)) + 1}`
      await this.#openLog(this.#third)
    }
    if (way === 3) await this.#clock.advance(500)
    if (way < 7) await turn()
    else await (this.#logs.get('a') as PartitionLog).flush()
  }

  /** What is refused for want of room is not published. */
  #append(name: string): void {
    const dice = this.#dice
    const log = this.#logs.get(name) as PartitionLog
    const value = new Uint8Array(dice.chance(0.1) ? 600 : dice.below(120))
    if (name !== 'b' || dice.chance(0.3)) {
      if (dice.chance(0.5)) log.tryAppendOne(value, null, null, T0, value.length)
      else log.tryAppend(wireBatchOf([{ value }, { value: 'second' }]))
    } else if (this.#open && dice.below(3) === 0) {
      const marker = markerOf(producerOf(7, 0, { transactional: true }), dice.chance(0.5))
      if (typeof log.tryAppend(marker) !== 'string') this.#open = false
    } else {
      const batch = wireBatchOf([{ value }], producerOf(7, this.#sequence, { transactional: true }))
      if (typeof log.tryAppend(batch) === 'string') return
      this.#sequence++
      this.#open = true
    }
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** One thing that goes wrong with a file, by chance; what it was. */
export function spoil(fs: SimFs, dice: Dice): string {
  const file = dice.pick(fs.files())
  const size = fs.bytesOf(file).length
  const way = dice.pick(['flip', 'flip', 'flip', 'cut', 'erase', 'grow', 'none'])
  const at = dice.below(size)
  if (way === 'flip' && size > 0) fs.flipBit(file, at, dice.below(8))
  if (way === 'cut') fs.resize(file, at)
  if (way === 'erase') fs.erase(file)
  if (way === 'grow')
    fs.append(
      file,
      Uint8Array.from({ length: 1 + dice.below(200) }, () => dice.below(256)),
    )
  return `${way} ${file} at ${at} of ${size}`
}

/** Every file with its bytes. */
export function contentOf(fs: SimFs): [string, string][] {
  return fs.files().map((path) => [path, Buffer.from(fs.bytesOf(path)).toString('base64')])
}

/** Notes what is done to a machine besides reading. */
export function changesOf(fs: SimFs): [Operation, string][] {
  const changes: [Operation, string][] = []
  const reading = new Set<Operation>(['open', 'read', 'size', 'list', 'exists', 'close'])
  fs.onOperation = (operation, path) => {
    if (!reading.has(operation)) changes.push([operation, path])
    return undefined
  }
  return changes
}

export interface Recovery {
  readonly error: OdradekError | undefined
  readonly changes: readonly [Operation, string][]
  readonly logs: readonly (readonly [string, number, number, number])[]
  readonly findings: readonly string[]
}

/** Recovers, and tells what that did and led to. */
export async function recovered(fs: SimFs, salvage = false): Promise<Recovery> {
  const changes = changesOf(fs)
  const pool = new FilePool(fs)
  try {
    const { logs, findings } = await recover({
      fs,
      pool,
      crc32c,
      segmentBytes: SMALL.segmentBytes as number,
      salvage,
    })
    const places = [...logs].map(([key, { start, end, epoch }]) => [key, start, end, epoch] as const)
    return { error: undefined, changes, logs: places.sort(), findings }
  } catch (error) {
    if (!(error instanceof OdradekError)) throw error
    return { error, changes, logs: [], findings: [] }
  } finally {
    await pool.close()
  }
}

/** Three batches fit, and no more. */
export const SEGMENT_BYTES = 3_300

/** A directory with one log, `t` of topic `orders`, to which batches were appended that fill segments of three. */
export async function withBatches(count: number, options: FileEngineOptions = {}): Promise<SimFs> {
  const fs = new SimFs()
  const engine = await fileEngine(
    { clock: new ManualClock(), fs },
    { segmentBytes: SEGMENT_BYTES, ...options },
  )
  await engine.meta.put([['topic/t', { name: 'orders' }]])
  const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
  for (let i = 0; i < count; i++) {
    const batch = wireBatchOf([{ value: 'x'.repeat(900) }, { value: 'y', timestamp: T0 + i }])
    log.tryAppend(batch)
    await log.flush()
  }
  if (options.durability !== undefined) return fs.kill()
  await engine.close()
  return fs
}
