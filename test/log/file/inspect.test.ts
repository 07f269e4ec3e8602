import { describe, expect, it } from 'vitest'
import { readCheckpoint, writeCheckpoint } from '../../../src/log/file/checkpoint.ts'
import { isDataDirectory } from '../../../src/log/file/data-directory.ts'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import { type DirectoryOptions, readDirectory } from '../../../src/log/file/inspect.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readInt32 } from '../../../src/log/format/integers.ts'
import { keeping, specOf, T0, wireBatchOf } from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { SEGMENT_BYTES, withBatches } from './inspect-kit.ts'

async function reportOf(fs: SimFs, options: Partial<DirectoryOptions> = {}) {
  return (await readDirectory({ fs, crc32c, ...options })).report
}

const SECOND = 'logs/t-0/00000000000000000006.log'

describe('a data directory', () => {
  it('is told from others by what a broker makes first', async () => {
    const fs = new SimFs()
    expect(await isDataDirectory(fs)).toBe(false)
    fs.put('lock.txt', new Uint8Array(1))
    fs.put('journal.log', new Uint8Array(1))
    expect(await isDataDirectory(fs)).toBe(false)
    for (const path of ['lock.1', 'checkpoint', 'journal/a', 'logs/t-0/x']) {
      const other = new SimFs()
      other.put(path, new Uint8Array(0))
      expect([path, await isDataDirectory(other)]).toEqual([path, true])
    }
  })
})

