/**
 * Finding records by time. Timestamps grow with offsets where the process stamped them, but wire batches carry
 * their senders', so nothing here assumes an order: a segment is ruled out by its newest timestamp, a batch by
 * its own, and rows are looked at last.
 */
import type { Columns } from '../../model/batch.ts'
import type { At } from '../contract.ts'
import type { Conversions } from './conversions.ts'
import type { Segment, SegmentRing } from './segment.ts'
import type { Slab } from './slab.ts'

/** The first record from `start` on that is at or after `timestamp`. */
export function firstAtOrAfter(
  ring: SegmentRing,
  start: number,
  timestamp: number,
  conversions: Conversions,
): At | undefined {
  for (let i = 0; i < ring.length; i++) {
    const segment = ring.at(i)
    if (segment.maxTimestamp < timestamp) continue
    const found = segment.wire
      ? firstInSlab(segment, start, timestamp, conversions)
      : firstInRows(segment.columns as Columns, start, segment.next, timestamp)
    if (found !== undefined) return found
  }
  return undefined
}

/** The newest timestamp from `start` on, or −1. */
export function newestTimestamp(ring: SegmentRing, start: number, conversions: Conversions): number {
  let newest = -1
  for (let i = 0; i < ring.length; i++) {
    const segment = ring.at(i)
    if (segment.maxTimestamp <= newest) continue
    newest = segment.base >= start ? segment.maxTimestamp : newestKept(segment, start, conversions)
  }
  return newest
}

/**
 * Where `start` must be when nothing is kept that is older than `oldest`. Wire batches go whole; one without
 * timestamps (−1) does not age.
 */
export function startAfterExpiry(ring: SegmentRing, start: number, oldest: number): number {
  let at = start
  for (let i = 0; i < ring.length; i++) {
    const segment = ring.at(i)
    at = segment.wire ? expiredBatches(segment, at, oldest) : expiredRows(segment, at, oldest)
    if (at < segment.next) break
  }
  return at
}

function firstInSlab(
  segment: Segment,
  start: number,
  timestamp: number,
  conversions: Conversions,
): At | undefined {
  const slab = segment.slab as Slab
  for (let index = slab.indexOf(Math.max(start, segment.base)); index < slab.length; index++) {
    if ((slab.maxTimestamps[index] as number) < timestamp) continue
    const next = slab.nextOf(index)
    const columns = conversions.decode(segment, next - 1, 0)
    const found = firstInRows(columns, Math.max(start, slab.bases[index] as number), next, timestamp)
    if (found !== undefined) return found
  }
  return undefined
}

function firstInRows(columns: Columns, from: number, to: number, timestamp: number): At | undefined {
  for (let row = Math.max(from - columns.base, 0); row < to - columns.base; row++) {
    const at = columns.timestampAt(row)
    if (at >= timestamp) return { offset: columns.base + row, timestamp: at }
  }
  return undefined
}

/** The first segment of a log, of which a part is evicted. */
function newestKept(segment: Segment, start: number, conversions: Conversions): number {
  const columns = segment.wire
    ? conversions.decode(segment, segment.next - 1, 0)
    : (segment.columns as Columns)
  let newest = -1
  for (let row = start - segment.base; row < segment.next - segment.base; row++) {
    newest = Math.max(newest, columns.timestampAt(row))
  }
  return newest
}

function expiredRows(segment: Segment, from: number, oldest: number): number {
  const columns = segment.columns as Columns
  if (segment.maxTimestamp < oldest) return segment.next
  let row = from - segment.base
  while (columns.timestampAt(row) < oldest) row++
  return segment.base + row
}

function expiredBatches(segment: Segment, from: number, oldest: number): number {
  const slab = segment.slab as Slab
  let at = from
  for (let index = slab.indexOf(from); index < slab.length; index++) {
    const timestamp = slab.maxTimestamps[index] as number
    if (timestamp >= oldest || timestamp < 0) break
    at = slab.nextOf(index)
  }
  return at
}
