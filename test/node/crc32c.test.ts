import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32c as ours } from '../../src/log/format/crc32c.ts'
import { loadCrc32c } from '../../src/node/crc32c.ts'
import { noise } from './codec-kit.ts'

const crc32c = await loadCrc32c()

describe('CRC-32C by the processor', () => {
  it('is in use here', () => {
    expect(crc32c).not.toBe(ours)
  })

  it('is the same function however often it is loaded, so that compiled code stays', async () => {
    expect(await loadCrc32c()).toBe(crc32c)
  })

  it('is what the package says, and that is CRC-32C', async () => {
    const { crc32c: native } = await import('@node-rs/crc32')
    const check = new TextEncoder().encode('123456789')
    expect([native(check), crc32c(check)]).toEqual([0xe3069283, 0xe3069283])
    for (const length of [159, 160, 161, 100_000]) {
      expect(crc32c(noise(length))).toBe(native(noise(length)))
    }
  })

  it('is ours at every length and alignment', () => {
    const bytes = noise(1200)
    for (let length = 0; length <= 1000; length++) {
      const part = bytes.subarray(length % 16, (length % 16) + length)
      expect({ length, crc: crc32c(part) }).toEqual({ length, crc: ours(part) })
    }
  })

  it('is ours of every part', () => {
    const bytes = noise(1200)
    for (let length = 0; length <= 1000; length += 7) {
      expect({ length, crc: crc32c(bytes, 5, 3, 3 + length) }).toEqual({
        length,
        crc: ours(bytes.subarray(3, 3 + length), 5),
      })
    }
    expect(crc32c(bytes, 5)).toBe(ours(bytes, 5))
  })

  it('goes on from that of what came before, whoever made it', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 6 })
    fc.assert(
      fc.property(lengths, fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), (sizes, turns) => {
        const whole = noise(sizes.reduce((sum, size) => sum + size, 0))
        let at = 0
        let crc = 0
        for (const [i, size] of sizes.entries()) {
          crc = (turns[i] ? crc32c : ours)(whole.subarray(at, at + size), crc)
          at += size
        }
        expect(crc).toBe(ours(whole))
      }),
    )
  })

  it.each([
    ['is not installed', () => Promise.reject(new Error('not found'))],
    ['has no such function', () => Promise.resolve({})],
    ['throws', () => Promise.resolve({ crc32c: () => assertNever() })],
    ['is another sum', () => Promise.resolve({ crc32c: (bytes: Uint8Array) => ours(bytes) ^ 1 })],
    ['does not go on', () => Promise.resolve({ crc32c: (bytes: Uint8Array) => ours(bytes) })],
  ])('gives way to ours where the package %s', async (_, load) => {
    expect(await loadCrc32c(load)).toBe(ours)
  })
})

function assertNever(): never {
  throw new Error('no such instruction')
}
