import { describe, expect, it } from 'vitest'
import type { Operation } from '../../../src/log/file/fs.ts'
import { Journal, MAX_FILE_BYTES } from '../../../src/log/file/journal.ts'
import { OdradekError } from '../../../src/model/errors.ts'
import { KiB, MiB } from '../../../src/model/limits.ts'
import { SimFs } from '../../support/sim-fs.ts'
import { A, append, B, group, groupBytes, range, read } from './journal-kit.ts'

function created(fs: SimFs, fileBytes = 4 * KiB, firstSequence = 1): Promise<Journal> {
  return Journal.create(fs, { fileBytes, firstSequence })
}

/** Operations from now on, as `write journal/a`. */
function traced(fs: SimFs): string[] {
  const operations: string[] = []
  fs.onOperation = (operation, path) => {
    operations.push(`${operation} ${path}`)
    return undefined
  }
  return operations
}

/** Lets every operation of this kind fail, on this path. */
function failing(fs: SimFs, operation: Operation, path: string, code: string): void {
  fs.onOperation = (op, at) => (op === operation && at === path ? { fail: code } : undefined)
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
    return 'resolved'
  } catch (error) {
    if (error instanceof OdradekError) return error.code
    throw error
  }
}

describe('a new journal', () => {
  it('is two files, with room in the first, that survive a power loss', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 8 * MiB)
    expect([journal.roomBytes, journal.usedBytes, journal.capacityBytes]).toEqual([MiB, 0, 8 * MiB])
    expect(fs.pending).toBe(0)
    const boot = fs.crash({ seed: 1 })
    expect(boot.files()).toEqual([A, B])
    expect([boot.bytesOf(A).length, boot.bytesOf(B).length]).toEqual([MiB, 0])
    expect(await read(boot)).toEqual({ sequences: [], next: 1, tail: { kind: 'clean' } })
  })

  it('keeps what is allocated of an old one, so that a full disk is no reason not to open', async () => {
    const fs = new SimFs({ capacityBytes: 4 * KiB })
    const old = await created(fs)
    await append(old, group(1, 300), group(2, 300))
    await old.close()
    const journal = await created(fs, 4 * KiB, 3)
    expect([journal.roomBytes, journal.usedBytes]).toEqual([4 * KiB, 0])
    await journal.append(group(3, 300))
    expect(await read(fs, 2)).toMatchObject({ sequences: [3], tail: { kind: 'clean' } })
  })

  it('makes sure of what a process that was killed left unsynced', async () => {
    const fs = new SimFs()
    const old = await created(fs, 8 * MiB)
    await append(old, group(1, 300))
    fs.onOperation = (operation) => (operation === 'sync' ? { halt: 'before' } : undefined)
    void old.grow()
    while (!fs.halted) await Promise.resolve()
    const next = fs.kill()
    const journal = await created(next, 8 * MiB, 2)
    expect([journal.roomBytes, next.pending]).toEqual([2 * MiB, 0])
  })

  it('opens on a full disk without room, and has some when space is freed', async () => {
    const fs = new SimFs({ capacityBytes: 5 * KiB })
    fs.put('other', new Uint8Array(4 * KiB))
    const journal = await created(fs)
    expect(journal.roomBytes).toBe(0)
    expect(await codeOf(journal.grow())).toBe('STORAGE_FULL')
    fs.erase('other')
    await journal.grow()
    expect(journal.roomBytes).toBe(4 * KiB)
    await append(journal, group(1, 300))
    expect(await read(fs)).toMatchObject({ sequences: [1] })
  })

  it.each([
    ['STORAGE_ERROR', 'open', B, 'EMFILE'],
    ['STORAGE_FULL', 'open', A, 'ENOSPC'],
    ['STORAGE_ERROR', 'sync', A, 'EIO'],
    ['STORAGE_ERROR', 'write', A, 'EIO'],
    ['STORAGE_ERROR', 'syncDirectory', 'journal', 'EIO'],
  ] as const)(
    'rejects with %s, and leaves no handle open, when %s of %s fails with %s',
    async (code, op, path, fail) => {
      const fs = new SimFs()
      failing(fs, op, path, fail)
      expect(await codeOf(created(fs))).toBe(code)
      expect(fs.openFiles).toBe(0)
    },
  )

  it('says why it cannot be opened, and leaves no handle open, where they do not close either', async () => {
    const fs = new SimFs()
    fs.onOperation = (op, at) => {
      if (op === 'close') return { fail: 'EIO' }
      return op === 'sync' && at === B ? { fail: 'ENOSPC' } : undefined
    }
    expect(await codeOf(created(fs))).toBe('STORAGE_FULL')
    expect(fs.openFiles).toBe(0)
  })
})

