import { describe, expect, it } from 'vitest'
import type { Engine, PartitionLog } from '../../../src/log/contract.ts'
import { type FileEngineOptions, fileEngine } from '../../../src/log/file/file-engine.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'

const KiB = 1024
const MiB = 1024 * KiB

function opened(fs: SimFs, options: FileEngineOptions = {}): Promise<Engine> {
  return fileEngine({ clock: new ManualClock(), fs, crc32c }, options)
}

function logOf(engine: Engine, topicId: string): Promise<PartitionLog> {
  const retention = { records: Number.POSITIVE_INFINITY, bytes: 1_000 * MiB, ageMs: Number.POSITIVE_INFINITY }
  const rest = {
    partition: 0,
    retention,
    cleanup: 'delete',
    deleteRetentionMs: 0,
    codec: defaultCodec,
  } as const
  return engine.openLog({ topic: topicId, topicId, ...rest })
}

function payload(i: number, sizeBytes: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(i + sizeBytes)
}

/** The sum of each value, in order. */
async function sumsIn(log: PartitionLog): Promise<number[]> {
  const sums: number[] = []
  for (let at = log.marks.start; at < log.marks.high; ) {
    const slice = await log.load(at, MiB, 'committed')
    for (let row = slice.row; row < slice.row + slice.count; row++) {
      sums.push(crc32c(slice.columns.values[row] as Uint8Array))
    }
    at = slice.next
  }
  return sums
}

describe('what the journal has and no checkpoint', () => {
  it('comes back whole, however large, small or many the batches are', async () => {
    const fs = new SimFs()
    const engine = await opened(fs, { durability: 'os' })
    const logs = [await logOf(engine, 'a'), await logOf(engine, 'b'), await logOf(engine, 'c')]
    const expected: number[][] = logs.map(() => [])
    // Sizes around what is copied, what is written at once, and what is read at once.
    const sizes = [10, 200, 15_000, 16 * KiB, 70_000, 300 * KiB, MiB - 200, MiB, MiB + 1, 3 * MiB]
    for (let i = 0; i < 60; i++) {
      for (const [l, log] of logs.entries()) {
        const sizeBytes = sizes[(i * 7 + l * 3) % sizes.length] as number
        const many = sizeBytes < 1_000 ? 50 : 1
        for (let n = 0; n < many; n++) {
          const value = payload(i, sizeBytes + n)
          while (log.tryAppendOne(value, null, null, 5, value.length + 100) < 0) {
            await log.flush()
            await new Promise(setImmediate)
          }
          expected[l]?.push(crc32c(value))
        }
      }
      if (i % 3 === 0) await logs[0]?.flush()
    }
    for (const log of logs) await log.flush()
    const again = await opened(fs.kill())
    for (const [l, id] of ['a', 'b', 'c'].entries()) {
      expect(await sumsIn(await logOf(again, id))).toEqual(expected[l])
    }
    await again.close()
  })
})
