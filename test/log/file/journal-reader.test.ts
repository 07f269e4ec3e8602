import { describe, expect, it } from 'vitest'
import { Journal } from '../../../src/log/file/journal.ts'
import { readJournal } from '../../../src/log/file/journal-reader.ts'
import { KiB } from '../../../src/model/limits.ts'
import type { Placed } from './journal-kit.ts'
import {
  A,
  B,
  bytesOf,
  CLEAN,
  crc32c,
  diskOf,
  entriesOf,
  FILE_BYTES,
  fileOf,
  groupBytes,
  joined,
  laidOut,
  payloadOf,
  range,
  read,
  SIZES,
} from './journal-kit.ts'

const everySynced = (sequence: number) => sequence - 1
const noneSynced = () => 0

describe('a journal that nothing happened to', () => {
  it('is read in order, whichever file comes first', async () => {
    const older = fileOf(FILE_BYTES, bytesOf(laidOut(1, SIZES, everySynced)))
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
    for (const fs of [diskOf(older, newer), diskOf(newer, older)]) {
      expect(await read(fs)).toEqual({ sequences: range(1, 10), next: 11, tail: CLEAN })
      for (const after of range(0, 12)) {
        const next = Math.max(10, after) + 1
        expect(await read(fs, after)).toEqual({ sequences: range(after + 1, 10), next, tail: CLEAN })
      }
    }
  })

  it('tells where each group is, and gives its entries each time anew', async () => {
    const fs = diskOf(fileOf(FILE_BYTES, bytesOf(laidOut(1, SIZES, everySynced))), new Uint8Array(0))
    const { groups } = await readJournal(fs, 1, crc32c)
    for (let time = 0; time < 2; time++) {
      const found = [...groups]
      expect(found).toMatchObject(
        laidOut(1, SIZES, everySynced)
          .slice(1)
          .map((placed) => ({ ...placed, file: A })),
      )
      expect((await entriesOf(fs, found)).map(({ kind }) => kind)).toEqual(
        Array.from({ length: 8 }, () => 'batch'),
      )
    }
  })

  it.each([
    ['no files', undefined, undefined],
    ['two empty files', new Uint8Array(0), new Uint8Array(0)],
    ['zeros', new Uint8Array(FILE_BYTES), new Uint8Array(FILE_BYTES)],
    ['zeros shorter than a header', new Uint8Array(31), new Uint8Array(1)],
    ['a file of zeros and none', undefined, new Uint8Array(FILE_BYTES)],
  ])('may hold nothing yet: %s', async (_, a, b) => {
    expect(await read(diskOf(a, b))).toEqual({ sequences: [], next: 1, tail: CLEAN })
    expect(await read(diskOf(a, b), 41)).toEqual({ sequences: [], next: 42, tail: CLEAN })
  })

  it('may have one file only', async () => {
    const bytes = fileOf(FILE_BYTES, bytesOf(laidOut(1, SIZES, everySynced)))
    for (const fs of [diskOf(bytes, undefined), diskOf(undefined, bytes), diskOf(bytes, new Uint8Array(0))]) {
      expect(await read(fs)).toEqual({ sequences: range(1, 5), next: 6, tail: CLEAN })
    }
  })

  it('may end with the file, or shorter than a header before it', async () => {
    const groups = laidOut(1, SIZES, everySynced)
    const { length } = bytesOf(groups)
    for (const more of [0, 1, 31, 32, 33]) {
      expect(await read(diskOf(fileOf(length + more, bytesOf(groups)), undefined))).toMatchObject({
        tail: CLEAN,
      })
    }
  })

  it('is not read twice as far when it is read twice', async () => {
    const fs = diskOf(fileOf(FILE_BYTES, bytesOf(laidOut(1, SIZES, everySynced))), undefined)
    expect(await read(fs)).toEqual(await read(fs))
    expect(fs.openFiles).toBe(0)
  })
})

describe('what does not count', () => {
  const a = bytesOf(laidOut(1, SIZES, everySynced))
  const b = bytesOf(laidOut(SIZES.length + 1, SIZES, everySynced))
  const [, second] = laidOut(1, SIZES, everySynced) as [Placed, Placed]

  it('is told of, in each file that has some of it, up to its last byte', async () => {
    const { rest } = await readJournal(
      diskOf(fileOf(FILE_BYTES, damaged(a, second.position, 0xff)), fileOf(FILE_BYTES, b)),
      0,
      crc32c,
    )
    expect(rest).toEqual([
      { file: 'journal/a', position: second.position, sizeBytes: a.length - second.position },
      { file: 'journal/b', position: 0, sizeBytes: b.length },
    ])
  })

  it('is the torn end of one, and nothing where all is sound', async () => {
    const torn = fileOf(FILE_BYTES, a, b.subarray(0, 50))
    expect((await readJournal(diskOf(torn, undefined), 0, crc32c)).rest).toEqual([
      { file: 'journal/a', position: a.length, sizeBytes: 50 },
    ])
    const sound = diskOf(fileOf(FILE_BYTES, a), fileOf(FILE_BYTES, b))
    expect((await readJournal(sound, 0, crc32c)).rest).toEqual([])
  })
})

