import { describe, expect, it } from 'vitest'
import { OffsetMap } from '../../../src/log/file/offset-map.ts'
import { Dice } from '../../torture/dice.ts'

const MiB = 1024 * 1024

/** Keys of all lengths up to 40 bytes, some of which begin alike. */
function keyOf(dice: Dice, kinds: number): Uint8Array {
  const n = dice.below(kinds)
  const key = new Uint8Array(n % 41)
  for (let i = 0; i < key.length; i++) key[i] = (n * 31 + i * 7 + (n >> (i % 16))) & 255
  return key
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}

describe('the newest offsets of keys', () => {
  it.each([1, 2, 3])('are what was set last, wherever in the bytes the key was (seed %i)', (seed) => {
    const dice = new Dice(seed)
    const map = new OffsetMap()
    const model = new Map<string, number>()
    for (let offset = 0; offset < 30_000; offset += 1 + dice.below(5) * 2 ** 20) {
      const key = keyOf(dice, 6_000)
      const at = dice.below(9)
      const bytes = new Uint8Array(at + key.length + 3).fill(0x77)
      bytes.set(key, at)
      const known = model.get(nameOf(key)) ?? -1
      expect(map.get(bytes, at, at + key.length)).toBe(known)
      if (dice.chance(0.7)) {
        const value = offset * 2 ** 20
        map.set(bytes, at, at + key.length, value)
        model.set(nameOf(key), value)
      }
    }
    for (let i = 0; i < 20_000; i++) {
      const key = keyOf(dice, 6_000)
      map.set(key, 0, key.length, i)
      model.set(nameOf(key), i)
    }
    expect(map.size).toBe(model.size)
    for (const [name, offset] of model) {
      const key = new Uint8Array(Buffer.from(name, 'hex'))
      expect(map.get(key, 0, key.length)).toBe(offset)
    }
  })

  it('are kept of keys that are larger than a page, and of the empty one', () => {
    const map = new OffsetMap()
    const large = new Uint8Array(3 * MiB).fill(7)
    const other = large.slice()
    other[other.length - 1] = 8
    const none = new Uint8Array(0)
    map.set(large, 0, large.length, 1)
    map.set(none, 0, 0, 2)
    map.set(other, 0, other.length, 3)
    map.set(large, 0, 5, 4)
    expect([large, other, none].map((key) => map.get(key, 0, key.length))).toEqual([1, 3, 2])
    expect([map.get(large, 0, 5), map.get(large, 0, 6)]).toEqual([4, -1])
    expect(map.heldBytes).toBeGreaterThan(6 * MiB)
  })

  it('take no more memory than they may, also while they grow', () => {
    const maxBytes = 4 * MiB
    const map = new OffsetMap(maxBytes)
    const bytes = new Uint8Array(20)
    let size = 0
    for (; map.fits(100, 2000); size += 100) {
      for (let i = size; i < size + 100; i++) {
        new DataView(bytes.buffer).setUint32(4, i)
        map.set(bytes, 0, 20, i)
      }
      // A table of twice the slots stands beside the old one while that is moved.
      expect(map.heldBytes).toBeLessThanOrEqual(maxBytes)
    }
    expect(map.size).toBe(size)
    expect(size).toBeGreaterThan(45_000)
    expect(new OffsetMap(1).fits(1, 1)).toBe(false)
    for (let i = 0; i < size; i++) {
      new DataView(bytes.buffer).setUint32(4, i)
      if (map.get(bytes, 0, 20) !== i) expect([i, map.get(bytes, 0, 20)]).toEqual([i, i])
    }
  })
})
