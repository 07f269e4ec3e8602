/**
 * Finds in the bytes of a damaged segment the batches that are sound, each with the offsets it had. A batch's own CRC tells
 * whether its records are, but not which offsets are theirs. That follows from what surrounds it: batches of a block
 * follow each other, and where a block begins and ends is known from without.
 *
 *   block   │ sound │ sound │ ▒ damaged ▒ │ sound │ sound │        the index has blocks of 32 KiB; without one
 *           base                          next            next     a segment is a single block
 *                           ├─── lost ────┤
 *
 * Behind damage it goes on where the damaged batch says that it ends, if there is one, else at the first byte from which
 * on there is. A batch whose records are sound and whose offset or epoch is not gets those that it must have had.
 */
import type { Crc32c } from '../format/crc32c.ts'
import { readInt8, readInt32, readInt64 } from '../format/integers.ts'
import { HEADER_BYTES, MAGIC, MAGIC_AT, PREFIX_BYTES, SIZE_AT } from '../format/layout.ts'
import { patchBatch } from '../format/record-batch.ts'
import { BatchScan } from '../format/scan.ts'

/** A part of a segment at whose beginning a batch is. */
export interface Block {
  readonly from: number
  /** Position after it. */
  readonly to: number
  readonly base: number
  /** Offset after its last batch, or higher where that is not `exact`. */
  readonly next: number
  readonly exact: boolean
  /** Offsets may be missing within it. */
  readonly gaps: boolean
}

export interface LostRange {
  /** Where in the file it begins. */
  readonly position: number
  readonly from: number
  /** Offset after it. */
  readonly to: number
}

export class SoundBatches {
  /** In the order of their offsets. */
  readonly batches: Uint8Array[] = []
  readonly lost: LostRange[] = []
  readonly #bytes: Uint8Array
  readonly #epochOf: (offset: number) => number | undefined
  readonly #here: BatchScan
  readonly #ahead: BatchScan
  #at = 0
  #next = 0

  /** `epochOf`: the leader epoch at an offset, where that is known. */
  constructor(bytes: Uint8Array, crc32c: Crc32c, epochOf: (offset: number) => number | undefined) {
    this.#bytes = bytes
    this.#epochOf = epochOf
    this.#here = new BatchScan({ crc32c })
    this.#ahead = new BatchScan({ crc32c })
  }

  take(block: Block): void {
    const to = Math.min(block.to, this.#bytes.length)
    this.#at = block.from
    this.#next = block.base
    while (this.#at < to) {
      if (this.#takeOne(block, to)) continue
      const [position, from] = [this.#at, this.#next]
      this.#at = this.#resumeAt(block, to)
      this.#next = this.#at < to ? readInt64(this.#bytes, this.#at) : block.next
      this.#lose(position, from)
    }
    // Cut off, at the end of a batch or in front of the block.
    const isCut = block.exact || to < block.to
    const [position, from] = [this.#at, this.#next]
    if (isCut) this.#next = block.next
    this.#lose(position, from)
  }

  #lose(position: number, from: number): void {
    const to = this.#next
    if (to <= from) return
    const before = this.lost.at(-1)
    if (before?.to === from) this.lost[this.lost.length - 1] = { ...before, to }
    else this.lost.push({ position, from, to })
  }

  /** The batch here, if its records are sound and its offsets are plain. */
  #takeOne(block: Block, to: number): boolean {
    const batch = this.#here.start(this.#bytes, this.#at, to)
    if (!batch.next()) return false
    const base = this.#baseOf(batch, block, to)
    if (base === undefined) return false
    const end = this.#at + batch.sizeBytes
    const epoch = this.#epochOf(base) ?? batch.leaderEpoch
    const whole = this.#bytes.subarray(this.#at, end)
    if (base === batch.base && epoch === batch.leaderEpoch) this.batches.push(whole)
    else {
      const mended = whole.slice()
      patchBatch(mended, 0, base, epoch)
      this.batches.push(mended)
    }
    this.#next = base + batch.last - batch.base + 1
    this.#at = end
    return true
  }

  /** The offset that it has, or must have had. */
  #baseOf(batch: BatchScan, block: Block, to: number): number | undefined {
    const span = batch.last - batch.base + 1
    const end = this.#at + batch.sizeBytes
    const follower = end < to && this.#ahead.start(this.#bytes, end, to).next() ? this.#ahead.base : undefined
    if (batch.base === this.#next) return batch.last < block.next ? batch.base : undefined
    const bound = follower ?? block.next
    if (block.gaps) return batch.base > this.#next && batch.last < bound ? batch.base : undefined
    // Nothing is missing between it and what follows: it is only its offset that is wrong.
    const isLast = end === to && block.exact && block.next === this.#next + span
    const isBetween = follower === this.#next + span || isLast
    return isBetween ? this.#next : undefined
  }

  /** Where a sound batch begins behind damage, one that may follow; `to` for nowhere. */
  #resumeAt(block: Block, to: number): number {
    const bytes = this.#bytes
    const mayFollow = (at: number): boolean => {
      // First what costs little: there may be megabytes of other things.
      if (readInt8(bytes, at + MAGIC_AT) !== MAGIC || readInt64(bytes, at) < this.#next) return false
      if (readInt64(bytes, at) >= block.next) return false
      const scan = this.#ahead.start(bytes, at, to)
      return scan.next() && scan.last < block.next
    }
    const sizeBytes = this.#at + HEADER_BYTES <= to ? readInt32(bytes, this.#at + SIZE_AT) + PREFIX_BYTES : 0
    const said = this.#at + sizeBytes
    if (sizeBytes >= HEADER_BYTES && said + HEADER_BYTES <= to && mayFollow(said)) return said
    for (let at = this.#at + 1; at + HEADER_BYTES <= to; at++) if (mayFollow(at)) return at
    return to
  }
}
