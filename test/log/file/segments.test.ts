/** Segments as files: what is written where, what is read back, and what a process finds that comes after another. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StoredSegment } from '../../../src/log/file/checkpoint.ts'
import { decodeFooter } from '../../../src/log/file/segment-footer.ts'
import { Segments } from '../../../src/log/file/segments.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf } from '../../support/world.ts'
import { batchAt, joined, markerAt, T0 } from './batches.ts'
import {
  append,
  baseOf,
  DIRECTORY,
  hex,
  indexPath,
  logPath,
  nextOf,
  openSegments,
  optionsOf,
  readAll,
  saveIndex,
  split,
  verify,
} from './segments-kit.ts'

/** Batches of `count` records each, from `base` on. */
function batches(count: number, of: number, base = 0, timestamp = T0): Uint8Array[] {
  return Array.from({ length: of }, (_, i) =>
    batchAt(base + i * count, { deltas: count, timestamp: timestamp + i * 1000, value: () => 'value' }),
  )
}

const sizeOf = (list: readonly Uint8Array[]): number => joined(list).length

describe('segments on disk', () => {
  it('are batches end to end, one file after the other, named by their first offset', async () => {
    const fs = new SimFs()
    const list = batches(3, 5)
    const size = (list[0] as Uint8Array).length
    const segments = await openSegments(fs, [], { segmentBytes: 2 * size + 10 })
    for (const batch of list) await append(segments, batch)
    expect(fs.files()).toEqual([
      `${DIRECTORY}/00000000000000000000.index`,
      `${DIRECTORY}/00000000000000000000.log`,
      `${DIRECTORY}/00000000000000000006.index`,
      `${DIRECTORY}/00000000000000000006.log`,
      `${DIRECTORY}/00000000000000000012.log`,
    ])
    expect(hex(fs.bytesOf(logPath(0)).subarray(0, 2 * size))).toBe(hex(joined(list.slice(0, 2))))
    expect(hex(fs.bytesOf(logPath(12)))).toBe(hex(joined(list.slice(4))))
    expect(segments.next).toBe(15)
    expect(segments.list.map(({ base, next, sizeBytes, sealed }) => [base, next, sizeBytes, sealed])).toEqual(
      [
        [0, 6, 2 * size, true],
        [6, 12, 2 * size, true],
        [12, 15, size, false],
      ],
    )
  })

  it('end in a footer that says what they hold', async () => {
    const fs = new SimFs()
    const list = batches(3, 3)
    const segments = await openSegments(fs, [], { segmentBytes: sizeOf(list.slice(0, 2)) })
    await append(segments, ...list)
    const file = fs.bytesOf(logPath(0))
    const sizeBytes = sizeOf(list.slice(0, 2))
    expect(file.length).toBe(sizeBytes + 64)
    const footer = { base: 0, next: 6, sizeBytes, maxTimestamp: T0 + 1002, compacted: false }
    expect(decodeFooter(file.subarray(sizeBytes), crc32c)).toEqual({
      ...footer,
      crc: crc32c(file.subarray(0, sizeBytes)),
    })
    expect(hex(file.subarray(sizeBytes, sizeBytes + 8))).toBe('4f44534700010000')
  })

  it('take one batch at least, whatever its size', async () => {
    const fs = new SimFs()
    const segments = await openSegments(fs, [], { segmentBytes: 10 })
    await append(segments, ...batches(2, 3))
    expect(segments.list.map(({ base }) => base)).toEqual([0, 2, 4])
    expect(await readAll(segments, 0)).toEqual(batches(2, 3).map(hex))
  })

  it('end when they are old, if that is asked for', async () => {
    const list = [0, 400, 1000, 1001, 5000].map((ms, i) => batchAt(i, { deltas: 1, timestamp: T0 + ms }))
    const fs = new SimFs()
    const first = await openSegments(fs)
    first.rollEarly(1000)
    await append(first, ...list.slice(0, 2))
    expect(first.list.map(({ base }) => base)).toEqual([0])
    const again = await openSegments(fs, first.stored())
    again.rollEarly(1000)
    await append(again, ...list.slice(2))
    expect(again.list.map(({ base }) => base)).toEqual([0, 3, 4])
    const never = await openSegments(new SimFs())
    await append(never, ...list)
    expect(never.list.map(({ base }) => base)).toEqual([0])
  })

  it('do not age by batches that have no time', async () => {
    const list = [-1, 5_000_000].map((timestamp, i) => batchAt(i, { deltas: 1, timestamp }))
    const segments = await openSegments(new SimFs())
    segments.rollEarly(1000)
    await append(segments, ...list)
    expect(segments.list).toHaveLength(1)
  })

  it('know their newest timestamp, which markers have no part in', async () => {
    const segments = await openSegments(new SimFs())
    await append(segments, batchAt(0, { deltas: 1, timestamp: T0 - 100 }), markerAt(1, 1, true))
    expect(segments.list[0]?.maxTimestamp).toBe(T0 - 100)
    const markers = await openSegments(new SimFs())
    await append(markers, markerAt(0, 1, true))
    expect(markers.list[0]?.maxTimestamp).toBe(-1)
  })

  it('begin where the log does', async () => {
    const segments = await openSegments(new SimFs(), [], { start: 40 })
    expect([segments.next, segments.stored()]).toEqual([40, []])
    await append(segments, batchAt(40, { deltas: 2 }))
    expect(segments.list.map(({ base, next }) => [base, next])).toEqual([[40, 42]])
  })

  it('keep topics apart whose ids no path could hold', async () => {
    const fs = new SimFs()
    const options = { ...optionsOf(fs), log: { topicId: '../é', partition: 7 } }
    await append(await Segments.restore(options, []), batchAt(0, { deltas: 1 }))
    expect(fs.files()).toEqual(['logs/%2E%2E%2F%C3%A9-7/00000000000000000000.log'])
  })

  it('refuse what does not follow, and two appends at once', async () => {
    const segments = await openSegments(new SimFs())
    await append(segments, ...batches(1, 2))
    await expect(append(segments, batchAt(3, { deltas: 1 }))).rejects.toThrow('follow')
    await expect(append(segments, batchAt(2, { deltas: 1 }), batchAt(4, { deltas: 1 }))).rejects.toThrow(
      'follows',
    )
    const bytes = batchAt(2, { deltas: 1 })
    await expect(segments.append([bytes], { base: 2, next: 4 })).rejects.toThrow('end at 3')
    const [one, two] = [
      append(segments, batchAt(3, { deltas: 1 })),
      append(segments, batchAt(3, { deltas: 1 })),
    ]
    await expect(two).rejects.toThrow('one append')
    await one
    expect(segments.next).toBe(4)
  })
})

