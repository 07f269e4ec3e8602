/** Gathers whole wire batches for a Fetch: views where one segment has them all, one copy where several do. */
import { concat } from '../format/bytes.ts'
import type { Conversions } from './conversions.ts'
import type { SegmentRing } from './segment.ts'
import type { Slab } from './slab.ts'

export interface Collected {
  readonly bytes: Uint8Array
  /** Offset after the last batch, or `from` where there was none. */
  readonly next: number
  /** Whose bytes they are; null for a copy. */
  readonly slab: Slab | null
}

/** Batches from the one that holds `from`, below `bound`: at least one, and no more than `maxBytes` with the others. */
export function collectBatches(
  ring: SegmentRing,
  from: number,
  bound: number,
  maxBytes: number,
  conversions: Conversions,
): Collected {
  const pieces: Uint8Array[] = []
  let only: Slab | null = null
  let next = from
  let sizeBytes = 0
  let full = false
  for (let i = ring.indexOf(from); next < bound && !full; i++) {
    const segment = ring.at(i)
    const limit = Math.min(bound, segment.next)
    let slab = conversions.encode(segment, next)
    const first = slab.indexOf(next)
    const begin = slab.positions[first] as number
    let end = begin
    for (let index = first; next < limit && !full; index++) {
      slab = conversions.encode(segment, next)
      const batchBytes = slab.endOf(index) - end
      full = sizeBytes > 0 && sizeBytes + batchBytes > maxBytes
      if (full) break
      sizeBytes += batchBytes
      end += batchBytes
      next = slab.nextOf(index)
      full = sizeBytes >= maxBytes
    }
    if (end === begin) continue
    only = pieces.length === 0 ? slab : null
    pieces.push(slab.bytes.subarray(begin, end))
  }
  return { bytes: concat(pieces), next, slab: only }
}
