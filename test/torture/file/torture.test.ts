/** The short forms of `npm run torture -- --engine file`, from fixed seeds, each with the control that must fail. */
import { describe, expect, it } from 'vitest'
import { faultTrials } from './faults.ts'
import { killTrials } from './kill.ts'
import { powerTrials } from './power.ts'
import type { Report } from './report.ts'
import { turnTrials } from './turns.ts'

const SEED = 20_260_101
const isStopped = (): boolean => false

/** What a report must say, whatever else it counts. */
function told({ trials, lost, duplicated, corrupt, texts }: Report): object {
  return { trials, lost, duplicated, corrupt, texts }
}

function sound(trials: number): object {
  return { trials, lost: 0, duplicated: 0, corrupt: 0, texts: [] }
}

describe(`a process that is killed (seed ${SEED})`, () => {
  it('has lost nothing that it acknowledged, and its successor goes on', async () => {
    const report = await killTrials({ seed: SEED, trials: 6, jobs: 1, isStopped })
    expect(told(report)).toEqual(sound(6))
    expect(report.acked).toBeGreaterThan(0)
  }, 60_000)

  it('has lost something where the journal says too early that it was written', async () => {
    // It ends with the first loss; when that comes is up to the moment of the kill.
    const report = await killTrials({ seed: SEED, trials: 200, jobs: 1, lies: true, isStopped })
    expect(report.lost).toBeGreaterThan(0)
  }, 60_000)
})

describe(`a machine that loses its power (seeds from ${SEED})`, () => {
  it.each(['fsync', 'os'] as const)(
    'keeps what it must under durability %s',
    async (durability) => {
      const report = await powerTrials({ seed: SEED, trials: 25, durability, isStopped })
      expect(told(report)).toEqual(sound(report.trials))
      expect(report.acked).toBeGreaterThan(50)
    },
    60_000,
  )

  it.each(['missingSync', 'missingDirectorySync'] as const)(
    'loses something where the disk has a %s',
    async (missing) => {
      const disk = { [missing]: true }
      const options = {
        seed: SEED,
        trials: 300,
        durability: 'fsync',
        disk,
        untilLost: true,
        isStopped,
      } as const
      expect((await powerTrials(options)).lost).toBeGreaterThan(0)
    },
    60_000,
  )
})

describe(`a disk that is unsound (seed ${SEED})`, () => {
  it('fails once, at any operation, in any way, and nobody loses anything, nor waits for ever', async () => {
    const report = await faultTrials({ seed: SEED, share: 0.012, isStopped })
    expect(told(report)).toEqual(sound(report.trials))
    expect(report.trials).toBeGreaterThan(10)
  }, 60_000)

  it('turns a byte, or cuts the newest group, and no record is served that was not published', async () => {
    const report = await turnTrials({ seed: SEED, share: 0.005, isStopped })
    expect(told(report)).toEqual(sound(report.trials))
    expect(report.trials).toBeGreaterThan(50)
  }, 60_000)
})
