import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32c as ours } from '../../src/log/format/crc32c.ts'
import { crc32cWith, lazyCrc32c, loadCrc32c, OURS_UNTIL_BYTES } from '../../src/node/crc32c.ts'
import { type LoadPackage, loadPackage } from '../../src/node/packages.ts'
import { noise } from './codec-kit.ts'

const crc32c = await loadCrc32c()

describe('CRC-32C by the processor', () => {
  it('is in use here, from 160 bytes on', async () => {
    const { crc32c: mixed, ready } = crc32cWith(counting)
    await ready()
    const before = calls
    for (const length of [0, 159, 160, 161]) mixed(noise(length))
    expect(calls - before).toBe(2)
  })

  it('is the same function whoever asks, so that compiled code stays', async () => {
    expect(lazyCrc32c()).toBe(crc32c)
    expect(await loadCrc32c()).toBe(crc32c)
  })

  it('is looked for when there was much to sum, once, and takes over when it is there', async () => {
    const asked: string[] = []
    const { crc32c: lazy, ready } = crc32cWith((name) => {
      asked.push(name)
      return counting(name)
    })
    const bytes = noise(1024 * 1024)
    const sum = ours(bytes)
    for (let i = 0; i < 1000; i++) lazy(noise(159))
    for (let left = OURS_UNTIL_BYTES; left > bytes.length; left -= bytes.length) lazy(bytes)
    expect(asked).toEqual([])
    // In the call that asks, and until it is there, ours goes on.
    const before = calls
    expect([lazy(bytes), lazy(bytes)]).toEqual([sum, sum])
    expect([asked, calls - before]).toEqual([['@node-rs/crc32'], 0])
    await ready()
    // The package was asked for its self-test too.
    const tested = calls
    expect([lazy(bytes), calls - tested]).toEqual([sum, 1])
    expect(asked).toHaveLength(1)
  })

  it('is left alone when it cannot be had, and ours goes on', async () => {
    let asked = 0
    const { crc32c: lazy } = crc32cWith(() => {
      asked++
      return Promise.reject(new Error('not found'))
    })
    const bytes = noise(1024 * 1024)
    for (let sum = 0; sum <= 2 * OURS_UNTIL_BYTES; sum += bytes.length) {
      expect(lazy(bytes)).toBe(ours(bytes))
      await Promise.resolve()
    }
    expect(asked).toBe(1)
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
    const { crc32c: lazy, ready } = crc32cWith(load)
    await ready()
    expect(lazy(noise(1000), 7)).toBe(ours(noise(1000), 7))
  })
})

/** How often the package was called, by those who loaded it with `counting`. */
let calls = 0

const counting: LoadPackage = async (name) => {
  const { crc32c: native } = (await loadPackage(name)) as { crc32c: typeof ours }
  return {
    crc32c: (bytes: Uint8Array, previous: number) => {
      calls++
      return native(bytes, previous)
    },
  }
}

function assertNever(): never {
  throw new Error('no such instruction')
}
