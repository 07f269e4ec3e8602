import { describe, expect, it } from 'vitest'
import { type CursorState, Restored, StartRuns, within } from '../../src/core/restored.ts'
import { upTo } from '../support/world.ts'

/** Settled to 10 and at 12, 13, 20; handed out below 18; 15 and 16 were started three times, 11 never. */
const STATE: CursorState = {
  offset: 10,
  settled: [
    [12, 14],
    [20, 21],
  ],
  handed: 18,
  starts: [
    [11, 12, 0],
    [15, 17, 3],
  ],
}

const offsets = upTo(14).map((i) => 10 + i)

describe('what is restored of a reader', () => {
  it('says what was settled beyond the watermark', () => {
    const restored = new Restored(STATE)
    expect(offsets.filter((offset) => restored.isSettled(offset))).toEqual([12, 13, 20])
  })

  it('says how often each record was started: once, within what was handed out, unless it knows better', () => {
    const restored = new Restored(STATE)
    const starts = Object.fromEntries(offsets.map((offset) => [offset, restored.starts(offset)]))
    expect(starts).toMatchObject({ 10: 1, 11: 0, 14: 1, 15: 3, 16: 3, 17: 1, 18: 0, 19: 0 })
    expect([14, 15, 18].map((offset) => restored.knownStarts(offset))).toEqual([0, 3, 0])
  })

  it('knows nothing beyond what was handed out or settled', () => {
    expect(new Restored(STATE).until).toBe(21)
    expect(new Restored({ ...STATE, settled: [] }).until).toBe(18)
  })

  it('keeps what is still ahead', () => {
    const restored = new Restored(STATE)
    expect(restored.settledFrom(10)).toEqual(STATE.settled)
    expect(restored.settledFrom(13)).toEqual([
      [13, 14],
      [20, 21],
    ])
    expect(restored.settledFrom(21)).toEqual([])
  })

  it('is cut to where the log ends now', () => {
    expect(within(STATE, 100)).toEqual(STATE)
    expect(within(STATE, 16)).toEqual({
      offset: 10,
      settled: [[12, 14]],
      handed: 16,
      starts: [
        [11, 12, 0],
        [15, 16, 3],
      ],
    })
    expect(within(STATE, 13)).toEqual({ offset: 10, settled: [[12, 13]], handed: 13, starts: [[11, 12, 0]] })
    expect(within(STATE, 5)).toEqual({ offset: 5, settled: [], handed: 5, starts: [] })
  })
})

describe('runs of starts', () => {
  it('join records that follow each other, and leave out those that were started once', () => {
    const runs = new StartRuns()
    for (const [offset, count] of [
      [3, 2],
      [4, 1],
      [7, 0],
      [9, 0],
      [10, 5],
    ] as const) {
      runs.add(offset, count)
    }
    expect(runs.runs).toEqual([
      [3, 4, 2],
      [7, 10, 0],
      [10, 11, 5],
    ])
  })
})
