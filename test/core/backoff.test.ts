import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/core/backoff.ts'

const retry = { delayMs: 50, maxDelayMs: 1_000, jitter: 0 }

describe('backoff', () => {
  it('doubles from the first delay and stops at the cap', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7].map((attempt) => backoffMs(attempt, retry, () => 0))
    expect(delays).toEqual([50, 100, 200, 400, 800, 1_000, 1_000])
  })

  it('takes a random share of up to the jitter off, also at the cap', () => {
    const jittered = { ...retry, jitter: 0.2 }
    expect(backoffMs(1, jittered, () => 0)).toBe(50)
    expect(backoffMs(1, jittered, () => 0.5)).toBe(45)
    expect(backoffMs(9, jittered, () => 0.75)).toBe(850)
  })

  it('stays between its bounds for any attempt', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.nat(10_000),
        fc.nat(100_000),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, delayMs, maxDelayMs, jitter, random) => {
          const delay = backoffMs(attempt, { delayMs, maxDelayMs, jitter }, () => random)
          const full = backoffMs(attempt, { delayMs, maxDelayMs, jitter: 0 }, () => random)
          expect(full).toBeLessThanOrEqual(maxDelayMs)
          expect(delay).toBeLessThanOrEqual(full)
          expect(delay).toBeGreaterThanOrEqual(full * (1 - jitter) - 1e-6)
        },
      ),
    )
  })
})
