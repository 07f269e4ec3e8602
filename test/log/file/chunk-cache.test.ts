/** Who leaves memory first, what is counted, and what never goes. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CacheEntry, ChunkCache } from '../../../src/log/file/chunk-cache.ts'

const gone: string[] = []

class Entry extends CacheEntry {
  readonly name: string
  heldBytes: number
  rowBytes: number

  constructor(name: string, heldBytes: number, rowBytes = 0) {
    super()
    this.name = name
    this.heldBytes = heldBytes
    this.rowBytes = rowBytes
  }

  override dropRows(): void {
    this.rowBytes = 0
    gone.push(`rows of ${this.name}`)
  }

  override evicted(): void {
    gone.push(this.name)
  }
}

/** What left since the last time. */
function left(): string[] {
  return gone.splice(0)
}

describe('the cache of chunks', () => {
  it('lets the least recently used go first', () => {
    const cache = new ChunkCache(300)
    const [a, b, c] = [new Entry('a', 100), new Entry('b', 100), new Entry('c', 100)]
    for (const entry of [a, b, c]) cache.add(entry)
    expect([left(), cache.bytes]).toEqual([[], 300])
    cache.touch(a)
    cache.add(new Entry('d', 150))
    expect([left(), cache.bytes]).toEqual([['b', 'c'], 250])
    cache.touch(b)
    expect(cache.bytes).toBe(250)
  })

  it('drops the rows of an entry before its batches, which must come from the disk', () => {
    const cache = new ChunkCache(300)
    cache.add(new Entry('a', 100, 100))
    cache.add(new Entry('b', 100, 0))
    cache.add(new Entry('c', 50))
    expect([left(), cache.bytes]).toEqual([['rows of a'], 250])
    cache.add(new Entry('d', 100))
    expect([left(), cache.bytes]).toEqual([['a'], 250])
  })

  it('never lets a pinned entry go, and counts its batches apart', () => {
    const cache = new ChunkCache(100)
    const tail = new Entry('tail', 1000)
    cache.add(tail, true)
    expect([cache.bytes, cache.pinnedBytes]).toEqual([0, 1000])
    tail.rowBytes = 80
    cache.resized(tail)
    cache.add(new Entry('a', 90))
    expect([left(), cache.bytes, cache.pinnedBytes]).toEqual([['rows of tail'], 90, 1000])
    cache.unpin(tail)
    expect([left(), cache.bytes, cache.pinnedBytes]).toEqual([['a'], 1000, 0])
  })

  it('keeps the newest entry even when it is larger than all it may hold', () => {
    const cache = new ChunkCache(100)
    const large = new Entry('large', 500, 500)
    cache.add(large)
    expect([left(), cache.bytes]).toEqual([[], 1000])
    cache.add(new Entry('small', 1))
    expect([left(), cache.bytes]).toEqual([['rows of large', 'large'], 1])
  })

  it('forgets what its owner takes out, and what is told of it afterwards', () => {
    const cache = new ChunkCache(100)
    const [a, b] = [new Entry('a', 40), new Entry('b', 40, 10)]
    cache.add(a)
    cache.add(b, true)
    for (let times = 0; times < 2; times++) {
      cache.remove(a)
      cache.remove(b)
      expect([cache.bytes, cache.pinnedBytes]).toEqual([0, 0])
    }
    cache.touch(a)
    cache.unpin(b)
    cache.resized(b)
    expect([cache.bytes, cache.pinnedBytes, left()]).toEqual([0, 0, []])
    cache.add(b)
    expect(cache.bytes).toBe(50)
  })

  it('holds 64 MiB if nothing is said', () => {
    expect(new ChunkCache().maxBytes).toBe(64 * 1024 * 1024)
  })

  it('agrees with a plain list that is searched for everything', () => {
    const step = fc.record({
      act: fc.constantFrom('add', 'add', 'pin', 'unpin', 'touch', 'touch', 'grow', 'rows', 'remove'),
      which: fc.nat(5),
      bytes: fc.integer({ min: 1, max: 60 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        left()
        const cache = new ChunkCache(100)
        const entries = Array.from({ length: 6 }, (_, i) => new Entry(`${i}`, 0))
        let list: Entry[] = []
        const counted = (entry: Entry): number => entry.rowBytes + (entry.pinned ? 0 : entry.heldBytes)
        for (const { act, which, bytes } of steps) {
          const entry = entries[which] as Entry
          const isIn = list.includes(entry)
          if (act === 'add' || act === 'pin') {
            if (isIn) continue
            entry.heldBytes = bytes
            entry.rowBytes = 0
            list.push(entry)
            cache.add(entry, act === 'pin')
          } else if (act === 'touch') cache.touch(entry)
          else if (act === 'remove') {
            list = list.filter((each) => each !== entry)
            cache.remove(entry)
            continue
          } else if (!isIn) continue
          else if (act === 'unpin') cache.unpin(entry)
          else {
            if (act === 'grow') entry.heldBytes += bytes
            else entry.rowBytes += bytes
            cache.resized(entry)
          }
          if (isIn) list = [...list.filter((each) => each !== entry), entry]
          // What the cache did is what the list says: nothing else may have gone.
          const now = left()
          for (const name of now) {
            const index = list.findIndex((each) => `rows of ${each.name}` === name || each.name === name)
            const older = list.slice(0, index)
            expect(older.every((each) => each.pinned && each.rowBytes === 0)).toBe(true)
            if (!name.startsWith('rows')) list.splice(index, 1)
          }
          const total = list.reduce((sum, each) => sum + counted(each), 0)
          expect(cache.bytes).toBe(total)
          const others = list.filter((each) => counted(each) > 0).slice(0, -1)
          if (others.length > 0) expect(total).toBeLessThanOrEqual(100)
        }
        const pinned = list.filter((each) => each.pinned).reduce((sum, each) => sum + each.heldBytes, 0)
        expect(cache.pinnedBytes).toBe(pinned)
      }),
    )
  })
})
