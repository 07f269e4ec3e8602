/** Opening with `salvage`: what is damaged is lost, what is not is there, and it is said which is which. */
import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../../src/log/contract.ts'
import type { StoredSegment } from '../../../src/log/file/checkpoint.ts'
import type { Finding } from '../../../src/log/file/segment-check.ts'
import { indexPath, segmentPath } from '../../../src/log/file/segment-paths.ts'
import { verifyDirectory } from '../../../src/log/file/verify.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf } from '../../support/world.ts'
import { Dice } from '../../torture/dice.ts'
import { boot, compacted, type Machine, put, type Row, rowsOf, SMALL, storedOf } from './compaction-kit.ts'
import {
  accepted,
  latestOf,
  markerBatch,
  tinyCompression,
  WireConsumer,
  wireBatch,
} from './compaction-model.ts'

const PLAIN = compacted({ cleanup: 'delete' })
const OTHER = compacted({ cleanup: 'delete', topicId: 'other' })

interface Disk {
  readonly fs: SimFs
  readonly rows: readonly Row[]
  readonly segments: readonly StoredSegment[]
  readonly end: number
}

/** Sealed segments and an active one of small batches, one of them transactional and aborted, and another log beside. */
async function written(spec = PLAIN): Promise<Disk> {
  const machine = await boot(new SimFs(), { ...SMALL, segmentBytes: 600 }, { compression: tinyCompression })
  const { engine, clock, fs } = machine
  const [log, other] = [await engine.openLog(spec), await engine.openLog(OTHER)]
  for (let i = 0; i < 18; i++) {
    await clock.advance(1000)
    for (let each = 0; each < 2; each++) put(log, clock, `k${(i * 2 + each) % 5}`, `value ${i} ${each}`)
    put(other, clock, 'k', `${i}`)
    await log.flush()
    if (i === 3 || i === 9) await transaction(log, clock.now(), i === 9)
  }
  const rows = await rowsOf(log)
  const { end } = log.marks
  await engine.close()
  const { segments } = await storedOf(fs)
  expect(segments.length).toBeGreaterThan(3)
  expect(segments.at(-1)?.sealed).toBe(false)
  return { fs: fs as SimFs, rows, segments, end }
}

async function transaction(log: PartitionLog, now: number, commit: boolean): Promise<void> {
  const producer = { id: 1, epoch: 0, sequence: commit ? 2 : 0, transactional: true }
  const said = [0, 1].map((i) => ({ key: `t${i}`, value: `in a transaction ${commit}` }))
  accepted(log.tryAppend(wireBatch(said, producer, now, 1)))
  accepted(log.tryAppend(markerBatch(1, commit, now)))
  await log.flush()
}

function pathOf({ base, generation }: StoredSegment): string {
  return segmentPath('logs/t-0', base, generation)
}

/** All files as they are. */
function content(fs: SimFs): Map<string, string> {
  const paths = fs.files().filter((path) => !path.startsWith('journal/'))
  return new Map(paths.map((path) => [path, Buffer.from(fs.bytesOf(path)).toString('base64')]))
}

async function findingsIn(fs: SimFs): Promise<Finding[]> {
  const findings: Finding[] = []
  for await (const finding of verifyDirectory({ fs, crc32c })) if (!finding.harmless) findings.push(finding)
  return findings
}

interface After {
  readonly rows: readonly Row[]
  readonly reports: readonly string[]
  readonly machine: Machine
  readonly log: PartitionLog
}

const context = { compression: tinyCompression }

