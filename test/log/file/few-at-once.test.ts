import { expect, it } from 'vitest'
import { fewAtOnce } from '../../../src/log/file/few-at-once.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

it('does a few at once, and answers in order', async () => {
  let underWay = 0
  let most = 0
  const results = await fewAtOnce(
    Array.from({ length: 50 }, (_, i) => i),
    async (i) => {
      most = Math.max(most, ++underWay)
      for (let n = i % 5; n >= 0; n--) await turn()
      underWay--
      return i * 2
    },
  )
  expect(results).toEqual(Array.from({ length: 50 }, (_, i) => i * 2))
  expect(most).toBe(8)
})

it('answers nothing for nothing', async () => {
  expect(await fewAtOnce(new Map<string, number>().values(), async () => 1)).toEqual([])
})

it('begins nothing after a failure, and throws it when nothing is under way any more', async () => {
  const begun: number[] = []
  let underWay = 0
  const work = async (i: number): Promise<void> => {
    begun.push(i)
    underWay++
    await turn()
    if (i === 3) {
      underWay--
      throw new Error('three')
    }
    await turn()
    underWay--
  }
  const items = Array.from({ length: 50 }, (_, i) => i)
  await expect(fewAtOnce(items, work)).rejects.toThrow('three')
  expect(underWay).toBe(0)
  expect(begun.length).toBeLessThan(10)
})
