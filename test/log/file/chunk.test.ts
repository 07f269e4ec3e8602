/** What a chunk shows of its batches, of every shape; the last test compares it with a plain list of rows. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Isolation, PoisonValue } from '../../../src/log/contract.ts'
import { BatchRun } from '../../../src/log/file/batch-run.ts'
import { Chunk } from '../../../src/log/file/chunk.ts'
import { HEADER_BYTES } from '../../../src/log/format/layout.ts'
import { Slice } from '../../../src/model/batch.ts'
import { rowsOf } from '../../../src/testing/conformance/kit.ts'
import { badValue, batchAt, decoder, joined, markerAt, T0, transactional, undecodable } from './batches.ts'

const ALL = Number.POSITIVE_INFINITY
const onEvicted = (): void => {}

function empty(base: number, inProcess = false): Chunk {
  return new Chunk({ base, inProcess, decoder, onEvicted }, new Uint8Array(16))
}

function chunkOf(base: number, ...batches: readonly Uint8Array[]): Chunk {
  const chunk = empty(base)
  for (const batch of batches) chunk.append(batch)
  return chunk
}

/** As the log does: peek, and on a miss decode and peek again. */
function read(
  chunk: Chunk,
  from: number,
  { limit = chunk.next, max = 100, isolation = 'committed' as Isolation, bytes = 1 } = {},
): Slice {
  const into = new Slice()
  if (chunk.peek(from, limit, max, isolation, into) === 'hit') return into
  chunk.decode(from, limit, bytes, isolation)
  expect(chunk.peek(from, limit, max, isolation, into)).toBe('hit')
  return into
}

const offsetsOf = (slice: Slice): number[] => rowsOf(slice).map(({ offset }) => offset)
const valuesOf = (slice: Slice): unknown[] => rowsOf(slice).map(({ value }) => value)

