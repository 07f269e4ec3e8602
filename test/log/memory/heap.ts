/**
 * Prints how many bytes a retained record costs beyond its value, measured in a process of its own (run by
 * heap.test.ts with --expose-gc): `plain` records share everything but their value, `full` ones have a key, a
 * timestamp and a size of their own. Values and keys are there before, so only what the log adds is counted.
 */
import { MemoryLog } from '../../../src/log/memory/memory-log.ts'
import { SystemClock } from '../../../src/model/clock.ts'
import { specOf } from '../../../src/testing/conformance/kit.ts'

const RECORDS = 262_144
const retention = { records: RECORDS, bytes: Number.POSITIVE_INFINITY, ageMs: Number.POSITIVE_INFINITY }
const keys = Array.from({ length: 100 }, (_, i) => `key-${i}`)

function usedBytes(): number {
  const { gc } = globalThis as { gc?: () => void }
  for (let i = 0; i < 4; i++) gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function costOf(append: (log: MemoryLog, i: number) => void): number {
  const log = new MemoryLog(specOf(retention), { clock: new SystemClock() })
  const before = usedBytes()
  for (let i = 0; i < RECORDS * 1.5; i++) append(log, i)
  const cost = (usedBytes() - before) / log.records
  if (log.records !== RECORDS) throw new Error('the log is not full')
  return cost
}

const plain = (log: MemoryLog, i: number): void => {
  log.tryAppendOne(i, null, null, 1_767_225_600_000, 320)
}
const full = (log: MemoryLog, i: number): void => {
  log.tryAppendOne(i, keys[i % keys.length] as string, null, 1_767_225_600_000 + i, 64 + (i % 100))
}

costOf(plain)
console.log(JSON.stringify({ plain: costOf(plain), full: costOf(full) }))
