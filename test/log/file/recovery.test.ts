import { describe, expect, it } from 'vitest'
import type { PartitionLog } from '../../../src/log/contract.ts'
import { readCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import {
  accept,
  markerOf,
  marksOf,
  producerOf,
  readRows,
  settled,
  T0,
  valuesFrom,
  valuesOf,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import type { SimFs } from '../../support/sim-fs.ts'
import { filled, KiB, Machine, push, put } from './engine-kit.ts'

const PLENTY = 10_000_000
const SMALL = { journalBytes: 64 * KiB, segmentBytes: 2 * KiB }

/** All bytes of a disk, by path. */
function bytesOf(fs: SimFs): Record<string, string> {
  return Object.fromEntries(
    fs.files().map((path) => [path, Buffer.from(fs.bytesOf(path)).toString('base64')]),
  )
}

/** A process that appended records `0 …` one by one, each in a group of its own, and was killed. */
async function killed(count: number, options = {}): Promise<SimFs> {
  const machine = await Machine.open({ ...SMALL, ...options })
  const log = await machine.log()
  for (let i = 0; i < count; i++) {
    put(log, `record ${i}`)
    await settled(log)
  }
  return machine.fs.kill()
}

async function valuesIn(fs: SimFs, options = {}): Promise<unknown[]> {
  const machine = await Machine.on(fs, { ...SMALL, ...options })
  const log = await machine.log()
  const values = await valuesOf(log, log.marks.start)
  await machine.engine.close()
  return values
}

function records(count: number): string[] {
  return valuesFrom(0, count).map((i) => `record ${i}`)
}

/** Where groups begin in a journal file. */
function groupsIn(fs: SimFs, path = 'journal/a'): number[] {
  const bytes = Buffer.from(fs.bytesOf(path))
  const found: number[] = []
  for (let at = bytes.indexOf('ODJG'); at >= 0; at = bytes.indexOf('ODJG', at + 1)) found.push(at)
  return found
}

describe('a torn tail', () => {
  it.each([
    ['cut off', (bytes: Uint8Array, at: number) => bytes.fill(0, at)],
    ['zero', (bytes: Uint8Array, at: number) => bytes.fill(0, at, at + 60)],
    ['garbage', (bytes: Uint8Array, at: number) => bytes.fill(0xa5, at, at + 60)],
  ])(
    'that is %s, at any byte, leaves what is before it, and opening it again changes nothing',
    async (_, tear) => {
      const fs = await killed(6)
      const last = groupsIn(fs).at(-1) as number
      const end = fs.bytesOf('journal/a').findLastIndex((byte) => byte !== 0) + 1
      for (let at = last; at < end; at += 3) {
        const torn = fs.copy()
        const bytes = torn.bytesOf('journal/a')
        tear(bytes, at)
        torn.put('journal/a', bytes)
        expect([at, await valuesIn(torn)]).toEqual([at, records(5)])
        const once = bytesOf(torn)
        expect([at, await valuesIn(torn)]).toEqual([at, records(5)])
        expect(bytesOf(torn)).toEqual(once)
      }
    },
  )

  it('is told of, and copied aside before it is overwritten', async () => {
    const fs = await killed(3)
    const last = groupsIn(fs).at(-1) as number
    const bytes = fs.bytesOf('journal/a')
    bytes.fill(0xee, last + 40, last + 50)
    fs.put('journal/a', bytes)
    const machine = await Machine.on(fs, SMALL)
    expect(machine.reports.map(({ what }) => what)).toEqual([
      expect.stringContaining(`journal/a at byte ${last}`),
    ])
    const [copy] = fs.files().filter((path) => path.startsWith('torn/'))
    const aside = fs.bytesOf(copy as string)
    expect(Buffer.from(aside).equals(Buffer.from(bytes.subarray(last, last + aside.length)))).toBe(true)
    expect(aside.length).toBeGreaterThan(50)
    // Nothing of it is ever found again.
    const log = await machine.log()
    put(log, 'new')
    await settled(log)
    expect(await valuesIn(machine.fs.crash({ seed: 1 }))).toEqual([...records(2), 'new'])
  })

  it('begins no epoch: nobody was told that it is in', async () => {
    const fs = await killed(3)
    const bytes = fs.bytesOf('journal/a')
    bytes.fill(0, (groupsIn(fs).at(-1) as number) + 1)
    fs.put('journal/a', bytes)
    expect((await (await Machine.on(fs, SMALL)).log()).marks.epoch).toBe(0)
  })
})

describe('a journal that is damaged before its end', () => {
  /** Group `nth` of a journal of so many has a byte changed. */
  async function damaged(count: number, nth: number, options = {}): Promise<SimFs> {
    const fs = await killed(count, options)
    fs.flipBit('journal/a', (groupsIn(fs)[nth] as number) + 45)
    return fs
  }

  it('is refused by file and position, and nothing is touched, again and again', async () => {
    const fs = await damaged(6, 2)
    const before = bytesOf(fs)
    for (let i = 0; i < 2; i++) {
      await expect(Machine.on(fs, SMALL)).rejects.toMatchObject({
        code: 'CORRUPT_LOG',
        message: expect.stringContaining(`journal/a is damaged at byte ${groupsIn(fs)[2]}`),
      })
      expect(bytesOf(fs)).toEqual(before)
      expect(fs.openFiles).toBe(0)
    }
  })

  it('is gone on with up to there where that is wanted, in a new epoch, with the rest put aside', async () => {
    const fs = await damaged(6, 2)
    const machine = await Machine.on(fs, { ...SMALL, salvage: true })
    expect(machine.reports[0]?.what).toContain('what follows was left out')
    const log = await machine.log()
    expect([await valuesOf(log, 0), log.marks.epoch]).toEqual([records(2), 1])
    expect([log.epochEnd(0), log.epochEnd(1)]).toEqual([
      { epoch: 0, endOffset: 2 },
      { epoch: 1, endOffset: 2 },
    ])
    put(log, 'new')
    await settled(log)
    const { bytes } = await log.read(2, PLENTY, 'committed')
    expect(readHeader(bytes, 0).leaderEpoch).toBe(1)
    expect(fs.files().some((path) => path.startsWith('torn/'))).toBe(true)
    const again = await Machine.on(machine.fs.crash({ seed: 2 }), SMALL)
    const next = await again.log()
    expect([await valuesOf(next, 0), next.marks.epoch, again.reports]).toEqual([
      [...records(2), 'new'],
      1,
      [],
    ])
  })

  it('leaves no group behind the damage to be found later', async () => {
    const fs = await damaged(6, 2)
    const salvaged = await Machine.on(fs, { ...SMALL, salvage: true })
    const log = await salvaged.log()
    // As many as there were, so that sequences and positions would meet.
    for (let i = 0; i < 6; i++) {
      put(log, `again ${i}`)
      await settled(log)
      const values = await valuesIn(salvaged.fs.copy().crash({ seed: i, share: 1 }))
      expect(values).toEqual([...records(2), ...valuesFrom(0, i + 1).map((n) => `again ${n}`)])
    }
  })
})

describe('a directory that is not what it should be', () => {
  it.each(['journal', 'logs'])(
    'without its checkpoint is refused, for the directory %s that is there',
    async (left) => {
      const machine = await Machine.open(SMALL)
      const log = await machine.log()
      for (let i = 0; i < 100; i++) {
        put(log, filled(500, i))
        await settled(log)
      }
      await machine.engine.close()
      const fs = machine.fs.kill()
      for (const path of fs.files()) if (!path.startsWith(left)) fs.erase(path)
      const before = bytesOf(fs)
      await expect(Machine.on(fs, SMALL)).rejects.toMatchObject({ code: 'CORRUPT_LOG' })
      expect(bytesOf(fs)).toEqual(before)
    },
  )

  it('with any bit of it changed serves nothing wrong: it is refused, or read up to where it is damaged', async () => {
    const machine = await Machine.open(SMALL)
    const log = await machine.log()
    for (let i = 0; i < 30; i++) {
      put(log, `record ${i} ${'x'.repeat(100)}`)
      await settled(log)
    }
    await machine.engine.close()
    const second = await Machine.on(machine.fs.kill(), SMALL)
    const again = await second.log()
    for (let i = 30; i < 34; i++) {
      put(again, `record ${i} ${'x'.repeat(100)}`)
      await settled(again)
    }
    const expected = (await readRows(again, 0)).rows
    const fs = second.fs.kill()
    const seen: Record<string, number> = {}
    for (const path of fs.files()) {
      const bytes = fs.bytesOf(path)
      const end = bytes.findLastIndex((byte) => byte !== 0) + 1
      for (let position = 0; position < end; position += path === 'checkpoint' ? 13 : 29) {
        const flipped = fs.copy()
        flipped.flipBit(path, position, position % 8)
        const outcome = await outcomeOf(flipped, expected)
        seen[outcome] = (seen[outcome] ?? 0) + 1
      }
    }
    expect(Object.keys(seen).sort()).toEqual(['all', 'prefix', 'refused', 'stopped'])
  })

  /** What opening it and reading all of it comes to. */
  async function outcomeOf(fs: SimFs, expected: readonly unknown[]): Promise<string> {
    let log: PartitionLog
    let machine: Machine
    try {
      machine = await Machine.on(fs, SMALL)
      log = await machine.log()
    } catch (error) {
      expect((error as OdradekError).code).toMatch(/CORRUPT_LOG|UNSUPPORTED/)
      return 'refused'
    }
    const rows: unknown[] = []
    try {
      for (let at = log.marks.start; at < log.marks.high; ) {
        const slice = await log.load(at, PLENTY, 'committed')
        const { columns, row, count } = slice
        for (let i = row; i < row + count; i++) {
          rows.push({
            offset: columns.offsetAt(i),
            value: columns.values[i],
            key: null,
            headers: [],
            timestamp: T0,
          })
        }
        at = slice.next
      }
    } catch (error) {
      if (!(error instanceof OdradekError)) throw error
      expect(error.code).toBe('CORRUPT_LOG')
      expect(rows).toEqual(expected.slice(0, rows.length))
      return 'stopped'
    }
    expect(rows).toEqual(expected.slice(0, rows.length))
    if (rows.length === expected.length) return 'all'
    // The very last group cannot be told from one that was being written. It is told of.
    expect([rows.length, machine.reports.length]).toEqual([expected.length - 1, 1])
    return 'prefix'
  }
})

describe('what comes back', () => {
  it('is nothing new when it is opened twice, and the same bytes on the disk', async () => {
    const fs = await killed(20)
    await valuesIn(fs)
    const once = bytesOf(fs)
    for (let i = 0; i < 2; i++) {
      expect(await valuesIn(fs)).toEqual(records(20))
      expect(bytesOf(fs)).toEqual(once)
    }
  })

  it('is in pieces of a megabyte, whole, with what it means to producers and transactions', async () => {
    const machine = await Machine.open({ journalBytes: 16 * 1024 * KiB })
    const log = await machine.log()
    for (let i = 0; i < 40; i++) expect(await push(machine, log, filled(100 * KiB, i))).toBe(i)
    const open = producerOf(3, 0, { transactional: true })
    await accept(log, wireBatchOf([{ value: 'bad' }], producerOf(2, 0, { transactional: true })))
    await accept(log, markerOf(producerOf(2, 0, { transactional: true }), false))
    await accept(log, wireBatchOf([{ value: 'open' }], open))
    const before = [marksOf(log), [...log.producers()], (await readRows(log, 0)).rows.length]
    const next = await Machine.on(machine.fs.crash({ seed: 1 }))
    const again = await next.log()
    expect([marksOf(again), [...again.producers()], (await readRows(again, 0)).rows.length]).toEqual(before)
    expect([again.marks.stable, again.marks.end]).toEqual([42, 43])
    await accept(again, markerOf(open, false))
    expect((await readRows(again, 0)).rows.length).toBe(40)
  })

  it('keeps the topic of a log that nobody opens, as long as somebody did before', async () => {
    const fs = await killed(3)
    const machine = await Machine.on(fs, SMALL)
    await machine.engine.close()
    const checkpoint = await readCheckpoint(fs, crc32c)
    expect(checkpoint).toMatchObject({ clean: true, logs: [{ topicId: 'a', partition: 0, end: 3 }] })
  })

  it('is in a new epoch under "os" unless it was closed, since the newest may be missing, and says so', async () => {
    const fs = await killed(3, { durability: 'os' })
    const machine = await Machine.on(fs, { ...SMALL, durability: 'os' })
    expect(machine.reports[0]?.what).toContain('the newest records may be missing')
    const log = await machine.log()
    expect([log.marks.epoch, log.epochEnd(0)]).toEqual([1, { epoch: 0, endOffset: 3 }])
    await machine.engine.close()
    const next = await Machine.on(machine.fs.kill(), { ...SMALL, durability: 'os' })
    expect([(await next.log()).marks.epoch, next.reports]).toEqual([1, []])
  })

  it('knows where epochs end as it did before, also below the start', async () => {
    const fs = await killed(3, { durability: 'os' })
    const machine = await Machine.on(fs, { ...SMALL, durability: 'os' })
    const log = await machine.log()
    for (let i = 3; i < 6; i++) put(log, i)
    await log.flush()
    await log.trim(5)
    const ends = [log.epochEnd(0), log.epochEnd(1)]
    expect(ends).toEqual([
      { epoch: 0, endOffset: 5 },
      { epoch: 1, endOffset: 6 },
    ])
    await machine.engine.close()
    const again = await (await Machine.on(machine.fs.kill(), SMALL)).log()
    expect([again.epochEnd(0), again.epochEnd(1)]).toEqual(ends)
  })

  it('begins no epoch where there is no log, and none for one that is new', async () => {
    const machine = await Machine.open({ durability: 'os' })
    const next = await Machine.on(machine.fs.kill(), { durability: 'os' })
    expect([next.reports, (await next.log()).marks.epoch]).toEqual([[], 0])
  })

  it('can be opened under the other durability', async () => {
    const fs = await killed(3, { durability: 'os' })
    const strict = await Machine.on(fs, SMALL)
    const log = await strict.log()
    put(log, 'more')
    await settled(log)
    const next = await Machine.on(strict.fs.crash({ seed: 1, share: 0 }), { ...SMALL, durability: 'os' })
    const again = await next.log()
    expect([await valuesOf(again, 0), again.marks.epoch]).toEqual([[...records(3), 'more'], 1])
  })

  it('passes by what was deleted, whatever of it is left, and takes what came again under that name', async () => {
    const machine = await Machine.open(SMALL)
    const log = await machine.log()
    for (let i = 0; i < 30; i++) put(log, filled(300, i))
    await settled(log)
    machine.fail((operation, path) =>
      operation === 'sync' && path.startsWith('journal') ? { halt: 'after' } : undefined,
    )
    void machine.engine.deleteLog('a', 0)
    await machine.clock.settle()
    const fs = machine.fs.kill()
    const next = await Machine.on(fs, SMALL)
    expect(fs.files().filter((path) => path.startsWith('logs'))).toEqual([])
    const successor = await next.log()
    expect(successor.marks.end).toBe(0)
    for (const value of records(2)) put(successor, value)
    await settled(successor)
    await next.engine.deleteLog('a', 0)
    const third = await next.log()
    put(third, 'third')
    await settled(third)
    expect(await valuesIn(next.fs.crash({ seed: 4 }))).toEqual(['third'])
  })

  it('misses no segment that a trim has taken, however old the checkpoint is', async () => {
    for (let seed = 0; seed < 10; seed++) {
      const machine = await Machine.open({ journalBytes: 1024 * KiB, segmentBytes: 2 * KiB })
      const log = await machine.log()
      for (let i = 0; i < 60; i++) put(log, `record ${i}`)
      await settled(log)
      await machine.engine.close()
      const second = await Machine.on(machine.fs.kill(), { journalBytes: 1024 * KiB, segmentBytes: 2 * KiB })
      const again = await second.log()
      await again.trim(55)
      put(again, 'record 60')
      await settled(again)
      await second.clock.settle()
      const next = await Machine.on(second.fs.crash({ seed }))
      expect(await valuesOf(await next.log(), 55)).toEqual(records(61).slice(55))
    }
  })
})

describe('a checkpoint', () => {
  it('tells of segments as they were at its moment, whatever is written meanwhile', async () => {
    for (let seed = 0; seed < 8; seed++) {
      // Slow segments, so that much is committed before they are where the checkpoint wants them.
      const machine = await Machine.open({ ...SMALL, durability: 'os', flushMs: 60_000 }, { timed: true })
      const log = await machine.log()
      let renamed = false
      machine.fail((operation, path) => {
        if (operation === 'write' && path.startsWith('logs')) return { delayMs: 50 }
        if (operation === 'rename') renamed = true
        // The power fails when the checkpoint is there, and nothing else is synced yet.
        return renamed && operation === 'syncDirectory' ? { halt: 'after' } : undefined
      })
      let end = 0
      for (let i = 0; !machine.fs.halted; i++) {
        while (log.marks.end < 120 + i && put(log, `record ${end} ${'x'.repeat(300)}`) >= 0) end++
        await machine.clock.advance(5)
      }
      const fs = machine.fs.crash({ seed, share: 0 })
      const next = await Machine.on(fs, SMALL)
      const again = await next.log()
      const left = again.marks.end
      expect(left).toBeGreaterThan(80)
      expect(left).toBeLessThan(end)
      for (let i = 0; i < 30; i++) put(again, `new ${i}`)
      await settled(again)
      const values = await valuesOf(await (await Machine.on(next.fs.crash({ seed }), SMALL)).log(), 0)
      expect(values.slice(left)).toEqual(valuesFrom(0, 30).map((i) => `new ${i}`))
      expect(values.slice(0, left)).toEqual(valuesFrom(0, left).map((i) => `record ${i} ${'x'.repeat(300)}`))
    }
  })
})

describe('a recovery that fails', () => {
  it.each(['EIO', 'ENOSPC', 'EMFILE'])(
    'with %s at any operation is told, and the next one finds all',
    async (fail) => {
      const fs = await killed(25)
      const bytes = fs.bytesOf('journal/a')
      bytes.fill(0xee, (groupsIn(fs).at(-1) as number) + 40)
      fs.put('journal/a', bytes)
      for (let ordinal = 1; ; ordinal++) {
        const disk = fs.copy()
        let nth = 0
        let failed = false
        let what = ''
        const fault = (operation: string, path: string) => {
          if (++nth !== ordinal) return undefined
          failed = true
          what = `${operation} ${path}`
          return { fail }
        }
        try {
          const machine = await Machine.on(disk, SMALL, fault)
          if (!failed) break
          machine.mend()
          expect(await valuesOf(await machine.log(), 0)).toEqual(records(24))
        } catch (error) {
          expect((error as OdradekError).code).toMatch(/STORAGE_ERROR|STORAGE_FULL|OUTCOME_UNKNOWN/)
          expect([ordinal, what, disk.openFiles]).toEqual([ordinal, what, 0])
        }
        expect([ordinal, await valuesIn(disk.crash({ seed: ordinal }))]).toEqual([ordinal, records(24)])
      }
    },
  )
})