describe('rows of a chunk', () => {
  it('are decoded when somebody asks, as far as he asks', () => {
    const chunk = chunkOf(10, ...[10, 13, 16, 19].map((base) => batchAt(base, { deltas: 3 })))
    const into = new Slice()
    expect(chunk.peek(10, 22, 9, 'committed', into)).toBe('miss')
    expect(chunk.rowBytes).toBe(0)
    expect(offsetsOf(read(chunk, 14))).toEqual([14, 15])
    expect(chunk.peek(16, 22, 9, 'committed', into)).toBe('miss')
    const one = chunk.rowBytes
    expect(one).toBeGreaterThan(0)
    chunk.decode(16, 22, 1_000_000, 'committed')
    expect(chunk.rowBytes).toBe(2 * one)
    expect(rowsOf(read(chunk, 10, { max: 2 }))).toEqual([
      { offset: 10, value: 10, key: 'k00010', headers: [], timestamp: T0 },
      { offset: 11, value: 11, key: 'k00011', headers: [['h', 'second']], timestamp: T0 + 1 },
    ])
    expect(offsetsOf(read(chunk, 20))).toEqual([20, 21])
  })

  it('goes no further than a limit, or than so many bytes beyond the first batch', () => {
    const batches = [0, 3, 6, 9].map((base) => batchAt(base, { deltas: 3 }))
    const chunk = chunkOf(0, ...batches)
    expect(read(chunk, 0, { limit: 4, bytes: 1_000_000 })).toMatchObject({ count: 4, next: 4 })
    expect(chunk.peek(6, 12, 9, 'committed', new Slice())).toBe('miss')
    const other = chunkOf(0, ...batches)
    other.decode(0, 12, (batches[0] as Uint8Array).length - HEADER_BYTES + 1, 'committed')
    expect(read(other, 0)).toMatchObject({ count: 6, next: 6 })
  })

  it('are the same for all readers, and for whoever held them when they were dropped', () => {
    const chunk = chunkOf(0, batchAt(0, { deltas: 2 }))
    const first = read(chunk, 0)
    expect(read(chunk, 1).columns).toBe(first.columns)
    chunk.dropRows()
    expect(chunk.rowBytes).toBe(0)
    expect(chunk.peek(0, 2, 9, 'committed', new Slice())).toBe('miss')
    expect(valuesOf(first)).toEqual([0, 1])
    expect(valuesOf(read(chunk, 0))).toEqual([0, 1])
  })

  it('stay right in columns of before when the chunk grows', () => {
    const chunk = chunkOf(0, batchAt(0, { deltas: 3 }))
    const before = read(chunk, 0)
    for (let base = 3; base < 3000; base += 3) chunk.append(batchAt(base, { deltas: 3 }))
    chunk.append(batchAt(3005, { deltas: 1 }))
    chunk.decode(2999, 3006, ALL, 'committed')
    expect(valuesOf(before)).toEqual([0, 1, 2])
    expect(before.columns.offsetAt(2999)).toBe(2999)
    expect(before.columns.offsetAt(3000)).toBe(3005)
    expect(offsetsOf(read(chunk, 2998))).toEqual([2998, 2999, 3005])
  })

  it('know their offsets behind a gap, however many follow', () => {
    const chunk = chunkOf(0, batchAt(0, { deltas: 1 }))
    for (let base = 5; base < 3005; base += 10) chunk.append(batchAt(base, { deltas: 10 }))
    const slice = read(chunk, 0, { max: 10_000, bytes: ALL })
    const expected = [0, ...Array.from({ length: 3000 }, (_, i) => 5 + i)]
    expect(offsetsOf(slice)).toEqual(expected)
    expect(valuesOf(slice)).toEqual(expected)
    chunk.dropRows()
    expect(valuesOf(read(chunk, 0, { max: 10_000, bytes: ALL }))).toEqual(expected)
    expect(offsetsOf(read(chunk, 2999))).toEqual([2999, 3000, 3001, 3002, 3003, 3004])
  })

  it('keep nothing of the bytes of the chunk, so that a reader may change his value', () => {
    const batch = batchAt(0, { deltas: 1, value: () => new Uint8Array([1, 2, 3]) })
    const chunk = chunkOf(0, batch)
    const [value] = valuesOf(read(chunk, 0)) as [Uint8Array]
    value.fill(9)
    expect([...chunk.collect(0, 1, ALL).bytes]).toEqual([...batch])
    chunk.dropRows()
    expect(valuesOf(read(chunk, 0))).toEqual([new Uint8Array([1, 2, 3])])
  })

  it('are foreign unless they were published in this process', () => {
    const ours = empty(0, true)
    ours.append(batchAt(0, { deltas: 1, inProcess: true }))
    expect(read(ours, 0).columns.foreign).toBe(false)
    expect(read(chunkOf(0, batchAt(0, { deltas: 1 })), 0).columns.foreign).toBe(true)
    expect(() => ours.append(batchAt(1, { deltas: 1 }))).toThrow('one kind')
  })

  it.each([
    ['a gap in front', [[3, 0, 1]], 0, [3, 4], 5],
    [
      'a gap between batches',
      [
        [0, 0],
        [4, 0],
      ],
      0,
      [0, 4],
      5,
    ],
    [
      'a start inside of a gap',
      [
        [0, 0],
        [4, 0],
      ],
      2,
      [4],
      5,
    ],
    ['a gap inside of a batch', [[0, 0, 5, 9]], 0, [0, 5, 9], 10],
    ['a start inside of that', [[0, 0, 5, 9]], 6, [9], 10],
    ['a first record that is gone', [[0, 2, 3]], 0, [2, 3], 4],
  ])('skip %s', (_, batches, from, offsets, next) => {
    const chunk = chunkOf(0, ...batches.map(([base = 0, ...deltas]) => batchAt(base, { deltas })))
    const slice = read(chunk, from, { bytes: ALL })
    expect(offsetsOf(slice)).toEqual(offsets)
    expect(slice.next).toBe(next)
  })

  it('end before offsets that a batch takes and has no records for', () => {
    const chunk = chunkOf(0, batchAt(0, { deltas: [0, 1], span: 6 }), batchAt(6, { deltas: 1 }))
    expect(read(chunk, 0, { limit: 4 })).toMatchObject({ count: 2, next: 4 })
    expect(offsetsOf(read(chunk, 3))).toEqual([6])
    const alone = chunkOf(0, batchAt(0, { deltas: [0, 1], span: 6 }))
    expect(read(alone, 3)).toMatchObject({ count: 0, next: 6 })
  })

  it('may end in a gap that nothing follows yet', () => {
    const [chunk] = Chunk.of(batchAt(4, { deltas: 2 }), 9, { base: 2, decoder, onEvicted }) as [Chunk]
    expect([chunk.base, chunk.next]).toEqual([2, 9])
    expect(read(chunk, 2)).toMatchObject({ count: 2, next: 9 })
    expect(read(chunk, 7)).toMatchObject({ count: 0, next: 9 })
    expect(chunk.collect(7, 9, ALL)).toMatchObject({ bytes: new Uint8Array(0), next: 9 })
    const [other] = Chunk.of(batchAt(2, { deltas: 2 }), 6, { base: 2, decoder, onEvicted }) as [Chunk]
    expect(read(other, 2)).toMatchObject({ count: 2, next: 6 })
    expect(read(other, 4)).toMatchObject({ count: 0, next: 6 })
  })
})

