/**
 * Fills a segment that is to take the place of others, batch by batch, in the order of offsets: written in pieces that are
 * worth a write, and synced as it goes. One large sync at its end would hold up the journal's.
 */
import { concat } from '../format/bytes.ts'
import { BatchScan } from '../format/scan.ts'
import { Growth, type Segment } from './segment.ts'

const KiB = 1024
const WRITE_BYTES = 256 * KiB
const SYNC_BYTES = 4096 * KiB

export class Rewriter {
  readonly segment: Segment
  readonly #scan = new BatchScan()
  #pieces: Uint8Array[] = []
  #pieceBytes = 0
  #unsyncedBytes = 0

  constructor(segment: Segment) {
    this.segment = segment
  }

  get sizeBytes(): number {
    return this.segment.sizeBytes + this.#pieceBytes
  }

  /** One whole batch, which must not change until it is written. */
  add(batch: Uint8Array): void {
    this.#pieces.push(batch)
    this.#pieceBytes += batch.length
  }

  /** Writes what was added, if it is so much. */
  async write(atLeastBytes: number = WRITE_BYTES): Promise<void> {
    if (this.#pieceBytes < atLeastBytes || this.#pieceBytes === 0) return
    const bytes = concat(this.#pieces)
    this.#pieces = []
    this.#pieceBytes = 0
    const growth = new Growth(this.segment)
    growth.pieces.push(bytes)
    for (const scan = this.#scan.start(bytes); scan.next(); ) growth.add(scan)
    await this.segment.write(growth)
    this.#unsyncedBytes += bytes.length
    if (this.#unsyncedBytes < SYNC_BYTES) return
    this.#unsyncedBytes = 0
    await this.segment.sync()
  }

  /** Nothing more comes up to `next`; all of it is on the disk. */
  async finish(next: number): Promise<void> {
    await this.write(0)
    await this.segment.finish(next)
  }
}
