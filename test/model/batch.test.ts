import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Columns } from '../../src/model/batch.ts'
import type { Key } from '../../src/model/record.ts'
import { RecordHeaders } from '../../src/model/record.ts'

const headers = new RecordHeaders([['h', 'v']])

describe('columns', () => {
  it('leave out what all rows share', () => {
    const columns = new Columns(7)
    for (let i = 0; i < 100; i++) columns.push(i, null, null, 5, 64)
    const { keys, headers, offsets, timestamps, sizes, timestamp, size, count } = columns
    expect([keys, headers, offsets, timestamps, sizes]).toEqual([null, null, null, null, null])
    expect([timestamp, size, count]).toEqual([5, 64, 100])
    expect([columns.offsetAt(99), columns.timestampAt(99), columns.sizeAt(99)]).toEqual([106, 5, 64])
  })

  it('answer every row as it was pushed, wherever a field first differs', () => {
    const row = fc.record({
      key: fc.constantFrom<Key | null>(null, null, 'k', new Uint8Array([1])),
      headers: fc.constantFrom(null, null, headers),
      timestamp: fc.constantFrom(5, 5, 5, 6, 1_767_225_600_000),
      size: fc.constantFrom(64, 64, 64, 65, 4_294_967_295),
    })
    fc.assert(
      fc.property(fc.array(row, { maxLength: 80 }), fc.constantFrom(0, 3, 64), (rows, capacity) => {
        const columns = new Columns(10, capacity)
        for (const [i, each] of rows.entries()) {
          columns.push(i, each.key, each.headers, each.timestamp, each.size)
        }
        expect(columns.count).toBe(rows.length)
        const read = rows.map((_, i) => ({
          key: columns.keyAt(i),
          headers: columns.headersAt(i),
          timestamp: columns.timestampAt(i),
          size: columns.sizeAt(i),
        }))
        expect(read).toEqual(rows)
        expect(columns.values.slice(0, rows.length)).toEqual(rows.map((_, i) => i))
      }),
      { seed: 20_260_103 },
    )
  })
})
