/** What damage does to segments: nothing wrong is ever served, it is found, and the rest stays readable. */
import { describe, expect, it } from 'vitest'
import type { StoredSegment } from '../../../src/log/file/checkpoint.ts'
import { encodeFooter } from '../../../src/log/file/segment-footer.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf } from '../../support/world.ts'
import { batchAt, joined, T0 } from './batches.ts'
import {
  append,
  baseOf,
  hex,
  indexPath,
  logPath,
  nextOf,
  openSegments,
  outcome,
  readAll,
  saveIndex,
  split,
  verify,
} from './segments-kit.ts'

/** Epochs that change inside of segments, so that their indexes have several entries. */
const EPOCHS = [0, 0, 1, 1, 1, 4, 4, 5, 5, 5]
const list = EPOCHS.map((epoch, i) =>
  batchAt(i * 2, { deltas: 2, epoch, timestamp: T0 + i, value: () => 'value' }),
)
const size = (list[0] as Uint8Array).length
const end = nextOf(list.at(-1) as Uint8Array)

interface Disk {
  readonly fs: SimFs
  readonly stored: readonly StoredSegment[]
}

/** Batches 0–3 and 4–7 in sealed segments, 8 and 9 in the active one. */
async function written(): Promise<Disk> {
  const fs = new SimFs()
  const segments = await openSegments(fs, [], { segmentBytes: 4 * size })
  await append(segments, ...list)
  await segments.sync()
  await saveIndex(segments)
  expect(fs.files()).toHaveLength(6)
  return { fs, stored: segments.stored() }
}

/** Offsets that damage to a batch makes unreadable: its own, and those behind it up to where its epoch or segment ends. */
function behind(batch: number): number[] {
  let last = batch
  while (last % 4 < 3 && EPOCHS[last + 1] === EPOCHS[batch]) last++
  return Array.from({ length: (last + 1 - batch) * 2 }, (_, i) => batch * 2 + i)
}

/** Batches from the one that holds `offset` on. */
function batchesFrom(offset: number): string[] {
  return list.filter((batch) => nextOf(batch) > offset).map(hex)
}

/** Reads at every offset: each answers what was written, or CORRUPT_LOG for `path`. Answers where it did. */
async function corruptAt({ fs, stored }: Disk, path: string): Promise<Map<number, OdradekError>> {
  const corrupt = new Map<number, OdradekError>()
  const segments = await openSegments(fs, stored)
  for (let offset = 0; offset < end; offset++) {
    const found = await outcome(segments.read(offset, 2 * size))
    if (found instanceof OdradekError) {
      expect([found.code, found.message]).toEqual([
        'CORRUPT_LOG',
        expect.stringMatching(`^${path} is damaged at byte`),
      ])
      corrupt.set(offset, found)
    } else {
      expect(found.length).toBeGreaterThan(0)
      expect(found).toEqual(batchesFrom(offset).slice(0, found.length))
    }
  }
  return corrupt
}

function positionIn(error: OdradekError | undefined): number {
  return Number(/at byte (\d+)/.exec(error?.message ?? '')?.[1])
}

