/**
 * What was accepted by a compacted log, as a plain list, and what of it a reader may, must and must not see, however
 * much was compacted and whatever crashed.
 */
import type { Appended, PartitionLog } from '../../../src/log/contract.ts'
import { BatchBuilder } from '../../../src/log/format/batch-builder.ts'
import type { CompressionPort } from '../../../src/log/format/compression.ts'
import { decodeMarker, encodeMarker } from '../../../src/log/format/control.ts'
import { decodeBatch } from '../../../src/log/format/record-batch.ts'
import { BatchScan } from '../../../src/log/format/scan.ts'
import type { Batch, ProducerInfo } from '../../../src/model/batch.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import type { Row } from './compaction-kit.ts'

export interface Said {
  readonly key: string | null
  readonly value: string | null
}

interface Entry {
  readonly base: number
  readonly next: number
  readonly rows: readonly Row[]
  readonly producer: number | null
  readonly transactional: boolean
  /** Of a marker: whether it commits. */
  readonly commit: boolean | null
}

/** A codec that is none, but tells whether it was used. */
export const tinyCompression: CompressionPort = {
  compress: (type, bytes) => new Uint8Array([type, ...bytes.map((byte) => byte ^ 0x55)]),
  decompress: (type, bytes) => {
    if (bytes[0] !== type) throw new Error(`codec ${type} for bytes of ${bytes[0]}`)
    return bytes.slice(1).map((byte) => byte ^ 0x55)
  },
}

export class Model {
  #entries: Entry[] = []
  start = 0

  get end(): number {
    return this.#entries.at(-1)?.next ?? 0
  }

  add(rows: readonly Row[], producer: number | null = null, transactional = false): void {
    const base = this.end
    this.#entries.push({ base, next: base + rows.length, rows, producer, transactional, commit: null })
  }

  addMarker(producer: number, commit: boolean): void {
    const base = this.end
    this.#entries.push({ base, next: base + 1, rows: [], producer, transactional: true, commit })
  }

  /** A crash has taken what was not accepted yet. */
  cut(end: number): void {
    this.#entries = this.#entries.filter(({ next }) => next <= end)
  }

  sequenceOf(producer: number): number {
    const own = this.#entries.filter((entry) => entry.producer === producer)
    return own.reduce((sum, { rows }) => sum + rows.length, 0)
  }

  isOpen(producer: number): boolean {
    const last = this.#entries.findLast((entry) => entry.producer === producer && entry.transactional)
    return last !== undefined && last.commit === null
  }

  get stable(): number {
    const firsts = [1, 2, 3].filter((id) => this.isOpen(id)).map((id) => this.#openSince(id))
    return Math.max(Math.min(this.end, ...firsts), this.start)
  }

  #openSince(producer: number): number {
    let since = -1
    for (const entry of this.#entries) {
      if (entry.producer !== producer || !entry.transactional) continue
      if (entry.commit !== null) since = -1
      else if (since < 0) since = entry.base
    }
    return since
  }

  #isAborted(entry: Entry): boolean {
    if (!entry.transactional) return false
    const end = this.#entries.find(
      (other) => other.producer === entry.producer && other.commit !== null && other.base > entry.base,
    )
    return end?.commit === false
  }

  /** What would be seen without compaction. */
  visible(): Row[] {
    const { start, stable } = this
    const rows = this.#entries.filter((entry) => !this.#isAborted(entry)).flatMap((entry) => entry.rows)
    return rows.filter(({ offset }) => offset >= start && offset < stable)
  }

  /** What is wrong with what was seen; nothing if it is right. */
  faults(seen: readonly Row[]): string[] {
    const faults: string[] = []
    const visible = this.visible()
    const known = new Map(visible.map((row) => [row.offset, row]))
    for (const [i, row] of seen.entries()) {
      if (row.offset <= (seen[i - 1]?.offset ?? -1)) faults.push(`offset ${row.offset} comes again`)
      const expected = known.get(row.offset)
      if (JSON.stringify(expected) !== JSON.stringify(row)) {
        faults.push(`${JSON.stringify(row)} in place of ${JSON.stringify(expected)}`)
      }
    }
    const offsets = new Set(seen.map(({ offset }) => offset))
    for (const row of visible) {
      if (row.key === null && !offsets.has(row.offset)) faults.push(`${row.offset} without a key is gone`)
    }
    for (const [key, latest] of latestOf(visible)) {
      if (offsets.has(latest.offset)) continue
      if (latest.value !== null) faults.push(`the newest value of ${key}, at ${latest.offset}, is gone`)
      const older = seen.filter((row) => row.key === key)
      if (older.length > 0) faults.push(`${key} was deleted at ${latest.offset}, and is back`)
    }
    return faults
  }
}

