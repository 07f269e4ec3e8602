/** Compaction behind an engine: when it happens, what it waits for, how it ends, and what everybody else sees of it. */
import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../../src/log/contract.ts'
import { verifyDirectory } from '../../../src/log/file/verify.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { codeOf } from '../../support/world.ts'
import {
  boot,
  compactableOf,
  compacted,
  DAY_MS,
  type Machine,
  onReplaced,
  put,
  type Row,
  rowsOf,
  SMALL,
  settled,
  storedOf,
} from './compaction-kit.ts'
import { latestOf } from './compaction-model.ts'

const KiB = 1024

/** So many records of so many keys, every ninth a tombstone. */
async function fill(
  { clock }: Machine,
  log: PartitionLog,
  count: number,
  sizeBytes = 50,
  keys = 7,
): Promise<void> {
  for (let i = 0; i < count; i++) {
    const value = i % 9 === 8 ? null : `value ${i} ${'x'.repeat(sizeBytes)}`
    put(log, clock, `k${i % keys}`, value)
    if (i % 5 === 4) await log.flush()
  }
  await log.flush()
}

/** A disk with a log of several segments that was not compacted so far, and all that is in it. */
async function uncompacted(
  count = 100,
  keys = 7,
): Promise<{ readonly fs: SimFs; readonly rows: readonly Row[] }> {
  const fs = new SimFs()
  const machine = await boot(fs)
  const log = await machine.engine.openLog(compacted({ cleanup: 'delete' }))
  await fill(machine, log, count, 50, keys)
  const rows = await rowsOf(log)
  await machine.engine.close()
  expect((await storedOf(fs)).segments.length).toBeGreaterThan(3)
  return { fs: fs.kill(), rows }
}

/** What was there is there, or has a newer one of its key. */
function expectNewest(seen: readonly Row[], rows: readonly Row[]): void {
  const known = new Map(rows.map((row) => [row.offset, row]))
  for (const row of seen) expect(row).toEqual(known.get(row.offset))
  const latest = latestOf(seen)
  for (const [key, row] of latestOf(rows)) {
    if (row.value !== null) expect(latest.get(key)).toEqual(row)
    else expect(latest.get(key)?.value ?? null).toBe(null)
  }
}

function files(fs: SimFs): string[] {
  return fs.files().filter((path) => path.startsWith('logs/') && path.endsWith('.log'))
}

async function nothingIsWrong(fs: SimFs): Promise<void> {
  for await (const finding of verifyDirectory({ fs, crc32c }))
    expect(finding).toMatchObject({ harmless: true })
}

