import { describe, expect, it } from 'vitest'
import { StickyRoundRobin } from '../../src/core/partitioner.ts'

describe('sticky round-robin', () => {
  const always = (): boolean => true
  const never = (): boolean => false
  /** The runs of what it answers: [partition, how often in a row]. */
  function runs(chooser: StickyRoundRobin, records: number, hasRoom: (partition: number) => boolean) {
    const found: [number, number][] = []
    for (let i = 0; i < records; i++) {
      const partition = chooser.next(hasRoom)
      const last = found.at(-1)
      if (last?.[0] === partition) last[1]++
      else found.push([partition, 1])
    }
    return found
  }

  it('stays for 64 records, then goes round', () => {
    expect(runs(new StickyRoundRobin(3), 64 * 4, always)).toEqual([
      [0, 64],
      [1, 64],
      [2, 64],
      [0, 64],
    ])
  })

  it('leaves a partition that has filled up, and starts a run in the next one with room', () => {
    const full = new Set<number>()
    const hasRoom = (partition: number): boolean => !full.has(partition)
    const chooser = new StickyRoundRobin(4)
    expect(runs(chooser, 10, hasRoom)).toEqual([[0, 10]])
    full.add(0).add(1)
    expect(runs(chooser, 64 * 3, hasRoom)).toEqual([
      [2, 64],
      [3, 64],
      [2, 64],
    ])
  })

  it('goes round past the end in its search for room', () => {
    const chooser = new StickyRoundRobin(3)
    expect(runs(chooser, 128, always)).toEqual([
      [0, 64],
      [1, 64],
    ])
    expect(chooser.next((partition) => partition === 1)).toBe(1)
  })

  it('answers the sticky one when none has room, and still goes round', () => {
    expect(runs(new StickyRoundRobin(2), 64 * 3, never)).toEqual([
      [0, 64],
      [1, 64],
      [0, 64],
    ])
  })

  it('does not ask where there is one partition', () => {
    const chooser = new StickyRoundRobin(1)
    expect(
      chooser.next(() => {
        throw new Error('asked')
      }),
    ).toBe(0)
  })
})