describe('what a chunk hides', () => {
  const tx = transactional(7)
  const batches = [
    batchAt(0, { deltas: 2 }),
    batchAt(2, { deltas: 2, producer: tx }),
    markerAt(4, 7, false),
    batchAt(5, { deltas: 2, producer: tx }),
    batchAt(7, { deltas: 2, producer: { ...tx, transactional: false } }),
  ]

  it('are markers to everybody, and aborted records to committed readers', () => {
    const chunk = chunkOf(0, ...batches)
    chunk.markAborted(7, 2)
    const committed = read(chunk, 0, { bytes: ALL })
    expect([offsetsOf(committed), committed.next]).toEqual([[0, 1], 5])
    expect(offsetsOf(read(chunk, 2))).toEqual([5, 6, 7, 8])
    const uncommitted = read(chunk, 0, { isolation: 'uncommitted' })
    expect([offsetsOf(uncommitted), uncommitted.next]).toEqual([[0, 1, 2, 3], 5])
  })

  it('is known as soon as it is marked, also of rows that are there', () => {
    const chunk = chunkOf(0, ...batches.slice(0, 2))
    expect(offsetsOf(read(chunk, 0, { bytes: ALL }))).toEqual([0, 1, 2, 3])
    chunk.markAborted(7, 2)
    chunk.append(batches[2] as Uint8Array)
    expect(read(chunk, 0)).toMatchObject({ count: 2, next: 5 })
    expect(read(chunk, 3)).toMatchObject({ count: 0, next: 5 })
  })

  it('ends with its producer and its marker', () => {
    const plain = batchAt(1, { deltas: 1, producer: { ...tx, transactional: false } })
    const others = [batchAt(0, { deltas: 1, producer: transactional(8) }), plain, ...batches.slice(1)]
    const chunk = chunkOf(0, ...others)
    chunk.markAborted(7, 0)
    expect(offsetsOf(read(chunk, 0, { bytes: ALL }))).toEqual([0, 1])
    expect(offsetsOf(read(chunk, 2, { bytes: ALL }))).toEqual([5, 6, 7, 8])
  })

  it('needs no decoding to be passed', () => {
    const chunk = chunkOf(0, batches[2] as Uint8Array, batchAt(5, { deltas: 1, producer: tx }))
    chunk.markAborted(7, 5)
    const into = new Slice()
    expect(chunk.peek(0, 6, 9, 'committed', into)).toBe('hit')
    expect([into.count, into.next, chunk.rowBytes]).toEqual([0, 6, 0])
    expect(read(chunk, 0, { limit: 5 })).toMatchObject({ count: 0, next: 5 })
  })

  it('does not keep a record from being found behind it', () => {
    const chunk = chunkOf(0, ...batches)
    chunk.markAborted(7, 2)
    chunk.decode(2, 9, 1, 'committed')
    expect(offsetsOf(read(chunk, 2))).toEqual([5, 6])
  })
})

