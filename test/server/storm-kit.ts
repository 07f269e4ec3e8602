/**
 * Records that say themselves what they must be, memory that is spoilt when it is given back, and clients that leave at
 * any moment: whoever still looks at memory that others use finds something that no record says.
 */
import { vi } from 'vitest'
import { BatchBuilder } from '../../src/log/format/batch-builder.ts'
import { BufferPool } from '../../src/log/format/buffer-pool.ts'
import { crc32c } from '../../src/log/format/crc32c.ts'
import { readInt32, writeInt32 } from '../../src/log/format/integers.ts'
import { decodeBatch, validateBatch } from '../../src/log/format/record-batch.ts'
import { BatchScan } from '../../src/log/format/scan.ts'
import type { ProducerInfo } from '../../src/model/batch.ts'
import { RecordHeaders } from '../../src/model/record.ts'
import { lazyCompression } from '../../src/node/compression.ts'
import { RequestMemory } from '../../src/server/request-memory.ts'
import type { Dice } from '../torture/dice.ts'

const SPOILT = 0xdd
const MIN_POOLED_BYTES = 65_536
const KEYS = 8
const compression = lazyCompression()

/** What pools were given, and what was wrong with it. */
export interface Spoiled {
  given: number
  taken: number
  fresh: number
  faults: string[]
}

/** From now on everything that is given back is spoilt, and what is given twice is a fault. */
export function spoilMemory(): Spoiled {
  const spoiled: Spoiled = { given: 0, taken: 0, fresh: 0, faults: [] }
  const free = new WeakSet<object>()
  const { give, take } = BufferPool.prototype
  const { drop } = RequestMemory.prototype
  vi.spyOn(BufferPool.prototype, 'give').mockImplementation(function (this: BufferPool, buffer) {
    if (buffer.length >= MIN_POOLED_BYTES) {
      spoiled.given++
      if (free.has(buffer)) spoiled.faults.push(`${buffer.length} bytes were given back twice`)
      free.add(buffer)
    }
    buffer.fill(SPOILT)
    give.call(this, buffer)
  })
  vi.spyOn(BufferPool.prototype, 'take').mockImplementation(function (this: BufferPool, sizeBytes) {
    const buffer = take.call(this, sizeBytes)
    spoiled.taken++
    if (!free.delete(buffer) && buffer.length >= MIN_POOLED_BYTES) spoiled.fresh++
    return buffer
  })
  vi.spyOn(RequestMemory.prototype, 'drop').mockImplementation(function (this: RequestMemory, chunk) {
    chunk.fill(SPOILT)
    drop.call(this, chunk)
  })
  return spoiled
}

/** Bytes that follow from a number, which is the first of them. */
function bytesOf(n: number, sizeBytes: number): Uint8Array {
  const value = new Uint8Array(Math.max(sizeBytes, 4))
  let state = (n * 0x9e3779b1) | 1
  for (let at = 4; at < value.length; at++) {
    if (at % 4 === 0) {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
    }
    value[at] = state >>> ((at % 4) * 8)
  }
  writeInt32(value, 0, n)
  return value
}

/** Never text, so that readers are handed views. */
const keyOf = (n: number): Uint8Array => Uint8Array.of(0xff, n % KEYS, 0xfe)
const headerOf = (n: number): Uint8Array => Uint8Array.of(0xff, n, n >>> 8, n >>> 16, 0xfe)

export interface Read {
  readonly key: unknown
  readonly value: unknown
  readonly headers: Iterable<readonly [string, unknown]> | null
}

function isSame(one: unknown, two: Uint8Array): boolean {
  return one instanceof Uint8Array && Buffer.compare(one, two) === 0
}

/** The number of a record that is as it was made; why it is not, else. */
export function numberOf({ key, value, headers }: Read): number | string {
  if (!(value instanceof Uint8Array) || value.length < 4) return 'a value that is none'
  const n = readInt32(value, 0)
  if (!isSame(value, bytesOf(n, value.length))) return `the value of ${n} has other bytes`
  if (!isSame(key, keyOf(n))) return `the key of ${n} is another one`
  const [header] = headers ?? []
  if (header?.[0] !== 'n' || !isSame(header[1], headerOf(n))) return `the header of ${n} is another one`
  return n
}

export interface Made {
  readonly bytes: Uint8Array
  readonly numbers: readonly number[]
}

let last = 0

export function madeBatch(dice: Dice, producer: ProducerInfo | null = null): Made {
  const builder = new BatchBuilder()
  const now = Date.now()
  const sizeBytes = dice.pick([20, 300, 2_000, 9_000, 40_000, 70_000, 140_000])
  const numbers: number[] = []
  builder.open(0, now)
  for (let left = sizeBytes > 9_000 ? 1 : 1 + dice.below(12); left > 0; left--) {
    const n = ++last
    numbers.push(n)
    builder.add(
      bytesOf(n, sizeBytes - dice.below(15)),
      keyOf(n),
      new RecordHeaders([['n', headerOf(n)]]),
      now,
    )
  }
  const packed = dice.chance(0.15) ? { compression: { type: 1, port: compression } } : {}
  return { bytes: builder.finish({ leaderEpoch: -1, producer, ...packed }), numbers }
}

/** Every record of whole batches with its offset, after their sums; `fault` is told of what is wrong. */
export function checkedRecords(
  bytes: Uint8Array,
  fault: (what: string) => void,
): { offset: number; n: number; producerId: number }[] {
  const found: { offset: number; n: number; producerId: number }[] = []
  const scan = new BatchScan().start(bytes)
  while (scan.next()) {
    try {
      const header = validateBatch(bytes, scan.position, crc32c)
      if (header.control) continue
      const rows = decodeBatch(bytes, scan.position, null, compression)
      for (let row = 0; row < rows.count; row++) {
        const read = { key: rows.keyAt(row), value: rows.values[row], headers: rows.headersAt(row) }
        const n = numberOf(read)
        if (typeof n === 'string') fault(`offset ${rows.offsetAt(row)}: ${n}`)
        else found.push({ offset: rows.offsetAt(row), n, producerId: header.producerId })
      }
    } catch (error) {
      fault(`a batch at ${scan.position}: ${(error as Error).message}`)
    }
  }
  if (scan.end !== 'end') fault(`batches are not whole: ${scan.end}`)
  return found
}

/** Which number is where: everybody must find the same. */
export class Places {
  readonly #numbers = new Map<string, number>()
  readonly #fault: (what: string) => void

  constructor(fault: (what: string) => void) {
    this.#fault = fault
  }

  get size(): number {
    return this.#numbers.size
  }

  found(topic: string, partition: number, offset: number, n: number): void {
    const place = `${topic}/${partition}@${offset}`
    const before = this.#numbers.get(place)
    if (before === undefined) this.#numbers.set(place, n)
    else if (before !== n) this.#fault(`${place} is ${n}, and was ${before}`)
  }

  acknowledged(topic: string, partition: number, base: number, numbers: readonly number[]): void {
    for (const [i, n] of numbers.entries()) this.found(topic, partition, base + i, n)
  }
}
