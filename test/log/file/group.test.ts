import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bodyCrc,
  type Entry,
  findMagic,
  GROUP_HEADER_BYTES,
  GroupBuilder,
  type GroupHeader,
  readGroupHeader,
  seeded,
  sequenceOf,
} from '../../../src/log/file/group.ts'
import { crc32c } from '../../../src/log/format/crc32c.ts'
import { writeInt32 } from '../../../src/log/format/integers.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { hexOf } from '../format/helpers.ts'
import { A, diskOf, entriesIn, entriesOf, joined, LOG } from './journal-kit.ts'

function built(...entries: readonly Entry[]): GroupBuilder {
  const builder = new GroupBuilder()
  for (const entry of entries) {
    if (entry.kind === 'batch') builder.batch(entry.log, entry.bytes)
    else if (entry.kind === 'meta') builder.meta(JSON.stringify(entry.changes))
    else if (entry.kind === 'start') builder.start(entry.log, entry.offset)
    else builder.delete(entry.log)
  }
  return builder
}

function isWhole(bytes: Uint8Array, at: number, { sizeBytes }: GroupHeader): boolean {
  const body = bytes.subarray(at + GROUP_HEADER_BYTES, at + sizeBytes)
  return at + sizeBytes <= bytes.length && crc32c(body) === bodyCrc(bytes, at)
}

/** The entries of a file that is one group, as recovery walks them. */
function walked(bytes: Uint8Array): Promise<Entry[]> {
  const header = readGroupHeader(bytes, 0, crc32c) as GroupHeader
  return entriesOf(diskOf(bytes, undefined), [{ ...header, file: A, position: 0 }])
}

/** What is read of the bytes, or that nothing can be. */
function readBack(bytes: Uint8Array, at = 0): unknown {
  const header = readGroupHeader(bytes, at, crc32c)
  if (header === undefined || !isWhole(bytes, at, header)) return 'nothing'
  return { ...header, entries: entriesIn(bytes, at, header) }
}

/** A group around any body, its CRCs right. */
function around(body: Uint8Array): Uint8Array {
  const bytes = joined([joined(new GroupBuilder().finish(7, 6, crc32c)), body])
  writeInt32(bytes, 4, body.length)
  writeInt32(bytes, 24, crc32c(body))
  writeInt32(bytes, 28, crc32c(bytes.subarray(0, 28)))
  return bytes
}

const logs = fc.record({
  topicId: fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 20 })),
  partition: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
})
const entries: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ kind: fc.constant('batch' as const), log: logs, bytes: fc.uint8Array({ maxLength: 1500 }) }),
  fc.record({
    kind: fc.constant('meta' as const),
    changes: fc.array(
      fc.tuple(
        fc.string({ unit: 'binary' }),
        fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value))),
      ),
    ),
  }),
  fc.record({ kind: fc.constant('start' as const), log: logs, offset: fc.maxSafeNat() }),
  fc.record({ kind: fc.constant('delete' as const), log: logs }),
)