/** What must be read when byte `at` of the second of two files, or of the only one, is not what it was. */
function expected(groups: readonly Placed[], at: number, first: number): unknown {
  const hit = groups.find(({ position, sizeBytes }) => at >= position && at < position + sizeBytes)
  const end = groups.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const last = (groups.at(-1) as Placed).sequence
  if (hit === undefined) {
    const sequences = range(first, last)
    if (at >= end + 32) return { sequences, next: last + 1, tail: CLEAN }
    return { sequences, next: last + 2, tail: { kind: 'torn', position: end } }
  }
  const proven = groups.some(({ synced }) => synced >= hit.sequence)
  return {
    sequences: range(first, hit.sequence - 1),
    next: Math.max(last, hit.sequence) + 1,
    tail: { kind: proven ? 'corrupt' : 'torn', position: hit.position },
  }
}

function damaged(bytes: Uint8Array, at: number, pattern: number): Uint8Array {
  const copy = bytes.slice()
  copy[at] = pattern === 0 ? 0 : (copy[at] as number) ^ pattern
  return copy
}

/** Single bits, several at once, and 0: set to zero. */
const PATTERNS = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x55, 0]

describe('any one byte that changed', () => {
  it.each([
    ['after a sync each', everySynced],
    ['with no sync known', noneSynced],
    ['after one sync', (sequence: number) => (sequence > 3 ? 2 : 0)],
  ])('cuts the last group, or is found by what follows: groups %s', async (_, syncedOf) => {
    const groups = laidOut(1, SIZES, syncedOf)
    const bytes = fileOf(FILE_BYTES, bytesOf(groups))
    for (let at = 0; at < bytes.length; at++) {
      for (const pattern of PATTERNS) {
        const changed = damaged(bytes, at, pattern)
        if (changed[at] === bytes[at]) continue
        const found = await read(diskOf(changed, new Uint8Array(FILE_BYTES)))
        expect({ at, pattern, ...found }).toMatchObject({
          at,
          pattern,
          ...(expected(groups, at, 1) as object),
        })
      }
    }
  })

  it('is corruption in the older of two files, whatever is known of syncs', async () => {
    const groups = laidOut(1, SIZES, noneSynced)
    const older = bytesOf(groups)
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, noneSynced)))
    for (let at = 0; at < older.length; at++) {
      const hit = groups.findLast(({ position }) => position <= at) as Placed
      for (const pattern of [0x01, 0x80, 0xff]) {
        const tail = {
          kind: 'corrupt',
          file: B,
          position: hit.position,
          why: expect.stringMatching(/^group/),
        }
        const found = await read(diskOf(newer, damaged(older, at, pattern)))
        expect({ at, ...found }).toEqual({ at, sequences: range(1, hit.sequence - 1), next: 11, tail })
      }
    }
  })

  it('in the newer of two files is what it is in one', async () => {
    const groups = laidOut(6, SIZES, everySynced)
    const older = bytesOf(laidOut(1, SIZES, everySynced))
    const newer = fileOf(FILE_BYTES, bytesOf(groups))
    for (let at = 0; at < newer.length; at++) {
      const found = await read(diskOf(older, damaged(newer, at, 0x40)))
      expect({ at, ...found }).toMatchObject({ at, ...(expected(groups, at, 1) as object) })
    }
  })

  it('in each of two files is corruption by the first of them', async () => {
    const older = bytesOf(laidOut(1, SIZES, everySynced))
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
    for (let at = 0; at < newer.length; at += 3) {
      const fs = diskOf(damaged(older, at % older.length, 0x04), damaged(newer, at, 0x20))
      const hit = laidOut(1, SIZES, everySynced).findLast(
        ({ position }) => position <= at % older.length,
      ) as Placed
      const tail = { kind: 'corrupt', file: A, position: hit.position }
      expect({ at, ...(await read(fs)) }).toMatchObject({ at, sequences: range(1, hit.sequence - 1), tail })
    }
    // Whatever was there: nothing can be read, and nothing proves anything.
    const noise = diskOf(payloadOf(1, 600), payloadOf(2, 600))
    const tail = { kind: 'torn', file: A, position: 0, sizeBytes: 600 }
    expect(await read(noise, 7)).toEqual({ sequences: [], next: 9, tail })
  })

  it('in a group that the checkpoint has changes nothing that is read', async () => {
    const stale = laidOut(1, SIZES, everySynced)
    const bytes = bytesOf(stale)
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, [70, 80], everySynced)))
    for (let at = 0; at < bytes.length; at++) {
      const changed = damaged(bytes, at, 0x10)
      const found = await read(diskOf(changed, newer), 5)
      // A damaged header where the other file begins may as well be what is left of group 8.
      expect({ at, ...found }).toMatchObject({
        at,
        sequences: [6, 7],
        tail: at < 32 ? { kind: 'torn' } : CLEAN,
      })
      const within = await read(diskOf(fileOf(FILE_BYTES, changed), undefined), 3)
      const last = at < 70 + 131 + 90 ? [4, 5] : at < bytes.length - 117 ? [] : [4]
      expect({ at, ...within }).toMatchObject({ at, sequences: last })
    }
  })
})

