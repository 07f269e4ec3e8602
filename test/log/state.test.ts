import { describe, expect, it } from 'vitest'
import { PartitionState } from '../../src/log/state.ts'
import type { ProducerInfo } from '../../src/model/batch.ts'

const NOW = 1_700_000_000_000

function by(id: number, sequence: number, epoch = 0, transactional = false): ProducerInfo {
  return { id, epoch, sequence, transactional }
}

/** A log of nothing but offsets, that appends what its state lets in. */
class Log {
  state = new PartitionState()
  end = 0

  append(producer: ProducerInfo, count = 1): unknown {
    const verdict = this.state.check(producer, count)
    if (verdict !== 'ok') return verdict
    const base = this.end
    this.end += count
    this.state.appended(producer, base, this.end - 1, NOW)
    return base
  }

  /** Records of nobody. */
  fill(count: number): void {
    this.end += count
  }

  mark(id: number, commit: boolean, epoch = 0): unknown {
    const verdict = this.state.checkMarker(id, epoch)
    if (verdict !== 'ok') return verdict
    this.state.marker(id, epoch, commit, this.end++, NOW)
    return this.end - 1
  }

  stable(): number {
    return this.state.stable(this.end)
  }
}

describe('a producer', () => {
  it('goes on with the sequence that follows, and no other', () => {
    const log = new Log()
    expect(log.append(by(1, 0), 3)).toBe(0)
    expect(log.append(by(1, 3))).toBe(3)
    expect(log.append(by(1, 5))).toBe('OUT_OF_ORDER')
    expect(log.append(by(1, 3), 2)).toBe('OUT_OF_ORDER')
    expect(log.append(by(1, 4))).toBe(4)
  })

  it('gets the first offsets for a batch that it sends again, of its last five', () => {
    const log = new Log()
    for (let i = 0; i < 6; i++) log.append(by(1, i * 2), 2)
    expect(log.append(by(1, 0), 2)).toBe('OUT_OF_ORDER')
    for (let i = 1; i < 6; i++) {
      expect(log.append(by(1, i * 2), 2)).toEqual({ base: i * 2, last: i * 2 + 1, duplicate: true })
    }
    expect(log.end).toBe(12)
  })

  it('gets no duplicate for a batch that only begins like one', () => {
    const log = new Log()
    log.append(by(1, 0), 2)
    expect(log.append(by(1, 0), 1)).toBe('OUT_OF_ORDER')
    expect(log.append(by(1, 0), 3)).toBe('OUT_OF_ORDER')
  })

  it('does not disturb another', () => {
    const log = new Log()
    log.append(by(1, 0))
    expect(log.append(by(2, 0))).toBe(1)
    expect(log.append(by(1, 1))).toBe(2)
    expect(log.append(by(2, 1))).toBe(3)
  })

  it('may start at any sequence when it is not known', () => {
    const log = new Log()
    expect(log.append(by(1, 4711))).toBe(0)
    expect(log.append(by(1, 4712))).toBe(1)
  })

  it('starts at 0 in a newer epoch, and is fenced in an older one, also when it repeats itself', () => {
    const log = new Log()
    log.append(by(1, 0, 3))
    expect(log.append(by(1, 1, 4))).toBe('OUT_OF_ORDER')
    expect(log.append(by(1, 0, 4))).toBe(1)
    expect(log.append(by(1, 0, 3))).toBe('FENCED')
    expect(log.append(by(1, 0, 4))).toEqual({ base: 1, last: 1, duplicate: true })
    expect(log.append(by(1, 1, 4))).toBe(2)
  })

  it('counts sequences in 32 bits and goes on at 0', () => {
    const log = new Log()
    log.append(by(1, 2 ** 31 - 2))
    expect(log.append(by(1, 2 ** 31 - 1), 3)).toBe(1)
    expect(log.append(by(1, 2 ** 31 - 1), 3)).toEqual({ base: 1, last: 3, duplicate: true })
    expect(log.append(by(1, 2))).toBe(4)
    log.append(by(2, 2 ** 31 - 1))
    expect(log.append(by(2, 0))).toBe(6)
  })

  it('is checked without being changed', () => {
    const log = new Log()
    log.append(by(1, 0))
    const before = JSON.stringify(log.state)
    log.state.check(by(1, 1), 1)
    log.state.check(by(1, 0, 9), 1)
    log.state.check(by(2, 0), 1)
    log.state.checkMarker(3, 1)
    expect(JSON.stringify(log.state)).toBe(before)
  })

  it('is described with its epoch, last sequence and open transaction', () => {
    const log = new Log()
    log.append(by(1, 0), 3)
    log.append(by(2, 5, 7, true))
    log.mark(3, false, 1)
    expect([...log.state.producers()]).toEqual([
      { id: 1, epoch: 0, lastSequence: 2, timestamp: NOW, openSince: -1 },
      { id: 2, epoch: 7, lastSequence: 5, timestamp: NOW, openSince: 3 },
      { id: 3, epoch: 1, lastSequence: -1, timestamp: NOW, openSince: -1 },
    ])
    expect([1, 2, 3, 4].map((id) => log.state.openSince(id))).toEqual([-1, 3, -1, -1])
  })

  it('is forgotten when it was idle for long, but not inside a transaction', () => {
    const state = new PartitionState()
    state.appended(by(1, 0), 0, 0, NOW)
    state.appended(by(2, 0, 0, true), 1, 1, NOW)
    state.appended(by(3, 0), 2, 2, NOW + 1)
    state.expireProducers(NOW + 1)
    expect([...state.producers()].map(({ id }) => id)).toEqual([2, 3])
    expect(state.check(by(1, 99), 1)).toBe('ok')
  })

  it('is forgotten when 10,000 others came after it, unless it has a transaction open or was active since', () => {
    const state = new PartitionState()
    const add = (id: number, transactional = false) =>
      state.appended(by(id, 0, 0, transactional), id, id, NOW)
    add(0, true)
    for (let id = 1; id < 10_000; id++) add(id)
    state.appended(by(1, 1), 10_000, 10_000, NOW)
    add(10_000)
    add(10_001)
    expect([...state.producers()].length).toBe(10_000)
    expect([0, 1, 2, 3, 4].map((id) => state.check(by(id, 7, 0, true), 1))).toEqual([
      'OUT_OF_ORDER',
      'OUT_OF_ORDER',
      'ok',
      'ok',
      'OUT_OF_ORDER',
    ])
  })

  it('is kept beyond that bound rather than losing an open transaction', () => {
    const state = new PartitionState()
    for (let id = 0; id <= 10_000; id++) state.appended(by(id, 0, 0, true), id, id, NOW)
    expect([...state.producers()].length).toBe(10_001)
  })
})

