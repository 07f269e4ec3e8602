/**
 * Random programs against a plain model of the broker: what each step may do is said by arrays and maps that know
 * nothing of the sources, and every hand-out, refusal, drop, wait and commit must be one that the model expects.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { programs } from './program.ts'
import { Runner } from './runner.ts'

const RUNS = 1_500
const STEPS = 15

it.each([11, 12, 13])(
  `does what the model expects of it, in ${RUNS} random programs (seed %i)`,
  async (seed) => {
    const program = fc.asyncProperty(programs(STEPS), async (each) => {
      expect(await new Runner(each).run()).toEqual([])
    })
    await fc.assert(program, { seed, numRuns: RUNS })
  },
  120_000,
)
