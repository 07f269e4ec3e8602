import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Deque } from '../../src/core/deque.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function filled(count: number): Deque<number> {
  const deque = new Deque<number>()
  for (let i = 0; i < count; i++) deque.push(i)
  return deque
}

describe('deque', () => {
  it('gives back in the order of pushing', () => {
    const deque = filled(3)
    expect([deque.shift(), deque.shift(), deque.shift(), deque.shift()]).toEqual([0, 1, 2, undefined])
    expect(deque.length).toBe(0)
  })

  it('puts what is unshifted in front', () => {
    const deque = filled(2)
    deque.unshift(-1)
    deque.unshift(-2)
    expect([...deque]).toEqual([-2, -1, 0, 1])
    expect(deque.peek()).toBe(-2)
  })

  it('peeks without taking', () => {
    const deque = filled(1)
    expect(deque.peek()).toBe(0)
    expect(deque.length).toBe(1)
    expect(new Deque().peek()).toBeUndefined()
  })

  it('grows from either end while wrapped around', () => {
    const deque = filled(8)
    for (let i = 0; i < 5; i++) deque.shift()
    for (let i = 8; i < 30; i++) deque.push(i)
    for (let i = 4; i >= 0; i--) deque.unshift(i)
    for (let i = -1; i >= -20; i--) deque.unshift(i)
    expect([...deque]).toEqual(Array.from({ length: 50 }, (_, i) => i - 20))
  })

  it('removes from the middle and keeps the order of the rest', () => {
    const deque = filled(5)
    expect(deque.remove(2)).toBe(true)
    expect(deque.remove(2)).toBe(false)
    expect([...deque]).toEqual([0, 1, 3, 4])
    deque.push(9)
    expect([...deque]).toEqual([0, 1, 3, 4, 9])
  })

  it('removes only the first of equals', () => {
    const deque = new Deque<string>()
    for (const x of ['a', 'b', 'a']) deque.push(x)
    expect(deque.remove('a')).toBe(true)
    expect([...deque]).toEqual(['b', 'a'])
  })

  it('is empty and usable after clear', () => {
    const deque = filled(100)
    deque.clear()
    expect([deque.length, deque.peek(), deque.shift(), [...deque]]).toEqual([0, undefined, undefined, []])
    deque.push(7)
    expect([...deque]).toEqual([7])
  })

  it('behaves as an array does, whatever is done to it', () => {
    const steps = {
      push: (deque: Deque<number>, model: number[], n: number) => {
        deque.push(n)
        model.push(n)
      },
      unshift: (deque: Deque<number>, model: number[], n: number) => {
        deque.unshift(n)
        model.unshift(n)
      },
      remove: (deque: Deque<number>, model: number[], n: number) => {
        const at = model.indexOf(n)
        expect(deque.remove(n)).toBe(at >= 0)
        if (at >= 0) model.splice(at, 1)
      },
      shift: (deque: Deque<number>, model: number[]) => expect(deque.shift()).toBe(model.shift()),
      clear: (deque: Deque<number>, model: number[]) => {
        deque.clear()
        model.length = 0
      },
      // Long runs of one kind make the ring grow and shrink.
      fill: (deque: Deque<number>, model: number[], n: number) => {
        for (let i = 0; i < n; i++) steps.push(deque, model, i)
      },
      drain: (deque: Deque<number>, model: number[], n: number) => {
        for (let i = 0; i < n; i++) steps.shift(deque, model)
      },
    }
    const names = Object.keys(steps) as (keyof typeof steps)[]
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...names), fc.nat(70)), { maxLength: 80 }), (run) => {
        const deque = new Deque<number>()
        const model: number[] = []
        for (const [name, n] of run) {
          steps[name](deque, model, n)
          expect([deque.length, deque.peek()]).toEqual([model.length, model[0]])
        }
        expect([...deque]).toEqual(model)
      }),
      { numRuns: 200 },
    )
  })

  it('gives the memory of a burst back', () => {
    const deque = new Deque<number>()
    const heapBytes = (): number => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const before = heapBytes()
    for (let i = 0; i < 1_000_000; i++) deque.push(i)
    expect(heapBytes() - before).toBeGreaterThan(4_000_000)
    while (deque.length > 2) deque.shift()
    expect(heapBytes() - before).toBeLessThan(1_000_000)
    expect([...deque]).toEqual([999_998, 999_999])
  })

  it('releases what it no longer holds', async () => {
    const deque = new Deque<object>()
    const fill = (): WeakRef<object>[] => {
      const things = Array.from({ length: 6 }, (_, i) => ({ i }))
      for (const thing of things) deque.push(thing)
      deque.shift()
      deque.shift()
      deque.remove(things[5] as object)
      return things.map((thing) => new WeakRef(thing))
    }
    const refs = fill()
    // A WeakRef is kept alive until the end of the turn that made it.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    expect(refs.map((ref) => ref.deref() !== undefined)).toEqual([false, false, true, true, true, false])
    expect(deque.length).toBe(3)
  })
})