describe('a group', () => {
  it('is one write and one sync, of bytes that were allocated before', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    const operations = traced(fs)
    for (const sequence of range(1, 9)) {
      await journal.append(group(sequence, 100 + sequence))
      await journal.sync()
    }
    expect(operations).toEqual(Array.from({ length: 9 }, () => [`write ${A}`, `sync ${A}`]).flat())
    expect(fs.bytesOf(A)).toHaveLength(4 * KiB)
    expect(journal.usedBytes).toBe(9 * 105)
    expect(journal.roomBytes).toBe(4 * KiB - 9 * 105)
  })

  it('is followed by zeros, also where a stale one was', async () => {
    const fs = new SimFs()
    fs.put(A, new Uint8Array(4 * KiB).fill(0xff))
    const journal = await created(fs)
    await journal.append(group(1, 100))
    expect(fs.bytesOf(A).subarray(100, 133)).toEqual(new Uint8Array(33).fill(0xff, 32))
  })

  it('may take the last byte of the file', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 4 * KiB - 200), group(2, 200))
    expect(journal.roomBytes).toBe(0)
    expect(await read(fs)).toEqual({ sequences: [1, 2], next: 3, tail: { kind: 'clean' } })
    const almost = new SimFs()
    await append(await created(almost), group(1, 4 * KiB - 200), group(2, 199))
    expect(await read(almost)).toEqual({ sequences: [1, 2], next: 3, tail: { kind: 'clean' } })
  })

  it('is refused as a mistake of ours without room, out of sequence, or beside another one', async () => {
    const journal = await created(new SimFs())
    await expect(journal.append(group(1, 4 * KiB + 1))).rejects.toThrow(/room/)
    await expect(journal.append(group(2, 100))).rejects.toThrow(/group 1 is the next/)
    await expect(journal.append([])).rejects.toThrow(/group 1 is the next/)
    const first = journal.append(group(1, 100))
    await expect(journal.append(group(2, 100))).rejects.toThrow(/one at a time/)
    await first
    await journal.append(group(2, 100))
  })
})