describe('a file that is cut', () => {
  it('at any byte gives every group before it', async () => {
    for (const syncedOf of [everySynced, noneSynced]) {
      const groups = laidOut(1, SIZES, syncedOf)
      const bytes = bytesOf(groups)
      for (let length = 0; length <= bytes.length; length++) {
        const whole = groups.filter(({ position, sizeBytes }) => position + sizeBytes <= length)
        const end = whole.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
        const tail =
          end === length ? CLEAN : { kind: 'torn', file: A, position: end, sizeBytes: length - end }
        for (const zeros of [0, 5, 100]) {
          const fs = diskOf(fileOf(length + zeros, bytes.subarray(0, length)), undefined)
          const found = await read(fs)
          const next = end === length ? whole.length + 1 : whole.length + 2
          // A group that ends in a zero byte is torn one byte before that.
          const sizeBytes = expect.any(Number)
          expect({ length, ...found }).toEqual({
            length,
            sequences: range(1, whole.length),
            next,
            tail: end === length ? tail : { ...tail, sizeBytes },
          })
        }
      }
    }
  })

  it('at any byte, the older of two, is corruption', async () => {
    const groups = laidOut(1, SIZES, everySynced)
    const older = bytesOf(groups)
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
    for (let length = 0; length < older.length; length++) {
      const whole = groups.filter(({ position, sizeBytes }) => position + sizeBytes <= length).length
      for (const zeros of [0, FILE_BYTES]) {
        const fs = diskOf(fileOf(length + zeros, older.subarray(0, length)), newer)
        expect({ length, ...(await read(fs)) }).toMatchObject({
          length,
          sequences: range(1, whole),
          next: 11,
          tail: { kind: 'corrupt', why: expect.stringContaining(`group ${whole + 1} cannot be read`) },
        })
      }
    }
  })

  it('away as a whole, though groups in it are needed, is corruption by the first group that is there', async () => {
    const newer = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
    expect(await read(diskOf(undefined, newer), 2)).toMatchObject({
      sequences: [],
      next: 11,
      tail: { kind: 'corrupt', file: B, position: 0, why: expect.stringContaining('group 3 cannot be read') },
    })
    expect(await read(diskOf(undefined, newer), 5)).toMatchObject({ sequences: range(6, 10), tail: CLEAN })
  })
})

