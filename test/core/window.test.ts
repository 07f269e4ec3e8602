import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DeliveryRecord } from '../../src/core/delivery.ts'
import { Window } from '../../src/core/window.ts'
import { recordAt } from '../support/rows.ts'

function enter(window: Window, ...offsets: number[]): DeliveryRecord[] {
  return offsets.map((offset) => {
    const record = recordAt(offset)
    window.enter(record, offset)
    return record
  })
}

describe('window', () => {
  it('commits the lowest unsettled offset, and next when nothing is unsettled', () => {
    const window = new Window(5)
    expect([window.committed, window.next]).toEqual([5, 5])
    enter(window, 5, 6, 7)
    expect([window.committed, window.next]).toEqual([5, 8])
    window.leave(6)
    expect(window.committed).toBe(5)
    window.leave(5)
    expect(window.committed).toBe(7)
    window.leave(7)
    expect([window.committed, window.next, window.unsettled]).toEqual([8, 8, 0])
  })

  it('passes over gaps as if they were settled', () => {
    const window = new Window(0)
    enter(window, 3, 9)
    expect(window.committed).toBe(3)
    window.leave(3)
    expect(window.committed).toBe(9)
    window.skip(20)
    expect([window.committed, window.next]).toEqual([9, 20])
    window.leave(9)
    expect(window.committed).toBe(20)
    window.skip(30)
    expect(window.committed).toBe(30)
  })

  it('grows with what it spans and keeps every record', () => {
    const window = new Window(0)
    const records = enter(window, ...Array.from({ length: 5_000 }, (_, i) => i * 3))
    expect([...window]).toEqual(records)
    expect(window.at(2_997)).toBe(records[999])
    expect([window.at(2_998), window.at(-1), window.at(14_998)]).toEqual([undefined, undefined, undefined])
    expect(window.head()).toBe(records[0])
  })

  it('has no head when it is empty, and starts anew where it is told', () => {
    const window = new Window(0)
    enter(window, 0, 40)
    window.reset(7)
    expect([window.head(), window.committed, window.next, window.unsettled]).toEqual([undefined, 7, 7, 0])
    expect([...window]).toEqual([])
    expect(window.at(40)).toBeUndefined()
  })

  it('agrees with a set of offsets, whatever settles in whatever order', () => {
    const step = fc.record({
      what: fc.constantFrom('enter', 'enter', 'leave', 'leave', 'skip', 'replace'),
      n: fc.nat(40),
    })
    fc.assert(
      fc.property(fc.nat(1_000), fc.array(step, { maxLength: 120 }), (start, steps) => {
        const window = new Window(start)
        const unsettled = new Map<number, DeliveryRecord>()
        let next = start
        let settledUpTo = start
        for (const { what, n } of steps) {
          const offsets = [...unsettled.keys()]
          const chosen = offsets[n % Math.max(1, offsets.length)]
          if (what === 'enter') {
            const offset = next + (n % 3)
            const [record] = enter(window, offset) as [DeliveryRecord]
            unsettled.set(offset, record)
            next = offset + 1
          } else if (what === 'skip') {
            next += n
            window.skip(next)
          } else if (chosen === undefined) continue
          else if (what === 'leave') {
            unsettled.delete(chosen)
            window.leave(chosen)
          } else {
            const successor = recordAt(chosen)
            unsettled.set(chosen, successor)
            window.replace(chosen, successor)
          }
          const left = [...unsettled.keys()].sort((a, b) => a - b)
          expect(window.unsettled).toBe(left.length)
          expect(window.next).toBe(next)
          expect(window.committed).toBe(left[0] ?? next)
          expect(window.committed).toBeGreaterThanOrEqual(settledUpTo)
          settledUpTo = window.committed
          expect(window.head()).toBe(unsettled.get(left[0] ?? -1))
          expect([...window]).toEqual(left.map((offset) => unsettled.get(offset)))
          const inRuns = window
            .settledRuns()
            .flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i))
          const beyond = Array.from({ length: next - window.committed }, (_, i) => window.committed + i)
          expect(inRuns).toEqual(beyond.filter((offset) => !unsettled.has(offset)))
        }
      }),
    )
  })
})