describe('a group', () => {
  it('gives back what was put in, at any place', () => {
    const sequences = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
    const property = fc.property(
      fc.array(entries, { maxLength: 40 }),
      sequences,
      fc.nat(64),
      (list, sequence, at) => {
        const builder = built(...list)
        const { sizeBytes } = builder
        const bytes = joined([new Uint8Array(at), ...builder.finish(sequence, sequence - 1, crc32c)])
        expect(bytes.length).toBe(at + sizeBytes)
        expect(readBack(bytes, at)).toEqual({ sizeBytes, sequence, synced: sequence - 1, entries: list })
      },
    )
    fc.assert(property)
  })

  it('has this form on the disk', () => {
    const builder = new GroupBuilder()
    builder.batch({ topicId: 'tä', partition: 0x01020304 }, Uint8Array.of(0xaa, 0xbb))
    builder.meta(JSON.stringify([['k', 1]]))
    builder.start({ topicId: '', partition: 2 ** 32 - 1 }, 2 ** 40 + 5)
    builder.delete({ topicId: 'x', partition: 0 })
    const body = [
      '010000000a 03 74c3a4 01020304 aabb',
      `0200000009 ${hexOf(new TextEncoder().encode('[["k",1]]'))}`,
      '030000000d 00 ffffffff 0000010000000005',
      '0400000006 01 78 00000000',
    ]
      .join('')
      .replaceAll(' ', '')
    const bytes = joined(builder.finish(2 ** 33 + 1, 2 ** 33, crc32c))
    expect(hexOf(bytes.subarray(GROUP_HEADER_BYTES))).toBe(body)
    const start = `4f444a47 ${(body.length / 2).toString(16).padStart(8, '0')} 0000000200000001 0000000200000000`
    expect(hexOf(bytes.subarray(0, 24))).toBe(start.replaceAll(' ', ''))
    const view = new DataView(bytes.buffer)
    expect(view.getUint32(24)).toBe(crc32c(bytes.subarray(32)))
    expect(view.getUint32(28)).toBe(crc32c(bytes.subarray(0, 28)))
    expect(sequenceOf(bytes)).toBe(2 ** 33 + 1)
  })

  it('is empty until something is in it, and can be read even so', () => {
    const builder = new GroupBuilder()
    expect([builder.isEmpty, builder.sizeBytes]).toEqual([true, GROUP_HEADER_BYTES])
    expect(readBack(joined(builder.finish(1, 0, crc32c)))).toMatchObject({ sequence: 1, entries: [] })
    builder.delete(LOG)
    expect(builder.isEmpty).toBe(false)
  })

  it('takes thousands of small batches in a few pieces, and a large one as it is', () => {
    const builder = new GroupBuilder()
    for (let i = 0; i < 4000; i++) builder.batch(LOG, new Uint8Array(170).fill(i))
    const large = new Uint8Array(513).fill(1)
    builder.batch(LOG, large)
    builder.batch(LOG, new Uint8Array(512).fill(2))
    const pieces = builder.finish(1, 0, crc32c)
    expect(pieces.length).toBeLessThan(12)
    expect(pieces.filter((piece) => piece === large)).toHaveLength(1)
    const { entries: read } = readBack(joined(pieces)) as { entries: { bytes: Uint8Array }[] }
    expect(read).toHaveLength(4002)
    expect(read.every(({ bytes }, i) => i > 3999 || (bytes.length === 170 && bytes[169] === i % 256))).toBe(
      true,
    )
  })

  it('is the same in the buffer of a group before, which was larger', () => {
    const fill = (builder: GroupBuilder, batches: number): GroupBuilder => {
      for (let i = 0; i < batches; i++) builder.batch(LOG, new Uint8Array(170).fill(i))
      builder.meta(JSON.stringify([['key', 'value']]))
      return builder
    }
    const before = fill(new GroupBuilder(), 4000)
    before.finish(1, 0, crc32c)
    const again = fill(new GroupBuilder(before.buffer), 3)
    expect(hexOf(joined(again.finish(2, 1, crc32c)))).toBe(
      hexOf(joined(fill(new GroupBuilder(), 3).finish(2, 1, crc32c))),
    )
    expect(again.buffer).toBe(before.buffer)
  })

  it('refuses a topic id that its length cannot say', () => {
    const builder = new GroupBuilder()
    const topicId = 'ü'.repeat(128)
    expect(() => builder.delete({ topicId, partition: 0 })).toThrow(/256 bytes/)
    builder.delete({ topicId: topicId.slice(1), partition: 0 })
    expect(readBack(joined(builder.finish(1, 0, crc32c)))).toMatchObject({
      entries: [{ log: { topicId: topicId.slice(1) } }],
    })
  })

  it('counts also where its CRC happens to be zero', () => {
    const bytes = around(
      withZeroCrc(joined([Uint8Array.of(2, 0, 0, 0, 9), new TextEncoder().encode('[["k",1]]')])),
    )
    expect(new DataView(bytes.buffer).getUint32(24)).toBe(0)
    expect(isWhole(bytes, 0, readGroupHeader(bytes, 0, crc32c) as never)).toBe(true)
  })

  it('is nothing cut at any byte, and nothing with any one bit flipped', () => {
    const bytes = joined(built({ kind: 'batch', log: LOG, bytes: new Uint8Array(9) }).finish(3, 2, crc32c))
    for (let length = 0; length < bytes.length; length++) {
      expect(readBack(bytes.subarray(0, length))).toBe('nothing')
    }
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice()
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
      expect({ bit, read: readBack(flipped) }).toEqual({ bit, read: 'nothing' })
    }
  })

  it('of somebody who does not know the seed is nothing', () => {
    const secret = seeded(crc32c, 0xdecafbad)
    const pieces = (crc: typeof crc32c) => joined(built({ kind: 'delete', log: LOG }).finish(3, 2, crc))
    expect(readGroupHeader(pieces(secret), 0, secret)).toMatchObject({ sequence: 3 })
    expect(readGroupHeader(pieces(crc32c), 0, secret)).toBeUndefined()
    expect(readGroupHeader(pieces(secret), 0, crc32c)).toBeUndefined()
  })
})

