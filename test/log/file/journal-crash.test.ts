/**
 * The journal under power loss and failing disks: a program that appends, syncs, grows, rotates and checkpoints is
 * stopped at each of its operations in turn, what the disk may have kept is drawn many times, and what is read back is
 * held against what was written. Then the next process goes on from there, and is stopped as well.
 */
import { describe, expect, it } from 'vitest'
import { type Checkpoint, readCheckpoint, writeCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { Journal } from '../../../src/log/file/journal.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { KiB } from '../../../src/model/limits.ts'
import { type Fault, SimFs, type SimOptions } from '../../support/sim-fs.ts'
import { Dice } from '../../torture/dice.ts'
import { crc32c, group, range, read } from './journal-kit.ts'

const FILE_BYTES = 4 * KiB
const GROUPS = 36
const SEEDS_PER_STOP = 5

const EMPTY: Checkpoint = {
  format: 1,
  sequence: 0,
  clean: false,
  durability: 'fsync',
  seed: 0,
  logs: [],
  deleting: [],
  meta: [],
}

type Durability = 'fsync' | 'os'

/** What a process knows of what it did. */
interface Life {
  /** Newest group that was appended, and that was synced. */
  written: number
  synced: number
  /** How it ended, if not by being stopped. */
  error: unknown
  ended: boolean
}

function checkpointed(fs: SimFs, sequence: number): Promise<void> {
  return writeCheckpoint(fs, { ...EMPTY, sequence }, crc32c)
}

/** One process: recovers, and then appends groups whose sizes depend on nothing but their sequence. */
async function live(fs: SimFs, durability: Durability, life: Life): Promise<void> {
  const after = (await readCheckpoint(fs, crc32c))?.sequence ?? 0
  const first = (await read(fs, after)).next
  await checkpointed(fs, first - 1)
  life.written = life.synced = first - 1
  const journal = await Journal.create(fs, { fileBytes: FILE_BYTES, firstSequence: first })
  /** Newest group in the file that is not the current one. */
  let left = first - 1
  let growing = Promise.resolve()
  for (let sequence = first; sequence < first + GROUPS; sequence++) {
    const sizeBytes = sizeOf(sequence)
    if (journal.roomBytes < sizeBytes) {
      await checkpointed(fs, left)
      left = sequence - 1
      await journal.rotate()
      life.synced = sequence - 1
      while (journal.roomBytes < sizeBytes) await journal.grow(sizeBytes)
    }
    await journal.append(group(sequence, sizeBytes, life.synced))
    life.written = sequence
    if (sequence % 7 === 3) growing = journal.grow(journal.roomBytes + 600)
    growing.catch(() => undefined)
    if (durability === 'fsync' || sequence % 5 === 0) {
      await journal.sync()
      life.synced = sequence
    }
    if (sequence % 7 === 5) await growing
  }
  await journal.close()
}

/** Many small ones that share a sector, and some that take several. */
function sizeOf(sequence: number): number {
  const size = 60 + ((sequence * 97) % 180)
  return sequence % 9 === 0 ? size * 11 : size
}

/** Runs a process until it ends, or is stopped. `before`: the newest group that it finds. */
async function run(fs: SimFs, durability: Durability, before = 0): Promise<Life> {
  const life: Life = { written: before, synced: before, error: undefined, ended: false }
  live(fs, durability, life)
    .catch((error: unknown) => {
      life.error = error
    })
    .finally(() => {
      life.ended = true
    })
  while (!life.ended && !fs.halted) await new Promise((resolve) => setImmediate(resolve))
  return life
}

/**
 * Throws unless all that was synced is there, nothing else than what was written, and it is no corruption. Answers the
 * newest group, and how the journal ends.
 */
async function check(fs: SimFs, life: Life): Promise<{ last: number; kind: string }> {
  const after = (await readCheckpoint(fs, crc32c))?.sequence ?? 0
  const { sequences, tail, next } = await read(fs, after)
  const last = after + sequences.length
  expect(sequences).toEqual(range(after + 1, last))
  expect(tail.kind).not.toBe('corrupt')
  expect(last).toBeGreaterThanOrEqual(life.synced)
  expect(last).toBeLessThanOrEqual(Math.max(life.written + 1, after))
  expect(next).toBeGreaterThan(last)
  expect(await read(fs, after)).toEqual({ sequences, tail, next })
  return { last, kind: tail.kind }
}

async function operationsOf(durability: Durability): Promise<number> {
  const fs = new SimFs()
  const life = await run(fs, durability)
  if (life.error !== undefined) throw life.error
  return fs.operations
}

interface Crashes {
  count: number
  torn: number
  readonly wrong: string[]
}

/** Stops a process at each operation, without it and right after it, and tells which crashes went wrong. */
async function crashes(durability: Durability, options: SimOptions, lives = 1): Promise<Crashes> {
  const operations = await operationsOf(durability)
  const all: Crashes = { count: 0, torn: 0, wrong: [] }
  for (let stop = 1; stop <= operations; stop++) {
    for (const halt of ['before', 'after'] as const) {
      let fs = new SimFs(options)
      let newest = 0
      for (let nth = 0; nth < lives; nth++) {
        // Later processes are stopped elsewhere than the first, some of them while they recover.
        const at = nth === 0 ? stop : 1 + ((stop * (nth + 1)) % operations)
        fs.onOperation = (_, __, ordinal) => (ordinal === at ? { halt } : undefined)
        const life = await run(fs, durability, newest)
        if (life.error !== undefined) all.wrong.push(`${halt} ${stop}, life ${nth}: ${life.error}`)
        for (let i = 0; i < SEEDS_PER_STOP; i++) {
          const seed = i * 7919 + stop
          const survivor = fs.crash({ seed })
          all.count++
          try {
            const { last, kind } = await check(survivor, life)
            if (kind === 'torn') all.torn++
            newest = last
          } catch (error) {
            all.wrong.push(`${halt} ${stop}, seed ${seed}, life ${nth}: ${error}`)
          }
          if (i === SEEDS_PER_STOP - 1) fs = survivor
        }
      }
    }
  }
  return all
}

describe('power loss at every operation', () => {
  it.each(['fsync', 'os'] as const)(
    'loses nothing that was synced, and leaves a prefix: %s',
    async (durability) => {
      const { count, torn, wrong } = await crashes(durability, {})
      console.info(`${durability}: ${count} crashes, ${torn} torn`)
      expect(wrong).toEqual([])
      expect(count).toBeGreaterThan(1000)
      expect(torn).toBeGreaterThan(10)
    },
    60_000,
  )

  it('three times in a row, also during recovery, loses nothing either', async () => {
    const { count, torn, wrong } = await crashes('os', {}, 3)
    console.info(`three processes in a row: ${count} crashes, ${torn} torn`)
    expect(wrong).toEqual([])
  }, 60_000)

  it('would lose something without the sync of files, and without that of directories', async () => {
    expect((await crashes('fsync', { missingSync: true })).wrong.length).toBeGreaterThan(100)
    expect((await crashes('fsync', { missingDirectorySync: true })).wrong.length).toBeGreaterThan(10)
  }, 60_000)
})

describe('a process that is killed at any operation', () => {
  it('leaves every group that it had written, synced or not', async () => {
    const operations = await operationsOf('os')
    for (let stop = 1; stop <= operations; stop++) {
      const fs = new SimFs()
      fs.onOperation = (_, __, ordinal) => (ordinal === stop ? { halt: 'after' } : undefined)
      const life = await run(fs, 'os')
      await check(fs.kill(), { ...life, synced: life.written })
    }
  }, 60_000)
})

describe('an operation that fails', () => {
  /** One failure at each operation in turn. Answers how many processes ended by it. */
  async function failures(durability: Durability, fault: Fault): Promise<number> {
    const operations = await operationsOf(durability)
    let ended = 0
    for (let at = 1; at <= operations; at++) {
      const fs = new SimFs()
      fs.onOperation = (_, __, ordinal) => (ordinal === at ? fault : undefined)
      const life = await run(fs, durability)
      if (life.error !== undefined) {
        expect(life.error).toBeInstanceOf(OdradekError)
        ended++
      }
      for (const seed of [at, at + 1000]) await check(fs.crash({ seed }), life)
      const dice = new Dice(at)
      await check(fs.crash({ seed: at, share: dice.share() }), life)
    }
    return ended
  }

  it.each(['EIO', 'ENOSPC', 'EMFILE'])(
    'with %s is told, and what was synced stays',
    async (fail) => {
      for (const durability of ['fsync', 'os'] as const) {
        expect(await failures(durability, { fail })).toBeGreaterThan(50)
      }
    },
    60_000,
  )

  it('as a short write is continued', async () => {
    expect(await failures('fsync', { shortBytes: 1 })).toBe(0)
    expect(await failures('fsync', { shortBytes: 33 })).toBe(0)
  }, 60_000)
})

describe('a full disk', () => {
  it.each(range(1, 30))('of %d KiB refuses growth at some point, and loses nothing', async (sizeKiB) => {
    const fs = new SimFs({ capacityBytes: sizeKiB * KiB })
    const life = await run(fs, 'fsync')
    if (life.error !== undefined) expect(life.error).toMatchObject({ code: 'STORAGE_FULL' })
    for (const seed of range(1, 10)) await check(fs.crash({ seed, capacityBytes: 64 * KiB }), life)
  })
})
