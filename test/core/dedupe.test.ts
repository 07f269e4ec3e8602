import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DedupeWindow } from '../../src/core/dedupe.ts'

const at = (offset: number) => ({ partition: 0, offset })

describe('dedupe window', () => {
  it('answers where the record of an id went, until the window has passed', () => {
    const window = new DedupeWindow(100, 10)
    window.set('a', at(7), 1_000)
    expect(window.get('a', 1_000)).toEqual(at(7))
    expect(window.get('a', 1_099.9)).toEqual(at(7))
    expect(window.get('b', 1_000)).toBeUndefined()
    expect(window.get('a', 1_100)).toBeUndefined()
    expect(window.size).toBe(0)
  })

  it('forgets the oldest when there are too many', () => {
    const window = new DedupeWindow(100, 3)
    for (let i = 0; i < 5; i++) window.set(`${i}`, at(i), 0)
    expect(window.size).toBe(3)
    expect(['0', '1', '2', '3', '4'].map((id) => window.get(id, 0)?.offset)).toEqual([
      undefined,
      undefined,
      2,
      3,
      4,
    ])
  })

  it('forgets one by its id, and the oldest when its bounds are narrowed', () => {
    const window = new DedupeWindow(100, 10)
    for (let i = 0; i < 6; i++) window.set(`${i}`, at(i), i)
    window.delete('4')
    window.delete('4')
    expect(window.get('4', 6)).toBeUndefined()
    window.limit(100, 2)
    expect([0, 1, 2, 3, 4, 5].filter((i) => window.get(`${i}`, 6) !== undefined)).toEqual([3, 5])
    window.limit(5, 10)
    expect([0, 1, 2, 3, 4, 5].filter((i) => window.get(`${i}`, 9) !== undefined)).toEqual([5])
  })

  it('forgets all that is too old at once when time jumps', () => {
    const window = new DedupeWindow(100, 1_000)
    for (let i = 0; i < 500; i++) window.set(`${i}`, at(i), i)
    window.expire(550)
    expect(window.size).toBe(49)
    expect(window.get('450', 550)).toBeUndefined()
    expect(window.get('451', 550)).toEqual(at(451))
    window.expire(1e9)
    expect(window.size).toBe(0)
  })

  it('keeps its size while time stands still', () => {
    const window = new DedupeWindow(100, 50)
    for (let i = 0; i < 10_000; i++) window.set(`${i}`, at(i), 5)
    expect(window.size).toBe(50)
    expect(window.get('9950', 5)).toEqual(at(9_950))
    expect(window.get('9949', 5)).toBeUndefined()
  })

  it('starts an id anew that is set again', () => {
    const window = new DedupeWindow(100, 2)
    window.set('a', at(1), 0)
    window.set('b', at(2), 50)
    window.set('a', at(3), 90)
    expect(window.size).toBe(2)
    expect(window.get('a', 120)).toEqual(at(3))
    window.set('c', at(4), 130)
    expect(['a', 'b', 'c'].map((id) => window.get(id, 130)?.offset)).toEqual([3, undefined, 4])
  })

  it('may remember an expired id again', () => {
    const window = new DedupeWindow(100, 2)
    window.set('a', at(1), 0)
    window.set('a', at(2), 200)
    expect([window.size, window.get('a', 299)?.offset]).toEqual([1, 2])
  })

  it('agrees with a list that is searched', () => {
    const step = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      wait: fc.nat(60),
      set: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (steps, maxRecords) => {
        const window = new DedupeWindow(100, maxRecords)
        let model: { id: string; offset: number; at: number }[] = []
        let now = 0
        for (const [offset, { id, wait, set }] of steps.entries()) {
          now += wait
          model = model.filter((entry) => now - entry.at < 100)
          if (set) {
            model = [...model.filter((entry) => entry.id !== id), { id, offset, at: now }].slice(-maxRecords)
            window.set(id, at(offset), now)
          } else {
            expect(window.get(id, now)?.offset).toBe(model.find((entry) => entry.id === id)?.offset)
          }
          expect(window.size).toBe(model.length)
        }
      }),
      { numRuns: 300 },
    )
  })
})