/** The body with four bytes more, chosen so that the CRC is zero: it is linear, so they solve 32 equations. */
function withZeroCrc(body: Uint8Array): Uint8Array {
  const crcWith = (tail: number): number => {
    const bytes = joined([body, new Uint8Array(4)])
    writeInt32(bytes, body.length, tail)
    return crc32c(bytes)
  }
  const zero = crcWith(0)
  let rows = Array.from({ length: 32 }, (_, i) => ({ bit: 1 << i, crc: crcWith(1 << i) ^ zero }))
  let wanted = zero
  let tail = 0
  for (let column = 31; column >= 0; column--) {
    const pivot = rows.find(({ crc }) => (crc >>> column) & 1) as { bit: number; crc: number }
    rows = rows
      .filter((row) => row !== pivot)
      .map((row) => ((row.crc >>> column) & 1 ? { bit: row.bit ^ pivot.bit, crc: row.crc ^ pivot.crc } : row))
    if (((wanted >>> column) & 1) === 0) continue
    wanted ^= pivot.crc
    tail ^= pivot.bit
  }
  const bytes = joined([body, new Uint8Array(4)])
  writeInt32(bytes, body.length, tail)
  return bytes
}

describe('a body that nothing of ours wrote', () => {
  const id = '01780000'
  it.each([
    ['a kind without a meaning', '090000000601780000 0000'],
    ['kind 0', '000000000601780000 0000'],
    ['an entry longer than the group', `040000000a${id}0000`],
    ['an entry of huge length', `04ffffffff${id}0000`],
    ['a header cut short', '0400'],
    ['an id longer than its entry', '0400000006ff7800000000'],
    ['an entry without a log', '0400000000'],
    ['a log without a partition', `0400000004${id}`],
    ['more than the deletion of a log', `0400000007${id}000000`],
    ['a start without an offset', `0300000006${id}0000`],
    ['a start with half an offset', `030000000a${id}000000000000`],
    ['meta that is no JSON', '02000000015b'],
    ['meta that is no UTF-8', '02000000035b22ff'],
    ['meta that is no list', '02000000027b7d'],
    ['meta without a key', `0200000005${hexOf(new TextEncoder().encode('[[1]]'))}`],
    ['meta whose key is a number', `0200000007${hexOf(new TextEncoder().encode('[[1,2]]'))}`],
    ['meta whose change is no pair', `0200000005${hexOf(new TextEncoder().encode('["k"]'))}`],
  ])('is refused, by its position: %s', async (_, hex) => {
    const good = joined(built({ kind: 'delete', log: LOG }).finish(1, 0, crc32c)).subarray(GROUP_HEADER_BYTES)
    const bytes = around(joined([good, Buffer.from(hex.replaceAll(' ', ''), 'hex')]))
    const position = GROUP_HEADER_BYTES + good.length
    await expect(walked(bytes)).rejects.toMatchObject({ code: 'CORRUPT_LOG', file: A, position })
    await expect(walked(bytes)).rejects.toThrow(`journal/a, position ${position}: `)
  })

  it('is entries or an OdradekError, whatever it is', async () => {
    const kinds = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.uint8Array({ maxLength: 30 }))
    await fc.assert(
      fc.asyncProperty(fc.array(kinds), fc.uint8Array({ maxLength: 12 }), async (list, tail) => {
        const parts = list.map(([kind, bytes]) => joined([Uint8Array.of(kind, 0, 0, 0, bytes.length), bytes]))
        const code = await walked(around(joined([...parts, tail]))).then(
          () => 'none',
          (error: unknown) => (error instanceof OdradekError ? error.code : error),
        )
        expect(['none', 'CORRUPT_LOG']).toContain(code)
      }),
    )
  })
})

describe('the search for a group', () => {
  const at = (text: string, from = 0) => findMagic(new TextEncoder().encode(text), from)

  it('finds the next place that begins like one', () => {
    expect([at('ODJG'), at('xxODJG'), at('OODJG'), at('ODODJG'), at('ODJ ODJGODJG')]).toEqual([0, 2, 1, 2, 4])
    expect([at('ODJGODJG', 1), at('ODJGODJG', 4), at('ODJGODJG', 5)]).toEqual([4, 4, -1])
  })

  it('finds none where there is none', () => {
    expect([at(''), at('O'), at('ODJ'), at('odjg'), at('ODJG', 9)]).toEqual([-1, -1, -1, -1, -1])
  })
})
