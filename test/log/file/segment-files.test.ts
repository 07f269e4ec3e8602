/** What the files of a directory say of segments where no checkpoint can be read. */
import { expect, it } from 'vitest'
import { logsOnDisk } from '../../../src/log/file/segment-files.ts'
import { encodeFooter } from '../../../src/log/file/segment-footer.ts'
import { segmentPath } from '../../../src/log/file/segment-paths.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { batchAt, joined } from './batches.ts'

const DIRECTORY = 'logs/t-0'

/** A file with one batch of the offsets from `base` to `next`. */
function segment(fs: SimFs, base: number, next: number, generation: number, sealed: boolean): void {
  const batch = batchAt(base, { deltas: next - base })
  const footer = encodeFooter(
    { base, next, sizeBytes: batch.length, maxTimestamp: 1, crc: crc32c(batch), compacted: generation > 0 },
    crc32c,
  )
  fs.put(segmentPath(DIRECTORY, base, generation), sealed ? joined([batch, footer]) : batch)
}

it('a segment is there unless a sealed one of a later generation has its offsets', async () => {
  const fs = new SimFs()
  segment(fs, 0, 4, 0, true)
  segment(fs, 4, 8, 0, true)
  // Compaction has put this one in the place of both, and was killed before it removed them.
  segment(fs, 0, 8, 1, true)
  segment(fs, 8, 12, 0, true)
  // This one was still being written.
  segment(fs, 8, 12, 1, false)
  segment(fs, 12, 14, 0, false)
  const [log, ...others] = await logsOnDisk(fs, crc32c)
  expect(others).toEqual([])
  expect(log?.id).toEqual({ topicId: 't', partition: 0 })
  const seen = log?.segments.map(({ base, next, generation, sealed }) => ({ base, next, generation, sealed }))
  expect(seen?.sort((a, b) => a.base - b.base || (a.generation ?? 0) - (b.generation ?? 0))).toEqual([
    { base: 0, next: 8, generation: 1, sealed: true },
    { base: 8, next: 12, generation: undefined, sealed: true },
    { base: 8, next: 8, generation: 1, sealed: false },
    { base: 12, next: 12, generation: undefined, sealed: false },
  ])
})
