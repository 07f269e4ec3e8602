/** What a pass of compaction leaves out, and that all else is what it was. */
import { describe, expect, it } from 'vitest'
import { BatchBuilder, type FinishOptions } from '../../../src/log/format/batch-builder.ts'
import { noCompression } from '../../../src/log/format/compression.ts'
import { encodeMarker } from '../../../src/log/format/control.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { writeInt16, writeInt32, writeInt64 } from '../../../src/log/format/integers.ts'
import { ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT } from '../../../src/log/format/layout.ts'
import { readHeader } from '../../../src/log/format/record-batch.ts'
import type { ProducerInfo } from '../../../src/model/batch.ts'
import { RecordHeaders } from '../../../src/model/record.ts'
import { defaultCodec } from '../../../src/model/value-codec.ts'
import { T0 } from './batches.ts'
import { Bench, recordsOf } from './compaction-bench.ts'
import { DAY_MS } from './compaction-kit.ts'
import { tinyCompression } from './compaction-model.ts'
import { hex, logPath, openSegments, verify } from './segments-kit.ts'

type Said = readonly [key: string | null, value: string | null]

/** A batch at `base` of these records, a millisecond apart. */
function batch(
  base: number,
  said: readonly Said[],
  options: Partial<FinishOptions> = {},
  at = T0,
): Uint8Array {
  const builder = new BatchBuilder()
  builder.open(base, at)
  for (const [i, [key, value]] of said.entries()) {
    const { bytes, contentType } = defaultCodec.encode(value)
    const headers = i === 1 ? new RecordHeaders([['h', 'second']]) : null
    builder.add(bytes, key, headers, at + i, contentType)
  }
  return builder.finish({ leaderEpoch: 0, ...options })
}

function marker(base: number, producerId: number, commit: boolean, timestamp = T0): Uint8Array {
  return encodeMarker(
    { commit, coordinatorEpoch: 0 },
    { baseOffset: base, leaderEpoch: 0, producerId, producerEpoch: 0, timestamp },
  )
}

function in_(id: number, sequence = 0): { producer: ProducerInfo } {
  return { producer: { id, epoch: 0, sequence, transactional: true } }
}

function changed(bytes: Uint8Array, change: (bytes: Uint8Array) => void): Uint8Array {
  change(bytes)
  writeInt32(bytes, CRC_AT, crc32c(bytes.subarray(ATTRIBUTES_AT)))
  return bytes
}

const LZ: Partial<FinishOptions> = { compression: { type: 3, port: tinyCompression } }

describe('records', () => {
  it('go when a later one has their key, in another batch, in the same, and in one that is compressed', async () => {
    const bench = await Bench.of([
      batch(0, [
        ['a', '0'],
        ['b', '1'],
        ['a', '2'],
      ]),
      batch(
        3,
        [
          ['c', '3'],
          ['b', '4'],
        ],
        LZ,
      ),
      batch(5, [['d', '5']]),
      batch(
        6,
        [
          ['c', '6'],
          ['e', '7'],
        ],
        LZ,
      ),
      batch(8, [
        ['active', '8'],
        ['a', '9'],
      ]),
    ])
    await bench.compact()
    // What is active is neither compacted nor does it count.
    expect(await bench.records()).toEqual([
      '2:a=2',
      '4:b=4',
      '5:d=5',
      '6:c=6',
      '7:e=7',
      '8:active=8',
      '9:a=9',
    ])
    expect(bench.segments.list).toMatchObject([
      { base: 0, next: 8, compacted: true, sealed: true, generation: 1 },
      { base: 8, next: 10, sealed: false },
    ])
    expect(bench.log.stored()).toEqual({ compaction: { until: 8 } })
    expect(await verify(bench.fs, bench.segments.stored())).toEqual([])
  })

  it('have keys that are equal by their bytes', async () => {
    const key = 'ключ'
    const bench = await Bench.of([
      batch(0, [
        [key, '0'],
        ['k', '1'],
        ['', '2'],
        ['kk', '3'],
      ]),
      batch(4, [
        [key, '4'],
        ['', '5'],
      ]),
      batch(6, [['x', '6']]),
    ])
    await bench.compact()
    expect(await bench.records()).toEqual(['1:k=1', '3:kk=3', `4:${key}=4`, '5:=5', '6:x=6'])
  })

  it('without a key stay, whatever they hold', async () => {
    const bench = await Bench.of([
      batch(0, [
        [null, '0'],
        ['a', '1'],
        [null, null],
      ]),
      batch(3, [
        [null, null],
        ['a', '4'],
      ]),
      batch(5, [['x', '5']]),
    ])
    await bench.compact()
    await bench.add(batch(6, [['x', '6']]))
    await bench.compact(3 * DAY_MS)
    expect(await bench.records()).toEqual([
      '0:null=0',
      '2:null=null',
      '3:null=null',
      '4:a=4',
      '5:x=5',
      '6:x=6',
    ])
  })
})

