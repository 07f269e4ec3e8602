import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Extent } from '../../../src/log/file/extent.ts'

const KiB = 1024

function filled(start: number, steps: readonly (readonly [count: number, bytes: number])[]): Extent {
  const extent = new Extent(start)
  let next = start
  for (const [count, bytes] of steps) {
    next += count
    extent.append(next, bytes)
  }
  return extent
}

describe('the extent of a log', () => {
  it('is empty where it begins', () => {
    const extent = new Extent(7)
    expect([extent.endPosition, extent.positionOf(7), extent.offsetAt(0)]).toEqual([0, 0, 7])
  })

  it('counts records between two known points as equally large', () => {
    const extent = filled(0, [[10, 1000]])
    expect(extent.positionOf(3)).toBe(300)
    expect([299, 300, 301].map((position) => extent.offsetAt(position))).toEqual([3, 3, 4])
  })

  it('is exact at points that lie 32 KiB apart', () => {
    const extent = filled(0, [
      [1, 40 * KiB],
      [99, 40 * KiB],
    ])
    expect(extent.positionOf(1)).toBe(40 * KiB)
    expect(extent.offsetAt(40 * KiB)).toBe(1)
  })

  it('answers the first known point below it, the end above it', () => {
    const extent = filled(5, [[10, 1000]])
    expect([extent.positionOf(0), extent.positionOf(99)]).toEqual([0, 1000])
    expect([extent.offsetAt(-1), extent.offsetAt(5000)]).toEqual([5, 15])
  })

  it('forgets points below its start, by halves, and nothing above', () => {
    const extent = filled(
      0,
      Array.from({ length: 300 }, () => [10, 40 * KiB] as const),
    )
    for (let start = 0; start <= 3000; start += 7) {
      extent.trim(start)
      for (const offset of [start, Math.min(start + 25, 3000), 3000]) {
        expect(extent.positionOf(offset)).toBe(Math.floor((offset / 10) * 40 * KiB))
        expect(extent.offsetAt(extent.positionOf(offset))).toBe(offset)
      }
    }
  })

  it('never falls, finds each position again, and keeps both when it is trimmed', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 20 * KiB })), {
      minLength: 1,
      maxLength: 300,
    })
    fc.assert(
      fc.property(steps, fc.double({ min: 0, max: 1, noNaN: true }), (given, share) => {
        const extent = filled(0, given)
        const end = given.reduce((sum, [count]) => sum + count, 0)
        const positions = Array.from({ length: end + 1 }, (_, offset) => extent.positionOf(offset))
        const start = Math.floor(end * share)
        extent.trim(start)
        for (let offset = start; offset <= end; offset++) {
          const position = positions[offset] as number
          expect(extent.positionOf(offset)).toBe(position)
          if (offset > start) expect(position).toBeGreaterThanOrEqual(positions[offset - 1] as number)
          const found = extent.offsetAt(position)
          expect(positions[found]).toBe(position)
          if (found > start && found > 0) expect(positions[found - 1]).toBeLessThan(position)
        }
      }),
      { seed: 20_261_130, numRuns: 200 },
    )
  })

  it('stays right outside of what takes other bytes than before, also where that is nothing', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 20 * KiB })), {
      minLength: 1,
      maxLength: 100,
    })
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(steps, share, share, share, fc.nat(100 * KiB), (given, a, b, c, sizeBytes) => {
        const extent = filled(0, given)
        const end = given.reduce((sum, [count]) => sum + count, 0)
        const [from, to] = [a, b].map((each) => Math.floor(each * end)).sort((x, y) => x - y) as [
          number,
          number,
        ]
        const start = Math.floor(c * end)
        extent.trim(Math.min(start, from))
        const sizes = Array.from(
          { length: end + 1 },
          (_, offset) => extent.endPosition - extent.positionOf(offset),
        )
        extent.replaced(from, to, sizeBytes)
        const size = (offset: number): number => extent.endPosition - extent.positionOf(offset)
        for (let offset = Math.min(start, from); offset <= end; offset++) {
          if (offset >= to) expect(size(offset)).toBe(sizes[offset])
          if (offset > 0) expect(size(offset)).toBeLessThanOrEqual(size(offset - 1))
        }
        if (from < to) expect(size(from) - size(to)).toBe(sizeBytes)
        expect(extent.offsetAt(extent.endPosition)).toBeLessThanOrEqual(end)
        // And it goes on.
        const position = extent.endPosition
        extent.append(end + 3, 50)
        expect(extent.endPosition).toBe(position + 50)
      }),
      { seed: 20_261_130, numRuns: 200 },
    )
  })
})