describe('reading segments', () => {
  it('begins with the batch that holds an offset, and ends within what was asked', async () => {
    const list = batches(3, 6)
    const size = (list[0] as Uint8Array).length
    const segments = await openSegments(new SimFs(), [], { segmentBytes: 4 * size })
    await append(segments, ...list)
    const read = await segments.read(4, 2 * size)
    expect([read.base, read.next, split(read.bytes)]).toEqual([3, 9, list.slice(1, 3).map(hex)])
    expect((await segments.read(4, 2 * size - 1)).next).toBe(6)
    expect((await segments.read(4, 1)).next).toBe(6)
    expect((await segments.read(11, 1_000_000)).next).toBe(12)
    expect((await segments.read(17)).next).toBe(18)
    await expect(segments.read(18)).rejects.toThrow('below')
  })

  it('begins with the first batch where what was asked for is gone', async () => {
    const list = batches(3, 3)
    const segments = await openSegments(new SimFs(), [], { segmentBytes: sizeOf(list.slice(0, 2)) })
    await append(segments, ...list)
    await segments.removeBelow(6)
    const read = await segments.read(2)
    expect([split(read.bytes), read.base, read.next]).toEqual([list.slice(2).map(hex), 2, 9])
  })

  it('reads one piece at a time, up to an entry of the index', async () => {
    const fs = new SimFs()
    const list = Array.from({ length: 100 }, (_, i) =>
      batchAt(i, { deltas: 1, value: () => 'x'.repeat(8000) }),
    )
    const segments = await openSegments(fs)
    await append(segments, ...list)
    const sizes: number[] = []
    for (let at = 0; at < 100; ) {
      const before = fs.operations
      const { bytes, next } = await segments.read(at)
      sizes.push(bytes.length)
      expect(fs.operations - before).toBeLessThanOrEqual(2)
      at = next
    }
    expect(sizes.reduce((sum, size) => sum + size)).toBe(sizeOf(list))
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThan(200 * 1024)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1024)
    expect(split((await segments.read(57, 1)).bytes)).toEqual([hex(list[57] as Uint8Array)])
  })

  it('goes on while batches are appended, and sees none of a write that is under way', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock, turns: 3, seed: 5 })
    const list = batches(2, 40)
    const open = openSegments(fs, [], { segmentBytes: sizeOf(list.slice(0, 7)) })
    await clock.settle()
    const segments = await open
    const writing = (async () => {
      for (const batch of list) await append(segments, batch)
    })()
    const seen: string[] = []
    const reading = (async () => {
      for (let at = 0; at < 80; ) {
        if (at >= segments.next) await new Promise<void>((resolve) => clock.nextTurn(resolve))
        else {
          const { bytes, next } = await segments.read(at, 1)
          seen.push(...split(bytes))
          at = next
        }
      }
    })()
    await clock.settle()
    await Promise.all([writing, reading])
    expect(seen).toEqual(list.map(hex))
  })

  it('says that what was asked for is gone when it is removed meanwhile', async () => {
    const clock = new ManualClock()
    const fs = new SimFs({ clock })
    const opening = (async () => {
      const first = await openSegments(fs, [], { segmentBytes: 10 })
      await append(first, ...batches(2, 3))
      return openSegments(fs, first.stored(), { segmentBytes: 10 })
    })()
    await clock.settle()
    const segments = await opening
    const removed = segments.removeBelow(2)
    const code = codeOf(segments.read(0))
    await clock.settle()
    await removed
    expect(await code).toBe('OFFSET_OUT_OF_RANGE')
    expect(segments.list.map(({ base }) => base)).toEqual([2, 4])
  })

  it('finds where to look for a time', async () => {
    const value = (): string => 'x'.repeat(20_000)
    const times = [50, 60, 40, 10, 100, 90, 300, 5].map((ms) => T0 + ms)
    const list = times.map((timestamp, i) => batchAt(i, { deltas: 1, timestamp, value }))
    const segments = await openSegments(new SimFs(), [], { segmentBytes: sizeOf(list.slice(0, 6)) })
    await append(segments, ...list)
    expect(segments.list.map(({ base, maxTimestamp }) => [base, maxTimestamp - T0])).toEqual([
      [0, 100],
      [6, 300],
    ])
    const found = await Promise.all([0, 50, 51, 61, 100, 101, 300].map((ms) => segments.seekTime(T0 + ms)))
    expect(found).toEqual([0, 0, 0, 4, 4, 6, 6])
    expect(await segments.seekTime(T0 + 301)).toBeUndefined()
    for (const [i, at] of times.entries()) {
      const from = (await segments.seekTime(at)) as number
      expect(times.findIndex((each) => each >= at)).toBeGreaterThanOrEqual(from)
      expect(i).toBeGreaterThanOrEqual(from)
    }
  })
})