describe('growing', () => {
  it('doubles the file up to its capacity, by zeros that are synced', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 5 * MiB)
    const sizes: number[] = []
    for (let i = 0; i < 5; i++) {
      sizes.push(journal.roomBytes)
      expect([fs.pending, fs.bytesOf(A).length]).toEqual([0, journal.roomBytes])
      await journal.grow()
    }
    expect(sizes).toEqual([MiB, 2 * MiB, 4 * MiB, 5 * MiB, 5 * MiB])
  })

  it('goes beyond the capacity for a group that needs it, and gives that back', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000))
    await journal.grow(6000)
    expect(journal.roomBytes).toBe(6000)
    await append(journal, group(2, 6000))
    await journal.rotate()
    await append(journal, group(3, 1000))
    expect(await read(fs)).toMatchObject({ sequences: [1, 2, 3], tail: { kind: 'clean' } })
    await journal.rotate()
    expect([journal.roomBytes, fs.bytesOf(A).length]).toEqual([4 * KiB, 4 * KiB])
    await append(journal, group(4, 1000))
    expect(await read(fs, 2)).toMatchObject({ sequences: [3, 4], tail: { kind: 'clean' } })
  })

  it('leaves no half of a group where it gives something back', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await journal.grow(6000)
    // The capacity ends within the header of 2.
    await append(journal, group(1, 4 * KiB - 16), group(2, 1000))
    await journal.rotate()
    await append(journal, group(3, 1000))
    await journal.rotate()
    expect(await read(fs, 3)).toEqual({ sequences: [], next: 4, tail: { kind: 'clean' } })
  })

  it('refuses what could never be read again', async () => {
    const journal = await created(new SimFs())
    expect(await codeOf(journal.grow(MAX_FILE_BYTES + 1))).toBe('TOO_LARGE')
    expect(journal.roomBytes).toBe(4 * KiB)
  })

  it('leaves everything as it was on a full disk, and works again when space is freed', async () => {
    const fs = new SimFs({ capacityBytes: 3 * MiB })
    const journal = await created(fs, 8 * MiB)
    await append(journal, group(1, 1000))
    await journal.grow()
    expect(await codeOf(journal.grow())).toBe('STORAGE_FULL')
    expect([journal.roomBytes, fs.bytesOf(A).length]).toEqual([2 * MiB - 1000, 2 * MiB])
    await append(journal, group(2, 1000))
    await journal.sync()
    const roomy = fs.copy({ capacityBytes: 8 * MiB })
    expect(await read(roomy)).toMatchObject({ sequences: [1, 2], tail: { kind: 'clean' } })
    const again = await created(roomy, 8 * MiB, 3)
    await again.grow()
    expect(again.roomBytes).toBe(4 * MiB)
  })

  it('tells why there is no more room, also when that cannot be given back', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 8 * MiB)
    fs.onOperation = (operation) => {
      if (operation === 'write') return { fail: 'ENOSPC' }
      return operation === 'truncate' ? { fail: 'EIO' } : undefined
    }
    expect(await codeOf(journal.grow())).toBe('STORAGE_FULL')
    expect(journal.roomBytes).toBe(MiB)
  })

  it('goes on beside groups and their syncs', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 8 * MiB)
    const growing = [journal.grow(), journal.grow()]
    for (const sequence of range(1, 20)) {
      await journal.append(group(sequence, 500))
      await journal.sync()
    }
    await Promise.all(growing)
    expect(journal.roomBytes).toBe(4 * MiB - 20 * 500)
    expect(await read(fs.crash({ seed: 3 }))).toMatchObject({ sequences: range(1, 20) })
  })
})

describe('rotation', () => {
  it('goes on in the other file, and back, without writing zeros again', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000), group(2, 2000))
    await journal.rotate()
    expect([journal.usedBytes, journal.roomBytes]).toEqual([0, 4 * KiB])
    await append(journal, group(3, 700))
    expect(await read(fs)).toEqual({ sequences: [1, 2, 3], next: 4, tail: { kind: 'clean' } })
    const operations = traced(fs)
    await journal.rotate()
    expect(operations).toEqual([`sync ${B}`])
    await append(journal, group(4, 1700))
    // The end of 4 lies within what is left of 2.
    expect(await read(fs, 2)).toEqual({ sequences: [3, 4], next: 5, tail: { kind: 'clean' } })
    expect(await read(fs, 4)).toEqual({ sequences: [], next: 5, tail: { kind: 'clean' } })
  })

  it('syncs what it leaves', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000, 0), group(2, 2000, 0))
    await journal.rotate()
    expect(await read(fs.crash({ seed: 5, share: 0 }))).toMatchObject({ sequences: [1, 2] })
  })

  it('leaves no room when the disk is too full for the other file, until it is not', async () => {
    const fs = new SimFs({ capacityBytes: 5 * KiB })
    const journal = await created(fs)
    await append(journal, group(1, 1000))
    await journal.rotate()
    expect(journal.roomBytes).toBe(0)
    expect(await codeOf(journal.grow())).toBe('STORAGE_FULL')
    expect(await read(fs)).toEqual({ sequences: [1], next: 2, tail: { kind: 'clean' } })
  })

  it('waits for growth that is under way', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 8 * MiB)
    await append(journal, group(1, 1000))
    await Promise.all([journal.grow(), journal.rotate()])
    expect([fs.bytesOf(A).length, fs.bytesOf(B).length, journal.roomBytes]).toEqual([2 * MiB, MiB, MiB])
  })

  it('is a mistake of ours beside a group', async () => {
    const journal = await created(new SimFs())
    const first = journal.append(group(1, 100))
    await expect(journal.rotate()).rejects.toThrow(/nothing is appended/)
    await first
  })

  it('stays where it is when space cannot be given back', async () => {
    const fs = new SimFs()
    fs.put(A, new Uint8Array(0))
    const journal = await created(fs)
    await journal.grow(5000)
    await append(journal, group(1, 5000))
    await journal.rotate()
    await append(journal, group(2, 100))
    failing(fs, 'truncate', A, 'EIO')
    expect(await codeOf(journal.rotate())).toBe('STORAGE_ERROR')
    await append(journal, group(3, 100))
    expect(await read(fs)).toMatchObject({ sequences: [1, 2, 3] })
  })
})

