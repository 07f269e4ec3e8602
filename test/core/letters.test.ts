/** What is remembered of dead letters, so that no failure has two: in proportion to what is retained of them. */
import { describe, expect, it } from 'vitest'
import { LetterIndex } from '../../src/core/letters.ts'
import { usedBytes } from '../support/garbage.ts'
import { upTo, World } from '../support/world.ts'

const READERS = ['alice', 'bob']

describe('an index of dead letters', () => {
  it('finds the letter of a failure, and tells sources and offsets apart', () => {
    const letters = new LetterIndex()
    letters.add('topic/0/alice', 5, 0, 0)
    letters.add('topic/0/bob', 5, 1, 0)
    letters.add('topic/1/alice', 5, 2, 0)
    expect(letters.find('topic/0/alice', 5, 0)).toBe(0)
    expect(letters.find('topic/0/bob', 5, 0)).toBe(1)
    expect(letters.find('topic/1/alice', 5, 0)).toBe(2)
    expect(letters.find('topic/0/alice', 4, 0)).toBeUndefined()
    expect(letters.find('topic/2/alice', 5, 0)).toBeUndefined()
  })

  it('forgets a letter that did not get into the log after all, and no other', () => {
    const letters = new LetterIndex()
    letters.add('a', 5, 0, 0)
    letters.add('b', 5, 1, 0)
    letters.forget('a', 5)
    for (const [source, offset] of [
      ['a', 5],
      ['b', 6],
      ['c', 5],
    ] as const) {
      letters.forget(source, offset)
    }
    expect(letters.find('a', 5, 0)).toBeUndefined()
    expect(letters.find('b', 5, 0)).toBe(1)
    expect(letters.size).toBe(1)
  })

  it('keeps nothing of sources whose letters retention took, and finds those that fail again', () => {
    const letters = new LetterIndex()
    for (const i of upTo(1_000)) {
      letters.add(`topic/0/reader-${i}`, 0, i, Math.max(0, i - 9))
      expect(letters.size).toBeLessThanOrEqual(85)
    }
    expect(letters.find('topic/0/reader-999', 0, 990)).toBe(999)
    expect(letters.find('topic/0/reader-0', 0, 990)).toBeUndefined()
    letters.add('topic/0/reader-0', 0, 1_000, 991)
    expect(letters.find('topic/0/reader-0', 0, 991)).toBe(1_000)
  })

  it('finds none that retention took, and the newest where there were several', () => {
    const letters = new LetterIndex()
    letters.add('a', 5, 3, 0)
    expect(letters.find('a', 5, 3)).toBe(3)
    expect(letters.find('a', 5, 4)).toBeUndefined()
    letters.add('a', 5, 9, 4)
    expect(letters.find('a', 5, 4)).toBe(9)
    expect(letters.size).toBe(1)
  })

  it('remembers no more than twice what is retained, and a few', () => {
    const letters = new LetterIndex()
    const retained = 100
    let most = 0
    for (const i of upTo(10_000)) {
      letters.add(`source ${i % 7}`, i, i, Math.max(0, i + 1 - retained))
      most = Math.max(most, letters.size)
    }
    expect(most).toBeLessThanOrEqual(2 * retained + 64)
    const start = 10_000 - retained
    for (const i of upTo(10_000)) {
      expect(letters.find(`source ${i % 7}`, i, start)).toBe(i < start ? undefined : i)
    }
  })

  it('costs at most sixty bytes for a letter', async () => {
    const letters = new LetterIndex()
    const before = await usedBytes()
    const retained = 65_536
    for (const i of upTo(retained)) letters.add('a topic id/0/odradek.reader.alice', 3 * i, i, 0)
    const cost = ((await usedBytes()) - before) / retained
    expect(letters.size).toBe(retained)
    expect(cost).toBeLessThan(60)
  })
})

describe('a topic of dead letters', () => {
  it('has one of each failure, in whatever partition, also after a replay', async () => {
    const { broker, settle } = new World()
    await broker.createTopic('orders')
    await broker.createTopic('dlq.orders', { partitions: 2 })
    const fail = (): never => {
      throw new Error('never')
    }
    const options = { from: 'earliest', retry: { attempts: 1 }, order: 'none' } as const
    for (const id of READERS) await broker.subscribe('orders', fail, { ...options, id })
    for (const value of upTo(100)) broker.tryPublish('orders', value)
    await broker.idle()
    for (const id of READERS) await broker.resetOffset('orders', id, 'earliest')
    await settle()
    await broker.idle()
    const { partitions } = broker.describe('dlq.orders')
    expect(partitions.map(({ records }) => records > 0)).toEqual([true, true])
    expect(partitions.reduce((sum, { records }) => sum + records, 0)).toBe(200)
  })
})
