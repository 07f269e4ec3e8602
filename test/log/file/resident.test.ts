import { describe, expect, it, vi } from 'vitest'
import type { Chunk } from '../../../src/log/file/chunk.ts'
import { ChunkCache } from '../../../src/log/file/chunk-cache.ts'
import type { PendingBatch } from '../../../src/log/file/pending.ts'
import { Resident } from '../../../src/log/file/resident.ts'
import { Segments } from '../../../src/log/file/segments.ts'
import { BufferPool } from '../../../src/log/format/buffer-pool.ts'
import { IN_PROCESS } from '../../../src/log/format/layout.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import { PartitionState } from '../../../src/log/state.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf } from '../../support/world.ts'
import { Dice } from '../../torture/dice.ts'
import { batchAt, decoder, joined, markerAt, transactional } from './batches.ts'
import { openSegments, split } from './segments-kit.ts'

const KiB = 1024
const EVERYTHING = Number.POSITIVE_INFINITY

function pendingOf(bytes: Uint8Array): PendingBatch {
  const { baseOffset: base, lastOffsetDelta, maxTimestamp, attributes, control } = readHeader(bytes, 0)
  const foreign = (attributes & IN_PROCESS) === 0
  return {
    bytes,
    base,
    next: base + lastOffsetDelta + 1,
    maxTimestamp,
    foreign,
    control,
    aborts: null,
    slab: null,
  }
}

/** Whoever looks at what was given back sees that. */
class SpoilingPool extends BufferPool {
  given = 0

  override give(buffer: Uint8Array): void {
    this.given++
    buffer.fill(0xaa)
    super.give(buffer)
  }
}

/** A log without its front: batches go in at the end, and to segments when told to. */
class Log {
  readonly cache: ChunkCache
  readonly state = new PartitionState()
  readonly resident: Resident
  readonly segments: Segments
  readonly batches: Uint8Array[] = []
  end = 0
  written = 0

  /** Where batches of others are copied to, as they are in a log; without it they lie anywhere. */
  readonly pool: SpoilingPool | undefined

  private constructor(segments: Segments, cacheBytes: number, pool?: SpoilingPool) {
    this.segments = segments
    this.cache = new ChunkCache(cacheBytes)
    this.pool = pool
    this.resident = new Resident(segments, this.cache, decoder, this.state, pool)
  }

  static async make(cacheBytes: number, turns?: number, pool?: SpoilingPool): Promise<Log> {
    const clock = new ManualClock()
    const fs = new SimFs(turns === undefined ? {} : { clock, turns })
    return new Log(await openSegments(fs, [], { segmentBytes: 8 * KiB }), cacheBytes, pool)
  }

  append(...batches: readonly Uint8Array[]): void {
    for (const bytes of batches) {
      const pending = pendingOf(bytes)
      const copied = this.pool !== undefined && pending.foreign ? this.resident.filler.copy(bytes) : {}
      this.resident.append({ ...pending, ...copied })
      this.batches.push(bytes)
      this.end = pending.next
    }
  }

  async write(until = this.end): Promise<void> {
    while (this.written < until) {
      const piece = this.resident.unwritten(this.written, until)
      await this.segments.append(piece.pieces, piece)
      this.written = piece.next
      this.resident.written(piece.next)
    }
  }

  /** Whole batches from the one that holds `from`, below `bound`. */
  expected(from: number, bound: number, maxBytes: number): { batches: string[]; next: number } {
    const found: Uint8Array[] = []
    let [sizeBytes, next] = [0, from]
    for (const bytes of this.batches) {
      const { base, next: after } = pendingOf(bytes)
      if (after <= from || base >= bound) continue
      if (found.length > 0 && sizeBytes + bytes.length > maxBytes) break
      found.push(bytes)
      sizeBytes += bytes.length
      next = after
    }
    return { batches: split(joined(found)), next }
  }
}

function buffersOf(...chunks: readonly Chunk[]): Set<unknown> {
  return new Set(chunks.map((chunk) => chunk.collect(chunk.base, EVERYTHING, EVERYTHING).bytes.buffer))
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}

