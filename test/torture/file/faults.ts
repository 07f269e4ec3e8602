/**
 * One operation of the disk fails, in one way, while a broker opens, works or closes: each operation in turn, in each
 * way that it can. Publishes are refused or unknown, nobody hangs, nothing that was acknowledged is lost, and the next
 * process finds everything in order, also when the power fails then. A trial is one such failure.
 *
 * Or the disk is full for a while, from any operation on: then what goes on is what needs no room, and all of it goes on
 * when there is room again, without a restart.
 */
import type { Operation } from '../../../src/log/file/fs.ts'
import type { Fault, SimFs } from '../../support/sim-fs.ts'
import { Dice } from '../dice.ts'
import { Crew } from './crew.ts'
import { Lives } from './lives.ts'
import { Load } from './load.ts'
import { Report } from './report.ts'

const KiB = 1024
const STEPS = 40
const PUBLISHERS = 3
const CAPACITY_BYTES = 1_024 * KiB
/** Operations within which a disk becomes full. */
const SPAN = 400

/** In which ways each operation can fail. */
const WAYS: { readonly [operation in Operation]?: readonly Fault[] } = {
  open: [{ fail: 'EMFILE' }, { fail: 'EIO' }, { fail: 'ENOSPC' }],
  write: [{ fail: 'ENOSPC' }, { fail: 'EIO' }, { shortBytes: 1 }, { shortBytes: 100 }],
  sync: [{ fail: 'EIO' }, { fail: 'ENOSPC' }],
  makeDirectory: [{ fail: 'ENOSPC' }, { fail: 'EIO' }],
  rename: [{ fail: 'EIO' }],
  syncDirectory: [{ fail: 'EIO' }],
  truncate: [{ fail: 'EIO' }],
  remove: [{ fail: 'EIO' }],
  removeDirectory: [{ fail: 'EIO' }],
  read: [{ fail: 'EIO' }],
  list: [{ fail: 'EIO' }],
  size: [{ fail: 'EIO' }],
  exists: [{ fail: 'EIO' }],
  close: [{ fail: 'EIO' }],
}

export interface FaultOptions {
  readonly seed: number
  /** Of all failures that could be tried. */
  readonly share: number
  readonly isStopped: () => boolean
}

interface Failure {
  readonly ordinal: number
  readonly name: string
  readonly fault: Fault
}

export async function faultTrials(
  { seed, share, isStopped }: FaultOptions,
  report = new Report(),
): Promise<Report> {
  const dice = new Dice(seed)
  for (const durability of ['fsync', 'os'] as const) {
    for (const failure of await failures(seed, durability)) {
      if (isStopped() || report.failures >= 5) return report
      if (!dice.chance(share)) continue
      const lives = new Lives(seed, durability)
      await fail(lives, failure, durability)
      report.trials++
      report.note(lives.refused('OUTCOME_UNKNOWN') ? 'poisoned' : 'went on')
      report.add(
        lives.verdict(),
        `--mode faults --seed ${seed} (${durability}, ${failure.name} at ${failure.ordinal})`,
      )
    }
  }
  return report
}

/** Everything that can go wrong in a life, in the order in which it can. */
async function failures(seed: number, durability: 'fsync' | 'os'): Promise<Failure[]> {
  const found: Failure[] = []
  await work(new Lives(seed, durability), (operation, path, ordinal) => {
    for (const fault of WAYS[operation] ?? []) {
      found.push({ ordinal, name: `${JSON.stringify(fault)} for ${operation} of ${path}`, fault })
    }
    return undefined
  })
  return found
}

/** Does its work, while something is wrong, or not. */
function work(lives: Lives, onOperation: SimFs['onOperation']): Promise<void> {
  lives.fs.onOperation = onOperation
  return lives.live(async (at) => {
    await new Crew(at).join()
    await new Load(at).run(STEPS, PUBLISHERS)
  }, true)
}

async function fail(lives: Lives, { ordinal, fault }: Failure, durability: 'fsync' | 'os'): Promise<void> {
  await work(lives, (_operation, _path, at) => (at === ordinal ? fault : undefined))
  lives.judgeSilence()
  // Under `os` a power loss may take what a sync that failed had not written; the end of a process takes nothing.
  const dice = new Dice(lives.seed + ordinal)
  lives.restart(durability === 'fsync' && dice.chance(0.5) ? dice.below(2 ** 31) : undefined)
  await lives.end()
}

// ── full for a while ──────────────────────────────────────────────────────────────────────────────

export interface FullOptions {
  readonly seed: number
  readonly trials: number
  readonly isStopped: () => boolean
}

export async function fullTrials(
  { seed, trials, isStopped }: FullOptions,
  report = new Report(),
): Promise<Report> {
  for (let each = seed; each < seed + trials && !isStopped() && report.failures < 5; each++) {
    const dice = new Dice(each)
    const durability = dice.pick(['fsync', 'os'] as const)
    const lives = new Lives(each, durability, { capacityBytes: CAPACITY_BYTES })
    await fillUp(lives, dice)
    lives.restart(durability === 'fsync' && dice.chance(0.5) ? dice.below(2 ** 31) : undefined)
    await lives.end()
    report.trials++
    report.note(lives.refused('STORAGE_FULL') ? 'publishes were refused' : 'nobody was refused')
    report.add(lives.verdict(), `full, --mode faults --seed ${each}`)
  }
  return report
}

async function fillUp(lives: Lives, dice: Dice): Promise<void> {
  const from = 1 + dice.below(SPAN)
  const freeBytes = dice.below(24 * KiB)
  const { fs, clock } = lives
  let full = false
  fs.onOperation = (_operation, _path, at) => {
    if (at !== from) return undefined
    full = true
    fs.put('ballast', new Uint8Array(Math.max(0, CAPACITY_BYTES - fs.usedBytes - freeBytes)))
    const free = (): void => {
      full = false
      fs.erase('ballast')
    }
    clock.setTimer(free, 1_000 + dice.below(4_000))
    return undefined
  }
  await lives.live(async (at) => {
    const crew = new Crew(at)
    await crew.join()
    await new Load(at).run(STEPS * 3, PUBLISHERS)
    while (full) await at.sleep(500)
    // What is tried again, is tried again after a second.
    await at.sleep(2_500)
    await new Load({ ...at, left: { ...at.left, life: 1_000 }, refusals: new Set(['TOO_LARGE']) }).run(
      STEPS,
      PUBLISHERS,
    )
    await crew.drained()
  }, true)
}
