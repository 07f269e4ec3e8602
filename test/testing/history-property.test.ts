import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { History } from '../../src/testing/history.ts'
import { checkHistory } from '../../src/testing/history-checks.ts'
import { MUTATIONS, renumber, Story } from './mutations.ts'
import { Simulation, type Step } from './simulation.ts'

const SEED = 20_260_101
const number = fc.nat({ max: 10_000 })
const steps: fc.Arbitrary<Step[]> = fc.array(fc.tuple(number, number, number), {
  maxLength: 150,
  size: 'max',
})

describe(`random histories (seed ${SEED})`, () => {
  it('finds nothing in sound ones', () => {
    let events = 0
    fc.assert(
      fc.property(steps, fc.boolean(), (run, finished) => {
        const simulation = new Simulation()
        simulation.run(run)
        if (finished) simulation.finish()
        events += simulation.history.events.length
        expect(checkHistory(simulation.history)).toEqual([])
      }),
      { seed: SEED, numRuns: 500 },
    )
    expect(events).toBeGreaterThan(50_000)
  })

  it.each(MUTATIONS)('finds that $title', ({ finds, apply }) => {
    let applied = 0
    fc.assert(
      fc.property(steps, number, (run, choice) => {
        const simulation = new Simulation()
        simulation.run(run)
        simulation.finish()
        const events = apply(new Story(simulation.history.events), choice)
        if (events === null) return
        applied++
        const anomalies = checkHistory(History.fromJSON({ seed: SEED, events: renumber(events) }))
        const kinds = new Set(anomalies.map(({ kind }) => kind))
        expect([...kinds].some((kind) => finds.includes(kind))).toBe(true)
      }),
      { seed: SEED, numRuns: 100 },
    )
    expect(applied).toBeGreaterThan(30)
  })
})
