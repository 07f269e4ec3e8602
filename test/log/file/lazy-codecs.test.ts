import { describe, expect, it } from 'vitest'
import type { Engine, PartitionLog } from '../../../src/log/contract.ts'
import { fileEngine } from '../../../src/log/file/file-engine.ts'
import type { CompressionPort } from '../../../src/log/format/compression.ts'
import { encodeBatch } from '../../../src/log/format/record-batch.ts'
import type { Batch } from '../../../src/model/batch.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { columnsOf } from '../format/helpers.ts'

const ZSTD = 4

/** Turns every byte around, but only once somebody has waited for it. */
class LateCodec implements CompressionPort {
  looked = 0
  #found: Promise<void> | null = null
  #isReady = false
  find: () => void = () => {}

  ready(type: number): Promise<void> | undefined {
    if (type !== ZSTD || this.#isReady) return undefined
    this.#found ??= new Promise((resolve) => {
      this.looked++
      this.find = () => {
        this.#isReady = true
        resolve()
      }
    })
    return this.#found
  }

  compress(_: number, bytes: Uint8Array): Uint8Array {
    return bytes.map((byte) => byte ^ 0xff)
  }

  decompress(_: number, bytes: Uint8Array): Uint8Array {
    if (!this.#isReady) throw new OdradekError('UNSUPPORTED', 'not loaded yet')
    return bytes.map((byte) => byte ^ 0xff)
  }
}

function compressed(values: readonly string[]): Batch {
  const rows = columnsOf(
    values.map((value, offset) => ({ offset, timestamp: 5, key: null, value, headers: [] })),
  )
  const compression = { type: ZSTD, port: new LateCodec() }
  const options = { baseOffset: 0, leaderEpoch: 0, compression }
  const bytes = encodeBatch(rows, 0, rows.count, defaultCodec, options)
  return { count: rows.count, sizeBytes: bytes.length, columns: null, bytes, producer: null }
}

async function opened(fs: SimFs, compression: CompressionPort): Promise<[Engine, PartitionLog]> {
  const engine = await fileEngine({ clock: new ManualClock(), fs, compression })
  const retention = { records: 1_000, bytes: 1_000_000, ageMs: Number.POSITIVE_INFINITY }
  const log = await engine.openLog({
    topic: 't',
    topicId: 'T',
    partition: 0,
    retention,
    cleanup: 'delete',
    deleteRetentionMs: 0,
    codec: defaultCodec,
  })
  return [engine, log]
}

/** Resolves when it is being looked for. */
async function isLookedFor(codec: LateCodec): Promise<void> {
  for (let turns = 0; codec.looked === 0 && turns < 1_000; turns++) await new Promise(setImmediate)
  expect(codec.looked).toBe(1)
}

async function values(log: PartitionLog, from: number): Promise<unknown[]> {
  const slice = await log.load(from, 1_000_000, 'committed')
  return Array.from({ length: slice.count }, (_, i) => slice.columns.values[slice.row + i])
}

describe('a codec that has to be loaded first', () => {
  it('is looked for when a reader comes to a batch that needs it, and not before', async () => {
    const fs = new SimFs()
    const codec = new LateCodec()
    const [engine, log] = await opened(fs, codec)
    await log.append(compressed(['a', 'b']))
    await engine.close()
    const [again, reopened] = await opened(fs, codec)
    expect(codec.looked).toBe(0)
    const reading = values(reopened, 0)
    await isLookedFor(codec)
    codec.find()
    expect(await reading).toEqual(['a', 'b'])
    expect(await values(reopened, 1)).toEqual(['b'])
    expect(codec.looked).toBe(1)
    await again.close()
  })

  it('is waited for at the tail too, also by whoever looks for a time', async () => {
    const codec = new LateCodec()
    const [engine, log] = await opened(new SimFs(), codec)
    await log.append(compressed(['a', 'b']))
    const found = Promise.all([values(log, 0), log.offsetAt(5), log.newest()])
    await isLookedFor(codec)
    codec.find()
    expect(await found).toEqual([['a', 'b'], { offset: 0, timestamp: 5 }, { offset: 0, timestamp: 5 }])
    await engine.close()
  })

  it('makes no poison of a batch that comes while a reader is on its way to another', async () => {
    const rows = columnsOf([{ offset: 0, timestamp: 5, key: null, value: 'x', headers: [] }])
    const bytes = encodeBatch(rows, 0, 1, defaultCodec, { baseOffset: 0, leaderEpoch: 0 })
    let together = 0
    for (let delay = 0; delay < 60; delay++) {
      const codec = new LateCodec()
      const [engine, log] = await opened(new SimFs(), codec)
      await log.append({ ...compressed(['x']), bytes, sizeBytes: bytes.length })
      const appending = log.append(compressed(['a', 'b']))
      for (let i = 0; i < delay; i++) await (i % 10 === 9 ? new Promise(setImmediate) : null)
      const reading = values(log, 0)
      const found = isLookedFor(codec).then(() => codec.find())
      const first = await Promise.race([reading, found.then(() => reading)])
      expect([['x'], ['x', 'a', 'b']]).toContainEqual(first)
      if (first.length === 3) together++
      await appending
      const rest = values(log, 1)
      await found
      expect(await rest).toEqual(['a', 'b'])
      await engine.close()
    }
    expect(together).toBeGreaterThan(0)
  })
})