export function latestOf(rows: readonly Row[]): Map<string, Row> {
  const latest = new Map<string, Row>()
  for (const row of rows) if (row.key !== null) latest.set(row.key as string, row)
  return latest
}

// ── wire producers and consumers ───────────────────────────────────────────────────────────────────────

export function wireBatch(
  said: readonly Said[],
  producer: ProducerInfo | null,
  timestamp: number,
  codec = 0,
): Batch {
  const builder = new BatchBuilder()
  builder.open(0, timestamp)
  for (const { key, value } of said) {
    const { bytes, contentType } = defaultCodec.encode(value)
    builder.add(bytes, key, null, timestamp, contentType)
  }
  const bytes = builder.finish({
    leaderEpoch: 0,
    producer,
    compression: { type: codec, port: tinyCompression },
  })
  return { count: said.length, sizeBytes: bytes.length, columns: null, bytes, producer }
}

export function markerBatch(producerId: number, commit: boolean, timestamp: number): Batch {
  const options = { baseOffset: 0, leaderEpoch: 0, producerId, producerEpoch: 0, timestamp }
  const bytes = encodeMarker({ commit, coordinatorEpoch: 0 }, options)
  return { count: 1, sizeBytes: bytes.length, columns: null, bytes, producer: null }
}

export function accepted(answer: Appended | string): Appended {
  if (typeof answer === 'string') throw new Error(`refused: ${answer}`)
  return answer
}

/** As clients of Kafka read committed records: what is aborted they find out by the list and the markers. */
export class WireConsumer {
  position: number
  readonly rows: Row[] = []
  readonly #aborted = new Set<number>()

  constructor(position: number) {
    this.position = position
  }

  /** Goes on; false at the end. */
  async poll(log: PartitionLog, maxBytes = 2000): Promise<boolean> {
    this.position = Math.max(this.position, log.marks.start)
    if (this.position >= log.marks.stable) return false
    const { bytes, next, aborted } = await log.read(this.position, maxBytes, 'committed')
    const begin = [...aborted]
    for (const scan = new BatchScan().start(bytes); scan.next(); ) {
      while ((begin[0]?.firstOffset ?? Number.POSITIVE_INFINITY) <= scan.last) {
        this.#aborted.add(begin.shift()?.producerId as number)
      }
      if (scan.control) {
        if (decodeMarker(bytes, scan.position)?.commit === false) this.#aborted.delete(scan.producerId)
      } else if (!(scan.transactional && this.#aborted.has(scan.producerId))) this.#take(bytes, scan.position)
    }
    this.position = next
    return true
  }

  #take(bytes: Uint8Array, at: number): void {
    const rows = decodeBatch(bytes, at, defaultCodec, tinyCompression)
    for (let row = 0; row < rows.count; row++) {
      const offset = rows.offsetAt(row)
      if (offset < this.position) continue
      const [key, value, timestamp] = [rows.keyAt(row), rows.values[row], rows.timestampAt(row)]
      this.rows.push({ offset, key, value, timestamp })
    }
  }
}
