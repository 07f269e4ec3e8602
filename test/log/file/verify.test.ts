import { describe, expect, it } from 'vitest'
import {
  type Checkpoint,
  readCheckpoint,
  type StoredLog,
  writeCheckpoint,
} from '../../../src/log/file/checkpoint.ts'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import { GroupBuilder, seeded } from '../../../src/log/file/group.ts'
import { readDirectory } from '../../../src/log/file/inspect.ts'
import type { Finding } from '../../../src/log/file/segment-check.ts'
import {
  type Progress,
  type Verified,
  type VerifyOptions,
  verifyDirectory,
} from '../../../src/log/file/verify.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { keeping, specOf, wireBatchOf } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { batchAt } from './batches.ts'
import { changesOf, contentOf, leftBy } from './inspect-kit.ts'

async function verify(
  fs: SimFs,
  options: Partial<VerifyOptions> = {},
): Promise<{ findings: Finding[]; verified: Verified }> {
  const before = contentOf(fs)
  const changes = changesOf(fs)
  const findings: Finding[] = []
  const walk = verifyDirectory({ fs, crc32c, ...options })
  for (;;) {
    const { done, value } = await walk.next()
    if (done === true) {
      if (options.fs === undefined) expect([changes, contentOf(fs), fs.openFiles]).toEqual([[], before, 0])
      return { findings, verified: value }
    }
    findings.push(value)
  }
}

async function damagesOf(fs: SimFs, options: Partial<VerifyOptions> = {}): Promise<Finding[]> {
  return (await verify(fs, options)).findings.filter(({ harmless }) => !harmless)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}

/** A log of seven batches in four segments, closed. */
async function closed(): Promise<SimFs> {
  const fs = new SimFs()
  const engine = await fileEngine({ clock: new ManualClock(), fs }, { segmentBytes: 600 })
  const log = await engine.openLog(specOf(keeping({}), 't'))
  for (let i = 0; i < 7; i++) {
    log.tryAppend(wireBatchOf([{ value: `${i}`.repeat(100) }]))
    await log.flush()
  }
  await engine.close()
  return fs
}

const FIRST = 'logs/t-0/00000000000000000000.log'

