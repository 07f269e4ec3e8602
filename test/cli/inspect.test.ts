import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openBroker } from '../../src/index.ts'
import { type Checkpoint, readCheckpoint, writeCheckpoint } from '../../src/log/file/checkpoint.ts'
import { NodeFileSystem } from '../../src/log/file/fs-node.ts'
import type { Inspection } from '../../src/log/file/inspect.ts'
import type { BatchReport } from '../../src/log/file/inspect-batches.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { OdradekError } from '../../src/model/errors.ts'
import {
  closedDirectory,
  copyOf,
  cutAt,
  flipBit,
  folder,
  forgetFolders,
  indexOf,
  leftDirectory,
  OPTIONS,
  odradek,
  segmentsOf,
  stateOf,
} from './kit.ts'

afterAll(forgetFolders)

interface Report extends Inspection {
  readonly directory: string
  readonly owner: { readonly pid: number; readonly host: string; readonly since: string } | null
  readonly batches?: readonly BatchReport[]
}

async function reportOf(path: string, ...args: readonly string[]): Promise<Report> {
  const { code, stdout, stderr } = await odradek('inspect', path, '--json', ...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Report
}

/** What opening leads to: where logs begin and end, or why it is refused. */
async function opened(path: string): Promise<string | readonly (readonly [string, number, number])[]> {
  try {
    await using broker = await openBroker(`file:${path}`, { ...OPTIONS, logger: silent })
    return broker.listTopics().flatMap((topic) => {
      return broker.describe(topic).partitions.map(({ partition, start, end }) => {
        return [`${topic}/${partition}`, start, end] as const
      })
    })
  } catch (error) {
    if (error instanceof OdradekError) return error.message
    throw error
  }
}

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function told({ logs, recovery }: Report): Awaited<ReturnType<typeof opened>> {
  if (recovery.outcome === 'refuse') return recovery.refusals[0]?.message as string
  return logs.map(({ topic, partition, start, end }) => [
    `${topic}/${partition}`,
    start as number,
    end as number,
  ])
}

describe('inspect', () => {
  it('shows a directory that was closed', async () => {
    const path = await closedDirectory()
    const { code, stdout, stderr } = await odradek('inspect', path)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^owner +none$/m)
    expect(stdout).toMatch(/^format +1$/m)
    expect(stdout).toMatch(/^durability +fsync$/m)
    expect(stdout).toMatch(/^closed +yes$/m)
    expect(stdout).toMatch(/^checkpoint +up to group \d+: 2 logs, \d entries; [\d,]+ bytes$/m)
    expect(stdout).toMatch(/^journal +no groups after it$/m)
    expect(stdout).toMatch(/^orders\/0 {2}start 0, high 60, end 60, stored 60, epoch 0$/m)
    expect(stdout).toMatch(
      /^ {2}0{20}\.log +0 +\d+ +\d+ {2}\d{4}-\d\d-\d\dT[\d:.]+Z {2}sealed, footer ok, index ok$/m,
    )
    expect(stdout).toMatch(/^ {2}\d{20}\.log +\d+ +60 +\d+ {2}\S+Z {2}active, index (?:ok|missing)$/m)
    expect(stdout).toMatch(/^Opening it would find nothing to recover\.$/m)
  })

  it('shows what a killed process has left, and what opening would do', async () => {
    const { stdout } = await odradek('inspect', await leftDirectory())
    expect(stdout).toMatch(/^closed +no: the process ended without it$/m)
    expect(stdout).toMatch(
      /^journal +groups \d+ to \d+, [\d,]+ bytes: 120 batches \([\d,]+ bytes\), \d+ meta, 0 start, 0 delete$/m,
    )
    expect(stdout).toMatch(/^ +ends cleanly$/m)
    expect(stdout).toMatch(/^orders\/1 {2}start 0, high 120, end 120, stored 60, epoch 0$/m)
    expect(stdout).toMatch(/^Opening it would$/m)
    expect(stdout).toMatch(/^ {2}- replay \d+ groups with 120 batches of [\d,]+ bytes$/m)
  })

  it('shows a torn tail and damage, and where', async () => {
    const path = await leftDirectory()
    const { journal } = await reportOf(path)
    const used = journal?.sizeBytes as number
    const torn = await copyOf(path)
    await flipBit(join(torn, 'journal/a'), used - 2)
    const ofTorn = (await odradek('inspect', torn)).stdout
    expect(ofTorn).toMatch(/^ +ends torn at journal\/a:\d+: [\d,]+ bytes of a group that was being written$/m)
    expect(ofTorn).toMatch(
      /^ {2}- copy [\d,]+ bytes of journal\/a from byte \d+ on to torn\/journal-a-\d+, and leave them out$/m,
    )
    await flipBit(join(path, 'journal/a'), Math.floor(used / 2))
    const { stdout } = await odradek('inspect', path)
    expect(stdout).toMatch(
      /^ +ends in damage at journal\/a:\d+: group \d+ cannot be read, but was on the disk/m,
    )
    expect(stdout).toMatch(
      /^Opening it would be refused:\n {2}CORRUPT_LOG: journal\/a is damaged at byte \d+/m,
    )
    expect(stdout).toMatch(
      /^With `salvage` it would\n {2}- copy[\s\S]*begin a new leader epoch in every log, since damage was left out$/m,
    )
  })

  it('says that records may be missing where nothing was closed under durability os, and lists many batches', async () => {
    const path = await folder()
    const copy = await folder()
    const broker = await openBroker(`file:${path}`, { durability: 'os' })
    const jobs = await broker.createTopic<number>('jobs')
    for (let i = 0; i < 1_100; i++) await jobs.publish(i)
    await cp(path, copy, { recursive: true, filter: (source) => !source.endsWith('.sock') })
    await broker.close()
    const { stdout } = await odradek('inspect', copy, '--batches', 'jobs')
    expect(stdout).toMatch(/^durability +os$/m)
    expect(stdout).toMatch(/^ {2}- begin a new leader epoch in every log, since records may be missing$/m)
    expect(stdout.match(/ in process {2}none /g)?.length).toBe(1_100)
  })

  it('says what is left of topics that were deleted', async () => {
    const path = await closedDirectory()
    const fs = new NodeFileSystem(path)
    const checkpoint = (await readCheckpoint(fs, crc32c)) as Checkpoint
    await writeCheckpoint(fs, { ...checkpoint, logs: [], deleting: checkpoint.logs }, crc32c)
    const { stdout } = await odradek('inspect', path)
    expect(stdout).toMatch(/^checkpoint +up to group \d+: 0 logs, \d entries, 2 logs to be removed; /m)
    expect(stdout).toMatch(/^ {2}- remove logs\/\S+-0, whose log was deleted$/m)
  })

  it('shows that a segment is missing, and what opening makes of that', async () => {
    const path = await closedDirectory()
    const [first] = await segmentsOf(path)
    await rm(join(path, first as string))
    const { stdout } = await odradek('inspect', path)
    expect(stdout).toMatch(/^ {2}0{20}\.log +0 +22 +\d+ {2}\S+Z {2}missing$/m)
    expect(stdout).toMatch(
      /^Opening it would be refused:\n {2}CORRUPT_LOG: logs\/\S+\.log is damaged at byte 0/m,
    )
    expect(stdout).toMatch(/^With `salvage` it would\n {2}- write damaged segments anew/m)
  })

  it('shows what is left where there is no checkpoint to go by', async () => {
    const path = await closedDirectory()
    await flipBit(join(path, 'checkpoint'), 90)
    const { code, stdout } = await odradek('inspect', path)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^checkpoint +none that can be read$/m)
    expect(stdout).toMatch(/^journal +cannot be read without a checkpoint$/m)
    expect(stdout).toMatch(/no checkpoint tells of its offsets$/m)
    expect(stdout).toMatch(/^ {2}\d{20}\.log +\d+ +\? +\d+ {2}- +active/m)
    expect(stdout).toMatch(/^ {2}CORRUPT_LOG: checkpoint, position \d+: its CRC does not hold/m)
    expect(stdout).not.toContain('With `salvage` it would')
  })

  it('shows what a broker has only begun', async () => {
    const path = await folder()
    const broker = await openBroker(`file:${path}`, OPTIONS)
    await broker.close()
    const { stdout } = await odradek('inspect', path)
    expect(stdout).toMatch(/^No logs\.$/m)
    expect(stdout).toMatch(/^checkpoint +up to group 0: 0 logs, 0 entries; \d+ bytes$/m)
  })

  it('lists batches of a topic, of a partition, between offsets', async () => {
    const path = await leftDirectory()
    const { stdout } = await odradek('inspect', path, '--batches', 'orders/1', '--from', '117')
    const rows = stdout.slice(stdout.indexOf('Batches of orders/1')).trimEnd().split('\n').slice(1)
    expect(rows[0]).toMatch(
      /^offsets +count +position +bytes +newest +epoch +producer +kind +codec +crc +file$/,
    )
    expect(rows.slice(1).map((row) => row.trim().split(/ {2,}/))).toEqual(
      [117, 118, 119].map((offset) => [
        String(offset),
        '1',
        expect.stringMatching(/^\d+$/),
        expect.stringMatching(/^\d+$/),
        expect.stringMatching(/Z$/),
        '0',
        '-',
        'in process',
        'none',
        'ok',
        'journal/a',
      ]),
    )
    const { batches } = await reportOf(path, '--batches', 'orders')
    expect(batches?.length).toBe(240)
    expect((await reportOf(path, '--batches', 'orders/0', '--to', '0')).batches).toEqual([])
    expect((await reportOf(path, '--batches', 'orders/0', '--to', '1')).batches).toMatchObject([
      { base: 0, crc: 'ok' },
    ])
    const { code, stderr } = await odradek('inspect', path, '--batches', 'order')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'odradek: there is no log of "order"; there are orders\nTry: odradek inspect --help\n',
    })
    expect((await odradek('inspect', path, '--batches', 'orders/7')).stderr).toContain(
      'there is no log of "orders/7"',
    )
  })

  it('marks batches that are damaged', async () => {
    const path = await closedDirectory()
    const [first, second] = await segmentsOf(path)
    await flipBit(join(path, first as string), 80)
    await cutAt(join(path, second as string), 300)
    const { stdout } = await odradek('inspect', path, '--batches', 'orders/0')
    expect(stdout).toMatch(/ WRONG +logs\/\S+-0\/0{20}\.log$/m)
    expect(stdout).toMatch(/^DAMAGED +\d+ +the file ends here +logs\/\S+\.log$/m)
  })
})

