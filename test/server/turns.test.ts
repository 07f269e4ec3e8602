/** Requests that name very many things let others have their turn. */
import { describe, expect, it } from 'vitest'
import { Turns } from '../../src/server/turns.ts'

/** Turns of the event loop that a test ends. */
class Loop {
  turns = 0
  readonly #waiting: (() => void)[] = []
  readonly dispatcher = {
    turn: (): Promise<void> => {
      this.turns++
      return new Promise((resolve) => this.#waiting.push(resolve))
    },
  } as never

  async next(): Promise<void> {
    for (const resolve of this.#waiting.splice(0)) resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

describe('few things', () => {
  it('are answered at once', () => {
    expect(new Turns(new Loop()).each(upTo(500), (n) => n * 2)).toEqual(upTo(500).map((n) => n * 2))
    expect(new Turns(new Loop()).each([], (n) => n)).toEqual([])
  })

  it('that wait are all begun at once', async () => {
    const begun: number[] = []
    const answered = new Turns(new Loop()).each([1, 2, 3], async (n) => {
      begun.push(n)
      await Promise.resolve()
      return n
    })
    expect(begun).toEqual([1, 2, 3])
    expect(await answered).toEqual([1, 2, 3])
  })
})

describe('many things', () => {
  it('are answered 500 in a turn, in their order', async () => {
    const loop = new Loop()
    const asked: number[] = []
    const answered = new Turns(loop).each(upTo(1_200), (n) => {
      asked.push(n)
      return n
    })
    expect(asked).toHaveLength(500)
    await loop.next()
    expect(asked).toHaveLength(1_000)
    await loop.next()
    expect(await answered).toEqual(upTo(1_200))
    expect(asked).toEqual(upTo(1_200))
    expect(loop.turns).toBe(2)
  })

  it('are as many where they are in lists of lists', async () => {
    const loop = new Loop()
    const turns = new Turns(loop)
    let asked = 0
    const answered = turns.each(upTo(100), (n) =>
      turns.each(upTo(19), (m) => {
        asked++
        return n * 100 + m
      }),
    )
    // The lists count too: each twentieth is one.
    expect(asked).toBe(475)
    for (let turn = 1; turn <= 3; turn++) {
      await loop.next()
      expect(asked).toBeLessThanOrEqual(475 + turn * 500)
    }
    await loop.next()
    expect(await answered).toEqual(upTo(100).map((n) => upTo(19).map((m) => n * 100 + m)))
    expect(loop.turns).toBeGreaterThanOrEqual(3)
  })

  it('fail with the first that fails, also before all are asked', async () => {
    const unhandled: unknown[] = []
    const onUnhandled = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', onUnhandled)
    const loop = new Loop()
    const answered = Promise.resolve(
      new Turns(loop).each(upTo(700), (n) => (n === 3 ? Promise.reject(new Error('three')) : n)),
    )
    const failed = answered.catch(String)
    await new Promise((resolve) => setImmediate(resolve))
    await loop.next()
    expect(await failed).toBe('Error: three')
    process.off('unhandledRejection', onUnhandled)
    expect(unhandled).toEqual([])
  })
})
