/** What the tests of the codecs share: frames of other encoders, content by rule, and ways to damage it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect } from 'vitest'
import { OdradekError } from '../../src/model/errors.ts'

export interface Frame {
  readonly codec: 'lz4' | 'zstd'
  readonly name: string
  readonly content: 'text' | 'noise'
  readonly size: number
  readonly bytes: string
}

export function framesOf(codec: Frame['codec']): Frame[] {
  const path = join(import.meta.dirname, '../fixtures/compression/frames.json')
  return (JSON.parse(readFileSync(path, 'utf8')) as Frame[]).filter((frame) => frame.codec === codec)
}

/** What the frame holds, by the rules of the script that made it. */
export function contentOf({ content, size }: Frame): Uint8Array {
  return content === 'noise' ? noise(size) : text(size)
}

export function text(size: number): Uint8Array {
  const unit = new TextEncoder().encode('Odradek has a house of its own. ')
  return Uint8Array.from({ length: size }, (_, i) => unit[i % unit.length] as number)
}

export function noise(size: number): Uint8Array {
  let state = 1
  return Uint8Array.from({ length: size }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state >>> 24
  })
}

/** Bytes as records are: some repeat themselves, some do not. */
export const contents: fc.Arbitrary<Uint8Array> = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc
        .tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.nat(3000))
        .map(([unit, times]) =>
          Uint8Array.from({ length: unit.length * times }, (_, i) => unit[i % unit.length] as number),
        ),
    ),
    { maxLength: 5 },
  )
  .map((parts) => concat(...parts))

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

/** `toEqual` of bytes, which walks a large array only where there is a difference to show. */
export function expectBytes(found: Uint8Array, expected: Uint8Array): void {
  expect(found.length).toBe(expected.length)
  if (Buffer.compare(found, expected) !== 0) expect(found).toEqual(expected)
}

/**
 * Calls `decompress` with `bytes` cut at every length, with every bit turned, and with noise instead: it must
 * answer at most `maxBytes`, or throw nothing but CORRUPT_LOG. A cut one passes only where it is `wholeAt`.
 */
export function torment(
  decompress: (bytes: Uint8Array, maxBytes: number) => Uint8Array,
  bytes: Uint8Array,
  wholeAt: number = -1,
): void {
  const maxBytes = 4096
  const attempt = (input: Uint8Array): boolean => {
    try {
      expect(decompress(input, maxBytes).length).toBeLessThanOrEqual(maxBytes)
      return true
    } catch (error) {
      if (!(error instanceof OdradekError) || error.code !== 'CORRUPT_LOG') throw error
      return false
    }
  }
  for (let length = 0; length < bytes.length; length++) {
    const passed = attempt(bytes.subarray(0, length))
    expect({ length, passed }).toEqual({ length, passed: length === wholeAt })
  }
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = bytes.slice()
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
    attempt(changed)
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(bytes.length), (more, keep) => {
      attempt(concat(bytes.subarray(0, keep), more))
    }),
    { numRuns: 500 },
  )
}