describe('a directory that was looked at', () => {
  it('is the same byte for byte, and by every time and number that the file system keeps', async () => {
    const closed = await closedDirectory()
    const left = await leftDirectory()
    const torn = await copyOf(left)
    await cutAt(join(torn, 'journal/a'), 5_000)
    const broken = await copyOf(closed)
    await flipBit(join(broken, 'checkpoint'), 70)
    const spoilt = await copyOf(closed)
    const [first] = await segmentsOf(spoilt)
    await flipBit(join(spoilt, first as string), 100)
    await flipBit(join(spoilt, await indexOf(spoilt)), 10)
    for (const path of [closed, left, torn, broken, spoilt]) {
      const before = await stateOf(path)
      await odradek('inspect', path)
      await odradek('inspect', path, '--json')
      await odradek('verify', path)
      await odradek('verify', path, '--json')
      if (path !== broken) await odradek('inspect', path, '--batches', 'orders')
      expect(await stateOf(path)).toEqual(before)
    }
  })
})

describe('what inspect says of opening', () => {
  const damages: [string, (path: string) => Promise<void>][] = [
    ['nothing happened to', async () => {}],
    ['with a torn journal', (path) => cutAt(join(path, 'journal/a'), 9_000)],
    ['with a damaged journal', (path) => flipBit(join(path, 'journal/a'), 9_000)],
    ['without a journal', (path) => rm(join(path, 'journal'), { recursive: true })],
    ['with a damaged checkpoint', (path) => flipBit(join(path, 'checkpoint'), 100)],
    ['without a checkpoint', (path) => rm(join(path, 'checkpoint'))],
    ['without its first segment', async (path) => rm(join(path, (await segmentsOf(path))[0] as string))],
    [
      'with a short active segment',
      async (path) => cutAt(join(path, (await lastSegment(path)) as string), 60),
    ],
    [
      'with a long active segment',
      async (path) => cutAt(join(path, (await lastSegment(path)) as string), 9_000),
    ],
    [
      'with a damaged sealed segment',
      async (path) => flipBit(join(path, (await segmentsOf(path))[0] as string), 90),
    ],
    ['with a damaged index', async (path) => flipBit(join(path, await indexOf(path)), 9)],
  ]
  const lastSegment = async (path: string): Promise<string | undefined> => (await segmentsOf(path)).at(-1)

  it.each(damages)('is what it does to a directory %s', async (_, damage) => {
    for (const path of [await leftDirectory(), await closedDirectory()]) {
      await damage(path)
      const report = await reportOf(path)
      const before = await stateOf(path)
      const happened = await opened(path)
      expect(happened).toEqual(told(report))
      if (report.recovery.outcome === 'refuse') {
        const after = await stateOf(path)
        const logs = (state: ReadonlyMap<string, string>): unknown[] =>
          [...state].filter(([name]) => /^(?:logs|journal|checkpoint|torn)/.test(name))
        expect(logs(after)).toEqual(logs(before))
      } else {
        const copies = report.recovery.aside.map(({ copy }) => copy)
        expect([...(await stateOf(path)).keys()]).toEqual(expect.arrayContaining(copies))
      }
    }
  })
})

describe('beside a broker', () => {
  it('says who has the directory open, and shows it while records come', async () => {
    const path = await folder()
    const broker = await openBroker(`file:${path}`, OPTIONS)
    try {
      const jobs = await broker.createTopic<number>('jobs')
      let [going, published] = [true, 0]
      const publishing = (async () => {
        while (going) {
          await jobs.publish(published)
          published++
        }
      })()
      for (let i = 0; i < 10; i++) {
        const least = published
        const report = await reportOf(path)
        expect(report.owner).toMatchObject({ pid: process.pid })
        expect(report.recovery.refusals).toEqual([])
        expect(report.logs[0]?.end ?? 0).toBeGreaterThanOrEqual(least)
      }
      const { stdout } = await odradek('inspect', path)
      expect(stdout).toMatch(new RegExp(`^owner +process ${process.pid} on `, 'm'))
      expect(stdout).toContain('A broker has the directory open')
      expect(stdout).toMatch(/^closed +no: it is open$/m)
      expect(stdout).toMatch(/^If that broker were killed now, opening it would/m)
      going = false
      await publishing
    } finally {
      await broker.close()
    }
    expect((await reportOf(path)).owner).toBeNull()
  })
})
