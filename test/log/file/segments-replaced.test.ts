/** Segments that are replaced while something else is under way with them. */
import { describe, expect, it } from 'vitest'
import { Rewriter } from '../../../src/log/file/rewriter.ts'
import type { Segment } from '../../../src/log/file/segment.ts'
import type { Segments } from '../../../src/log/file/segments.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { batchAt, T0 } from './batches.ts'
import { append, hex, logPath, openSegments, readAll } from './segments-kit.ts'

const list = [0, 1, 2, 3].map((i) => batchAt(i * 2, { deltas: 2, timestamp: T0 + i * 1000 }))
const size = (list[0] as Uint8Array).length

/** Three sealed segments of one batch each, and an active one. */
async function four(fs: SimFs): Promise<Segments> {
  const segments = await openSegments(fs, [], { segmentBytes: size })
  await append(segments, ...list)
  await segments.sync()
  return segments
}

/** What may take the place of the first two. */
async function rewritten(
  segments: Segments,
): Promise<[sources: readonly [Segment, ...Segment[]], by: Segment]> {
  const [first, second] = segments.sealedBelow(4)
  const output = new Rewriter(await segments.begin(0, 1))
  output.add(list[0] as Uint8Array)
  output.add(list[1] as Uint8Array)
  await output.finish(4)
  return [[first as Segment, second as Segment], output.segment]
}

describe('a segment that is replaced while it is read', () => {
  it('is read in the one that has taken its place, where its own file is no more to be had', async () => {
    const fs = new SimFs()
    const segments = await four(fs)
    const [sources, by] = await rewritten(segments)
    for (const look of [() => segments.read(2), () => segments.read(0)]) {
      fs.onOperation = (_, path) => (path === logPath(0) || path === logPath(2) ? { fail: 'EIO' } : undefined)
      const reading = look()
      if (segments.list.length === 4) expect(segments.replace(sources, by)).toBe(true)
      expect((await reading).next).toBeGreaterThanOrEqual(4)
    }
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
  })

  it('is looked through for a time in the same way', async () => {
    const fs = new SimFs()
    const stored = (await four(fs)).stored()
    // Opened anew, so that no index is in memory.
    const segments = await openSegments(fs, stored, { segmentBytes: size })
    const [sources, by] = await rewritten(segments)
    fs.onOperation = (_, path) => (path.includes('/00000000000000000002.') ? { fail: 'EIO' } : undefined)
    const seeking = segments.seekTime(T0 + 1000)
    segments.replace(sources, by)
    expect(await seeking).toBe(0)
  })
})

describe('a segment that is replaced', () => {
  it('is removed once, whoever asks, and no other', async () => {
    const fs = new SimFs()
    const segments = await four(fs)
    const [sources, by] = await rewritten(segments)
    expect(segments.replace(sources, by)).toBe(true)
    expect(segments.replace(sources, by)).toBe(false)
    expect([segments.replaced.length, segments.replacedBytes]).toEqual([2, 2 * size])
    const removing = [...segments.replaced]
    await segments.removeReplaced(removing)
    const files = fs.files()
    await segments.removeReplaced([...removing, by])
    expect([fs.files(), segments.replaced.length, segments.replacedBytes]).toEqual([files, 0, 0])
    expect(await readAll(segments, 0)).toEqual(list.map(hex))
  })
})