/** Batches of every kind, one after the other. */
function* mixed(dice: Dice): Generator<Uint8Array, never> {
  for (let base = 0; ; ) {
    const way = dice.below(10)
    const deltas = 1 + dice.below(4)
    const value = dice.chance(0.05)
      ? () => 'x'.repeat(40 * KiB)
      : (offset: number) => `${offset} ${'y'.repeat(dice.below(300))}`
    let bytes: Uint8Array
    if (way === 0) bytes = markerAt(base, 5, true)
    else if (way < 5) bytes = batchAt(base, { deltas, inProcess: true, value })
    else bytes = batchAt(base, { deltas, value, producer: way === 5 ? transactional(5) : null })
    yield bytes
    base = pendingOf(bytes).next
  }
}

describe('what is in memory of a log', () => {
  it('keeps batches of one kind together, with control batches among them, and large ones by themselves', async () => {
    const log = await Log.make(1024 * KiB)
    log.append(batchAt(0, { deltas: 2, inProcess: true }), batchAt(2, { deltas: 1, inProcess: true }))
    log.append(markerAt(3, 5, true), batchAt(4, { deltas: 1 }), markerAt(5, 5, true))
    log.append(batchAt(6, { deltas: 1, value: () => 'z'.repeat(40 * KiB) }), batchAt(7, { deltas: 1 }))
    const bases = Array.from({ length: 8 }, (_, offset) => log.resident.find(offset)?.base)
    expect(bases).toEqual([0, 0, 0, 0, 4, 4, 6, 6])
    expect(log.resident.find(8)).toBeUndefined()
    expect(log.cache.pinnedBytes).toBeGreaterThan(40 * KiB)
  })

  it('begins another chunk when one is full', async () => {
    const log = await Log.make(4096 * KiB)
    const batches = Array.from({ length: 40 }, (_, i) =>
      batchAt(i, { deltas: 1, inProcess: true, value: () => 'x'.repeat(20 * KiB) }),
    )
    log.append(...batches)
    const chunks = new Set(batches.map((_, i) => log.resident.find(i) as Chunk))
    expect(chunks.size).toBeGreaterThan(2)
    for (const chunk of chunks) expect(chunk.usedBytes).toBeLessThanOrEqual(256 * KiB)
  })

  it('shows a reader what lies together, and copies only what is little', async () => {
    const log = await Log.make(4096 * KiB)
    const value = () => 'v'.repeat(20 * KiB)
    for (let base = 0; base < 40; base++) log.append(batchAt(base, { deltas: 1, value }))
    const chunk = log.resident.find(0) as Chunk
    const shown = await log.resident.collect(0, log.end, EVERYTHING)
    expect(shown.next).toBe(chunk.next)
    expect(shown.bytes.buffer).toBe(chunk.collect(0, EVERYTHING, EVERYTHING).bytes.buffer)
    const little = await log.resident.collect(chunk.next - 1, log.end, EVERYTHING)
    expect(little.next).toBeGreaterThan(chunk.next)
    expect(split(little.bytes)).toEqual(split(joined(log.batches.slice(chunk.next - 1, little.next))))
  })

  it('unpins all that is written, also where what is unpinned leaves at once', async () => {
    const log = await Log.make(1)
    // Three chunks, which become free in one moment.
    for (let base = 0; base < 3; base++) log.append(batchAt(base, { deltas: 1, inProcess: base % 2 === 0 }))
    await log.segments.append(log.batches, { base: 0, next: 3 })
    log.resident.written(3)
    expect([log.cache.pinnedBytes, [0, 1, 2].filter((offset) => log.resident.find(offset)).length]).toEqual([
      0, 1,
    ])
    log.append(batchAt(3, { deltas: 1 }))
    expect(log.resident.find(3)?.pinned).toBe(true)
  })

  it('pins only what is not written yet', async () => {
    const log = await Log.make(1)
    log.append(
      batchAt(0, { deltas: 2 }),
      batchAt(2, { deltas: 2 }),
      batchAt(4, { deltas: 2, inProcess: true }),
    )
    await log.write(2)
    expect([log.written, log.resident.find(0)?.pinned, log.resident.find(4)?.pinned]).toEqual([2, true, true])
    await log.write()
    expect(log.cache.pinnedBytes).toBe(0)
  })

  it.each([
    ['a large cache', 1024 * KiB],
    ['a small one', 8 * KiB],
    ['next to none', 1],
  ])(
    'answers every read with %s, however many go on at once, while it grows and is trimmed',
    async (_, cacheBytes) => {
      for (let seed = 1; seed <= 6; seed++) {
        const dice = new Dice(seed)
        const log = await Log.make(cacheBytes, 3, seed % 2 === 0 ? new SpoilingPool(4096 * KiB) : undefined)
        const more = mixed(dice)
        let start = 0
        const reads: Promise<void>[] = []
        let writing = Promise.resolve()
        for (let i = 0; i < 250; i++) {
          for (let n = dice.below(4); n > 0; n--) log.append(more.next().value)
          if (log.end === 0) continue
          if (dice.chance(0.2)) writing = writing.then(() => log.write())
          await Promise.all(dice.chance(0.2) ? reads.splice(0) : [])
          if (dice.chance(0.1)) {
            start = Math.min(log.written, start + dice.below(10))
            log.resident.trim(start)
          }
          const from = start + dice.below(log.end - start)
          const bound = dice.chance(0.7) ? log.end : from + 1 + dice.below(log.end - from)
          const maxBytes = dice.pick([1, 500, 5 * KiB, EVERYTHING])
          const expected = log.expected(from, bound, maxBytes)
          const read = async (): Promise<void> => {
            const { bytes, next, done } = await log.resident.collect(from, bound, maxBytes)
            for (let turns = dice.below(20); turns > 0; turns--) await null
            const batches = split(bytes)
            // It may end early, never late, and never skip anything.
            expect(batches).toEqual(expected.batches.slice(0, batches.length))
            expect(batches.length).toBeGreaterThan(0)
            expect(next).toBeGreaterThan(from)
            if (batches.length === expected.batches.length)
              expect(Math.max(next, bound)).toBe(Math.max(expected.next, bound))
            if (dice.chance(0.9)) done?.()
          }
          if (dice.chance(0.9)) reads.push(read())
        }
        await Promise.all([...reads, writing])
        await log.write()
        expect(log.cache.pinnedBytes).toBe(0)
        if (log.pool !== undefined && cacheBytes < 1024 * KiB) expect(log.pool.given).toBeGreaterThan(1)
      }
    },
  )

  describe('memory of batches that came as bytes', () => {
    const value = () => 'v'.repeat(20 * KiB)

    /** So many batches, which are in segments too. */
    async function filled(count: number, cacheBytes: number): Promise<Log & { readonly pool: SpoilingPool }> {
      const log = await Log.make(cacheBytes, 1, new SpoilingPool(4096 * KiB))
      for (let i = 0; i < count; i++) log.append(batchAt(i, { deltas: 1, value }))
      await log.write()
      return log as Log & { readonly pool: SpoilingPool }
    }

    it('is where they were copied to, in chunks that are full one as the other', async () => {
      const log = await filled(100, 8192 * KiB)
      const chunks = [...new Set(log.batches.map((_, i) => log.resident.find(i) as Chunk))]
      const large = chunks.filter(({ usedBytes }) => usedBytes > 128 * KiB)
      expect(large.length).toBeGreaterThanOrEqual(6)
      for (const { usedBytes } of large) expect(usedBytes).toBeLessThan(300 * KiB)
      expect(log.cache.bytes).toBeLessThan(1.15 * 100 * 20 * KiB + 512 * KiB)
      const [one, other] = large.slice(-3) as [Chunk, Chunk]
      expect(buffersOf(one, other).size).toBe(1)
      expect(log.pool.given).toBe(0)
    })

    it('is used again when it has left the cache', async () => {
      const log = await filled(130, 1024 * KiB)
      expect(log.pool.given).toBeGreaterThan(3)
      const { freeBytes } = log.pool
      for (let i = 130; i < 190; i++) log.append(batchAt(i, { deltas: 1, value }))
      expect(log.pool.freeBytes).toBeLessThan(freeBytes)
    })

    it('is not while somebody has a view of it, whatever becomes of the log', async () => {
      for (const leave of ['evicted', 'trimmed', 'cleared'] as const) {
        const log = await filled(60, 2048 * KiB)
        const { bytes, done } = await log.resident.collect(50, 60, EVERYTHING)
        const before = bytes.slice()
        if (leave === 'evicted') for (let i = 60; i < 200; i++) log.append(batchAt(i, { deltas: 1, value }))
        if (leave === 'evicted') await log.write()
        if (leave === 'trimmed') log.resident.trim(60)
        if (leave === 'cleared') log.resident.clear()
        expect(isSame(bytes, before)).toBe(true)
        done?.()
        if (leave !== 'trimmed') expect(isSame(bytes, before)).toBe(false)
      }
    })

    it('is not when one reader says twice that he is done, and another one is not', async () => {
      const log = await filled(60, 2048 * KiB)
      const [one, other] = [
        await log.resident.collect(50, 55, EVERYTHING),
        await log.resident.collect(50, 55, EVERYTHING),
      ]
      const before = other.bytes.slice()
      one.done?.()
      one.done?.()
      log.resident.clear()
      one.done?.()
      expect(isSame(other.bytes, before)).toBe(true)
    })

    it('is not when somebody may come back to a chunk at any time', async () => {
      const log = await filled(60, 2048 * KiB)
      const chunk = await log.resident.chunkAt(50)
      const { bytes } = chunk.collect(50, 60, EVERYTHING)
      const before = bytes.slice()
      log.resident.clear()
      expect(isSame(bytes, before)).toBe(true)
    })

    it('is not while it is being written to a segment, nor when the log is gone meanwhile', async () => {
      const log = await Log.make(1, 1, new SpoilingPool(4096 * KiB))
      for (let i = 0; i < 40; i++) log.append(batchAt(i, { deltas: 1, value }))
      const { pieces } = log.resident.unwritten(0, 40)
      const before = joined(pieces)
      expect(log.pool?.given).toBe(0)
      log.resident.clear()
      expect(isSame(joined(pieces), before)).toBe(true)
    })

    it('is not while a batch is pending in it', async () => {
      const log = await filled(3, 8192 * KiB)
      const pending = log.resident.filler.copy(batchAt(3, { deltas: 1, value }))
      const before = pending.bytes.slice()
      log.resident.clear()
      expect(isSame(pending.bytes, before)).toBe(true)
      pending.slab.release()
      expect(isSame(pending.bytes, before)).toBe(false)
    })
  })

  describe('memory of what comes from the disk', () => {
    const value = () => 'v'.repeat(3 * KiB)

    /** Two batches in each segment, nothing of which is in memory, and how often segments are read. */
    async function stored(cacheBytes: number, count: number) {
      const log = await Log.make(4096 * KiB)
      for (let i = 0; i < count; i++) {
        log.append(batchAt(i, { deltas: 1, value }))
        if (i % 2 === 1) await log.write()
      }
      const pool = new SpoilingPool(4096 * KiB)
      const cache = new ChunkCache(cacheBytes)
      const resident = new Resident(log.segments, cache, decoder, log.state, pool)
      const read = async (from: number): Promise<void> => {
        const { bytes, next, done } = await resident.collect(from, from + 2, EVERYTHING)
        expect([from, next]).toEqual([from, from + 2])
        expect([from, isSame(bytes, joined(log.batches.slice(from, next)))]).toEqual([from, true])
        done?.()
      }
      return { cache, resident, pool, read, reads: vi.spyOn(log.segments, 'read') }
    }

    const settled = async (): Promise<void> => {
      for (let turns = 0; turns < 100; turns++) await null
    }

    it('is used again when it has left the cache, and nobody has a view of it', async () => {
      const { pool, resident, read } = await stored(12 * KiB, 40)
      const { bytes, done } = await resident.collect(0, 2, EVERYTHING)
      const before = bytes.slice()
      for (let from = 2; from < 40; from += 2) await read(from)
      expect(pool.given).toBeGreaterThan(10)
      expect(isSame(bytes, before)).toBe(true)
      done?.()
      expect(isSame(bytes, before)).toBe(false)
    })

    it('is read again by whoever comes to it when it has left again', async () => {
      const { read, reads } = await stored(1, 40)
      await Promise.all([0, 8, 16, 24, 32].map(read))
      expect(reads.mock.calls.length).toBeGreaterThan(10)
    })

    it('is there before the next one is asked for', async () => {
      const { resident, read, reads } = await stored(4096 * KiB, 40)
      for (let from = 0; from < 40; from += 2) {
        await read(from)
        await settled()
        expect([from, resident.find(from + 2) !== undefined]).toEqual([from, from < 38])
      }
      expect(reads).toHaveBeenCalledTimes(20)
    })

    it('comes unasked only as far as the cache has room for that', async () => {
      const { cache, read, reads } = await stored(1024 * KiB, 40)
      await read(0)
      await settled()
      await read(20)
      await settled()
      expect([reads.mock.calls.map(([from]) => from), cache.readsAhead]).toEqual([[0, 2, 20], false])
      await read(2)
      await settled()
      expect(reads.mock.calls.map(([from]) => from)).toEqual([0, 2, 20, 4])
    })

    it('that cannot be had is the trouble of those alone who ask for it', async () => {
      const { read, reads } = await stored(4096 * KiB, 4)
      reads.mockImplementationOnce(Segments.prototype.read).mockRejectedValueOnce(new Error('the disk'))
      await read(0)
      await settled()
      await read(2)
      expect(reads).toHaveBeenCalledTimes(3)
    })
  })

  it('asks the disk once for what several want at a time', async () => {
    const log = await Log.make(1024 * KiB, 1)
    log.append(batchAt(0, { deltas: 3 }), batchAt(3, { deltas: 3, inProcess: true }))
    await log.write()
    const again = new Resident(log.segments, log.cache, decoder, log.state)
    const [one, two, three] = await Promise.all([again.chunkAt(1), again.chunkAt(1), again.chunkAt(4)])
    expect(one).toBe(two)
    expect([one?.base, three?.base, again.find(4)]).toEqual([0, 3, three])
  })

  it('keeps of what it reads ahead what was asked for, if not all of it', async () => {
    const log = await Log.make(1)
    log.append(
      batchAt(0, { deltas: 3 }),
      batchAt(3, { deltas: 3, inProcess: true }),
      batchAt(6, { deltas: 1 }),
    )
    await log.write()
    const again = new Resident(log.segments, log.cache, decoder, log.state)
    for (const offset of [0, 4, 6, 1]) {
      expect(again.find(offset)).toBeUndefined()
      expect(await again.chunkAt(offset)).toBe(again.find(offset))
    }
  })

  it('marks what was aborted, in chunks that are here and in those that come', async () => {
    const log = await Log.make(1024 * KiB)
    const { state, resident } = log
    log.append(batchAt(0, { deltas: 1, producer: transactional(5) }), batchAt(1, { deltas: 1 }))
    log.append(batchAt(2, { deltas: 1, producer: transactional(5), inProcess: false }), markerAt(3, 5, false))
    state.appended(transactional(5), 0, 0, 0)
    state.marker(5, 0, false, 3, 0)
    const seen = async (each: Resident): Promise<number[]> => {
      const offsets: number[] = []
      for (let at = 0; at < 4; ) {
        const chunk = await each.chunkAt(at)
        each.decode(chunk, at, 4, EVERYTHING, 'committed')
        const into = { columns: undefined as unknown, row: 0, count: 0, next: 0 } as Parameters<
          Chunk['peek']
        >[4]
        chunk.peek(at, Math.min(4, chunk.next), EVERYTHING, 'committed', into)
        for (let row = 0; row < into.count; row++) offsets.push(into.columns.offsetAt(into.row + row))
        at = into.next
      }
      return offsets
    }
    expect(await seen(resident)).toEqual([0, 1, 2])
    resident.hideAborted(5, 0)
    expect(await seen(resident)).toEqual([1])
    await log.write()
    expect(await seen(new Resident(log.segments, log.cache, decoder, state))).toEqual([1])
  })

  it('knows what has expired as far as it is here', async () => {
    const log = await Log.make(1024 * KiB)
    for (const [i, timestamp] of [100, 200, 50, -1].entries())
      log.append(batchAt(i, { deltas: 1, timestamp }))
    const { resident } = log
    expect([100, 101, 201, 1000].map((oldest) => resident.expired(0, oldest))).toEqual([0, 1, 3, 3])
    expect([resident.expired(2, 51), resident.expired(4, 51)]).toEqual([3, 4])
  })

  it('gives everything back when the log is gone, and keeps nothing that comes later', async () => {
    const log = await Log.make(1024 * KiB, 1)
    log.append(batchAt(0, { deltas: 3 }))
    await log.write()
    const late = new Resident(log.segments, log.cache, decoder, log.state)
    const coming = [late.chunkAt(0), late.collect(0, 3, EVERYTHING)].map(codeOf)
    late.clear()
    expect(await Promise.all(coming)).toEqual(['CLOSED', 'CLOSED'])
    expect(late.find(0)).toBeUndefined()
    log.append(batchAt(3, { deltas: 1 }))
    log.resident.clear()
    expect([log.cache.bytes, log.cache.pinnedBytes]).toEqual([0, 0])
  })
})