describe('what does not decode', () => {
  it('is one row, wherever a reader comes into its batch', () => {
    const bytes = undecodable(2, 5)
    const chunk = chunkOf(
      0,
      batchAt(0, { deltas: 2 }),
      bytes,
      batchAt(7, { deltas: 1 }),
      markerAt(8, 1, true),
    )
    expect(read(chunk, 0, { bytes: ALL })).toMatchObject({ count: 2, next: 2 })
    for (const from of [2, 4, 6]) {
      const slice = read(chunk, from)
      const [{ offset, value, timestamp }] = rowsOf(slice) as [ReturnType<typeof rowsOf>[0]]
      expect([offset, slice.next, slice.columns.foreign, timestamp]).toEqual([from, 7, true, T0 + 4])
      expect(value).toBeInstanceOf(PoisonValue)
      expect([...(value as PoisonValue).bytes]).toEqual([...bytes])
    }
    expect(read(chunk, 7)).toMatchObject({ count: 1, next: 9 })
    expect(read(chunk, 4, { limit: 6 })).toMatchObject({ count: 1, next: 6 })
    expect(chunk.rowBytes).toBeGreaterThan(bytes.length)
  })

  it('is one row also as the first batch, or behind what is hidden', () => {
    const chunk = chunkOf(0, undecodable(0, 3), markerAt(3, 1, true), batchAt(4, { deltas: 1 }))
    const slice = read(chunk, 1, { bytes: ALL })
    expect([offsetsOf(slice), slice.next]).toEqual([[1], 4])
    expect(read(chunk, 4)).toMatchObject({ count: 1, next: 5 })
    expect(offsetsOf(read(chunk, 4))).toEqual([4])
  })

  it('is hidden where it is aborted', () => {
    const chunk = chunkOf(0, undecodable(0, 3, { producer: transactional(3) }), markerAt(3, 3, false))
    chunk.markAborted(3, 0)
    expect(read(chunk, 0)).toMatchObject({ count: 0, next: 4 })
    expect(read(chunk, 0, { isolation: 'uncommitted' })).toMatchObject({ count: 1, next: 4 })
  })

  it('spoils only itself where it is a value', () => {
    const chunk = chunkOf(0, batchAt(0, { deltas: 1 }), badValue(1), batchAt(2, { deltas: 1 }))
    const slice = read(chunk, 0, { bytes: ALL })
    expect(valuesOf(slice)).toEqual([0, expect.any(PoisonValue), 2])
    expect(rowsOf(slice)[1]).toMatchObject({ key: 'k00001', timestamp: T0 })
  })

  it('is foreign among values of this process, so that it is looked at', () => {
    const chunk = empty(0, true)
    const inProcess = true
    for (const base of [0, 1]) chunk.append(batchAt(base, { deltas: 1, inProcess }))
    for (const base of [2, 3]) chunk.append(badValue(base, { inProcess }))
    chunk.append(batchAt(4, { deltas: 2, inProcess }))
    chunk.append(markerAt(6, 1, true))
    const seen: unknown[] = []
    for (let from = 0; from < 7; ) {
      const slice = read(chunk, from, { bytes: ALL })
      seen.push([offsetsOf(slice), slice.columns.foreign, slice.next])
      from = slice.next
    }
    expect(seen).toEqual([
      [[0, 1], false, 2],
      [[2], true, 3],
      [[3], true, 4],
      [[4, 5], false, 7],
    ])
    const [row] = rowsOf(read(chunk, 2))
    expect(row).toMatchObject({ offset: 2, key: 'k00002', value: expect.any(PoisonValue) })
  })

  it('is decoded anew after rows were dropped', () => {
    const chunk = empty(0, true)
    chunk.append(badValue(0, { inProcess: true }))
    chunk.append(undecodable(1, 2, { inProcess: true }))
    chunk.append(batchAt(3, { deltas: 1, inProcess: true }))
    const readAll = (): unknown[] =>
      [0, 1, 3].map((from) => [offsetsOf(read(chunk, from)), read(chunk, from).next])
    const first = readAll()
    chunk.dropRows()
    expect(readAll()).toEqual(first)
    expect(first).toEqual([
      [[0], 1],
      [[1], 3],
      [[3], 4],
    ])
  })
})