describe('a compacted log', () => {
  it('is compacted while it is written to, and its marks and its tail are what they were', async () => {
    const machine = await boot(new SimFs())
    const log = await machine.engine.openLog(compacted())
    await fill(machine, log, 2000)
    await settled(machine)
    expect(log.marks).toMatchObject({ start: 0, stable: 2000, high: 2000, end: 2000 })
    const rows = await rowsOf(log)
    expect(rows.length).toBeLessThan(60)
    const { base } = compactableOf(log).segments.list.at(-1) as { readonly base: number }
    const tail = rows.filter(({ offset }) => offset >= base)
    expect([base > 1900, tail.length]).toEqual([true, 2000 - base])
    expect(log.sizeBytes).toBeLessThan(8 * KiB)
    for (let at = 0; at < 2000; at += 50) {
      expect(log.bytesFrom(at)).toBeGreaterThanOrEqual(log.bytesFrom(at + 50))
      // Whoever is at an offset that is gone goes on at the next one that is there.
      const [row] = await rowsOf(log, at)
      expect(row).toEqual(rows.find(({ offset }) => offset >= at))
    }
    expect(machine.reports).toEqual([])
    await machine.engine.close()
    await nothingIsWrong(machine.fs as SimFs)
  })

  it('is not compacted where it is to be kept whole', async () => {
    const { fs, rows } = await uncompacted()
    const machine = await boot(fs)
    const log = await machine.engine.openLog(compacted({ cleanup: 'delete' }))
    await settled(machine)
    await machine.clock.advance(9 * DAY_MS)
    expect(await rowsOf(log)).toEqual(rows)
    expect(compactableOf(log).horizonFrom(0)).toBe(undefined)
    await machine.engine.close()
  })

  it('is compacted when it is opened, and not again after that', async () => {
    const { fs, rows } = await uncompacted()
    const first = await boot(fs)
    const log = await first.engine.openLog(compacted())
    await settled(first)
    const after = await rowsOf(log)
    expect(after.length).toBeLessThan(rows.length / 2)
    expectNewest(after, rows)
    await first.engine.close()
    const stored = await storedOf(fs)
    expect(stored.compaction?.until).toBe(stored.segments.at(-1)?.base)
    const second = await boot(fs.kill())
    const began = (second.fs as SimFs).operations
    await second.engine.openLog(compacted())
    await settled(second)
    expect((second.fs as SimFs).operations).toBe(began)
    await second.engine.close()
  })

  it('loses tombstones by time alone', async () => {
    const { fs, rows } = await uncompacted()
    const machine = await boot(fs)
    const log = await machine.engine.openLog(compacted())
    await settled(machine)
    const tombstones = async (): Promise<number> => {
      const { base = 0 } = compactableOf(log).segments.list.at(-1) ?? {}
      return (await rowsOf(log)).filter(({ value, offset }) => value === null && offset < base).length
    }
    expect(await tombstones()).toBeGreaterThan(0)
    await machine.clock.advance(DAY_MS - 1000)
    expect(await tombstones()).toBeGreaterThan(0)
    await machine.clock.advance(1000)
    await settled(machine)
    expect(await tombstones()).toBe(0)
    expectNewest(await rowsOf(log), rows)
    // And nothing is waited for any more.
    expect([compactableOf(log).horizon, machine.clock.pending]).toEqual([Number.POSITIVE_INFINITY, 0])
    await machine.engine.close()
  })

  it('loses tombstones in a later process, whose time they had', async () => {
    const { fs } = await uncompacted()
    const machine = await boot(fs)
    await machine.engine.openLog(compacted())
    await settled(machine)
    await machine.engine.close()
    const { compaction } = await storedOf(fs)
    expect(compaction?.horizon).toBe(machine.clock.now() + DAY_MS)
    const later = await boot(fs.kill())
    const log = await later.engine.openLog(compacted())
    await settled(later)
    expect(compactableOf(log).horizon).toBe(compaction?.horizon)
    expect(later.clock.nextTimerMs).toBe(DAY_MS)
    await later.clock.advance(DAY_MS)
    await settled(later)
    expect(compactableOf(log).horizon).toBe(Number.POSITIVE_INFINITY)
    await later.engine.close()
  })

  it('ends its segments early, so that it comes to that', async () => {
    const machine = await boot(new SimFs(), { journalBytes: 1024 * KiB })
    const log = await machine.engine.openLog(compacted())
    await fill(machine, log, 900, 10 * KiB)
    await settled(machine)
    expect(log.sizeBytes).toBeLessThan(3072 * KiB)
    const { list } = compactableOf(log).segments
    expect(list[0]).toMatchObject({ base: 0, compacted: true })
    expect(list.length).toBeLessThan(4)
    await machine.engine.close()
  })

  it('ends a segment that is old, whatever its size', async () => {
    const machine = await boot(new SimFs(), { journalBytes: 1024 * KiB })
    const log = await machine.engine.openLog(compacted({ deleteRetentionMs: 0 }))
    for (let i = 0; i < 4; i++) {
      put(log, machine.clock, 'k', `${i}`)
      await log.flush()
      await machine.clock.advance(3_600_001)
    }
    await machine.engine.close()
    expect((await storedOf(machine.fs)).segments.map(({ base }) => base)).toEqual([0, 1, 2, 3])
  })

  it('has no more on the disk that was replaced than its journal takes, though nobody writes', async () => {
    const { fs } = await uncompacted(600, 250)
    const before = files(fs)
    const machine = await boot(fs)
    const log = await machine.engine.openLog(compacted())
    let replaced = 0
    onReplaced(log, () => void replaced++)
    await settled(machine)
    expect(replaced).toBeGreaterThan(3)
    const { segments } = compactableOf(log)
    expect(segments.replacedBytes).toBeLessThan(SMALL.journalBytes as number)
    const left = files(fs).filter((path) => before.includes(path))
    expect(left.length).toBeLessThan(before.length / 2)
    await machine.engine.close()
    expect(files(fs)).toEqual(
      (await storedOf(fs)).segments.map(({ base, generation }) => pathOf(base, generation)),
    )
  })

  it('keeps what retention leaves, where that is asked for besides', async () => {
    const machine = await boot(new SimFs())
    const endless = Number.POSITIVE_INFINITY
    const retention = { records: endless, bytes: 4 * KiB, ageMs: endless }
    const log = await machine.engine.openLog(compacted({ retention }))
    for (let i = 0; i < 600; i++) {
      put(log, machine.clock, `k${i % 300}`, `value ${i}`)
      if (i % 5 === 4) await log.flush()
    }
    await settled(machine)
    expect(log.sizeBytes).toBeLessThanOrEqual(4.4 * KiB)
    expect(log.marks.start).toBeGreaterThan(400)
    const rows = await rowsOf(log)
    expect(rows.at(-1)).toMatchObject({ offset: 599, key: 'k299' })
    await machine.engine.close()
    await nothingIsWrong(machine.fs as SimFs)
  })

  it('is looked up by time as before', async () => {
    const machine = await boot(new SimFs())
    const log = await machine.engine.openLog(compacted())
    const began = machine.clock.now()
    for (let i = 0; i < 400; i++) {
      put(log, machine.clock, `k${i % 7}`, `${i} ${'x'.repeat(50)}`)
      await log.flush()
      await machine.clock.advance(10)
    }
    await settled(machine)
    const rows = await rowsOf(log)
    for (let ms = 0; ms <= 4000; ms += 130) {
      const row = rows.find(({ timestamp }) => timestamp >= began + ms)
      const expected = row && { offset: row.offset, timestamp: row.timestamp }
      expect(await log.offsetAt(began + ms)).toEqual(expected)
    }
    expect(await log.newest()).toEqual({ offset: 399, timestamp: began + 3990 })
    await machine.engine.close()
  })
})