describe('the next process', () => {
  const list = batches(3, 9)
  const size = (list[0] as Uint8Array).length
  const options = { segmentBytes: 4 * size }

  /** Two segments full, one batch in the third, and what a checkpoint would say of it. */
  async function written(fs: SimFs): Promise<{ segments: Segments; stored: StoredSegment[] }> {
    const segments = await openSegments(fs, [], options)
    await append(segments, ...list)
    await segments.sync()
    return { segments, stored: segments.stored() }
  }

  it('goes on where the checkpoint says', async () => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    const segments = await openSegments(fs, stored, options)
    expect([segments.next, segments.stored()]).toEqual([27, stored])
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
    await append(segments, ...batches(3, 5, 27))
    expect(await readAll(segments, 0)).toEqual([...list, ...batches(3, 5, 27)].map(hex))
    expect(segments.list.map(({ base }) => base)).toEqual([0, 12, 24, 36])
    expect(await verify(fs, segments.stored())).toEqual([])
  })

  it('cuts what the checkpoint does not know, and removes later files', async () => {
    const fs = new SimFs()
    const early = await openSegments(fs, [], options)
    await append(early, ...list.slice(0, 2))
    const stored = early.stored()
    await append(early, ...list.slice(2))
    fs.put(`${DIRECTORY}/notes.txt`, new Uint8Array(3))
    const segments = await openSegments(fs, stored, options)
    expect(fs.files()).toEqual([indexPath(0), logPath(0), `${DIRECTORY}/notes.txt`])
    expect(hex(fs.bytesOf(logPath(0)))).toBe(hex(joined(list.slice(0, 2))))
    await append(segments, ...list.slice(2))
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
  })

  it('cuts a footer that came before the checkpoint', async () => {
    const fs = new SimFs()
    const early = await openSegments(fs, [], options)
    await append(early, ...list.slice(0, 4))
    const stored = early.stored()
    await append(early, list[4] as Uint8Array)
    expect(fs.bytesOf(logPath(0)).length).toBe(4 * size + 64)
    expect(stored.at(-1)).toMatchObject({ sealed: false })
    await openSegments(fs, stored, options)
    expect(fs.bytesOf(logPath(0)).length).toBe(4 * size)
    await openSegments(fs, stored, options)
    expect(fs.bytesOf(logPath(0)).length).toBe(4 * size)
  })

  it('begins anew where the checkpoint knows nothing', async () => {
    const fs = new SimFs()
    await written(fs)
    const segments = await openSegments(fs, [], options)
    expect([fs.files(), segments.next]).toEqual([[], 0])
    await append(segments, ...list)
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
  })

  it('takes an empty active segment for none', async () => {
    const fs = new SimFs()
    fs.put(logPath(5), new Uint8Array(0))
    const empty = { base: 5, next: 5, sizeBytes: 0, maxTimestamp: -1, crc: 0, sealed: false }
    for (let times = 0; times < 2; times++) {
      const segments = await openSegments(fs, [empty], { start: 5 })
      expect([segments.next, segments.list]).toEqual([5, []])
    }
  })

  it.each([
    ['the first, below the start', [0], 12, [12, 24]],
    ['two, below the start', [0, 12], 24, [24]],
    ['one in the middle, below the start: what is before it goes too', [12], 24, [24]],
    ['all, below the start', [0, 12, 24], 27, []],
  ])('does without segments that are missing: %s', async (_, gone, start, left) => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    for (const base of gone) fs.erase(logPath(base))
    const segments = await openSegments(fs, stored, { ...options, start })
    expect(segments.list.map(({ base }) => base)).toEqual(left)
    expect(segments.next).toBe(27)
    expect(fs.files().filter((path) => path.endsWith('.log'))).toEqual(left.map(logPath))
    if (left.length > 0) expect((await readAll(segments, start)).at(-1)).toBe(hex(list[8] as Uint8Array))
  })

  it('asks the journal for the start, where that knows better', async () => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    fs.erase(logPath(0))
    const segments = await openSegments(fs, stored, { ...options, start: 3, neededFrom: 13 })
    expect(segments.list.map(({ base }) => base)).toEqual([12, 24])
    expect(await codeOf(openSegments(fs, stored, { ...options, start: 3 }))).toBe('CORRUPT_LOG')
  })

  it.each([
    ['the first', 0],
    ['one between', 12],
    ['the active one', 24],
  ])('refuses a log with a segment missing: %s', async (_, base) => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    fs.erase(logPath(base))
    const before = fs.files()
    const opening = openSegments(fs, stored, options)
    await expect(opening).rejects.toThrow(`${logPath(base)} is damaged at byte 0: it is missing`)
    expect(await codeOf(opening)).toBe('CORRUPT_LOG')
    expect(fs.files()).toEqual(before)
  })

  it('refuses a checkpoint whose segments do not follow each other', async () => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    expect(await codeOf(openSegments(fs, [stored[0], stored[2]] as StoredSegment[], options))).toBe(
      'CORRUPT_LOG',
    )
  })

  it('refuses an active segment that is too short, touching nothing', async () => {
    const fs = new SimFs()
    const { stored } = await written(fs)
    fs.resize(logPath(24), size - 1)
    await expect(openSegments(fs, stored, options)).rejects.toThrow(
      `damaged at byte ${size - 1}: it ends here`,
    )
    expect(fs.bytesOf(logPath(24)).length).toBe(size - 1)
  })

  it('removes all of a deleted log', async () => {
    const fs = new SimFs()
    await written(fs)
    for (let times = 0; times < 2; times++) {
      await Segments.remove(optionsOf(fs))
      expect(fs.files()).toEqual([])
      expect(await fs.exists(DIRECTORY)).toBe(false)
    }
  })
})

