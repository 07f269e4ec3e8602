import { describe, expect, it } from 'vitest'
import { closeAll, closeQuietly } from '../../../src/log/file/close-all.ts'

describe('closing several things', () => {
  const steps = (closed: string[]) => [
    async () => void closed.push('a'),
    () => Promise.reject(new Error('b does not close')),
    () => undefined,
    () => {
      throw new Error('c throws')
    },
    async () => void closed.push('d'),
  ]

  it('closes all of them, in order, and then throws what failed first', async () => {
    const closed: string[] = []
    await expect(closeAll(steps(closed))).rejects.toThrow('b does not close')
    expect(closed).toEqual(['a', 'd'])
    await closeAll(steps(closed).slice(4))
    expect(closed).toEqual(['a', 'd', 'd'])
  })

  it('says nothing where something else has failed before', async () => {
    const closed: string[] = []
    await closeQuietly(steps(closed))
    expect(closed).toEqual(['a', 'd'])
  })
})