describe('the report', () => {
  it('of a directory that a broker has only begun has nothing in it', async () => {
    const fs = new SimFs()
    fs.put('lock.1', new Uint8Array(0))
    expect(await reportOf(fs)).toEqual({
      format: null,
      durability: null,
      clean: null,
      checkpoint: null,
      journal: {
        files: [],
        groups: 0,
        first: null,
        last: null,
        sizeBytes: 0,
        entries: { batch: 0, meta: 0, start: 0, delete: 0 },
        batchBytes: 0,
        tail: { kind: 'clean' },
      },
      logs: [],
      recovery: {
        outcome: 'nothing',
        refusals: [],
        aside: [],
        replay: { groups: 0, batches: 0, batchBytes: 0 },
        cut: [],
        remove: [],
        removeDirectories: [],
        newEpochs: null,
      },
    })
  })

  it('of one that was closed has everything in segments', async () => {
    const fs = await withBatches(5)
    const { logs, checkpoint, ...report } = await reportOf(fs)
    expect(report).toMatchObject({
      format: 1,
      durability: 'fsync',
      clean: true,
      journal: { groups: 0, tail: { kind: 'clean' } },
      recovery: { outcome: 'nothing' },
    })
    expect(checkpoint).toEqual({
      sizeBytes: fs.bytesOf('checkpoint').length,
      sequence: 6,
      logs: 1,
      deleting: 0,
      meta: 1,
    })
    expect(logs).toMatchObject([
      {
        topic: 'orders',
        topicId: 't',
        partition: 0,
        directory: 'logs/t-0',
        start: 0,
        high: 10,
        end: 10,
        epoch: 0,
      },
    ])
    expect(logs[0]?.segments).toMatchObject([
      { base: 0, next: 6, sealed: true, footer: 'ok', index: 'ok', newest: new Date(T0 + 2).toISOString() },
      { base: 6, next: 10, sealed: false, footer: null, file: SECOND },
    ])
  })

  it('of one whose process was killed says what is only in the journal', async () => {
    const report = await reportOf(await withBatches(2, { durability: 'fsync' }))
    expect(report).toMatchObject({
      clean: false,
      checkpoint: { sequence: 0, logs: 0 },
      journal: { groups: 3, first: 1, last: 3, entries: { batch: 2, meta: 1, start: 0, delete: 0 } },
      logs: [{ topic: 'orders', start: 0, end: 4, checkpointEnd: 0, segments: [] }],
      recovery: { outcome: 'recover', replay: { groups: 3, batches: 2 }, newEpochs: null },
    })
  })

  it('says that records may be missing where nothing was closed under durability os', async () => {
    const report = await reportOf(await withBatches(2, { durability: 'os' }))
    expect(report).toMatchObject({
      durability: 'os',
      logs: [{ epoch: 1 }],
      recovery: { newEpochs: 'unclean' },
    })
  })

  it('says where the journal is torn, and where damaged', async () => {
    const fs = await withBatches(3, { durability: 'fsync' })
    const [, second] = positionsOf(fs)
    const torn = fs.copy()
    torn.resize('journal/a', (positionsOf(fs).at(-1) as number) + 40)
    expect(await reportOf(torn)).toMatchObject({
      journal: {
        groups: 3,
        tail: { kind: 'torn', file: 'journal/a', position: positionsOf(fs).at(-1) },
      },
      logs: [{ end: 4 }],
      recovery: {
        outcome: 'recover',
        aside: [{ file: 'journal/a', copy: `torn/journal-a-${positionsOf(fs).at(-1)}` }],
      },
    })
    fs.flipBit('journal/a', (second as number) + 50)
    expect(await reportOf(fs)).toMatchObject({
      journal: { groups: 1, tail: { kind: 'corrupt', position: second } },
      recovery: {
        outcome: 'refuse',
        refusals: [{ code: 'CORRUPT_LOG', file: 'journal/a', position: second, salvageable: true }],
        newEpochs: 'damage',
      },
    })
  })

  it('says that a journal is missing that groups were written to, unless it was closed', async () => {
    const fs = await withBatches(3)
    for (const file of ['journal/a', 'journal/b']) {
      const closed = fs.copy()
      closed.erase(file)
      expect((await reportOf(closed)).recovery.outcome).toBe('nothing')
      const left = fs.copy()
      await fileEngine({ clock: new ManualClock(), fs: left })
      const lost = left.kill()
      lost.erase(file)
      expect((await reportOf(lost)).recovery).toMatchObject({
        outcome: 'refuse',
        refusals: [{ code: 'CORRUPT_LOG', file, position: 0, salvageable: true }],
        newEpochs: 'damage',
      })
    }
  })

  it('says what is wrong with segments and indexes without reading batches', async () => {
    const fs = await withBatches(10)
    const sealed = (await reportOf(fs)).logs[0]?.segments[0]
    fs.flipBit(sealed?.file as string, (sealed?.fileBytes as number) - 1)
    fs.resize(SECOND.replace('.log', '.index'), 3)
    fs.erase('logs/t-0/00000000000000000012.index')
    const { logs, recovery } = await reportOf(fs)
    expect(logs[0]?.segments.map(({ footer, index }) => [footer, index])).toEqual([
      ['damaged', 'ok'],
      ['ok', 'unusable'],
      ['ok', 'missing'],
      [null, expect.stringMatching(/^(?:ok|missing)$/)],
    ])
    expect(recovery.outcome).toBe('nothing')
    fs.erase(SECOND)
    const again = await reportOf(fs)
    expect(again.logs[0]?.segments[1]).toMatchObject({ fileBytes: null, footer: null })
    expect(again.recovery).toMatchObject({
      outcome: 'refuse',
      refusals: [{ file: SECOND, position: 0 }],
    })
  })

  it('takes an index of other bytes for one of no use', async () => {
    const fs = await withBatches(10)
    fs.put('logs/t-0/00000000000000000006.index', fs.bytesOf('logs/t-0/00000000000000000012.index'))
    expect((await reportOf(fs)).logs[0]?.segments[1]?.index).toBe('unusable')
  })

  it('leaves out segments that are gone below the start', async () => {
    const fs = new SimFs()
    const engine = await fileEngine({ clock: new ManualClock(), fs }, { segmentBytes: SEGMENT_BYTES })
    const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
    for (let i = 0; i < 7; i++) log.tryAppend(wireBatchOf([{ value: 'x'.repeat(950) }]))
    await log.flush()
    await engine.close()
    const killed = await trimmed(fs)
    const { logs, recovery } = await reportOf(killed)
    expect(recovery.outcome).toBe('recover')
    expect(logs[0]).toMatchObject({ start: 5, end: 7, segments: [{ base: 3 }, { base: 6 }] })
  })

  it('of directories of deleted logs says that they go', async () => {
    const fs = await withBatches(2)
    const checkpoint = await readCheckpoint(fs, crc32c)
    if (checkpoint === undefined) throw new Error('no checkpoint')
    const [log] = checkpoint.logs
    const gone = {
      ...checkpoint,
      logs: [],
      deleting: [
        { topicId: 't', partition: 0 },
        { topicId: 'u', partition: 0 },
      ],
    }
    await writeCheckpoint(fs, gone, crc32c)
    expect(log?.topicId).toBe('t')
    expect((await reportOf(fs)).recovery).toMatchObject({
      outcome: 'recover',
      removeDirectories: ['logs/t-0'],
    })
  })

  it('without a checkpoint tells of segments what they say by themselves', async () => {
    const fs = await withBatches(5)
    fs.put('logs/notes.txt', new Uint8Array(3))
    fs.put('logs/%zz-0/00000000000000000000.log', new Uint8Array(3))
    const broken = fs.copy()
    broken.flipBit('checkpoint', 100)
    fs.erase('checkpoint')
    for (const [each, what] of [
      [fs, 'it is missing, though there is a directory "journal"'],
      [broken, 'its CRC does not hold'],
    ] as const) {
      const report = await reportOf(each)
      expect(report).toMatchObject({ format: null, clean: null, checkpoint: null, journal: null })
      expect(report.recovery.refusals).toMatchObject([
        { code: 'CORRUPT_LOG', file: 'checkpoint', salvageable: false },
      ])
      expect(report.recovery.refusals[0]?.message).toContain(what)
      expect(report.logs).toMatchObject([
        {
          topic: null,
          topicId: 't',
          end: null,
          segments: [
            { base: 0, next: 6, sealed: true, footer: 'ok', index: 'ok' },
            { base: 6, next: null, sealed: false, newest: null },
          ],
        },
      ])
    }
  })

  it('is made again when a checkpoint came in between, beside a broker', async () => {
    const fs = await withBatches(2)
    const newer = await readCheckpoint(fs, crc32c)
    if (newer === undefined) throw new Error('no checkpoint')
    let reads = 0
    const moving: SimFs = Object.create(fs, {
      open: {
        value: async (...args: Parameters<SimFs['open']>) => {
          if (args[0] === 'checkpoint' && ++reads % 2 === 0 && reads < 6) {
            await writeCheckpoint(fs, { ...newer, sequence: newer.sequence + reads }, crc32c)
          }
          return fs.open(...args)
        },
      },
    }) as SimFs
    const seen = proxied(fs, moving)
    expect((await reportOf(seen, { moving: true })).checkpoint?.sequence).toBe(newer.sequence + 4)
  })

  it('is made again when what was read does not fit together, beside a broker, and only there', async () => {
    const fs = await withBatches(5)
    const hiding = (times: number): SimFs => {
      let left = times
      return proxied(fs, {
        list: async (directory: string) => {
          const names = await fs.list(directory)
          return directory === 'logs/t-0' && left-- > 0 ? names.slice(2) : names
        },
      })
    }
    expect((await reportOf(hiding(4), { moving: true })).recovery.outcome).toBe('nothing')
    expect((await reportOf(hiding(Infinity), { moving: true })).recovery.outcome).toBe('refuse')
    expect((await reportOf(hiding(1))).recovery.outcome).toBe('refuse')
  })
})

/** Where the groups of the first journal file begin. */
function positionsOf(fs: SimFs): number[] {
  const bytes = fs.bytesOf('journal/a')
  const positions: number[] = []
  for (let at = 0; readInt32(bytes, at) === 0x4f444a47; at += 32 + readInt32(bytes, at + 4))
    positions.push(at)
  return positions
}

/** The log begins at offset 5 now, and a process was killed before the next checkpoint. */
async function trimmed(fs: SimFs): Promise<SimFs> {
  const engine = await fileEngine({ clock: new ManualClock(), fs }, { segmentBytes: SEGMENT_BYTES })
  const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
  await log.trim(5)
  await log.flush()
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
  return fs.kill()
}

/** `fs`, some of whose methods are others. */
function proxied(fs: SimFs, changes: object): SimFs {
  return new Proxy(fs, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
