import { describe, expect, it } from 'vitest'
import { BufferPool } from '../../../src/log/format/buffer-pool.ts'
import { ABORTED, CONTROL, POISON, Slab } from '../../../src/log/memory/slab.ts'

/** A slab from offset 100 on of batches with 3 offsets each, one for every letter: plain, aborted, control, poison. */
function slabOf(letters: string): Slab {
  const flags: Record<string, number> = { p: 0, a: ABORTED, c: CONTROL, x: POISON }
  const slab = new Slab(100, 10)
  for (const letter of letters) {
    const entry = { next: slab.next + 3, sizeBytes: 10, maxTimestamp: 1, flags: flags[letter] as number }
    slab.append(new Uint8Array(7).fill(letter.charCodeAt(0)), entry)
  }
  return slab
}

describe('a run of a slab', () => {
  it.each([
    ['goes over plain batches', 'ppp', 100, 109, 99, [100, 9, 109]],
    ['starts inside a batch', 'ppp', 104, 109, 99, [104, 5, 109]],
    ['ends at the limit', 'ppp', 100, 106, 99, [100, 6, 106]],
    ['ends inside of a batch when it has enough', 'ppp', 101, 109, 4, [101, 4, 105]],
    ['ends before what is hidden, and goes on behind it', 'pacp', 100, 112, 99, [100, 3, 109]],
    ['starts behind what is hidden', 'acp', 101, 109, 99, [106, 3, 109]],
    ['is empty when all is hidden', 'aca', 100, 109, 99, [109, 0, 109]],
    ['does not skip ahead before it had the last row', 'pa', 100, 106, 2, [100, 2, 102]],
    ['skips what is hidden with its last row', 'pap', 100, 109, 3, [100, 3, 106]],
    ['ends before poison', 'pxp', 100, 109, 99, [100, 3, 103]],
    ['is one row of poison', 'xp', 100, 106, 99, [100, 1, 103]],
    ['is one row of poison, entered anywhere', 'xp', 102, 106, 99, [102, 1, 103]],
    ['skips what is hidden behind poison', 'xacp', 100, 112, 99, [100, 1, 109]],
  ] as const)('%s', (_, letters, from, limit, max, [first, count, next]) => {
    expect(slabOf(letters).run(from, limit, max, 'committed')).toEqual({ first, count, next })
  })

  it('shows aborted batches, and no control batches, to uncommitted readers', () => {
    expect(slabOf('paca').run(100, 112, 99, 'uncommitted')).toEqual({ first: 100, count: 6, next: 109 })
  })
})

describe('a slab', () => {
  it('grows without changing the bytes that somebody reads', () => {
    const slab = slabOf('p')
    const view = slab.bytes.subarray(0, 7)
    for (let i = 0; i < 5; i++) {
      slab.append(new Uint8Array(7).fill(1), { next: slab.next + 1, sizeBytes: 1, maxTimestamp: 1, flags: 0 })
    }
    expect([...view]).toEqual(Array(7).fill(112))
    expect([...slab.bytes.subarray(0, 8)]).toEqual([...Array(7).fill(112), 1])
    expect([slab.length, slab.usedBytes, slab.endOf(0), slab.endOf(5)]).toEqual([6, 42, 7, 42])
  })

  it('shares the bytes of a batch among its records, so that parts add up to the whole', () => {
    const slab = slabOf('ppp')
    const singly = Array.from({ length: 9 }, (_, i) => slab.bytesBetween(100 + i, 101 + i))
    expect(singly).toEqual([3, 3, 4, 3, 3, 4, 3, 3, 4])
    expect(slab.bytesBetween(101, 108)).toBe(23)
    expect(slab.bytesBetween(100, 109)).toBe(30)
  })
})

describe('bytes of a slab that has left its log', () => {
  const KiB = 1024
  const entry = { next: 1, sizeBytes: 1, maxTimestamp: 1, flags: 0 }

  function filled(): { slab: Slab; pool: BufferPool } {
    const pool = new BufferPool(1024 * KiB)
    const slab = new Slab(0, 64 * KiB, pool)
    slab.append(new Uint8Array(100).fill(7), entry)
    return { slab, pool }
  }

  it('are free at once where nobody has a view of them', () => {
    const { slab, pool } = filled()
    const { bytes } = slab
    slab.retire()
    expect([pool.freeBytes, pool.take(64 * KiB) === bytes]).toEqual([64 * KiB, true])
  })

  it('are free when all are done who were lent one', () => {
    const { slab, pool } = filled()
    const done = [slab.lend(), slab.lend(), slab.lend()]
    done[0]?.()
    expect(pool.freeBytes).toBe(0)
    slab.retire()
    done[2]?.()
    expect(pool.freeBytes).toBe(0)
    done[1]?.()
    expect(pool.freeBytes).toBe(64 * KiB)
  })

  it('are not free when one says twice that he is done, and another one is not', () => {
    const { slab, pool } = filled()
    const done = [slab.lend(), slab.lend()]
    slab.retire()
    done[0]?.()
    done[0]?.()
    expect(pool.freeBytes).toBe(0)
    done[1]?.()
    expect(pool.freeBytes).toBe(64 * KiB)
  })

  it('are free when it grows out of them, but not where somebody has a view', () => {
    const free = filled()
    free.slab.append(new Uint8Array(64 * KiB), { ...entry, next: 2 })
    expect(free.pool.freeBytes).toBe(64 * KiB)
    const { slab, pool } = filled()
    const done = slab.lend()
    slab.append(new Uint8Array(64 * KiB), { ...entry, next: 2 })
    const doneWithNew = slab.lend()
    done()
    slab.retire()
    expect(pool.freeBytes).toBe(0)
    doneWithNew()
    expect(pool.freeBytes).toBe(128 * KiB)
  })
})