describe('a batch', () => {
  it('of which all stays is the same, byte for byte', async () => {
    const batches = [
      batch(0, [['a', '0']], { inProcess: true, leaderEpoch: 3 }),
      batch(
        1,
        [
          ['b', '1'],
          ['c', '2'],
        ],
        { ...LZ, leaderEpoch: 3 },
      ),
      batch(3, [['d', '3']], {
        producer: { id: 9, epoch: 2, sequence: 7, transactional: false },
        leaderEpoch: 3,
      }),
      batch(
        4,
        [
          ['old', '4'],
          ['e', '5'],
        ],
        { leaderEpoch: 4 },
      ),
      batch(6, [['old', '6']], { leaderEpoch: 4 }),
      batch(7, [['x', '7']], { leaderEpoch: 4 }),
    ]
    const bench = await Bench.of(batches)
    await bench.compact()
    const left = await bench.batches()
    expect(left.map(hex).filter((each) => batches.map(hex).includes(each))).toHaveLength(5)
    expect(left).toHaveLength(6)
  })

  it('of which some stays keeps offsets, times, producer, codec, marks and the bytes of what stays', async () => {
    const producer = { id: 9, epoch: 2, sequence: 2 ** 31 - 2, transactional: false }
    const options = { ...LZ, producer, inProcess: true, leaderEpoch: 5 }
    const before = batch(
      0,
      [
        ['a', '0'],
        ['b', '1'],
        ['c', '2'],
        ['d', '3'],
      ],
      options,
    )
    const bench = await Bench.of([
      before,
      batch(
        4,
        [
          ['a', 'later'],
          ['d', 'later'],
        ],
        { leaderEpoch: 5 },
      ),
      batch(6, [['x', '']], { leaderEpoch: 5 }),
    ])
    await bench.compact()
    const [after] = await bench.batches()
    const [was, is] = [readHeader(before, 0), readHeader(after as Uint8Array, 0)]
    const { sizeBytes: _, crc: __, count, maxTimestamp, ...rest } = is
    expect(was).toMatchObject(rest)
    expect([count, maxTimestamp, was.maxTimestamp]).toEqual([2, T0 + 2, T0 + 3])
    expect(recordsOf(after as Uint8Array)).toEqual(['1:b=1', '2:c=2'])
    const [all, left] = [before, after as Uint8Array].map((bytes) =>
      tinyCompression.decompress(3, bytes.subarray(61), 1e6),
    )
    expect(hex(all as Uint8Array)).toContain(hex(left as Uint8Array))
  })

  it('that has the time of the broker keeps it', async () => {
    const stamped = changed(
      batch(0, [
        ['a', '0'],
        ['b', '1'],
      ]),
      (bytes) => {
        writeInt16(bytes, ATTRIBUTES_AT, 1 << 3)
        writeInt64(bytes, MAX_TIMESTAMP_AT, T0 + 777)
      },
    )
    const bench = await Bench.of([stamped, batch(2, [['b', null]]), batch(3, [['x', '']])])
    await bench.compact()
    const header = readHeader((await bench.batches())[0] as Uint8Array, 0)
    expect(header).toMatchObject({ maxTimestamp: T0 + 777, logAppendTime: true, count: 1 })
  })

  it('of which nothing stays goes, also if that empties a segment, and offsets go on behind it', async () => {
    const bench = await Bench.of(
      [
        batch(0, [['a', '0']]),
        batch(1, [['a', '1']]),
        batch(2, [
          ['b', '2'],
          ['a', '3'],
        ]),
        batch(4, [['x', '4']]),
      ],
      { mergedBytes: 1 },
    )
    await bench.compact()
    expect(bench.segments.list).toMatchObject([
      { base: 0, next: 1, sizeBytes: 0 },
      { base: 1, next: 2, sizeBytes: 0 },
      { base: 2, next: 4, generation: 0 },
      { base: 4 },
    ])
    for (let offset = 0; offset < 4; offset++) {
      const { base, bytes } = await bench.segments.read(offset, 1)
      expect([base <= offset, recordsOf(bytes)]).toEqual([true, ['2:b=2', '3:a=3']])
    }
    // As told of, and as it is for the next process.
    const stored = bench.segments.stored()
    expect(await verify(bench.fs, stored)).toEqual([])
    const again = await openSegments(bench.fs, stored)
    expect(recordsOf((await again.read(0, 1)).bytes)).toEqual(['2:b=2', '3:a=3'])
    expect(await again.seekTime(0)).toBe(2)
  })

  it('that cannot be read stays whole, and tombstones behind it stay for ever', async () => {
    const bench = await Bench.of(
      [
        batch(0, [
          ['a', null],
          ['b', '1'],
        ]),
        batch(
          2,
          [
            ['a', '2'],
            ['c', '3'],
          ],
          LZ,
        ),
        batch(4, [
          ['b', null],
          ['c', null],
          ['d', '6'],
          ['d', '7'],
        ]),
        batch(8, [['x', '8']]),
      ],
      { compression: noCompression },
    )
    await bench.compact()
    // In front of what is not known tombstones go.
    expect(await bench.records()).toEqual([
      '0:a=null',
      '2:a=2',
      '3:c=3',
      '4:b=null',
      '5:c=null',
      '7:d=7',
      '8:x=8',
    ])
    await bench.compact(2 * DAY_MS)
    const left = ['2:a=2', '3:c=3', '4:b=null', '5:c=null', '7:d=7', '8:x=8']
    expect(await bench.records()).toEqual(left)
    await bench.compact(9 * DAY_MS)
    expect([await bench.records(), bench.log.horizon]).toEqual([left, Number.POSITIVE_INFINITY])
  })

  it('that contradicts itself stays whole, and counts for no key', async () => {
    const broken = changed(
      batch(1, [
        ['a', '1'],
        ['b', '2'],
      ]),
      (bytes) => {
        // The length of its second record.
        bytes[62 + (bytes[61] as number) / 2] = 0xff
      },
    )
    const bench = await Bench.of([batch(0, [['a', '0']]), broken, batch(3, [['x', '3']])])
    await bench.compact()
    expect((await bench.batches()).map(hex)).toContain(hex(broken))
    expect(recordsOf((await bench.batches())[0] as Uint8Array)).toEqual(['0:a=0'])
  })
})

