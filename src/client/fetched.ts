/**
 * The records in what a Fetch has answered: whole batches, the last one maybe cut off, among them such as a reader must
 * not see. A batch of an aborted transaction lies between the first offset that the response names for its producer and
 * the abort marker that ends it.
 *
 *   aborted: A from 2     │ A: 0 1 │ marker │ A: 2 3 │ B: 4 │ marker: 5 │ A: 6 7 │
 *   shown                   ──────                     ────               ──────
 */
import { type CompressionPort, codecsReady } from '../log/format/compression.ts'
import { decodeMarker } from '../log/format/control.ts'
import type { Crc32c } from '../log/format/crc32c.ts'
import { decodeBatch } from '../log/format/record-batch.ts'
import { BatchScan } from '../log/format/scan.ts'
import type { Columns } from '../model/batch.ts'
import { OdradekError } from '../model/errors.ts'
import type { HeaderValue, Key } from '../model/record.ts'

export interface FetchedRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Milliseconds since the epoch. */
  readonly timestamp: number
  readonly key: Key | null
  readonly value: Uint8Array | null
  readonly headers: readonly (readonly [string, HeaderValue])[]
}

export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
}

export interface Formats {
  readonly compression: CompressionPort
  readonly crc32c: Crc32c
}

export interface RecordsOf {
  readonly topic: string
  readonly partition: number
  /** What is before is left out: a batch is answered whole, also for an offset inside of it. */
  readonly from: number
  /** Null where everything is shown. */
  readonly aborted: readonly AbortedTransaction[] | null
}

const NO_HEADERS: FetchedRecord['headers'] = []

/** `next`: where to read on. @throws OdradekError CORRUPT_LOG, UNSUPPORTED for a compression that is not to be had */
export async function recordsIn(
  bytes: Uint8Array,
  { topic, partition, from, aborted }: RecordsOf,
  { compression, crc32c }: Formats,
): Promise<{ readonly records: FetchedRecord[]; readonly next: number }> {
  const records: FetchedRecord[] = []
  const hidden = new Hidden(aborted ?? [])
  const scan = new BatchScan({ crc32c }).start(bytes)
  let next = from
  while (scan.next()) {
    const { position, last, producerId } = scan
    if (last < from) continue
    next = last + 1
    const isHidden = hidden.at(last, scan.transactional ? producerId : -1)
    if (scan.control) {
      if (decodeMarker(bytes, position)?.commit === false) hidden.end(producerId)
      continue
    }
    if (isHidden) continue
    await codecsReady(compression, 1 << scan.compression)
    const rows = decodeBatch(bytes, position, null, compression)
    for (let row = 0; row < rows.count; row++) {
      if (rows.offsetAt(row) >= from) records.push(recordAt(rows, row, topic, partition))
    }
  }
  if (scan.end === 'corrupt') {
    throw new OdradekError('CORRUPT_LOG', `${topic}/${partition} after offset ${next - 1}: ${scan.fault}`)
  }
  return { records, next }
}

function recordAt(rows: Columns, row: number, topic: string, partition: number): FetchedRecord {
  return {
    topic,
    partition,
    offset: rows.offsetAt(row),
    timestamp: rows.timestampAt(row),
    key: rows.keyAt(row),
    value: rows.values[row] as Uint8Array | null,
    headers: rows.headersAt(row)?.toJSON() ?? NO_HEADERS,
  }
}

/** Producers whose transaction, where the scan stands, is one that was aborted. */
class Hidden {
  readonly #ahead: AbortedTransaction[]
  readonly #producers = new Set<number>()

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#ahead = [...aborted].sort((a, b) => a.firstOffset - b.firstOffset)
  }

  at(offset: number, producerId: number): boolean {
    for (
      let first = this.#ahead[0];
      first !== undefined && first.firstOffset <= offset;
      first = this.#ahead[0]
    ) {
      this.#producers.add(first.producerId)
      this.#ahead.shift()
    }
    return this.#producers.has(producerId)
  }

  end(producerId: number): void {
    this.#producers.delete(producerId)
  }
}