describe('a transaction', () => {
  it('holds the stable offset from its first record until its marker', () => {
    const log = new Log()
    log.fill(5)
    expect(log.stable()).toBe(5)
    log.append(by(1, 0, 0, true), 2)
    log.append(by(1, 2, 0, true))
    log.fill(3)
    expect(log.stable()).toBe(5)
    log.mark(1, true)
    expect(log.stable()).toBe(12)
  })

  it('that began first holds it, whichever ends first', () => {
    const log = new Log()
    log.append(by(1, 0, 0, true))
    log.append(by(2, 0, 0, true))
    log.append(by(3, 0, 0, true))
    log.mark(2, true)
    expect(log.stable()).toBe(0)
    log.mark(1, false)
    expect(log.stable()).toBe(2)
    log.mark(3, true)
    expect(log.stable()).toBe(6)
  })

  it('counts as open while a crash could still lose its marker', () => {
    const log = new Log()
    log.fill(2)
    log.append(by(1, 0, 0, true), 3)
    log.mark(1, true)
    expect(log.state.stable(2)).toBe(2)
    expect(log.state.stable(5)).toBe(2)
    expect(log.state.stable(6)).toBe(6)
  })

  it('that ended earlier is waited for as long as one that ended later', () => {
    const log = new Log()
    log.append(by(1, 0, 0, true))
    log.append(by(2, 0, 0, true))
    log.mark(2, true)
    log.mark(1, true)
    expect(log.state.stable(3)).toBe(0)
    expect(log.state.stable(4)).toBe(4)
  })

  it('does not hold the stable offset below the start of the log', () => {
    const log = new Log()
    log.append(by(1, 0, 0, true), 10)
    log.state.trim(7)
    expect(log.stable()).toBe(7)
  })

  it('takes no plain batch of its producer, but a repeated one', () => {
    const log = new Log()
    log.append(by(1, 0, 0, true))
    expect(log.append(by(1, 1))).toBe('INVALID')
    expect(log.append(by(1, 0, 1))).toBe('INVALID')
    expect(log.append(by(1, 0))).toMatchObject({ duplicate: true })
    log.mark(1, true)
    expect(log.append(by(1, 1))).toBe(2)
  })

  it('goes on with its sequences after a marker of the same epoch, and from 0 after one of a newer epoch', () => {
    const log = new Log()
    log.append(by(1, 0, 5, true), 2)
    log.mark(1, true, 5)
    expect(log.append(by(1, 2, 5, true))).toBe(3)
    log.mark(1, true, 6)
    expect(log.append(by(1, 3, 5, true))).toBe('FENCED')
    expect(log.append(by(1, 3, 6, true))).toBe('OUT_OF_ORDER')
    expect(log.append(by(1, 0, 6, true))).toBe(5)
    expect(log.stable()).toBe(5)
  })

  it('is not ended by a coordinator that lost it, nor by a marker for somebody else', () => {
    const log = new Log()
    log.append(by(1, 0, 5, true))
    expect(log.mark(1, true, 4)).toBe('FENCED')
    expect(log.mark(2, true, 0)).toBe(1)
    expect(log.stable()).toBe(0)
  })

  it('that ended without records leaves nothing but its epoch', () => {
    const log = new Log()
    log.mark(1, false, 3)
    expect(log.stable()).toBe(1)
    expect(log.state.aborted(0, 10)).toEqual([])
    expect(log.append(by(1, 0, 2))).toBe('FENCED')
  })
})

