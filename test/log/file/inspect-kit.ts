/** Directories that programs have left, and what a disk may do to them. */

import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import { FilePool } from '../../../src/log/file/file-pool.ts'
import type { Operation } from '../../../src/log/file/fs.ts'
import { recover } from '../../../src/log/file/recovery.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { keeping, specOf, T0, wireBatchOf } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import type { Dice } from '../../torture/dice.ts'
import { Life, SMALL, Story } from './crash-kit.ts'

/** What a program leaves that does so many steps, and is stopped at that operation of the disk, if at any. */
export async function leftBy(
  seed: number,
  {
    steps = 30,
    durability = 'fsync',
    stop,
  }: { steps?: number; durability?: 'fsync' | 'os'; stop?: number } = {},
): Promise<SimFs> {
  const life = new Life(() => new SimFs(), new Story(), { ...SMALL, durability, flushMs: 200 }, seed)
  life.fs.onOperation = (_, __, ordinal) => (ordinal === stop ? { halt: 'after' } : undefined)
  await life.run(steps)
  if (life.error !== undefined) throw life.error
  return life.fs.kill()
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
