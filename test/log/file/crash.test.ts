/**
 * A program stopped at each operation of the disk in turn, by a kill and by a loss of power, also while it recovers from
 * the last time: what was accepted is there, what is there is as it was after some step, and the next process goes on.
 */
import { describe, expect, it } from 'vitest'
import type { FileEngineOptions } from '../../../src/log/file/file-engine.ts'
import type { DataFile, FileSystem, OpenMode } from '../../../src/log/file/fs.ts'
import type { Clock } from '../../../src/model/clock.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { type Fault, SimFs, type SimOptions } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'
import { check, Life, SMALL, Story } from './crash-kit.ts'

type Durability = 'fsync' | 'os'

const STEPS = 40

const FAULTS: readonly Fault[] = [
  { fail: 'EIO' },
  { fail: 'ENOSPC' },
  { fail: 'EMFILE' },
  { shortBytes: 1 },
  { shortBytes: 100 },
]

interface Trial {
  readonly durability: Durability
  readonly seed: number
  readonly steps?: number
  readonly disk?: SimOptions
  /** How many operations go wrong, of all. */
  readonly faults?: number
  /** What the engine has instead of the disk itself. */
  readonly seam?: (fs: SimFs) => FileSystem
}

function optionsOf({ durability }: Trial): FileEngineOptions {
  return { ...SMALL, durability, flushMs: 200 }
}

function lifeOf(trial: Trial, story: Story, fs?: SimFs): Life {
  // With turns, operations overlap with each other and with what the program does.
  const make = (clock: Clock): SimFs =>
    fs ?? new SimFs({ ...trial.disk, ...(trial.disk?.turns === undefined ? {} : { clock }) })
  return new Life(make, story, optionsOf(trial), trial.seed, trial.seam)
}

interface Result {
  count: number
  readonly wrong: string[]
}

async function note(result: Result, what: string, attempt: () => Promise<unknown>): Promise<void> {
  result.count++
  try {
    await attempt()
  } catch (error) {
    result.wrong.push(`${what}: ${error instanceof Error ? error.message : error}`)
  }
}

/** What must have survived. */
function leastOf({ durability }: Trial, story: Story, how: 'kill' | 'power'): number {
  return how === 'power' && durability === 'os' ? story.flushed : story.acked
}

interface End {
  readonly what: string
  readonly seed: number
  readonly disk: SimFs
  readonly story: Story
}

/** What a process would leave, and what it knew, that is stopped at every `stride`th operation, without it and right after it. */
async function endsOf(trial: Trial, stride: number): Promise<readonly End[]> {
  const story = new Story()
  const life = lifeOf(trial, story)
  const ends: End[] = []
  life.fs.onOperation = (_, __, ordinal) => {
    if ((ordinal - 1) % stride !== 0) return undefined
    const note = (halt: string): void => {
      const what = `seed ${trial.seed}, ${halt} ${ordinal}`
      ends.push({ what, seed: ordinal, disk: life.fs.copy(), story: story.copy() })
    }
    note('before')
    return { done: () => note('after') }
  }
  await life.run(trial.steps ?? STEPS)
  if (life.error !== undefined) throw life.error
  return ends
}

/** One process that nobody stops, looked at wherever it could have been. */
async function stopEverywhere(trial: Trial, seeds: number, stride = 1): Promise<Result> {
  const options = optionsOf(trial)
  const result: Result = { count: 0, wrong: [] }
  for (const { what, seed: stop, disk, story } of await endsOf(trial, stride)) {
    await note(result, `${what}, killed`, () =>
      check(disk.kill(), story, leastOf(trial, story, 'kill'), options),
    )
    for (let i = 0; i < seeds; i++) {
      const seed = i * 7919 + stop
      await note(result, `${what}, power ${seed}`, () =>
        check(disk.crash({ seed }), story, leastOf(trial, story, 'power'), options),
      )
    }
  }
  return result
}