describe('a tombstone', () => {
  const batches = [
    batch(0, [
      ['a', '0'],
      ['b', '1'],
    ]),
    batch(2, [
      ['a', null],
      ['c', '3'],
    ]),
    batch(4, [['x', '4']]),
  ]

  it('stays for its time after it was compacted first, and then goes', async () => {
    const bench = await Bench.of(batches)
    await bench.compact()
    expect(await bench.records()).toEqual(['1:b=1', '2:a=null', '3:c=3', '4:x=4'])
    expect(bench.log.stored()).toEqual({ compaction: { until: 4, horizon: T0 + DAY_MS } })
    const header = readHeader((await bench.batches())[1] as Uint8Array, 0)
    expect(header).toMatchObject({ deleteHorizon: true, baseTimestamp: T0 + DAY_MS, maxTimestamp: T0 + 1 })
    // Times of records are told from that, and are what they were.
    expect(await bench.segments.seekTime(T0 + 1)).toBeLessThanOrEqual(2)
    expect(bench.log.isDue(T0 + DAY_MS - 1)).toBe(false)
    await bench.compact(DAY_MS - 1)
    expect(await bench.records()).toContain('2:a=null')
    expect(bench.log.isDue(T0 + DAY_MS)).toBe(true)
    await bench.compact(1)
    expect(await bench.records()).toEqual(['1:b=1', '3:c=3', '4:x=4'])
    expect([bench.log.horizon, bench.log.isDue(T0 + 9 * DAY_MS)]).toEqual([Number.POSITIVE_INFINITY, false])
  })

  it('keeps its first horizon when it is compacted again', async () => {
    const bench = await Bench.of(batches)
    await bench.compact()
    await bench.add(batch(5, [['y', null]]), batch(6, [['z', '']]))
    await bench.compact(DAY_MS / 2)
    expect(await bench.records()).toContain('2:a=null')
    expect(bench.log.horizon).toBe(T0 + 1.5 * DAY_MS)
    await bench.compact(DAY_MS / 2)
    expect(await bench.records()).toEqual(['1:b=1', '3:c=3', '4:x=4', '5:y=null', '6:z='])
  })

  it('goes at once where nothing is to be kept, and never where that is not to be', async () => {
    const bench = await Bench.of(batches, { deleteRetentionMs: 0 })
    await bench.compact()
    expect(await bench.records()).toContain('2:a=null')
    await bench.compact()
    expect(await bench.records()).not.toContain('2:a=null')
    const kept = await Bench.of(batches, { deleteRetentionMs: Number.POSITIVE_INFINITY })
    await kept.compact()
    await kept.compact(1000 * DAY_MS)
    expect(await kept.records()).toContain('2:a=null')
    expect(kept.log.stored()).toEqual({ compaction: { until: 4 } })
  })

  it('whose time is beyond all bounds stays', async () => {
    const bench = await Bench.of([
      batch(0, [['a', '0']]),
      batch(1, [['a', null]], {}, 10 - 2 ** 53),
      batch(2, [['x', '']]),
    ])
    await bench.compact()
    await bench.compact(1000 * DAY_MS)
    expect(await bench.records()).toEqual(['1:a=null', '2:x='])
  })

  it('of a key that comes again goes like any other record', async () => {
    const bench = await Bench.of([...batches, batch(5, [['a', 'again']]), batch(6, [['y', '']])])
    await bench.compact()
    expect(await bench.records()).toEqual(['1:b=1', '3:c=3', '4:x=4', '5:a=again', '6:y='])
  })
})

