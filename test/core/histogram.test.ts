import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Histogram } from '../../src/core/histogram.ts'

const HOUR_MS = 3_600_000

function of(values: Iterable<number>): Histogram {
  const histogram = new Histogram()
  for (const value of values) histogram.record(value)
  return histogram
}

/** A value that `q` of the sorted values do not exceed. */
function nearestRank(sorted: readonly number[], q: number): number {
  return sorted[Math.max(Math.ceil(q * sorted.length), 1) - 1] as number
}

describe('histogram', () => {
  it('is all zeros before anything was recorded', () => {
    expect(new Histogram().snapshot()).toEqual({
      count: 0,
      minMs: 0,
      maxMs: 0,
      meanMs: 0,
      p50Ms: 0,
      p90Ms: 0,
      p99Ms: 0,
      p999Ms: 0,
    })
  })

  it('answers a single value for every quantile, exactly', () => {
    const snapshot = of([12.345]).snapshot()
    expect(snapshot).toEqual({
      count: 1,
      minMs: 12.345,
      maxMs: 12.345,
      meanMs: 12.345,
      p50Ms: 12.345,
      p90Ms: 12.345,
      p99Ms: 12.345,
      p999Ms: 12.345,
    })
  })

  it('finds the quantiles of a known distribution within 2 %', () => {
    const snapshot = of(Array.from({ length: 10_000 }, (_, i) => i + 1)).snapshot()
    expect([snapshot.count, snapshot.minMs, snapshot.maxMs, snapshot.meanMs]).toEqual([
      10_000, 1, 10_000, 5_000.5,
    ])
    expect(Math.abs(snapshot.p50Ms / 5_000 - 1)).toBeLessThan(0.02)
    expect(Math.abs(snapshot.p90Ms / 9_000 - 1)).toBeLessThan(0.02)
    expect(Math.abs(snapshot.p99Ms / 9_900 - 1)).toBeLessThan(0.02)
    expect(Math.abs(snapshot.p999Ms / 9_990 - 1)).toBeLessThan(0.02)
  })

  it('tells a rare slow one from the many', () => {
    const snapshot = of([...Array.from({ length: 998 }, () => 1), 500, 500]).snapshot()
    expect(snapshot.p99Ms).toBeCloseTo(1, 1)
    expect(Math.abs(snapshot.p999Ms / 500 - 1)).toBeLessThan(0.02)
  })

  it('is off by at most 2 % from 1 µs to 1 hour', () => {
    // Logarithmically even, as the error is relative; between a 0 and a day, so that nothing is clamped.
    for (let exponent = -3; exponent <= Math.log10(HOUR_MS); exponent += 0.003) {
      const value = 10 ** exponent
      const { p50Ms } = of([0, value, 24 * HOUR_MS]).snapshot()
      expect(Math.abs(p50Ms / value - 1), `${value} ms as ${p50Ms}`).toBeLessThanOrEqual(0.02)
    }
  })

  it('counts what lies outside at the ends, and keeps minimum and maximum', () => {
    const low = of([-5, 0, 0.0001]).snapshot()
    expect([low.count, low.minMs, low.maxMs, low.p50Ms]).toEqual([3, 0, 0.0001, 0.0001])
    const high = of([HOUR_MS * 10, HOUR_MS * 10, HOUR_MS * 20]).snapshot()
    expect([high.count, high.minMs, high.maxMs]).toEqual([3, HOUR_MS * 10, HOUR_MS * 20])
    expect(high.p50Ms).toBe(HOUR_MS * 10)
  })

  it('agrees with sorting all values', () => {
    const value = fc.double({ min: 0.001, max: HOUR_MS, noNaN: true })
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 300 }), (values) => {
        const sorted = [...values].sort((a, b) => a - b)
        const snapshot = of(values).snapshot()
        expect([snapshot.count, snapshot.minMs, snapshot.maxMs]).toEqual([
          sorted.length,
          sorted[0],
          sorted.at(-1),
        ])
        for (const [q, got] of [
          [0.5, snapshot.p50Ms],
          [0.9, snapshot.p90Ms],
          [0.99, snapshot.p99Ms],
          [0.999, snapshot.p999Ms],
        ] as const) {
          expect(Math.abs(got / nearestRank(sorted, q) - 1), `${q}`).toBeLessThanOrEqual(0.02)
        }
      }),
    )
  })
})
