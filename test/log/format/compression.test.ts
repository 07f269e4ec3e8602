import { describe, expect, it } from 'vitest'
import { compressionName, noCompression } from '../../../src/log/format/compression.ts'
import { codeOf } from './helpers.ts'

describe('without compression codecs', () => {
  it('a compressed batch is refused, both ways', () => {
    expect(codeOf(() => noCompression.compress(1, new Uint8Array(1)))).toBe('UNSUPPORTED')
    expect(codeOf(() => noCompression.decompress(1, new Uint8Array(1), 10))).toBe('UNSUPPORTED')
  })

  it.each([
    [1, /gzip/],
    [2, /snappy/],
    [3, /lz4/],
    [4, /zstd/],
    [7, /codec 7/],
  ])('the refusal names codec %d as %s', (type, name) => {
    expect(() => noCompression.decompress(type, new Uint8Array(1), 10)).toThrow(name)
  })

  it('no compression has a name too', () => {
    expect(compressionName(0)).toBe('none')
  })
})