describe('of transactions', () => {
  it('what was aborted goes, and does not count as newer', async () => {
    const bench = await Bench.of([
      batch(0, [
        ['a', '0'],
        ['b', '1'],
      ]),
      batch(2, [['a', 'aborted']], in_(1)),
      batch(3, [['b', 'committed']], in_(2)),
      marker(4, 1, false),
      marker(5, 2, true),
      batch(6, [['x', '6']]),
    ])
    await bench.compact()
    expect(await bench.records()).toEqual(['0:a=0', '3:b=committed', '4:marker', '5:marker', '6:x=6'])
    expect(bench.state.aborted(0, 9)).toEqual([{ producerId: 1, firstOffset: 2 }])
  })

  it('markers go when nothing of theirs is left, for as long as tombstones stay, and the index with them', async () => {
    const bench = await Bench.of([
      batch(0, [['a', 'aborted']], in_(1)),
      marker(1, 1, false),
      batch(2, [['a', '2']], in_(1, 1)),
      batch(3, [['b', '3']], in_(2)),
      marker(4, 1, true),
      marker(5, 2, true),
      batch(6, [['a', '6']]),
      batch(7, [['x', '7']]),
    ])
    await bench.compact()
    expect(await bench.records()).toEqual(['1:marker', '3:b=3', '4:marker', '5:marker', '6:a=6', '7:x=7'])
    expect(bench.log.horizon).toBe(T0 + DAY_MS)
    expect(bench.state.abortions).toHaveLength(1)
    await bench.compact(DAY_MS)
    // What is left of the other one keeps its marker.
    expect(await bench.records()).toEqual(['3:b=3', '5:marker', '6:a=6', '7:x=7'])
    expect(bench.state.abortions).toEqual([])
    await bench.add(batch(8, [['b', '8']]), batch(9, [['y', '9']]))
    await bench.compact()
    expect(await bench.records()).toEqual(['5:marker', '6:a=6', '7:x=7', '8:b=8', '9:y=9'])
    await bench.compact(DAY_MS)
    expect(await bench.records()).toEqual(['6:a=6', '7:x=7', '8:b=8', '9:y=9'])
  })

  it('an open one, and all behind it, is left alone', async () => {
    const bench = await Bench.of([
      batch(0, [['a', '0']]),
      batch(1, [['a', '1']]),
      batch(2, [['a', 'open']], in_(1)),
      batch(3, [['a', '3']]),
      batch(4, [['x', '4']]),
    ])
    bench.marks.stable = bench.state.stable(5)
    expect(bench.marks.stable).toBe(2)
    await bench.compact()
    expect(await bench.records()).toEqual(['1:a=1', '2:a=open', '3:a=3', '4:x=4'])
    await bench.add(marker(5, 1, false), batch(6, [['x', '6']]))
    await bench.compact()
    expect(await bench.records()).toEqual(['3:a=3', '4:x=4', '5:marker', '6:x=6'])
  })

  it('one that ends in what is active is known, though its marker is not compacted', async () => {
    const bench = await Bench.of([
      batch(0, [['a', '0']]),
      batch(1, [['a', 'aborted']], in_(1)),
      marker(2, 1, false),
    ])
    await bench.compact()
    expect(await bench.records()).toEqual(['0:a=0', '2:marker'])
  })

  it('many of one producer are told apart', async () => {
    const batches: Uint8Array[] = []
    for (let i = 0; i < 20; i++) {
      batches.push(batch(i * 2, [[`k${i}`, i % 3 === 0 ? 'aborted' : 'committed']], in_(1, i)))
      batches.push(marker(i * 2 + 1, 1, i % 3 !== 0))
    }
    const bench = await Bench.of([...batches, batch(40, [['x', '']])])
    await bench.compact()
    const left = await bench.records()
    expect(left.filter((each) => each.includes('aborted'))).toEqual([])
    expect(left.filter((each) => each.includes('committed'))).toHaveLength(13)
  })
})