describe('giving disk space back', () => {
  it('removes whole segments that end at or below an offset, with their indexes, and never the active one', async () => {
    const fs = new SimFs()
    const segments = await openSegments(fs, [], { segmentBytes: 10 })
    await append(segments, ...batches(2, 4))
    await segments.removeBelow(1)
    expect(segments.list.map(({ base }) => base)).toEqual([0, 2, 4, 6])
    await segments.removeBelow(4)
    expect(segments.list.map(({ base }) => base)).toEqual([4, 6])
    expect(fs.files()).toEqual([indexPath(4), logPath(4), logPath(6)])
    await segments.removeBelow(100)
    expect([segments.list.length, segments.next, fs.files()]).toEqual([1, 8, [logPath(6)]])
    expect(await readAll(segments, 6)).toEqual([hex(batches(2, 4).at(-1) as Uint8Array)])
  })

  it.each([1, 2, 3, 4, 5])('leaves no index behind that a reader is making (%d)', async (ordinal) => {
    const clock = new ManualClock()
    for (let seed = 0; seed < 10; seed++) {
      const fs = new SimFs({ clock, turns: 3, seed })
      const opening = (async () => {
        const first = await openSegments(fs, [], { segmentBytes: 10 })
        await append(first, ...batches(2, 3))
        return openSegments(fs, first.stored(), { segmentBytes: 10 })
      })()
      await clock.settle()
      const segments = await opening
      fs.erase(indexPath(0))
      // Looked for, and missing; then removed, created, written, closed.
      let operations = 0
      let removed: Promise<void> | undefined
      fs.onOperation = (_, path) => {
        if (path === indexPath(0) && ++operations === ordinal) removed = segments.removeBelow(2)
        return undefined
      }
      const read = codeOf(segments.read(0))
      await clock.settle()
      await Promise.all([read, removed])
      expect(removed).toBeDefined()
      expect(fs.files().filter((path) => path.includes('/00000000000000000000.'))).toEqual([])
    }
  })

  it('may be killed at any point, and is done again', async () => {
    const fs = new SimFs()
    const first = await openSegments(fs, [], { segmentBytes: 10 })
    await append(first, ...batches(2, 4))
    await first.sync()
    const stored = first.stored()
    for (let ordinal = 1; ; ordinal++) {
      const machine = fs.copy()
      const segments = await openSegments(machine, stored, { start: 0 })
      const began = machine.operations
      machine.onOperation = (_, __, at) => (at === began + ordinal ? { halt: 'after' } : undefined)
      const done = await Promise.race([segments.removeBelow(4).then(() => true), halted(machine)])
      if (done) break
      const next = machine.kill()
      next.onOperation = () => undefined
      const again = await openSegments(next, stored, { start: 0, neededFrom: 4 })
      await again.removeBelow(4)
      expect(again.list.map(({ base }) => base)).toEqual([4, 6])
      expect(next.files().filter((path) => path.endsWith('.log'))).toEqual([logPath(4), logPath(6)])
    }
  })
})

