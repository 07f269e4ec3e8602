/** The short form of `npm run torture -- --wire`, from a fixed seed, with the control that must fail. */
import { describe, expect, it } from 'vitest'
import { Dice } from '../dice.ts'
import { CORPUS } from './corpus.ts'
import { Credulous } from './credulous.ts'
import { judgeLies, judgeMutated, Verdicts } from './judge.ts'
import { MAX_MULTIPLE, multiples } from './memory.ts'

const SEED = 20_260_101
const FRAMES = 50_000

describe('a broken frame', () => {
  it(`is refused with PROTOCOL_ERROR or read, and nothing else: ${FRAMES} of them (seed ${SEED})`, () => {
    const dice = new Dice(SEED)
    const verdicts = new Verdicts()
    while (verdicts.frames < FRAMES) judgeMutated(dice.pick(CORPUS), dice.pick(CORPUS), dice, verdicts)
    expect(verdicts.faults).toEqual([])
    // Enough of them are broken, and enough are not.
    expect(verdicts.refused / FRAMES).toBeGreaterThan(0.3)
    expect(verdicts.refused / FRAMES).toBeLessThan(0.95)
  }, 60_000)

  it('is refused where it lies, whichever length or count of whichever message it is', () => {
    const verdicts = new Verdicts()
    for (const sample of CORPUS) judgeLies(sample, verdicts)
    expect(verdicts.faults).toEqual([])
    expect(verdicts.refused).toBeGreaterThan(20_000)
  }, 60_000)

  it('is refused too late by a reader that believes counts: the control', () => {
    const verdicts = new Verdicts()
    for (const sample of CORPUS) judgeLies(sample, verdicts, Credulous)
    expect(verdicts.faults.length).toBeGreaterThan(1_000)
  }, 60_000)

  it(`takes at most ${MAX_MULTIPLE} times its bytes when it is read, however many items are in it`, () => {
    const [largest] = multiples({
      kinds: ['request'],
      items: 2_000,
      only: ['CreateTopics', 'AlterClientQuotas'],
    })
    expect(largest?.multiple).toBeGreaterThan(1)
    expect(largest?.multiple).toBeLessThan(MAX_MULTIPLE)
  })
})