describe('the first failure', () => {
  it.each(['EIO', 'ENOSPC'])('of a write ends the journal: %s', async (code) => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000))
    await journal.sync()
    failing(fs, 'write', A, code)
    expect(await codeOf(journal.append(group(2, 1000)))).toBe('OUTCOME_UNKNOWN')
    fs.onOperation = () => undefined
    const operations = traced(fs)
    const later = [journal.append(group(2, 1000)), journal.sync(), journal.grow(), journal.rotate()]
    expect(await Promise.all(later.map(codeOf))).toEqual(Array.from({ length: 4 }, () => 'OUTCOME_UNKNOWN'))
    expect(operations).toEqual([])
    await journal.close()
  })

  it('of a sync ends it, though a second one would not fail: the kernel forgot what it could not write', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000))
    await journal.sync()
    await append(journal, group(2, 1000))
    failing(fs, 'sync', A, 'EIO')
    const failure = journal.sync()
    await expect(failure).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'STORAGE_ERROR' } })
    fs.onOperation = () => undefined
    expect(await codeOf(journal.sync())).toBe('OUTCOME_UNKNOWN')
    // What the process sees, and what is there.
    expect(await read(fs)).toMatchObject({ sequences: [1, 2] })
    expect(await read(fs.crash({ seed: 1, share: 0 }))).toMatchObject({ sequences: [1] })
  })

  it('of a sync of zeros ends it too, for whoever syncs a group meanwhile', async () => {
    const fs = new SimFs()
    const journal = await created(fs, 8 * MiB)
    await append(journal, group(1, 1000))
    let syncs = 0
    fs.onOperation = (operation) => (operation === 'sync' && ++syncs === 1 ? { fail: 'EIO' } : undefined)
    const grown = journal.grow()
    while (syncs === 0) await Promise.resolve()
    const [grow, sync] = await Promise.all([codeOf(grown), codeOf(journal.sync())])
    expect([grow, sync]).toEqual(['STORAGE_ERROR', 'OUTCOME_UNKNOWN'])
  })
})

describe('the end', () => {
  it.each([A, B])('closes the other handles where one of %s fails, and says so', async (path) => {
    const fs = new SimFs()
    const journal = await created(fs)
    failing(fs, 'close', path, 'EIO')
    expect(await codeOf(journal.close())).toBe('STORAGE_ERROR')
    expect(fs.openFiles).toBe(0)
  })

  it('closes every handle, and syncs nothing', async () => {
    const fs = new SimFs()
    const journal = await created(fs)
    await append(journal, group(1, 1000))
    const growing = journal.grow()
    await journal.close()
    await growing
    expect(fs.openFiles).toBe(0)
    expect(fs.pending).toBeGreaterThan(0)
    expect(fs.bytesOf(A).subarray(0, 1000)).toEqual(groupBytes(1, 1000))
  })
})
