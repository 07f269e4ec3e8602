import { describe, expect, it } from 'vitest'
import { type Copied, SlabFiller } from '../../../src/log/file/slab.ts'
import { BufferPool } from '../../../src/log/format/buffer-pool.ts'

const KiB = 1024

function fillerOf(pool = new BufferPool(1024 * KiB)): {
  pool: BufferPool
  copy: (n: number) => Copied
  filler: SlabFiller
} {
  const filler = new SlabFiller(pool)
  let byte = 0
  return { pool, filler, copy: (sizeBytes) => filler.copy(new Uint8Array(sizeBytes).fill(++byte)) }
}

describe('memory that batches are copied to', () => {
  it('has them one behind the other, and as they were', () => {
    const { copy } = fillerOf()
    const copies = [copy(1000), copy(2000), copy(500)]
    expect(new Set(copies.map(({ slab }) => slab)).size).toBe(1)
    expect(copies.map(({ bytes }) => bytes.byteOffset)).toEqual([0, 1000, 3000])
    expect(copies.map(({ bytes }) => [bytes.length, bytes[0], bytes.at(-1)])).toEqual([
      [1000, 1, 1],
      [2000, 2, 2],
      [500, 3, 3],
    ])
  })

  it('begins small, and doubles as it fills, up to 512 KiB', () => {
    const { copy } = fillerOf()
    const sizes = new Set<number>()
    for (let i = 0; i < 1000; i++) sizes.add(copy(3 * KiB).slab.bytes.length / KiB)
    expect([...sizes]).toEqual([4, 8, 16, 32, 64, 128, 256, 512])
  })

  it('begins small again after a rest', () => {
    const { copy, filler } = fillerOf()
    for (let i = 0; i < 100; i++) copy(3 * KiB)
    filler.rest()
    filler.rest()
    expect(copy(3 * KiB).slab.bytes.length).toBe(4 * KiB)
  })

  it('is of its own for a large batch, and others go on where they were', () => {
    const { copy } = fillerOf()
    const [small, large, next] = [copy(100), copy(300 * KiB), copy(100)]
    expect(large.slab).not.toBe(small.slab)
    expect(next.slab).toBe(small.slab)
    expect(next.bytes.byteOffset).toBe(100)
    large.slab.release()
    expect(copy(300 * KiB).bytes.buffer).toBe(large.bytes.buffer)
  })

  it('is used again when nobody holds it any more, neither batches nor who fills it', () => {
    const { copy, pool, filler } = fillerOf()
    const copies = Array.from({ length: 40 }, () => copy(100 * KiB))
    const [full] = copies.slice(-8) as [Copied]
    const same = copies.filter(({ slab }) => slab === full.slab)
    for (const { slab } of same.slice(1)) slab.release()
    full.slab.hold()
    full.slab.release()
    expect(pool.freeBytes).toBe(0)
    full.slab.release()
    expect(pool.freeBytes).toBe(full.slab.bytes.length)
    const last = copies.at(-1) as Copied
    for (const { slab } of copies) if (slab === last.slab) slab.release()
    expect(pool.freeBytes).toBe(full.slab.bytes.length)
    filler.rest()
    expect(pool.freeBytes).toBe(full.slab.bytes.length + last.slab.bytes.length)
  })
})

describe('a slab', () => {
  it('is not let go of more often than it is held', () => {
    const { slab } = fillerOf().copy(300 * KiB)
    slab.release()
    expect(() => slab.release()).toThrow('broken invariant')
  })
})
