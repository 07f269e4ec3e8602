import { describe, expect, it } from 'vitest'
import { assignRanges } from '../../src/client/range-assignor.ts'

describe('the range assignor', () => {
  it('gives runs, the first members one more', () => {
    const members = ['c', 'a', 'b'].map((memberId) => ({ memberId, topics: ['t'] }))
    expect(Object.fromEntries(assignRanges(members, new Map([['t', 7]])))).toEqual({
      a: [{ topic: 't', partitions: [0, 1, 2] }],
      b: [{ topic: 't', partitions: [3, 4] }],
      c: [{ topic: 't', partitions: [5, 6] }],
    })
  })

  it('gives each topic to those that want it, and nothing of one that is not there', () => {
    const members = [
      { memberId: 'a', topics: ['t', 'none'] },
      { memberId: 'b', topics: ['t', 'u'] },
    ]
    const partitions = new Map([
      ['t', 1],
      ['u', 2],
    ])
    expect(Object.fromEntries(assignRanges(members, partitions))).toEqual({
      a: [{ topic: 't', partitions: [0] }],
      b: [{ topic: 'u', partitions: [0, 1] }],
    })
  })
})