describe('bytes of a chunk', () => {
  const batches = [0, 3, 8].map((base) => batchAt(base, { deltas: 3 }))
  const size = (batches[0] as Uint8Array).length

  it('are views of whole batches, at least one, and no more than asked', () => {
    const chunk = chunkOf(0, ...batches)
    const all = chunk.collect(0, 11, ALL)
    expect([[...all.bytes], all.next]).toEqual([[...joined(batches)], 11])
    expect(chunk.collect(1, 11, 1)).toMatchObject({ bytes: batches[0], next: 3 })
    expect(chunk.collect(1, 11, 2 * size)).toMatchObject({ bytes: joined(batches.slice(0, 2)), next: 6 })
    expect(chunk.collect(1, 11, 2 * size - 1)).toMatchObject({ bytes: batches[0], next: 3 })
    expect(chunk.collect(7, 11, 1)).toMatchObject({ bytes: batches[2], next: 11 })
    expect(chunk.collect(0, 3, ALL)).toMatchObject({ bytes: batches[0], next: 3 })
    expect(chunk.collect(6, 8, ALL)).toMatchObject({ bytes: new Uint8Array(0), next: 8 })
    expect(all.bytes.buffer).toBe(chunk.collect(3, 11, 1).bytes.buffer)
  })

  it('do not change under a reader when the chunk grows', () => {
    const chunk = chunkOf(0, ...batches)
    const { bytes } = chunk.collect(0, 11, ALL)
    for (let base = 11; base < 100; base++) chunk.append(batchAt(base, { deltas: 1 }))
    expect([...bytes]).toEqual([...joined(batches)])
    expect([chunk.next, chunk.heldBytes >= chunk.usedBytes]).toEqual([100, true])
  })

  it('may be several batches at once, but only whole ones, that follow', () => {
    const chunk = empty(0)
    chunk.append(joined(batches))
    expect([chunk.next, chunk.usedBytes]).toEqual([11, joined(batches).length])
    expect(() => chunk.append(batchAt(10, { deltas: 1 }))).toThrow('follow')
    expect(() => empty(0).append(batchAt(0, { deltas: 1 }).subarray(0, -1))).toThrow('whole')
  })

  it('become chunks of one kind each, which markers do not part', () => {
    const ours = { deltas: 1, inProcess: true }
    const bytes = joined([
      markerAt(0, 1, true),
      batchAt(1, ours),
      markerAt(2, 1, true),
      batchAt(3, ours),
      batchAt(4, { deltas: 1 }),
      markerAt(5, 1, true),
      batchAt(6, ours),
    ])
    const chunks = Chunk.of(bytes, 7, { base: 0, decoder, onEvicted })
    expect(chunks.map(({ base, next, inProcess }) => [base, next, inProcess])).toEqual([
      [0, 4, true],
      [4, 6, false],
      [6, 7, true],
    ])
    expect(joined(chunks.map((chunk) => chunk.collect(chunk.base, chunk.next, ALL).bytes))).toEqual(bytes)
    expect(Chunk.of(markerAt(0, 1, true), 1, { base: 0, decoder, onEvicted })[0]?.inProcess).toBe(false)
    expect(() => BatchRun.of(bytes, 0, 6)).toThrow('offsets end')
  })

  it('tell their owner when they have to go', () => {
    const seen: Chunk[] = []
    const chunk = new Chunk(
      { base: 0, inProcess: false, decoder, onEvicted: (each) => seen.push(each) },
      new Uint8Array(0),
    )
    chunk.evicted()
    expect(seen).toEqual([chunk])
  })
})

describe('times in a chunk', () => {
  const chunk = chunkOf(
    0,
    batchAt(0, { deltas: 3, timestamp: T0 + 10 }),
    markerAt(3, 1, true),
    batchAt(4, { deltas: [0, 2], timestamp: T0 + 100 }),
    batchAt(8, { deltas: 2, timestamp: T0 + 50 }),
    undecodable(10, 3, { timestamp: T0 + 300 }),
  )

  it.each([
    [T0, 0, { offset: 0, timestamp: T0 + 10 }],
    [T0 + 11, 0, { offset: 1, timestamp: T0 + 11 }],
    [T0, 3, { offset: 4, timestamp: T0 + 100 }],
    [T0 + 101, 0, { offset: 6, timestamp: T0 + 101 }],
    [T0, 7, { offset: 8, timestamp: T0 + 50 }],
    [T0 + 102, 0, { offset: 10, timestamp: T0 + 302 }],
    [T0 + 102, 11, { offset: 11, timestamp: T0 + 302 }],
    [T0 + 303, 0, undefined],
  ])('find the first record at %d or later from %d on', (timestamp, from, found) => {
    expect(chunk.firstAtOrAfter(timestamp, from)).toEqual(found)
  })

  it('know the newest one from an offset on', () => {
    const sound = chunkOf(
      0,
      batchAt(0, { deltas: 3, timestamp: T0 + 10 }),
      markerAt(3, 1, true),
      batchAt(4, { deltas: 2, timestamp: T0 + 5 }),
    )
    expect([0, 2, 3, 4, 5].map((from) => sound.newestTimestamp(from))).toEqual([
      T0 + 12,
      T0 + 12,
      T0 + 6,
      T0 + 6,
      T0 + 6,
    ])
    expect(chunk.newestTimestamp(12)).toBe(T0 + 302)
    expect(chunkOf(0, markerAt(0, 1, true)).newestTimestamp(0)).toBe(-1)
  })
})

