/** How often a message of one address is told. */
import { beforeEach, describe, expect, it } from 'vitest'
import { SparseLog } from '../../src/server/sparse-log.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

const MINUTE_MS = 60_000

describe('a sparse log', () => {
  let clock: ManualClock
  let log: SparseLog
  beforeEach(() => {
    clock = new ManualClock()
    log = new SparseLog(clock)
  })

  it('tells the first of an address, and the next a minute later, with how many were left out', async () => {
    expect(log.take('10.0.0.1')).toBe(0)
    expect(log.take('10.0.0.1')).toBeUndefined()
    await clock.advance(MINUTE_MS - 1)
    expect(log.take('10.0.0.1')).toBeUndefined()
    await clock.advance(1)
    expect(log.take('10.0.0.1')).toBe(2)
    expect(log.take('10.0.0.1')).toBeUndefined()
    await clock.advance(MINUTE_MS)
    expect(log.take('10.0.0.1')).toBe(1)
  })

  it('counts each address by itself', () => {
    expect(log.take('10.0.0.1')).toBe(0)
    expect(log.take('10.0.0.2')).toBe(0)
    expect(log.take('10.0.0.1')).toBeUndefined()
  })

  it('takes all further addresses as one where there are too many', async () => {
    for (let i = 0; i < 1_000; i++) expect(log.take(`known-${i}`)).toBe(0)
    expect(log.take('new-1')).toBe(0)
    expect(log.take('new-2')).toBeUndefined()
    expect(log.take('known-0')).toBeUndefined()
    await clock.advance(MINUTE_MS)
    // Those of a minute ago are gone one by one, the longest quiet first: there is room again, for each by itself.
    expect(log.take('new-2')).toBe(0)
    expect(log.take('new-3')).toBe(0)
    expect(log.take('new-2')).toBeUndefined()
  })
})
