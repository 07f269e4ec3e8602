import { describe, expect, it } from 'vitest'
import { concat } from '../../../src/log/format/bytes.ts'

describe('pieces of bytes in a row', () => {
  it('are one piece, in their order', () => {
    const pieces = [Uint8Array.of(1, 2), new Uint8Array(0), Uint8Array.of(3)]
    expect(concat(pieces)).toEqual(Uint8Array.of(1, 2, 3))
    expect(concat([])).toEqual(new Uint8Array(0))
  })

  it('are not copied where there is only one', () => {
    const only = Uint8Array.of(1)
    expect(concat([only])).toBe(only)
  })
})
