/** Every promise of docs/guarantees.md names a test that exists, by its file and its title. */
import { describe, expect, it } from 'vitest'
import { lost, proofsOf } from './proofs.ts'

const rows = proofsOf('docs/guarantees.md')

describe('docs/guarantees.md', () => {
  it('promises a lot', () => {
    expect(rows.length).toBeGreaterThan(80)
  })

  it.each(rows)('"$claim" is proved by a test', (row) => {
    expect(lost(row)).toBeUndefined()
  })
})
