/** Errors that callers meet, and everything else, which nobody may swallow. */
import { describe, expect, it } from 'vitest'
import { OdradekError, odradekError } from '../../src/model/errors.ts'

describe('what was caught', () => {
  it('is taken where a caller can meet it', () => {
    const error = new OdradekError('FULL', 'no room')
    expect(odradekError(error)).toBe(error)
  })

  it.each([
    new TypeError('x is not a function'),
    Object.assign(new Error('FULL'), { code: 'FULL' }),
    undefined,
  ])('is thrown on where it is a fault of ours: %s', (fault) => {
    let thrown: unknown = 'nothing'
    try {
      odradekError(fault)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBe(fault)
  })
})
