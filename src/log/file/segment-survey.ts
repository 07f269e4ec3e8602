/**
 * Goes over the beginning of a segment's file, or on from where an index ends, in large pieces: every batch is checked,
 * and out come the index and the sums that the segment is known by.
 */
import type { Crc32c } from '../format/crc32c.ts'
import { crc32cOfBatches, JOINED_FROM_BYTES } from '../format/crc32c-joined.ts'
import type { Damage } from './damage.ts'
import { FileWindow } from './file-window.ts'
import type { DataFile } from './fs.ts'
import { BatchChain } from './segment-chain.ts'
import { type Extract, type SavedIndex, SegmentIndex } from './segment-index.ts'

const PIECE_BYTES = 1024 * 1024

export class Survey implements Extract {
  readonly index: SegmentIndex
  next: number
  sizeBytes: number
  maxTimestamp: number
  crc: number
  batches = 0
  readonly #chain: BatchChain
  readonly #crc32c: Crc32c

  /** Begins at the base of a segment, or where an index ends. */
  constructor(
    segment: { readonly base: number; readonly compacted: boolean },
    crc32c: Crc32c,
    from?: SavedIndex,
  ) {
    const { base, compacted } = segment
    this.#crc32c = crc32c
    this.#chain = new BatchChain(crc32c, compacted)
    this.index = from?.index ?? new SegmentIndex()
    this.next = from?.of.next ?? base
    this.sizeBytes = from?.of.sizeBytes ?? 0
    this.maxTimestamp = from?.of.maxTimestamp ?? -1
    this.crc = from?.of.crc ?? 0
    this.#chain.next = this.next
    this.#chain.epoch = this.index.epochs.at(-1) ?? this.#chain.epoch
  }

  get damage(): Damage | null {
    return this.#chain.damage
  }

  /** What keeps these bytes from being those that are known: damage, or other bytes, as their CRC tells. */
  differsFrom(known: Extract): Damage | null {
    if (this.damage !== null) return this.damage
    const { crc, sizeBytes } = this
    if (crc === known.crc && sizeBytes === known.sizeBytes && this.next <= known.next) return null
    // Batches are sound and follow each other: what is left is an epoch that is too high, from where it rises.
    const { epochs, positions } = this.index
    const rise = epochs.findLastIndex((epoch, i) => i > 0 && epoch !== epochs[i - 1])
    return {
      position: positions[Math.max(rise, 0)] ?? 0,
      what: `CRC ${hex(crc)} of ${sizeBytes} bytes, where ${hex(known.crc)} of ${known.sizeBytes} should be`,
    }
  }

  /** Goes on to `until`, where the last batch must end. */
  async goOn(file: DataFile, until: number): Promise<void> {
    const window = FileWindow.over(file, until, PIECE_BYTES)
    try {
      let end = this.sizeBytes
      while (this.sizeBytes < until && this.damage === null) {
        const origin = this.sizeBytes
        await window.move(origin, end)
        this.#take(window)
        if (this.damage !== null || this.sizeBytes > origin) continue
        end = this.#endOfCut(window, end)
      }
    } finally {
      await window.settle()
    }
  }

  /** Where the batch ends that the window, which was to show all up to `wanted`, shows the beginning of. */
  #endOfCut({ at, end, sizeBytes: until }: FileWindow, wanted: number): number {
    const { sizeBytes } = this.#chain.batch
    if (end < Math.min(until, Math.max(wanted, at + PIECE_BYTES))) this.#chain.fail('the file ends here', end)
    else if (sizeBytes > until - at || end === until) {
      this.#chain.fail('a batch reaches beyond the end of the segment')
    }
    return at + sizeBytes
  }

  #take({ bytes, at: origin }: FileWindow): void {
    const { index } = this
    const chain = this.#chain
    const { batch } = chain
    chain.begin(bytes, bytes.length, origin)
    /** Bytes that are in the sum. */
    let summed = 0
    while (chain.step()) {
      const { position } = chain
      if (index.isDue(position, batch.leaderEpoch, batch.base !== this.next)) {
        index.add(batch.base, position, this.maxTimestamp, batch.leaderEpoch)
      }
      if (!batch.control) this.maxTimestamp = Math.max(this.maxTimestamp, batch.maxTimestamp)
      this.next = chain.next
      this.sizeBytes = position + batch.sizeBytes
      this.batches++
      if (batch.sizeBytes < JOINED_FROM_BYTES) continue
      // Its own sum has been looked at just now.
      const end = batch.position + batch.sizeBytes
      this.#sum(bytes, summed, batch.position)
      this.crc = crc32cOfBatches(bytes.subarray(batch.position, end), this.crc, this.#crc32c)
      summed = end
    }
    this.#sum(bytes, summed, this.sizeBytes - origin)
  }

  #sum(bytes: Uint8Array, from: number, to: number): void {
    if (from < to) this.crc = this.#crc32c(bytes, this.crc, from, to)
  }
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}
