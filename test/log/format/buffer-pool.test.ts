import { describe, expect, it } from 'vitest'
import { BufferPool, capacityFor } from '../../../src/log/format/buffer-pool.ts'

const KiB = 1024

describe('a capacity', () => {
  it('is that of what is small, and at most a quarter more of what is not', () => {
    expect([0, 1, 65_535, 65_536, 65_537, 81_920, 1_000_000].map(capacityFor)).toEqual([
      0, 1, 65_535, 65_536, 81_920, 81_920, 1_048_576,
    ])
    for (let sizeBytes = 65_536; sizeBytes < 3_000_000; sizeBytes += 997) {
      const capacity = capacityFor(sizeBytes)
      expect(capacity).toBeGreaterThanOrEqual(sizeBytes)
      expect(capacity).toBeLessThanOrEqual(sizeBytes * 1.25)
      expect(capacityFor(capacity)).toBe(capacity)
    }
  })
})

describe('a pool of buffers', () => {
  it('gives what was given back to the next who asks for as much, and to one alone', () => {
    const pool = new BufferPool(1024 * KiB)
    const buffer = pool.take(100 * KiB)
    expect(buffer.length).toBe(112 * KiB)
    pool.give(buffer)
    expect(pool.freeBytes).toBe(112 * KiB)
    expect(pool.take(200 * KiB)).not.toBe(buffer)
    expect(pool.take(110 * KiB)).toBe(buffer)
    expect(pool.freeBytes).toBe(0)
    expect(pool.take(110 * KiB)).not.toBe(buffer)
  })

  it('keeps nothing that is small, nor what is larger than all it may keep', () => {
    const pool = new BufferPool(128 * KiB)
    pool.give(pool.take(64 * KiB - 1))
    pool.give(pool.take(129 * KiB))
    expect(pool.freeBytes).toBe(0)
  })

  it('keeps no more than it may, and lets go of what was not used for longest', () => {
    const pool = new BufferPool(256 * KiB)
    const [old, older, young] = [pool.take(64 * KiB), pool.take(80 * KiB), pool.take(128 * KiB)]
    pool.give(older)
    pool.give(old)
    pool.give(young)
    expect(pool.freeBytes).toBe(192 * KiB)
    expect([pool.take(80 * KiB) === older, pool.take(64 * KiB) === old]).toEqual([false, true])
    expect(pool.take(128 * KiB)).toBe(young)
  })

  it('keeps no more of one capacity than it may, either', () => {
    const pool = new BufferPool(128 * KiB)
    const all = [1, 2, 3].map(() => pool.take(64 * KiB))
    for (const each of all) pool.give(each)
    expect(pool.freeBytes).toBe(128 * KiB)
    expect(pool.take(64 * KiB)).toBe(all[1])
  })

  it('takes no buffer twice, which two would have then', () => {
    const pool = new BufferPool(256 * KiB)
    const buffer = pool.take(64 * KiB)
    pool.give(buffer)
    expect(() => pool.give(buffer)).toThrow('broken invariant')
    expect(pool.freeBytes).toBe(64 * KiB)
  })
})