/** Resolves when the machine stands still, after whatever else could happen. */
async function halted(fs: SimFs): Promise<false> {
  while (!fs.halted) await new Promise((resolve) => setImmediate(resolve))
  return false
}

describe('segments', () => {
  it('hold what a plain list does, whatever happens in which order', async () => {
    const size = fc.integer({ min: 1, max: 6 })
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          act: fc.constant('append' as const),
          sizes: fc.array(size, { minLength: 1, maxLength: 5 }),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          act: fc.constant('read' as const),
          at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
          bytes: fc.constantFrom(1, 300, 100_000),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          act: fc.constant('remove' as const),
          at: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ act: fc.constant('sync' as const) }) },
      {
        weight: 1,
        arbitrary: fc.record({
          act: fc.constantFrom('kill' as const, 'reopen' as const, 'noIndex' as const),
        }),
      },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 100, max: 2000 }),
        async (steps, segmentBytes) => {
          let fs = new SimFs()
          let list: Uint8Array[] = []
          let epoch = 0
          let segments = await openSegments(fs, [], { segmentBytes })
          let synced = { stored: segments.stored(), list, next: 0 }
          for (const step of steps) {
            if (step.act === 'append') {
              const added: Uint8Array[] = []
              for (const count of step.sizes) {
                const base =
                  added.length + list.length === 0 ? 0 : nextOf((added.at(-1) ?? list.at(-1)) as Uint8Array)
                added.push(batchAt(base, { deltas: count, epoch, value: () => 'v'.repeat(count * 30) }))
              }
              await append(segments, ...added)
              list = [...list, ...added]
            } else if (step.act === 'read') {
              const start = segments.list[0]?.base ?? 0
              if (start >= segments.next) continue
              const offset = start + Math.floor(step.at * (segments.next - start))
              const read = await segments.read(offset, step.bytes)
              const first = list.findIndex((batch) => nextOf(batch) > offset)
              const found = split(read.bytes)
              expect(found).toEqual(list.slice(first, first + found.length).map(hex))
              expect([read.base, read.next]).toEqual([
                baseOf(list[first] as Uint8Array),
                nextOf(list[first + found.length - 1] as Uint8Array),
              ])
              expect(found.length).toBeGreaterThan(0)
              if (found.length > 1) expect(read.bytes.length).toBeLessThanOrEqual(step.bytes)
            } else if (step.act === 'remove') {
              const offset = Math.floor(step.at * segments.next)
              await segments.removeBelow(offset)
              expect(
                segments.list.every((each, i) => each.next > offset || i === segments.list.length - 1),
              ).toBe(true)
            } else if (step.act === 'sync') {
              await segments.sync()
              synced = { stored: segments.stored(), list, next: segments.next }
            } else {
              if (step.act === 'kill') fs = fs.kill()
              else {
                await segments.sync()
                await saveIndex(segments)
                synced = { stored: segments.stored(), list, next: segments.next }
              }
              if (step.act === 'noIndex')
                for (const path of fs.files()) if (path.endsWith('.index')) fs.erase(path)
              list = synced.list
              epoch++
              const start = segments.list[0]?.base ?? 0
              segments = await openSegments(fs, synced.stored, { segmentBytes, neededFrom: start })
              expect(segments.next).toBe(synced.next)
            }
          }
          const start = segments.list[0]?.base ?? segments.next
          const left = list.filter((batch) => baseOf(batch) >= start)
          expect(await readAll(segments, start)).toEqual(left.map(hex))
          expect(await verify(fs, segments.stored())).toEqual([])
        },
      ),
      { numRuns: 200 },
    )
  })
})
