import { describe, expect, it } from 'vitest'
import { Journal } from '../../../src/log/file/journal.ts'
import { JournalRoom } from '../../../src/log/file/journal-room.ts'
import { KiB, MiB } from '../../../src/model/limits.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { SimFs } from '../../support/sim-fs.ts'

async function roomOn(fs: SimFs, fileBytes = 4 * MiB) {
  const journal = await Journal.create(fs, { fileBytes, firstSequence: 1 })
  const clock = new ManualClock()
  const reports: string[] = []
  const failures: unknown[] = []
  const room = new JournalRoom(journal, clock, {
    report: (_, what) => void reports.push(what),
    failed: (cause) => void failures.push(cause),
  })
  let told = 0
  return {
    journal,
    clock,
    room,
    reports,
    failures,
    refused: { roomAgain: () => void told++ },
    told: () => told,
  }
}

describe('room in the journal', () => {
  it('grows up to the capacity, beyond it only for what would not fit otherwise, and tells who was refused', async () => {
    const { journal, room, refused, told } = await roomOn(new SimFs(), 2 * MiB)
    expect([journal.roomBytes, room.refuse(refused)]).toEqual([1 * MiB, 'NO_ROOM'])
    room.extend()
    room.extend()
    expect(told()).toBe(0)
    await room.idle()
    expect([journal.roomBytes, told()]).toEqual([2 * MiB, 1])
    room.extend()
    await room.idle()
    expect([journal.roomBytes, told()]).toEqual([2 * MiB, 1])
    await room.growFor(3 * MiB)
    expect(journal.roomBytes).toBe(3 * MiB)
  })

  it('is refused for a full disk, which is told once, until there is space', async () => {
    const fs = new SimFs({ capacityBytes: 1 * MiB + 64 * KiB })
    const { room, reports, failures, refused, told } = await roomOn(fs)
    for (let times = 0; times < 2; times++) await room.growFor(3 * MiB)
    expect([room.isFull, room.refuse(refused), failures]).toEqual([true, 'STORAGE_FULL', []])
    expect(reports).toEqual(['the disk is full: publishing is refused once the journal is'])
    room.freed()
    expect([room.isFull, room.refuse(refused), told()]).toEqual([false, 'NO_ROOM', 0])
    room.forget(refused)
    room.tellRefused()
    expect(told()).toBe(0)
  })

  it('that cannot grow for another reason is the end of the journal', async () => {
    const fs = new SimFs()
    const { room, reports, failures, refused, told } = await roomOn(fs)
    room.refuse(refused)
    fs.onOperation = (operation) => (operation === 'write' ? { fail: 'EIO' } : undefined)
    await room.growFor(2 * MiB)
    expect(failures).toMatchObject([{ code: 'STORAGE_ERROR' }])
    expect([reports, room.isFull, told()]).toEqual([[], false, 1])
    room.refuse(refused)
    room.end()
    expect(told()).toBe(2)
    const { operations } = fs
    room.extend()
    await room.idle()
    expect(fs.operations).toBe(operations)
  })
})