/** Opens with salvage, and again without: what is there is the same, and nothing is wrong any more. */
async function salvaged(fs: SimFs, end: number, spec = PLAIN): Promise<After> {
  const first = await boot(fs, { ...SMALL, salvage: true }, context)
  const log = await first.engine.openLog(spec)
  expect([log.marks.end, log.marks.high, log.marks.start]).toEqual([end, end, 0])
  const rows = await rowsOf(log)
  const wire = new WireConsumer(0)
  while (await wire.poll(log));
  expect(wire.rows).toEqual(rows)
  const { epoch } = log.marks
  expect(await findingsIn(fs.copy())).toEqual([])
  await first.engine.close()
  const machine = await boot(fs.kill(), SMALL, context)
  const again = await machine.engine.openLog(spec)
  expect([await rowsOf(again), again.marks.epoch, again.marks.end]).toEqual([rows, epoch, end])
  expect(machine.reports).toEqual([])
  return { rows, reports: first.reports, machine, log: again }
}

/** Offsets that are told of as lost. */
function lostIn(reports: readonly string[]): number[] {
  const lost: number[] = []
  for (const [, from, to] of reports.join('\n').matchAll(/(\d+) to (\d+) \(from byte/g)) {
    for (let offset = Number(from); offset <= Number(to); offset++) lost.push(offset)
  }
  return lost
}

/** What is not lost is there, as it was, and what is lost was told of. */
function expectAllBut(rows: readonly Row[], after: After): readonly number[] {
  const lost = lostIn(after.reports)
  expect(after.rows).toEqual(rows.filter(({ offset }) => !lost.includes(offset)))
  return lost
}

describe('a segment that is missing', () => {
  it.each([0, 1, 2, -1])(
    '(number %i) is refused, and touches nothing, until salvage does without it',
    async (at) => {
      const { fs, rows, segments, end } = await written()
      const segment = segments.at(at) as StoredSegment
      fs.erase(pathOf(segment))
      const before = content(fs)
      expect(await codeOf(boot(fs, SMALL, context))).toBe('CORRUPT_LOG')
      expect(content(fs)).toEqual(before)
      const after = await salvaged(fs, end)
      const lost = expectAllBut(rows, after)
      expect([lost[0], lost.length]).toEqual([segment.base, segment.next - segment.base])
      expect(after.reports).toHaveLength(1)
      expect(after.reports[0]).toContain(`${pathOf(segment)} is damaged at byte 0 (it is missing)`)
      expect(after.log.marks.epoch).toBe(1)
      expect((await after.machine.engine.openLog(OTHER)).marks.epoch).toBe(0)
      // And it goes on.
      const offset = put(after.log, after.machine.clock, 'k', 'goes on')
      await after.log.flush()
      expect([offset, (await rowsOf(after.log)).at(-1)?.value]).toEqual([end, 'goes on'])
      await after.machine.engine.close()
    },
  )

  it('is no loss below where the log begins', async () => {
    const { fs, segments, end } = await written()
    const machine = await boot(fs, SMALL, context)
    const log = await machine.engine.openLog(PLAIN)
    const start = (segments[1] as StoredSegment).next - 1
    await log.trim(start)
    const killed = fs.kill()
    killed.erase(pathOf(segments[0] as StoredSegment))
    killed.flipBit(pathOf(segments[1] as StoredSegment), 80)
    const again = await boot(killed, { ...SMALL, salvage: true }, context)
    expect((await again.engine.openLog(PLAIN)).marks).toMatchObject({ start, end })
    expect(again.reports).toHaveLength(1)
    await again.engine.close()
  })
})

describe('an active segment that is too short', () => {
  it('is refused at every length, until salvage ends it there', async () => {
    const { fs: whole, rows, segments, end } = await written()
    const active = segments.at(-1) as StoredSegment
    for (let length = 0; length < active.sizeBytes; length += 7) {
      const fs = whole.copy()
      fs.resize(pathOf(active), length)
      const before = content(fs)
      expect(await codeOf(boot(fs.copy(), SMALL, context))).toBe('CORRUPT_LOG')
      expect(content(fs)).toEqual(before)
      const after = await salvaged(fs, end)
      const lost = expectAllBut(rows, after)
      expect(lost.at(-1)).toBe(end - 1)
      if (length === 0) expect(lost).toHaveLength(end - active.base)
      const copies = fs.files().filter((path) => path.startsWith('torn/'))
      expect(copies).toEqual([`torn/${pathOf(active).replaceAll('/', '-')}`])
      expect(fs.bytesOf(copies[0] as string).length).toBe(length)
      await after.machine.engine.close()
    }
  })
})

describe('a flipped bit', () => {
  it.each([
    ['with an index', true],
    ['without', false],
  ])('costs the batch that it is in at most, %s', async (_, indexed) => {
    const { fs: whole, rows, segments, end } = await written()
    if (!indexed) for (const path of whole.files()) if (path.endsWith('.index')) whole.erase(path)
    let mended = 0
    for (const segment of [segments[1], segments.at(-1)] as StoredSegment[]) {
      for (let position = 0; position < segment.sizeBytes; position += 3) {
        const fs = whole.copy()
        fs.flipBit(pathOf(segment), position, position % 8)
        const after = await salvaged(fs, end)
        const lost = expectAllBut(rows, after)
        expect([position, lost.length]).toEqual([position, Math.min(lost.length, 3)])
        if (lost.length === 0) mended++
        expect(after.reports).toHaveLength(1)
        await after.machine.engine.close()
      }
    }
    // Offsets and epochs follow from what surrounds a batch.
    expect(mended).toBeGreaterThan(10)
  })

  it('in a footer costs nothing', async () => {
    const { fs, rows, segments, end } = await written()
    const segment = segments[1] as StoredSegment
    fs.flipBit(pathOf(segment), segment.sizeBytes + 20)
    const after = await salvaged(fs, end)
    expect(expectAllBut(rows, after)).toEqual([])
    expect(after.reports[0]).toContain('no record is lost')
    await after.machine.engine.close()
  })

  it('in an index is no damage', async () => {
    const { fs, rows, segments, end } = await written()
    fs.flipBit(indexPath('logs/t-0', (segments[1] as StoredSegment).base), 60)
    const after = await salvaged(fs, end)
    expect([after.rows, after.reports, after.log.marks.epoch]).toEqual([rows, [], 0])
    await after.machine.engine.close()
  })
})

describe('larger damage', () => {
  it('of any kind costs what it covers, and nothing else', async () => {
    const { fs: whole, rows, segments, end } = await written()
    for (let seed = 0; seed < 150; seed++) {
      const dice = new Dice(seed)
      const fs = whole.copy()
      const segment = dice.pick(segments)
      const bytes = fs.bytesOf(pathOf(segment))
      const from = dice.below(segment.sizeBytes)
      const to = Math.min(segment.sizeBytes, from + 1 + dice.below(200))
      const kind = dice.pick(['zeros', 'noise', 'shifted'])
      if (kind === 'zeros') bytes.fill(0, from, to)
      else if (kind === 'noise') for (let at = from; at < to; at++) bytes[at] = dice.below(256)
      else bytes.copyWithin(from, Math.max(0, from - 97), Math.max(0, to - 97))
      fs.put(pathOf(segment), bytes)
      if (dice.chance(0.5)) for (const path of fs.files()) if (path.endsWith('.index')) fs.erase(path)
      const intact = Buffer.compare(bytes, whole.bytesOf(pathOf(segment))) === 0
      const after = await salvaged(fs, end)
      const lost = expectAllBut(rows, after)
      expect([seed, after.reports.length]).toEqual([seed, intact ? 0 : 1])
      // A batch is some 100 bytes of two or three offsets.
      expect(lost.length).toBeLessThanOrEqual(3 * (2 + Math.ceil((to - from) / 80)))
      await after.machine.engine.close()
    }
  })
})

describe('the marker of an aborted transaction that is lost', () => {
  it('is made again, so that what its producer committed later counts', async () => {
    const { fs, rows, segments, end } = await written()
    const aborted = (await storedOf(fs)).state.aborted[0]
    const { marker = 0 } = aborted ?? {}
    const holder = segments.find(({ base, next }) => base <= marker && marker < next) as StoredSegment
    fs.erase(pathOf(holder))
    const after = await salvaged(fs, end)
    const lost = lostIn(after.reports)
    expect(lost).toContain(marker)
    expect(after.rows).toEqual(rows.filter(({ offset }) => !lost.includes(offset)))
    expect(after.rows.some(({ key, offset }) => key === 't0' && offset > marker)).toBe(true)
    await after.machine.engine.close()
  })
})

describe('salvage', () => {
  it('that is killed, or loses power, at any operation begins again', async () => {
    const { fs: whole, rows, segments, end } = await written()
    whole.flipBit(pathOf(segments[1] as StoredSegment), 80)
    whole.erase(pathOf(segments[2] as StoredSegment))
    whole.resize(pathOf(segments.at(-1) as StoredSegment), 50)
    const expected = lostIn((await salvaged(whole.copy(), end)).reports)
    expect(expected.length).toBeGreaterThan(3)
    for (let at = 1; ; at++) {
      const fs = whole.copy()
      fs.onOperation = (_, __, ordinal) =>
        ordinal === at ? { halt: at % 2 === 0 ? 'before' : 'after' } : undefined
      const open = boot(fs, { ...SMALL, salvage: true }, context)
      const done = await Promise.race([open.then(() => true), halted(fs)])
      if (done) break
      const next = at % 3 === 0 ? fs.kill() : fs.crash({ seed: at })
      const { reports: _reports, ...after } = await salvaged(next, end)
      expect([at, after.rows]).toEqual([at, rows.filter(({ offset }) => !expected.includes(offset))])
      expect(after.log.marks.epoch).toBe(1)
      await after.machine.engine.close()
    }
  }, 120_000)

  it('of a compacted log leaves it compacted', async () => {
    const { fs, rows, segments, end } = await written(compacted())
    const first = segments[0] as StoredSegment
    expect(first.compacted).toBe(true)
    fs.flipBit(pathOf(first), 80)
    const after = await salvaged(fs, end, compacted())
    expect(after.reports).toHaveLength(1)
    const known = new Map(rows.map((row) => [row.offset, row]))
    for (const row of after.rows) expect(known.get(row.offset)).toEqual(row)
    expect(latestOf(after.rows).size).toBeGreaterThan(0)
    await after.machine.engine.close()
  })

  it('changes nothing where nothing is wrong', async () => {
    const { fs, rows, end } = await written()
    const before = content(fs)
    const after = await salvaged(fs, end)
    expect([after.rows, after.reports]).toEqual([rows, []])
    expect(new Map([...content(fs)].filter(([path]) => path !== 'checkpoint'))).toEqual(
      new Map([...before].filter(([path]) => path !== 'checkpoint')),
    )
    await after.machine.engine.close()
  })

  it('needs the checkpoint, and says so', async () => {
    const { fs } = await written()
    fs.flipBit('checkpoint', 200)
    const opening = boot(fs, { ...SMALL, salvage: true }, context)
    await expect(opening).rejects.toThrow('restore it from a copy of the directory; `salvage` needs it too')
  })

  it('fails where the disk does, and leaves everything to the next try', async () => {
    const { fs, rows, segments, end } = await written()
    fs.flipBit(pathOf(segments[1] as StoredSegment), 80)
    fs.onOperation = (operation, path) =>
      operation === 'write' && path.includes('-1.log') ? { fail: 'ENOSPC' } : undefined
    expect(await codeOf(boot(fs, { ...SMALL, salvage: true }, context))).toBe('STORAGE_FULL')
    fs.onOperation = () => undefined
    expectAllBut(rows, await salvaged(fs.kill(), end))
  })
})

async function halted(fs: SimFs): Promise<boolean> {
  while (!fs.halted) await new Promise((resolve) => setImmediate(resolve))
  return false
}