describe('verification', () => {
  it('finds no damage in what a program leaves, wherever it is stopped, by a kill or by a loss of power', async () => {
    let torn = 0
    for (const durability of ['fsync', 'os'] as const) {
      for (let stop = 1; stop < 260; stop += 5) {
        const left = await leftBy(stop % 5, { durability, stop })
        for (const fs of [left.copy(), left.crash({ seed: stop }), left.crash({ seed: stop + 1 })]) {
          const { findings } = await verify(fs)
          expect([stop, findings.filter(({ harmless }) => !harmless)]).toEqual([stop, []])
          torn += findings.filter(({ file }) => file.startsWith('journal/')).length
        }
      }
    }
    expect(torn).toBeGreaterThan(0)
  })

  it('says what it has read', async () => {
    const fs = await closed()
    const seen: Progress[] = []
    const { findings, verified } = await verify(fs, { progress: (progress) => seen.push(progress) })
    const { logs } = (await readDirectory({ fs, crc32c })).report
    const sizes = logs[0]?.segments.map(({ sizeBytes }) => sizeBytes) ?? []
    const sizeBytes = sum(sizes)
    expect(findings).toEqual([])
    expect(verified).toEqual({ logs: 1, segments: 4, sizeBytes, groups: 0 })
    expect(seen.map(({ file, totalBytes }) => [file, totalBytes])).toEqual(
      logs[0]?.segments.map(({ file }) => [file, sizeBytes]),
    )
    expect(seen.map(({ doneBytes }) => doneBytes)).toEqual(sizes.map((_, i) => sum(sizes.slice(0, i))))
  })

  it('finds every flipped bit of segments and checkpoint where it is, and of an index as harmless', async () => {
    const fs = await closed()
    const files = fs.files().filter((path) => path.startsWith('logs/') || path === 'checkpoint')
    for (const file of files) {
      const size = fs.bytesOf(file).length
      for (let at = 0; at < size; at += 31) {
        const spoilt = fs.copy()
        spoilt.flipBit(file, at, at % 8)
        const { findings } = await verify(spoilt)
        expect([file, at, findings.map((finding) => finding.file)]).toEqual([file, at, [file]])
        expect([file, at, findings[0]?.harmless]).toEqual([file, at, file.endsWith('.index')])
        expect(findings[0]?.position).toBeLessThanOrEqual(size)
      }
    }
  })

  it('finds every flipped bit in the middle of the journal, and takes one in its last group for torn', async () => {
    const fs = await leftBy(2, { stop: 66 })
    const { report } = await readDirectory({ fs, crc32c })
    const used = report.journal?.sizeBytes as number
    expect(report.journal?.groups).toBeGreaterThan(2)
    const found = new Set<boolean>()
    for (let at = 0; at < used; at += 5) {
      const spoilt = fs.copy()
      spoilt.flipBit('journal/a', at, at % 8)
      const { findings } = await verify(spoilt)
      expect([at, findings.map(({ file }) => file)]).toEqual([at, ['journal/a']])
      expect(findings[0]?.position).toBeLessThanOrEqual(at)
      found.add(findings[0]?.harmless as boolean)
    }
    expect(found).toEqual(new Set([true, false]))
  })

  it('finds missing and short files', async () => {
    const fs = await closed()
    const [, second] = (await readDirectory({ fs, crc32c })).report.logs[0]?.segments ?? []
    const missing = fs.copy()
    missing.erase(second?.file as string)
    expect(await damagesOf(missing)).toEqual([
      { file: second?.file, position: 0, what: 'it is missing', harmless: false },
    ])
    const short = fs.copy()
    short.resize(FIRST, 10)
    expect(await damagesOf(short)).toMatchObject([{ file: FIRST, position: 10, what: 'the file ends here' }])
    fs.erase('checkpoint')
    expect(await damagesOf(fs)).toMatchObject([{ file: 'checkpoint', position: 0 }])
  })

  it('looks at sealed segments also where the checkpoint is broken, by their footers', async () => {
    const fs = await closed()
    fs.flipBit('checkpoint', 80)
    expect((await verify(fs)).verified).toMatchObject({ logs: 1, segments: 3, groups: 0 })
    fs.flipBit(FIRST, 100)
    expect((await damagesOf(fs)).map(({ file }) => file)).toEqual(['checkpoint', FIRST])
  })

  it('holds what a checkpoint says of a log against itself', async () => {
    const fs = await closed()
    const checkpoint = await readCheckpoint(fs, crc32c)
    const [log] = (checkpoint?.logs ?? []) as [StoredLog]
    const wrong = { ...log, end: 5, start: 6, state: { ...log.state, version: 2 } } as unknown as StoredLog
    await writeCheckpoint(fs, { ...(checkpoint as NonNullable<typeof checkpoint>), logs: [wrong] }, crc32c)
    expect((await damagesOf(fs)).map(({ file, what }) => `${file}: ${what}`)).toEqual([
      'checkpoint: t/0: its segments end at 7, the log at 5',
      'checkpoint: t/0: it begins at 6 and ends at 5',
      "checkpoint: t/0: the snapshot of a partition's state is damaged: version 2",
    ])
  })

  it('checks the batches that only the journal has', async () => {
    const fs = await closed()
    const checkpoint = (await readCheckpoint(fs, crc32c)) as Checkpoint
    const { seed, sequence } = checkpoint
    // After a close nobody reads the journal.
    await writeCheckpoint(fs, { ...checkpoint, clean: false }, crc32c)
    const group = new GroupBuilder()
    const log = { topicId: 't', partition: 0 }
    const good = batchAt(7, { deltas: 2 })
    const broken = batchAt(9, { deltas: 2 })
    broken[70] = (broken[70] as number) ^ 1
    for (const batch of [
      good,
      broken,
      batchAt(12, { deltas: 1 }),
      good.subarray(0, 40),
      Buffer.concat([good, good]),
    ])
      group.batch(log, batch)
    fs.put('journal/a', Buffer.concat(group.finish(sequence + 1, sequence, seeded(crc32c, seed))))
    expect((await damagesOf(fs)).map(({ file, what }) => `${file}: ${what}`)).toEqual([
      'journal/a: the CRC does not match',
      'journal/a: offset 12 where 9 should be',
      'journal/a: not one whole batch',
      'journal/a: not one whole batch',
    ])
  })

  describe('beside a broker', () => {
    it('tells of damage that it finds twice, and of no crash', async () => {
      const fs = await leftBy(2, { stop: 66 })
      const used = (await readDirectory({ fs, crc32c })).report.journal?.sizeBytes as number
      fs.flipBit('journal/a', used - 3)
      expect((await verify(fs)).findings).toMatchObject([{ harmless: true }])
      expect((await verify(fs, { moving: true })).findings).toEqual([])
      const sealed = await closed()
      sealed.flipBit(FIRST, 100)
      expect(await damagesOf(sealed, { moving: true })).toMatchObject([{ file: FIRST }])
    })

    it('forgets what is mended or gone when it looks again', async () => {
      const fs = await closed()
      const spoilt = fs.copy()
      spoilt.flipBit(FIRST, 100)
      let opens = 0
      const moving: SimFs = new Proxy(spoilt, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          if (name === 'open') {
            return (path: string, mode: 'read') =>
              (path === FIRST && ++opens > 2 ? fs : target).open(path, mode)
          }
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      expect(await damagesOf(fs, { fs: moving, moving: true })).toEqual([])
      expect(opens).toBeGreaterThan(2)
    })
  })
})
