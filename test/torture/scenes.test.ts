/** The short form of `npm run torture`: random scenes from fixed seeds, each judged by what must hold whatever happens. */
import { expect, it } from 'vitest'
import { playScene, stepsOf } from './scene.ts'

const FIRST = 20_260_101
const SCENES = 1_500

it(`keeps order, books and waits in ${SCENES} random scenes (seeds from ${FIRST})`, async () => {
  for (let seed = FIRST; seed < FIRST + SCENES; seed++) {
    expect(await playScene(seed, stepsOf(seed)), `npm run torture -- --seed ${seed} --scenes 1`).toEqual([])
  }
}, 120_000)
