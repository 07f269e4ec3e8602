import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import { concat } from '../../../src/log/format/bytes.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { crc32cOfBatches, joinedCrc32c } from '../../../src/log/format/crc32c-joined.ts'
import { patchBatch } from '../../../src/log/format/record-batch.ts'

function batchOf(sizeBytes: number, fill: number): Uint8Array {
  const builder = new BatchBuilder()
  builder.open(0, 0)
  builder.add(new Uint8Array(sizeBytes).fill(fill), null, null, 0)
  const bytes = builder.finish({ leaderEpoch: 0 })
  patchBatch(bytes, 0, 4711, 42)
  return bytes
}

describe('the CRC-32C of two things in a row', () => {
  it('is that of both in one piece', () => {
    const bytes = fc.uint8Array({ maxLength: 300 })
    fc.assert(
      fc.property(bytes, bytes, (one, two) => {
        expect(joinedCrc32c(crc32c(one), crc32c(two), two.length)).toBe(crc32c(concat([one, two])))
      }),
    )
  })

  it('is so for long ones, and for lengths of a single bit', () => {
    const one = Uint8Array.of(1, 2, 3)
    for (const length of [1, 2, 1 << 16, (1 << 20) + 1, (1 << 22) - 1]) {
      const two = new Uint8Array(length).fill(7)
      expect(joinedCrc32c(crc32c(one), crc32c(two), length)).toBe(crc32c(two, crc32c(one)))
    }
  })

  it('goes on from any sum, as the journal does from its secret', () => {
    const two = Uint8Array.of(9, 8, 7)
    expect(joinedCrc32c(0xdeadbeef, crc32c(two), 3)).toBe(crc32c(two, 0xdeadbeef))
  })

  it('handles lengths beyond 32 bits', () => {
    const halves = joinedCrc32c(joinedCrc32c(5, 0, 2 ** 32), 0, 2 ** 32)
    expect(joinedCrc32c(5, 0, 2 ** 33)).toBe(halves)
  })
})

describe('the CRC-32C of batches', () => {
  it('is that of their bytes, by their own sums or without', () => {
    for (const sizeBytes of [0, 100, 8_000, 9_000, 70_000]) {
      const batch = batchOf(sizeBytes, sizeBytes)
      expect(crc32cOfBatches(batch, undefined, crc32c)).toBe(crc32c(batch))
      expect(crc32cOfBatches(batch, 99, crc32c)).toBe(crc32c(batch, 99))
    }
    const several = concat([batchOf(9_000, 1), batchOf(10, 2), batchOf(20_000, 3)])
    expect(crc32cOfBatches(several, 7, crc32c)).toBe(crc32c(several, 7))
    expect(crc32cOfBatches(several, undefined, crc32c)).toBe(crc32c(several))
    const others = concat([
      batchOf(10, 1),
      batchOf(20, 2),
      batchOf(9_000, 3),
      batchOf(30_000, 4),
      batchOf(5, 5),
    ])
    expect(crc32cOfBatches(others, 7, crc32c)).toBe(crc32c(others, 7))
    expect(crc32cOfBatches(new Uint8Array(0), 7, crc32c)).toBe(7)
  })

  it('sums all bytes where lengths do not fit: too long, negative, or of nothing', () => {
    const sound = batchOf(9_000, 1)
    for (const size of [2 ** 31 - 1, 8_000, -1, -12, -(2 ** 31)]) {
      const bytes = concat([sound, new Uint8Array(9_000), sound])
      new DataView(bytes.buffer).setInt32(sound.length + 8, size)
      expect(crc32cOfBatches(bytes, 7, crc32c)).toBe(crc32c(bytes, 7))
    }
    for (let length = 0; length < 30; length++) {
      const bytes = new Uint8Array(length).fill(1)
      expect(crc32cOfBatches(bytes, undefined, crc32c)).toBe(crc32c(bytes))
    }
  })

  it('looks at little of large ones, alone or among others', () => {
    let summed = 0
    const counted = (bytes: Uint8Array, previous?: number, from = 0, to = bytes.length): number => {
      summed += to - from
      return crc32c(bytes, previous, from, to)
    }
    crc32cOfBatches(batchOf(70_000, 1), 0, counted)
    expect(summed).toBeLessThan(100)
    const small = batchOf(100, 2)
    crc32cOfBatches(concat([batchOf(70_000, 1), small, batchOf(20_000, 3)]), 0, counted)
    expect(summed).toBeLessThan(200 + small.length)
  })
})
