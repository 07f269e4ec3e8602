/** The short form of `npm run torture -- --server`, from fixed seeds, with the controls that must fail. */
import { describe, expect, it } from 'vitest'
import { CONTROLS, isFound, playSeed } from './main.ts'

const FRAMES = 1_500

describe('a server with hostile clients', () => {
  it.each([11, 20, 34])(
    'answers an honest one rightly, and is as before when they are gone (seed %i)',
    async (seed) => {
      const { faults, answered, acknowledged } = await playSeed(seed, seed === 34 ? 5_000 : FRAMES)
      expect(faults).toEqual([])
      expect(answered).toBeGreaterThan(100)
      expect(acknowledged).toBeGreaterThan(0)
    },
    120_000,
  )

  it.each(CONTROLS)(
    'is found out where it has %s',
    async (_, handler) => {
      expect(await isFound(handler, 1)).toBe(true)
    },
    120_000,
  )
})
