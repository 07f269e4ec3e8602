/** What the contract does not show: that memory is given back by whole segments, and how large they are. */
import { describe, expect, it } from 'vitest'
import type { RetentionLimits } from '../../../src/log/contract.ts'
import { LiveMarks } from '../../../src/log/memory/marks.ts'
import { Retained } from '../../../src/log/memory/retained.ts'
import type { Segment } from '../../../src/log/memory/segment.ts'

function retain(limits: Partial<RetentionLimits>) {
  const marks = new LiveMarks()
  const gone: Segment[] = []
  const retained = new Retained(marks, (segment) => gone.push(segment))
  retained.limit({ records: 65_536, bytes: 2 ** 28, ageMs: Number.POSITIVE_INFINITY, ...limits })
  const push = (sizeBytes: number, value: unknown = null) => {
    retained.push(value, null, null, 1, sizeBytes)
    marks.end++
  }
  const segments = () => Array.from({ length: retained.ring.length }, (_, i) => retained.ring.at(i))
  const pushBatch = (bytes: number, count = 1) => {
    const next = marks.end + count
    retained.pushBatch(new Uint8Array(bytes), { next, sizeBytes: bytes, maxTimestamp: 1, flags: 0 })
    marks.end = next
  }
  return { retained, marks, gone, push, pushBatch, segments }
}

const rows = (segments: Segment[]) => segments.map((segment) => segment.next - segment.base)

describe('segments of columns', () => {
  it('hold up to 1,024 rows', () => {
    const { push, segments } = retain({})
    for (let i = 0; i < 2500; i++) push(10)
    expect(rows(segments())).toEqual([1024, 1024, 452])
  })

  it('hold at most a sixteenth of the records retained', () => {
    const { push, segments } = retain({ records: 100 })
    for (let i = 0; i < 20; i++) push(10)
    expect(rows(segments())).toEqual([7, 7, 6])
  })

  it('hold at most a sixteenth of the bytes retained, and the record that passes it', () => {
    const { push, segments } = retain({ bytes: 1600 })
    for (let i = 0; i < 5; i++) push(60)
    push(1000)
    push(1)
    expect(rows(segments())).toEqual([2, 2, 2, 1])
  })

  it('make room for all of their rows only once one before was filled', () => {
    const { push, segments } = retain({})
    for (let i = 0; i < 1030; i++) push(10)
    const [first, second] = segments().map((segment) => segment.columns?.values.length)
    expect(second).toBe(1024)
    expect(first).toBeGreaterThanOrEqual(1024)
    const small = retain({})
    small.push(10)
    expect(small.segments()[0]?.columns?.values.length).toBeLessThanOrEqual(16)
  })
})

describe('segments of wire batches', () => {
  it('hold up to a mebibyte, and a batch of any size alone', () => {
    const { pushBatch, segments } = retain({})
    for (const kib of [600, 400, 100, 3000, 10]) pushBatch(kib * 1024)
    expect(segments().map((segment) => segment.slab?.usedBytes)).toEqual(
      [1000, 100, 3000, 10].map((kib) => kib * 1024),
    )
  })

  it('hold up to 1,024 batches', () => {
    const { pushBatch, segments } = retain({})
    for (let i = 0; i < 1500; i++) pushBatch(80, 3)
    expect(segments().map((segment) => segment.slab?.length)).toEqual([1024, 476])
  })

  it('are small where batches alternate with records of the process', () => {
    const { push, pushBatch, segments } = retain({})
    for (let i = 0; i < 10; i++) {
      pushBatch(80)
      push(10)
    }
    expect(segments()).toHaveLength(20)
    const held = segments().map(
      (segment) => segment.slab?.bytes.length ?? (segment.columns?.values.length ?? 0) * 8,
    )
    expect(Math.max(...held)).toBeLessThanOrEqual(128)
  })
})

describe('eviction', () => {
  it('moves start exactly, and drops a segment when start leaves it', () => {
    const { push, retained, marks, gone } = retain({})
    for (let i = 0; i < 3000; i++) push(i % 7)
    retained.evictTo(1023)
    expect([marks.start, gone.length]).toEqual([1023, 0])
    retained.evictTo(1024)
    expect([marks.start, rows(gone)]).toEqual([1024, [1024]])
    retained.evictTo(2500)
    expect([marks.start, rows(gone)]).toEqual([2500, [1024, 1024]])
    let kept = 0
    for (let i = 2500; i < 3000; i++) kept += i % 7
    expect(retained.sizeBytes).toBe(kept)
  })

  it('of everything keeps nothing alive', () => {
    const { push, retained, marks, segments, gone } = retain({})
    push(5, { large: true })
    retained.evictTo(1)
    expect([marks.start, retained.sizeBytes, gone.length]).toEqual([1, 0, 1])
    push(5)
    expect(segments().map(({ base, next }) => [base, next])).toEqual([[1, 2]])
    expect(retained.find(1)).toBe(segments()[0])
  })

  it('holds at most a sixteenth more than what is retained', () => {
    const { push, retained, marks, segments } = retain({ records: 1600 })
    for (let i = 0; i < 20_000; i++) {
      if (!retained.takes(10)) retained.evictTo(retained.room(1, 10, 'gated'))
      push(10)
      const held = marks.end - (segments()[0] as Segment).base
      expect(held).toBeLessThanOrEqual(1600 + 100)
    }
  })
})