describe('a flipped bit', () => {
  it.each([
    ['a sealed segment', 0, 8],
    ['the next one', 8, 16],
    ['the active segment', 16, 20],
  ])('anywhere in %s is found, and what the index does not vouch for is refused', async (_, base, next) => {
    const { fs, stored } = await written()
    const sizeBytes = ((next - base) / 2) * size
    for (let position = 0; position < sizeBytes; position++) {
      const disk = { fs: fs.copy(), stored }
      disk.fs.flipBit(logPath(base), position, position % 8)
      const batch = Math.floor(position / size)
      const offsets = behind(base / 2 + batch)
      const corrupt = await corruptAt(disk, logPath(base))
      expect([position, [...corrupt.keys()]]).toEqual([position, offsets])
      expect(positionIn(corrupt.get(offsets[0] as number))).toBe(batch * size)
      const [finding, ...others] = await verify(disk.fs, stored)
      expect(others).toEqual([])
      expect(finding?.file).toBe(logPath(base))
      // An epoch that is too high is noticed where the next one is lower.
      expect([batch * size, (batch + 1) * size]).toContain(finding?.position)
    }
  })

  it('is found without the index too, which cannot be made of that', async () => {
    const { fs, stored } = await written()
    for (const path of fs.files()) if (path.endsWith('.index')) fs.erase(path)
    for (let position = 0; position < 4 * size; position++) {
      const disk = { fs: fs.copy(), stored }
      disk.fs.flipBit(logPath(0), position, 7 - (position % 8))
      const corrupt = await corruptAt(disk, logPath(0))
      expect([...corrupt.keys()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
      const batch = Math.floor(position / size)
      expect([batch * size, (batch + 1) * size]).toContain(positionIn(corrupt.get(0)))
      expect(disk.fs.files()).not.toContain(indexPath(0))
    }
  })

  it('in a footer is found, and no reader needs it', async () => {
    const { fs, stored } = await written()
    for (let position = 4 * size; position < 4 * size + 64; position++) {
      const disk = { fs: fs.copy(), stored }
      disk.fs.flipBit(logPath(0), position, position % 8)
      expect(await corruptAt(disk, logPath(0))).toEqual(new Map())
      expect(await verify(disk.fs, stored)).toEqual([
        { file: logPath(0), position, what: expect.stringContaining('footer'), harmless: false },
      ])
    }
  })

  it('in an index is found, and the index is made again', async () => {
    const { fs, stored } = await written()
    const good = fs.bytesOf(indexPath(0))
    for (let position = 0; position < good.length; position++) {
      const disk = { fs: fs.copy(), stored }
      disk.fs.flipBit(indexPath(0), position, position % 8)
      expect(await verify(disk.fs, stored)).toEqual([
        { file: indexPath(0), position, what: expect.stringContaining('index'), harmless: true },
      ])
      expect(await corruptAt(disk, logPath(0))).toEqual(new Map())
      expect(hex(disk.fs.bytesOf(indexPath(0)))).toBe(hex(good))
    }
  })

  it('after an epoch that nothing follows is found where the epoch rises', async () => {
    const fs = new SimFs()
    const segments = await openSegments(fs, [], { segmentBytes: 2 * size })
    await append(segments, ...[0, 1, 2].map((i) => batchAt(i * 2, { deltas: 2, value: () => 'value' })))
    fs.erase(indexPath(0))
    fs.flipBit(logPath(0), size + 15, 0)
    const [finding] = await verify(fs, segments.stored())
    expect(finding).toMatchObject({ file: logPath(0), position: size, what: expect.stringContaining('CRC') })
    const again = await openSegments(fs, segments.stored())
    expect(positionIn((await outcome(again.read(0, 1))) as OdradekError)).toBe(size)
  })
})

describe('damage', () => {
  it('does not keep a reader from what is sound in front of it and behind it', async () => {
    const { fs, stored } = await written()
    fs.flipBit(logPath(0), 2 * size + 70)
    const segments = await openSegments(fs, stored)
    const read = await segments.read(0, 1_000_000)
    expect([split(read.bytes), read.next]).toEqual([list.slice(0, 2).map(hex), 4])
    await expect(segments.read(4)).rejects.toThrow(`${logPath(0)} is damaged at byte ${2 * size}: the CRC`)
    expect(await readAll(segments, 8)).toEqual(batchesFrom(8))
  })

  it('that was found while an index was made is not looked for again', async () => {
    const { fs, stored } = await written()
    fs.erase(indexPath(0))
    fs.flipBit(logPath(0), 2 * size)
    const segments = await openSegments(fs, stored)
    const first = await outcome(segments.read(0, 1))
    const { operations } = fs
    expect(await outcome(segments.read(6, 1))).toBe(first)
    expect(await outcome(segments.seekTime(T0).then(() => ({ bytes: joined([]) })))).toBe(first)
    expect(fs.operations).toBe(operations)
  })

  it('of old does not keep the active segment from being written to, and sealed', async () => {
    const { fs, stored } = await written()
    fs.erase(indexPath(16))
    fs.flipBit(logPath(16), 30)
    const segments = await openSegments(fs, stored, { segmentBytes: 4 * size })
    const more = [10, 11, 12, 13].map((i) => batchAt(i * 2, { deltas: 2, epoch: 5, value: () => 'value' }))
    await append(segments, ...more)
    await segments.sync()
    expect(segments.list.map(({ base }) => base)).toEqual([0, 8, 16, 24])
    expect(await codeOf(segments.read(16))).toBe('CORRUPT_LOG')
    expect(await codeOf(segments.seekTime(T0 + 9))).toBe('CORRUPT_LOG')
    expect(await readAll(segments, 20)).toEqual(more.map(hex))
    expect(await readAll(segments, 24)).toEqual(more.slice(2).map(hex))
    expect((await verify(fs, segments.stored())).map(({ file }) => file)).toEqual([logPath(16)])
  })

  it.each([
    ['zeros', (bytes: Uint8Array) => bytes.fill(0)],
    ['noise', (bytes: Uint8Array) => bytes.fill(0xa5)],
    ['another batch of the same size', (bytes: Uint8Array) => bytes.set(list[0] as Uint8Array)],
    [
      'a batch of another epoch',
      (bytes: Uint8Array) => bytes.set(batchAt(4, { deltas: 2, epoch: 0, value: () => 'value' })),
    ],
    ['a length of 2 GiB', (bytes: Uint8Array) => bytes.set([0x7f, 0xff, 0xff, 0xff], 8)],
    [
      'a length that swallows the next batch',
      (bytes: Uint8Array) => bytes.set([0, 0, ((2 * size - 12) >> 8) & 255, (2 * size - 12) & 255], 8),
    ],
  ])('of a whole batch is found, with an index and without: %s', async (_, change) => {
    const { fs, stored } = await written()
    const bytes = fs.bytesOf(logPath(0))
    change(bytes.subarray(2 * size, 3 * size))
    fs.put(logPath(0), bytes)
    const corrupt = await corruptAt({ fs: fs.copy(), stored }, logPath(0))
    expect([...corrupt.keys()]).toEqual(behind(2))
    fs.erase(indexPath(0))
    const [first] = [...(await corruptAt({ fs, stored }, logPath(0))).values()]
    // An epoch that is too low is noticed where it rises again.
    expect([2 * size, 3 * size]).toContain(positionIn(first))
    expect((await verify(fs, stored)).map(({ position }) => position)).toEqual([positionIn(first)])
  })
})

describe('what a process wrote itself', () => {
  it('is read without a look at what was there before', async () => {
    const { fs, stored } = await written()
    const segments = await openSegments(fs, stored)
    const more = [10, 11].map((i) => batchAt(i * 2, { deltas: 2, epoch: 5, value: () => 'value' }))
    await append(segments, ...more)
    const began = fs.operations
    expect(await readAll(segments, 21)).toEqual(more.map(hex))
    expect(fs.operations).toBe(began + 1)
    expect(await readAll(segments, 0)).toEqual([...list, ...more].map(hex))
  })
})

describe('a file that is cut', () => {
  it('anywhere is found where it ends, and read up to there', async () => {
    const { fs, stored } = await written()
    for (let length = 0; length < 4 * size + 64; length++) {
      const disk = { fs: fs.copy(), stored }
      disk.fs.resize(logPath(0), length)
      const whole = Math.min(Math.floor(length / size), 4)
      const corrupt = await corruptAt(disk, logPath(0))
      expect([...corrupt.keys()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7].slice(whole * 2))
      const findings = await verify(disk.fs, stored)
      expect(findings[0]).toMatchObject({ file: logPath(0), position: Math.max(length, whole * size) })
    }
  })

  it('anywhere as the active one is refused, unless the checkpoint knows of less', async () => {
    const { fs, stored } = await written()
    for (let length = 0; length < 2 * size; length++) {
      const machine = fs.copy()
      machine.resize(logPath(16), length)
      expect(await codeOf(openSegments(machine, stored))).toBe('CORRUPT_LOG')
    }
    const one = crc32c(list[8] as Uint8Array)
    const active = { ...(stored[2] as StoredSegment), next: 18, sizeBytes: size, crc: one }
    const less = [...stored.slice(0, 2), active]
    for (let length = size; length <= 2 * size; length++) {
      const machine = fs.copy()
      machine.resize(logPath(16), length)
      const segments = await openSegments(machine, less)
      expect(machine.bytesOf(logPath(16)).length).toBe(size)
      await append(segments, list[9] as Uint8Array)
      expect(await readAll(segments, 0)).toEqual(list.map(hex))
    }
  })

  it('is told from one that is missing, and from one that goes on too long', async () => {
    const { fs, stored } = await written()
    fs.append(logPath(8), new Uint8Array([1]))
    fs.erase(logPath(0))
    expect(await verify(fs, stored)).toEqual([
      { file: logPath(0), position: 0, what: 'it is missing', harmless: false },
      { file: logPath(8), position: 4 * size + 64, what: 'bytes follow the footer', harmless: false },
    ])
    expect(await verify(fs, stored.slice(1), 0)).toHaveLength(1)
    fs.onOperation = (operation, path) =>
      operation === 'read' && path === logPath(8) ? { fail: 'EIO' } : undefined
    const what = expect.stringContaining('EIO')
    expect(await verify(fs, stored.slice(1))).toEqual([
      { file: logPath(8), position: 0, what, harmless: false },
    ])
    fs.onOperation = () => undefined
    expect(await verify(fs, stored, 8)).toHaveLength(1)
    expect(await verify(fs, [stored[0], stored[2]] as StoredSegment[], 8)).toEqual([
      { file: logPath(16), position: 0, what: 'it begins at offset 16, not 8', harmless: false },
    ])
  })
})

describe('an index file', () => {
  /** Segments that are read once, and what the index file of the first one is then. */
  async function mended({ fs, stored }: Disk): Promise<string> {
    expect(await readAll(await openSegments(fs, stored), 0)).toEqual(list.map(hex))
    return hex(fs.bytesOf(indexPath(0)))
  }

  it('that is missing, empty, cut anywhere, longer, or none at all is made again', async () => {
    const { fs, stored } = await written()
    const good = fs.bytesOf(indexPath(0))
    const bad: Uint8Array[] = Array.from(good, (_, length) => good.subarray(0, length))
    bad.push(joined([good, new Uint8Array(1)]), new Uint8Array(good.length), new Uint8Array(5000).fill(0x5a))
    bad.push(fs.bytesOf(indexPath(8)))
    for (const bytes of bad) {
      const machine = fs.copy()
      machine.put(indexPath(0), bytes)
      expect(await mended({ fs: machine, stored })).toBe(hex(good))
    }
    fs.erase(indexPath(0))
    expect(await mended({ fs, stored })).toBe(hex(good))
  })

  it('of other bytes is not believed, even if they have the same offsets at the same places', async () => {
    const { fs, stored } = await written()
    const other = new SimFs()
    const segments = await openSegments(other, [], { segmentBytes: 4 * size })
    await append(
      segments,
      ...EPOCHS.map((epoch, i) =>
        batchAt(i * 2, { deltas: 2, epoch, timestamp: T0 - 9, value: () => 'eulav' }),
      ),
    )
    const good = fs.bytesOf(indexPath(0))
    fs.put(indexPath(0), other.bytesOf(indexPath(0)))
    expect(await mended({ fs, stored })).toBe(hex(good))
  })

  it('ahead of its data is not believed', async () => {
    const { fs, stored } = await written()
    const active = { ...(stored[0] as StoredSegment), next: 4, sizeBytes: 2 * size, sealed: false }
    const known = { ...active, crc: crc32c(joined(list.slice(0, 2))), maxTimestamp: T0 + 2 }
    const segments = await openSegments(fs, [known], { segmentBytes: 4 * size })
    const others = [2, 3, 4].map((i) =>
      batchAt(i * 2, { deltas: 2, epoch: 9, timestamp: T0 + 500, value: () => 'other' }),
    )
    await append(segments, ...others)
    expect(await readAll(segments, 0)).toEqual([...list.slice(0, 2), ...others].map(hex))
    expect(await segments.seekTime(T0 + 400)).toBe(4)
    expect(await verify(fs, segments.stored())).toEqual([])
  })

  it('of a beginning is continued, without reading that again', async () => {
    const value = (): string => 'x'.repeat(40_000)
    const long = Array.from({ length: 50 }, (_, i) => batchAt(i, { deltas: 1, value }))
    const fs = new SimFs()
    const first = await openSegments(fs, [], { segmentBytes: 10_000_000 })
    await append(first, ...long.slice(0, 40))
    await saveIndex(first)
    await append(first, ...long.slice(40))
    await first.sync()
    const reads: number[] = []
    const next = fs.kill()
    next.onOperation = (operation, path) => {
      if (operation === 'read' && path === logPath(0)) reads.push(1)
      return undefined
    }
    const segments = await openSegments(next, first.stored())
    expect((await segments.read(45, 1)).base).toBe(45)
    // One for what the index does not cover, one for what was asked.
    expect(reads).toHaveLength(2)
    expect(await readAll(segments, 0)).toEqual(long.map(hex))
  })

  it('is written now and then as its segment grows, so that a crash leaves little to be read again', async () => {
    const value = (): string => 'x'.repeat(100_000)
    const fs = new SimFs()
    const segments = await openSegments(fs, [], { segmentBytes: 100_000_000 })
    const writes: number[] = []
    for (let i = 0; i < 200; i++) {
      await append(segments, batchAt(i, { deltas: 1, value }))
      const before = fs.operations
      fs.onOperation = (operation, path) => {
        if (operation === 'write' && path === indexPath(0)) writes.push(i)
        return undefined
      }
      await segments.sync()
      expect(fs.operations - before).toBeLessThan(10)
    }
    expect(writes.length).toBeGreaterThan(5)
    expect(writes.length).toBeLessThan(20)
    expect(199 - (writes.at(-1) as number)).toBeLessThan(50)
  })

  it('that cannot be written costs nothing but time', async () => {
    const { fs, stored } = await written()
    const good = fs.bytesOf(indexPath(0))
    fs.erase(indexPath(0))
    fs.onOperation = (operation, path) =>
      path === indexPath(0) && operation === 'write' ? { fail: 'ENOSPC' } : undefined
    const segments = await openSegments(fs, stored)
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
    expect(fs.bytesOf(indexPath(0)).length).toBe(0)
    fs.onOperation = () => undefined
    expect(await mended({ fs, stored })).toBe(hex(good))
  })

  it('that cannot be read for another reason is not made again', async () => {
    const { fs, stored } = await written()
    fs.onOperation = (operation, path) =>
      path === indexPath(0) && operation === 'read' ? { fail: 'EIO' } : undefined
    const segments = await openSegments(fs, stored)
    expect(await codeOf(segments.read(0))).toBe('STORAGE_ERROR')
    fs.onOperation = () => undefined
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
  })

  it('is kept in memory for the segments that were read last', async () => {
    const fs = new SimFs()
    const many = Array.from({ length: 12 }, (_, i) => batchAt(i, { deltas: 1 }))
    const first = await openSegments(fs, [], { segmentBytes: 10 })
    await append(first, ...many)
    const segments = await openSegments(fs, first.stored(), { segmentBytes: 10 })
    const indexReads = async (...offsets: number[]): Promise<number> => {
      let reads = 0
      fs.onOperation = (operation, path) => {
        if (operation === 'read' && path.endsWith('.index')) reads++
        return undefined
      }
      for (const offset of offsets)
        expect(split((await segments.read(offset)).bytes)).toEqual([hex(many[offset] as Uint8Array)])
      return reads
    }
    expect(await indexReads(0, 1, 2, 3)).toBe(4)
    expect(await indexReads(3, 2, 1, 0, 3)).toBe(0)
    expect(await indexReads(4)).toBe(1)
    expect(await indexReads(3, 0, 1, 4)).toBe(0)
    expect(await indexReads(2)).toBe(1)
  })
})

describe('a compacted segment', () => {
  const gaps = [
    batchAt(2, { deltas: [0, 3], span: 5, timestamp: T0 }),
    batchAt(7, { deltas: 1, timestamp: T0 + 1 }),
    batchAt(20, { deltas: [1], span: 4, timestamp: T0 + 2 }),
  ]
  const footer = {
    base: 0,
    next: 30,
    sizeBytes: joined(gaps).length,
    maxTimestamp: T0 + 2,
    crc: crc32c(joined(gaps)),
  }
  const stored = [{ ...footer, sealed: true, compacted: true }]

  async function compacted(): Promise<SimFs> {
    const fs = new SimFs()
    fs.put(logPath(0), joined([joined(gaps), encodeFooter({ ...footer, compacted: true }, crc32c)]))
    return fs
  }

  it('has gaps, over which a reader goes on', async () => {
    const fs = await compacted()
    const segments = await openSegments(fs, stored)
    expect(await verify(fs, stored)).toEqual([])
    for (let offset = 0; offset < 30; offset++) {
      const read = await segments.read(offset, 1)
      const missing = offset >= 24
      const expected = missing ? [] : gaps.filter((batch) => nextOf(batch) > offset).slice(0, 1)
      expect([offset, split(read.bytes)]).toEqual([offset, expected.map(hex)])
      expect(read.base).toBeLessThanOrEqual(offset)
      expect(read.next).toBeGreaterThan(offset)
      if (offset < 2 || (offset >= 8 && offset < 20)) expect(read.base).toBe(offset)
      if (missing) expect(read.next).toBe(30)
    }
    const all = await segments.read(0, 1_000_000)
    expect([split(all.bytes), all.base, all.next]).toEqual([gaps.map(hex), 0, 30])
    expect(segments.stored()).toEqual(stored)
    await append(segments, batchAt(30, { deltas: 1 }))
    expect(await readAll(segments, 25)).toHaveLength(1)
  })

  it('is damaged by a flipped bit all the same', async () => {
    const fs = await compacted()
    await readAll(await openSegments(fs, stored), 0)
    for (let position = 0; position < footer.sizeBytes; position++) {
      const machine = fs.copy()
      machine.flipBit(logPath(0), position, position % 8)
      const segments = await openSegments(machine, stored)
      const refused: number[] = []
      for (const [i, batch] of gaps.entries()) {
        const found = await outcome(segments.read(baseOf(batch), 1))
        if (found instanceof OdradekError) refused.push(i)
        else expect(found).toEqual([hex(batch)])
      }
      // The second one follows the first without a gap, and so without an entry in the index.
      const first = (gaps[0] as Uint8Array).length
      const second = first + (gaps[1] as Uint8Array).length
      const expected = position < first ? [0, 1] : position < second ? [1] : [2]
      expect([position, refused]).toEqual([position, expected])
      expect(await verify(machine, stored)).toHaveLength(1)
    }
  })

  it('is no excuse for gaps elsewhere', async () => {
    const fs = await compacted()
    const claimed = stored.map(({ compacted: _, ...rest }) => rest)
    expect(await codeOf((await openSegments(fs, claimed)).read(2))).toBe('CORRUPT_LOG')
  })
})