/** One process after the other on one disk, each stopped somewhere, many of them while they recover. */
async function manyLives(trial: Trial, lives: number): Promise<Result> {
  const options = optionsOf(trial)
  const dice = new Dice(trial.seed)
  const result: Result = { count: 0, wrong: [] }
  const story = new Story()
  let fs: SimFs | undefined
  for (let nth = 0; nth < lives && result.wrong.length === 0; nth++) {
    const life = lifeOf({ ...trial, seed: trial.seed * 100 + nth }, story, fs)
    const stop = 1 + dice.below(nth % 2 === 0 ? 400 : 60)
    const halt = dice.pick(['before', 'after'] as const)
    life.fs.onOperation = (_, __, ordinal) => {
      if (ordinal === stop) return { halt }
      return dice.chance(trial.faults ?? 0) ? dice.pick(FAULTS) : undefined
    }
    await life.run(trial.steps ?? STEPS)
    const how = dice.pick(['kill', 'power'] as const)
    const what = `seed ${trial.seed}, life ${nth} ${halt} ${stop}, ${how}`
    const isTold = trial.faults !== undefined && life.error instanceof OdradekError
    if (life.error !== undefined && !isTold) result.wrong.push(`${what}: ${life.error}`)
    const survivor = how === 'kill' ? life.fs.kill() : life.fs.crash({ seed: stop })
    await note(result, what, async () => {
      story.cut(await check(survivor.copy(), story, leastOf(trial, story, how), options))
    })
    fs = survivor
  }
  return result
}

/** Tells of the sync of a file before it is done, as an engine would that acks too early. */
class Hasty implements FileSystem {
  readonly #fs: SimFs

  constructor(fs: SimFs) {
    this.#fs = fs
  }

  async open(path: string, mode: OpenMode): Promise<DataFile> {
    const file = await this.#fs.open(path, mode)
    return new Proxy(file, {
      get(_, name) {
        if (name === 'sync') return async () => void setTimeout(() => file.sync().catch(() => undefined), 0)
        const member: unknown = Reflect.get(file, name, file)
        return typeof member === 'function' ? member.bind(file) : member
      },
    })
  }

  readonly list: FileSystem['list'] = (path) => this.#fs.list(path)
  readonly makeDirectory: FileSystem['makeDirectory'] = (path) => this.#fs.makeDirectory(path)
  readonly rename: FileSystem['rename'] = (from, to) => this.#fs.rename(from, to)
  readonly remove: FileSystem['remove'] = (path) => this.#fs.remove(path)
  readonly removeDirectory: FileSystem['removeDirectory'] = (path) => this.#fs.removeDirectory(path)
  readonly syncDirectory: FileSystem['syncDirectory'] = (path) => this.#fs.syncDirectory(path)
  readonly exists: FileSystem['exists'] = (path) => this.#fs.exists(path)
}

describe('a process that is stopped at any operation', () => {
  it.each(['fsync', 'os'] as const)(
    'leaves what was accepted, and all of it as it was after some step: %s',
    async (durability) => {
      const { count, wrong } = await stopEverywhere({ durability, seed: 1 }, 1)
      console.info(`${durability}: ${count} ends`)
      expect(wrong.slice(0, 5)).toEqual([])
      expect(count).toBeGreaterThan(1000)
    },
    120_000,
  )

  it.each([
    ['fsync', 0],
    ['os', 0],
    ['fsync', 3],
    ['os', 3],
  ] as const)(
    'and so do many, one after the other, also while they recover: %s, operations of up to %d turns',
    async (durability, turns) => {
      let count = 0
      for (let seed = 1; seed <= 20; seed++) {
        const disk: SimOptions = turns === 0 ? {} : { turns, seed }
        const result = await manyLives({ durability, seed, disk }, 8)
        count += result.count
        expect(result.wrong).toEqual([])
      }
      console.info(`${durability}, ${turns} turns: ${count} ends`)
    },
    120_000,
  )

  it.each(['fsync', 'os'] as const)(
    'and so do they where operations fail now and then, before or while they recover: %s',
    async (durability) => {
      let count = 0
      for (let seed = 1; seed <= 20; seed++) {
        const disk: SimOptions = { turns: seed % 4, seed }
        const result = await manyLives({ durability, seed, disk, faults: 0.01 }, 8)
        count += result.count
        expect(result.wrong).toEqual([])
      }
      console.info(`${durability}, with faults: ${count} ends`)
    },
    120_000,
  )

  it.each([
    ['files are not synced', 'fsync', { disk: { missingSync: true } }],
    ['directories are not synced', 'fsync', { disk: { missingDirectorySync: true } }],
    ['files are not synced', 'os', { disk: { missingSync: true } }],
    ['syncs are told of before they are done', 'fsync', { seam: (fs: SimFs) => new Hasty(fs) }],
  ] as const)(
    'would lose something if %s: %s',
    async (_, durability, fault) => {
      const { wrong } = await stopEverywhere({ durability, seed: 1, ...fault }, 2, 7)
      expect(wrong.length).toBeGreaterThan(5)
    },
    120_000,
  )
})
