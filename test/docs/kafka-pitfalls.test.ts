/** Every pitfall of docs/kafka-pitfalls.md names a test that exists. */
import { describe, expect, it } from 'vitest'
import { lost, proofsOf } from './proofs.ts'

const rows = proofsOf('docs/kafka-pitfalls.md')

describe('docs/kafka-pitfalls.md', () => {
  it('knows a good many', () => {
    expect(rows.length).toBeGreaterThan(75)
  })

  it.each(rows)('"$claim" is held by a test', (row) => {
    expect(lost(row)).toBeUndefined()
  })

  it('would notice a test that is gone', () => {
    const [first] = rows
    expect(lost({ claim: 'a', file: first?.file ?? '', title: 'no such title' })).toMatch(/is not in/)
    expect(lost({ claim: 'a', file: 'server/none.test.ts', title: 'b' })).toMatch(/no file/)
    expect(lost({ claim: 'a', file: '', title: '' })).toBe('no test is named')
  })
})