describe('the aborted index', () => {
  it('answers the transactions that touch a range, also from their middle, sorted by first offset', () => {
    const log = new Log()
    log.append(by(1, 0, 0, true)) // 0
    log.append(by(2, 0, 0, true)) // 1
    log.append(by(3, 0, 0, true)) // 2
    log.mark(2, false) // 3
    log.append(by(1, 1, 0, true)) // 4
    log.mark(1, false) // 5
    log.mark(3, true) // 6
    log.append(by(4, 0, 0, true)) // 7
    log.mark(4, false) // 8
    const ids = (from: number, to: number) => log.state.aborted(from, to).map(({ producerId }) => producerId)
    expect(log.state.aborted(0, 9)).toEqual([
      { producerId: 1, firstOffset: 0 },
      { producerId: 2, firstOffset: 1 },
      { producerId: 4, firstOffset: 7 },
    ])
    expect(ids(0, 1)).toEqual([1])
    expect(ids(3, 4)).toEqual([1, 2])
    expect(ids(4, 5)).toEqual([1])
    expect(ids(4, 8)).toEqual([1, 4])
    expect(ids(6, 7)).toEqual([])
    expect(ids(9, 100)).toEqual([])
  })

  it('forgets what lies below the start of the log, and nothing that reaches over it', () => {
    const log = new Log()
    for (let i = 0; i < 10; i++) {
      log.append(by(i, 0, 0, true))
      log.mark(i, false)
    }
    log.state.trim(5)
    expect(log.state.aborted(5, 100).map(({ firstOffset }) => firstOffset)).toEqual([
      4, 6, 8, 10, 12, 14, 16, 18,
    ])
    log.state.trim(16)
    expect(log.state.toJSON().aborted.map(({ first }) => first)).toEqual([16, 18])
  })
})

describe('leader epochs', () => {
  const log = () => {
    const state = new PartitionState()
    state.epochStarted(2, 0)
    state.epochStarted(2, 50)
    state.epochStarted(5, 100)
    state.epochStarted(6, 250)
    return state
  }

  it.each([
    ['below all', 1, { epoch: 1, endOffset: 0 }],
    ['a known one', 2, { epoch: 2, endOffset: 100 }],
    ['one that never was', 4, { epoch: 2, endOffset: 100 }],
    ['the one before the newest', 5, { epoch: 5, endOffset: 250 }],
    ['the newest', 6, { epoch: 6, endOffset: 300 }],
    ['above all', 7, undefined],
  ])('end where the next begins: %s', (_, epoch, end) => {
    expect(log().epochEnd(epoch, 300)).toEqual(end)
  })

  it('are unknown where none began', () => {
    expect(new PartitionState().epochEnd(0, 10)).toBeUndefined()
  })

  it('leave no trace when nothing was written in them', () => {
    const state = log()
    state.epochStarted(9, 250)
    expect(state.epochEnd(6, 300)).toEqual({ epoch: 5, endOffset: 250 })
    expect(state.epochEnd(9, 300)).toEqual({ epoch: 9, endOffset: 300 })
  })

  it('never fall', () => {
    expect(() => log().epochStarted(5, 400)).toThrow(/invariant/)
  })

  it('below the start of the log are forgotten, but for the one it lies in', () => {
    const state = log()
    state.trim(120)
    expect(state.epochEnd(2, 300)).toEqual({ epoch: 2, endOffset: 120 })
    expect(state.epochEnd(5, 300)).toEqual({ epoch: 5, endOffset: 250 })
    state.trim(300)
    expect(state.toJSON().epochs).toEqual([{ epoch: 6, start: 250 }])
  })
})
