import { describe, expect, it } from 'vitest'
import { GroupBuilder } from '../../../src/log/file/group.ts'
import { MAX_FILE_BYTES } from '../../../src/log/file/journal.ts'
import { readJournal } from '../../../src/log/file/journal-reader.ts'
import { crc32c as plain } from '../../../src/log/format/crc32c.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import {
  A,
  crc32c,
  diskOf,
  entriesOf,
  FILE_BYTES,
  fileOf,
  groupBytes,
  joined,
  LOG,
  payloadOf,
  read,
} from './journal-kit.ts'

describe('bytes that somebody published', () => {
  /** A group of one large batch that is full of groups, at every distance, each newer and claiming much. */
  function hostile(sequence: number, crc: typeof crc32c): Uint8Array {
    const forged: Uint8Array[] = []
    for (let i = 0; i < 60; i++) {
      const builder = new GroupBuilder()
      builder.batch(LOG, new Uint8Array(i % 9))
      forged.push(
        ...builder.finish(sequence + 1 + (i % 7), sequence + i, crc),
        new Uint8Array(i % 5).fill(0x4f),
      )
    }
    const builder = new GroupBuilder()
    builder.batch(LOG, joined(forged))
    return joined(builder.finish(sequence, sequence - 1, crc32c))
  }

  async function tails(crc: typeof crc32c): Promise<Set<string>> {
    const record = hostile(2, crc)
    const found = new Set<string>()
    for (let length = 33; length < record.length - 80; length += 7) {
      const torn = joined([groupBytes(1, 80), record.subarray(0, 32), record.subarray(length)])
      found.add((await read(diskOf(torn, undefined))).tail.kind)
      const covered = joined([groupBytes(1, 80), new Uint8Array(32), record.subarray(length)])
      const { tail, sequences } = await read(diskOf(covered, undefined))
      found.add(`${tail.kind} behind ${sequences.join()}`)
    }
    return found
  }

  it('are never taken for groups, where a group is damaged or overwritten in part', async () => {
    expect([...(await tails(plain))].sort()).toEqual(['clean behind 1', 'torn'])
  })

  it('would be, if the seed were known', async () => {
    expect([...(await tails(crc32c))].some((kind) => kind.startsWith('corrupt'))).toBe(true)
  })
})

describe('a length that cannot be true', () => {
  /** A header of ours, its CRC right, whose group is not there. */
  function claiming(sequence: number, bodyBytes: number): Uint8Array {
    const header = groupBytes(sequence, 70).subarray(0, 32)
    const view = new DataView(header.buffer)
    view.setUint32(4, bodyBytes)
    view.setUint32(28, crc32c(header.subarray(0, 28)))
    return header
  }

  it.each([2 ** 32 - 1, 2 ** 31, FILE_BYTES])('is not followed: %d', async (bodyBytes) => {
    const torn = fileOf(FILE_BYTES, groupBytes(1, 70), claiming(2, bodyBytes))
    const tail = { kind: 'torn', file: A, position: 70, sizeBytes: 32 }
    expect(await read(diskOf(torn, undefined))).toEqual({ sequences: [1], next: 3, tail })
    const before = fileOf(FILE_BYTES, groupBytes(1, 70), claiming(2, bodyBytes), groupBytes(3, 90))
    expect(await read(diskOf(before, undefined))).toMatchObject({
      sequences: [1],
      next: 4,
      tail: { kind: 'corrupt', file: A, position: 70, why: expect.stringContaining('group 3') },
    })
  })

  it('is a file larger than any journal', async () => {
    const fs = diskOf(new Uint8Array(10), undefined)
    const open = fs.open.bind(fs)
    fs.open = async (path, mode) =>
      Object.assign(await open(path, mode), { size: async () => MAX_FILE_BYTES + 1 })
    await expect(readJournal(fs, 0, crc32c)).rejects.toMatchObject({ code: 'CORRUPT_LOG' })
    expect(fs.openFiles).toBe(0)
  })
})

describe('a group whose CRC holds', () => {
  it('is refused when it is read, if nobody of ours wrote its entries', async () => {
    const builder = new GroupBuilder()
    builder.meta('[]')
    const bytes = joined(builder.finish(1, 0, crc32c))
    bytes[32] = 9
    const view = new DataView(bytes.buffer)
    view.setUint32(24, crc32c(bytes.subarray(32)))
    view.setUint32(28, crc32c(bytes.subarray(0, 28)))
    const fs = diskOf(bytes, undefined)
    const { groups } = await readJournal(fs, 0, crc32c)
    await expect(entriesOf(fs, groups)).rejects.toThrow(/journal\/a, position 32/)
    await expect(entriesOf(fs, groups)).rejects.toMatchObject({ code: 'CORRUPT_LOG', file: A, position: 32 })
    expect(fs.openFiles).toBe(0)
  })
})

describe('noise', () => {
  it('is read as nothing, in bounded time, or refused with an OdradekError', async () => {
    const header = groupBytes(5, 70).subarray(0, 32)
    for (let seed = 0; seed < 200; seed++) {
      const noise = payloadOf(seed, 3000).map((byte, i) => ((byte * 2654435761 + i * seed) >>> 11) & 0xff)
      for (let at = seed; at < 2900; at += 97) noise.set(header.subarray(0, 4 + (at % 29)), at)
      try {
        expect((await read(diskOf(noise, noise.subarray(seed)))).sequences).toEqual([])
      } catch (error) {
        expect(error).toBeInstanceOf(OdradekError)
      }
    }
  })

  it('does not reach what a disk that fails says', async () => {
    const fs = diskOf(groupBytes(1, 70), undefined)
    fs.onOperation = (operation) => (operation === 'read' ? { fail: 'EIO' } : undefined)
    await expect(readJournal(fs, 0, crc32c)).rejects.toMatchObject({ code: 'STORAGE_ERROR' })
  })
})
