import { describe, expect, it } from 'vitest'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import { readDirectory } from '../../../src/log/file/inspect.ts'
import {
  type BatchReport,
  type DamageReport,
  listBatches,
  logsNamed,
} from '../../../src/log/file/inspect-batches.ts'
import { encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { readInt32 } from '../../../src/log/format/integers.ts'
import {
  keeping,
  markerOf,
  producerOf,
  specOf,
  T0,
  wireBatchOf,
} from '../../../src/testing/conformance/kit.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { leftBy, SEGMENT_BYTES, withBatches } from './inspect-kit.ts'

const SECOND = 'logs/t-0/00000000000000000006.log'

async function batchesOf(fs: SimFs, selection: Omit<Parameters<typeof listBatches>[1], 'topic'> = {}) {
  const directory = await readDirectory({ fs, crc32c })
  const batches: (BatchReport | DamageReport)[] = []
  for await (const batch of listBatches(directory, { topic: 'orders', ...selection })) batches.push(batch)
  return batches
}

describe('batches', () => {
  it('are listed with what their headers say, in segments and in the journal', async () => {
    const fs = new SimFs()
    const engine = await fileEngine({ clock: new ManualClock(), fs }, { segmentBytes: SEGMENT_BYTES })
    await engine.meta.put([['topic/t', { name: 'orders' }]])
    const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
    log.tryAppendOne(new Uint8Array(5), 'k', null, T0, 100)
    log.tryAppend(wireBatchOf([{ value: 'a' }, { value: 'b' }], producerOf(9, 0, { transactional: true })))
    log.tryAppend(markerOf(producerOf(9, 0, { transactional: true }), true))
    log.tryAppend(wireBatchOf([{ value: 'c' }], producerOf(9, 2, { transactional: true })))
    log.tryAppend(markerOf(producerOf(9, 0, { transactional: true }), false))
    await log.flush()
    await engine.close()
    const second = await fileEngine({ clock: new ManualClock(), fs })
    const again = await second.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
    again.tryAppend(wireBatchOf([{ value: 'd' }]))
    await again.flush()
    const batches = (await batchesOf(fs.kill())) as BatchReport[]
    expect(batches).toMatchObject([
      { base: 0, last: 0, count: 1, inProcess: true, producer: null, control: null, position: 0 },
      {
        base: 1,
        last: 2,
        count: 2,
        inProcess: false,
        transactional: true,
        producer: { id: 9, epoch: 0, sequence: 0 },
      },
      { base: 3, last: 3, control: 'commit', transactional: true },
      { base: 4, last: 4, transactional: true, control: null },
      { base: 5, last: 5, control: 'abort' },
      { base: 6, last: 6, file: 'journal/a', inProcess: false },
    ])
    for (const { file, position, sizeBytes, crc, compression, topic, leaderEpoch } of batches) {
      expect({ crc, compression, topic, leaderEpoch }).toEqual({
        crc: 'ok',
        compression: 'none',
        topic: 'orders',
        leaderEpoch: 0,
      })
      expect(readInt32(fs.bytesOf(file), position + 8) + 12).toBe(sizeBytes)
    }
  })

  it('are chosen by topic name or id, partition and offsets', async () => {
    const fs = await withBatches(5)
    const basesOf = async (...args: Parameters<typeof batchesOf>): Promise<unknown[]> =>
      (await batchesOf(...args)).map((batch) => ('base' in batch ? batch.base : batch.damage))
    expect(await basesOf(fs)).toEqual([0, 2, 4, 6, 8])
    expect(await basesOf(fs, { from: 3 })).toEqual([2, 4, 6, 8])
    expect(await basesOf(fs, { from: 6, to: 8 })).toEqual([6])
    expect(await basesOf(fs, { to: 1 })).toEqual([0])
    expect(await basesOf(fs, { partition: 0 })).toEqual([0, 2, 4, 6, 8])
    expect(await basesOf(fs, { partition: 1 })).toEqual([])
    const directory = await readDirectory({ fs, crc32c })
    expect(logsNamed(directory, { topic: 't' })).toEqual(logsNamed(directory, { topic: 'orders' }))
    expect(logsNamed(directory, { topic: 'other' })).toEqual([])
  })

  it('are told as damaged where they are, and those of the next file go on', async () => {
    const fs = await withBatches(7)
    const [, second] = (await batchesOf(fs)) as BatchReport[]
    fs.flipBit('logs/t-0/00000000000000000000.log', (second?.position as number) + 70)
    fs.flipBit(SECOND, 16)
    const listed = await batchesOf(fs)
    expect(listed.map((batch) => ('damage' in batch ? batch.damage : [batch.base, batch.crc]))).toEqual([
      [0, 'ok'],
      [2, 'wrong'],
      [4, 'ok'],
      'magic 3 is not a batch of format 2',
      [12, 'ok'],
    ])
    fs.erase(SECOND)
    fs.resize('logs/t-0/00000000000000000012.log', 100)
    const worse = await batchesOf(fs)
    expect(worse.slice(3)).toMatchObject([
      { file: SECOND, position: 0, damage: 'it is missing' },
      { file: 'logs/t-0/00000000000000000012.log', position: 0, damage: 'the file ends here' },
    ])
    fs.put(SECOND, new Uint8Array(4_000))
    expect((await batchesOf(fs))[3]).toMatchObject({ position: 0, damage: 'zeros where a batch should be' })
  })

  it.each([0, 1, 40, 61, 70])(
    'that are larger than what is read at once are found whole, %s bytes past it',
    async (past) => {
      const fs = new SimFs()
      const engine = await fileEngine({ clock: new ManualClock(), fs })
      await engine.meta.put([['topic/t', { name: 'orders' }]])
      const log = await engine.openLog({ ...specOf(keeping({}), 't'), topic: 'orders' })
      const sizes = [1_048_576 - 71 - past, 10, 3_000_000, 5]
      for (const size of sizes) {
        const batch = wireBatchOf([{ value: new Uint8Array(size) }])
        // The journal grows while it is refused.
        while (typeof log.tryAppend(batch) === 'string') await new Promise((resolve) => setImmediate(resolve))
        await log.flush()
      }
      await engine.close()
      const batches = (await batchesOf(fs)) as BatchReport[]
      expect(batches.map(({ base, crc }) => [base, crc])).toEqual(sizes.map((_, i) => [i, 'ok']))
      fs.flipBit('logs/t-0/00000000000000000000.log', (batches[2]?.position as number) + 8, 5)
      expect((await batchesOf(fs)).at(-1)).toMatchObject({
        position: batches[2]?.position,
        damage: 'a batch reaches beyond the end',
      })
    },
  )

  it('are left out where retention has taken them meanwhile, beside a broker', async () => {
    const fs = await withBatches(7)
    const directory = await readDirectory({ fs, crc32c, moving: true })
    fs.erase(SECOND)
    const bases: unknown[] = []
    for await (const batch of listBatches(directory, { topic: 'orders' }))
      bases.push('base' in batch && batch.base)
    expect(bases).toEqual([0, 2, 4, 12])
  })

  it('of a control record that ends no transaction are other ones, and a time that no date can be is none', async () => {
    const fs = await withBatches(1)
    const path = 'logs/t-0/00000000000000000000.log'
    const marker = encodeMarker(
      { commit: true, coordinatorEpoch: 0 },
      { baseOffset: 2, leaderEpoch: 0, producerId: 1, producerEpoch: 0, timestamp: 2 ** 53 - 1 },
    )
    // The type, in the last bytes of the key; its value follows, and a count of no headers.
    marker[marker.length - 9] = 7
    const short = marker.slice()
    short[short.length - 13] = 3
    const bytes = Buffer.concat([fs.bytesOf(path), marker, short])
    fs.put(path, bytes)
    const directory = await readDirectory({ fs, crc32c })
    const [log] = directory.report.logs
    const [segment] = log?.segments ?? []
    Object.assign(segment as object, { sizeBytes: bytes.length })
    const batches: unknown[] = []
    for await (const batch of listBatches(directory, { topic: 'orders', from: 1 })) batches.push(batch)
    expect(batches.slice(1)).toMatchObject([
      { control: 'other', newest: null, crc: 'wrong' },
      { control: 'other', crc: 'wrong' },
    ])
  })

  it('that cannot be read are an error, not damage', async () => {
    const fs = await withBatches(1)
    const directory = await readDirectory({ fs, crc32c })
    fs.onOperation = (operation) => (operation === 'open' ? { fail: 'EACCES' } : undefined)
    await expect(listBatches(directory, { topic: 'orders' }).next()).rejects.toMatchObject({
      code: 'STORAGE_ERROR',
    })
  })

  it('are listed without a checkpoint as far as files go', async () => {
    const fs = await withBatches(5)
    fs.erase('checkpoint')
    const directory = await readDirectory({ fs, crc32c })
    const bases: unknown[] = []
    for await (const batch of listBatches(directory, { topic: 't', from: 6 }))
      bases.push('base' in batch && batch.base)
    expect(bases).toEqual([6, 8])
  })

  it('of random programs are those that are there, one after the other', async () => {
    for (let stop = 20; stop < 260; stop += 20) {
      const fs = await leftBy(5, { stop })
      const directory = await readDirectory({ fs, crc32c })
      for (const { topicId, segments, end } of directory.report.logs) {
        let next = segments[0]?.base
        for await (const batch of listBatches(directory, { topic: topicId })) {
          if ('damage' in batch) throw new Error(batch.damage)
          next ??= batch.base
          expect(batch.base).toBe(next)
          next = batch.last + 1
        }
        expect(next ?? end).toBe(end)
      }
    }
  })
})