describe('a pass', () => {
  const many = Array.from({ length: 40 }, (_, i) =>
    batch(i * 2, [
      [`k${i % 11}`, `${i}`],
      [`k${i % 7}`, `${i}`],
    ]),
  )

  it('takes as many keys as its map may hold, and others follow', async () => {
    const once = await Bench.of(many)
    const inMany = await Bench.of(many, { mapBytes: 1 })
    const [few, more] = [await once.compact(), await inMany.compact()]
    expect(await inMany.records()).toEqual(await once.records())
    expect(more).toBeGreaterThan(1.5 * few)
    expect(inMany.log.stored()).toEqual(once.log.stored())
  })

  it('merges small segments, and leaves alone those that stay as they are', async () => {
    const size = (many[0] as Uint8Array).length
    const bench = await Bench.of(many, { segmentBytes: 4 * size, mergedBytes: 4 * size })
    expect(bench.segments.list.length).toBeGreaterThan(9)
    await bench.compact()
    const { list } = bench.segments
    expect(list.length).toBeLessThan(5)
    expect(list.map(({ base }) => base)).toEqual([0, ...list.slice(0, -1).map(({ next }) => next)])
    const before = bench.segments.list.map(({ generation = 0, base }) => [base, generation])
    await bench.compact()
    expect(bench.segments.list.map(({ generation = 0, base }) => [base, generation])).toEqual(before)
  })

  it('leaves out what lies below where the log begins', async () => {
    const bench = await Bench.of([
      batch(0, [['a', '0']]),
      marker(1, 1, false),
      batch(2, [
        ['b', '2'],
        ['c', '3'],
      ]),
      batch(4, [['d', '4']]),
      batch(5, [['x', '5']]),
    ])
    bench.behind.start = 3
    await bench.compact()
    expect(await bench.records()).toEqual(['2:b=2', '3:c=3', '4:d=4', '5:x=5'])
  })

  it('leaves the old files to who knows that nobody needs them', async () => {
    const bench = await Bench.of([batch(0, [['a', '0']]), batch(1, [['a', '1']]), batch(2, [['x', '2']])])
    const { segments, fs } = bench
    await bench.compact()
    expect(segments.replaced.map(({ base }) => base)).toEqual([0, 1])
    expect(segments.replacedBytes).toBe(batch(0, [['a', '0']]).length * 2)
    expect(fs.files()).toContain(logPath(0))
    await segments.removeReplaced(segments.replaced)
    expect(fs.files().filter((path) => path.endsWith('.log'))).toEqual([
      logPath(0).replace('.log', '-1.log'),
      logPath(2),
    ])
    expect([segments.replaced, segments.replacedBytes]).toEqual([[], 0])
  })

  it('ends where retention has taken what it reads, at any operation', async () => {
    const whole = await Bench.of(many.slice(0, 12), { mergedBytes: 200 })
    const operations = whole.fs.operations
    await whole.compact()
    for (let at = 1; at <= whole.fs.operations - operations; at++) {
      const bench = await Bench.of(many.slice(0, 12), { mergedBytes: 200 })
      const begin = bench.fs.operations
      let removed: Promise<void> | undefined
      bench.fs.onOperation = () => {
        if (removed === undefined && bench.fs.operations - begin === at)
          removed = bench.segments.removeBelow(10)
        return undefined
      }
      await bench.compact()
      await removed
      const left = await bench.records()
      const { base = 0 } = bench.segments.list[0] ?? {}
      expect([at, base]).toEqual([at, base])
      expect(base).toBeGreaterThanOrEqual(10)
      const { fs } = bench
      expect(await verify(fs, bench.segments.stored(), base)).toEqual([])
      for (let i = 5; i < 12; i++) expect(left.some((each) => each.endsWith(`k${i % 11}=${i}`))).toBe(true)
    }
  })

  it('of large segments is synced as it goes, so that the journal never waits for all of it', async () => {
    const value = 'x'.repeat(1_000_000)
    const large = Array.from({ length: 10 }, (_, i) => batch(i, [[`k${i}`, value]]))
    const bench = await Bench.of([...large, batch(10, [['k0', 'again']]), batch(11, [['x', '']])], {
      segmentBytes: 20_000_000,
      mergedBytes: 20_000_000,
    })
    await bench.segments.append([batch(12, [['y', value]])], { base: 12, next: 13 })
    bench.segments.rollEarly(0)
    await bench.add(batch(13, [['z', '']], {}, T0 + 1))
    let syncs = 0
    bench.fs.onOperation = (operation, path) => {
      if (operation === 'sync' && path.includes('-1.log')) syncs++
      return undefined
    }
    await bench.compact()
    expect([bench.log.until, syncs]).toEqual([13, 3])
    expect((await bench.records()).map((each) => each.slice(0, 6))).not.toContain('0:k0=x')
  })

  it('that fails leaves everything as it was', async () => {
    const bench = await Bench.of(many.slice(0, 8))
    const before = [await bench.records(), bench.segments.stored()]
    bench.fs.onOperation = (operation, path) =>
      operation === 'sync' && path.includes('-1.log') ? { fail: 'EIO' } : undefined
    await expect(bench.compact()).rejects.toThrow('EIO')
    bench.fs.onOperation = () => undefined
    expect([await bench.records(), bench.segments.stored()]).toEqual(before)
    expect(bench.fs.files().filter((path) => path.includes('-1.'))).toEqual([])
    await bench.compact()
    expect(bench.log.until).toBe(14)
  })
})