function pathOf(base: number, generation = 0): string {
  const digits = String(base).padStart(20, '0')
  return `logs/t-0/${generation === 0 ? digits : `${digits}-${generation}`}.log`
}

describe('readers', () => {
  it('that page through it all the while see what was said, in order, and end with the newest of each key', async () => {
    const machine = await boot(new SimFs(), { ...SMALL, cacheBytes: 1 })
    const log = await machine.engine.openLog(compacted())
    const said: Row[] = []
    let done = false
    let passes = 0
    const read = async (): Promise<void> => {
      while (!done || compactableOf(log).until < 600) {
        const rows = await rowsOf(log)
        expectNewest(
          rows,
          said.filter(({ offset }) => offset <= (rows.at(-1)?.offset ?? -1)),
        )
        passes++
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const write = async (): Promise<void> => {
      for (let i = 0; i < 800; i++) {
        const [key, value, timestamp] = [`k${i % 7}`, `value ${i} ${'x'.repeat(50)}`, machine.clock.now()]
        said.push({ offset: i, key, value, timestamp })
        put(log, machine.clock, key, value)
        if (i % 5 === 4) await log.flush()
      }
      done = true
    }
    await Promise.all([read(), read(), write()])
    expect(passes).toBeGreaterThan(10)
    await machine.engine.close()
  })
})

describe('a process that ends', () => {
  /** Opens the log, which is compacted then; answers once it is done. */
  async function compacts(fs: SimFs): Promise<Machine> {
    const machine = await boot(fs)
    await machine.engine.openLog(compacted())
    await settled(machine)
    await machine.engine.close()
    return machine
  }

  async function halted(fs: SimFs): Promise<'halted'> {
    while (!fs.halted) await new Promise((resolve) => setImmediate(resolve))
    return 'halted'
  }

  it.each(['is killed', 'loses power'])(
    'or %s at any operation leaves the old or the new, complete',
    async (how) => {
      const { fs: whole, rows } = await uncompacted()
      let compactedBefore = 0
      let ordinal = 1
      for (; ; ordinal++) {
        const fs = whole.copy()
        const halt = ordinal % 2 === 0 ? 'before' : 'after'
        fs.onOperation = (_, __, each) => (each === ordinal ? { halt } : undefined)
        if ((await Promise.race([compacts(fs), halted(fs)])) !== 'halted') break
        const next = how === 'is killed' ? fs.kill() : fs.crash({ seed: ordinal })
        await nothingIsWrong(next)
        const machine = await boot(next)
        expect(machine.reports).toEqual([])
        const log = await machine.engine.openLog(compacted())
        expect(log.marks).toMatchObject({ start: 0, end: rows.length, epoch: 0 })
        if (compactableOf(log).until > 0) compactedBefore++
        expectNewest(await rowsOf(log), rows)
        await settled(machine)
        expectNewest(await rowsOf(log), rows)
        await machine.engine.close()
        const { segments } = await storedOf(next)
        expect(files(next)).toEqual(segments.map(({ base, generation }) => pathOf(base, generation)))
        await nothingIsWrong(next)
      }
      expect(ordinal).toBeGreaterThan(60)
      expect(compactedBefore).toBeGreaterThan(3)
    },
    60_000,
  )

  it('or is closed at any operation has either, and leaves nothing behind', async () => {
    const { fs: whole, rows } = await uncompacted()
    const { operations } = (await compacts(whole.copy())).fs as SimFs
    for (let at = 10; at < operations; at++) {
      const fs = whole.copy()
      const machine = await boot(fs)
      const log = await machine.engine.openLog(compacted())
      let closing: Promise<void> | undefined
      fs.onOperation = (_, __, ordinal) => {
        if (ordinal === at) closing = machine.engine.close()
        return undefined
      }
      await settled(machine)
      await (closing ?? machine.engine.close())
      expect(machine.reports).toEqual([])
      expect(await codeOf(log.load(0, 100, 'committed'))).toBe('CLOSED')
      const { segments } = await storedOf(fs)
      expect(files(fs)).toEqual(segments.map(({ base, generation }) => pathOf(base, generation)))
      const again = await boot(fs.kill())
      expectNewest(await rowsOf(await again.engine.openLog(compacted({ cleanup: 'delete' }))), rows)
      await again.engine.close()
    }
  }, 60_000)

  it('or deletes the log at any operation leaves nothing of it', async () => {
    const { fs: whole } = await uncompacted()
    const { operations } = (await compacts(whole.copy())).fs as SimFs
    for (let at = 10; at < operations; at++) {
      const fs = whole.copy()
      const machine = await boot(fs)
      await machine.engine.openLog(compacted())
      let deleting: Promise<void> | undefined
      fs.onOperation = (_, __, ordinal) => {
        if (ordinal === at) deleting = machine.engine.deleteLog('t', 0)
        return undefined
      }
      await settled(machine)
      await (deleting ?? machine.engine.deleteLog('t', 0))
      expect(fs.files().filter((path) => path.startsWith('logs/t-0/'))).toEqual([])
      expect([machine.reports, machine.clock.pending]).toEqual([[], 0])
      // Another one of the name begins anew.
      const log = await machine.engine.openLog(compacted())
      expect(put(log, machine.clock, 'k', 'first')).toBe(0)
      await machine.engine.close()
      await nothingIsWrong(fs)
    }
  }, 60_000)
})

describe('a disk that fails', () => {
  it.each(['ENOSPC', 'EIO'])('(%s) is told of, and it is tried again later', async (code) => {
    const { fs, rows } = await uncompacted()
    const machine = await boot(fs)
    const before = files(fs)
    fs.onOperation = (operation, path) =>
      operation === 'write' && path.includes('-1.') ? { fail: code } : undefined
    const log = await machine.engine.openLog(compacted())
    await settled(machine)
    expect(machine.reports).toEqual([expect.stringMatching(`compacting a log; it is tried again: .*${code}`)])
    expect([await rowsOf(log), files(fs)]).toEqual([rows, before])
    fs.onOperation = () => undefined
    // Not because somebody writes.
    put(log, machine.clock, 'k', 'more')
    await log.flush()
    expect(compactableOf(log).until).toBe(0)
    await machine.clock.advance(60_000)
    await settled(machine)
    expect(compactableOf(log).until).toBeGreaterThan(0)
    expect(machine.reports).toHaveLength(1)
    await machine.engine.close()
  })

  it('that cannot remove what was replaced is told of, and the next open does it', async () => {
    const { fs } = await uncompacted()
    const machine = await boot(fs)
    const old = files(fs)[0] as string
    fs.onOperation = (operation, path) =>
      operation === 'remove' && path === old ? { fail: 'EIO' } : undefined
    await machine.engine.openLog(compacted())
    await settled(machine)
    await machine.engine.close()
    expect(machine.reports.length).toBeGreaterThan(0)
    for (const report of machine.reports) expect(report).toContain('removing segments that were compacted')
    const next = fs.kill()
    expect(files(next)).toContain(old)
    const again = await boot(next)
    expect(files(next)).not.toContain(old)
    await again.engine.close()
  })

  it('and has turned a bit leaves that log alone, and says so once; others are compacted', async () => {
    const { fs, rows } = await uncompacted()
    const first = await boot(fs)
    const other = compacted({ topicId: 'other', cleanup: 'delete' })
    await fill(first, await first.engine.openLog(other), 100)
    await first.engine.close()
    const damaged = fs.kill()
    damaged.flipBit(files(damaged).find((path) => path.startsWith('logs/t-0')) as string, 70)
    const machine = await boot(damaged)
    const [log, sound] = [
      await machine.engine.openLog(compacted()),
      await machine.engine.openLog({ ...other, cleanup: 'compact' }),
    ]
    await settled(machine)
    expect(machine.reports).toEqual([expect.stringContaining('which is left as it is: logs/t-0/')])
    await fill(machine, log, 200)
    await machine.clock.advance(9 * DAY_MS)
    expect(machine.reports).toHaveLength(1)
    expect([compactableOf(log).until, compactableOf(sound).until > 0]).toEqual([0, true])
    await machine.engine.close()
    // Salvage mends it, and then it is compacted.
    const mended = await boot(damaged.kill(), { ...SMALL, salvage: true })
    const again = await mended.engine.openLog(compacted())
    await settled(mended)
    expect(compactableOf(again).until).toBeGreaterThan(0)
    const known = new Map(rows.map((row) => [row.offset, row]))
    for (const row of await rowsOf(again))
      if (row.offset < rows.length) expect(row).toEqual(known.get(row.offset))
    await mended.engine.close()
  })
})