describe('what follows the last group', () => {
  const groups = laidOut(1, SIZES, everySynced)
  const bytes = bytesOf(groups)

  it('as garbage is torn, of any length, with all groups before it', async () => {
    for (const length of range(1, 120)) {
      const garbage = payloadOf(99, length)
      const fs = diskOf(joined([bytes, garbage, new Uint8Array(40)]), new Uint8Array(0))
      const tail = { kind: 'torn', file: A, position: bytes.length, sizeBytes: length }
      expect(await read(fs)).toEqual({ sequences: range(1, 5), next: 7, tail })
    }
  })

  it('as garbage beyond a fence of zeros was there before', async () => {
    const fs = diskOf(joined([bytes, new Uint8Array(32), payloadOf(99, 200)]), undefined)
    expect(await read(fs)).toEqual({ sequences: range(1, 5), next: 6, tail: CLEAN })
  })

  it('as garbage is torn too where the last group is one that the checkpoint has', async () => {
    const older = fileOf(FILE_BYTES, bytesOf(laidOut(1, SIZES, everySynced)))
    const newer = joined([bytesOf(laidOut(6, SIZES, everySynced)), payloadOf(99, 50)])
    for (const [a, b, file] of [
      [newer, older, A],
      [older, newer, B],
      [newer, undefined, A],
    ] as const) {
      const tail = { kind: 'torn', file, position: bytes.length, sizeBytes: 50 }
      expect(await read(diskOf(a, b), 10)).toEqual({ sequences: [], next: 12, tail })
    }
  })

  it('as zeros where groups were is corruption, if one after them is left', async () => {
    for (const [from, to] of [
      [0, 70],
      [70, 201],
      [100, 300],
      [0, bytes.length - 117],
    ] as const) {
      const fs = diskOf(bytes.slice().fill(0, from, to), undefined)
      const first = groups.findLast(({ position }) => position <= from) as Placed
      expect(await read(fs)).toMatchObject({
        sequences: range(1, first.sequence - 1),
        tail: { kind: 'corrupt', why: expect.stringContaining(`group ${first.sequence} cannot be read`) },
      })
    }
  })

  it('is a group that was cut off while the one behind it survived, if neither was synced', async () => {
    const unsynced = laidOut(1, SIZES, () => 2)
    const whole = bytesOf(unsynced)
    const third = unsynced[2] as Placed
    for (const from of range(third.position, third.position + third.sizeBytes - 1)) {
      const fs = diskOf(whole.slice().fill(0, from, third.position + third.sizeBytes), undefined)
      const tail = {
        kind: 'torn',
        file: A,
        position: third.position,
        sizeBytes: whole.length - third.position,
      }
      // Without a trace of the third it is the fourth that is left out.
      const fourth = { ...tail, position: third.position + third.sizeBytes, sizeBytes: 96 + 117 }
      const found = await read(fs)
      expect({ from, ...found }).toEqual({
        from,
        sequences: [1, 2],
        next: 6,
        tail: from === third.position ? fourth : tail,
      })
    }
  })

  it('never is a stale group, however exactly it lies behind the new ones', async () => {
    // The same sizes: each new group ends where an old one begins.
    for (const count of range(1, 5)) {
      const stale = bytesOf(laidOut(1, SIZES, everySynced))
      const fresh = bytesOf(laidOut(11, SIZES.slice(0, count), everySynced))
      const older = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
      for (const fence of [32, 0]) {
        const file = fileOf(FILE_BYTES, stale)
        file.set(fileOf(fresh.length + fence, fresh))
        expect(await read(diskOf(file, older), 5)).toEqual({
          sequences: range(6, 10 + count),
          next: 11 + count,
          tail: CLEAN,
        })
      }
    }
  })

  it('is torn where a new group began to cover a stale one', async () => {
    const stale = bytesOf(laidOut(1, SIZES, everySynced))
    const older = fileOf(FILE_BYTES, bytesOf(laidOut(6, SIZES, everySynced)))
    const fresh = groupBytes(11, 150)
    for (const written of range(0, 149)) {
      const file = fileOf(FILE_BYTES, stale)
      file.set(fresh.subarray(0, written))
      const found = await read(diskOf(older, file), 5)
      const tail = written <= sameStart(stale, fresh) ? CLEAN : { kind: 'torn', file: B, position: 0 }
      expect({ written, ...found }).toMatchObject({ written, sequences: range(6, 10), tail })
    }
  })
})

function sameStart(one: Uint8Array, other: Uint8Array): number {
  return one.findIndex((byte, i) => byte !== other[i])
}

describe('the sequence to go on with', () => {
  it('is above every group that is still in the files, so that none of them ever counts again', async () => {
    // 2 was cut off, 3 to 5 survived without a sync.
    const bytes = fileOf(4 * KiB, bytesOf(laidOut(1, SIZES, noneSynced)))
    bytes[100] = (bytes[100] as number) ^ 1
    const fs = diskOf(bytes, undefined)
    const { sequences, next } = await read(fs)
    expect([sequences, next]).toEqual([[1], 6])
    const journal = await Journal.create(fs, { fileBytes: 4 * KiB, firstSequence: next })
    expect(await read(fs, next - 1)).toEqual({ sequences: [], next, tail: CLEAN })
    // It ends just where 3 begins.
    await journal.append([groupBytes(next, 70 + 131)])
    expect(await read(fs, next - 1)).toEqual({ sequences: [next], next: next + 1, tail: CLEAN })
  })
})