describe('a chunk', () => {
  const kinds = ['plain', 'plain', 'gaps', 'aborted', 'control', 'poison', 'bad'] as const
  const batch = fc.record({
    kind: fc.constantFrom(...kinds),
    gap: fc.constantFrom(0, 0, 0, 1, 3),
    count: fc.integer({ min: 1, max: 4 }),
    tail: fc.constantFrom(0, 0, 2),
  })
  const question = fc.record({
    from: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    limit: fc.double({ min: 0, max: 1, noNaN: true }),
    max: fc.integer({ min: 1, max: 6 }),
    committed: fc.boolean(),
    bytes: fc.constantFrom(1, 100, 1_000_000),
    drop: fc.constantFrom(false, false, false, true),
  })

  interface Shown {
    readonly from: number
    readonly to: number
    readonly poison: boolean
    readonly aborted: boolean
    readonly hides: boolean
  }

  it('shows what a plain list of rows says, whatever it holds and whoever asks', () => {
    const chunks = fc.record({
      batches: fc.array(batch, { minLength: 1, maxLength: 8 }),
      inProcess: fc.boolean(),
      questions: fc.array(question, { minLength: 1, maxLength: 30 }),
    })
    fc.assert(
      fc.property(chunks, ({ batches, inProcess, questions }) => {
        const chunk = empty(0, inProcess)
        /** Every offset that a reader may be shown, or that is hidden from him. */
        const list: Shown[] = []
        for (const { kind, gap, count, tail } of batches) {
          const base = chunk.next + gap
          const add = (from: number, to: number, is: Partial<Shown>): void => {
            list.push({ from, to, poison: false, aborted: false, hides: false, ...is })
          }
          if (kind === 'control') {
            chunk.append(markerAt(base, 99, true))
            add(base, base + 1, { hides: true })
          } else if (kind === 'poison') {
            chunk.append(undecodable(base, count, { inProcess }))
            add(base, base + count, { poison: true })
          } else if (kind === 'bad') {
            chunk.append(badValue(base, { inProcess }))
            add(base, base + 1, { poison: true })
          } else {
            const deltas = Array.from({ length: count }, (_, i) => (kind === 'gaps' ? i * 2 + 1 : i))
            const span = (deltas.at(-1) as number) + 1 + tail
            const aborted = kind === 'aborted'
            const producer = aborted ? transactional(5) : null
            chunk.append(batchAt(base, { deltas, span, inProcess, producer }))
            for (const delta of deltas) add(base + delta, base + delta + 1, { aborted })
          }
        }
        chunk.markAborted(5, 0)
        for (const { from: at, limit: until, max, committed, bytes, drop } of questions) {
          const from = Math.floor(at * chunk.next)
          const limit = from + 1 + Math.floor(until * (chunk.next - from - 1))
          const isolation = committed ? 'committed' : 'uncommitted'
          if (drop) chunk.dropRows()
          const slice = read(chunk, from, { limit, max, isolation, bytes })
          const there = list.filter((each) => each.to > from && each.from < limit)
          const hidden = (each: Shown): boolean => each.hides || (committed && each.aborted)
          const shown = there.filter((each) => !hidden(each))
          const rows = rowsOf(slice)
          expect(slice.count).toBeLessThanOrEqual(Math.min(max, shown.length))
          if (shown.length > 0) expect(slice.count).toBeGreaterThan(0)
          for (const [i, { offset, value }] of rows.entries()) {
            const each = shown[i] as Shown
            expect(offset).toBe(Math.max(from, each.from))
            if (each.poison) expect(value).toBeInstanceOf(PoisonValue)
            else expect(value).toBe(offset)
            expect(slice.columns.foreign).toBe(!inProcess || each.poison)
          }
          // A run has no hidden offset in it, and nothing is left out where the reader goes on.
          const last = shown[slice.count - 1]
          for (const each of there.filter(hidden)) {
            const inside =
              slice.count > 0 && each.from > (rows[0]?.offset as number) && last && each.from < last.from
            expect(inside).toBeFalsy()
          }
          expect(slice.next).toBeGreaterThan(Math.max(from, (rows.at(-1)?.offset ?? from) - 1))
          expect(slice.next).toBeLessThanOrEqual(limit)
          expect(shown.slice(slice.count).every((each) => each.from >= slice.next)).toBe(true)
          if (shown.length === 0) expect(slice.next).toBe(limit)
        }
      }),
      { numRuns: 1000 },
    )
  })
})
